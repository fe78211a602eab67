"""Neural network layers and small networks, forward and with an update."""

from __future__ import annotations

import numpy as np

from .kernel import Kernel, inputs


def relu(x):
    """The positive part."""
    return np.maximum(x, 0)


def softmax(x):
    """Stable softmax over the last axis."""
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def log_softmax_loss(logits, labels):
    """Mean cross entropy of integer labels."""
    top = logits.max(axis=1)
    total = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    picked = logits[np.arange(len(labels)), labels]
    return (total - picked).mean()


def conv2d(x, weights):
    """Valid convolution of images in NHWC order, window by window."""
    k = weights.shape[0]
    n, h, w = x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.empty((n, h, w, weights.shape[3]), dtype=x.dtype)
    for i in range(h):
        for j in range(w):
            out[:, i, j, :] = np.sum(
                x[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return out


def conv2d_bias(x, weights, bias):
    """Convolution plus a bias per channel."""
    return conv2d(x, weights) + bias


def conv2d_shifted(x, weights):
    """The same convolution as a sum over window cells of matrix products."""
    k = weights.shape[0]
    h, w = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((x.shape[0], h, w, weights.shape[3]), x.dtype)
    for r in range(k):
        for q in range(k):
            out += x[:, r : r + h, q : q + w, :] @ weights[r, q]
    return out


def mlp(x, w1, b1, w2, b2, w3, b3):
    """Three dense layers and a softmax."""
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def maxpool2x2(x):
    """Maximum over windows of two by two."""
    out = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]), dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def avgpool_reshape(x):
    """Mean over windows of two by two, through a reshape."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).mean(axis=(2, 4))


def lenet(image, conv1, bias1, conv2, bias2, dense, bias3):
    """Two convolutions with pooling, then a dense layer."""
    x = relu(conv2d(image, conv1) + bias1)
    x = maxpool2x2(x)
    x = relu(conv2d(x, conv2) + bias2)
    x = maxpool2x2(x)
    x = np.reshape(x, (x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]))
    return x @ dense + bias3


def batchnorm2d(x, eps=1e-5):
    """Normalise every position over the batch."""
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def resnet_block(image, conv1, conv2, conv3):
    """A bottleneck: 1x1, padded 3x3, 1x1, and the input added at the end."""
    n, h, w, _ = image.shape
    padded = np.zeros((n, h + 2, w + 2, conv1.shape[3]))
    padded[:, 1:-1, 1:-1, :] = conv2d(image, conv1)
    x = relu(batchnorm2d(padded))
    x = relu(batchnorm2d(conv2d(x, conv2)))
    x = conv2d(x, conv3)
    x = batchnorm2d(x)
    return relu(x + image)


def layer_norm(x, gamma, beta, eps=1e-5):
    """Normalise the last axis, in place."""
    x -= x.mean(axis=-1, keepdims=True)
    x /= np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)
    x *= gamma
    x += beta


def attention(x, wq, wk, wv, heads):
    """Causal self-attention over several heads."""
    steps, width = x.shape
    depth = width // heads
    q = (x @ wq).reshape(steps, heads, depth).transpose(1, 0, 2)
    k = (x @ wk).reshape(steps, heads, depth).transpose(1, 0, 2)
    v = (x @ wv).reshape(steps, heads, depth).transpose(1, 0, 2)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(depth)
    mask = np.triu(np.ones((steps, steps), dtype=bool), 1)
    scores = np.where(mask, -np.inf, scores)
    mixed = softmax(scores) @ v
    return mixed.transpose(1, 0, 2).reshape(steps, width)


def gru_cell(xs, h, wz, wr, wn):
    """A gated recurrent cell over a sequence; the hidden state is updated in place."""

    def gate(z):
        return 1.0 / (1.0 + np.exp(-z))

    for x in xs:
        both = np.concatenate((x, h), axis=1)
        z = gate(both @ wz)
        r = gate(both @ wr)
        new = np.tanh(np.hstack((x, r * h)) @ wn)
        h[:] = (1 - z) * h + z * new
    return h


def logistic_step(w, x, y, rate, steps):
    """Gradient descent for logistic regression; the losses come back."""
    losses = np.zeros(steps)
    for t in range(steps):
        p = 1 / (1 + np.exp(-(x @ w)))
        losses[t] = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
        w -= rate * (x.T @ (p - y)) / y.size
    return losses


def adam(p, g, m, v, t, rate=1e-3, b1=0.9, b2=0.999):
    """One step of Adam on flat arrays."""
    m[...] = b1 * m + (1 - b1) * g
    v[...] = b2 * v + (1 - b2) * g * g
    p -= rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)


def _f32(r, *shape):
    return (r.random(shape) - 0.5).astype(np.float32)


def _lenet(r, n, side, c1, c2, classes):
    flat = ((side - 2) // 2 - 2) // 2
    return (
        _f32(r, n, side, side, 1), _f32(r, 3, 3, 1, c1), _f32(r, c1), _f32(r, 3, 3, c1, c2),
        _f32(r, c2), _f32(r, flat * flat * c2, classes), _f32(r, classes),
    )  # fmt: skip


def _mlp(r, n, c, h, o):
    return (_f32(r, n, c), _f32(r, c, h), _f32(r, h), _f32(r, h, h), _f32(r, h), _f32(r, h, o),
            _f32(r, o))  # fmt: skip


KERNELS: tuple[Kernel, ...] = (
    Kernel("softmax", softmax, inputs(lambda r, n, h, m: (_f32(r, n, h, m, m),),
                                      (2, 3, 5), (4, 4, 40)), rtol=1e-5),
    Kernel("log_softmax_loss", log_softmax_loss, inputs(
        lambda r, n, c: (r.random((n, c)), r.integers(0, c, n)), (6, 5), (200, 40))),
    Kernel("conv2d", conv2d, inputs(
        lambda r, n, s, k, c, o: (_f32(r, n, s, s, c), _f32(r, k, k, c, o)),
        (2, 5, 3, 2, 3), (2, 14, 3, 6, 8)), rtol=1e-4),
    Kernel("conv2d_bias", conv2d_bias, inputs(
        lambda r, n, s, k, c, o: (r.random((n, s, s, c)), r.random((k, k, c, o)), r.random(o)),
        (2, 5, 2, 2, 3), (2, 14, 5, 6, 8))),
    Kernel("conv2d_shifted", conv2d_shifted, inputs(
        lambda r, n, s, k, c, o: (r.random((n, s, s, c)), r.random((k, k, c, o))),
        (2, 5, 3, 2, 3), (2, 18, 3, 8, 8))),
    Kernel("mlp", mlp, inputs(_mlp, (3, 4, 6, 5), (16, 40, 60, 10)), rtol=1e-4),
    Kernel("maxpool2x2", maxpool2x2, inputs(lambda r, n, h, c: (_f32(r, n, h, h, c),),
                                            (2, 6, 3), (2, 24, 8))),
    Kernel("avgpool_reshape", avgpool_reshape, inputs(lambda r, n, h, c: (r.random((n, h, h, c)),),
                                                      (2, 6, 3), (2, 24, 8))),
    Kernel("lenet", lenet, inputs(_lenet, (1, 10, 2, 2, 4), (3, 18, 4, 8, 10)), rtol=1e-4),
    Kernel("batchnorm2d", batchnorm2d, inputs(lambda r, n, h, c: (r.random((n, h, h, c)),),
                                              (4, 3, 2), (8, 14, 8))),
    Kernel("resnet_block", resnet_block, inputs(
        lambda r, n, h, c, d: (r.random((n, h, h, c)), r.random((1, 1, c, d)),
                               r.random((3, 3, d, d)), r.random((1, 1, d, c))),
        (3, 4, 3, 2), (4, 12, 8, 6)), rtol=1e-7),
    Kernel("layer_norm", layer_norm, inputs(
        lambda r, n, m: (r.random((n, m)), r.random(m), r.random(m)), (4, 6), (60, 80)), (0,)),
    Kernel("attention", attention, inputs(
        lambda r, n, c, h: (r.random((n, c)), *(r.random((3, c, c)) / c), h),
        (5, 4, 2), (40, 32, 4))),
    Kernel("gru_cell", gru_cell, inputs(
        lambda r, t, n, c, h: (r.random((t, n, c)), np.zeros((n, h)),
                               *(r.random((3, c + h, h)) - 0.5)),
        (3, 2, 3, 4), (10, 8, 12, 16)), (1,)),
    Kernel("logistic_step", logistic_step, inputs(
        lambda r, n, c, t: (np.zeros(c), r.standard_normal((n, c)),
                            (r.random(n) > 0.5).astype(np.float64), 0.1, t),
        (8, 3, 4), (300, 12, 10)), (0,)),
    Kernel("adam", adam, inputs(lambda r, n: (*r.random((4, n)), 3), (11,), (3000,),
                                {"rate": 0.01}), (0, 2, 3)),
)  # fmt: skip
