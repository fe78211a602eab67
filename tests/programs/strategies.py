"""Random programs as Hypothesis strategies, for properties that are written elsewhere."""

from __future__ import annotations

from hypothesis import strategies as st

from .generate import generate
from .layouts import READABLE
from .model import Program


def programs(kind: str | None = None) -> st.SearchStrategy[Program]:
    """Return programs in `array`, `index` or `mixed` notation; they shrink with their choices."""
    return st.builds(lambda rng: generate(rng, kind), st.randoms(use_true_random=False))


def layouts() -> st.SearchStrategy[str]:
    """Return names of layouts for `lay`."""
    return st.sampled_from(sorted(set(READABLE)))
