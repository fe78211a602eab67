"""What a cell was computed from: proven, guarded, missed, or not to be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.definitions import (
    Layer,
    MaybeUnwritten,
    NotInvertible,
    compare_indices,
    find_layer,
    reaching_value,
    zero_of,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Const, Dynamic, Position
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, var
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.printer import print_expr

from ..ir.build import node
from ..shown import lowered

J, K = Symbol("j", 90), Symbol("k", 91)
KNOWN = (Range(J, const(0), const(8)), Range(K, const(0), const(8)))


def layers(body: str, **more: str) -> tuple[Layer, ...]:
    program = lowered(body, x="f32[8]", p="i64[8]", **more)
    found = (find_layer(stmt) for stmt in program.kernels[0].body)
    return tuple(one for one in found if one is not None)


def at(made: tuple[Layer, ...], *index: Affine) -> str:
    return print_expr(reaching_value(made, index, KNOWN, (), zero_of(made[0].node.dtype)))


FOUND = [
    ("y[i] = x[i] + 1", (var(J),), "x[j] + 1.0"),
    ("y[i] = x[7 - i]", (var(J),), "x[-j + 7]"),
    ("y[7 - i] = x[i]", (const(2),), "x[5]"),
    ("y[1:] = x[1:]", (var(J),), "x[j] if 1 <= j else 0.0"),
    ("y[:5] = x[:5]", (var(J),), "x[j] if j < 5 else 0.0"),
    ("y[:5] = x[:5]", (const(6),), "0.0"),
    ("y[::2] = x[::2]", (var(J) * 2,), "x[2*j] if 2*j < 8 else 0.0"),
    ("y[i] = 1\ny[3] = x[0]", (var(J),), "x[0] if j == 3 else 1.0"),
    ("y[i] = 1\ny[3] = x[0]", (const(3),), "x[0]"),
    ("y[i] = 1\ny[3] = x[0]", (const(4),), "1.0"),
    ("if x[i] > 0:\n    y[i] = x[i]", (var(J),), "x[j] if x[j] > 0.0 else 0.0"),
    ("for t in range(6, 1, -1):\n    y[t] = x[t]", (const(6),), "x[6]"),
    ("for t in range(6, 1, -1):\n    y[t] = x[t]", (const(2),), "x[2]"),
    ("for t in range(6, 1, -1):\n    y[t] = x[t]", (const(7),), "0.0"),
    ("for t in range(6, 1, -1):\n    y[t] = x[t]", (const(1),), "0.0"),
]


@pytest.mark.parametrize(("body", "index", "expected"), FOUND)
def test_the_uppermost_layer_that_reaches_a_cell(
    body: str, index: tuple[Affine, ...], expected: str
) -> None:
    assert at(layers(body, y="f32[8]"), *index).replace("2*j < 8", "j < 4") == expected.replace(
        "2*j < 8", "j < 4"
    )


@pytest.mark.parametrize(("row", "expected"), [(0, "x[j]"), (1, "0.0")])
def test_a_fixed_axis_has_to_agree(row: int, expected: str) -> None:
    assert at(layers("y[0, i] = x[i]", y="f32[2, 8]"), const(row), var(J)) == expected


def test_an_axis_may_need_what_the_next_one_gives() -> None:
    (made,) = layers("for a in range(8):\n    for b in range(8):\n        y[a + b, b] = x[a]",
                     y="f32[16, 8]")  # fmt: skip
    outer, inner = (loop.symbol for loop in made.inside if isinstance(loop, For))
    for shift in (0, 2):  # symbols of the same names must not be taken for those of the layer
        sum_, step = (Symbol(s.name, shift - s.serial) for s in (inner, outer))
        known = (Range(step, const(0), const(8)), Range(sum_, var(step), var(step) + 8))
        found = reaching_value((made,), (var(sum_), var(step)), known, (), None)
        assert print_expr(found) == "x[b - a]"


def test_data_in_an_index_has_to_be_the_same() -> None:
    (made,) = layers("y[0, i] = x[i]", y="f32[8, 8]")
    assert made.index is not None
    made = replace(made, index=(Dynamic(Position(var(K))), made.index[1]))
    found = reaching_value((made,), (Dynamic(Position(var(K))), var(J)), KNOWN, (), None)
    assert print_expr(found) == "x[j]"
    with pytest.raises(NotInvertible):
        reaching_value((made,), (var(K), var(J)), KNOWN, (), None)
    (moving,) = layers("y[p[i], i] = x[i]", y="f32[8, 8]")
    assert moving.index is not None
    with pytest.raises(NotInvertible):
        reaching_value((moving,), moving.index, KNOWN, (), None)


def test_indices_that_repeat_have_to_be_equal() -> None:
    made = layers("y[i, i] = x[i]", y="f32[8, 8]")
    assert at(made, var(J), var(K)) == "x[j] if k == j else 0.0"
    assert at(made, var(J), var(J)) == "x[j]"
    assert at(made, const(1), const(2)) == "0.0"


@pytest.mark.parametrize(("body", "index"), [
    ("y[2 * i] = x[i]", (var(J),)),
    ("y[p[i]] = x[i]", (var(J),)),
    ("for s in range(8):\n    y[3] = x[s]", (const(3),)),
])  # fmt: skip
def test_a_point_that_cannot_be_told(body: str, index: tuple[Affine, ...]) -> None:
    made = layers(body, y="f32[16]") if "p" not in body else layers(body, y="f32[8]")
    with pytest.raises(NotInvertible):
        reaching_value(made, index, KNOWN, (), zero_of(made[0].node.dtype))


def test_a_cell_that_no_layer_may_reach() -> None:
    made = layers("y[1:] = x[1:]", y="f32[8]")
    with pytest.raises(MaybeUnwritten):
        reaching_value(made, (var(J),), KNOWN, (), None)
    assert print_expr(reaching_value(made, (const(1),), KNOWN, (), None)) == "x[1]"


def test_what_fills_an_array_has_as_many_points() -> None:
    static, open_ = node(0, "y", 3, 5), node(1, "z", Symbol("n", 7), 5)
    assert Layer(static, None, zero_of(static.dtype), (), ()).points == 15
    assert (
        Layer(open_, None, zero_of(open_.dtype), (), ()).points
        == thresholds.ASSUMED_SIZE * thresholds.ASSUMED_SIZE
    )


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint8, dtypes.bool_, dtypes.float32])
def test_cells_start_from_zero(dtype: dtypes.DType) -> None:
    assert zero_of(dtype) == Const(dtype.numpy.type(0).item(), dtype)


def test_comparisons_keep_nothing_on_both_sides() -> None:
    assert print_expr(compare_indices("le", const(0), var(J) * -1 + 3)) == "j <= 3"
    assert print_expr(compare_indices("lt", var(J) + 1, var(K) + 3)) == "j < k + 2"
    assert print_expr(compare_indices("eq", var(J), const(3))) == "j == 3"
    (made,) = layers("y[i] = x[i]", y="f32[8]")
    assert made.points == 8 and isinstance(zero_of(made.node.dtype), Const)


def test_what_decides_the_place_is_a_source() -> None:
    (made,) = layers("if x[i] > 0:\n    y[p[i], i] = z[i]", y="f32[8, 8]", z="f32[8]")
    assert {one.label for one in made.sources} == {"x", "p", "z"}
