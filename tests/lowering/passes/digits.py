"""A network of two layers with its gradients written out: programs for the passes.

Forward, loss, backward and update of a batch are one function, so that there is much to join and
to keep, and what that is depends on no rule of a derivative. They are read by the compiler, never
run by Python.
"""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals import cd
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.lower import lower


@cd
def forward(x, w1, b1, w2, b2):
    r[n, j] = max(sum(x[n, i] * w1[i, j]) + b1[j], 0)
    z[n, c] = sum(r[n, j] * w2[j, c]) + b2[c]
    return r, z


@cd
def descend(p, rate, momentum, decay):
    p.vel = momentum * p.vel + p.grad + decay * p.value
    p.value -= rate * p.vel


@cd
def train(w1, b1, w2, b2, x, y, rate, momentum, decay):
    with comment("forward"):
        r, z = forward(x, w1, b1, w2, b2)
    with comment("softmax cross-entropy"):
        top[n] = max(z[n, c])
        e[n, c] = exp(z[n, c] - top[n])
        total[n] = sum(e[n, c])
        loss[n] = log(total[n]) + top[n] - z[n, y[n]]
    with comment("backward"):
        d[n, c] = (e[n, c] / total[n] - where(c == y[n], 1.0, 0.0)) / x.shape[0]
        w2.grad[j, c] = sum(r[n, j] * d[n, c])
        b2.grad[c] = sum(d[n, c])
        g[n, j] = where(r[n, j] > 0, sum(d[n, c] * w2[j, c]), 0.0)
        w1.grad[i, j] = sum(x[n, i] * g[n, j])
        b1.grad[j] = sum(g[n, j])
    with comment("gradient descent"):
        descend(w1, rate, momentum, decay)
        descend(b1, rate, momentum, 0.0)
        descend(w2, rate, momentum, decay)
        descend(b2, rate, momentum, 0.0)
    return loss.mean()


def digits() -> Program:
    """A step of training: 64 inputs, 96 hidden units, ten classes, 32 examples."""
    sizes = {"w1": (64, 96), "b1": (96,), "w2": (96, 10), "b2": (10,)}
    tensors = [pe.tensor(n, s, dtype="float32", fields=("vel",)) for n, s in sizes.items()]
    x, y = np.zeros((32, 64), np.float32), np.zeros(32, np.int64)
    return lower(train.procedure(*tensors, x, y, 0.1, 0.9, 1e-4))
