"""Functions of NumPy that only the compiler can do, as handlers over values."""
