"""Nests that accumulate: their parts, and what is none."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.analysis.accumulation import Accumulation, find_accumulation
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.printer import print_expr
from plusequals.lowering.passes.contract_arrays import contract_arrays

from ..shown import lowered

ARRAYS = {
    "y": "f32[8, 9]", "a": "f32[8, 5]", "b": "f32[5, 9]", "v": "f32[9]", "n": "i64[8, 9]",
    "k": "i64[8, 5]",
}  # fmt: skip


def made(text: str) -> Program:
    return lowered(text, **{name: spec for name, spec in ARRAYS.items() if f"{name}[" in text})


def parts(program: Program) -> Accumulation | None:
    nests = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    assert len(nests) == 1
    return find_accumulation(nests[0], fresh_for(program))


def test_an_element_becomes_a_scalar_that_is_stored_at_the_end() -> None:
    found = parts(made("y[i, j] += a[i, k] * b[k, j]"))
    assert found is not None
    assert [loop.symbol.name for loop in (*found.outer_loops, *found.depth)] == ["i", "j", "k"]
    assert found.element is not None
    assert (found.element.node.label, found.acc.label, found.acc.rank) == ("y", "y_sum", 0)
    assert [stmt.access.node for stmt in found.start] == [found.acc]
    assert len(found.rest) == 1


def test_a_scalar_stays_itself() -> None:
    found = parts(contract_arrays(made("y[i, j] = sum(a[i, k] * b[k, j])")).program)
    assert found is not None
    assert found.element is None
    assert print_expr(found.start[0].value) == "0.0"
    assert found.update.access.node == found.acc


NONE = {
    "no floats": "n[i, j] = sum(k[i, l] + j)",
    "no terms": "y[i, j] = v[j]",
    "a term of the sum so far": (
        "for i in range(8):\n    for j in range(9):\n        for k in range(5):\n"
        "            y[i, j] += y[i, j] * b[k, j]"
    ),
    "a guard": "y[i, j] = sum[k, k != i](a[i, k] * b[k, j])",
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_none(name: str) -> None:
    assert parts(made(NONE[name])) is None


def test_what_a_name_holds_of_an_earlier_iteration_is_no_part_of_a_term() -> None:
    text = """def f(x, n):
    s = 0.0
    for r in range(40):
        for c in range(50):
            s += x[r, c]
            k = np.int64(np.isnan(s))
            n[0] += k
    return s
"""
    x, n = np.arange(2000.0).reshape(40, 50), np.zeros(1, np.int64)
    x[39, 46] = np.nan
    assert np.isnan(pe.cd_from_source(text, {"np": np})(x, n)) and n[0] == 4
