"""Bounds checks that are done for many iterations at once."""
