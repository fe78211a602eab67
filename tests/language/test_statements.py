"""Sections 1 and 3 of the language page: accumulating assignments, statements, guards."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdAssertionError, CdValueError

from ..compare import assert_same, run_on
from .ask import compiled, plain, refused, run

X = np.array([0.5, -1.0, 2.0, 0.25, -3.0])
A = np.random.default_rng(1).random((3, 4)) + 0.5
N = np.arange(1, 13).reshape(3, 4)


def test_plain_assignment_ignores_what_was_before_and_keeps_other_cells(backend: str) -> None:
    y = np.full((3, 3), 9.0)
    run(backend, "y, x", "y[i, i] = x[i]", y, X[:3])
    expected = np.full((3, 3), 9.0)
    np.fill_diagonal(expected, X[:3])
    assert_same(y, expected)


def test_zero_minus_is_not_negation(backend: str) -> None:
    y = np.full(2, 9.0)
    run(backend, "y, x", "y[i] = 0 - x[i]", y, np.zeros(2))
    assert not np.signbit(y).any()


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("sum", A.sum(1)), ("prod", A.prod(1)), ("max", A.max(1)), ("min", A.min(1)),
        ("mean", A.mean(1)), ("argmax", A.argmax(1)), ("argmin", A.argmin(1)),
    ],
)  # fmt: skip
def test_every_reduction(backend: str, reduce: str, expected: np.ndarray) -> None:
    got = run(backend, "a", f"y[i] = {reduce}(a[i, j])\nreturn y", A)
    assert_same(got, expected)
    got = run(backend, "a", f"y[i] = {reduce}[k](a[i, k])\nreturn y", A)
    assert_same(got, expected)


@pytest.mark.parametrize("reduce", ["any", "all"])
def test_any_and_all(backend: str, reduce: str) -> None:
    got = run(backend, "a", f"y[i] = {reduce}(a[i, j] > 0.7)\nreturn y", A)
    assert_same(got, getattr(A > 0.7, reduce)(axis=1))


@pytest.mark.parametrize("op", ["+=", "-=", "*=", "/=", "**="])
def test_float_accumulators(backend: str, op: str) -> None:
    y, expected = np.full(3, 1.5), np.full(3, 1.5)
    run(backend, "y, a", f"y[i] {op} a[i, j]", y, A)
    for j in range(4):
        exec(f"y {op} a", {"y": expected, "a": A[:, j]})
    assert_same(y, expected)


@pytest.mark.parametrize("op", ["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>="])
def test_integer_accumulators(backend: str, op: str) -> None:
    y, expected = np.full(3, 100), np.full(3, 100)
    run(backend, "y, n", f"y[i] {op} n[i, j]", y, N % 5 + 1)
    for j in range(4):
        exec(f"y {op} n", {"y": expected, "n": N[:, j] % 5 + 1})
    assert_same(y, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("max(y[i], a[i, j])", np.maximum(1.0, A.max(1))),
        ("min(y[i], a[i, j])", np.minimum(1.0, A.min(1))),
        ("relu_gate(y[i], a[i, j])", A[:, -1]),
    ],
)
def test_the_target_as_first_argument_accumulates(
    backend: str, value: str, expected: np.ndarray
) -> None:
    y = np.ones(3)
    run(backend, "y, a", f"y[i] = {value}", y, A)
    assert_same(y, expected)


@pytest.mark.parametrize(("word", "start"), [("or", False), ("and", True)])
def test_logical_accumulators(backend: str, word: str, start: bool) -> None:
    y = np.full(3, start)
    run(backend, "y, m", f"y[i] = y[i] {word} m[i, j]", y, A > 0.8)
    assert_same(y, (A > 0.8).any(1) if word == "or" else (A > 0.8).all(1))


PYTHON = [
    "s = t = x[0] + 1\ns += 1\nreturn s, t",
    "s, t = 1.0, x[2]\ns, t = t, s\nreturn s - t",
    "s = 0.0\nfor v in x:\n    s += v * v\nreturn s",
    "s = 0.0\nfor k, v in enumerate(x):\n    s += k * v\nreturn s",
    "s = 0.0\nfor v, w in zip(x, x[1:]):\n    s += v * w\nreturn s",
    "s = 0.0\nfor k in range(1, len(x), 2):\n    s += x[k]\nreturn s",
    "s = 0.0\nfor k in range(len(x) - 1, -1, -1):\n    s = s * 0.5 + x[k]\nreturn s",
    "k = 0\nwhile x[k] > -2:\n    k += 1\nreturn k",
    "s = 0.0\nfor v in x:\n    if v > 1:\n        break\n    if v < 0:\n        continue\n"
    "    s += v\nreturn s",
    "if x[0] > 0:\n    return x + 1\nelse:\n    return x - 1",
    "if len(x) == 5:\n    s = 1\nelif len(x) > 5:\n    s = 2\nelse:\n    s = 3\nreturn s",
    "pass\nreturn x.sum(), (x * 2, 3)",
    "def g(v, scale=2.0):\n    return v * scale\nreturn g(x) + g(x, scale=3.0)",
    "h = lambda v: v * v + 1\nreturn h(x) + h(x[0])",
    "s = 0\nfor r in range(3):\n    for c in range(r, 3):\n        s += r * c\nreturn s",
    "s = x[0]\nwhile True:\n    s *= 2\n    if s > 10:\n        break\nreturn s",
    "k = 3\nfor k in range(2):\n    pass\nreturn k",
]


@pytest.mark.parametrize("body", PYTHON)
def test_statements_mean_what_python_means(backend: str, body: str) -> None:
    assert_same(run(backend, "x", body, X), plain("x", body, X))


def test_defaults_and_keywords(backend: str) -> None:
    f = pe.cd_from_source("def f(x, scale=2.0, *, shift=1):\n    return x * scale + shift\n")
    assert_same(run_on(backend, f, X), X * 2 + 1)
    assert_same(run_on(backend, f, X, 3.0, shift=2), X * 3 + 2)
    assert_same(run_on(backend, f, x=X, scale=0.5), X * 0.5 + 1)
    with pytest.raises(TypeError):
        run_on(backend, f, X, 1.0, 2)


def test_comment_blocks(backend: str) -> None:
    y = np.zeros(5)
    body = """
        with comment("twice"):
            y[i] = 2 * x[i]
            with comment("and one"):
                y += 1
    """
    run(backend, "y, x", body, y, X)
    assert_same(y, 2 * X + 1)


def test_assert_and_raise(backend: str) -> None:
    body = 'assert x[0] > 0, "first must be positive"\nreturn x + 1'
    assert_same(run(backend, "x", body, X), X + 1)
    with pytest.raises(CdAssertionError, match="first must be positive"):
        run(backend, "x", body, -X)
    body = 'if x[0] < 0:\n    raise ValueError("negative start")\nreturn x + 1'
    assert_same(run(backend, "x", body, X), X + 1)
    with pytest.raises(CdValueError, match="negative start"):
        run(backend, "x", body, -X)


def test_print_shows_during_the_run(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(backend, "x, n", 'print("start", n)\nfor k in range(2):\n    print(k, x[k])', X, 7)
    assert capfd.readouterr().out.splitlines() == ["start 7", "0 0.5", "1 -1.0"]


def test_a_declaration_makes_a_temporary_of_zeros(backend: str) -> None:
    body = "t: f32[n, 2]\nt[0, 0] = 1\nreturn t + 0"
    expected = np.zeros((3, 2), np.float32)
    expected[0, 0] = 1
    assert_same(run(backend, "n", body, 3), expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if i > j:\n    y[i, j] = 0", np.where(np.tri(3, 3, -1, bool), 0, 9)),
        ("if i > j:\n    y[i, j] = 1\nelse:\n    y[i, j] = 2", np.where(np.tri(3, 3, -1), 1, 2)),
        ("if i == j or i == 0:\n    y[i, j] = 1", [[1, 1, 1], [9, 1, 9], [9, 9, 1]]),
        ("if i < 2 and m[i, j]:\n    y[i, j] = 1", [[1, 9, 1], [9, 1, 9], [9, 9, 9]]),
        ("if m[i, j]:\n    m[i, j] = False\n    y[i, j] = 1\nelse:\n    y[i, j] = 2",
         [[1, 2, 1], [2, 1, 2], [1, 2, 1]]),
        ("if i + j < 2:\n    y[i, j] = y[i, j] + y[i + 1, j]",
         [[18, 18, 9], [18, 9, 9], [9, 9, 9]]),
    ],
)  # fmt: skip
def test_guards(backend: str, body: str, expected: object) -> None:
    y, m = np.full((3, 3), 9.0), np.arange(9).reshape(3, 3) % 2 == 0
    run(backend, "y, m", body, y, m)
    assert_same(y, np.array(expected, float))


def test_a_guard_letter_is_a_free_letter_of_every_statement() -> None:
    refused("y, a", "if j > 0:\n    y[i] = sum(a[i, j])", np.zeros(3), A, says=("`j`",))
    refused("y, a", "if j > 0:\n    y[i] = a[i, 0]", np.zeros(3), A, says=("`j`",))


def test_gathers_of_gathers(backend: str) -> None:
    idx, jdx = np.array([2, 0, 1]), np.array([1, 1, 0, 2])
    y = np.zeros(4)
    run(backend, "y, x, idx, jdx", "y[n] = x[idx[jdx[n]]]", y, X, idx, jdx)
    assert_same(y, X[idx[jdx]])


def test_sizes_of_temporaries_follow_their_uses(backend: str) -> None:
    f = compiled("a", "t[j, i] = a[i, j]\nreturn t")
    assert_same(run_on(backend, f, A), A.T)
