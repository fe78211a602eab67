"""Whether a call did what NumPy does: results with their types, arguments, what shares memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .operands import Given


@dataclass(frozen=True, slots=True)
class Taken:
    """What a call gave and left behind."""

    result: Any = None
    arguments: tuple[Any, ...] = ()
    sharing: tuple[tuple[bool, ...], ...] = ()
    raised: Exception | None = None
    undefined: bool = False
    """Whether NumPy cast a float to an integer that cannot hold it, which it leaves open."""


def taken(call: Callable[..., Any], given: Mapping[str, Given]) -> Taken:
    """Return what a call does with the arguments."""
    values = tuple(one.value for one in given.values())
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore", invalid="warn"):
        warnings.simplefilter("always")
        try:
            result = call(*values)
        except Exception as why:
            return Taken(arguments=values, raised=why)
    undefined = any("invalid value encountered in cast" in str(one.message) for one in told)
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    sharing = tuple(
        tuple(bool(one.size) and np.shares_memory(one, other) for other in arrays)
        for one in _arrays(result)
    )
    return Taken(result, values, sharing, None, undefined)


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _arrays(one)


def parted(got: Taken, want: Taken, units: float, how: str) -> str | None:
    """Return how two outcomes differ, None where they do not; floats by some `units` at most.

    `how` is the name of the tolerance.
    """
    why = unlike(got.result, want.result, units, how)
    if why:
        return f"result{why}"
    for n, (one, other) in enumerate(zip(got.arguments, want.arguments)):
        if why := unlike(one, other, units, how):
            return f"argument {n}{why}"
    if got.sharing != want.sharing:
        return f"shares memory with arguments {got.sharing}, not {want.sharing}"
    return None


def unlike(got: Any, want: Any, units: float, how: str) -> str | None:
    """Return how two values differ in type, shape or number."""
    if isinstance(want, tuple | list):
        if isinstance(got, tuple) is not isinstance(want, tuple) or len(got) != len(want):
            return f": {got!r:.200}, not {want!r:.200}"
        pairs = (unlike(a, b, units, how) for a, b in zip(got, want))
        return next((f"[{n}]{why}" for n, why in enumerate(pairs) if why), None)
    if want is None or isinstance(want, str):
        return None if got == want else f": {got!r:.200}, not {want!r:.200}"
    if isinstance(got, np.ndarray) is not isinstance(want, np.ndarray):
        return f": {got!r:.100} is {type(got).__name__}, not {type(want).__name__}"
    number = not isinstance(want, np.ndarray)
    if number and type(got) is not type(want):
        return f": {got!r:.100} is {type(got).__name__}, not {type(want).__name__} {want!r:.80}"
    one, other = np.asarray(got), np.asarray(want)
    if one.dtype.newbyteorder("=") != other.dtype.newbyteorder("="):
        return f": {one.dtype}, not {other.dtype}"
    if one.shape != other.shape:
        return f": shape {one.shape}, not {other.shape}"
    one = one.astype(one.dtype.newbyteorder("="))
    other = other.astype(one.dtype)
    wrong = ~_alike(one, other, units, how)
    if not wrong.any():
        return None
    at = tuple(int(n) for n in np.argwhere(np.atleast_1d(wrong))[0])
    first = np.atleast_1d(one)[at], np.atleast_1d(other)[at]
    return f": {int(wrong.sum())} of {one.size}, at {at} {first[0]!r}, not {first[1]!r}"


def _alike(one: np.ndarray, other: np.ndarray, units: float, how: str) -> np.ndarray:
    same = _parts_alike(one, other, signs=how != "zeros")
    if not units or one.dtype.kind not in "fc":
        return same
    with np.errstate(all="ignore"):
        size = np.abs(other)
        if how != "ulps":
            size = np.max(size, initial=0.0, where=np.isfinite(size))
        size = np.maximum(size, np.finfo(one.dtype).tiny)
        near = np.abs(one - other) <= units * np.finfo(one.dtype).eps * size
    if one.dtype.kind == "c":  # an infinity or NaN in one part is one in the whole
        ends = ~np.isfinite(one) & ~np.isfinite(other)
        return np.asarray(same | near | ends)
    return np.asarray(same | near)


def _parts_alike(one: np.ndarray, other: np.ndarray, signs: bool) -> np.ndarray:
    same = np.ones(one.shape, bool)
    for x, y in ((one.real, other.real), (one.imag, other.imag)):
        alike = np.asarray(x == y)
        if x.dtype.kind == "f":
            alike &= (np.signbit(x) == np.signbit(y)) | (not signs)
            alike |= np.isnan(x) & np.isnan(y)
        same &= alike
    return same
