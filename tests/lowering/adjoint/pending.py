"""Calls that are interpreted so far, to be compiled for many programs at a time.

One run of the compiler costs as much as ten programs of the hunt of gradients. What is compiled has
to give what was interpreted: the same bits in the profile `strict`, where every operation is
rounded as IEEE 754 says, and otherwise the same numbers; and the same bits for all numbers of
threads and all orders of a kernel's threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plusequals.base import settings
from plusequals.lowering.ir import expressions, walk
from plusequals.lowering.ir.accuracy import ulps
from plusequals.lowering.ir.assignments import Procedure
from tests.programs.batch import Deferred

THREADS = (1, 2, 7)
"""Numbers of threads that have to give the same bits."""


class Ended(Exception):
    """The answer is known."""

    def __init__(self, kind: str, why: str = "", wrong: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.why, self.wrong = kind, why, wrong


@dataclass(frozen=True, slots=True)
class Pending:
    """Calls of a function whose code is interpreted so far, and what they gave."""

    way: str
    function: Any
    codes: Sequence[Deferred]
    """What the calls run, for other code to stand in."""
    calls: Sequence[tuple[list[Any], list[Any]]]
    """What makes the arguments of each, and what it gave."""
    rtol: float
    exact: bool
    """Whether every operation is rounded as IEEE 754 says: then all code gives the same bits, but
    for sums whose order a profile leaves open."""
    told: str


def compiled(
    pending: Sequence[tuple[int, Pending]],
    translate: Callable[[Sequence[Procedure]], Sequence[Any]],
    repeats: Callable[[Any], Any] | None = None,
) -> dict[int, Ended]:
    """Compile what is pending of numbered programs, and run it; return what was wrong.

    Each runs once for each item of what `repeats` makes of its code.
    """
    ended: dict[int, Ended] = {}
    codes = [code for _, one in pending for code in one.codes]
    procedures = procedures_of(pending)
    made: Sequence[Any]
    try:
        made = translate(procedures)
    except Exception as why:
        if len(pending) == 1:
            number, one = pending[0]
            told = f"{type(why).__name__}: {why}\n{one.told}"
            return {number: Ended(f"{one.way}: {type(why).__name__}", told, True)}
        half = len(pending) // 2
        parts = (pending[:half], pending[half:])
        return {n: e for part in parts for n, e in compiled(part, translate, repeats).items()}
    interpreted = [code.code for code in codes]
    for code, new in zip(codes, made, strict=True):
        code.code = new
    for number, one in pending:
        try:
            for _ in repeats(one.codes[0].code) if repeats else (0,):
                ran(one)
        except Ended as end:
            ended.setdefault(number, end)
    for code, old in zip(codes, interpreted, strict=True):
        code.code = old
    return ended


def procedures_of(pending: Sequence[tuple[int, Pending]]) -> list[Procedure]:
    """Return what is pending as procedures of different names."""
    codes = [code for _, one in pending for code in one.codes]
    return [replace(code.procedure, name=f"f{n}") for n, code in enumerate(codes)]


def ran(one: Pending) -> None:
    """Run what is compiled now, and hold it against what was interpreted. Raises Ended."""
    strict = settings.current().profile == "strict" and one.exact
    for arguments, wanted in one.calls:
        again = [np.copy(x) if isinstance(x, np.ndarray) else x for x in arguments]
        try:
            found = flat(one.function(*again))
        except Ended:
            raise
        except Exception as why:
            told = f"{type(why).__name__}: {why}\n{one.told}"
            raise Ended(f"{one.way}: {type(why).__name__}", told, True) from None
        if where := apart(found, wanted, 0.0 if strict else one.rtol):
            bits = ", bits" if strict else ""
            raise Ended(f"{one.way}{bits}", f"{where}\n{one.told}", True)


def by_threads(
    pending: Sequence[tuple[int, Pending]],
    translate: Callable[[Sequence[Procedure]], Sequence[Any]],
) -> dict[int, Ended]:
    """Compile what is pending for several numbers of threads, which have to give the same bits."""
    ended: dict[int, Ended] = {}
    watched = remembering(pending, "another number of threads")
    for threads in THREADS:

        def translated(procedures: Sequence[Procedure], threads: int = threads) -> Sequence[Any]:
            with settings.override(threads=threads):  # around a call it would compile again
                return translate(procedures)

        for number, why in compiled(watched, translated).items():
            ended.setdefault(number, why)
    return ended


def remembering(pending: Sequence[tuple[int, Pending]], what: str) -> list[tuple[int, Pending]]:
    """Return the same, whose first call has to give the same bits every time but the first; `what`
    is what the times differ in."""
    return [(number, _remembering(one, what)) for number, one in pending]


def _remembering(one: Pending, what: str) -> Pending:
    bits: list[list[bytes]] = []

    def function(*arguments: Any) -> Any:
        found = one.function(*arguments)
        bits.append([np.asarray(x).tobytes() for x in (*flat(found), *arguments)])
        if bits[-1] != bits[0]:
            raise Ended(f"{one.way}: {what}", one.told, True)
        return found

    return replace(one, function=function, calls=one.calls[:1])


def is_exact(procedure: Procedure) -> bool:
    """Whether every operation of a procedure is rounded as IEEE 754 says, on every backend."""
    values = [v for s in walk.statements(procedure.body) for v in walk.expressions_of(s)]
    applied = [e for v in values for e in expressions.walk(v) if isinstance(e, expressions.Apply)]
    return not any(map(ulps, applied))


def apart(found: Sequence[Any], others: Sequence[Any], rtol: float) -> str:
    """Return where numbers differ by more than is allowed, for 0 in a bit; "" where they do not."""
    for at, (one, other) in enumerate(zip(found, others, strict=True)):
        if not rtol:
            one, other = np.asarray(one), np.asarray(other)
            signs = np.signbit(one) == np.signbit(other) if one.dtype.kind == "f" else True
            alike = (one == other) & signs | (np.isnan(one) & np.isnan(other))
            if np.all(alike):
                continue
            return f"result {at}: {one}, not the bits of {other}, by {np.max(np.abs(one - other))}"
        largest = np.max(np.abs(other), initial=1e-300, where=np.isfinite(other))
        if not np.allclose(one, other, rtol=rtol, atol=0.1 * rtol * largest, equal_nan=True):
            return f"result {at}: {one}, not {other}"
    return ""


def flat(value: Any) -> list[Any]:
    """Return the numbers and arrays of a result, in order."""
    if isinstance(value, tuple | list):
        return [one for item in value for one in flat(item)]
    return [value]
