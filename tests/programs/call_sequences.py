"""Sequences of calls of a random program: other sizes, integers, types, layouts, in any order.

Sizes that are the same in all arguments stay the same, so that shapes go together as they did.
What plain Python cannot run is left out, but for one call in some programs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .check import of_python
from .layouts import WRITABLE
from .model import ArgSpec, Program
from .plain_expressions import Unknown

CALLS = 9
"""Distinct calls of a program: more than sizes or values that code is made for as constants."""
_COMPILED = 7
"""The same where each of them is compiled by a C compiler."""
_TRIES = 40
_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17)
_NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3)
_FLOATS = ("0.5", "-1.5", "2.0", "0.0", "3.25", "-0.0", "100.0")
_ELEMENTS = ("float64", "float32", "int64", "int32", "float64", "int64")
_WHOLE = ("int", "int", "int", "int", "np.int64", "truth", "float", "np.int32")
_REAL = ("float", "float", "float", "int", "np.float64", "np.float32")


@dataclass(frozen=True, slots=True)
class _Habits:
    """What changes from call to call of one program."""

    sizes: frozenset[int]
    names: frozenset[str]
    """Of numbers that change."""
    types: float
    layouts: float


def with_calls(rng: random.Random, program: Program, processes: int) -> Program:
    """Return the program with calls, and an order of them for each process."""
    sizes = {extent for spec in program.args for extent in spec.shape}
    habits = _Habits(
        frozenset(size for size in sorted(sizes) if rng.random() < 0.85),
        frozenset(spec.name for spec in program.args if rng.random() < 0.85),
        rng.choice((0.0, 0.1, 0.3)), rng.choice((0.0, 0.0, 0.2)),
    )  # fmt: skip
    calls, failing = [program.args], int(rng.random() < 0.3)
    for _ in range(_TRIES):
        call = _call(rng, program.args, habits)
        error = _error(program, call)
        failing -= bool(error)
        if call not in calls and (not error or failing >= 0) and error != Unknown.__name__:
            calls.append(call)
        if len(calls) == (CALLS if processes == 1 else _COMPILED):
            break
    orders = tuple(_order(rng, len(calls)) for _ in range(processes))
    return replace(program, args=calls[0], calls=tuple(calls), orders=orders)


def _order(rng: random.Random, count: int) -> tuple[int, ...]:
    """Return all calls in some order, two of them once more."""
    order = rng.sample(range(count), count)
    for _ in range(2):
        order.insert(rng.randrange(len(order) + 1), rng.randrange(count))
    return tuple(order)


def _call(rng: random.Random, args: tuple[ArgSpec, ...], habits: _Habits) -> tuple[ArgSpec, ...]:
    """Return arguments of other sizes, or with other numbers, or both: code that is kept for some
    sizes is found again only by calls of the same ones."""
    sizes = {extent: extent for spec in args for extent in spec.shape}
    which = rng.choice(("numbers", "numbers", "sizes", "both"))
    for size in sorted(habits.sizes) if which != "numbers" else ():
        sizes[size] = _size(rng, size, sizes)
    if which == "sizes":
        habits = replace(habits, names=frozenset())
    element = rng.choice(_ELEMENTS) if rng.random() < habits.types else ""
    return tuple(_spec(rng, spec, sizes, element, habits) for spec in args)


def _size(rng: random.Random, size: int, sizes: Mapping[int, int]) -> int:
    pick = rng.random()
    if pick < 0.15:
        return 0 if pick < 0.06 else 1
    if pick < 0.3:
        return rng.choice(sorted(sizes.values()))
    return rng.choice((*_SIZES, size + 1, size + 2, 2 * size))


def _spec(
    rng: random.Random,
    spec: ArgSpec,
    sizes: Mapping[int, int],
    element: str,
    habits: _Habits,
) -> ArgSpec:
    """Return an argument with other sizes, another value, sometimes of another type."""
    if not spec.is_array:
        return _number(rng, spec, habits) if spec.name in habits.names else spec
    shape, kind = tuple(sizes[extent] for extent in spec.shape), spec.kind
    if kind.startswith("index:"):
        below = int(kind[6:])
        kind = f"index:{max(sizes.get(below, below), 1)}"
        return replace(spec, shape=shape, kind=kind, seed=rng.randrange(2**31))
    dtype = element if element and rng.random() < 0.8 else spec.dtype
    layout = rng.choice(WRITABLE) if rng.random() < habits.layouts else spec.layout
    return replace(spec, shape=shape, dtype=dtype, layout=layout, seed=rng.randrange(2**31))


def _number(rng: random.Random, spec: ArgSpec, habits: _Habits) -> ArgSpec:
    if spec.dtype == "tuple":
        items = spec.kind.split(", ")
        return replace(spec, kind=", ".join(str(rng.choice(_NUMBERS)) for _ in items))
    other = rng.random() < habits.types
    if spec.dtype in _WHOLE[:1]:
        dtype, number = rng.choice(_WHOLE) if other else spec.dtype, rng.choice(_NUMBERS)
        return replace(spec, dtype=dtype, kind=str(bool(number) if dtype == "truth" else number))
    dtype = rng.choice(_REAL) if other else spec.dtype
    return replace(spec, dtype=dtype, kind=str(rng.choice(_NUMBERS)) if dtype == "int"
                   else rng.choice(_FLOATS))  # fmt: skip


def _error(program: Program, call: tuple[ArgSpec, ...]) -> str:
    """Return the name of the error that plain Python raises for a call, empty if none."""
    return of_python(replace(program, args=call)).error
