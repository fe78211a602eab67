"""With Numba: loops. Additions that may meet are done by one thread."""

from numba import prange


def histogram(counts, ids):
    counts[:] = 0
    for n in range(ids.size):
        counts[ids[n]] += 1


def gather(y, table, ids):
    for n in prange(ids.size):
        for d in range(table.shape[1]):
            y[n, d] = table[ids[n], d]


def scatter_add(table, values, ids, rows):
    table[:] = 0
    for n in range(ids.size):
        for d in range(table.shape[1]):
            table[ids[n], d] += values[n, d]
