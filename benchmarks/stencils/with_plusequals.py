"""In the language of docs/language.md: the notation of arrays, and names that change places."""

from plusequals import cd


@cd
def jacobi_1d(out, a, steps):
    """Two buffers; the swap copies nothing."""
    u = a.copy()
    v = a.copy()
    for _ in range(steps):
        v[1:-1] = (1 / 3) * (u[:-2] + u[1:-1] + u[2:])
        u, v = v, u
    out[:] = u


@cd
def jacobi_2d(out, a, steps):
    """Two buffers; the swap copies nothing."""
    u = a.copy()
    v = a.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.2 * (
            u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        )
        u, v = v, u
    out[:] = u


@cd
def heat_3d(out, a, steps):
    """Two buffers; the swap copies nothing."""
    u = a.copy()
    v = a.copy()
    for _ in range(steps):
        c = u[1:-1, 1:-1, 1:-1]
        v[1:-1, 1:-1, 1:-1] = c + 0.125 * (
            u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * c
        )  # fmt: skip
        u, v = v, u
    out[:] = u
