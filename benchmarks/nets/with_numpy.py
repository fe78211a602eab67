"""With NumPy: products of matrices over windows, and passes over whole arrays."""

import numpy as np


def conv_nhwc(y, x, w):
    """Nine products, summed."""
    rows, columns = y.shape[1:3]
    y[...] = 0
    for r in range(3):
        for q in range(3):
            y += x[:, r : r + rows, q : q + columns] @ w[r, q]


def conv_nhwc_bias_relu(y, x, w, bias):
    """Nine products, summed, and two passes."""
    conv_nhwc(y, x, w)
    y += bias
    np.maximum(y, 0, out=y)


def conv_nchw(y, x, w):
    """Windows laid out as a matrix, then one product for each image."""
    n, o, rows, columns = y.shape
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    flat = windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, -1, rows * columns)
    np.matmul(w.reshape(o, -1), flat, out=y.reshape(n, o, -1))


def conv_nchw_bias_relu(y, x, w, bias):
    """The same and two passes."""
    conv_nchw(y, x, w)
    y += bias[:, None, None]
    np.maximum(y, 0, out=y)


def max_pool(y, x):
    """Three passes over quarters."""
    np.maximum(x[:, ::2, ::2], x[:, 1::2, ::2], out=y)
    np.maximum(y, x[:, ::2, 1::2], out=y)
    np.maximum(y, x[:, 1::2, 1::2], out=y)


def mlp_step(v1, c1, v2, c2, x, target, w1, b1, w2, b2, rate):
    """Five products."""
    h = x @ w1
    h += b1
    np.maximum(h, 0, out=h)
    d = h @ w2
    d += b2
    d -= d.max(axis=1, keepdims=True)
    np.exp(d, out=d)
    d /= d.sum(axis=1, keepdims=True)
    d -= target
    d *= np.float32(rate / len(x))
    back = d @ w2.T
    back *= h > 0
    np.subtract(w1, np.matmul(x.T, back, out=v1), out=v1)
    np.subtract(b1, back.sum(axis=0), out=c1)
    np.subtract(w2, np.matmul(h.T, d, out=v2), out=v2)
    np.subtract(b2, d.sum(axis=0), out=c2)


def attention(y, q, k, v, scale):
    """Two products and a softmax in place."""
    s = q @ k.transpose(0, 1, 3, 2)
    s *= np.float32(scale)
    s -= s.max(axis=3, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(axis=3, keepdims=True)
    np.matmul(s, v, out=y)
