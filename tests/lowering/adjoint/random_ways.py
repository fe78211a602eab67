"""The ways in which a derivative is computed, held against each other: interpreted, compiled, as
kernels, as text, forward and in reverse, at other sizes, in other types, by some threads.

What is interpreted is checked at once, and what is compiled is left to `compiled`, for many
programs at a time: one run of the compiler costs as much as ten of these programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir import expressions, walk
from plusequals.lowering.ir.accuracy import ulps
from plusequals.lowering.ir.assignments import Procedure
from tests.programs.batch import Deferred, Deferring
from tests.programs.check import NAMES
from tests.programs.model import Program, scalar, values
from tests.programs.open_sizes import open_sizes

from .random_control import SIZED

SIZES = (4, 5, 6, 7, 2)
"""Sizes of arrays at which code of run-time sizes is called."""
THREADS = (1, 2, 7)
LOCALLY_ROUNDED = re.compile(r"\b(f16|f32|bf16|c64)\b")
"""Types in whose rounding errors two ways may differ, in a text."""


class Ended(Exception):
    """The answer is known."""

    def __init__(self, kind: str, why: str = "", wrong: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.why, self.wrong = kind, why, wrong


def given(program: Program) -> list[Any]:
    """Return new arguments: floats of medium size, no two of them equal."""
    out: list[Any] = []
    for spec in program.args:
        if not spec.is_array:
            out.append(scalar(spec))
        elif spec.dtype in ("float64", "float32") and spec.kind != "rising":
            rng = np.random.default_rng(spec.seed)
            signs = np.where(rng.random(spec.shape) < 0.3, -1.0, 1.0)
            out.append(np.asarray(rng.uniform(0.2, 1.7, spec.shape) * signs).astype(spec.dtype))
        else:
            out.append(np.copy(values(replace(spec, kind=spec.kind.replace("wild", "exact")))))
    return out


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


@dataclass(slots=True)
class Ways:
    """A function that returns one number, and its value and gradient on the interpreter."""

    loss: Any
    derived: Any
    names: Sequence[str]
    program: Program
    text: str
    """The text of the function."""
    backend: Deferring
    pending: list[Pending] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """What was held against what, or could not be."""
    _source: str | None = None

    def check(self, found: Sequence[Any], codes: Sequence[Deferred]) -> None:
        """Hold the value and the gradients, which these codes gave, against those of the other
        ways. Raises Ended."""
        source = self.source()
        small = bool(LOCALLY_ROUNDED.search(source))
        finite = all(np.all(np.isfinite(one)) for one in found)
        rtol = 1e-3 if small else 1e-9
        self.later("native", self.derived, codes, [(self.program, found)], rtol)
        if source:
            self.as_text(source, found, rtol)
        if not small and finite:
            self.exchanged()
        if SIZED in self.program.features:
            (self.stored_in_part, self.resized, self.small)[len(self.text) % 3](found)

    def source(self) -> str:
        """Return the text of the derivative, none where there is none."""
        if self._source is None:
            try:
                self._source = self.derived.text(*given(self.program))
            except CdError as why:
                if why.code != "CD0480":
                    raise Ended("no text", f"{why}\n{self.text}", True) from None
                self._source = ""
        return self._source

    def later(
        self,
        way: str,
        function: Any,
        codes: Sequence[Deferred],
        calls: Sequence[tuple[Program, Sequence[Any]]],
        rtol: float,
        further: Sequence[Any] = (),
    ) -> None:
        """Leave calls, with further arguments, to be compiled."""
        exact = all(is_exact(code.procedure) for code in codes)
        made = [([*given(program), *further], list(found)) for program, found in calls]
        told = f"{self.text}\n{self.source()}"
        self.pending.append(Pending(way, function, codes, made, rtol, exact, told))

    def call(self, way: str, function: Any, program: Program | None = None) -> list[Any]:
        """Return the numbers of a call in a row."""
        try:
            return flat(function(*given(program or self.program)))
        except Exception as why:
            told = f"{type(why).__name__}: {why}\n{self.text}\n{self.source()}"
            raise Ended(f"{way}: {type(why).__name__}", told, True) from None

    def same(self, way: str, found: Sequence[Any], others: Sequence[Any], rtol: float) -> None:
        """Require equal numbers."""
        if why := apart(found, others, rtol):
            raise Ended(way, f"{why}\n{self.text}\n{self.source()}", True)

    def as_text(self, source: str, found: Sequence[Any], rtol: float) -> None:
        """Require the same numbers of the text of the derivative, made a function again."""
        text, first = pe.cd_from_source(source, self.derived.names), len(self.backend.made)
        again = self.call("text", text)
        if apart(again, found, 0.0):
            self.seen["text, with other bits"] += 1
            self.same("text", again, found, rtol)
        else:
            self.seen["text, with the same bits"] += 1
        if len(self.text) % 4 == 0:
            codes = self.backend.made[first:]
            self.later("native text", text, codes, [(self.program, again)], rtol)

    def exchanged(self) -> None:
        """Require that products with the Jacobian from both sides agree."""
        rng = np.random.default_rng(len(self.text))
        arguments = dict(zip((s.name for s in self.program.args), given(self.program), strict=True))
        tangents = [np.asarray(rng.standard_normal(np.shape(arguments[n]))) for n in self.names]
        forward = pe.jvp(self.loss, wrt=self.names)
        try:
            out = flat(forward(*given(self.program), *map(number, tangents)))
        except CdError as why:
            if why.code == "CD0480":
                return
            raise Ended(f"jvp: {why.code}", f"{why}\n{self.text}", True) from None
        outputs = forward.derivations[-1][1].outputs or self.outputs(len(out))
        if outputs is None:
            return
        cotangents = [np.asarray(rng.standard_normal(np.shape(one))) for one in out]
        reverse = pe.vjp(self.loss, wrt=self.names, outputs=outputs)
        further, first = [*map(number, cotangents)], len(self.backend.made)
        try:
            back = flat(reverse(*given(self.program), *further))
        except Exception as why:
            told = f"{type(why).__name__}: {why}\n{self.text}"
            raise Ended(f"vjp: {type(why).__name__}", told, True) from None
        left = sum(float(np.sum(a * b)) for a, b in zip(out, cotangents, strict=True))
        right = sum(float(np.sum(a * b)) for a, b in zip(back, tangents, strict=True))
        scale = sum(float(np.sum(np.abs(a * b))) for a, b in zip(back, tangents, strict=True))
        if not np.isclose(left, right, rtol=1e-8, atol=1e-9 * scale):
            told = f"{left} forward, {right} in reverse\n{self.text}"
            raise Ended("vjp and jvp", told, True)
        self.seen["forward and in reverse"] += 1
        if len(self.text) % 2:
            codes = self.backend.made[first:]
            self.later("native vjp", reverse, codes, [(self.program, back)], 1e-9, further)

    def outputs(self, count: int) -> tuple[str, ...] | None:
        """Return the outputs of floats, by the names that a `vjp` knows them by."""
        before, after = given(self.program), given(self.program)
        self.loss(*after)
        specs = self.program.args
        written = [
            spec.name for spec, one, other in zip(specs, before, after, strict=True)
            if spec.dtype == "float64" and not np.array_equal(one, other)
        ]  # fmt: skip
        return ("result", *written) if len(written) + 1 == count else None

    def stored_in_part(self, found: Sequence[Any]) -> None:
        """Require the same numbers where only some states of loops are kept."""
        states = 1 + len(self.text) // 3 % 3
        derived = pe.value_and_gradient(self.loss, wrt=self.names, memory=states)
        first = len(self.backend.made)
        again = self.call("memory", derived)
        self.same("memory", again, found, 1e-12)
        self.seen["with some states of loops"] += 1
        if len(self.text) % 2:
            codes = self.backend.made[first:]
            self.later("native memory", derived, codes, [(self.program, again)], 1e-9)

    def resized(self, found: Sequence[Any]) -> None:
        """Require the same numbers of code of run-time sizes, and call it at other ones."""
        with open_sizes(True):
            loss = pe.cd_from_source(self.text, NAMES)
            derived, first = pe.value_and_gradient(loss, wrt=self.names), len(self.backend.made)
            again = self.call("run-time sizes", derived)
            self.same("run-time sizes", again, found, 1e-9)
            calls = [(self.program, again)]
            for size in SIZES:
                program = sized(self.program, size)
                try:
                    loss(*given(program))
                except CdError:
                    continue
                calls.append((program, self.call(f"size {size}", derived, program)))
        self.seen["at run-time sizes"] += 1
        codes = self.backend.made[first:]
        self.later("native at run-time sizes", derived, codes, calls, 1e-9)

    def small(self, found: Sequence[Any]) -> None:
        """Hold the derivative in 32 bits against that in 64."""
        args = (replace(s, dtype="float32" if s.dtype == "float64" else s.dtype)
                for s in self.program.args)  # fmt: skip
        program = replace(self.program, args=tuple(args))
        try:
            value = self.loss(*given(program))
        except CdError:
            return
        if not np.isclose(value, found[0], rtol=1e-5):
            return
        first = len(self.backend.made)
        wanted = self.call("32 bits", self.derived, program)
        codes = self.backend.made[first:]
        self.later("native 32 bits", self.derived, codes, [(program, wanted)], 1e-3)
        if all(np.all(np.isfinite(one)) for one in found):
            self.same("32 bits", wanted, found, 1e-2)
        self.seen["in 32 bits"] += 1


def compiled(
    pending: Sequence[tuple[int, Pending]],
    translate: Callable[[Sequence[Procedure]], Sequence[Any]],
    repeats: Callable[[Any], Any] | None = None,
) -> dict[int, Ended]:
    """Compile what is pending of numbered programs, and run it; return what was wrong.

    Code of kernels runs once for each item of `repeats`, and has to give the same bits.
    """
    ended: dict[int, Ended] = {}
    codes = [code for _, one in pending for code in one.codes]
    procedures = [replace(code.procedure, name=f"f{n}") for n, code in enumerate(codes)]
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
        except Ended as why:
            ended.setdefault(number, why)
    for code, old in zip(codes, interpreted, strict=True):
        code.code = old
    return ended


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
        if why := apart(found, wanted, 0.0 if strict else one.rtol):
            bits = ", bits" if strict else ""
            raise Ended(f"{one.way}{bits}", f"{why}\n{one.told}", True)


def by_threads(
    pending: Sequence[tuple[int, Pending]],
    translate: Callable[[Sequence[Procedure]], Sequence[Any]],
) -> dict[int, Ended]:
    """Compile what is pending for several numbers of threads, which have to give the same bits."""
    ended: dict[int, Ended] = {}
    bits: dict[tuple[int, int], list[bytes]] = {}

    def noted(number: int, at: int, one: Pending) -> Pending:
        def function(*arguments: Any) -> Any:
            found = one.function(*arguments)
            now = [np.asarray(x).tobytes() for x in (*flat(found), *arguments)]
            if bits.setdefault((number, at), now) != now:
                raise Ended(f"{one.way}: another number of threads", one.told, True)
            return found

        return replace(one, function=function, calls=one.calls[:1])

    watched = [(number, noted(number, at, one)) for at, (number, one) in enumerate(pending)]
    for threads in THREADS:

        def translated(procedures: Sequence[Procedure], threads: int = threads) -> Sequence[Any]:
            with settings.override(threads=threads):  # around a call it would compile again
                return translate(procedures)

        for number, why in compiled(watched, translated).items():
            ended.setdefault(number, why)
    return ended


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


def sized(program: Program, size: int) -> Program:
    """Return a program whose arrays have another size."""
    specs = (replace(spec, shape=(size,) * len(spec.shape)) for spec in program.args)
    return replace(program, args=tuple(specs))


def number(value: np.ndarray) -> Any:
    """Return a Python number for an array without axes."""
    return value if value.ndim else value.item()


def flat(value: Any) -> list[Any]:
    """Return the numbers and arrays of a result, in order."""
    if isinstance(value, tuple | list):
        return [one for item in value for one in flat(item)]
    return [value]
