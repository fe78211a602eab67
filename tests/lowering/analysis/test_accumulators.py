"""Accumulators: which operations may be taken apart, from what, and by whom loops are read."""

from __future__ import annotations

import numpy as np

from plusequals.lowering.analysis.accumulators import (
    accumulation_op,
    is_reassociable,
    neutral_element,
    write_only_arrays,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.ops import ARGMAX, OPS

from ..shown import lowered


def test_neutral_elements_keep_signs_of_zero() -> None:
    for op, dtype in (("add", dtypes.float32), ("mul", dtypes.float64), ("max", dtypes.float32)):
        start = neutral_element(OPS[op], dtype).value
        for value in (-0.0, 0.0, 1.5, -np.inf, np.inf):
            got = OPS[op].meaning(dtype.numpy.type(start), dtype.numpy.type(value))
            assert got == value and np.signbit(got) == np.signbit(value)
    assert neutral_element(OPS["add"], dtypes.complex64).value == 0
    assert neutral_element(OPS["min"], dtypes.uint8).value == 255
    assert neutral_element(OPS["and"], dtypes.bool_).value is True


def test_which_operations_come_apart() -> None:
    assert is_reassociable(OPS["add"], dtypes.float32, exact=False)
    assert not is_reassociable(OPS["add"], dtypes.float32, exact=True)
    assert is_reassociable(OPS["add"], dtypes.int32, exact=True)
    assert is_reassociable(OPS["max"], dtypes.float32, exact=True)
    assert is_reassociable(ARGMAX, dtypes.float32, exact=True)
    assert not is_reassociable(OPS["sub"], dtypes.int32, exact=False)


def test_arrays_that_a_loop_only_writes() -> None:
    text = "for i in range(9):\n    y[p[i]] += 1\n    z[i] = x[i]"
    program = lowered(text, y="i64[9]", z="f32[9]", x="f32[9]", p="i64[9]")
    loop = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    assert [node.label for node in write_only_arrays(loop, frozenset())] == ["y", "z"]
    ops = [accumulation_op(loop, node) for node in write_only_arrays(loop, frozenset())]
    assert [op and op.name for op in ops] == ["add", None]


def test_an_array_that_is_read_too_leaves_none() -> None:
    text = "for i in range(1, 9):\n    y[i] = x[i]\n    z[i] = y[i - 1]"
    program = lowered(text, y="f32[9]", z="f32[9]", x="f32[9]")
    loop = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    assert write_only_arrays(loop, frozenset()) == []
