"""With Numba: loops. The peer compiles them, with threads where a cell is not a small one."""

import math

import numpy as np
from numba import prange


def softmax(y, x):
    """Three short loops over each row."""
    rows, columns = x.shape
    for i in prange(rows):
        top = x[i, 0]
        for j in range(columns):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(columns):
            y[i, j] = math.exp(x[i, j] - top)
            total += y[i, j]
        scale = np.float32(1) / total
        for j in range(columns):
            y[i, j] *= scale


def layer_norm(y, x, gain, shift, epsilon):
    """Three short loops over each row."""
    rows, columns = x.shape
    for i in prange(rows):
        total = np.float32(0)
        for j in range(columns):
            total += x[i, j]
        middle = total / np.float32(columns)
        squares = np.float32(0)
        for j in range(columns):
            squares += (x[i, j] - middle) * (x[i, j] - middle)
        variance = squares / np.float32(columns)
        scale = np.float32(1) / math.sqrt(variance + np.float32(epsilon))
        for j in range(columns):
            y[i, j] = (x[i, j] - middle) * scale * gain[j] + shift[j]
