"""Range rules R1 to R6 and aliasing rules V1 to V6 of the language page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdIndexError, CdShapeError

from ..compare import assert_same, copied
from .ask import plain, refused, run

X = np.array([0.5, -1.0, 2.0, 0.25, -3.0, 4.0])
A = np.arange(12.0).reshape(3, 4) - 5.0


def test_r1_plain_uses_have_to_agree() -> None:
    refused("c, a, b", "c[i] = a[i] + b[i]", np.zeros(4), np.zeros(4), np.zeros(5),
            error=CdShapeError, says=("4", "5", "`i`"))  # fmt: skip


def test_r1_size_one_does_not_broadcast() -> None:
    refused("c, b", "c[i] = b[i]", np.zeros(4), np.zeros(1), error=CdShapeError, offers=("b[0]",))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = sum[k in range(2)](x[i] * k)", X),
        ("if i < 5:\n    y[i] = sum[k in range(2)](x[i + k])", [*(X[:-1] + X[1:]), 9.0]),
        ("y[i] = sum[k < i](x[k])", np.cumsum(X) - X),
        ("y[i] = sum[k >= i](x[k])", np.cumsum(X[::-1])[::-1]),
        ("y[i] = max[k <= i](x[k])", np.maximum.accumulate(X)),
        ("if i > 0:\n    y[i] = x[i - 1]", [9.0, *X[:-1]]),
        ("if i >= 2 and i < 4:\n    y[i] = x[i]", [9.0, 9.0, *X[2:4], 9.0, 9.0]),
    ],
)
def test_r2_binders_and_guards_restrict(backend: str, body: str, expected: Any) -> None:
    y = np.full(6, 9.0)
    run(backend, "y, x", body, y, X)
    assert_same(y, np.asarray(expected))


@pytest.mark.parametrize(
    ("body", "point"),
    [
        ("y[i] = x[i - 1]", "i = 0"),
        ("y[i] = x[i + 1]", "i = 5"),
        ("y[i] = x[2 * i]", "i = "),
        ("y[i] = x[i - 1] + x[i + 1]", "i = 0"),
    ],
)
def test_r3_a_shifted_read_may_not_leave_the_array(body: str, point: str) -> None:
    y = np.zeros(6)
    error = refused("y, x", body, y, X, error=CdIndexError, says=(point,))
    helps = "\n".join(line for one in error.diagnostics for line in one.helps)
    assert all(word in helps for word in ("clamp", "wrap", "pad"))
    assert not y.any()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = x[clamp(i - 1)]", np.concatenate((X[:1], X[:-1]))),
        ("y[i] = x[clamp(i + 3)]", X[np.minimum(np.arange(6) + 3, 5)]),
        ("y[i] = x[wrap(i - 1)]", np.roll(X, 1)),
        ("y[i] = x[wrap(i + 14)]", np.roll(X, -14)),
        ("y[i] = x[pad(i - 2)]", np.concatenate(([0, 0], X[:-2]))),
        ("y[i] = x[pad(i + 1, 7)]", np.concatenate((X[1:], [7.0]))),
        ("y[i] = x[pad(i + 1, -inf)]", np.concatenate((X[1:], [-np.inf]))),
        ("if i < 3:\n    y[2 * i + 1] = x[2 * i]", [9, X[0], 9, X[2], 9, X[4]]),
    ],
)
def test_r3_reads_that_are_brought_into_range(backend: str, body: str, expected: Any) -> None:
    y = np.full(6, 9.0)
    run(backend, "y, x", body, y, X)
    assert_same(y, np.asarray(expected, float))


def test_r4_a_new_temporary_takes_the_intersection(backend: str) -> None:
    body = "t[i] = sum[k in range(3)](x[i + k])\nreturn t"
    assert_same(run(backend, "x", body, X), X[:-2] + X[1:-1] + X[2:])
    body = "t[i] = x[i + 1] + x[i + 2]\nreturn t"
    assert_same(run(backend, "x", body, X), X[1:-1] + X[2:])


def test_r5_a_window_index_needs_a_range() -> None:
    refused("y, x", "y[i] = sum(x[2 * i + k])", np.zeros(2), X, says=("`k`",),
            offers=("k in range(",))  # fmt: skip


@pytest.mark.parametrize("bad", [6, 99, -1])
def test_r6_gathers_are_checked_before_the_first_write(backend: str, bad: int) -> None:
    y, idx = np.full(3, 9.0), np.array([0, bad, 2])
    refused("y, x, idx", "y[n] = x[idx[n]]", y, X, idx, error=CdIndexError,
            says=(str(bad), "6", "1"), backend=backend)  # fmt: skip
    assert_same(y, np.full(3, 9.0))


def test_r6_scatters_are_checked_before_the_first_write(backend: str) -> None:
    h = np.zeros(3)
    refused("h, idx", "h[idx[n]] += 1", h, np.array([0, 1, 3]), error=CdIndexError,
            says=("3",), backend=backend)  # fmt: skip
    assert not h.any()


def test_r6_computed_subscripts_are_checked_at_the_point(backend: str) -> None:
    body = "for t in range(3):\n    k = idx[t] * 2\n    y[t] = x[k]"
    refused("y, x, idx", body, np.zeros(3), X, np.array([0, 2, 3]), error=CdIndexError,
            says=("6",), backend=backend)  # fmt: skip


VIEWS = [
    ("V1", "t = a[1:]\na[2] = 0\nreturn t.sum()"),
    ("V1", "t = a[1]\nt[:] = 7"),
    ("V1", "t = a[:, 2]\nt += 1"),
    ("V1", "t = a.T\nt[0, 1] = 9\nreturn t + 0"),
    ("V1", "t = a\nt -= 1"),
    ("V1", "t = a[None]\nt[0, 0] = 5"),
    ("V1", "t = np.flip(a)\nt[0] = 5"),
    ("V1", "t = a.reshape(4, 3)\nt[1] = 5"),
    ("V1", "s = x[1]\nx[1] = 99\nreturn s"),
    ("V1", "t = a[1]\ns = t[1:3]\ns *= 10"),
    ("V2", "t = a + 0\nt[0] = 1\nreturn t"),
    ("V2", "t = a.copy()\na[0] = 0\nreturn t"),
    ("V2", "t = a.astype(np.float64)\nt[:] = 0\nreturn t"),
    ("V2", "t = np.array(x)\nt[0] = 8\nreturn t"),
    ("V2", "t = x[[0, 2]]\nx[0] = 8\nreturn t"),
    ("V2", "t = x\nt = t + 1\nreturn t"),
    ("V2", "t = x\nt += 1\nreturn t"),
    ("V3", "s = x.copy()\nt = x * 2\nfor k in range(3):\n"
           "    t[1:] = s[:-1] + 1\n    s, t = t, s\nreturn s, t"),
    ("V6", "x = x + 1\nreturn x"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "body"), VIEWS)
def test_views_are_numpys(backend: str, rule: str, body: str) -> None:
    expected_args, args = (A.copy(), X.copy()), (A.copy(), X.copy())
    expected = plain("a, x", body, *expected_args)
    assert_same(run(backend, "a, x", body, *args), expected, where=rule)
    assert_same(args, expected_args, where=f"{rule}: arguments")


def test_v3_one_base_per_name() -> None:
    body = "if x[0] > 0:\n    t = a\nelse:\n    t = b\nt[0] = 1"
    refused("a, b, x", body, A.copy(), A.copy(), X, says=("`t`",), offers=(".copy()",))


@pytest.mark.parametrize("view", ["a.T.reshape(12)", "np.broadcast_to(x, (3, 6))"])
def test_v4_writing_where_numpy_has_no_view(view: str) -> None:
    refused("a, x", f"t = {view}\nt[0] = 1\nreturn t", A.copy(), X.copy(), says=("`t`",))


def test_v4_reading_there_is_fine(backend: str) -> None:
    body = "t = a.T.reshape(12)\nreturn t + 1, np.broadcast_to(x, (3, 6)) * 2"
    assert_same(run(backend, "a, x", body, A, X), plain("a, x", body, A, X))


@pytest.mark.parametrize(
    ("params", "body", "of"),
    [
        ("y, x", "y[:] = x * 2", lambda x: (x, x)),
        ("y, x", "y += x[::-1]", lambda x: (x, x)),
        ("y, x", "y[:] = x * 2", lambda x: (x[1:], x[:-1])),
        ("y, x", "y[:] = x * 2", lambda x: (x[:-1], x[1:])),
        ("y, x", "y[:] = x + 1", lambda x: (x[::2], x[:3])),
        ("y, x", "y[:] = x", lambda x: (x, x[::-1])),
        ("y, x", "return y + x", lambda x: (x[1:], x[:-1])),
    ],
)
def test_v5_arguments_that_share_memory(backend: str, params: str, body: str, of: Any) -> None:
    expected_base, base = X.copy(), X.copy()
    expected = plain(params, body, *of(expected_base))
    assert_same(run(backend, params, body, *of(base)), expected)
    assert_same(base, expected_base)


def test_v5_otherwise_numpys_result_or_a_refusal_that_names_both(backend: str) -> None:
    body = "for t in range(3):\n    y[t] = x[t] + 1\n    x[t] += y[t]"
    expected, base = X.copy(), X.copy()
    plain("y, x", body, expected[1:], expected[:-1])
    try:
        run(backend, "y, x", body, base[1:], base[:-1])
    except pe.CdError as error:
        assert "`x`" in str(error) and "`y`" in str(error)
        expected = X
    assert_same(base, expected)


def test_v5_the_overlap_is_part_of_the_specialisation(backend: str) -> None:
    for make in (lambda x: (x[1:], x[:-1]), lambda x: (np.zeros(5), x[:-1])):
        base = X.copy()
        y, x = make(base)
        other_y, other_x = copied((y, x))
        plain("y, x", "y[:] = x * 2", other_y, other_x)
        run(backend, "y, x", "y[:] = x * 2", y, x)
        assert_same(y, other_y)


def test_v6_rebinding_a_parameter_writes_nothing() -> None:
    refused("c, a, b", "c = a + b", np.zeros(6), X, X, says=("`c =",), offers=("c[...] =",))


def test_v6_scalar_parameters_rebind(backend: str) -> None:
    body = "g = g * 2\nn += 1\nreturn g * x, n"
    assert_same(run(backend, "x, g, n", body, X, 0.5, 3), (X, 4))
