"""With PyTorch: sums of slices in place; compiled, one step that is called again and again."""

import torch

compiled = torch.compile(dynamic=False, fullgraph=True)


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


@compiled
def _jacobi_1d(v, u):
    v[1:-1] = (1 / 3) * (u[:-2] + u[1:-1] + u[2:])


def stepped_jacobi_1d(out, a, steps):
    """The compiled step."""
    _swapping(out, a, steps, _jacobi_1d)


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


@compiled
def _jacobi_2d(v, u):
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    v[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + around)


def stepped_jacobi_2d(out, a, steps):
    """The compiled step."""
    _swapping(out, a, steps, _jacobi_2d)


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


@compiled
def _heat_3d(v, u):
    c = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    v[1:-1, 1:-1, 1:-1] = c + 0.125 * (around - 6 * c)


def stepped_heat_3d(out, a, steps):
    """The compiled step."""
    _swapping(out, a, steps, _heat_3d)
