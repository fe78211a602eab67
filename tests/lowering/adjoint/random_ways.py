"""The ways in which a derivative is computed, held against each other: interpreted, compiled, as
kernels, as text, forward and in reverse, at other sizes, in other types, by some threads.

What is interpreted is checked at once, what is compiled is left for later; see `pending`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.programs.batch import Deferred, Deferring
from tests.programs.check import NAMES
from tests.programs.model import Program, scalar, values
from tests.programs.open_sizes import open_sizes

from .pending import Ended, Pending, apart, flat, is_exact
from .random_control import SIZED

SIZES = (4, 5, 6, 7, 2)
"""Sizes of arrays at which code of run-time sizes is called."""
LOCALLY_ROUNDED = re.compile(r"\b(f16|f32|bf16|c64)\b")
"""Types in whose rounding errors two ways may differ, in a text."""


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
                reason = why.diagnostics[0].message.partition("no words for ")[2]
                self.seen[f"no text: {reason}"] += 1
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


def sized(program: Program, size: int) -> Program:
    """Return a program whose arrays have another size."""
    specs = (replace(spec, shape=(size,) * len(spec.shape)) for spec in program.args)
    return replace(program, args=tuple(specs))


def number(value: np.ndarray) -> Any:
    """Return a Python number for an array without axes."""
    return value if value.ndim else value.item()
