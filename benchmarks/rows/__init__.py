"""Each row by itself: softmax and layer normalisation."""

from __future__ import annotations

import numpy as np

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

EPSILON = 1e-5
SIZES = three((8, 32), (256, 512), (8192, 2048))


def _softmax(random: np.random.Generator, rows: int, columns: int) -> Case:
    return Case((4 * uniform(random, rows, columns),), (Result((rows, columns)),))


def softmax(x: Array) -> Array:
    """Return the softmax of each row."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    found: Array = e / e.sum(axis=1, keepdims=True)
    return found


def _layer_norm(random: np.random.Generator, rows: int, columns: int) -> Case:
    inputs = uniform(random, rows, columns), uniform(random, columns), uniform(random, columns)
    return Case(inputs, (Result((rows, columns)),), (EPSILON,))


def layer_norm(x: Array, gain: Array, shift: Array, epsilon: float) -> Array:
    """Return each row with mean 0 and variance 1, scaled and shifted."""
    centred = x - x.mean(axis=1, keepdims=True)
    scale = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + epsilon)
    found: Array = centred / scale * gain + shift
    return found


WORKLOADS = (
    Workload("softmax", "rows", SIZES, _softmax, softmax, lambda n, m: 17 * n * m),
    Workload(
        "layer_norm", "rows", SIZES, _layer_norm, layer_norm, lambda n, m: 10 * n * m,
        Tolerance(1e-4),
    ),
)  # fmt: skip
