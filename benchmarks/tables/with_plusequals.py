"""In the language of docs/language.md."""

from plusequals import cd


@cd
def histogram(counts, ids):
    """All contributions count, also those to one cell."""
    counts[:] = 0
    counts[ids[n]] += 1


@cd
def gather(y, table, ids):
    y[n, d] = table[ids[n], d]


@cd
def scatter_add(table, values, ids, rows):
    """All contributions count, also those to one row."""
    table[:] = 0
    table[ids[n], d] += values[n, d]
