"""Statements of index notation: one assignment each, with its exact domain, target and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.idx import i, j
from plusequals.lowering.ir.assignments import Assign, Check
from tests.compare import assert_same
from tests.language.ask import run

from ..scenes import found, typed

A = np.arange(12.0).reshape(3, 4)
V = np.array([2.0, -1.0, 0.5, 3.0])


def _only(body: str) -> Assign:
    """Return the assignment that a body of one statement is; `y` is a matrix like `a`."""
    (statement,) = found(typed("y, a, v", body, A.copy(), A, V).procedure, Assign)
    return statement


@pytest.mark.parametrize(
    ("body", "free", "reduced"),
    [
        ("y[i, j] = a[i, j]", [(0, 3), (0, 4)], []),
        ("y[i, 0] = a[i, 1]", [(0, 3)], []),
        ("y[i, i + 1] = a[i, 3 - i]", [(0, 3)], []),
        ("y[i, 0] += a[i, j]", [(0, 3)], [(0, 4)]),
        ("y[2, 1] += v[j]", [], [(0, 4)]),
        ("if i > 0:\n    y[i, j] = 1.0", [(1, 3), (0, 4)], []),
        ("if i < 2 and j == 3:\n    y[i, j] = 1.0", [(0, 2), (3, 4)], []),
    ],
)
def test_the_domain_holds_each_point_once(
    body: str, free: list[tuple[int, int]], reduced: list[tuple[int, int]]
) -> None:
    statement = _only(body)
    for domain, expected in ((statement.free, free), (statement.reduced, reduced)):
        assert [(r.lo.constant, r.hi.constant) for r in domain.ranges] == expected
        assert domain.where is None


@pytest.mark.parametrize(
    ("body", "op"),
    [
        ("y[i, j] = a[i, j]", None),
        ("y[i, j] += a[i, j]", "add"),
        ("y[i, j] = max(y[i, j], a[i, j])", "max"),
        ("y[i, j] = min(y[i, j], v[j])", "min"),
        ("y[i, j] = max(a[i, j], y[i, j])", None),
        ("y[i, 0] = max(y[i, 1], a[i, 0])", None),
    ],
)
def test_the_target_as_first_argument_is_the_accumulation(body: str, op: str | None) -> None:
    assert (None if _only(body).op is None else str(_only(body).op)) == op


STATEMENTS = {
    "y[i, j] = a[i, j] + v[j]": A + V,
    "y[i, j] = i * 10 + j": np.add.outer(np.arange(3) * 10.0, np.arange(4)),
    "y[i, j] = a[2 - i, j]": A[::-1],
    "y[i, 2 * j] = v[j]\ny[i, 2 * j + 1] = -1.0": None,
    "if i >= j:\n    y[i, j] = 0.0": np.where(np.tril(np.ones((3, 4))) > 0, 0.0, A),
    "if a[i, j] > v[j]:\n    y[i, j] = v[j]": np.minimum(A, V),
    "y[i, j] -= a[i, k] * v[k] / 4": A - (A @ V)[:, None] / 4,
    "t[j] = sum(a[i, j])\ny[i, j] = t[j]": np.broadcast_to(A.sum(0), (3, 4)).copy(),
}


@pytest.mark.parametrize(("body", "expected"), STATEMENTS.items())
def test_statements_write_what_they_say(body: str, expected: np.ndarray | None) -> None:
    y = A.copy()
    if expected is None:
        with pytest.raises(CdError, match="CD0602|CD0604"):
            run("numpy", "y, a, v", body, y, A, V)
        return
    run("numpy", "y, a, v", body, y, A, V)
    assert_same(y, expected)


def test_a_new_array_is_as_large_as_its_reads_allow() -> None:
    got = run("numpy", "v", "y[i] = v[i + 1] - v[i + 2]\nz[i] = v[2 * i + 1]\nreturn y, z", V)
    assert_same(got, (-np.diff(V)[1:], V[1::2]))


def test_a_local_is_made_anew_where_it_is_wholly_overwritten_with_another_size() -> None:
    body = "t[i] = a[i, 0]\ns = sum(t[i])\nt[j] = a[0, j]\nreturn t, s"
    assert_same(run("numpy", "a", body, A), (A[0], A[:, 0].sum()))


def test_a_statement_with_letters_may_be_a_number() -> None:
    body = "s = sum(v[i] * v[i])\nt = max(v[i]) - min(v[i])\nreturn s, t"
    assert_same(run("numpy", "v", body, V), (V @ V, np.ptp(V)))


def test_data_dependent_indices_are_checked_at_each_point() -> None:
    checks = found(typed("y, p, v", "y[i] = v[p[i]]", V.copy(), np.arange(4), V).procedure, Check)
    assert [len(check.over.ranges) for check in checks] == [1]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("y[i, j] = a[i, k]", "CD0516"),
        ("y[i] = a[i, 0]", "CD0513"),
        ("y[i, j] = a", "CD0513"),
        ("y[i, j] = a[i]", "CD0513"),
        ("t[i + 1] = v[i]", "CD0205"),
        ("y[i, j] = a[i, j + 1]", "CD0602"),
        ("y[i, j] = v[i]", "CD0301"),
        ("y[i, j] = sum(v[k + j])", "CD0604"),
        ("y[i, :] = a[i, j]", "CD0508"),
        ("(y[i, j], z) = a[i, j], 1", "CD0517"),
        ("y[i, j] = a[i, j] * sum(v[i])", "CD0509"),
        ("y[i, j] += a[i, k] + sum(v[k])", "CD0514"),
        ("if k > 0:\n    y[i, j] = 0.0", "CD0515"),
    ],
)
def test_what_has_no_one_meaning_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "y, a, v", body, A.copy(), A, V)


@pytest.mark.parametrize("bind", ["t = y", "t = y[:]", "t = y[::-1]", "u = (y,)\nt = u[0]"])
def test_a_view_is_written_whatever_sizes_came_before(bind: str) -> None:
    body = f"{bind}\nt[i, j] = a[i, j]".replace("\n", "\n    ")
    function = pe.cd_from_source(f"def f(y, a):\n    {body}\n", backend="numpy")
    for size in range(2, 8):  # sizes that came in three are run-time sizes
        y, a = np.zeros((size, 3)), np.arange(3.0 * size).reshape(size, 3)
        function(y, a)
        assert_same(y, a[::-1] if "-1" in bind else a)


def test_a_name_of_its_own_may_be_used_for_another_size() -> None:
    text = "def f(x, y):\n    t[i] = 2 * x[i]\n    s = sum(t)\n    t[i] = y[i]\n    return s, t\n"
    function = pe.cd_from_source(text, {"sum": np.sum}, backend="numpy")
    for size in range(2, 8):
        s, t = function(np.ones(size), np.arange(size + 1.0))
        assert s == 2 * size
        assert_same(t, np.arange(size + 1.0))


def test_whether_others_see_what_is_written_is_not_left_to_the_run() -> None:
    text = (
        "def f(y, x):\n    n = np.sum(x > 0)\n    t = y\n    t[i] = np.ones(n)[i]\n    return t\n"
    )
    with pytest.raises(CdError, match="CD0301.*known at run time only whether `t` is written"):
        pe.cd_from_source(text, {"np": np}, backend="numpy")(np.zeros(3), np.ones(3))


@pe.cd
def _guarded(a: Any, b: Any, c: Any) -> Any:
    v[i, j] = a[j, 1] + b[i, 1]
    if c[i]:
        v[i, j] = v[j, 1]
    return v


@pe.cd
def _twice(a: Any, b: Any) -> Any:
    v[i] = a[i]
    v[i] = b[i]
    return v


def test_statements_over_all_letters_are_the_same_for_run_time_sizes() -> None:
    rng = np.random.default_rng(1)
    for n in range(2, 8):  # run-time sizes from the fourth on
        a, b, c = rng.random((n, n)), rng.random((n, n)), rng.random(n) < 0.5
        wanted = a[:, 1] + b[:, 1:2]
        wanted[c] = wanted[:, 1]
        np.testing.assert_array_equal(_guarded(a, b, c), wanted)
        assert _twice(a[0], np.arange(n)).dtype == np.float64
    with pytest.raises(pe.CdError, match="CD0301"):
        _guarded(a, b, c[1:])
