"""Which stage of compiling a function first changed a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...backends.cc import cpu_info
from ...backends.gpu.device_array import PlacedArray
from ...backends.interface import Array, Code, HasKernels
from ...backends.runtime.call_arguments import as_device_array, copy_to_host
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdError
from ...lowering.device_branches import select_gpu_branches
from ...lowering.ir.assignments import Procedure
from ...lowering.ir.interpret import run_procedure, run_program
from ...lowering.ir.loops import Program
from ...lowering.ir.printer import print_program
from ...lowering.lower import lower
from ...lowering.pipeline import map_to_device, optimize
from ...lowering.target import HOST, Target
from ..dispatch.execute import prepared
from ..specialize.variants import Match
from .differences import alike
from .records import element, shown

Made = Callable[[Sequence[Array | None]], tuple[Array, ...]]
Given = Sequence[Array | PlacedArray]


@dataclass(frozen=True, slots=True, repr=False)
class Bisection:
    """The first stage after which a result is another one, and what it is."""

    stage: str
    """`lower`, the name of a pass, or `compile` for what a backend makes of the last loops."""
    what: str
    """The element that differs, and both values."""
    before: str
    """What the stage was given, as text."""
    after: str
    """What it made of that."""

    def __str__(self) -> str:
        return f"`{self.stage}` changed {self.what}"

    __repr__ = __str__


def bisected(
    match: Match, arguments: Mapping[str, Any], rtol: float, atol: float
) -> Bisection | None:
    """Return the first stage that changed a result of a call, None where none did.

    The arguments stay as they are. Loops are run by the interpreter after each pass.
    """
    known = match.known
    given, _ = prepared(known, match.given(arguments), arguments)
    procedure = known.procedure
    expected = _outcome(lambda arrays: run_procedure(procedure, arrays, _quiet), procedure, given)
    stages: list[tuple[str, Program]] = []
    code = RUNTIME.compile(procedure, known.situation.backend)
    target, is_device = target_of(code, known.situation.backend), isinstance(code, HasKernels)

    def observe(name: str, now: Program) -> None:
        stages.append((name, now))

    loops, _ = optimize(
        lower(select_gpu_branches(procedure) if is_device else procedure), target, observe
    )
    if is_device:
        map_to_device(loops, target, observe)
    before: Program | None = None
    for name, now in stages:
        if now == before:
            continue
        found = _outcome(_run(now), procedure, given)
        if why := _unlike(procedure, expected, found, rtol, atol):
            told = "" if before is None else print_program(before)
            return Bisection(name, why, told, print_program(now))
        before = now
    found = _outcome(code.run, procedure, given, _there)
    if why := _unlike(procedure, expected, found, rtol, atol):
        told = "" if before is None else print_program(before)
        return Bisection("compile", why, told, code.text)
    return None


def target_of(code: Code, backend: str) -> Target:
    """Return what the loops of code were made for by a backend of that name."""
    if isinstance(code, HasKernels):
        return Target("cuda", stack_bytes=settings.current().stack_bytes)
    return cpu_info.target() if backend == "cc" else HOST


def _run(program: Program) -> Made:
    return lambda arrays: run_program(program, arrays, _quiet)


def _quiet(text: str) -> None:
    """Show nothing: a function that prints is run many times."""


def _there(array: Array | PlacedArray) -> Any:
    """Return a copy where an array is, which lies as it does."""
    return as_device_array(array).copy() if isinstance(array, PlacedArray) else copy_to_host(array)


def _outcome(
    run: Made, procedure: Procedure, given: Given, copy: Callable[[Any], Any] = copy_to_host
) -> tuple[tuple[str, Array], ...] | str:
    """Return what a run leaves in written arrays and results, by name; the text of an error."""
    arrays = [copy(array) for array in given]
    try:
        results = run((*arrays, *(None for _ in procedure.results)))
    except CdError as error:
        return str(error)
    written = [
        (parameter.node.label, np.asarray(array))
        for parameter, array in zip(procedure.parameters, arrays, strict=True)
        if parameter.written
    ]
    named = zip((node.label for node in procedure.results), map(np.asarray, results), strict=True)
    return (*written, *named)


def _unlike(
    procedure: Procedure,
    one: tuple[tuple[str, Array], ...] | str,
    other: tuple[tuple[str, Array], ...] | str,
    rtol: float,
    atol: float,
) -> str:
    """Return the first element that differs, with both values; empty where none does."""
    if isinstance(one, str) or isinstance(other, str):
        if isinstance(one, str) and isinstance(other, str):
            return ""
        told = one if isinstance(one, str) else other
        return f"whether the call of `{procedure.name}` raises: {str(told).splitlines()[0]}"
    for (label, own), (_, theirs) in zip(one, other, strict=True):
        if own.shape != theirs.shape:
            return f"the shape of `{label}`: {own.shape} became {theirs.shape}"
        wrong = np.argwhere(~alike(own, theirs, rtol, atol))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            return f"{element(label, at)}: {shown(own[at])} became {shown(theirs[at])}"
    return ""
