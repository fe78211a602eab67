"""With NumPy: its BLAS, and the permutations that lead there."""

import numpy as np


def gemm_f32(c, a, b):
    np.matmul(a, b, out=c)


def gemm_f64(c, a, b):
    np.matmul(a, b, out=c)


def gemv(y, a, x):
    np.matmul(a, x, out=y)


def mttkrp(y, x, b, c):
    """A product of matrices, then a sum."""
    np.einsum("ijr,jr->ir", x @ c, b, out=y)


def contraction(c, a, b):
    """Permute, multiply, permute."""
    c[...] = np.tensordot(a, b, axes=((0, 2), (3, 1))).transpose(0, 2, 1, 3)


def syrk(c, a):
    """A matrix times its transpose is known to the library; the other half is cleared."""
    np.copyto(c, np.tril(a @ a.T))


def carried(m, a):
    """A product at a time."""
    left = np.eye(3)
    for one in a:
        left = left @ one
    m[:] = left
