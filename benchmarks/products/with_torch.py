"""With PyTorch, eager and compiled: its BLAS, and the permutations that lead there."""

import torch


def gemm_f32(c, a, b):
    return torch.mm(a, b, out=c)


def gemm_f64(c, a, b):
    return torch.mm(a, b, out=c)


def gemv(y, a, x):
    return torch.mv(a, x, out=y)


def mttkrp(y, x, b, c):
    """A product of matrices, then a sum."""
    return torch.sum((x @ c) * b, dim=1, out=y)


def contraction(c, a, b):
    """The library permutes."""
    return torch.einsum("eifk,jfle->ijkl", a, b)


def syrk(c, a):
    """All of the product, then zeros above."""
    return torch.tril(torch.mm(a, a.T), out=c)


def carried(m, a):
    """A product at a time."""
    left = torch.eye(3, dtype=a.dtype)
    for one in a.unbind():
        left = left @ one
    return left


NOT_COMPILED = {"carried": "a graph of as many steps takes minutes to compile"}
