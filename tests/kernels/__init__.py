"""Programs as NumPy users write them, run plain and compiled, and compared."""
