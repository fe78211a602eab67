"""plusequals beside NumPy, Numba, PyTorch and JAX, in one run: `python3 -m benchmarks`.

Each kind of work is a folder: `__init__` says what is computed, at which sizes, what is right and
what it costs at least; `with_*` says how each library's user writes it.
"""
