"""With JAX: its products, in full precision by default on processors."""

import jax.numpy as jnp
from jax import lax


def gemm_f32(a, b):
    return a @ b


def gemm_f64(a, b):
    return a @ b


def gemv(a, x):
    return a @ x


def mttkrp(x, b, c):
    """A product of matrices, then a sum."""
    return jnp.sum((x @ c) * b, axis=1)


def contraction(a, b):
    """The library permutes."""
    return jnp.einsum("eifk,jfle->ijkl", a, b)


def syrk(a):
    """All of the product, then zeros above."""
    return jnp.tril(a @ a.T)


def carried(a):
    """A scan."""

    def step(m, one):
        return m @ one, None

    return lax.scan(step, jnp.eye(3, dtype=a.dtype), a)[0]
