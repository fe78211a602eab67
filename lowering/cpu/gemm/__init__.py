"""Products of matrices on processors: tiles, packing, blocking."""
