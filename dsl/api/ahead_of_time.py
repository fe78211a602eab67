"""`f.compile(...)`: a function for given tensors, to be linked into contexts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...backends.gpu.device_array import PlacedArray
from ...backends.runtime.code_variants import CodeVariants
from ...backends.runtime.cross_routine_inlining import inline_producers
from ...backends.runtime.parameter_slots import Argument, Resident, Slot, TransientField
from ...backends.runtime.routine import Compiled
from ...base.diagnostic import CdTypeError, Diagnostic, Label
from ...lowering.ir.assignments import Block, Parameter, Procedure
from ..dispatch.execute import returned
from ..elaborate.captures.inputs import MERGED
from ..elaborate.typed import Updating
from ..instrument.recording import recording_of
from ..specialize.variants import Arguments, Getter, Specialisation
from ..values.values import Path

LONGEST = 80
"""A longer name of a routine is cut."""


def compiled(
    form: Specialisation, arguments: Arguments, name: str, inline: object = None
) -> Compiled:
    """Return a form as compiled for the tensors among its arguments and its captured names.

    Arrays and numbers among the arguments only say what a call will give; what the function
    captures is taken as it is now. `inline` says what computes its virtual tensors.
    """
    parameters = form.procedure.parameters
    if isinstance(form.typed.returns, Updating):
        one = form.typed.returns.updates[0]
        raise CdTypeError(
            Diagnostic(
                "CD0418", f"`{one.owner}.{one.name}` is assigned, and a linked routine cannot set "
                "attributes of objects", (Label(form.procedure.span),),
                helps=("call the function", "or hold the number in a tensor: `pe.tensor(0.0)`"),
            )
        )  # fmt: skip
    slots = tuple(
        _slot(form, arguments, path, parameter)
        for path, parameter in zip(form.typed.passed, parameters, strict=True)
    )
    made = Compiled(
        name, form.codes, slots,
        partial(_returned, form, arguments),
        tuple(_fleeting(form, arguments)),
    )  # fmt: skip
    return made if inline is None else inline_producers(made, inline, _codes)


def name_of(function: str, form: Specialisation) -> str:
    """Return what a routine is called that is given no name: the function's name, and the texts of
    its comments, those of functions that it calls left out."""
    texts = (
        one.comment for one in form.typed.procedure.body
        if isinstance(one, Block) and one.span.text.startswith("with")
    )  # fmt: skip
    words = (re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") for text in texts)
    told = "_then_".join(dict.fromkeys(filter(None, words)))
    return f"{function}_{told}"[:LONGEST].rstrip("_") if told else function


def _returned(
    form: Specialisation, arguments: Arguments, results: Sequence[Any], given: Mapping[str, Any]
) -> Any:
    """Return what Python gets of a call: of an argument the one that the call gave."""

    def find(path: Path) -> Getter:
        name = str(path)
        return (lambda _: given[name]) if name in given else form.find(path)

    return returned(form.typed.returns, results, arguments, find)


def _codes(procedure: Procedure) -> CodeVariants:
    """Return what a procedure becomes that was put together of others."""
    return CodeVariants(procedure, partial(recording_of, procedure, lambda recording: recording))


def _fleeting(form: Specialisation, arguments: Arguments) -> Iterator[TransientField]:
    """Yield what a form has of tensors only while it runs, with the arrays that stand for it."""
    nodes = {node.id: node for node in (*form.procedure.locals, *form.procedure.results)}
    for path, node in form.typed.fleeting.items():
        owner = path.owner
        if owner is not None and node.id in nodes:
            yield TransientField(
                form.find(owner)(arguments), str(path.steps[-1])[1:], nodes[node.id]
            )


def _slot(form: Specialisation, arguments: Arguments, path: Path, parameter: Parameter) -> Slot:
    owner = path.owner
    if owner is not None:
        name = str(path.steps[-1])[1:]
        tensor = form.find(owner)(arguments)
        return Resident(tensor.field(name.removesuffix(MERGED)), name.endswith(MERGED))
    value: Any = form.find(path)(arguments)
    if path.captured or path.steps or not parameter.node.shape:
        known = isinstance(value, np.ndarray | PlacedArray)
        return Argument(str(path), value if known else np.asarray(value))
    return Argument(str(path))
