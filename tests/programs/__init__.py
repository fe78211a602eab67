"""Random programs over both notations, run on every backend and against plain NumPy."""
