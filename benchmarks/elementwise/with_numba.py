"""With Numba: loops. The peer compiles them, with threads where a cell is not a small one."""

import math

import numpy as np
from numba import prange
from numba.extending import register_jitable


def saxpy(z, x, y, a):
    """One loop."""
    a = np.float32(a)
    for i in prange(x.size):
        z[i] = a * x[i] + y[i]


@register_jitable
def _cdf(d):
    return np.float32(0.5) + np.float32(0.5) * np.float32(math.erf(d * np.float32(0.70710678)))


def black_scholes(call, put, spot, strike, years, rate, sigma):
    """One loop."""
    rate, sigma = np.float32(rate), np.float32(sigma)
    drift = rate + np.float32(0.5) * sigma * sigma
    for i in prange(spot.size):
        spread = sigma * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / spread
        later = strike[i] * math.exp(-rate * years[i])
        price = spot[i] * _cdf(d1) - later * _cdf(d1 - spread)
        call[i] = price
        put[i] = price - spot[i] + later


def mandelbrot(count, x, y, rounds):
    """All rounds at every point."""
    for r in prange(y.size):
        for c in range(x.size):
            u, v, n = x[c], y[r], 0
            for _ in range(rounds):
                inside = u * u + v * v <= np.float32(4)
                n += inside
                new = u * u - v * v + x[c]
                v = np.float32(2) * u * v + y[r] if inside else v
                u = new if inside else u
            count[r, c] = n


def mandelbrot_exit(count, x, y, rounds):
    """A loop that is left as soon as the point has left."""
    for r in prange(y.size):
        for c in range(x.size):
            u, v, n = x[c], y[r], 0
            while n < rounds and u * u + v * v <= np.float32(4):
                u, v = u * u - v * v + x[c], np.float32(2) * u * v + y[r]
                n += 1
            count[r, c] = n
