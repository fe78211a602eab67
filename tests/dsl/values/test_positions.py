"""Slice bounds clip and count from the end as NumPy's, also where only the run knows them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE, CdIndexError, CdTypeError
from plusequals.dsl.numpy.primitives.views import subscript
from plusequals.dsl.values.positions import as_expr, cut_of, index_of, position_on
from plusequals.dsl.values.types import WEAK_INT, Kind
from plusequals.dsl.values.values import Array, Scalar, Section, Static
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.evaluate import State, compile_value, symbol_key
from plusequals.lowering.ir.expressions import Position
from plusequals.lowering.ir.indexing import Affine, const, evaluate, var
from tests.compare import assert_same
from tests.language.ask import compiled, plain, run

from ..elaborate.bench import Bench
from ..elaborate.points import I, J, K, quasi_affine

ENDS = st.none() | st.integers(-7, 7)
STEPS = st.sampled_from([-3, -2, -1, 1, 2, 3])


@given(st.integers(0, 5), ENDS, ENDS, STEPS)
def test_a_known_slice_is_numpys(size: int, start: int | None, stop: int | None, step: int) -> None:
    ends = [None if end is None else Static(end) for end in (start, stop, step)]
    cut = cut_of(Bench().ctx, Section(*ends), const(size), NOWHERE)
    taken = range(size)[start:stop:step]
    assert cut.extent == const(len(taken)) and cut.step == const(step)
    if taken:
        assert cut.start == const(taken[0])


@given(st.integers(0, 5), ENDS, ENDS, STEPS)
def test_a_slice_known_in_the_run_is_numpys(
    size: int, start: int | None, stop: int | None, step: int
) -> None:
    bench, x = Bench(), np.arange(10.0, 10.0 + size)
    ends = [
        None if end is None else bench.number(name, np.int64(end))
        for name, end in (("start", start), ("stop", stop))
    ]
    section = Section(*ends, Static(step))
    got = subscript(bench.ctx, bench.array("x", x), [section], NOWHERE, "x")
    assert isinstance(got, Array)
    np.testing.assert_array_equal(bench.values(got), x[start:stop:step])


@given(st.integers(-5, 5), st.integers(0, 4))
def test_a_known_position_counts_from_the_end(at: int, size: int) -> None:
    ctx = Bench().ctx
    if -size <= at < size:
        assert position_on(ctx, Static(at), const(size), 0, NOWHERE, "x") == const(at % size)
    else:
        with pytest.raises(CdIndexError, match=f"index {at} is out of range for axis 0 of `x`"):
            position_on(ctx, Static(at), const(size), 0, NOWHERE, "x")


def test_only_integers_index() -> None:
    bench = Bench()
    for value in (Static(True), Static(1.0), bench.number("s", np.float32(1))):
        with pytest.raises(CdTypeError) as caught:
            index_of(bench.ctx, value, NOWHERE, "`x`")
        assert caught.value.code == "CD0501"


def test_a_bool_of_python_is_an_end_and_a_step_and_no_position() -> None:
    body = "return x[:True], x[n > 2:], x[False:5:True], x[:x.ndim == 2], sum(range(True, n, True))"
    x = np.arange(5.0)
    for n in (1, 3):
        assert_same(run("numpy", "x, n", body, x, n), plain("x, n", body, x, n))
    for body in ("x[:np.True_]", "x[:x[1] > 0]", "x[True]", "x[n > 2]"):
        with pytest.raises(CdTypeError, match="CD0501"):
            run("numpy", "x, n", f"return {body}", x, 3)


def test_a_number_of_the_run_is_read_once_unless_letters_are_in_it() -> None:
    bench = Bench()
    number = bench.number("n", np.int32(2))
    at = index_of(bench.ctx, number, NOWHERE, "x")
    assert isinstance(at, Affine) and at.symbol is not None and len(bench.ctx.out) == 1
    letter = Scalar(Position(var(I) + 1), WEAK_INT)
    assert index_of(bench.ctx, letter, NOWHERE, "x") == var(I) + 1


@given(quasi_affine((I, J, K)), st.tuples(*[st.integers(-6, 6)] * 3))
def test_an_index_with_data_in_it_is_the_same_number(index: Affine, at: tuple[int, ...]) -> None:
    point = dict(zip((I, J, K), at, strict=True))
    bench = Bench()
    read = bench.number("j", np.int64(point[J]))
    state = State(print)
    state.arrays.update({node.id: content for node, content in bench.arrays.items()})
    state.numbers[symbol_key(K)] = point[K]
    expr = as_expr(index, {I: const(point[I])}, {J: read.expr})
    assert read.kind == Kind(dtypes.int64)
    assert compile_value(expr)(state) == evaluate(index, point)


def test_a_step_of_the_run_may_be_as_large_as_numbers_are(backend: str) -> None:
    f = compiled("x, b", "return x[:8:b[0]] + 0, x[b[1]:7:b[0]] + 0").on(backend)
    x = np.arange(11)
    for step in (1, 3, 2**62, 2**63 - 1):
        for start in (0, 9, -4, 2**63 - 1, -(2**63)):
            one, two = f(x, np.array([step, start]))
            assert (one.tolist(), two.tolist()) == (x[:8:step].tolist(), x[start:7:step].tolist())


@pytest.mark.parametrize("n", [2**63 - 3, -(2**63) + 3, 2**62, 3])
def test_what_leaves_an_axis_is_computed_as_integers_are(backend: str, n: int) -> None:
    body = "y[i] = x[{}]\nreturn y"
    x, at = np.arange(1.0, 7.0), np.arange(6) + np.array(n)
    wanted = {
        "pad(i + n)": np.where((at >= 0) & (at < 6), x[at % 6], 0),
        "clamp(i + n)": x[np.clip(at, 0, 5)],
        "wrap(i + n)": x[at % 6],
    }
    for index, values in wanted.items():
        f = compiled("y, x, n", body.format(index)).on(backend)
        assert f(np.zeros(6), x, n).tolist() == values.tolist(), index
        if n == 2**63 - 3:
            with pe.checked(overflow=True), pytest.raises(ValueError, match="CD0766.*at i = 3"):
                f(np.zeros(6), x, n)


CONDITIONAL = {
    "a choice": ("k = np.argmin(v)\nreturn np.argmax(v[:k]) if k > 0 else 0"),
    "behind and": ("k = np.argmin(v)\nreturn k > 0 and v[:k].max() > 2"),
    "both sides": ("k = np.argmin(v)\nreturn v[k:].mean() if k < 2 else v[:k].mean()"),
    "a step": ("k = np.argmin(v)\nreturn v[::k].sum() if k > 0 else 0.0"),
    "read at a place that may be none": (
        "m = int(v[0])\nreturn v[at[m]:].max() if m < 2 else -1.0"
    ),
    "in a loop": (
        "y = np.zeros(4)\nfor m in range(4):\n"
        "    y[m] = np.median(v[m // 2 : m]) if m > 1 and v[m] > 0 else 0\nreturn y"
    ),
}


@pytest.mark.parametrize("body", CONDITIONAL.values(), ids=CONDITIONAL)
@pytest.mark.parametrize("first", [0.0, 3.0])
def test_a_bound_of_the_run_may_stand_under_a_test(body: str, first: float) -> None:
    v, at = np.array([first, 4.0, 1.0, 7.0]), np.array([2, 0])
    assert_same(run("numpy", "v, at", body, v, at), plain("v, at", body, v, at))


def test_a_bound_without_letters_may_stand_where_a_letter_decides() -> None:
    v, body = np.array([3.0, 4.0, 1.0, 7.0]), "k = np.argmin(v)\n"
    body += "y[i] = v[i] if v[i] > 3 else v[:k].sum()\nreturn y"
    assert run("numpy", "v", body, v).tolist() == [7.0, 4.0, 7.0, 7.0]


@pytest.mark.parametrize(
    "value", ["v[: at[i]].sum()", "sum(v[n] for n in range(at[i]))", "v[:: at[i]].sum()"]
)
def test_a_bound_that_is_read_at_a_letter_is_refused(value: str) -> None:
    with pytest.raises(CdIndexError, match="CD050[34]"):
        run("numpy", "v, at", f"y[i] = {value}\nreturn y", np.ones(4), np.array([1, 2]))


@pytest.mark.parametrize("size", [4, 5])
def test_what_surely_is_negative_counts_from_the_end(size: int, backend: str) -> None:
    text = (
        "def f(x, y):\n    n = len(x)\n    for k in range(n // 2):\n"
        "        x[k], x[-k - 1] = x[-k - 1], x[k]\n    s = 0.0\n"
        "    for k in range(1, n + 1):\n        s += x[-k] * k\n        y[-k, 0] = k\n"
        "    return s\n"
    )
    x, y = np.arange(float(size)), np.zeros((size, 1))
    with pe.override(optimize=0):
        found = pe.cd_from_source(text, backend=backend)(x, y)
    np.testing.assert_array_equal(x, np.arange(size)[::-1])
    np.testing.assert_array_equal(y[::-1, 0], np.arange(1, size + 1))
    assert found == sum(k * (k - 1) for k in range(1, size + 1))


def test_under_letters_no_computed_position_counts_from_the_end() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[-1 - i]\n", backend="numpy")
    with pytest.raises(pe.CdError, match="CD0602"):
        function(np.zeros(3), np.ones(3))
