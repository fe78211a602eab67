"""With PyTorch, eager and compiled: the library's own."""

import torch


def histogram(counts, ids):
    return torch.bincount(ids, minlength=counts.numel())


def gather(y, table, ids):
    return torch.index_select(table, 0, ids, out=y)


def scatter_add(table, values, ids, rows):
    table.zero_()
    table.index_add_(0, ids, values)


def differentiable_scatter_add(table, values, ids, rows):
    """Into a new table."""
    return values.new_zeros(rows, values.shape[1]).index_add(0, ids, values)


NOT_COMPILED = {"histogram": "a count whose length depends on data is not compiled into one graph"}
