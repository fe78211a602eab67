"""plusequals: write array assignments in Python, run compiled C.

    @cd
    def matmul(c, a, b):
        c[i, j] = sum(a[i, k] * b[k, j])

Write a function of array assignments, put `@cd` above it, call it; `explain` shows what it
became and why.
"""

from .lowering.diagnostic import CdError

__version__ = "0.1.0"

__all__ = ["CdError", "__version__"]
