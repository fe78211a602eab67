"""Particles, flows and spectra: simulations as people write them with NumPy."""

from __future__ import annotations

import numpy as np

from .kernel import Kernel, inputs


def _accelerations(pos, mass, gravity, softening):
    dx = pos[np.newaxis, :, :] - pos[:, None, :]
    inv = (dx**2).sum(axis=2) + softening**2
    inv[inv > 0] = inv[inv > 0] ** (-1.5)
    return gravity * np.einsum("ijk,ij,j->ik", dx, inv, mass)


def _energies(pos, vel, mass, gravity):
    kinetic = 0.5 * np.sum(np.sum(mass[:, None] * vel**2))
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    r = np.sqrt((x.T - x) ** 2 + (y.T - y) ** 2 + (z.T - z) ** 2)
    inv = np.where(r > 0, 1.0 / np.where(r > 0, r, 1.0), 0.0)
    potential = gravity * np.sum(np.triu(-(mass[:, None] * mass) * inv, 1))
    return kinetic, potential


def nbody(mass, pos, vel, steps, dt, gravity, softening):
    """Leapfrog integration; the energies of every step come back."""
    vel -= np.mean(mass[:, None] * vel, axis=0) / np.mean(mass)
    acc = _accelerations(pos, mass, gravity, softening)
    kinetic = np.zeros(steps + 1)
    potential = np.zeros(steps + 1)
    kinetic[0], potential[0] = _energies(pos, vel, mass, gravity)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = _accelerations(pos, mass, gravity, softening)
        vel += acc * dt / 2.0
        kinetic[i + 1], potential[i + 1] = _energies(pos, vel, mass, gravity)
    return kinetic, potential


def mandelbrot_masked(xmin, xmax, ymin, ymax, width, height, limit, horizon):
    """Escape counts with masked updates of a complex plane."""
    x = np.linspace(xmin, xmax, width)
    y = np.linspace(ymin, ymax, height)
    c = x + y[:, None] * 1j
    count = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for it in range(limit):
        alive = np.less(np.abs(z), horizon)
        count[alive] = it
        z[alive] = z[alive] ** 2 + c[alive]
    count[count == limit - 1] = 0
    return z, count


def mandelbrot_scalar(xs, ys, limit):
    """Escape counts point by point, leaving the loop early."""
    out = np.zeros((ys.shape[0], xs.shape[0]), dtype=np.int32)
    for i in range(ys.shape[0]):
        for j in range(xs.shape[0]):
            re = im = 0.0
            steps = 0
            for _ in range(limit):
                re2 = re * re
                im2 = im * im
                if re2 + im2 > 4.0:
                    break
                im = 2.0 * re * im + ys[i]
                re = re2 - im2 + xs[j]
                steps += 1
            out[i, j] = steps
    return out


def mandelbrot_while(xs, ys, limit):
    """Escape counts with a complex scalar and a while loop."""
    out = np.zeros((len(ys), len(xs)), dtype=np.int64)
    for i, y in enumerate(ys):
        for j, x in enumerate(xs):
            c = complex(x, y)
            z = 0j
            n = 0
            while n < limit and abs(z) <= 2.0:
                z = z * z + c
                n += 1
            out[i, j] = n
    return out


def stockham_fft(x, levels):
    """Radix-2 Fourier transform that sorts itself: two buffers swap at every level."""
    n = x.shape[0]
    a = x.astype(np.complex128)
    b = np.empty_like(a)
    for level in range(levels):
        m = 2**level
        half = n // (2 * m)
        src = a.reshape(2, half, m)
        dst = b.reshape(half, 2, m)
        twiddle = np.exp(-1j * np.pi * np.arange(half) / half)
        dst[:, 0, :] = src[0] + src[1]
        dst[:, 1, :] = (src[0] - src[1]) * twiddle[:, None]
        a, b = b, a
    return a


def hdiff(field, coeff):
    """Horizontal diffusion with flux limiters, on a field with a halo of two."""
    lap = 4.0 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )
    flx = lap[1:, 1:-1, :] - lap[:-1, 1:-1, :]
    step = field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]
    flx = np.where(flx * step > 0, 0.0, flx)
    fly = lap[1:-1, 1:, :] - lap[1:-1, :-1, :]
    step = field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]
    fly = np.where(fly * step > 0, 0.0, fly)
    return field[2:-2, 2:-2, :] - coeff * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])


