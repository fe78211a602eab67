"""With Numba: loops, and BLAS for what are products of matrices."""

import math

import numpy as np
from numba import prange
from numba.extending import register_jitable


@register_jitable
def _row_nhwc(total, x, w, n, h, v):
    """Add the window at one pixel, all channels out at once."""
    for r in range(3):
        for q in range(3):
            for c in range(x.shape[3]):
                value = x[n, h + r, v + q, c]
                for o in range(w.shape[3]):
                    total[o] += value * w[r, q, c, o]


def conv_nhwc(y, x, w):
    """All channels out of a pixel together."""
    images, rows, columns, outs = y.shape
    for row in prange(images * rows):
        n, h = row // rows, row % rows
        total = np.empty(outs, np.float32)
        for v in range(columns):
            total[:] = 0
            _row_nhwc(total, x, w, n, h, v)
            y[n, h, v, :] = total


def conv_nhwc_bias_relu(y, x, w, bias):
    """All channels out of a pixel together, finished where they are."""
    images, rows, columns, outs = y.shape
    for row in prange(images * rows):
        n, h = row // rows, row % rows
        total = np.empty(outs, np.float32)
        for v in range(columns):
            total[:] = bias
            _row_nhwc(total, x, w, n, h, v)
            for o in range(outs):
                y[n, h, v, o] = max(total[o], np.float32(0))


@register_jitable
def _row_nchw(total, x, w, n, o, h):
    """Add the windows of one row of pixels, all columns at once."""
    for c in range(x.shape[1]):
        for r in range(3):
            for q in range(3):
                value = w[o, c, r, q]
                for v in range(total.size):
                    total[v] += value * x[n, c, h + r, v + q]


def conv_nchw(y, x, w):
    """All columns of a row together."""
    images, outs, rows, columns = y.shape
    for plane in prange(images * outs):
        n, o = plane // outs, plane % outs
        total = np.empty(columns, np.float32)
        for h in range(rows):
            total[:] = 0
            _row_nchw(total, x, w, n, o, h)
            y[n, o, h, :] = total


def conv_nchw_bias_relu(y, x, w, bias):
    """All columns of a row together, finished where they are."""
    images, outs, rows, columns = y.shape
    for plane in prange(images * outs):
        n, o = plane // outs, plane % outs
        total = np.empty(columns, np.float32)
        for h in range(rows):
            total[:] = bias[o]
            _row_nchw(total, x, w, n, o, h)
            for v in range(columns):
                y[n, o, h, v] = max(total[v], np.float32(0))


def max_pool(y, x):
    """One loop nest."""
    images, rows, columns, channels = y.shape
    for row in prange(images * rows):
        n, h = row // rows, row % rows
        for v in range(columns):
            for c in range(channels):
                above = max(x[n, 2 * h, 2 * v, c], x[n, 2 * h, 2 * v + 1, c])
                below = max(x[n, 2 * h + 1, 2 * v, c], x[n, 2 * h + 1, 2 * v + 1, c])
                y[n, h, v, c] = max(above, below)


def mlp_step(v1, c1, v2, c2, x, target, w1, b1, w2, b2, rate):
    """Five products of BLAS, loops between them."""
    h = np.maximum(np.dot(x, w1) + b1, np.float32(0))
    z = np.dot(h, w2) + b2
    d = np.empty_like(z)
    scale = np.float32(rate / x.shape[0])
    for n in range(z.shape[0]):
        top = z[n].max()
        total = np.float32(0)
        for o in range(z.shape[1]):
            d[n, o] = math.exp(z[n, o] - top)
            total += d[n, o]
        for o in range(z.shape[1]):
            d[n, o] = (d[n, o] / total - target[n, o]) * scale
    back = np.dot(d, w2.T)
    for n in prange(h.shape[0]):
        for i in range(h.shape[1]):
            back[n, i] = back[n, i] if h[n, i] > 0 else np.float32(0)
    v1[:] = w1 - np.dot(x.T, back)
    c1[:] = b1 - back.sum(axis=0)
    v2[:] = w2 - np.dot(h.T, d)
    c2[:] = b2 - d.sum(axis=0)


def attention(y, q, k, v, scale):
    """Heads side by side: two products of BLAS and a softmax in place."""
    batches, heads, tokens, _ = q.shape
    for head in prange(batches * heads):
        b, h = head // heads, head % heads
        s = np.dot(q[b, h], k[b, h].T)
        for i in range(tokens):
            top = s[i].max() * np.float32(scale)
            total = np.float32(0)
            for j in range(tokens):
                s[i, j] = math.exp(s[i, j] * np.float32(scale) - top)
                total += s[i, j]
            for j in range(tokens):
                s[i, j] /= total
        y[b, h] = np.dot(s, v[b, h])
