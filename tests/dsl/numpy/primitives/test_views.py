"""Subscripts give NumPy's elements, and are views where NumPy gives views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE, CdIndexError
from plusequals.dsl.numpy.primitives.views import subscript
from plusequals.dsl.values.stores import assign
from plusequals.dsl.values.values import Array, Edge, Group, Masked, Section, Static, Value

from ...elaborate.bench import Bench

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=3).map(tuple)
ENDS = st.none() | st.integers(-6, 6)
STEPS = st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])
SLICES = st.builds(slice, ENDS, ENDS, STEPS)


@st.composite
def _basic(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[object, ...]]:
    """Draw a shape and a basic subscript of it, mostly inside, with new axes and an ellipsis."""
    shape = draw(SHAPES)
    taken = draw(st.integers(0, len(shape)))
    items: list[object] = [
        draw(SLICES | st.integers(-size - 1, size)) for size in shape[:taken]
    ]  # fmt: skip
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), ...)
    return shape, tuple(items)


def _item(item: object) -> Value:
    if isinstance(item, slice):
        ends = (item.start, item.stop, item.step)
        return Section(*(None if end is None else Static(end) for end in ends))
    return Static(item)


def _filled(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


@given(_basic())
def test_basic_subscripts_are_numpys_views(
    drawn: tuple[tuple[int, ...], tuple[object, ...]],
) -> None:
    shape, items = drawn
    x, bench = _filled(shape), Bench()
    base = bench.array("x", x)
    try:
        expected = x[items]
    except IndexError:
        with pytest.raises(CdIndexError):
            subscript(bench.ctx, base, list(map(_item, items)), NOWHERE, "x")
        return
    got = subscript(bench.ctx, base, list(map(_item, items)), NOWHERE, "x")
    assert isinstance(got, Array) and got.view is not None and not bench.ctx.out
    np.testing.assert_array_equal(bench.values(got), expected)


@given(_basic(), _basic())
def test_views_of_views_are_written_through(
    first: tuple[tuple[int, ...], tuple[object, ...]],
    second: tuple[tuple[int, ...], tuple[object, ...]],
) -> None:
    x, bench = _filled(first[0]), Bench()
    expected, got = x.copy(), bench.array("x", x)
    place: np.ndarray = expected
    for items in (first[1], second[1]):
        try:
            there = place[items]
        except IndexError:
            return
        place = there if isinstance(there, np.ndarray) else place[(*items, ...)]
        made = subscript(bench.ctx, got, list(map(_item, items)), NOWHERE, "x")
        assert isinstance(made, Array)
        got = made
    assign(bench.ctx, got, Static(-1.0), NOWHERE)
    place[...] = -1.0
    np.testing.assert_array_equal(bench.contents()[0], expected)


GATHERS = (
    (lambda x, a, b: x[a], "a"),
    (lambda x, a, b: x[:, a], ":a"),
    (lambda x, a, b: x[a, b], "ab"),
    (lambda x, a, b: x[a, :, b], "a:b"),
    (lambda x, a, b: x[1, :, b], "1:b"),
    (lambda x, a, b: x[None, a, 1:, b], "+a1b"),
)


@pytest.mark.parametrize(("meaning", "items"), GATHERS)
def test_gathers_put_their_axes_where_numpy_does(meaning: Any, items: str) -> None:
    bench, x = Bench(), _filled((3, 4, 3))
    a, b = np.array([[0, 2], [1, 1]]), np.array([2, 0])
    given: dict[str, Value] = {
        "a": bench.array("a", a), "b": bench.array("b", b), ":": Section(None, None, None),
        "1": Static(1), "+": Static(None),
    }  # fmt: skip
    chosen = [given[c] for c in items]
    if items == "+a1b":
        chosen[2] = Section(Static(1), None, None)
    got = subscript(bench.ctx, bench.array("x", x), chosen, NOWHERE, "x")
    assert isinstance(got, Array) and got.view is None
    np.testing.assert_array_equal(bench.values(got), meaning(x, a, b))


@pytest.mark.parametrize("mode", ["clamp", "wrap", "pad"])
@pytest.mark.parametrize("at", [-7, -1, 0, 2, 3, 9])
def test_edges_say_what_is_outside(mode: str, at: int) -> None:
    x, bench = np.array([10.0, 20.0, 30.0]), Bench()
    edge = Edge(mode, bench.number("at", np.int64(at)), Static(-1.0) if mode == "pad" else None)
    got = subscript(bench.ctx, bench.array("x", x), [edge], NOWHERE, "x")
    assert isinstance(got, Array)
    outside = {"clamp": x[min(max(at, 0), 2)], "wrap": x[at % 3], "pad": -1.0}[mode]
    assert bench.values(got) == (x[at] if 0 <= at < 3 else outside)


@pytest.mark.parametrize("at", [-1, 3])
def test_a_run_time_position_outside_is_found_in_the_run(at: int) -> None:
    bench = Bench()
    got = subscript(
        bench.ctx, bench.array("x", np.zeros(3)), [bench.number("at", np.int64(at))], NOWHERE, "x"
    )
    assert isinstance(got, Array)
    with pytest.raises(CdIndexError, match=f"index {at} is out of range for axis 0 of `x`"):
        bench.values(got)


def test_a_mask_selects_and_the_list_of_positions_gathers() -> None:
    bench, x = Bench(), np.array([1.0, 2.0, 3.0])
    base, mask = bench.array("x", x), bench.array("m", x > 1.5)
    assert isinstance(subscript(bench.ctx, base, [mask], NOWHERE, "x"), Masked)
    listed = subscript(bench.ctx, base, [Group((Static(2), Static(0)), "list")], NOWHERE, "x")
    assert isinstance(listed, Array)
    np.testing.assert_array_equal(bench.values(listed), [3.0, 1.0])


@pytest.mark.parametrize("way", ["clamp", "wrap"])
def test_an_empty_axis_has_no_nearest_element(way: str, backend: str) -> None:
    f, empty, ix = pe.cd_from_source, np.zeros(0), np.zeros(4, int)
    texts = {
        f"def f(y, x):\n    y[i] = x[{way}(i - 1)]\n": (np.zeros(4), empty),
        f"def f(y, x, k):\n    y[i] = x[{way}(k[i])]\n": (np.zeros(4), empty, ix),
        f"def f(y, x):\n    y[i] = sum[k in range(2)](x[{way}(i - k)])\n": (np.zeros(4), empty),
        f"def f(y, n):\n    x = np.zeros(n[0])\n    y[i] = x[{way}(i)]\n": (np.zeros(4), ix),
    }
    for text, arguments in texts.items():
        with pytest.raises(IndexError, match="CD0601.*axis 0 of `x` with size 0, at i = 0"):
            f(text, {"np": np}, backend=backend)(*arguments)
    nothing = f(f"def f(y, x):\n    y[i] = x[{way}(i - 1)]\n    return y\n", backend=backend)
    assert nothing(empty, empty).size == 0
    around = f(f"def f(v, u):\n    v[i, j] = u[{way}(i - 1), j]\n    return v\n", backend=backend)
    assert around(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)


def test_a_loop_that_never_runs_proves_nothing_of_shapes() -> None:
    text = "def f(p, v, w):\n    s = 0.0\n    for r in range(len(p) - 1):\n"
    text += "        a, b = p[r], p[r + 1]\n"
    for value in ("np.dot(v[a:b], w[a:b])", "(v[a:b] * w[a:b]).sum()"):
        f = pe.cd_from_source(f"{text}        s += {value}\n    return s\n", {"np": np})
        assert f(np.array([0]), np.ones(0), np.ones(0)) == 0
        assert f(np.array([0, 2, 3]), np.ones(3), np.ones(3)) == 3


CHOSEN = """def f(x, idx):
    n = len(idx)
    d = x[np.arange(n), np.arange(n)]
    r = x[np.arange(n)]
    d[0] = 99
    r[:, 0] = 7
    x[np.arange(n), idx] -= 1
    return d, r, x[np.arange(2)]
"""


def test_what_positions_choose_is_a_copy_also_where_a_slice_would_do(backend: str) -> None:
    x, idx = np.arange(12.0).reshape(4, 3), np.array([0, 2, 1])
    plain, names = x.copy(), dict[str, Any](np=np)
    exec(CHOSEN, names)
    expected = names["f"](plain, idx)
    got = pe.cd_from_source(CHOSEN, {"np": np}, backend=backend)(x, idx)
    for one, other in zip((*got, x), (*expected, plain), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not any(np.shares_memory(one, x) for one in got)
