"""In the language of docs/language.md."""

import numpy as np

from plusequals import cd


@cd
def saxpy(z, x, y, a):
    z[i] = a * x[i] + y[i]


@cd
def black_scholes(call, put, spot, strike, years, rate, sigma):
    """Nine statements that become one loop."""
    spread[i] = sigma * sqrt(years[i])
    d1[i] = (log(spot[i] / strike[i]) + (rate + 0.5 * sigma * sigma) * years[i]) / spread[i]
    n1[i] = 0.5 + 0.5 * erf(d1[i] * 0.7071067811865476)
    n2[i] = 0.5 + 0.5 * erf((d1[i] - spread[i]) * 0.7071067811865476)
    later[i] = strike[i] * exp(-rate * years[i])
    call[i] = spot[i] * n1[i] - later[i] * n2[i]
    put[i] = call[i] - spot[i] + later[i]


@cd
def mandelbrot(count, x, y, rounds):
    """All rounds at every point; what has left runs off to infinity and stays outside."""
    re = np.broadcast_to(x, count.shape).copy()
    im = np.broadcast_to(y[:, np.newaxis], count.shape).copy()
    count[:] = 0
    for _ in range(rounds):
        count[i, j] += re[i, j] * re[i, j] + im[i, j] * im[i, j] <= 4
        new[i, j] = re[i, j] * re[i, j] - im[i, j] * im[i, j] + x[j]
        im[i, j] = 2 * re[i, j] * im[i, j] + y[i]
        re[i, j] = new[i, j]


@cd
def mandelbrot_exit(count, x, y, rounds):
    """A loop for each point, left as soon as the point has left."""
    for r in range(len(y)):
        for c in range(len(x)):
            u = x[c]
            v = y[r]
            n = 0
            while n < rounds and u * u + v * v <= 4:
                u, v = u * u - v * v + x[c], 2 * u * v + y[r]
                n += 1
            count[r, c] = n
