"""Reductions in parts, by many blocks."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.accumulators import find_accumulators
from plusequals.lowering.analysis.parallel_band import static_trip_count
from plusequals.lowering.gpu.reductions.split_reduction import count_blocks
from plusequals.lowering.gpu.reductions.split_reduction import map_split_reduction as apart
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.loops import For, Stmt
from plusequals.lowering.ir.walk import statements, writes

from ..kernels import Case


def in_parts(case: Case) -> tuple[Stmt, ...]:
    """Return the kernels that sum the last loop in parts, after they were seen to mean the same."""
    at = max(k for k, stmt in enumerate(case.body) if isinstance(stmt, For))
    loop = case.loop(at)
    found = find_accumulators(loop, case.facts.private(loop), case.facts)
    made = apart(loop, found, case.facts, case.fresh, case.nodes)
    assert made is not None
    case.assert_same(made.body, at)
    return made.body


@pytest.mark.parametrize(
    "text", ["s[0] += x[i, j]", "s[0] = x.max()", "s[0] = x.argmin()", "s[0] += x[i, j] * x[i, j]"]
)
@pytest.mark.parametrize("shape", ["9000, 1", "3, 3001", "91, 97"])
def test_parts_are_summed(text: str, shape: str) -> None:
    kind = "i64[1]" if "arg" in text else "f32[1]"
    kernel, *last = in_parts(Case(text, s=kind, x=f"f32[{shape}]"))
    assert isinstance(kernel, For) and kernel.kind == "block"
    assert len(last) == (4 if "arg" in text else 1), "which part has the best, and what it found"


TRIPLES = """
for a in range(9):
    for b in range(a + 1, 9):
        for c in range(b + 1, 9):
            s[0] += x[a] * x[b] * x[c]
"""
PAIRS = """
for a in range(n[0]):
    for b in range(a):
        s[0] += x[k[a]] * k[b]
"""


@pytest.mark.parametrize(
    "text", [TRIPLES, PAIRS, "s[0] = max[a, b < a, c < b](x[a] ^ x[b] ^ x[c])"]
)
def test_loops_in_the_one_that_is_cut_may_follow_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MAX_REDUCTION_BLOCKS", 5)
    in_parts(Case(text, s="i64[1]", x="i64[9]", k="i64[9]", n="i64[1]"))


def test_small_sums_are_one_blocks() -> None:
    def blocks(shape: str) -> int:
        case = Case("s[0] += x[i, j]", s="f32[1]", x=f"f32[{shape}]")
        return count_blocks(case.loop())

    assert blocks("4, 40") == 1
    assert blocks("64, 64") == 1
    assert blocks("64, 65") == 2
    assert blocks("9000, 9000") == 1024


@pytest.mark.parametrize(("n", "blocks"), [(900, 1), (9000, 3)])
def test_what_is_known_of_numbers_may_say_that_a_sum_is_small(n: int, blocks: int) -> None:
    text = f"for t in range({n}):\n    s[0] += sum[i < t](x[i])"
    loop = Case(text, s="f32[1]", x=f"f32[{n}]").loop()
    (inner,) = [stmt for stmt in loop.body if isinstance(stmt, For)]
    assert count_blocks(inner) == 1024, "nothing is known of the loop around"
    assert count_blocks(inner, bounds=Bounds({}).inside(loop)) == blocks


def test_what_is_done_in_each_round_counts() -> None:
    text = "s[0] = sum[i](sqrt(sum[j](x[i, j])))"
    case = Case(text, s="f32[1]", x="f32[90, 4000]")
    assert count_blocks(case.loop(), 1) == 88
    few = Case(text, s="f32[1]", x="f32[3, 40000]")
    assert count_blocks(few.loop()) == 3, "no part has less than a round"
    other = "for i in range(90):\n    s[0] += x[i, 0]\n    y[i, j] = x[i, j]"
    apart = Case(other, s="f32[1]", x="f32[90, 4000]", y="f32[90, 4000]")
    assert count_blocks(apart.loop()) == 1, "what is done beside a sum says nothing of it"


@pytest.mark.parametrize("shape", ["30, 10, 10, 10", "3, 2, 5000, 1", "20, 9, 40, 9"])
@pytest.mark.parametrize("text", ["s[0] += x[a, b, c, d]", "s[0] = x.argmin()"])
def test_short_loops_are_counted_as_one(text: str, shape: str) -> None:
    made = in_parts(Case(text, s="i64[1]" if "arg" in text else "f32[1]", x=f"f32[{shape}]"))
    threads = [s for s in statements(made[:1]) if isinstance(s, For) and s.kind == "thread"]
    assert threads[0].hi.constant == 256


LOSS = """
m = x.max(axis=1, keepdims=True)
z = x - m
lse = np.log(np.exp(z).sum(axis=1))
p[n] = z[n, k[n]]
s[0] = (lse - p).mean()
"""


@pytest.mark.parametrize(("size", "axes"), [(13000, (2, 13000)), (11000, (11000,))])
def test_rows_that_no_block_has_room_for_are_each_parts_own(
    size: int, axes: tuple[int, ...]
) -> None:
    case = Case(LOSS, s="f32[1]", x=f"f32[2, {size}]", k="i64[2]")
    used = set(writes(in_parts(case)))
    known = (*case.program.locals, *case.fresh.nodes)
    assert axes in {node.static_shape for node in known if node in used}


def test_loops_that_add_in_a_round_count_for_its_parts() -> None:
    case = Case("x += v\ns[0] = (x * x).sum()", s="f64[1]", x="f64[90, 300]", v="f64[90, 300]")
    at = next(k for k, stmt in enumerate(case.body) if isinstance(stmt, For))
    loop = case.loop(at)
    assert count_blocks(loop) == 7
    made = apart(
        loop, find_accumulators(loop, frozenset(), case.facts), case.facts, case.fresh, case.nodes
    )
    assert made is not None
    case.assert_same(made.body, at)
    threads = [s for s in statements(made.body) if isinstance(s, For) and s.kind == "thread"]
    assert static_trip_count(threads[0]) == 256, "the threads of a block share each row"


def test_loops_as_long_as_others_say_count_for_as_much_as_they_may_have() -> None:
    text = (
        "n = 0\nfor i in range(len(x)):\n    m = 0\n    for j in range(i):\n"
        "        m = max(m, x[j])\n    if m < x[i]:\n        n += 1\ns[0] = n"
    )
    assert count_blocks(Case(text, s="i64[1]", x="i64[200]").loop(1)) == 10
