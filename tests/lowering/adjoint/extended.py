"""Procedures in extended precision: float64 is NumPy's long double, complex128 two of them.

Differences of what they give are as good as derivatives in float64, which differences in float64
are not: with steps of 1e-5 half of their digits are rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from plusequals.lowering.ir import dtypes, evaluate, interpret
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.evaluate import State
from plusequals.lowering.ir.ops import OPS, Op
from plusequals.lowering.ir.scalars import scalar_function

WIDE = {dtypes.float64: np.dtype(np.longdouble), dtypes.complex128: np.dtype(np.clongdouble)}
IS_WIDER = bool(np.finfo(np.longdouble).eps < 1e-18)
"""Whether this machine has such a type: some compilers take float64 for it."""


class Extended:
    """A procedure that runs on long doubles."""

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure
        with extended():
            self.body = interpret._compile_body(procedure.body)

    def run(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """Run on copies of arrays for the parameters; return the results."""
        p, state = self.procedure, State(lambda text: None)
        with extended(), np.errstate(all="ignore"):
            for parameter, array in zip(p.parameters, arrays, strict=True):
                node = parameter.node
                interpret._bind(state, node, np.array(array, node.dtype.numpy))
            for node in (*p.locals, *p.results):
                if node.static_shape is not None:
                    state.arrays[node.id] = np.zeros(node.static_shape, node.dtype.numpy)
            self.body(state)
        return [state.array(node) for node in p.results]


@contextmanager
def extended() -> Iterator[None]:
    """Interpret float64 and complex128 as long doubles inside of the `with`."""
    modules: tuple[Any, ...] = (evaluate, interpret)
    held = {dtype: dtype.numpy for dtype in WIDE}
    try:
        for dtype, wide in WIDE.items():
            dtype.__dict__["numpy"] = wide
        for module in modules:
            module.scalar_function = _function
        yield
    finally:
        for dtype, usual in held.items():
            dtype.__dict__["numpy"] = usual
        for module in modules:
            module.scalar_function = scalar_function


def _function(op: Op, dtype: DType) -> Callable[..., Any]:
    """Return what computes an operation: where NumPy, or `math`, would round to float64, another
    function."""
    if dtype in WIDE or op.name == "of_rank":
        if op.name in _OF_REALS:
            return _OF_REALS[op.name]
        if dtype is dtypes.complex128 and op.name == "mul":
            return op.meaning
    return scalar_function(op, dtype)


def _erf(x: Any) -> Any:
    """Return the error function by a series of positive terms.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6.
    """
    if not abs(x) < 7:
        return type(x)(math.erf(x))
    term = total = type(x)(x)
    n = 0
    while abs(term) > abs(total) * type(x)(1e-20):
        n += 1
        term = term * 2 * x * x / (2 * n + 1)
        total += term
    return 2 / np.sqrt(4 * np.arctan(type(x)(1))) * np.exp(-x * x) * total


def _complex(real: Any, imag: Any) -> Any:
    both = np.zeros((), np.clongdouble)
    both.real, both.imag = real, imag
    return both[()]


_OF_REALS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("pow", "whole_pow", "half_pow"), np.power),
    "fma": lambda a, b, c: a * b + c,
    "erf": _erf,
    "erfc": lambda x: 1 - _erf(x),
    "complex": _complex,
    # the bits of a float64 are integers, in the order of the numbers
    **{name: (lambda x, of=OPS[name].meaning: of(np.float64(x))) for name in ("rank", "ordinal")},
    "of_rank": lambda x: np.longdouble(OPS["of_rank"].meaning(x)),
}
