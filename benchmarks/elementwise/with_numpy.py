"""With NumPy: whole arrays, and no more temporaries than needed."""

import numpy as np


def saxpy(z, x, y, a):
    """Two passes."""
    np.multiply(x, a, out=z)
    z += y


def _cdf(d):
    """The normal distribution to 1e-7, after Abramowitz and Stegun 26.2.17: there is no erf."""
    k = 1 / (1 + 0.2316419 * np.abs(d))
    poly = 1.330274429 * k
    for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        poly += term
        poly *= k
    tail = 0.3989422804014327 * np.exp(-0.5 * d * d) * poly
    return np.where(d > 0, 1 - tail, tail)


def black_scholes(call, put, spot, strike, years, rate, sigma):
    """About forty passes."""
    spread = sigma * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    later = strike * np.exp(-rate * years)
    np.subtract(spot * _cdf(d1), later * _cdf(d1 - spread), out=call)
    np.subtract(call, spot, out=put)
    put += later


def mandelbrot(count, x, y, rounds):
    """All rounds at every point; what has left runs off to infinity and stays outside."""
    re, im = (part.copy() for part in np.broadcast_arrays(x, y[:, None]))
    count[...] = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(rounds):
            re2, im2 = re * re, im * im
            count += re2 + im2 <= 4
            im *= re
            im *= 2
            im += y[:, None]
            np.subtract(re2, im2, out=re)
            re += x


def mandelbrot_exit(count, x, y, rounds):
    """Points that have left are taken out after each round."""
    c = (x[None, :] + 1j * y[:, None]).ravel()
    z, where, flat = c, np.arange(c.size), count.reshape(-1)
    flat[:] = 0
    for _ in range(rounds):
        inside = z.real * z.real + z.imag * z.imag <= 4
        z, c, where = z[inside], c[inside], where[inside]
        flat[where] += 1
        z = z * z + c
