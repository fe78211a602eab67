"""With Numba: loops. The peer compiles them, with threads where a cell is not a small one."""

import math

import numpy as np
from numba import prange


def nbody(force, p, mass, soft):
    """Sums in registers."""
    soft = np.float32(soft)
    x, y, z = p[:, 0].copy(), p[:, 1].copy(), p[:, 2].copy()
    for i in prange(x.size):
        fx, fy, fz = np.float32(0), np.float32(0), np.float32(0)
        for j in range(x.size):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            r = soft + (dx * dx + dy * dy + dz * dz)
            w = mass[j] / (r * math.sqrt(r))
            fx += w * dx
            fy += w * dy
            fz += w * dz
        force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz


def pairwise(y, a, b):
    """The other set is turned first, so that the inner loop goes along memory."""
    turned = b.T.copy()
    for i in prange(a.shape[0]):
        row = np.zeros(b.shape[0], np.float32)
        for k in range(a.shape[1]):
            value = a[i, k]
            for j in range(row.size):
                row[j] += (value - turned[k, j]) * (value - turned[k, j])
        for j in range(row.size):
            y[i, j] = math.sqrt(row[j])
