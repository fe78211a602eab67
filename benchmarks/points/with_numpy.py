"""With NumPy: all pairs at once, as far as memory allows."""

import numpy as np

CHUNK = 512


def nbody(force, p, mass, soft):
    """Some rows of the pairs at a time."""
    for first in range(0, len(p), CHUNK):
        some = slice(first, first + CHUNK)
        dx, dy, dz = (p[None, :, k] - p[some, None, k] for k in range(3))
        r = dx * dx
        r += dy * dy
        r += dz * dz
        r += np.float32(soft)
        r *= np.sqrt(r)
        np.divide(mass, r, out=r)
        for k, d in enumerate((dx, dy, dz)):
            np.einsum("ij,ij->i", d, r, out=force[some, k])


def pairwise(y, a, b):
    """A product of matrices and three passes."""
    np.matmul(a, b.T, out=y)
    y *= -2
    y += np.einsum("ik,ik->i", a, a)[:, None]
    y += np.einsum("jk,jk->j", b, b)
    np.maximum(y, 0, out=y)
    np.sqrt(y, out=y)
