"""With Numba: loops. The peer compiles them, with threads where a cell is not a small one."""

import numpy as np
from numba import prange
from numba.extending import register_jitable

BLOCK = 64
"""How many columns one thread sums at a time, going down the rows."""


@register_jitable
def _columns(y, x, first, last, scale):
    for j in range(first, last):
        y[j] = 0
    for i in range(x.shape[0]):
        for j in range(first, last):
            y[j] += x[i, j]
    for j in range(first, last):
        y[j] *= scale


def sum_axis0(y, x):
    """Blocks of columns, row after row."""
    for block in prange((x.shape[1] + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        _columns(y, x, first, min(first + BLOCK, x.shape[1]), np.float32(1))


def mean_axis0(y, x):
    """Blocks of columns, row after row."""
    scale = np.float32(1 / x.shape[0])
    for block in prange((x.shape[1] + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        _columns(y, x, first, min(first + BLOCK, x.shape[1]), scale)


def var_axis0(y, x):
    """Blocks of columns, row after row, twice."""
    rows, columns = x.shape
    scale = np.float32(1 / rows)
    for block in prange((columns + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        last = min(first + BLOCK, columns)
        _columns(y, x, first, last, scale)
        squares = np.zeros(BLOCK, np.float32)
        for i in range(rows):
            for j in range(first, last):
                squares[j - first] += (x[i, j] - y[j]) * (x[i, j] - y[j])
        for j in range(first, last):
            y[j] = squares[j - first] * scale


@register_jitable
def _row(x, i):
    total = np.float32(0)
    for j in range(x.shape[1]):
        total += x[i, j]
    return total


@register_jitable
def _squares(x, i, middle):
    total = np.float32(0)
    for j in range(x.shape[1]):
        total += (x[i, j] - middle) * (x[i, j] - middle)
    return total


def sum_axis1(y, x):
    """One loop for each row."""
    for i in prange(x.shape[0]):
        y[i] = _row(x, i)


def mean_axis1(y, x):
    """One loop for each row."""
    scale = np.float32(1 / x.shape[1])
    for i in prange(x.shape[0]):
        y[i] = _row(x, i) * scale


def var_axis1(y, x):
    """Two loops for each row."""
    scale = np.float32(1 / x.shape[1])
    for i in prange(x.shape[0]):
        y[i] = _squares(x, i, _row(x, i) * scale) * scale


def sum_all(y, x):
    """Row by row."""
    total = np.float32(0)
    for i in prange(x.shape[0]):
        total += _row(x, i)
    y[0] = total


def mean_all(y, x):
    """Row by row."""
    total = np.float32(0)
    for i in prange(x.shape[0]):
        total += _row(x, i)
    y[0] = total / np.float32(x.size)


def var_all(y, x):
    """Row by row, twice."""
    total = np.float32(0)
    for i in prange(x.shape[0]):
        total += _row(x, i)
    middle = total / np.float32(x.size)
    squares = np.float32(0)
    for i in prange(x.shape[0]):
        squares += _squares(x, i, middle)
    y[0] = squares / np.float32(x.size)


def cumsum(y, x):
    """One loop, in order."""
    total = np.float32(0)
    for i in range(x.size):
        total += x[i]
        y[i] = total
