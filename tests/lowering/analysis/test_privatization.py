"""What single rounds of loops have for themselves stays known, whatever becomes of their loops."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.analysis.dependence import find_privatizable
from plusequals.lowering.analysis.privatization import annotate_private, has_crossing_arrays
from plusequals.lowering.ir.indexing import Symbol
from plusequals.lowering.ir.loops import For, Program, Store
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..ir.build import at, node, num, read
from ..shown import lowered

EAGER = Target(threads=4, parallel_from=0, schedule=True, reorders=True)
ATTENTION = """
s[b, h, i, j] = scale * sum(q[b, h, i, d] * k[b, h, j, d])
m[b, h, i] = max(s[b, h, i, j])
p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
z[b, h, i] = 1 / sum(p[b, h, i, j])
y[b, h, i, d] = z[b, h, i] * sum(p[b, h, i, j] * v[b, h, j, d])
"""
SOFTMAX = """
m[i] = max(x[i, j])
e[i, j] = exp(x[i, j] - m[i])
y[i, j] = e[i, j] / sum[k](e[i, k])
"""
CARRIED = """
e = np.zeros(70)
for t in range(9):
    y[t, j] = e[j] + x[t, j]
    e[j] = y[t, 69 - j] * x[t, j]
"""


def ready(body: str, target: Target = EAGER, **arrays: str) -> Program:
    """The program as it is before its loops are cut."""
    return optimize(lowered(body, **arrays), target, stop_after="eliminate_dead_code 2")[0]


def names(program: Program) -> set[tuple[str, str]]:
    """What is noted: arrays and loops."""
    labels = {node.id: node.label for node in program.locals}
    return {(labels[number], symbol.name) for number, symbol in program.private_annotations}


def heads(program: Program) -> list[str]:
    """The variables of the parallel loops."""
    return [
        stmt.symbol.name for stmt in statements(program.kernels[0].body)
        if isinstance(stmt, For) and stmt.kind == "parallel"
    ]  # fmt: skip


def test_arrays_are_private_to_loops_inside_of_others() -> None:
    steps = textwrap.indent(SOFTMAX + "x[i, j] = y[i, j] * 0.5 + x[i, j]\n", "    ")
    program = ready(f"for t in range(9):\n{steps}", y="f64[40, 30]", x="f64[40, 30]")
    assert ("e", "i") in names(annotate_private(program, EAGER))


@pytest.mark.parametrize(("width", "shared"), [(64, ["i"]), (75, ["i"]), (500, ["i"])])
def test_rows_in_lanes_are_shared(width: int, shared: list[str]) -> None:
    shape = f"f32[20, {width}]"
    assert heads(optimize(lowered(SOFTMAX, x=shape, y=shape), EAGER)[0]) == shared


@pytest.mark.parametrize("sizes", ["2, 3, 64, 32", "2, 3, 75, 33"])
def test_products_in_tiles_are_shared_around_them(sizes: str) -> None:
    arrays = dict.fromkeys("yqkv", f"f32[{sizes}]")
    program, _ = optimize(lowered(ATTENTION, scale="f64", **arrays), EAGER)
    assert heads(program) == ["b"]
    assert {"b", "h"} <= {loop for _, loop in names(program)}


def test_what_a_later_round_needs_is_no_rounds_own() -> None:
    shape = "f64[9, 70]"
    program = annotate_private(ready(CARRIED, x=shape, y=shape), EAGER)
    assert "e" in {node.label for node in program.locals} and names(program) == set()


def test_it_is_noted_only_where_sharing_is_worth_it() -> None:
    shape = "f32[20, 64]"
    program = ready(SOFTMAX, replace(EAGER, threads=1), x=shape, y=shape)
    assert names(annotate_private(program, EAGER)) == {("e", "i")}
    assert annotate_private(program, replace(EAGER, threads=1)) is program
    assert annotate_private(program, replace(EAGER, schedule=False)) is program
    assert names(annotate_private(program, replace(EAGER, parallel_from=10**8))) == set()


def test_what_is_noted_of_another_loop_says_nothing() -> None:
    shape = "f64[9, 70]"
    program = ready(CARRIED, x=shape, y=shape)
    loops = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    (loop,) = (one for one in loops if one.symbol.name == "t")
    (array,) = (node for node in program.locals if node.rank)
    only = frozenset((array.id,))
    inside = [stmt.symbol for stmt in statements(loop.body) if isinstance(stmt, For)]
    assert array.id not in find_privatizable(loop, only)
    assert array.id not in find_privatizable(loop, only, [(array.id, Symbol("t", 10**6))])
    assert array.id not in find_privatizable(loop, only, [(array.id + 1, loop.symbol)])
    assert array.id not in find_privatizable(loop, only, [(array.id, inside[0])]), (
        "in the other it is read"
    )
    assert array.id in find_privatizable(loop, only, [(array.id, loop.symbol)])


@pytest.mark.parametrize("tokens", [1, 31, 64, 75])
def test_any_number_of_threads_gives_the_same_bits(tokens: int) -> None:
    source = "def attention(y, q, k, v, scale):\n    " + ATTENTION.strip().replace("\n", "\n    ")
    random = np.random.default_rng(tokens)
    q, k, v = (random.normal(size=(2, 3, tokens, 24)).astype("f4") for _ in range(3))
    found = []
    for threads in (1, 2, 7):
        with pe.override(threads=threads, parallel_from=0):
            y = np.full_like(q, np.nan)
            pe.cd_from_source(source + "\n", {})(y, q, k, v, 0.2)
            found.append(y)
    s = 0.2 * (q.astype("f8") @ k.astype("f8").swapaxes(2, 3))
    e = np.exp(s - s.max(axis=3, keepdims=True))
    np.testing.assert_allclose(found[0], (e / e.sum(axis=3, keepdims=True)) @ v, 1e-4, 1e-5)
    assert all(np.array_equal(found[0], one) for one in found)


def test_an_array_crosses_parts_that_use_it_both() -> None:
    """A scalar may cross, and so may an array that iterations share."""
    own, scalar, result = node(1, "t", 2), node(2, "s"), node(3, "y", 8)
    fill, use = Store(at(own, 0), num(1.0)), Store(at(result, 0), read(own, 0))
    start, end = Store(at(scalar), num(1.0)), Store(at(result, 1), read(scalar))
    assert has_crossing_arrays([(fill,), (start, use)], frozenset((1, 2)))
    assert not has_crossing_arrays([(fill, use), (start,)], frozenset((1, 2)))
    assert not has_crossing_arrays([(fill, start), (end,)], frozenset((1, 2)))
    assert not has_crossing_arrays([(fill,), (use,)], frozenset((2,)))