def vadv(stage, wcon, pos, tens, dtr, bet_m, bet_p):
    """Vertical advection: a tridiagonal solve per column, down and up again."""
    ni, nj, nk = stage.shape
    ccol = np.empty((ni, nj, nk), dtype=stage.dtype)
    dcol = np.empty_like(ccol)
    acol = np.zeros((ni, nj), dtype=stage.dtype)
    flow = 0.25 * (wcon[1:] + wcon[:-1])
    for k in range(nk):
        diag = np.full((ni, nj), dtr)
        rhs = dtr * pos[:, :, k] + tens[:, :, k]
        if k > 0:
            up = -flow[:, :, k]
            acol = up * bet_p
            rhs -= up * bet_m * (stage[:, :, k - 1] - stage[:, :, k])
            diag -= acol
        if k < nk - 1:
            down = flow[:, :, k + 1]
            ccol[:, :, k] = down * bet_p
            rhs -= down * bet_m * (stage[:, :, k + 1] - stage[:, :, k])
            diag -= ccol[:, :, k]
        else:
            ccol[:, :, k] = 0.0
        if k > 0:
            diag -= ccol[:, :, k - 1] * acol
            rhs -= dcol[:, :, k - 1] * acol
        ccol[:, :, k] /= diag
        dcol[:, :, k] = rhs / diag
    data = dcol[:, :, nk - 1]
    for k in range(nk - 2, -1, -1):
        tens[:, :, k + 1] = dtr * (data - pos[:, :, k + 1])
        data = dcol[:, :, k] - ccol[:, :, k] * data
    tens[:, :, 0] = dtr * (data - pos[:, :, 0])


