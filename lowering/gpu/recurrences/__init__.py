"""Recurrences rewritten as reductions, scans and scatters."""
