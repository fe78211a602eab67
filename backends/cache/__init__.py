"""Compiled code on disk: files, their checks, their locks."""
