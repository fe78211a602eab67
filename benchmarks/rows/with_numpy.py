"""With NumPy: in place where possible."""

import numpy as np


def softmax(y, x):
    """Four passes."""
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)
    np.exp(y, out=y)
    y /= y.sum(axis=1, keepdims=True)


def layer_norm(y, x, gain, shift, epsilon):
    """Six passes."""
    np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
    variance = np.einsum("ij,ij->i", y, y) / x.shape[1]
    y *= (1 / np.sqrt(variance + np.float32(epsilon)))[:, None]
    y *= gain
    y += shift
