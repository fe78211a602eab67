"""With NumPy: counting, taking, and its slow but correct addition."""

import numpy as np


def histogram(counts, ids):
    counts[...] = np.bincount(ids, minlength=counts.size)


def gather(y, table, ids):
    """Told that no subscript is out of range, so that `out=` needs no copy."""
    np.take(table, ids, axis=0, out=y, mode="clip")


def scatter_add(table, values, ids, rows):
    table[...] = 0
    np.add.at(table, ids, values)
