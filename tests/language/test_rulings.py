"""Rulings A1 to A21 of the language page: the value, or the error and its way out."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdShapeError, CdSyntaxError, CdTypeError

from ..compare import assert_same, run_on
from .ask import compiled, refused, run

A = np.arange(12.0).reshape(3, 4) - 5.0
X = np.array([0.5, -1.0, 2.0, 0.25, -3.0])


def test_a1_a_letter_only_on_the_right_is_no_implied_sum() -> None:
    refused("c, a, b", "c[i, j] = a[i, k] * b[k, j]", *np.ones((3, 2, 2)),
            says=("`k`",), offers=("sum(", "+="))  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = max(a[i, j])", A.max(axis=1)),
        ("y[i] = min(a[i, j])", A.min(axis=1)),
        ("y[i] = max(a[i, 0], a[i, 3])", np.maximum(A[:, 0], A[:, 3])),
        ("y[i] = max(a[i, 0], 0, a[i, 1] + 2)", np.maximum(0, A[:, 1] + 2)),
        ("y[i] = max(y[i], a[i, j])", np.maximum(2.0, A.max(axis=1))),
        ("y[i] = min(y[i], a[i, j])", np.minimum(2.0, A.min(axis=1))),
    ],
)
def test_a2_max_of_one_reduces_of_two_compares(backend: str, body: str, expected: object) -> None:
    y = np.full(3, 2.0)
    run(backend, "y, a", body, y, A)
    assert_same(y, expected)


def test_a3_a_reduction_has_to_bind_a_letter() -> None:
    refused("y, e", "y[i, j] = e[i, j] / sum(e[i, j])", np.ones((2, 2)), np.ones((2, 2)),
            says=("sum",), offers=("sum[",))  # fmt: skip


def test_a4_a_letter_inside_and_outside_of_a_reduction() -> None:
    refused("y, a, x", "y[i] = a[j] * sum(x[i, j])", np.ones(3), np.ones(3), np.ones((3, 3)),
            says=("`j`",), offers=("sum[",))  # fmt: skip


def test_a5_in_place_reads_the_state_before(backend: str) -> None:
    x = X.copy()
    run(backend, "x", "if i > 0:\n    x[i] = x[i - 1] + 1", x)
    assert_same(x, np.concatenate((X[:1], X[:-1] + 1)))


def test_a5_a_recurrence_is_a_for(backend: str) -> None:
    x = X.copy()
    run(backend, "x, n", "for t in range(1, n):\n    x[t] = x[t - 1] + 1", x, 5)
    assert_same(x, X[0] + np.arange(5.0))


@pytest.mark.parametrize("body", ["x[1:] = x[:-1]", "x[:-1] = x[1:]", "x[:] = x[::-1]"])
def test_a6_overlapping_slices_are_numpys(backend: str, body: str) -> None:
    x, expected = X.copy(), X.copy()
    run(backend, "x", body, x)
    exec(body, {"x": expected})
    assert_same(x, expected)


def test_a7_all_contributions_count(backend: str) -> None:
    h = np.zeros(4)
    run(backend, "h, idx, w", "h[idx[n]] += w[n]", h, np.array([1, 1, 3, 1, 3]), X)
    assert_same(h, np.array([0.0, -0.25, 0.0, -1.0]))


def test_a8_the_last_write_wins(backend: str) -> None:
    h = np.zeros(4)
    run(backend, "h, idx, v", "h[idx[n]] = v[n]", h, np.array([1, 1, 3, 1, 3]), X)
    assert_same(h, np.array([0.0, 0.25, 0.0, -3.0]))


def test_a9_accumulating_into_a_local_never_set() -> None:
    refused("y, x", "t[i] += x[i]\ny[i] = t[i]", np.zeros(3), np.ones(3),
            says=("`t`",), offers=("=",))  # fmt: skip


def test_a9_a_declaration_is_a_first_value(backend: str) -> None:
    y = np.zeros(3)
    run(backend, "y, x, n", "t: f64[n]\nt[i] += x[i]\ny[i] = t[i]", y, np.ones(3), 3)
    assert_same(y, np.ones(3))


def test_a10_a_full_overwrite_with_another_shape_is_a_new_version(backend: str) -> None:
    body = "t[i] = x[i] + 1\ny[i] = t[i]\nt[i, j] = a[i, j] * 2\nc[i, j] = t[i, j]"
    y, c = np.zeros(5), np.zeros((3, 4))
    run(backend, "y, c, x, a", body, y, c, X, A)
    assert_same((y, c), (X + 1, A * 2))


def test_a10_a_partial_write_with_another_shape() -> None:
    refused("y, x, a", "t[i] = x[i]\nt[i, j] += a[i, j]\ny[i, j] = t[i, j]",
            np.zeros((3, 4)), np.ones(3), A, says=("`t`",))  # fmt: skip


def test_a11_partial_indexing_with_a_letter() -> None:
    refused("y, x", "y[i] = x[i]", np.ones((2, 2)), np.ones((2, 2)),
            offers=("y[i, j] = x[i, j]", "y[:] = x"))  # fmt: skip


def test_a11_with_a_loop_variable_it_is_a_row(backend: str) -> None:
    y = np.zeros((3, 4))
    run(backend, "y, x", "for r in range(3):\n    y[r] = x[r]", y, A)
    assert_same(y, A)


def test_a12_slices_and_letters_do_not_mix() -> None:
    error = refused("y, x", "y[i, 1:] = x[i, :-1]", np.ones((3, 4)), A)
    assert sum(len(one.helps) for one in error.diagnostics) >= 1
    assert "y[" in "".join(error.diagnostics[0].helps)


def test_a12_slices_beside_loop_variables_are_fine(backend: str) -> None:
    y = np.zeros((3, 4))
    run(backend, "y, x", "for r in range(3):\n    y[r, 1:] = x[r, :-1]", y, A)
    assert_same(y[:, 1:], A[:, :-1])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = 1 if 0 < x[i] < 1 else 0", (X > 0) & (X < 1)),
        ("y[i] = 1 if x[i] > 0 and x[i] < 1 else 0", (X > 0) & (X < 1)),
        ("y[i] = 1 if x[i] < 0 or x[i] > 1 else 0", (X < 0) | (X > 1)),
        ("y[i] = 1 if not x[i] > 0 else 0", ~(X > 0)),
        ("for k in range(5):\n    y[k] = 1 if 0 < x[k] < 1 else 0", (X > 0) & (X < 1)),
    ],
)
def test_a13_words_of_logic_on_elements(backend: str, body: str, expected: np.ndarray) -> None:
    y = np.zeros(5)
    run(backend, "y, x", body, y, X)
    assert_same(y, expected.astype(float))


@pytest.mark.parametrize(
    ("test", "instead"),
    [("x > 0 and x < 1", "&"), ("x > 0 or x < -1", "|"), ("not (x > 0)", "~"), ("0 < x < 1", "&")],
)
def test_a13_words_of_logic_on_whole_arrays(test: str, instead: str) -> None:
    refused("y, x", f"y[:] = {test}", np.zeros(5, bool), X, offers=(instead,))


def test_a14_a_test_on_letters_is_a_guard(backend: str) -> None:
    y = np.full(5, 9.0)
    run(backend, "y, x", "if x[i] > 0:\n    y[i] = x[i]\nelse:\n    y[i] = 0", y, X)
    assert_same(y, np.maximum(X, 0))


def test_a14_a_test_on_a_loop_variable_is_a_branch(backend: str) -> None:
    y = np.full(5, 9.0)
    run(backend, "y, x", "for t in range(5):\n    if x[t] > 0:\n        y[t] = x[t]", y, X)
    assert_same(y, np.where(X > 0, X, 9.0))


def test_a14_a_test_on_a_whole_array() -> None:
    refused("y, x", "if x > 0:\n    y[:] = x", np.zeros(5), X, offers=("where",))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = x[i] if x[i] > 0 else -x[i]", np.abs(X)),
        ("y[i] = x[i - 1] if i > 0 else 7.0", np.concatenate(([7.0], X[:-1]))),
        ("y[i] = 7.0 if i == 0 else x[i - 1]", np.concatenate(([7.0], X[:-1]))),
    ],
)
def test_a15_select(backend: str, body: str, expected: np.ndarray) -> None:
    y = np.zeros(5)
    run(backend, "y, x", body, y, X)
    assert_same(y, expected)


def test_a15_both_sides_have_to_be_in_range() -> None:
    refused("y, x", "y[i] = x[i - 1] if x[i] > 0 else 0.0", np.zeros(5), X,
            error=IndexError, says=("i = 0",))  # fmt: skip


def test_a15_and_stops_early(backend: str) -> None:
    body = "k = 0\nwhile k < 5 and x[k] != 0.25:\n    k += 1\nreturn k"
    assert run(backend, "x", body, X) == 3
    assert run(backend, "x", body, X * 2) == 5


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return sum(x)", X.sum()),
        ("return max(x)", X.max()),
        ("return min(x)", X.min()),
        ("return len(x)", 5),
        ("return abs(x)", np.abs(X)),
        ("return int(x[2]), float(x[0]), round(x[2])", (2, 0.5, 2)),
        ("y[i] = abs(x[i])\nreturn y", np.abs(X)),
        ("y[i] = float(x[i] > 0)\nreturn y", (X > 0).astype(float)),
    ],
)
def test_a16_builtins(backend: str, body: str, expected: object) -> None:
    assert_same(run(backend, "x, y", body, X, np.zeros(5)), expected)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_a16_builtins_on_matrices(name: str) -> None:
    refused("a", f"return {name}(a)", A, says=(name,), offers=(f"np.{name}",))


def test_a17_small_powers_are_exact_products(backend: str) -> None:
    x = np.random.default_rng(1).random(50)
    assert np.array_equal(run(backend, "x", "return x ** 2", x), x * x)
    assert np.array_equal(run(backend, "x", "return x ** 2", np.arange(5)), np.arange(5) ** 2)


def test_a17_an_integer_to_a_negative_power() -> None:
    refused("x", "return x ** -1", np.arange(1, 4), says=("negative", "power"))


@pytest.mark.parametrize(
    ("line", "sign"), [("p =- 0.1 * g", "-="), ("p =+ g", "+="), ("p[i] =- g[i]", "-=")]
)
def test_a18_a_sign_after_the_equals(line: str, sign: str) -> None:
    refused("p, g", f"{line}\nreturn p", X.copy(), X, error=CdSyntaxError,
            says=(f"={sign[0]}",), offers=(sign,))  # fmt: skip


def test_a18_a_space_makes_it_a_sign(backend: str) -> None:
    y = np.zeros(5)
    run(backend, "y, x", "y[i] = -x[i]", y, X)
    assert_same(y, -X)


def test_a19_annotations_that_hold(backend: str) -> None:
    y = np.zeros((3, 4))
    run(backend, "y: f64[n, m], x: f64[n, m]", "y[i, j] = 2 * x[i, j]", y, A)
    assert_same(y, 2 * A)


def test_a19_annotations_that_do_not_hold() -> None:
    params, body = "y: f32[n, m], x: f32[n, m]", "y[i, j] = x[i, j]"
    f32 = A.astype(np.float32)
    refused(params, body, f32.copy(), A, error=CdTypeError, says=("`x`",))
    refused(params, body, f32.copy(), f32[:, :3], error=CdShapeError, says=("`x`", "3", "4"))
    refused(params, body, f32.copy(), f32[0], says=("`x`",))
    refused('y: f32["n m"], x', body, f32.copy(), f32, offers=("f32[n, m]",))


def test_a20_any_number_of_sizes(backend: str) -> None:
    f = compiled("y, x", "y[i] = sum(x[i, j])")
    for n in (3, 1, 4, 7, 5, 2, 0):
        x = np.random.default_rng(n).random((n, n + 1))
        y = np.zeros(n)
        run_on(backend, f, y, x)
        assert_same(y, x.sum(axis=1))


def test_a21_the_index_as_a_number(backend: str) -> None:
    y = np.zeros(5)
    run(backend, "y", "y[i] = exp(i * 0.1) + i", y)
    assert_same(y, np.exp(np.arange(5) * 0.1) + np.arange(5))


def test_a21_the_index_as_a_number_needs_a_range() -> None:
    refused("y", "t[i] = exp(i * 0.1)\ny[:] = t", np.zeros(5), says=("`i`",))
