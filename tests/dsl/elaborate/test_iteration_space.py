"""What loops go over is what Python's iterators give, run or unrolled."""

from __future__ import annotations

import math
import re
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import For
from tests.compare import assert_same
from tests.language.ask import compiled, plain, run

from .scenes import found, typed

X = np.arange(12.0).reshape(3, 4)
LOOPS = (
    "range(5)", "range(2, 5)", "range(5, 1, -1)", "range(0, 7, 3)", "range(4, 4)",
    "reversed(range(5))", "reversed(range(1, 8, 3))", "range(n)", "range(n, -1, -2)",
    "[3, 1, 2]", "(3, 1)", "x[:, 0]", "reversed([3, 1])", "range(len(x))",
)  # fmt: skip
PAIRS = (
    "enumerate(range(4))", "enumerate(x[0])", "enumerate([7, 8], 5)", "enumerate(x[1], 2)",
    "zip(range(4), x[0])", "zip(range(2, 9), range(3))", "zip(x[0], x[1])",
    "zip([1, 2, 3], x[0])", "[(1, 2), (3, 4)]", "enumerate(reversed([5, 6]))",
)  # fmt: skip


@pytest.mark.parametrize("over", LOOPS)
def test_single_targets_take_pythons_values(over: str) -> None:
    body = f"k = 0\ny = np.zeros(9)\nfor i in {over}:\n    y[k] = i\n    k += 1\nreturn y, k"
    assert_same(run("numpy", "x, n", body, X, 5), plain("x, n", body, X, 5))


@pytest.mark.parametrize("over", PAIRS)
def test_pairs_take_pythons_values(over: str) -> None:
    body = (
        f"k = 0\ny = np.zeros((9, 2))\nfor i, j in {over}:\n    y[k] = (i, j)\n    k += 1\nreturn y"
    )
    assert_same(run("numpy", "x", body, X), plain("x", body, X))


def test_rows_are_views_that_can_be_written() -> None:
    body = "for n, row in enumerate(x):\n    row[n] = -1.0\nreturn x"
    assert_same(run("numpy", "x", body, X.copy()), plain("x", body, X.copy()))


def test_ranges_and_arrays_run_and_sequences_unroll() -> None:
    for over in ("range(4)", "x", "enumerate(x)", "zip(x, range(9))", "range(n)"):
        body = f"s = 0.0\nfor i in {over}:\n    s += 1.0\nreturn s"
        assert len(found(typed("x, n", body, X, 3).procedure, For)) == 1, over
    for over in ("[1, 2]", "(x[0], x[1])", "zip([1, 2], x)"):
        body = f"s = 0.0\nfor i in {over}:\n    s += 1.0\nreturn s"
        assert not found(typed("x, n", body, X, 3).procedure, For), over


def test_a_loop_whose_number_is_needed_is_unrolled() -> None:
    body = "s = 0.0\nfor n in range(3):\n    s += x.sum(axis=n % 2)[0]\nreturn s"
    assert not found(typed("x", body, X).procedure, For)
    assert_same(run("numpy", "x", body, X), plain("x", body, X))


