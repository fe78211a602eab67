"""Functions of NumPy that are written in the language itself."""
