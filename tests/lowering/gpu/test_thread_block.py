"""What the threads of a block do together."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.thread_block import (
    contains_thread_loop,
    has_jump,
    map_to_blocks,
    map_to_one_block,
    prefers_inner_loops,
)
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.loops import Barrier, For
from plusequals.lowering.ir.walk import statements

from .kernels import Case


def by_rows(case: Case, at: int = -1) -> DeviceCode:
    found = find_band(case.loop(at), case.facts)
    assert found is not None
    made = map_to_blocks(found, case.facts, case.fresh, case.nodes)
    assert made is not None
    return made


def by_one(case: Case) -> DeviceCode:
    own = frozenset(n.id for n in case.program.locals)
    made = map_to_one_block(case.body, own, case.facts, case.fresh, case.nodes)
    assert made is not None
    return made


SOFTMAX = "m[i] = max(x[i, j])\ne[i, j] = exp(x[i, j] - m[i])\ny[i, j] = e[i, j] / sum[k](e[i, k])"


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("n", [3, 9, 100, 300])
def test_a_row_of_softmax_is_a_blocks_work(n: int, exact: bool) -> None:
    case = Case(SOFTMAX, exact, y=f"f32[3, {n}]", x=f"f32[3, {n}]")
    made = by_rows(case)
    case.assert_same(made.body)
    barriers = [s for s in statements(made.body) if isinstance(s, Barrier)]
    assert barriers or n < thresholds.MIN_DISTRIBUTED_ITERATIONS


@pytest.mark.parametrize(("at", "spaces"), [("j", {"registers"}), ("99 - j", {"shared"})])
def test_rows_of_temporaries_are_shared_where_threads_need_those_of_others(
    at: str, spaces: set[str]
) -> None:
    case = Case(SOFTMAX.replace("e[i, j] /", f"e[i, {at}] /"), y="f32[3, 100]", x="f32[3, 100]")
    made = by_rows(case)
    nodes = (*case.program.locals, *case.fresh.nodes)
    named = {node.label: made.spaces[node.id] for node in nodes if node.id in made.spaces}
    assert {space for name, space in named.items() if name in ("e", "e_row")} == spaces
    assert named["m"] == "private"
    case.assert_same(made.body)


@pytest.mark.parametrize("rows_of", ["range(1, 40)", "range(1, 9)"])
@pytest.mark.parametrize("bounds", ["i", "i, 40", "i, 40 - i"])
def test_loops_that_others_follow_are_dealt_out(rows_of: str, bounds: str) -> None:
    text = f"for i in {rows_of}:\n    for j in range({bounds}):\n        y[i, j] += x[j, i]"
    case = Case(text, y="f32[40, 40]", x="f32[40, 40]")
    made = by_one(case)
    (dealt,) = [s for s in statements(made.body) if isinstance(s, For) and s.kind == "thread"]
    assert dealt.symbol.name == "i"
    case.assert_same(made.body)


def test_what_has_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(SOFTMAX, y="f32[3, 100]", x="f32[3, 100]")
    monkeypatch.setattr(thresholds, "MAX_BLOCK_SHARED_BYTES", 300)
    found = find_band(case.loop(), case.facts)
    assert found is not None
    assert map_to_blocks(found, case.facts, case.fresh, case.nodes) is None


def test_rounds_in_their_order_stay_in_one_block() -> None:
    text = "for t in range(4):\n    y[1:-1] = 0.5 * (x[:-2] + x[2:])\n    x[:] = y"
    case = Case(text, y="f32[40]", x="f32[40]")
    made = by_one(case)
    case.assert_same(made.body, 0)
    assert len(made.body) == 1
    assert sum(isinstance(s, Barrier) for s in statements(made.body)) >= 2


def test_tests_and_jumps_are_the_same_for_all_threads() -> None:
    text = (
        "for t in range(9):\n    y[:] = y + x\n    if y.sum() > 20.0:\n        break\n"
        "    x[:] = x + 0.25"
    )
    case = Case(text, y="f32[12]", x="f32[12]")
    case.assert_same(by_one(case).body, 0)


def test_what_only_one_thread_can_know_is_shared() -> None:
    text = (
        "for a in range(3):\n    s = 0.0\n    for t in range(20):\n"
        "        s = s * 0.5 + x[a, t]\n        z[a, t] = s\n    y[a] = x[a] * s"
    )
    case = Case(text, y="f32[3, 20]", x="f32[3, 20]", z="f32[3, 20]")
    made = by_rows(case)
    case.assert_same(made.body)
    assert "shared" in made.spaces.values()


def test_a_fill_is_shared_out() -> None:
    case = Case(
        "for a in range(3):\n    y[a] = 0\n    y[a] += x[a]", y="f32[3, 20]", x="f32[3, 20]"
    )
    case.assert_same(by_rows(case).body)


def test_what_is_worth_it() -> None:
    case = Case("y[i] = sum[j](x[i, j])", y="f32[3]", x="f32[3, 100]")
    assert contains_thread_loop(case.loop(), case.facts)
    case = Case("y[i] = sum[j](x[i, j])", y="f32[3]", x="f32[3, 4]")
    assert not contains_thread_loop(case.loop(), case.facts)
    case = Case("for t in range(9):\n    if x[t] > 0:\n        break\n    y[t] = 1",
                y="f32[9]", x="f32[9]")  # fmt: skip
    assert any(has_jump(stmt) for stmt in case.loop().body)
    assert not has_jump(case.loop())
    assert isinstance(case.loop(), For)


@pytest.mark.parametrize(("columns", "dealt"), [(4, "i"), (40, "j")])
def test_the_longer_of_two_loops_is_dealt_out(columns: int, dealt: str) -> None:
    text = (
        "for k in range(len(y)):\n    for i in range(k):\n        for j in range(y.shape[1]):\n"
        "            y[i, j] -= x[i, k] * y[k, j]"
    )
    case = Case(text, True, y=f"f32[50, {columns}]", x="f32[50, 50]")
    made = by_one(case)
    case.assert_same(made.body, 0)
    threads = [s for s in statements(made.body) if isinstance(s, For) and s.kind == "thread"]
    assert [loop.symbol.name for loop in threads] == [dealt]


@pytest.mark.parametrize(("x", "inside"), [("x[i, j]", True), ("x[j, i]", False)])
def test_long_loops_inside_of_a_sum_are_shared_where_they_read_what_lies_together(
    x: str, inside: bool
) -> None:
    text = f"s[0] = sum[i](sqrt(sum[j]({x})))"
    case = Case(text, s="f32[1]", x="f32[90, 90]")
    assert prefers_inner_loops(case.loop(), case.facts) is inside
    case.assert_same(by_one(case).body, 0)
