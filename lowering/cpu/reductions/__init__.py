"""Reductions on processors: in vector lanes, in strips, by blocks."""
