"""With JAX: functions of arrays, compiled as a whole."""

import jax
import jax.numpy as jnp
from jax import lax


def softmax(x):
    return jax.nn.softmax(x, axis=1)


def layer_norm(x, gain, shift, epsilon):
    """Mean and variance of each row, then one fused loop."""
    middle = jnp.mean(x, axis=1, keepdims=True)
    variance = jnp.mean(jnp.square(x - middle), axis=1, keepdims=True)
    return (x - middle) * lax.rsqrt(variance + epsilon) * gain + shift
