"""With PyTorch: sums of slices in place; compiled, one step that is called again and again.

Where a gradient is taken each step makes a new tensor.
"""

from functools import cache

import torch


@cache
def _compiled(step):
    return torch.compile(step, dynamic=False, fullgraph=True)


@cache
def _new(step):
    """Return a step that returns what `step` writes into a copy."""

    def new(u):
        v = u.clone()
        step(v, u)
        return v

    return new


def _swapping(out, a, steps, step):
    u, v = out, a.clone()
    u.copy_(a)
    for _ in range(steps):
        step(v, u)
        u, v = v, u
    if u is not out:
        out.copy_(u)


def _repeated(a, steps, step):
    for _ in range(steps):
        a = step(a)
    return a


def jacobi_1d(out, a, steps):
    """Three passes a step."""

    def step(v, u):
        inner = v[1:-1]
        torch.add(u[:-2], u[2:], out=inner)
        inner += u[1:-1]
        inner *= 1 / 3

    _swapping(out, a, steps, step)


def _jacobi_1d_step(v, u):
    v[1:-1] = (1 / 3) * (u[:-2] + u[1:-1] + u[2:])


def stepped_jacobi_1d(out, a, steps):
    """The compiled step."""
    _swapping(out, a, steps, _compiled(_jacobi_1d_step))


def differentiable_jacobi_1d(out, a, steps):
    """A new tensor a step."""
    return _repeated(a, steps, _new(_jacobi_1d_step))


def stepped_differentiable_jacobi_1d(out, a, steps):
    """The compiled step."""
    return _repeated(a, steps, _compiled(_new(_jacobi_1d_step)))


def jacobi_2d(out, a, steps):
    """Five passes a step."""

    def step(v, u):
        inner = v[1:-1, 1:-1]
        torch.add(u[:-2, 1:-1], u[2:, 1:-1], out=inner)
        inner += u[1:-1, :-2]
        inner += u[1:-1, 2:]
        inner += u[1:-1, 1:-1]
        inner *= 0.2

    _swapping(out, a, steps, step)


def _jacobi_2d_step(v, u):
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    v[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + around)


def stepped_jacobi_2d(out, a, steps):
    """The compiled step."""
    _swapping(out, a, steps, _compiled(_jacobi_2d_step))


def differentiable_jacobi_2d(out, a, steps):
    """A new tensor a step."""
    return _repeated(a, steps, _new(_jacobi_2d_step))


def stepped_differentiable_jacobi_2d(out, a, steps):
    """The compiled step."""
    return _repeated(a, steps, _compiled(_new(_jacobi_2d_step)))


def heat_3d(out, a, steps):
    """Seven passes a step."""

    def step(v, u):
        inner, c = v[1:-1, 1:-1, 1:-1], u[1:-1, 1:-1, 1:-1]
        torch.add(u[:-2, 1:-1, 1:-1], u[2:, 1:-1, 1:-1], out=inner)
        inner += u[1:-1, :-2, 1:-1]
        inner += u[1:-1, 2:, 1:-1]
        inner += u[1:-1, 1:-1, :-2]
        inner += u[1:-1, 1:-1, 2:]
        inner *= 0.125
        inner.add_(c, alpha=0.25)

    _swapping(out, a, steps, step)


def _heat_3d_step(v, u):
    c = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    v[1:-1, 1:-1, 1:-1] = c + 0.125 * (around - 6 * c)


def stepped_heat_3d(out, a, steps):
    """The compiled step."""
    _swapping(out, a, steps, _compiled(_heat_3d_step))


def differentiable_heat_3d(out, a, steps):
    """A new tensor a step."""
    return _repeated(a, steps, _new(_heat_3d_step))


def stepped_differentiable_heat_3d(out, a, steps):
    """The compiled step."""
    return _repeated(a, steps, _compiled(_new(_heat_3d_step)))
