"""Run-time sizes from the first call on, as a function has them after it was called with many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plusequals.dsl import sizes
from plusequals.dsl.elaborate.inputs import ArraySpec


@contextmanager
def open_sizes(wanted: bool) -> Iterator[None]:
    """Compile for run-time sizes inside of the `with`, if wanted and where that can be."""
    before = sizes.SizesSeen._many
    if wanted:
        sizes.SizesSeen._many = _every  # type: ignore[method-assign]
    try:
        yield
    finally:
        sizes.SizesSeen._many = before  # type: ignore[method-assign]


def _every(_: sizes.SizesSeen, profile: sizes.Profile) -> set[tuple[str, int]]:
    """Return all axes of a call, as if each had come in many sizes."""
    arrays = ((name, spec) for name, spec in profile if isinstance(spec, ArraySpec))
    return {(name, axis) for name, spec in arrays for axis in range(len(spec.shape))}
