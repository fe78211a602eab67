"""With PyTorch, eager and compiled: the library's reductions."""

import torch


def sum_axis0(y, x):
    return torch.sum(x, dim=0, out=y)


def sum_axis1(y, x):
    return torch.sum(x, dim=1, out=y)


def sum_all(y, x):
    return x.sum().reshape(1)


def mean_axis0(y, x):
    return torch.mean(x, dim=0, out=y)


def mean_axis1(y, x):
    return torch.mean(x, dim=1, out=y)


def mean_all(y, x):
    return x.mean().reshape(1)


def var_axis0(y, x):
    return torch.var(x, dim=0, correction=0, out=y)


def var_axis1(y, x):
    return torch.var(x, dim=1, correction=0, out=y)


def var_all(y, x):
    return x.var(correction=0).reshape(1)


def cumsum(y, x):
    return torch.cumsum(x, dim=0, out=y)
