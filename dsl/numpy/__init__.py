"""NumPy's and Python's functions: a table from objects to their meaning."""
