"""With JAX: functions of arrays, compiled as a whole."""

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import erf


def saxpy(x, y, a):
    """One fused loop."""
    return a * x + y


def _cdf(d):
    return 0.5 + 0.5 * erf(d * 0.7071067811865476)


def black_scholes(spot, strike, years, rate, sigma):
    """One fused loop."""
    spread = sigma * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    later = strike * jnp.exp(-rate * years)
    call = spot * _cdf(d1) - later * _cdf(d1 - spread)
    return call, call - spot + later


def _start(x, y):
    real, imaginary = jnp.broadcast_arrays(x[None, :], y[:, None])
    return real, imaginary, jnp.zeros(real.shape, jnp.int32)


def _round(re, im, count, real, imaginary):
    inside = re * re + im * im <= 4
    new = jnp.where(inside, re * re - im * im + real, re)
    return new, jnp.where(inside, 2 * re * im + imaginary, im), count + inside, inside


def mandelbrot(x, y, rounds):
    """All rounds at every point."""
    real, imaginary, count = _start(x, y)

    def body(_, state):
        return _round(*state, real, imaginary)[:3]

    return lax.fori_loop(0, rounds, body, (real, imaginary, count))[2]


def mandelbrot_exit(x, y, rounds):
    """Rounds until no point is inside any more: lanes cannot leave one by one."""
    real, imaginary, count = _start(x, y)

    def body(state):
        n, re, im, count, _ = state
        re, im, count, inside = _round(re, im, count, real, imaginary)
        return n + 1, re, im, count, jnp.any(inside)

    def more(state):
        return (state[0] < rounds) & state[4]

    return lax.while_loop(more, body, (0, real, imaginary, count, True))[3]
