"""From code to something that can be called with arrays: results allocated, arguments checked."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...base.diagnostic import CdError, CdInternalError, CdMemoryError, Diagnostic
from ...lowering.ir.assignments import Parameter, Procedure
from ...lowering.ir.node import Node
from ..cc.backend import CompiledC
from ..gpu.device_array import Placed
from .state import RUNTIME, Runtime

if TYPE_CHECKING:
    from ..interface import Array, Code


class Callee:
    """Code and what it expects: parameters in call order, then results, which it makes.

    The code is there from the start, or is made when it is first asked for.
    """

    __slots__ = ("_code", "_make", "parameters", "results", "seconds")

    def __init__(self, procedure: Procedure, make: Callable[[], Code]) -> None:
        self.parameters: tuple[Parameter, ...] = procedure.parameters
        self.results: tuple[Node, ...] = procedure.results
        self.seconds = 0.0
        """What it took to make the code; 0 before that."""
        self._make = make
        self._code: Code | None = None

    @property
    def code(self) -> Code:
        """The code; raises CdBackendError where it cannot be compiled."""
        code = self._code
        if code is None:
            started = time.perf_counter()
            code = self._code = self._make()
            self.seconds = time.perf_counter() - started
        return code

    def running(self, code: Code) -> Callee:
        """Return other code for the same arrays, ready to call."""
        made = copy.copy(self)
        made._code = code
        return made

    def __call__(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run on arrays for the parameters; return new arrays, one for each result.

        Raises the `CdError` of a check that failed, and CdInternalError for an array that is not
        what was compiled for: compiled code trusts its arguments.
        """
        for parameter, array in zip(self.parameters, arrays, strict=True):
            if why := unfit(parameter, array):
                raise _wrong(f"`{parameter.node.label}` {why}")
        return self.run(arrays)

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run on arrays that are known to be what was compiled for; otherwise as a call."""
        try:
            return self.code.run((*arrays, *(None for _ in self.results)))
        except CdError:
            raise
        except MemoryError as problem:
            message = f"there is not enough memory for what the function makes: {problem}"
            helps = ("work on smaller pieces, or use a smaller element type: `np.float32`",)
            raise CdMemoryError(Diagnostic("CD0705", message, helps=helps)) from None


def link(
    procedure: Procedure,
    backend: str | None = None,
    runtime: Runtime = RUNTIME,
    later: bool = False,
) -> Callee:
    """Return the procedure, ready to call; raises CdBackendError where it cannot be compiled.

    It is compiled now, or `later`, when the code is first asked for.
    """
    made = Callee(procedure, partial(runtime.compile, procedure, backend))
    if not later:
        _ = made.code
    return made


def prepare(backend: str | None = None, runtime: Runtime = RUNTIME) -> None:
    """Begin what takes its time and that the first call of what is linked next will want."""
    with contextlib.suppress(CdError):  # it is raised where it stands in the way
        found = runtime.backend(backend)
        if isinstance(found, CompiledC):
            found.prepare()


def unfit(parameter: Parameter, array: Array | Placed) -> str | None:
    """Return how an array differs from the node it is for, None where it does not."""
    node, shape = parameter.node, parameter.node.static_shape
    if array.dtype != node.dtype.numpy:
        return f"has elements of type {array.dtype}, compiled for {node.dtype.name}"
    if array.ndim != node.rank or (shape is not None and array.shape != shape):
        return f"has shape {array.shape}, compiled for {shape}"
    if isinstance(array, Placed):
        if array.strides == node.strides or not array.size:
            return None
        strides = array.strides, node.strides
        ways = ("C order" if one is None else f"strides {one}" for one in strides)
        return "lies in {}, compiled for {}".format(*ways)
    flags = array.flags
    if node.strides is None and not flags.c_contiguous:
        return "is not in C order, compiled for that"
    if node.strides is not None and array.size and not _strided(array, node.strides):
        return f"has strides in bytes {array.strides}, compiled for {node.strides} in elements"
    if not flags.aligned or (parameter.written and not flags.writeable):
        return "is misaligned or read-only"
    return None


def _strided(array: Array, strides: tuple[int, ...]) -> bool:
    """Whether an array has these strides in elements, along the axes where that matters."""
    steps = zip(array.strides, strides, array.shape, strict=True)
    return all(extent == 1 or step == s * array.itemsize for step, s, extent in steps)


def _wrong(message: str) -> CdInternalError:
    helps = ("this is a fault of plusequals, not of your function: please report it",)
    return CdInternalError(Diagnostic("CD0903", message, helps=helps))
