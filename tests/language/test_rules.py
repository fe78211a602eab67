"""Rules of docs/language.md that no other file of this folder is about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdIndexError, CdNameError, CdTypeError

from ..compare import assert_same, run_on
from .ask import compiled, plain, refused, run

X = np.array([0.5, -1.0, 2.0])


# names


@pytest.mark.parametrize("word", ["i8", "i32", "u64", "f16", "f32", "c64"])
def test_n4_words_for_types_are_never_letters(backend: str, word: str) -> None:
    got = run(backend, "x", f"t[i] = {word}(x[i])\nreturn t", np.array([1.0, 2.0]))
    assert got.dtype == getattr(pe, word).dtype.numpy
    refused("y, x", f"y[{word}] = x[{word}]", X.copy(), X)


@pytest.mark.parametrize(
    "body",
    ["t = table\nt[0] = 1", "table.T[0] = 1", "table[1:] += x", "np.add(x, 1, out=table)",
     "table.sort()", "for v in table.reshape(3, 1):\n    v[0] = 5", "fill(table)",
     "tables[0][:] = x"],
)  # fmt: skip
def test_n7_captured_arrays_are_not_written_through_anything(body: str) -> None:
    table = X.copy()
    names = {"table": table, "tables": (table,), "fill": lambda a: a.fill(3.0)}
    if "fill" in body:
        names["fill"] = pe.cd_from_source("def fill(a):\n    a[:] = 3\n", {})
    refused("x", body, np.ones(2 if "1:" in body else 3), error=CdNameError, **names)
    assert_same(table, X)


def test_n7_an_array_of_an_object_may_be_written_and_another_one_bound(backend: str) -> None:
    model = SimpleNamespace(w=np.zeros(3))
    run(backend, "x", "model.w[...] = x", X, model=model)
    assert_same(model.w, X)
    run(backend, "x", "model.w = x * 2", X, model=model)
    assert_same(model.w, X * 2)


@pytest.mark.parametrize("body", ["y = t + x\nt = x\nreturn y", "return x[k]\nk = 1"])
def test_n8_a_local_is_one_everywhere(body: str) -> None:
    refused("x", f"if x[0] > 9:\n    k = 1\n{body}", X, error=CdNameError)


def test_n9_attributes_are_compared_on_every_call(backend: str) -> None:
    model = SimpleNamespace(w=X.copy(), rate=2.0, act=np.abs)
    f = compiled("x", "return model.act(x * model.w) * model.rate", model=model)
    assert_same(run_on(backend, f, X), X * X * 2)
    model.w, model.rate, model.act = -X, 3.0, np.negative
    assert_same(run_on(backend, f, X), X * X * 3)


# statements


def test_s1_a_statement_with_letters_has_one_target() -> None:
    refused("x", "t[i] = u[i] = x[i]", X, says=("one target",))


@pytest.mark.parametrize(
    "body", ["s, t = sum(x[i]), max(x[i])\nreturn s, t", "return sum(x[i]), max(x[i])",
             "s = u = sum(x[i])\nreturn s, max(u, max(x[i]))"],
)  # fmt: skip
def test_s1_reduced_numbers_in_tuples(backend: str, body: str) -> None:
    assert_same(run(backend, "x", body, X), (np.float64(1.5), np.float64(2.0)))


def test_s2_a_new_array_needs_plain_letters() -> None:
    refused("x", "t[2 * i] = x[i]", X, error=CdNameError, offers=("declare",))


def test_s5_rows_are_views_and_the_variable_lasts(backend: str) -> None:
    body = """
        for row in a:
            row *= 2
        for k in range(5):
            pass
        return k
    """
    a = np.ones((2, 3))
    assert run(backend, "a", body, a) == 4
    assert_same(a, np.full((2, 3), 2.0))


@pytest.mark.parametrize(
    "body",
    ["for v in x:\n    pass\nreturn v", "k = 7\nfor k in range(n):\n    pass\nreturn k",
     "k = 7\nfor k in range(0, n):\n    x[k] += k\nreturn k, x.sum()",
     "for k in range(5):\n    if k == 2:\n        break\nreturn k"],
)  # fmt: skip
def test_s5_what_a_loops_variable_is_afterwards(backend: str, body: str) -> None:
    for n in (0, 3):
        expected = plain("x, n", body, X.copy(), n)
        assert_same(run(backend, "x, n", body, X.copy(), n), expected)


def test_s5_a_variable_assigned_inside_does_not_last() -> None:
    refused("x", "for k in range(3):\n    k = k * 2\nreturn k", X, offers=("another name",))


def test_s5_what_a_loop_without_rounds_would_have_set_is_zero(backend: str) -> None:
    body = "for k in range(n):\n    s = x[k]\n    t = x * k\nreturn s, t"
    assert_same(run(backend, "x, n", body, X, 2), (X[1], X))
    assert_same(run(backend, "x, n", body, X, 0), (np.float64(0), np.zeros(3)))


@pytest.mark.parametrize(
    "body",
    ["s = 0.0\nfor p in (x, x[1:], 3.0):\n    s += np.sum(p)\nreturn s",
     "s = 0.0\nfor k in range(2):\n    s += (x, x * 2)[k].sum()\nreturn s",
     "return [n * x[0] for n in (1, 2, 3) if n != 2]"],
)  # fmt: skip
def test_s6_unrolled(backend: str, body: str) -> None:
    assert_same(run(backend, "x", body, X), plain("x", body, X))


def test_s8_a_name_set_on_one_side_may_not_be_read() -> None:
    refused("x", "if x[0] > 0:\n    s = 1\nreturn s", X, says=("one side",))
    refused("x", "if x[0] > 0:\n    s = 1\nelse:\n    s = x\nreturn s", X, says=("depending",))


def test_s8_a_known_test_drops_the_other_side(backend: str) -> None:
    body = "if mode == 'sum':\n    return x.sum()\nreturn x.nothing_of_the_kind"
    assert_same(run(backend, "x, mode", body, X, "sum"), X.sum())


def test_s9_a_return_inside_a_loop(backend: str) -> None:
    body = "for k in range(3):\n    if x[k] > 1:\n        return k\nreturn -1"
    for start in (X, -X, X + 2):
        assert run(backend, "x", body, start) == plain("x", body, start)
    refused("x", "for k in range(3):\n    if x[k] > 1:\n        return k", X, says=("some paths",))


def test_s9_an_early_return_without_a_value(backend: str) -> None:
    body = "if x[0] > 0:\n    x[0] = 9\n    return\nx[1] = 9"
    for start in (X, -X):
        x, expected = start.copy(), start.copy()
        assert run(backend, "x", body, x) is plain("x", body, expected)
        assert_same(x, expected)


@pytest.mark.parametrize(
    "body",
    ["t = x\nfor k in range(3):\n    t = t + k\nreturn t",
     "t = x * 1\nu = t\nfor k in range(3):\n    t = t * 2\nreturn t, u",
     "t = n\nfor k in range(3):\n    t = t * 0.5\nreturn t",
     "t = n\nfor k in range(0):\n    t = t * 2\nreturn t"],
)  # fmt: skip
def test_s10_names_across_rounds(backend: str, body: str) -> None:
    x, expected = X.copy(), X.copy()
    assert_same(run(backend, "x, n", body, x, 3), plain("x, n", body, expected, 3))
    assert_same(x, expected)


def test_s10_a_shape_may_not_change() -> None:
    refused("x", "t = x\nfor k in range(2):\n    t = t[1:]\nreturn t", X, says=("`t`", "size"))


# ranges and guards


def test_r7_one_access_has_one_fill(backend: str) -> None:
    a = np.ones((2, 2))
    refused("y, a", "y[i, j] = a[pad(i - 1, 1), pad(j - 1, 2)]", a.copy(), a, says=("fill",))
    y = a.copy()
    run(backend, "y, a", "y[i, j] = a[pad(i - 1, 7), pad(j - 1, 7)]", y, a)
    assert_same(y, np.array([[7.0, 7.0], [7.0, 1.0]]))


@pytest.mark.parametrize(
    ("body", "expected"),
    [("t[i] = sum(a[i, j] * sum[k](a[i, k]))\nreturn t", [9.0, 144.0]),
     ("t[i] = sum[j, k in range(2)](a[i, j] * k)\nreturn t", [3.0, 12.0]),
     ("return argmax[i, j](a[i, j])", np.int64(5)), ("return argmin(a[i, j])", np.int64(0))],
)  # fmt: skip
def test_r8_r9_reductions_of_several_letters(backend: str, body: str, expected: Any) -> None:
    a = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    got = run(backend, "a", body, a)
    assert_same(got, np.asarray(expected) if isinstance(expected, list) else expected)


def test_g2_the_test_is_evaluated_once(backend: str) -> None:
    x, y = X.copy(), np.zeros(3)
    run(backend, "x, y", "if x[i] > 0:\n    x[i] = -1\n    y[i] = 1\nelse:\n    x[i] = 1", x, y)
    assert_same((x, y), (np.array([-1.0, 1.0, -1.0]), np.array([1.0, 0.0, 1.0])))


@pytest.mark.parametrize("inner", ["for t in range(2):\n        y[i] = t", "y[:] = 1", "s = 1"])
def test_g4_guards_hold_statements_of_index_notation(inner: str) -> None:
    refused("y", f"if i > 0:\n    {inner}", np.zeros(3))


# types


@pytest.mark.parametrize(
    ("cast", "values", "expected"),
    [("x.astype(np.int8)", [1.9, -1.9, 300.0, np.nan, -np.inf], np.array([1, -1, 127, 0, -128],
                                                                        np.int8)),
     ("u8(x)", [-5.0, 255.9, np.inf], np.array([0, 255, 255], np.uint8)),
     ("i64(x)", [1e300], np.array([2**63 - 1])),
     ("bool_(x)", [0.0, -0.0, np.nan, 0.5], np.array([False, False, True, True]))],
)  # fmt: skip
def test_t6_casts_from_floats_saturate(
    backend: str, cast: str, values: list[float], expected: np.ndarray
) -> None:
    assert_same(run(backend, "x", f"return {cast}", np.array(values)), expected)


def test_t6_casts_of_integers_wrap_and_of_complex_drop_the_rest(backend: str) -> None:
    body = "return i8(n), u16(n), f64(z)"
    got = run(backend, "n, z", body, np.array([300, -1]), np.array([1 + 2j]))
    expected = np.array([44, -1], np.int8), np.array([300, 65535], np.uint16), np.array([1.0])
    assert_same(got, expected)


def test_t9_bfloat16(backend: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="there is no bfloat16 without it")
    b = np.array([1.0, 3.0], ml_dtypes.bfloat16)
    got = run(backend, "b, f, h", "return b / 3, b + 1, b * f, b * h, b.sum()", b,
              np.ones(2, np.float32), np.ones(2, np.float16))  # fmt: skip
    assert [x.dtype.name for x in got] == ["bfloat16", "bfloat16", "float32", "float32", "bfloat16"]
    assert_same(got[0].astype(float), (b.astype(np.float32) / 3).astype(b.dtype).astype(float))


def test_t12_the_first_of_two_zeros(backend: str) -> None:
    got = run(backend, "x, y", "return np.maximum(x, y), np.minimum(y, x)", np.zeros(1),
              -np.zeros(1))  # fmt: skip
    assert [bool(np.signbit(x[0])) for x in got] == [False, True]


def test_t14_bools(backend: str) -> None:
    body = "m |= n\nreturn m + n, m * n, ~m, m + 1, m.sum()"
    m, n = np.array([True, False]), np.array([False, False])
    assert_same(run(backend, "m, n", body, m.copy(), n), plain("m, n", body, m.copy(), n))
    refused("m", "return m - m", m, error=CdTypeError)


@pytest.mark.parametrize("test", ["x > -1", "x < 300", "x == 256", "p < x", "x != p", "-1 <= x"])
def test_t15_comparisons_with_integers_are_by_value(backend: str, test: str) -> None:
    x = np.array([0, 255], np.uint8)
    assert_same(run(backend, "x, p", f"return {test}", x, -5), plain("x, p", f"return {test}", x,
                                                                      -5))  # fmt: skip


# array notation


@pytest.mark.parametrize(
    "body", ["return np.empty((2, 2))", "t = np.empty_like(x)\nt[0] = 1\nreturn t",
             "t: f64[3]\nreturn t"],
)  # fmt: skip
def test_x9_new_arrays_are_zeros(backend: str, body: str) -> None:
    got = run(backend, "x", body, X)
    assert np.count_nonzero(got) == ("= 1" in body) and got.dtype == np.float64


@pytest.mark.parametrize(
    "body", ["u, v, w = x\nreturn [u, v] + [w]", "a, (b, c) = 1, (x, 2)\nreturn b * c + a",
             "t = (x, 1)\nreturn t[-1], len(t), t[0][1:]", "u, v = a.shape\nreturn u * v"],
)  # fmt: skip
def test_x10_sequences(backend: str, body: str) -> None:
    a = np.ones((2, 3))
    assert_same(run(backend, "x, a", body, X, a), plain("x, a", body, X, a))


def test_x12_a_given_minlength_is_the_length(backend: str) -> None:
    n = np.array([1, 1, 3])
    assert_same(run(backend, "n", "return np.bincount(n, minlength=5)", n),
                np.array([0, 2, 0, 1, 0]))  # fmt: skip
    refused("n", "return np.bincount(n, minlength=2)", n, says=("3",), backend=backend)


# functions


def test_c5_methods_of_an_object(backend: str) -> None:
    class Counter:
        def __init__(self) -> None:
            self.h = np.zeros(3)

        count = pe.cd_from_source("def count(self, idx):\n    self.h[idx[n]] += 1\n", {})

    counter = Counter()
    run_on(backend, counter.count, np.array([0, 2, 2]))
    assert_same(counter.h, np.array([1.0, 0.0, 2.0]))


def test_c6_the_dictionary_is_kept_even_empty(backend: str) -> None:
    around: dict[str, Any] = {}
    f = pe.cd_from_source("lambda x: x * scale", around)
    with pytest.raises(CdNameError):
        run_on(backend, f, X)
    for scale in (2.0, 3.0):
        around["scale"] = scale
        assert_same(run_on(backend, f, X), X * scale)


# checks and numbers


def test_k1_what_was_written_before_a_check_stays(backend: str) -> None:
    y = np.zeros(2)
    refused("y, x", "y[0] = 5\nassert x[0] > 0\ny[1] = 5", y, -np.ones(1), backend=backend)
    assert_same(y, np.array([5.0, 0.0]))


@pytest.mark.parametrize("size", [5, 33, 300, 5000])
def test_k1_of_many_that_fail_the_first_is_told(size: int, backend: str) -> None:
    y, x, k = np.zeros(size), np.zeros(10), np.arange(size) + 8
    with pytest.raises(CdIndexError, match="index 10 is out of range for axis 0 of `x`"):
        run(backend, "y, x, k", "y[i] = x[k[i]]", y, x, k)


def test_k3_sums_go_in_order(backend: str) -> None:
    x = np.array([1e16, 1.0, -1e16, 1.0] * 50)
    total = 0.0
    for v in x:
        total += v
    with pe.override(profile="strict"):
        assert run(backend, "x", "return sum(x[i])", x) == total
    lanes = np.zeros(32)
    for n, v in enumerate(x):
        lanes[n % 32] += v
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    assert run(backend, "x", "return sum(x[i])", x) == (lanes[0] if backend == "cc" else total)


def test_k4_special_numbers(backend: str) -> None:
    x, body = (
        np.array([0.0, -0.0, np.inf, np.nan, 5e-324]),
        "return x / x, 1 / x, x * 1, x == x, -x",
    )
    with np.errstate(all="ignore"):
        expected = plain("x", body, x)
    got = run(backend, "x", body, x)
    assert_same(got, expected)
    assert [np.signbit(one).tolist() for one in got[1:3]] == [
        np.signbit(one).tolist() for one in expected[1:3]
    ]
