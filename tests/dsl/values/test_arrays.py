"""The primitives of array notation: broadcasting, stacking, reducing, contracting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plusequals.base.diagnostic import NOWHERE, CdError, CdShapeError
from plusequals.dsl.values.arrays import (
    as_array,
    as_scalar,
    broadcast_to,
    contract,
    describe,
    operate,
    permuted,
    reduce,
    shape_text,
    stack,
    with_sums_stored,
)
from plusequals.dsl.values.types import WEAK_FLOAT
from plusequals.dsl.values.values import Array, Group, Masked, Scalar, Static
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.ops import OPS

from ..elaborate.bench import Bench
from ..elaborate.numpy_oracle import assert_same_as_numpy

SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def _filled(shape: tuple[int, ...], start: float = 0.0) -> np.ndarray:
    return np.arange(start, start + float(np.prod(shape))).reshape(shape)


@given(SHAPES, SHAPES)
def test_operands_broadcast_as_in_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    bench, x, y = Bench(), _filled(left), _filled(right, 5.0)
    operands = [bench.array("x", x), bench.array("y", y)]
    try:
        expected = x + y
    except ValueError:
        with pytest.raises(CdShapeError, match="do not broadcast together"):
            operate(bench.ctx, "add", operands, NOWHERE)
        return
    got = operate(bench.ctx, "add", operands, NOWHERE)
    if not expected.ndim:
        assert isinstance(got, Scalar)  # NumPy gives a number too
        return
    assert isinstance(got, Array) and got.element is None
    np.testing.assert_array_equal(bench.values(got), expected)


@given(SHAPES, SHAPES)
def test_an_array_stretches_to_a_shape_as_in_numpy(
    own: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    bench, x = Bench(), _filled(own)
    try:
        expected = np.broadcast_to(x, wanted)
    except ValueError:
        with pytest.raises(CdShapeError):
            broadcast_to(bench.ctx, bench.array("x", x), tuple(map(const, wanted)), NOWHERE)
        return
    got = broadcast_to(bench.ctx, bench.array("x", x), tuple(map(const, wanted)), NOWHERE)
    np.testing.assert_array_equal(bench.values(got), expected)


@given(st.data(), SHAPES, st.booleans())
def test_reductions_go_over_any_axes(
    data: st.DataObject, shape: tuple[int, ...], keepdims: bool
) -> None:
    axes = data.draw(st.sets(st.sampled_from(range(len(shape))))) if shape else set()
    bench, x = Bench(), _filled(shape)
    got = reduce(bench.ctx, OPS["add"], bench.array("x", x), sorted(axes), NOWHERE, keepdims)
    expected = x.sum(axis=tuple(axes), keepdims=keepdims)
    made = got if isinstance(got, Array) else as_array(bench.ctx, got, NOWHERE)
    np.testing.assert_array_equal(bench.values(made), expected)


def test_contractions_are_tensordot() -> None:
    bench, x, y = Bench(), _filled((2, 3, 4)), _filled((4, 5, 3))
    for pairs in ([(2, 0)], [(1, 2), (2, 0)], []):
        got = contract(bench.ctx, bench.array("x", x), bench.array("y", y), pairs, NOWHERE)
        assert isinstance(got, Array)
        axes = [a for a, _ in pairs], [b for _, b in pairs]
        np.testing.assert_array_equal(bench.values(got), np.tensordot(x, y, axes))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stacks_are_new_arrays_of_the_joined_type(axis: int) -> None:
    bench, x, y = Bench(), _filled((2, 3)).astype("f4"), np.arange(6).reshape(2, 3)
    got = stack(bench.ctx, [bench.array("x", x), bench.array("y", y)], axis, NOWHERE)
    expected = np.stack([x, y], axis)
    assert got.kind.dtype.numpy == expected.dtype
    np.testing.assert_array_equal(bench.values(got), expected)


def test_permuted_axes_of_a_view_are_a_view() -> None:
    bench, x = Bench(), _filled((2, 3, 4))
    got = permuted(bench.array("x", x), (2, 0, 1))
    assert got.view is not None
    np.testing.assert_array_equal(bench.values(got), x.transpose(2, 0, 1))


def test_selections_combine_under_one_mask_only() -> None:
    bench = Bench()
    x, mask = bench.array("x", _filled((2,))), bench.array("m", np.array([True, False]))
    other = bench.array("o", np.array([True, False]))
    both = operate(bench.ctx, "add", [Masked(x, mask), Masked(x, mask)], NOWHERE)
    assert isinstance(both, Masked)
    for wrong in (Masked(x, other), x):
        with pytest.raises(CdError, match="CD0403"):
            operate(bench.ctx, "add", [Masked(x, mask), wrong], NOWHERE)


def test_values_are_told_in_a_users_words() -> None:
    bench = Bench()
    x = bench.array("x", np.zeros((2, 3), "f4"))
    said = {
        "f32[2, 3]": x, "int 3": Static(3), "None": Static(None),
        "a tuple of 2": Group((x, x)), "a run-time float64": bench.number("s", np.float64(1)),
    }  # fmt: skip
    assert {text: describe(value) for text, value in said.items()} == dict(zip(said, said))
    assert [shape_text(s) for s in ((), (const(2),), x.shape)] == ["()", "(2,)", "(2, 3)"]


def test_numbers_and_arrays_of_one_element_are_scalars() -> None:
    assert as_scalar(Static(2.5), NOWHERE).kind == WEAK_FLOAT
    bench = Bench()
    assert isinstance(as_scalar(bench.array("s", np.array(1.0)), NOWHERE), Scalar)
    with pytest.raises(CdError, match="CD0401"):
        as_scalar(bench.array("x", np.zeros(1)), NOWHERE)


def test_only_what_has_sums_is_stored() -> None:
    bench = Bench()
    x = bench.array("x", np.ones((2, 3)))
    sums = reduce(bench.ctx, OPS["add"], x, (0,), NOWHERE)
    assert isinstance(sums, Array)
    stored = with_sums_stored(bench.ctx, sums, "values", NOWHERE)
    assert stored.element is not None and stored.element.node.label == "values"
    assert with_sums_stored(bench.ctx, x, "values", NOWHERE) is x


LISTS = (
    "np.max([k[0, 0], 300]), np.mean([k[0, 0], 300]), np.sum([k[0, 0], 300])",
    "np.array_equal([k[0, 0], 300], [k[0, 0], 44])",
    "np.max([y[0, 0], 1e300]), y[0, :3] * [1, 2, w[0]], [1, w[0]] * y[0, :2]",
    "np.max([k[0, 0], n]), k[0, :2] * [n, k[0, 0]], y[0, :2] * (s, w[0])",
    "np.cumsum([k[0, 0], 300]), np.argmax([k[0, 0], 300]), np.median([k[0, 0], 300])",
    "np.where(k[0, :2] > 0, [k[0, 0], 300], k[0, :2]), np.sort([k[0, 0], 300])",
    "np.max([[k[0, 0], 300], [1, 2]]), np.max([k[0, :2], [300, 1]])",
    "np.array([[k[0, 0]], [u[0]], [y[0, 0]]]), np.array([[k[0, 0], u[0]], [h[0, 0], 2]])",
    "np.maximum.reduce([k[0, 0], 300]), np.searchsorted([k[0, 0], 300], u)",
    "sum([k[0, 0], 3]), max([k[0, 0], 3]), min([k[0, 0], n])",
    "y[0, :2] = [y[1, 0], 2.5]\nk[0, :2] = [k[1, 0], 3]\nk[1, :2] += [k[2, 0], n]\nreturn y, k",
    "np.array([k[0, 0], 3], np.uint8), np.array([u[0], idx[0]], np.uint64), np.array([s, 1], int)",
)


@pytest.mark.parametrize("body", LISTS)
def test_numbers_of_python_in_a_list_are_of_64_bits(body: str) -> None:
    assert_same_as_numpy(body)
