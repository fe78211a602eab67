"""Bounds checks for many iterations at a time."""
