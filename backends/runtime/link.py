"""Linking: callable code that checks its arguments and allocates its results."""

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
from .. import capabilities
from ..device_arrays.device_array import PlacedArray
from .state import RUNTIME, Runtime

if TYPE_CHECKING:
    from ..interface import Array, Code


class Callee:
    """Code with its signature: parameters in call order, then results, which it allocates.

    The code is compiled lazily, on first use.
    """

    __slots__ = ("_code", "_make", "parameters", "results", "seconds")

    def __init__(self, procedure: Procedure, make: Callable[[], Code]) -> None:
        self.parameters: tuple[Parameter, ...] = procedure.parameters
        self.results: tuple[Node, ...] = procedure.results
        self.seconds = 0.0
        """The compile time; 0 before that."""
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
        """Return a callee of other code with the same signature."""
        callee = copy.copy(self)
        callee._code = code
        return callee

    def __call__(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run on arrays for the parameters; return new arrays, one for each result.

        Raises the `CdError` of a failed check, and CdInternalError for an array that does not match
        its parameter: compiled code does not check its arguments.
        """
        for parameter, array in zip(self.parameters, arrays, strict=True):
            if why := layout_mismatch(parameter, array):
                raise _internal_error(f"`{parameter.node.label}` {why}")
        return self.run(arrays)

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run like a call, with arrays that are known to match their parameters."""
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
    """Return the callee of a procedure; raises CdBackendError where it cannot be compiled.

    It is compiled now, or lazily where `later` is set.
    """
    callee = Callee(procedure, partial(runtime.compile, procedure, backend))
    if not later:
        _ = callee.code
    return callee


def prepare(backend: str | None = None, runtime: Runtime = RUNTIME) -> None:
    """Start slow initialization that the first call of a linked procedure will need."""
    with contextlib.suppress(CdError):  # it is raised on first use
        instance = capabilities.preparation(runtime.backend(backend))
        if instance is not None:
            instance.prepare()


def layout_mismatch(parameter: Parameter, array: Array | PlacedArray) -> str | None:
    """Return how an array differs from its parameter's node, None where it matches."""
    node, shape = parameter.node, parameter.node.static_shape
    if array.dtype != node.dtype.numpy:
        return f"has elements of type {array.dtype}, compiled for {node.dtype.name}"
    if array.ndim != node.rank or (shape is not None and array.shape != shape):
        return f"has shape {array.shape}, compiled for {shape}"
    if isinstance(array, PlacedArray):
        if array.strides == node.strides or not array.size:
            return None
        strides = array.strides, node.strides
        layouts = ("C order" if layout is None else f"strides {layout}" for layout in strides)
        return "lies in {}, compiled for {}".format(*layouts)
    flags = array.flags
    if node.strides is None and not flags.c_contiguous:
        return "is not in C order, compiled for that"
    if node.strides is not None and array.size and not _has_strides(array, node.strides):
        return f"has strides in bytes {array.strides}, compiled for {node.strides} in elements"
    if not flags.aligned or (parameter.written and not flags.writeable):
        return "is misaligned or read-only"
    return None


def _has_strides(array: Array, strides: tuple[int, ...]) -> bool:
    """Whether an array has these strides in elements, except along axes of one element."""
    steps = zip(array.strides, strides, array.shape, strict=True)
    return all(extent == 1 or step == s * array.itemsize for step, s, extent in steps)


def _internal_error(message: str) -> CdInternalError:
    helps = ("this is a fault of plusequals, not of your function: please report it",)
    return CdInternalError(Diagnostic("CD0903", message, helps=helps))
