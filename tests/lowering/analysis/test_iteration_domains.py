"""Points of loops: as many as there are, with the columns that were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.iteration_domains import (
    CallValues,
    add_let_values,
    call_values,
    domain_points,
    evaluate_at,
    evaluate_index,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Break, Let, Parameter
from plusequals.lowering.ir.expressions import Apply, Const, Expr, Position, Read, Select
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.loops import For, If, Kernel, Program, While
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

I, J, N = Symbol("i", 0), Symbol("j", 1), Symbol("n", 2)
TRUE = Const(True, dtypes.bool_)


def loop(symbol: Symbol, lo: Affine, hi: Affine, step: int = 1) -> For:
    return For(symbol, lo, hi, step, ())


def test_rounds_of_every_step() -> None:
    for lo, hi, step in [(0, 10, 1), (0, 10, 3), (9, -1, -1), (9, 0, -4), (5, 5, 1), (7, 3, 2)]:
        one = (loop(I, const(lo), const(hi), step),)
        expected = list(range(lo, hi, step))
        assert domain_points(one, (), frozenset(), CallValues()).times == len(expected)
        column = domain_points(one, (), frozenset({I}), CallValues())
        assert column.columns.get(I, np.array([])).tolist() == expected


def test_triangles_and_sizes() -> None:
    inside = (loop(I, const(0), var(N)), loop(J, var(I), var(N)))
    known = CallValues({N: 5})
    found = domain_points(inside, (), frozenset({J}), known)
    assert found.times == 15
    pairs = zip(found.columns[I].tolist(), found.columns[J].tolist(), strict=True)
    assert list(pairs) == [(i, j) for i in range(5) for j in range(i, 5)]
    unknown = domain_points(inside, (), frozenset(), CallValues())
    assert unknown.times == 1
    assert {one.text for one in unknown.assumed} == {
        "how often this loop runs is known only at run time: one iteration is counted"
    }


def test_a_loop_whose_end_alone_is_unknown_begins_where_its_rows_do() -> None:
    inside = (loop(I, const(0), const(3)), loop(J, var(I), var(N)))
    found = domain_points(inside, (), frozenset({J}), CallValues())
    assert found.columns[J].tolist() == [0, 1, 2]
    assert "known only at run time" in found.assumed[0].text


def test_tests_of_indices_count_and_tests_of_data_are_assumed() -> None:
    inside = (loop(I, const(0), const(10)),)
    small = Apply(OPS["lt"], (Position(var(I)), Const(4, dtypes.int64)), dtypes.bool_)
    assert domain_points(inside, (small,), frozenset(), CallValues()).times == 4
    x = Node(0, "x", (const(10),), dtypes.bool_)
    data = Read(x, (var(I),))
    found = domain_points((*inside, If(data, ())), (data,), frozenset(), CallValues())
    assert found.times == 10
    assert "as always done" in found.assumed[0].text


def test_loops_that_are_left_and_loops_without_count() -> None:
    left = For(I, const(0), const(10), 1, (If(TRUE, (Break(),)),))
    found = domain_points((While((), TRUE, ()), left), (), frozenset(), CallValues())
    assert found.times == 10
    assert len(found.assumed) == 2


def test_many_points_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_DOMAIN_POINTS", 100)
    inside = (loop(I, const(0), const(1000)), loop(J, const(0), var(I)))
    found = domain_points(inside, (), frozenset(), CallValues())
    assert found.is_sampled
    assert len(found.weight) <= 101
    assert found.times == pytest.approx(499500, rel=0.01)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (var(I) * 2 + 1, [1, 3, 5, 7]),
        (minimum(var(I), var(N)), [0, 1, 2, 2]),
        (maximum(var(I), var(N)), [2, 2, 2, 3]),
        (floordiv(var(I), const(2)), [0, 0, 1, 1]),
        (mod(var(I), const(3)), [0, 1, 2, 0]),
        (multiply(var(I), var(N)), [0, 2, 4, 6]),
    ],
)
def test_numbers_of_index_expressions(index: Affine, expected: list[int]) -> None:
    columns = {I: np.arange(4)}
    found = evaluate_index(index, columns, CallValues({N: 2}))
    assert found is not None
    assert found.tolist() == expected
    assert evaluate_index(index, {}, CallValues({N: 2})) is None


def test_values_and_the_integers_that_are_read_once() -> None:
    n = Node(0, "n", (), dtypes.int64)
    count: Expr = Apply(OPS["max"], (Read(n, ()), Const(3, dtypes.int64)), dtypes.int64)
    known = CallValues({}, {0: 5})
    assert evaluate_at(count, {}, known) == 5
    assert evaluate_at(count, {}, CallValues()) is None
    assert evaluate_at(Select(TRUE, count, Const(1, dtypes.int64)), {}, known) == 5
    assert (
        evaluate_at(Apply(OPS["exp"], (Const(1.0, dtypes.float64),), dtypes.float64), {}, known)
        is None
    )
    lets = (Let(I, count), Let(J, Apply(OPS["add"], (Position(var(I)), count), dtypes.int64)))
    program = Program("f", (), (), (), (Kernel("f", lets),))
    assert add_let_values(program, known).symbols == {I: 5, J: 10}
    assert add_let_values(program, CallValues()).symbols == {}


def test_a_call_tells_extents_and_numbers() -> None:
    x = Node(0, "x", (var(N), const(3)), dtypes.float32)
    n, z = Node(1, "n", (), dtypes.int64), Node(2, "z", (), dtypes.complex64)
    parameters = [Parameter(x, True), Parameter(n, False), Parameter(z, False)]
    known = call_values(parameters, [np.zeros((4, 3)), 7, 2j])
    assert known == CallValues({N: 4}, {1: 7})
    assert call_values([Parameter(n, True)], [np.array(7)]) == CallValues()
