"""What a run of a program gave, in a form that can be compared bit by bit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plusequals.base.diagnostic import CdError

from .model import Program


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results, arguments after the run, and what they share; or the error."""

    results: tuple[Any, ...] = ()
    arguments: tuple[Any, ...] = ()
    rooms: tuple[bytes, ...] = ()
    sharing: tuple[tuple[bool, ...], ...] = ()
    error: str = ""
    message: str = ""
    undefined: bool = False
    """Whether NumPy cast a float to an integer that cannot hold it, which it leaves open."""


def run(program: Program, call: Callable[[Mapping[str, Any]], Any]) -> Outcome:
    """Return what a call gives for new arguments."""
    made = program.make_rooms()
    arguments = {name: value for name, (value, _) in made.items()}
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore", invalid="warn"):
        warnings.simplefilter("always")
        try:
            returned = call(arguments)
        except CdError as why:
            return _failed(f"{type(why).__name__} {why.code}", why, made)
        except Exception as why:
            return _failed(type(why).__name__, why, made)
    results = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    undefined = any("invalid value encountered in cast" in str(one.message) for one in told)
    sharing = _sharing(results, arguments)
    values = tuple(arguments.values())
    return Outcome(results, values, _rooms(made), sharing, undefined=undefined)


def nudged(value: Any) -> Any:
    """Return the next larger number; floats of an array that may be written are, in place."""
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.flags.writeable:
        value[...] = np.nextafter(value, np.array(np.inf, value.dtype))
    return value


def nudged_all(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in which each is `nudged`."""
    return {name: nudged(value) for name, value in arguments.items()}


def near(one: Any, other: Any, rtol: float) -> bool:
    """Whether two values are equal, or as near to each other, whatever their types."""
    if isinstance(one, str) or one is None or isinstance(other, str) or other is None:
        return bool(one == other)
    a, b = np.asarray(one), np.asarray(other)
    return a.shape == b.shape and bool(np.all(_alike(a, b, False, rtol)))


def _failed(error: str, why: Exception, made: Mapping[str, Any]) -> Outcome:
    arguments = tuple(value for value, _ in made.values())
    return Outcome((), arguments, _rooms(made), (), error, str(why))


def _rooms(made: Mapping[str, Any]) -> tuple[bytes, ...]:
    return tuple(room.tobytes() for _, room in made.values() if room is not None)


def _sharing(
    results: tuple[Any, ...], arguments: Mapping[str, Any]
) -> tuple[tuple[bool, ...], ...]:
    """Return, for each result and argument, whether they are one object or share memory."""
    return tuple(
        tuple(
            isinstance(one, np.ndarray) and bool(one.size) and np.shares_memory(one, other)
            for other in arguments.values() if isinstance(other, np.ndarray)
        )
        for one in results
    )  # fmt: skip


def difference(
    one: Outcome,
    other: Outcome,
    signs: bool = True,
    share: bool = True,
    rooms: bool = True,
    rtol: float = 0.0,
) -> str | None:
    """Return how two outcomes differ, None where they are the same bit by bit.

    Without `signs` zeros of different signs are the same; with `rtol` so are numbers that near,
    measured by the largest number of the other outcome, which is the one that is expected.
    """
    if one.error != other.error:
        told = f"{one.message}{other.message}"
        return f"error {one.error or 'none'} against {other.error or 'none'}: {told}"
    if len(one.results) != len(other.results):
        return f"{len(one.results)} results against {len(other.results)}"
    for n, (a, b) in enumerate(zip(one.results, other.results)):
        if why := unlike(a, b, signs, rtol):
            return f"result {n}: {why}"
    if one.error and not rooms:
        return None  # what was written before an error depends on the layout
    for n, (a, b) in enumerate(zip(one.arguments, other.arguments)):
        if why := unlike(a, b, signs, rtol):
            return f"argument {n}: {why}"
    if rooms and signs and not rtol and one.rooms != other.rooms and not _nan_payload(one, other):
        return "memory around an argument was changed"
    if share and one.sharing != other.sharing:
        return f"results share memory with arguments: {one.sharing} against {other.sharing}"
    return None


def _nan_payload(one: Outcome, other: Outcome) -> bool:
    arrays = (a for a in one.arguments if isinstance(a, np.ndarray))
    return any(a.dtype.kind in "fc" and np.isnan(a).any() for a in arrays)


def unlike(a: Any, b: Any, signs: bool = True, rtol: float = 0.0) -> str | None:
    """Return how two values differ, None where they do not."""
    if isinstance(a, str) or a is None or isinstance(b, str) or b is None:
        return None if a == b else f"{a!r} against {b!r}"
    if isinstance(a, tuple | list) or isinstance(b, tuple | list):
        return _unlike_items(a, b, signs, rtol)
    one, other = np.asarray(a), np.asarray(b)
    if one.dtype.newbyteorder("=") != other.dtype.newbyteorder("="):
        return f"dtype {one.dtype} against {other.dtype}"
    if one.shape != other.shape:
        return f"shape {one.shape} against {other.shape}"
    one = one.astype(one.dtype.newbyteorder("="))
    other = other.astype(one.dtype)
    if np.all(_alike(one, other, signs, rtol)):
        return None
    return f"{one.tolist()!r} against {other.tolist()!r}"


def _unlike_items(a: Any, b: Any, signs: bool, rtol: float) -> str | None:
    if type(a) is not type(b) or len(a) != len(b):
        return f"{a!r} against {b!r}"
    pairs = (unlike(one, other, signs, rtol) for one, other in zip(a, b))
    return next((f"{a!r} against {b!r}: {why}" for why in pairs if why), None)


def _alike(one: np.ndarray, other: np.ndarray, signs: bool, rtol: float) -> np.ndarray:
    """Return where two arrays are alike; the parts of a complex number one by one."""
    largest = 0.0
    if rtol and one.dtype.kind in "fc":
        largest = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    same = np.ones(one.shape, bool)
    for x, y in ((one.real, other.real), (one.imag, other.imag)):
        alike = np.asarray(x == y)
        if x.dtype.kind == "f":
            if rtol:
                with np.errstate(all="ignore"):
                    alike |= np.abs(x - y) <= rtol * largest
            elif signs:
                alike &= np.signbit(x) == np.signbit(y)
            alike |= np.isnan(x) & np.isnan(y)
        same &= alike
    return same
