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


OURS = Peer("plusequals", "plusequals", "plusequals", "with_plusequals")
PEERS: tuple[Peer, ...] = (
    OURS,
    Peer("numpy", "NumPy", "numpy", "with_numpy"),
    Peer("numba", "Numba", "numba", "with_numba", "numba"),
    Peer("torch", "PyTorch", "torch", "with_torch", "torch"),
    Peer("torch_compile", "PyTorch compiled", "torch", "with_torch", "torch"),
    Peer("jax", "JAX", "jax", "with_jax", "jax"),
)


def peer(name: str) -> Peer:
    """Return the peer of that name. Raises KeyError."""
    return {known.name: known for known in PEERS}[name]
