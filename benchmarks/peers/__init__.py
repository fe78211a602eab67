"""Who is measured. Each peer is a process of its own; see `worker` for what it is asked.

A peer's library is imported only there, by `peers/<name>.py`, which has a class `Library`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """A library, in a way of using it."""

    name: str
    title: str
    module: str
    """What to import, for the time that takes."""
    functions: str
    """Which `with_*` files are written for it."""
    requirements: str | None = None
    """The file in `requirements/` that its environment is made of; None is this Python's own."""

    @property
    def adapter(self) -> str:
        """The module with its class `Library`."""
        return f"benchmarks.peers.on_{self.name}"

    @property
    def base(self) -> str:
        """The name of the peer that computes results with the same library."""
        return self.name.removesuffix("_gradient").removesuffix("_loss")


OURS = Peer("plusequals", "plusequals", "plusequals", "with_plusequals")
PEERS: tuple[Peer, ...] = (
    OURS,
    Peer("numpy", "NumPy", "numpy", "with_numpy"),
    Peer("numba", "Numba", "numba", "with_numba", "numba"),
    Peer("torch", "PyTorch", "torch", "with_torch", "torch"),
    Peer("torch_compile", "PyTorch compiled", "torch", "with_torch", "torch"),
    Peer("jax", "JAX", "jax", "with_jax", "jax"),
)
"""Who computes results."""
LOSS = Peer("plusequals_loss", "plusequals", "plusequals", "with_plusequals")
GRADIENTS: tuple[Peer, ...] = (
    Peer("plusequals_gradient", "plusequals", "plusequals", "with_plusequals"),
    Peer("torch_gradient", "PyTorch", "torch", "with_torch", "torch"),
    Peer("torch_compile_gradient", "PyTorch compiled", "torch", "with_torch", "torch"),
    Peer("jax_gradient", "JAX", "jax", "with_jax", "jax"),
)
"""Who computes a loss of the results with its gradient; `LOSS` computes the loss alone."""


def peer(name: str) -> Peer:
    """Return the peer of that name. Raises KeyError."""
    return {known.name: known for known in (*PEERS, LOSS, *GRADIENTS)}[name]
