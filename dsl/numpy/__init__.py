"""Lowering of NumPy's and Python's functions: a table from function objects to handlers."""
