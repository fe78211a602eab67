"""Which loops of a nest may be dealt out, and which temporaries each point has of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.analysis.parallel_band import (
    contiguity_score,
    contiguous_axis,
    facts_of,
    find_band,
    normalize,
    perfect_nest,
    static_trip_count,
    trip_count,
)
from plusequals.lowering.gpu.passes import normalized
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.indexing import Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.rewrite import rename
from plusequals.lowering.ir.walk import statements

from ..gpu.kernels import Case
from ..nests_of_all_kinds import NESTS

Y = {"y": "f32[8, 9]", "x": "f32[8, 9]"}


def names(loops: tuple[For, ...]) -> list[str]:
    return [loop.symbol.name for loop in loops]


def free_of(body: str, **arrays: str) -> tuple[list[str], list[str]]:
    case = Case(body, **arrays)
    found = find_band(case.loop(), case.facts)
    return ([], []) if found is None else (names(found.free), names(found.serial))


def test_independent_loops_are_free() -> None:
    assert free_of("y[i, j] = x[i, j] + 1", **Y) == (["i", "j"], [])


def test_a_loop_comes_to_the_front_where_that_is_right() -> None:
    assert free_of("for t in range(1, 8):\n    y[t, i] = y[t - 1, i]", **Y) == (["i"], ["t"])
    text = "for t in range(1, 8):\n    y[t, i] = y[t - 1, (i + 1) % 9]"
    assert free_of(text, **Y) == ([], [])


def test_bounds_that_need_a_loop_keep_it_outside() -> None:
    text = "for a in range(1, 8):\n    for b in range(a):\n        y[a, b] = y[a - 1, b] + 1"
    assert free_of(text, **Y) == ([], [])


def test_points_own_what_they_fill_first() -> None:
    case = Case("y[i] = sum[j](x[i, j] * x[i, j])", y="f32[8]", x="f32[8, 9]")
    found = find_band(case.loop(), case.facts)
    assert found is not None
    assert len(found.private) == 1


def test_the_best_value_of_an_argmax_is_each_rounds_own() -> None:
    case = Case("y[:] = x.argmax(axis=1)", y="i64[8]", x="f32[8, 9]")
    found = find_band(case.loop(), case.facts)
    assert found is not None
    assert len(found.private) == 2


def test_loops_made_on_the_way_are_known() -> None:
    text = "for t in range(1, 8):\n    s[i] = x[t, i] * 2\n    y[t, i] = y[t - 1, i] + s[i] * s[i]"
    case = Case(text, s="f32[9]", **Y)
    found = find_band(case.loop(), case.facts)
    assert found is None or all(
        id(stmt) in case.facts.only for stmt in found.inner if isinstance(stmt, For)
    )


@pytest.mark.parametrize(
    "ends", [(0, 9, 1), (3, 10, 3), (8, -1, -1), (9, 0, -4), (5, 5, 1), (4, 1, 2)]
)
def test_rounds_are_those_of_range(ends: tuple[int, int, int]) -> None:
    lo, hi, step = ends
    loop = For(Symbol("i", 0), const(lo), const(hi), step, ())
    assert static_trip_count(loop) == len(range(*ends))
    plain, value = normalize(loop, Symbol("k", 1))
    found = [evaluate(value, {plain.symbol: k}) for k in range(static_trip_count(plain) or 0)]
    assert found == [*range(*ends)]


def test_rounds_of_the_run_are_an_expression() -> None:
    n = Symbol("n", 7)
    loop = For(Symbol("i", 0), const(1), var(n), 4, ())
    assert static_trip_count(loop) is None
    assert [evaluate(trip_count(loop), {n: k}) for k in (1, 2, 5, 6)] == [0, 1, 1, 2]


def test_neighbours_in_memory_are_favoured() -> None:
    case = Case("y[i, j] = x[j, i]", y="f32[8, 8]", x="f32[8, 8]")
    (i, j), body = perfect_nest(case.loop())
    assert contiguity_score(body, i.symbol) == contiguity_score(body, j.symbol) == 0
    case = Case("y[i, j] = x[i, j]", **Y)
    (i, j), body = perfect_nest(case.loop())
    assert contiguity_score(body, j.symbol) > contiguity_score(body, i.symbol)


def test_loops_that_are_made_anew_are_known_as_well() -> None:
    text = "m[i] = max(x[i, j])\ny[i] = sum(exp(x[i, j] - m[i]))"
    case = Case(f"m = np.zeros(8)\n{text}", y="f64[8]", x="f64[8, 9]")
    loops = [stmt for stmt in statements(case.body) if isinstance(stmt, For)]
    anew = rename(case.body, {}, {n: replace(node) for n, node in case.nodes.items()})
    facts = replace(case.facts, only={})
    facts.tell(anew, frozenset(node.id for node in case.program.locals))
    copies = [stmt for stmt in statements(anew) if isinstance(stmt, For)]
    assert len(copies) == len(loops) > 2
    for loop, copy in zip(loops, copies, strict=True):
        assert facts.temporaries_in(copy) == case.facts.temporaries_in(loop)


@pytest.mark.parametrize("name", ["nearest", "sorted windows", "own counts", "until it is close"])
def test_what_points_fill_first_is_theirs(name: str) -> None:
    text, arguments = NESTS[name]
    arrays = dict(zip("ykx" if "k[" in text else "yxz", arguments(37, np.random.default_rng(0))))
    kinds = {"f": "f64", "i": "i64"}
    case = Case(text, **{
        label: f"{kinds[array.dtype.kind]}[{len(array)}]" for label, array in arrays.items()
    })  # fmt: skip
    program = normalized(case.program)
    (loop,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    found = find_band(loop, facts_of(program))
    assert found is not None and found.free == (loop,)


def test_a_loop_that_may_be_left_stays_innermost() -> None:
    text = (
        "for t in range(3):\n    for i in range(len(x)):\n        if y[t] > 1:\n"
        "            x[i] = t\n            break"
    )
    case = Case(text, True, y="f64[3]", x="f64[9]")
    (loop,) = case.body
    assert isinstance(loop, For) and find_band(loop, case.facts) is None
    apart = Case(text.replace("x[i]", "x[t, i]"), True, y="f64[3]", x="f64[3, 9]")
    (loop,) = apart.body
    assert isinstance(loop, For)
    found = find_band(loop, apart.facts)
    assert found is not None and [one.symbol.name for one in found.free] == ["t"]


def test_the_axis_along_which_iterations_access_neighbours() -> None:
    i, j = Symbol("i", 0), Symbol("j", 1)
    rows = Node(0, "rows", (const(4), const(8)), dtypes.float32)
    columns = replace(rows, strides=(1, 4))
    for node, index, wanted in (
        (rows, (var(i), var(j) + 2), -1), (rows, (var(j), var(i)), None),
        (columns, (var(j), var(i)), -2), (rows, (var(i), var(j) * 2), None),
        (rows, (var(j), var(j) * -7), None),
    ):  # fmt: skip
        assert contiguous_axis(node, index, j) == wanted
