"""Kernels in which each thread does one point."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.thread_points import (
    DeviceCode,
    block_width,
    is_loop_free,
    map_to_threads,
)
from plusequals.lowering.ir.loops import Check, For
from plusequals.lowering.ir.walk import statements

from .kernels import Case


def made_of(case: Case) -> DeviceCode:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    made = map_to_threads(found, case.fresh, case.nodes)
    assert made is not None
    return made


def kinds(made: DeviceCode) -> list[str]:
    return [s.kind for s in statements(made.body) if isinstance(s, For)]


@pytest.mark.parametrize("n", [2, 31, 256, 257, 1000])
def test_every_point_is_done_once(n: int) -> None:
    case = Case("y[i] = y[i] + x[i]", y=f"f32[{n}]", x=f"f32[{n}]")
    case.assert_same(made_of(case).body)


@pytest.mark.parametrize("shape", ["3, 5", "2, 70", "70, 2", "2, 3, 4, 5", "2, 2, 2, 2, 70"])
def test_axes_are_dealt_out_or_counted_as_one(shape: str) -> None:
    letters = ", ".join("ijklm"[: shape.count(",") + 1])
    case = Case(f"y[{letters}] += x[{letters}]", y=f"f32[{shape}]", x=f"f32[{shape}]")
    made = made_of(case)
    assert kinds(made)[0] == "block"
    assert kinds(made).count("thread") == 1
    assert kinds(made).count("block") <= 3
    case.assert_same(made.body)


@pytest.mark.parametrize("rows", ["1, 40", "39, 0, -1", "1, 40, 3"])
@pytest.mark.parametrize("place", ["i, j", "j, i"])
@pytest.mark.parametrize("bounds", [
    "i", "i, 40", "40 - i", "max(0, i - 3), min(40, i + 4)", "0, 40 - i, 2", "i % 3, 40, 3",
    "i, i + 5", "i // 2",
])  # fmt: skip
def test_loops_whose_bounds_follow_others_stay_inside_of_these(
    rows: str, place: str, bounds: str
) -> None:
    text = (
        f"for i in range({rows}):\n    for j in range({bounds}):\n        y[{place}] += x[i] * x[j]"
    )
    case = Case(text, y="f32[45, 45]", x="f32[45]")
    made = made_of(case)
    assert kinds(made).count("thread") == 1
    case.assert_same(made.body)


@pytest.mark.parametrize("text", [
    "for i in range(5):\n    for k in range(6):\n        for j in range(i):\n"
    "            y[i, k, j] += x[j]",
    "for i in range(5):\n    for j in range(i):\n        for k in range(j):\n"
    "            y[k, j, i] += x[j]",
    "for i in range(5):\n    for k in range(6):\n        for j in range(k):\n"
    "            y[j, k, i] += x[j]",
])  # fmt: skip
def test_loops_that_others_follow_are_not_counted_as_one(text: str) -> None:
    case = Case(text, y="f32[6, 6, 6]", x="f32[6]")
    case.assert_same(made_of(case).body)


@pytest.mark.parametrize(
    ("shape", "is_several"),
    [("64", True), ("3, 16", True), ("2, 2, 64", True), ("129", True), ("70", False),
     ("31", False), ("2, 2, 2, 64", False)],
)  # fmt: skip
def test_threads_do_several_of_very_many_points(
    shape: str, is_several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (
        ("BLOCK_THREADS", 4),
        ("MIN_SEVERAL_POINTS", 32),
        ("MIN_UNCOLLAPSED_ITERATIONS", 2),
    ):
        monkeypatch.setattr(thresholds, name, size)
    letters = ", ".join("ijkl"[: shape.count(",") + 1])
    text = "s[_] = x[_] * 2\ny[_] = s[_] + s[_] * y[_]".replace("_", letters)
    case = Case(text, y=f"f32[{shape}]", x=f"f32[{shape}]")
    made = made_of(case)
    assert ("unrolled" in kinds(made)) is is_several
    case.assert_same(made.body)


@pytest.mark.parametrize(
    ("kind", "n", "each"),
    [("f64", 256, 4), ("f32", 256, 4), ("f16", 256, 8), ("u8", 256, 16), ("u8", 32, 8),
     ("u8", 16, 4), ("u8", 36, 0)],
)  # fmt: skip
def test_threads_do_more_points_of_small_elements(
    kind: str, n: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (
        ("BLOCK_THREADS", 4),
        ("MIN_SEVERAL_POINTS", 16),
        ("MIN_UNCOLLAPSED_ITERATIONS", 2),
    ):
        monkeypatch.setattr(thresholds, name, size)
    case = Case("y[i] = x[i] + x[i]", y=f"{kind}[{n}]", x=f"{kind}[{n}]")
    made = made_of(case)
    unrolled = [s for s in statements(made.body) if isinstance(s, For) and s.kind == "unrolled"]
    assert [loop.hi.constant for loop in unrolled] == [each] * bool(each)
    case.assert_same(made.body)


def test_threads_do_one_point_where_it_sums_or_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (
        ("BLOCK_THREADS", 4),
        ("MIN_SEVERAL_POINTS", 32),
        ("MIN_UNCOLLAPSED_ITERATIONS", 2),
    ):
        monkeypatch.setattr(thresholds, name, size)
    sums = Case("y[i] = sum[k](x[i, k])", y="f32[64]", x="f32[64, 3]")
    checks = Case("y[i] = x[k[i]]", y="f32[64]", x="f32[9]", k="i64[64]")
    assert "unrolled" not in kinds(made_of(sums))
    assert "unrolled" in kinds(made_of(checks)), "what is looked up was checked before"
    assert not is_loop_free(tuple(s for s in statements(checks.body) if isinstance(s, Check)))


def test_steps_and_directions() -> None:
    text = "for a in range(8, 0, -3):\n    for b in range(1, 9, 2):\n        y[a, b] = x[b, a] + 1"
    case = Case(text, y="f32[9, 9]", x="f32[9, 9]")
    case.assert_same(made_of(case).body)


def test_neighbours_in_memory_go_to_neighbouring_threads() -> None:
    case = Case("y[i, j] = x[i, j] + z[i, j]", y="f32[70, 80]", x="f32[70, 80]", z="f32[70, 80]")
    threads = [s for s in statements(made_of(case).body) if getattr(s, "kind", "") == "thread"]
    assert [loop.symbol.name for loop in threads if isinstance(loop, For)] == ["j"]


def test_large_temporaries_get_axes_and_too_large_ones_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "for a in range(7):\n    s[:] = x[a] * 2\n    y[a] = s[::-1] + s[0]"
    case = Case(text, y="f32[7, 90]", x="f32[7, 90]", s="f32[90]")
    text = "t = x * 2\nfor a in range(7):\n    u = t[a] + 1\n    y[a] = u[::-1] + u[0]"
    case = Case(text, y="f32[7, 90]", x="f32[7, 90]")
    found = find_band(case.loop(), case.facts)
    assert found is not None
    large = [n for n in found.private if case.nodes[n].bytes > thresholds.MAX_THREAD_PRIVATE_BYTES]
    made = map_to_threads(found, case.fresh, case.nodes)
    assert made is not None
    assert not set(large) & set(made.spaces)
    case.assert_same(made.body)
    monkeypatch.setattr(thresholds, "MAX_EXPANDED_BYTES", 100)
    assert not large or map_to_threads(found, case.fresh, case.nodes) is None


def test_few_threads_are_idle() -> None:
    assert all(count <= block_width(count) * -(-count // 256) < count + 32 * -(-count // 256)
               for count in range(1, 3000, 7))  # fmt: skip
    assert all(
        block_width(count) % 32 == 0 and 32 <= block_width(count) <= 256
        for count in range(1, 3000, 7)
    )
