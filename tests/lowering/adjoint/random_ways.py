"""The ways in which a derivative is computed, held against each other: compiled, interpreted,
as text, forward and in reverse, at other sizes and in other types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.programs.model import Program, scalar, values

from .random_control import SIZED

SIZES = (4, 3, 5, 6, 7)
"""From the fourth one on they are known when the function runs only."""


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
class Ways:
    """A function that returns one number, and its value and gradient on the interpreter."""

    loss: Any
    derived: Any
    names: Sequence[str]
    program: Program
    text: str
    """The text of the function."""

    def check(self, found: Sequence[Any]) -> None:
        """Hold the value and the gradients against those of the other ways. Raises Ended."""
        source = self.source()
        small = bool(re.search(r"\b(f16|f32|bf16|c64)\b", source))
        rtol = 1e-3 if small else 1e-9
        self.same("native", self.call("native", self.derived.on("cc")), found, rtol)
        if source:
            backends = ("numpy", "cc") if len(self.text) % 4 == 0 else ("numpy",)
            for backend in backends:
                text = pe.cd_from_source(source, self.derived.names, backend=backend)
                self.same(f"text on {backend}", self.call("text", text), found, rtol)
        if not small and all(np.all(np.isfinite(one)) for one in found):
            self.exchanged()
        if SIZED in self.program.features and len(self.text) % 3:
            if len(self.text) % 3 == 1:
                self.resized()
            else:
                self.small(found)

    def source(self) -> str:
        """Return the text of the derivative, none where there is none."""
        try:
            text: str = self.derived.text(*given(self.program))
        except CdError as why:
            if why.code == "CD0480":
                return ""
            raise Ended("no text", f"{why}\n{self.text}", True) from None
        return text

    def call(self, way: str, function: Any, program: Program | None = None) -> list[Any]:
        """Return the numbers of a call in a row."""
        try:
            return flat(function(*given(program or self.program)))
        except Exception as why:
            told = f"{type(why).__name__}: {why}\n{self.text}\n{self.source()}"
            raise Ended(f"{way}: {type(why).__name__}", told, True) from None

    def same(self, way: str, found: Sequence[Any], others: Sequence[Any], rtol: float) -> None:
        """Require equal numbers."""
        for name, one, other in zip(("value", *self.names), found, others, strict=True):
            largest = np.max(np.abs(other), initial=1e-300, where=np.isfinite(other))
            atol = 0.1 * rtol * largest
            if not np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True):
                why = f"{name}: {one}, not {other}\n{self.text}\n{self.source()}"
                raise Ended(way, why, True)

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
        for way, backend in (("vjp", "numpy"), ("native vjp", "cc"))[: 1 + len(self.text) % 2]:
            try:
                back = flat(reverse.on(backend)(*given(self.program), *map(number, cotangents)))
            except Exception as why:
                told = f"{type(why).__name__}: {why}\n{self.text}"
                raise Ended(f"{way}: {type(why).__name__}", told, True) from None
            left = sum(float(np.sum(a * b)) for a, b in zip(out, cotangents, strict=True))
            right = sum(float(np.sum(a * b)) for a, b in zip(back, tangents, strict=True))
            scale = sum(float(np.sum(np.abs(a * b))) for a, b in zip(back, tangents, strict=True))
            if not np.isclose(left, right, rtol=1e-8, atol=1e-9 * scale):
                told = f"{left} forward, {right} in reverse\n{self.text}"
                raise Ended(f"{way} and jvp", told, True)

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

    def resized(self) -> None:
        """Hold compiled derivatives of other sizes against the interpreter."""
        native = pe.value_and_gradient(self.loss.on("cc"), wrt=self.names)
        for size in SIZES:
            program = sized(self.program, size)
            try:
                self.loss(*given(program))
            except CdError:
                return
            found = self.call(f"size {size}", native, program)
            wanted = self.call(f"interpreted size {size}", self.derived, program)
            self.same(f"size {size}", found, wanted, 1e-9)

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
        wanted = self.call("32 bits", self.derived, program)
        self.same(
            "native 32 bits", self.call("32 bits", self.derived.on("cc"), program), wanted, 1e-3
        )
        if all(np.all(np.isfinite(one)) for one in found):
            self.same("32 bits", wanted, found, 1e-2)


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
