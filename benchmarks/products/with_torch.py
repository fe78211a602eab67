"""With PyTorch, eager and compiled: its BLAS, and the permutations that lead there."""

import torch


def gemm_f32(c, a, b):
    torch.mm(a, b, out=c)


def gemm_f64(c, a, b):
    torch.mm(a, b, out=c)


def gemv(y, a, x):
    torch.mv(a, x, out=y)


def mttkrp(y, x, b, c):
    """A product of matrices, then a sum."""
    torch.sum((x @ c) * b, dim=1, out=y)


def contraction(c, a, b):
    """The library permutes."""
    return torch.einsum("eifk,jfle->ijkl", a, b)


def syrk(c, a):
    """All of the product, then zeros above."""
    torch.tril(torch.mm(a, a.T), out=c)
