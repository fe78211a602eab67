"""Rows that threads keep in registers from one loop of a block to the next."""

from __future__ import annotations

from collections import Counter

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.loops import For, Stmt
from plusequals.lowering.ir.walk import direct_reads, direct_writes, statements

from .kernels import Case
from .test_thread_block import SOFTMAX, by_one, by_rows

NORM = "m[i] = mean(x[i, j])\nv[i] = mean((x[i, j] - m[i]) ** 2)\n"
SIZES = [9, 31, 100, 256, 257, 300, 512, 700]


def kept(case: Case, made: DeviceCode) -> set[str]:
    """Return what is kept in registers."""
    nodes = (*case.program.locals, *case.fresh.nodes)
    return {node.label for node in nodes if made.spaces.get(node.id) == "registers"}


def done(text: str, n: int, exact: bool = False, **others: str) -> tuple[Case, DeviceCode]:
    """Return a case and the kernel of its last nest by rows, which does the same."""
    case = Case(text, exact, y=f"f32[3, {n}]", x=f"f32[3, {n}]", **others)
    made = by_rows(case)
    case.assert_same(made.body)
    return case, made


def uses(body: tuple[Stmt, ...], name: str) -> tuple[int, int]:
    """Return how many statements read an array, and how many write it, in whole rounds."""
    found = Counter[str]()
    whole = [s for s in statements(body) if not isinstance(s, For) or s.kind != "block"]
    for stmt in whole:
        found.update(f"read {node.label}" for node in direct_reads(stmt))
        found.update(f"written {node.label}" for node in direct_writes(stmt))
    return found[f"read {name}"], found[f"written {name}"]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_rows_are_read_once_and_written_once(n: int, exact: bool) -> None:
    case, made = done(SOFTMAX, n, exact)
    if exact:
        return
    assert kept(case, made) == {"x_row", "e_row"}
    copies = 1 + (n > 256 and n % 256 > 0)
    assert uses(made.body, "x") == (copies, 0)
    assert uses(made.body, "y") == (0, copies)


@pytest.mark.parametrize("n", SIZES)
def test_so_are_rows_that_three_loops_read(n: int) -> None:
    text = f"{NORM}y[i, j] = (x[i, j] - m[i]) / sqrt(v[i] + 1) * g[j]"
    case, made = done(text, n, g=f"f32[{n}]")
    assert kept(case, made) == {"x_row"}


@pytest.mark.parametrize("n", SIZES)
def test_what_is_changed_in_place_is_kept_and_written_at_the_end(n: int) -> None:
    text = (
        "for i in range(3):\n    m = x[i].max()\n    x[i] = np.exp(x[i] - m)\n"
        "    t = x[i].sum()\n    x[i] /= t\n    y[i, 0] = t"
    )
    case, made = done(text, n)
    assert kept(case, made) == {"x_row"}
    copies = 1 + (n > 256 and n % 256 > 0)
    assert uses(made.body, "x") == (copies, copies)


def test_what_is_surely_filled_is_not_read_before() -> None:
    text = "for i in range(3):\n    y[i] = np.exp(x[i])\n    t = y[i].sum()\n    y[i] = y[i] / t"
    case, made = done(text, 600)
    assert kept(case, made) == {"y_row"}
    assert uses(made.body, "y") == (0, 2)


def test_what_adds_to_a_row_reads_it_before() -> None:
    text = "for i in range(3):\n    y[i] += np.exp(x[i])\n    t = y[i].sum()\n    y[i] = y[i] / t"
    case, made = done(text, 600)
    assert kept(case, made) == {"y_row"}
    assert uses(made.body, "y") == (2, 2)


def test_what_is_left_out_at_the_end_was_written_before() -> None:
    text = (
        "for i in range(3):\n    y[i] = np.exp(x[i])\n    t = y[i].sum()\n"
        "    if x[i, 0] < 100:\n        continue\n    y[i] = y[i] / t"
    )
    case, made = done(text, 600)
    assert kept(case, made) == {"y_row"}
    assert uses(made.body, "y") == (0, 4)


def test_what_may_not_be_written_stays_in_memory() -> None:
    text = (
        "for i in range(3):\n    for j in range(600):\n        if x[i, j] > 0:\n"
        "            y[i, j] = x[i, j]\n    t = y[i].max()\n    x[i] = t"
    )
    case, made = done(text, 600)
    assert "y_row" not in kept(case, made)


@pytest.mark.parametrize(
    "text",
    [
        "m[i] = max(x[i, j])\ny[i, j] = x[i, 599 - j] - m[i]",
        "m[i] = max(x[i, j])\ny[i, j] = exp(x[i, j // 2] - m[i])",
        "m[i] = max(x[i, j])\ny[i, j] = x[2 - i, j] - m[i]",
        "for i in range(3):\n    m = x[i].max()\n    for j in range(599):\n"
        "        y[i, j] = x[i, j] - m",
    ],
    ids=["backwards", "by twos", "others", "other numbers of rounds"],
)
def test_elements_of_other_threads_are_read_from_memory(text: str) -> None:
    case, made = done(text, 600)
    assert not kept(case, made)


@pytest.mark.parametrize(
    ("first", "names"),
    [("x[i, j] if g[j] > 0 else 0.0", {"g_row"}), ("x[i, j] + g[j]", {"g_row", "x_row"})],
)
def test_reads_come_first_only_where_they_are_done_anyhow(first: str, names: set[str]) -> None:
    text = f"m[i] = max({first})\ny[i, j] = (x[i, j] if g[j] > 1 else 0.0) + m[i]"
    case, made = done(text, 600, g="f32[600]")
    assert kept(case, made) == names


def test_there_is_room_for_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_CACHED_ROW_BYTES", 12)
    assert kept(*done(SOFTMAX, 700)) == {"x_row", "e_row"}
    monkeypatch.setattr(thresholds, "MAX_CACHED_ROW_BYTES", 11)
    assert kept(*done(SOFTMAX, 700)) == set()


def test_what_lives_at_the_same_time_shares_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{SOFTMAX.rsplit(chr(10), 1)[0]}\ny[i, j] = e[i, j] / sum[k](e[i, k]) + x[i, j]"
    monkeypatch.setattr(thresholds, "MAX_CACHED_ROW_BYTES", 24)
    assert kept(*done(text, 700)) == {"x_row", "e_row"}
    monkeypatch.setattr(thresholds, "MAX_CACHED_ROW_BYTES", 23)
    assert len(kept(*done(text, 700))) == 1


def test_checks_leave_all_as_it_is() -> None:
    text = "m[i] = max(x[i, j])\ny[i, j] = x[i, j] - m[i] + x[k[i], j]"
    case = Case(text, y="f32[3, 300]", x="f32[3, 300]", k="i64[3]")
    assert not kept(case, by_rows(case))


def test_one_block_keeps_what_it_can_too() -> None:
    text = "for t in range(4):\n    y[i] += x[i] * t\n    s = max(y[i])\n    y[i] = y[i] / s"
    case = Case(text, y="f32[700]", x="f32[700]")
    made = by_one(case)
    assert kept(case, made) == {"y_row"}
    case.assert_same(made.body, 0)
