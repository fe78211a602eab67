"""`f.compile(...)`: a function for given tensors, to be linked into contexts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..backends.runtime.routine import Compiled
from ..backends.runtime.slots import Given, Resident, Slot
from ..backends.runtime.tensor import FleetingTensor
from ..lowering.ir.assignments import Parameter
from ..lowering.ir.node import Node
from .elaborate.inputs import MERGED
from .elaborate.values import Path
from .forms import Arguments, Specialisation
from .results import returned


def compiled(form: Specialisation, arguments: Arguments, name: str) -> Compiled:
    """Return a form as compiled for the tensors among its arguments and its captured names.

    Arrays and numbers among the arguments only say what a call will give; what the function
    captures is taken as it is now.
    """
    parameters = form.procedure.parameters
    slots = tuple(
        _slot(form, arguments, path, parameter)
        for path, parameter in zip(form.typed.passed, parameters, strict=True)
    )
    return Compiled(
        name, form.codes, slots,
        lambda results: returned(form.typed.returns, results, arguments, form.find),
        tuple(_fleeting(form, arguments)),
    )  # fmt: skip


def _fleeting(form: Specialisation, arguments: Arguments) -> Iterator[tuple[FleetingTensor, Node]]:
    """Yield the tensors that a form has only while it runs, with the arrays that stand for them."""
    nodes = [node for node in form.procedure.locals if node.request is not None]
    for path in form.typed.used:
        tensor = form.find(path)(arguments)
        if isinstance(tensor, FleetingTensor):
            found = [node for node in nodes if node.label == _label(path)]
            if len(found) == 1:  # of two with one name nobody can say which is which
                yield tensor, found[0]


def _slot(form: Specialisation, arguments: Arguments, path: Path, parameter: Parameter) -> Slot:
    owner = path.owner
    if owner is not None:
        name = str(path.steps[-1])[1:]
        tensor = form.find(owner)(arguments)
        return Resident(tensor.field(name.removesuffix(MERGED)), name.endswith(MERGED))
    value: Any = form.find(path)(arguments)
    if path.captured or path.steps or not parameter.node.shape:
        return Given(str(path), value if isinstance(value, np.ndarray) else np.asarray(value))
    return Given(str(path))


def _label(path: Path) -> str:
    """Return the last name on the way to a tensor, which is what its value is called."""
    return [path.root, *(step for step in path.steps if isinstance(step, str))][-1]
