"""Recurrences rewritten as reductions, scans, scatters and wavefronts."""
