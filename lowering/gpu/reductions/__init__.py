"""Reductions and scans on devices: by blocks of threads, by many blocks."""
