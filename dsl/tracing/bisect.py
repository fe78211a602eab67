"""Compiler bisection: the first pass or backend stage that changed a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...backends.device_arrays.device_array import PlacedArray
from ...backends.interface import Array, HasKernels, HasTarget
from ...backends.runtime.call_arguments import as_device_array, copy_to_host
from ...backends.runtime.state import RUNTIME
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
from ..dispatch.execute import prepare_arguments
from ..specialize.variants import Match
from .differences import equal_within
from .records import format_element, to_text

RunFunction = Callable[[Sequence[Array | None]], tuple[Array, ...]]
InputArrays = Sequence[Array | PlacedArray]


@dataclass(frozen=True, slots=True, repr=False)
class Bisection:
    """The first stage after which a result differs, and the difference."""

    stage: str
    """`lower`, the name of a pass, or `compile` for the backend."""
    what: str
    """The first element that differs, and both values."""
    before: str
    """The input of the stage, as text."""
    after: str
    """The output of the stage, as text."""

    def __str__(self) -> str:
        return f"`{self.stage}` changed {self.what}"

    __repr__ = __str__


def find_first_change(
    match: Match, arguments: Mapping[str, Any], rtol: float, atol: float
) -> Bisection | None:
    """Return the first stage that changed a result of a call, None where none did.

    The arguments are not modified. The interpreter runs the loops after each pass.
    """
    specialization = match.specialization
    given, _ = prepare_arguments(specialization, match.given(arguments), arguments)
    procedure = specialization.procedure
    expected = _run_on_copies(
        lambda arrays: run_procedure(procedure, arrays, _discard), procedure, given
    )
    stages: list[tuple[str, Program]] = []
    code = RUNTIME.compile(procedure, specialization.situation.backend)
    target = target_of(specialization.situation.backend)
    is_device = isinstance(code, HasKernels)

    def observe(name: str, program: Program) -> None:
        stages.append((name, program))

    loops, _ = optimize(
        lower(select_gpu_branches(procedure) if is_device else procedure), target, observe
    )
    if is_device:
        map_to_device(loops, target, observe)
    before: Program | None = None
    for name, current in stages:
        if current == before:
            continue
        outcome = _run_on_copies(_interpret(current), procedure, given)
        if difference := _first_difference(procedure, expected, outcome, rtol, atol):
            text = "" if before is None else print_program(before)
            return Bisection(name, difference, text, print_program(current))
        before = current
    outcome = _run_on_copies(code.run, procedure, given, _copy_on_device)
    if difference := _first_difference(procedure, expected, outcome, rtol, atol):
        text = "" if before is None else print_program(before)
        return Bisection("compile", difference, text, code.text)
    return None


def target_of(name: str) -> Target:
    """Return the target that loops are optimized for by the backend of that name."""
    backend = RUNTIME.backend(name)
    return backend.target() if isinstance(backend, HasTarget) else HOST


def _interpret(program: Program) -> RunFunction:
    return lambda arrays: run_program(program, arrays, _discard)


def _discard(text: str) -> None:
    """Discard output: the function is run many times."""


def _copy_on_device(array: Array | PlacedArray) -> Any:
    """Return a copy on the same device and with the same layout."""
    return as_device_array(array).copy() if isinstance(array, PlacedArray) else copy_to_host(array)


def _run_on_copies(
    run: RunFunction,
    procedure: Procedure,
    given: InputArrays,
    copy: Callable[[Any], Any] = copy_to_host,
) -> tuple[tuple[str, Array], ...] | str:
    """Return written arrays and results of a run, by name; the text of an error where it fails."""
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


def _first_difference(
    procedure: Procedure,
    left: tuple[tuple[str, Array], ...] | str,
    right: tuple[tuple[str, Array], ...] | str,
    rtol: float,
    atol: float,
) -> str:
    """Return the first element that differs, with both values; empty where none does."""
    if isinstance(left, str) or isinstance(right, str):
        if isinstance(left, str) and isinstance(right, str):
            return ""
        message = left if isinstance(left, str) else right
        return f"whether the call of `{procedure.name}` raises: {str(message).splitlines()[0]}"
    for (label, old), (_, new) in zip(left, right, strict=True):
        if old.shape != new.shape:
            return f"the shape of `{label}`: {old.shape} became {new.shape}"
        wrong = np.argwhere(~equal_within(old, new, rtol, atol))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            return f"{format_element(label, at)}: {to_text(old[at])} became {to_text(new[at])}"
    return ""
