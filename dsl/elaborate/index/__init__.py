"""Index notation: statements, reductions, and the ranges of index variables."""
