"""With JAX: additions at subscripts."""

import jax.numpy as jnp


def histogram(ids):
    return jnp.bincount(ids, length=256)


def gather(table, ids):
    return table[ids]


def scatter_add(values, ids, rows):
    return jnp.zeros((rows, values.shape[1]), values.dtype).at[ids].add(values)