def _pressure(p, source, dx, dy, sweeps):
    for _ in range(sweeps):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - source[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def _divergence(u, v, rho, dt, dx, dy):
    du = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dv = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    cross = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    return rho * ((du + dv) / dt - du**2 - 2 * cross - dv**2)


def _transported(w, u, v, dt, dx, dy, nu):
    here = w[1:-1, 1:-1]
    moved = u[1:-1, 1:-1] * dt / dx * (here - w[1:-1, :-2])
    moved += v[1:-1, 1:-1] * dt / dy * (here - w[:-2, 1:-1])
    spread = nu * dt / dx**2 * (w[1:-1, 2:] - 2 * here + w[1:-1, :-2])
    spread += nu * dt / dy**2 * (w[2:, 1:-1] - 2 * here + w[:-2, 1:-1])
    return here - moved + spread


def cavity_flow(steps, sweeps, u, v, p, dt, dx, dy, rho, nu):
    """Flow in a box under a moving lid."""
    b = np.zeros_like(p)
    scale = dx**2 * dy**2 / (2 * (dx**2 + dy**2))
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        b[1:-1, 1:-1] = scale * _divergence(u, v, rho, dt, dx, dy)
        _pressure(p, b, dx, dy, sweeps)
        u[1:-1, 1:-1] = _transported(un, un, vn, dt, dx, dy, nu)
        u[1:-1, 1:-1] -= dt / (2 * rho) * (p[1:-1, 2:] - p[1:-1, :-2]) / dx
        v[1:-1, 1:-1] = _transported(vn, un, vn, dt, dx, dy, nu)
        v[1:-1, 1:-1] -= dt / (2 * rho) * (p[2:, 1:-1] - p[:-2, 1:-1]) / dy
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0


def channel_flow(limit, u, dt, dx, dy, nu, force, tolerance):
    """Flow between plates, periodic along x, until it hardly changes."""
    change = 1.0
    steps = 0
    while change > tolerance and steps < limit:
        un = u.copy()
        west = np.roll(un, 1, axis=1)[1:-1]
        east = np.roll(un, -1, axis=1)[1:-1]
        here = un[1:-1]
        u[1:-1] = (
            here
            - here * dt / dx * (here - west)
            + nu * dt * ((east - 2 * here + west) / dx**2 + (un[2:] - 2 * here + un[:-2]) / dy**2)
            + force * dt
        )
        u[0, :] = 0
        u[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return steps, change


def contour_integral(hams, points, weights, right):
    """Moments of a resolvent: a complex solve at every point of a contour."""
    n = right.shape[0]
    p0 = np.zeros((n, right.shape[1]), dtype=np.complex128)
    p1 = np.zeros_like(p0)
    for z, w in zip(points, weights):
        tz = np.zeros((n, n), dtype=np.complex128)
        for k in range(hams.shape[0]):
            tz += z ** (k - 1) * hams[k]
        x = np.linalg.solve(tz, right)
        x = -x if np.abs(z) < 1.0 else x
        p0 += w * x
        p1 += w * z * x
    return p0, p1


def scattering_self_energies(neighbours, dham, green, phonon, sigma):
    """Seven nested loops around small complex products, with gathered neighbours."""
    nkz, ne, na = green.shape[0], green.shape[1], green.shape[2]
    nqz, nw = phonon.shape[0], phonon.shape[1]
    for k in range(nkz):
        for e in range(ne):
            for q in range(nqz):
                for w in range(nw):
                    if e - w >= 0:
                        for a in range(na):
                            for b in range(neighbours.shape[1]):
                                other = green[(k - q) % nkz, e - w, neighbours[a, b]]
                                for i in range(dham.shape[2]):
                                    left = other @ dham[a, b, i]
                                    for j in range(dham.shape[2]):
                                        right = dham[a, b, j] * phonon[q, w, a, b, i, j]
                                        sigma[k, e, a] += left @ right


def _complex(r, *shape):
    return r.random(shape) + 1j * r.random(shape)


def _energy(r, nk, ne, nq, nw, na, nb, nd, no):
    return (
        r.integers(0, na, (na, nb)),
        _complex(r, na, nb, nd, no, no),
        _complex(r, nk, ne, na, no, no),
        _complex(r, nq, nw, na, nb, nd, nd),
        np.zeros((nk, ne, na, no, no), dtype=np.complex128),
    )


def _contour(r, n, cols, terms, count):
    hams = _complex(r, terms, n, n) + 3 * n * np.eye(n)
    points = 1.5 * np.exp(2j * np.pi * np.arange(count) / count)
    points[count // 2 :] /= 3.0
    return hams, points, _complex(r, count), _complex(r, n, cols)


def _fft(r, levels):
    return _complex(r, 2**levels), levels


KERNELS: tuple[Kernel, ...] = (
    Kernel("nbody", nbody, inputs(
        lambda r, n, steps: (20.0 * np.ones(n) / n, r.standard_normal((n, 3)),
                             r.standard_normal((n, 3)), steps, 0.01, 1.0, 0.1),
        (5, 3), (60, 10)), (1, 2), 1e-7),
    Kernel("mandelbrot_masked", mandelbrot_masked, inputs(
        lambda r, w, h, limit: (-1.75, 0.25, -1.0, 1.0, w, h, limit, 2.0),
        (7, 6, 6), (60, 50, 12)), rtol=1e-6),
    Kernel("mandelbrot_scalar", mandelbrot_scalar, inputs(
        lambda r, w, h, limit: (np.linspace(-1.7, 0.3, w), np.linspace(-1.1, 1.1, h), limit),
        (7, 6, 20), (40, 30, 40))),
    Kernel("mandelbrot_while", mandelbrot_while, inputs(
        lambda r, w, h, limit: (np.linspace(-1.7, 0.3, w), np.linspace(-1.1, 1.1, h), limit),
        (7, 6, 20), (40, 30, 40))),
    Kernel("stockham_fft", stockham_fft, inputs(_fft, (4,), (10,))),
    Kernel("hdiff", hdiff, inputs(
        lambda r, n, m, k: (r.random((n + 4, m + 4, k)), r.random((n, m, k))),
        (4, 5, 3), (30, 32, 10))),
    Kernel("vadv", vadv, inputs(
        lambda r, n, m, k: (r.random((n, m, k)), r.random((n + 1, m, k)), r.random((n, m, k)),
                            r.random((n, m, k)), 3.0 / 20.0 + 2.0, 0.5, 0.5),
        (4, 3, 5), (20, 22, 15)), (3,), 1e-8),
    Kernel("cavity_flow", cavity_flow, inputs(
        lambda r, n, steps, sweeps: (steps, sweeps, *np.zeros((3, n, n)), 0.001,
                                     2.0 / (n - 1), 2.0 / (n - 1), 1.0, 0.1),
        (7, 4, 3), (30, 5, 10)), (2, 3, 4), 1e-8),
    Kernel("channel_flow", channel_flow, inputs(
        lambda r, n, limit: (limit, np.zeros((n, n)), 0.01, 2.0 / (n - 1), 2.0 / (n - 1), 0.1,
                             1.0, 0.001), (7, 6), (30, 60)), (1,), 1e-8),
    Kernel("contour_integral", contour_integral, inputs(
        _contour, (4, 2, 3, 4), (24, 6, 3, 8)), rtol=1e-8),
    Kernel("scattering_self_energies", scattering_self_energies, inputs(
        _energy, (2, 2, 2, 2, 2, 2, 2, 2), (3, 4, 2, 3, 4, 3, 3, 3)), (4,)),
)  # fmt: skip
