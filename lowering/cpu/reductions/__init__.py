"""Reductions on CPUs: in SIMD lanes, by strips of columns, by blocks."""
