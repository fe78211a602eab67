"""With PyTorch, eager and compiled: sums of slices, in place when eager."""

import torch


def _swapping(out, a, steps, step):
    u, v = out, a.clone()
    u.copy_(a)
    for _ in range(steps):
        step(v, u)
        u, v = v, u
    if u is not out:
        out.copy_(u)


def jacobi_1d(out, a, steps):
    """Three passes a step."""

    def step(v, u):
        inner = v[1:-1]
        torch.add(u[:-2], u[2:], out=inner)
        inner += u[1:-1]
        inner *= 1 / 3

    _swapping(out, a, steps, step)


def compiled_jacobi_1d(out, a, steps):
    """Slices, for the compiler to fuse; the loop is written out."""
    u, v = a.clone(), a.clone()
    for _ in range(steps):
        v[1:-1] = (1 / 3) * (u[:-2] + u[1:-1] + u[2:])
        u, v = v, u
    return u


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


def compiled_jacobi_2d(out, a, steps):
    """Slices, for the compiler to fuse; the loop is written out."""
    u, v = a.clone(), a.clone()
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        v[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + around)
        u, v = v, u
    return u


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


def compiled_heat_3d(out, a, steps):
    """Slices, for the compiler to fuse; the loop is written out."""
    u, v = a.clone(), a.clone()
    for _ in range(steps):
        c = u[1:-1, 1:-1, 1:-1]
        around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
        around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
        v[1:-1, 1:-1, 1:-1] = c + 0.125 * (around - 6 * c)
        u, v = v, u
    return u
