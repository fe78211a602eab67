"""Layers of networks: convolution in both orders of axes, pooling, attention, a training step."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

RATE = 0.1
"""What gradients are multiplied by in a training step."""
IMAGES = three((1, 8, 4, 8), (1, 34, 32, 32), (8, 58, 64, 64))
"""How many images, their side, channels in, channels out."""


def _nhwc(random: np.random.Generator, n: int, side: int, c: int, o: int) -> Case:
    inputs = uniform(random, n, side, side, c), uniform(random, 3, 3, c, o)
    return Case(inputs, (Result((n, side - 2, side - 2, o)),))


def _nhwc_bias(random: np.random.Generator, n: int, side: int, c: int, o: int) -> Case:
    plain = _nhwc(random, n, side, c, o)
    return Case((*plain.inputs, uniform(random, o)), plain.results)


def _nchw(random: np.random.Generator, n: int, side: int, c: int, o: int) -> Case:
    inputs = uniform(random, n, c, side, side), uniform(random, o, c, 3, 3)
    return Case(inputs, (Result((n, o, side - 2, side - 2)),))


def _nchw_bias(random: np.random.Generator, n: int, side: int, c: int, o: int) -> Case:
    plain = _nchw(random, n, side, c, o)
    return Case((*plain.inputs, uniform(random, o)), plain.results)


def conv_nhwc(x: Array, w: Array) -> Array:
    """Return the 3x3 convolution without padding; channels last."""
    windows = sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.tensordot(windows, w, axes=((4, 5, 3), (0, 1, 2)))


def conv_nchw(x: Array, w: Array) -> Array:
    """Return the 3x3 convolution without padding; channels before rows and columns."""
    windows = sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.tensordot(windows, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def _conv_flops(n: int, side: int, c: int, o: int) -> float:
    return 2 * 9 * n * (side - 2) ** 2 * c * o


def _pool(random: np.random.Generator, n: int, side: int, c: int) -> Case:
    return Case((uniform(random, n, side, side, c),), (Result((n, side // 2, side // 2, c)),))


def max_pool(x: Array) -> Array:
    """Return the largest of each two by two."""
    n, side, _, c = x.shape
    found: Array = x.reshape(n, side // 2, 2, side // 2, 2, c).max(axis=(2, 4))
    return found


def _network(random: np.random.Generator, batch: int, ins: int, hidden: int, outs: int) -> Case:
    weights = (
        uniform(random, ins, hidden) * np.float32(ins**-0.5), uniform(random, hidden),
        uniform(random, hidden, outs) * np.float32(hidden**-0.5), uniform(random, outs),
    )  # fmt: skip
    target = np.zeros((batch, outs), np.float32)
    target[np.arange(batch), random.integers(0, outs, batch)] = 1
    inputs = uniform(random, batch, ins), target, *weights
    return Case(inputs, tuple(Result(w.shape) for w in weights), (RATE,))


def mlp_step(
    x: Array, target: Array, w1: Array, b1: Array, w2: Array, b2: Array, rate: float
) -> tuple[Array, ...]:
    """Return weights after one step of gradient descent on the cross entropy of a softmax."""
    h = np.maximum(x @ w1 + b1, 0)
    z = h @ w2 + b2
    e = np.exp(z - z.max(axis=1, keepdims=True))
    d = (e / e.sum(axis=1, keepdims=True) - target) / len(x)
    back = (d @ w2.T) * (h > 0)
    gradients = x.T @ back, back.sum(axis=0), h.T @ d, d.sum(axis=0)
    return tuple(w - rate * g for w, g in zip((w1, b1, w2, b2), gradients))


def _mlp_flops(batch: int, ins: int, hidden: int, outs: int) -> float:
    return 2 * batch * hidden * (2 * ins + 3 * outs)


def _heads(random: np.random.Generator, b: int, h: int, tokens: int, width: int) -> Case:
    shape = (b, h, tokens, width)
    q, k, v = (uniform(random, *shape) for _ in range(3))
    return Case((q, k, v), (Result(shape),), (width**-0.5,))


def attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return what each token takes of the others, for each head."""
    s = scale * (q @ k.transpose(0, 1, 3, 2))
    e = np.exp(s - s.max(axis=3, keepdims=True))
    found: Array = (e / e.sum(axis=3, keepdims=True)) @ v
    return found


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


WORKLOADS = (
    Workload("conv_nhwc", "nets", IMAGES, _nhwc, conv_nhwc, _conv_flops, Tolerance(1e-4)),
    Workload(
        "conv_nhwc_bias_relu", "nets", IMAGES, _nhwc_bias,
        lambda x, w, b: _relu(conv_nhwc(x, w) + b), _conv_flops, Tolerance(1e-4),
    ),
    Workload("conv_nchw", "nets", IMAGES, _nchw, conv_nchw, _conv_flops, Tolerance(1e-4)),
    Workload(
        "conv_nchw_bias_relu", "nets", IMAGES, _nchw_bias,
        lambda x, w, b: _relu(conv_nchw(x, w) + b[:, None, None]), _conv_flops, Tolerance(1e-4),
    ),
    Workload(
        "max_pool", "nets", three((1, 8, 8), (1, 64, 64), (32, 128, 64)), _pool, max_pool,
        lambda n, side, c: 3 * n * (side // 2) ** 2 * c, Tolerance(0.0),
    ),
    Workload(
        "mlp_step", "nets", three((4, 16, 8, 4), (128, 784, 256, 10), (512, 784, 1024, 10)),
        _network, mlp_step, _mlp_flops, Tolerance(1e-4), constants=(1,),
    ),
    Workload(
        "attention", "nets", three((1, 1, 16, 8), (4, 4, 256, 64), (4, 8, 512, 64)), _heads,
        attention, lambda b, h, t, w: (4 * w + 18) * b * h * t * t, Tolerance(1e-4),
    ),
)  # fmt: skip