@pytest.mark.parametrize(
    ("over", "code"),
    [("range(1, 2, 3, 4)", "CD0424"), ("range(0, 4, 0)", "CD0503"), ("range(2.5)", "CD0501")],
)
def test_what_cannot_be_counted_is_refused(over: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", f"for i in {over}:\n    x[0, 0] = 1.0", X.copy())


ENDS = (0, 5, -7, 2**63 - 1, -(2**63))


@pytest.mark.parametrize("first", ["b[0]", "0"])
def test_rounds_by_a_step_of_the_run_are_pythons_up_to_the_largest_numbers(
    backend: str, first: str
) -> None:
    body = f"""k = 0
y = np.zeros(5, int)
for i in range({first}, b[1], b[2]):
    if k == 5: break
    y[k] = i
    k += 1
return y[:2], y[-1], k"""
    f = compiled("b", body).on(backend)
    steps = (1, 2, 3, 2**62, 2**63 - 1, -1, -2, -3, -(2**62), 1 - 2**63)
    for lo, hi, step in product(ENDS, ENDS, steps):
        values = [*islice(range(0 if first == "0" else lo, hi, step), 5)]
        held = values + [0] * (5 - len(values))
        start, last, count = f(np.array([lo, hi, step]))
        wanted = (held[:2], held[-1], len(values))
        assert (start.tolist(), int(last), int(count)) == wanted, (lo, hi, step)


def test_what_no_int64_counts_is_told(backend: str) -> None:
    f = compiled("b", "for i in range(b[0], b[1], b[2]): return i\nreturn 0").on(backend)
    with pytest.raises(OverflowError, match="step of a range"):
        f(np.array([5, 0, -(2**63)]))
    g = compiled("b", "for i in reversed(range(b[0], b[1], b[2])): return i\nreturn 0").on(backend)
    assert g(np.array([5, -(2**62), -1])) == 1 - 2**62
    with pytest.raises(OverflowError, match="items or more"):
        g(np.array([-5, 2**63 - 1, 1]))


def test_slices_by_the_smallest_step_have_one_element(backend: str) -> None:
    f = compiled("x, k", "return (x[:: k[0]] * 1).sum()").on(backend)
    for step in (-(2**63), 1 - 2**63, -2, 2, 2**63 - 1):
        assert f(X[0], np.array([step])) == X[0][::step].sum()


def grown(x: Any) -> Any:
    x[:] = x + 10
    return x


def maker(x: Any) -> Any:
    x[:] = x + 10
    return lambda y: y * 2


ONCE = (
    "grown(x).copy()", "maker(x)(x)", "(grown, maker)[0](x)", "[*grown(x).copy()]",
)  # fmt: skip


@pytest.mark.parametrize("over", ONCE)
def test_a_function_that_an_iterable_calls_is_evaluated_once(over: str) -> None:
    for body in (
        f"s = 0.0\nfor v in {over}:\n    s = s * 10 + v\nreturn s, x",
        f"return [v for v in {over}], x",
        f"s = 0.0\nfor i, v in zip(range(4), {over}):\n    s = s * 10 + v * i\nreturn s, x",
    ):
        mine, given = X[0].copy(), X[0].copy()
        names = {"grown": grown, "maker": maker}
        assert_same(run("numpy", "x", body, mine, **names), plain("x", body, given, **names))


@pytest.mark.parametrize(
    "over",
    [
        "zip((x[0], x[1]), grown(x))",
        "zip((x[0], x * 2), grown(x).copy())",
        "enumerate((x[0], x[1]), len(grown(x)))",
        "enumerate((x[0], x[1]), start=len(grown(x)))",
    ],
)
def test_items_are_evaluated_before_the_operands_behind_them(over: str) -> None:
    body = f"s = 0.0\nfor u, v in {over}:\n    s = s * 10 + u * v\nreturn s, x"
    mine, given = X[0].copy(), X[0].copy()
    assert_same(run("numpy", "x", body, mine, grown=grown), plain("x", body, given, grown=grown))


@pytest.mark.parametrize("over", ["reversed(T)", "reversed(T[::2])"])
def test_enumerate_of_a_reversed_table_starts_where_the_run_says(over: str, backend: str) -> None:
    """For one start, for one more, and for any."""
    body, names = (
        f"s = 0\nfor i, v in enumerate({over}, n):\n    s += i * v\nreturn s",
        {"T": tuple(range(100))},
    )
    f = compiled("n", body, **names).on(backend)
    for n in (5, 6, 7, 0, -3):
        assert f(n) == plain("n", body, n, **names)


@pytest.mark.parametrize(
    "over",
    [
        "enumerate(x[0], x[2, 1].astype(int))", "enumerate(x[1], start=c[0])",
        "enumerate((x[0, 0], x[1, 1]), int(c[1]))", "enumerate(range(1, n))",
        "enumerate(range(n, 0, -2), n)", "enumerate(reversed(x[0]))",
        "enumerate(reversed(range(c[2])))", "enumerate(zip(x[0], reversed(x[1])))",
        "zip(range(0, n, 2), x[0])", "zip(x[0], reversed(x[1]))", "zip(range(n, -2, -1), x[2])",
        "zip(reversed(c), enumerate(range(2, 9, 3), c[0]))", "zip(range(c[1], 9), reversed(c))",
        "zip(range(7, n), x[0])",
    ],
)  # fmt: skip
def test_counters_and_steps_of_any_kind_meet(over: str) -> None:
    body = (
        f"s, last = 0.0, 0\nfor i, v in {over}:\n"
        "    p, q = v if PAIRS else (v, i)\n    x[0, 0] += q\n    c[:] = 0\n"
        "    s = s * 3 + p * q + i\n    last = i\nreturn s, last"
    )
    pairs = over.startswith(("enumerate(zip", "zip(reversed(c)"))
    for n in (5, 4, 3, 6, 7):
        mine = np.arange(12.0).reshape(3, 4), np.array([2, 1, 3])
        given = mine[0].copy(), mine[1].copy()
        got = run("numpy", "x, c, n", body, *mine, n, PAIRS=pairs)
        assert_same(got, plain("x, c, n", body, *given, n, PAIRS=pairs))
        assert_same(mine, given)


GIVEN = {
    "to a function that takes them twice": "return twice(v * 2 for v in x)",
    "to a function that writes before": "return after_write(v * 2 for v in x)",
    "to a lambda": "return (lambda it: sum(it) + sum(it))(v for v in (1, 2))",
    "to enumerate": "for i, v in enumerate(w + 1 for w in x): x[:] = x * 2\nreturn v",
    "to zip": "for (v,) in zip(w + 1 for w in x): x[:] = 7\nreturn v",
    "to reversed": "return [v for v in reversed(w for w in (1, 2))]",
    "to len": "return len(v for v in x)",
    "to NumPy": "return np.array(v for v in x)",
}


def twice(it: Any) -> Any:
    return sum(it) + sum(it)


@pytest.mark.parametrize("body", GIVEN.values(), ids=GIVEN)
def test_a_generator_is_given_only_to_what_takes_it_at_once(body: str) -> None:
    text = f"x[0] = 1\ndef after_write(it):\n    x[0] = 100\n    return sum(it)\n{body}"
    with pytest.raises(CdError, match="one by one") as problem:
        run("numpy", "x", text, X[0].copy(), twice=twice)
    assert problem.value.code == "CD0112"
    listed = re.sub(r"(\w+|\))\((\w[^(\[]*(\(1, 2\)|x))\)", r"\1([\2])", text)
    mine, given = X[0].copy(), X[0].copy()
    got = run("numpy", "x", listed, mine, twice=twice)
    assert_same(got, plain("x", listed, given, twice=twice))
    assert_same(mine, given)


@pytest.mark.parametrize("taker", ["sum", "min", "max", "any", "all", "list", "tuple",
                                   "math.prod"])  # fmt: skip
def test_what_takes_all_items_is_given_a_generator(taker: str) -> None:
    body = f"return {taker}(v * k for k, v in enumerate(x))"
    names = {"math": math}
    assert_same(run("numpy", "x", body, X[1], **names), plain("x", body, X[1], **names))


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("k, v in enumerate(x)", "k"),
        ("k, v in enumerate(x, 0)", "k"),
        ("k, (v, w) in enumerate(zip(x, x))", "k"),
        ("k, v in enumerate(range(3, n))", "k"),
        ("k, v in enumerate(x, 1)", "n"),  # the counter is one less
        ("v, k in zip(x, x)", "n"),
    ],
)
def test_a_counter_that_is_a_name_has_it(header: str, name: str) -> None:
    body = f"s = 0.0\nfor {header}:\n    s += 1.0\nreturn s"
    (loop,) = found(typed("x, n", body, X, 5).procedure, For)
    assert loop.symbol.name == name
