"""Ahead-of-time compilation, `f.compile(...)`: functions for tensors, linked into contexts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...backends.device_arrays.device_array import PlacedArray
from ...backends.runtime.code_variants import CodeVariants
from ...backends.runtime.cross_routine_inlining import inline_producers
from ...backends.runtime.parameter_slots import Argument, Resident, Slot, TransientField
from ...backends.runtime.routine import Compiled
from ...base.diagnostic import CdTypeError, Diagnostic, Label
from ...lowering.ir.assignments import Block, Parameter, Procedure
from ..dispatch.execute import build_result
from ..elaborate.captures.inputs import MERGED
from ..elaborate.typed import Updating
from ..instrument.recording import compile_recording
from ..specialize.variants import Arguments, Getter, Specialization
from ..values.values import Path

MAX_NAME_LENGTH = 80
"""The longest name of a routine; longer ones are truncated."""


def compile_for_tensors(
    specialization: Specialization, arguments: Arguments, name: str, inline: object = None
) -> Compiled:
    """Return a specialization compiled for the tensors among its arguments and captured values.

    Arrays and numbers among the arguments only determine the signature of calls; captured values
    are bound as they are now. `inline` maps virtual tensors to the functions that compute them.
    """
    parameters = specialization.procedure.parameters
    if isinstance(specialization.typed.returns, Updating):
        new = specialization.typed.returns.updates[0]
        raise CdTypeError(
            Diagnostic(
                "CD0418", f"`{new.owner}.{new.name}` is assigned, and a linked routine cannot set "
                "attributes of objects", (Label(specialization.procedure.span),),
                helps=("call the function", "or hold the number in a tensor: `pe.tensor(0.0)`"),
            )
        )  # fmt: skip
    slots = tuple(
        _make_slot(specialization, arguments, path, parameter)
        for path, parameter in zip(specialization.typed.passed, parameters, strict=True)
    )
    result = Compiled(
        name, specialization.codes, slots,
        partial(_returned, specialization, arguments),
        tuple(_fleeting_fields(specialization, arguments)),
    )  # fmt: skip
    return result if inline is None else inline_producers(result, inline, _composed_codes)


def default_name(function: str, specialization: Specialization) -> str:
    """Return the default name of a routine: the function's name and the texts of its comments,
    without those of called functions."""
    texts = (
        statement.comment for statement in specialization.typed.procedure.body
        if isinstance(statement, Block) and statement.span.text.startswith("with")
    )  # fmt: skip
    words = (re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") for text in texts)
    comment_text = "_then_".join(dict.fromkeys(filter(None, words)))
    return f"{function}_{comment_text}"[:MAX_NAME_LENGTH].rstrip("_") if comment_text else function


def _returned(
    specialization: Specialization,
    arguments: Arguments,
    results: Sequence[Any],
    given: Mapping[str, Any],
) -> Any:
    """Return the Python result of a call; returned arguments are those of the call."""

    def find(path: Path) -> Getter:
        name = str(path)
        return (lambda _: given[name]) if name in given else specialization.find(path)

    return build_result(specialization.typed.returns, results, arguments, find)


def _composed_codes(procedure: Procedure) -> CodeVariants:
    """Return the code variants of a procedure that was composed of others."""
    return CodeVariants(
        procedure, partial(compile_recording, procedure, lambda recording: recording)
    )


def _fleeting_fields(
    specialization: Specialization, arguments: Arguments
) -> Iterator[TransientField]:
    """Yield the tensor fields that exist only during a run, with their nodes."""
    nodes = {
        node.id: node
        for node in (*specialization.procedure.locals, *specialization.procedure.results)
    }
    for path, node in specialization.typed.fleeting.items():
        owner = path.owner
        if owner is not None and node.id in nodes:
            yield TransientField(
                specialization.find(owner)(arguments), str(path.steps[-1])[1:], nodes[node.id]
            )


def _make_slot(
    specialization: Specialization, arguments: Arguments, path: Path, parameter: Parameter
) -> Slot:
    owner = path.owner
    if owner is not None:
        name = str(path.steps[-1])[1:]
        tensor = specialization.find(owner)(arguments)
        return Resident(tensor.field(name.removesuffix(MERGED)), name.endswith(MERGED))
    value: Any = specialization.find(path)(arguments)
    if path.captured or path.steps or not parameter.node.shape:
        is_array = isinstance(value, np.ndarray | PlacedArray)
        return Argument(str(path), value if is_array else np.asarray(value)[()])
    return Argument(str(path))
