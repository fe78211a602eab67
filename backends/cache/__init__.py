"""Persistent cache of compiled code: entries, integrity checks, file locks."""
