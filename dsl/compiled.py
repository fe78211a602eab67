"""`f.compile(...)`: a function for given tensors, to be linked into contexts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.runtime.routine import Compiled, Given, Resident, Slot
from ..lowering.ir.assignments import Parameter
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
    )  # fmt: skip


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
