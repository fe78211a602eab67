"""Run-time sizes and integers from the first call on, as a function has them after many calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import plusequals as pe
from plusequals.dsl.elaborate.captures.inputs import ArraySpec
from plusequals.dsl.specialize import dynamic_sizes, variant_table


@contextmanager
def open_sizes(wanted: bool) -> Iterator[None]:
    """Compile for run-time sizes inside of the `with`, if wanted and where that can be."""
    before = dynamic_sizes.SizeHistory._many
    if wanted:
        dynamic_sizes.SizeHistory._many = _every  # type: ignore[method-assign]
    try:
        yield
    finally:
        dynamic_sizes.SizeHistory._many = before  # type: ignore[method-assign]


def _every(_: dynamic_sizes.SizeHistory, profile: dynamic_sizes.Profile) -> set[tuple[str, int]]:
    """Return all axes of a call, as if each had come in many sizes."""
    arrays = ((name, spec) for name, spec in profile if isinstance(spec, ArraySpec))
    return {(name, axis) for name, spec in arrays for axis in range(len(spec.shape))}


@contextmanager
def after_another_value(function: Any, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Have integers that were compiled as constants come at run time, inside of the `with`.

    The function is compiled for other integers, and one value counts as many.
    """
    before, other = variant_table.SIZES, {name: _next(value) for name, value in arguments.items()}
    variant_table.SIZES = 1
    try:
        with suppress(pe.CdError):
            function.specialise(*other.values())
        yield
    finally:
        variant_table.SIZES = before


def _next(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_next, value))
    return value + 1 if type(value) is int else value
