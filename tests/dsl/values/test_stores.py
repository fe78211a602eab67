"""Stores cast as NumPy's same_kind, broadcast, and refuse what would be lost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plusequals.base.diagnostic import NOWHERE, CdTypeError, CdValueError
from plusequals.dsl.numpy.primitives.views import subscript
from plusequals.dsl.values.stores import assign, logical, operated
from plusequals.dsl.values.types import Kind
from plusequals.dsl.values.values import Array, Masked, Static
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.ops import OPS
from tests.compare import assert_same
from tests.language.ask import plain, run

from ..elaborate.bench import Bench

TYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64")


@pytest.mark.parametrize(("target", "source"), list(itertools.product(TYPES, TYPES)))
def test_a_store_casts_as_numpy_or_is_refused(target: str, source: str) -> None:
    bench = Bench()
    content, value = np.zeros(3, target), np.array([1, 0, 3]).astype(source)
    place, given = bench.array("x", content), bench.array("v", value)
    kinds = content.dtype.kind, value.dtype.kind
    integers = kinds[0] in "iu" and kinds[1] in "iu"
    if not (np.can_cast(source, target, "same_kind") or integers):
        with pytest.raises(CdTypeError) as caught:
            assign(bench.ctx, place, given, NOWHERE)
        assert caught.value.code == "CD0405"
        return
    assign(bench.ctx, place, given, NOWHERE)
    np.testing.assert_array_equal(bench.contents()[0], value.astype(target))


@pytest.mark.parametrize(("target", "source"), list(itertools.product(TYPES[1:], TYPES[1:])))
@pytest.mark.parametrize("op", ["add", "mul"])
def test_an_operator_computes_in_the_joined_type(target: str, source: str, op: str) -> None:
    bench = Bench()
    content, value = np.array([1, 2, 3]).astype(target), np.array([4, 5, 6]).astype(source)
    expected = content.copy()
    try:
        getattr(expected, {"add": "__iadd__", "mul": "__imul__"}[op])(value)
    except TypeError:
        return
    assign(bench.ctx, bench.array("x", content), bench.array("v", value), NOWHERE, OPS[op])
    np.testing.assert_array_equal(bench.contents()[0], expected)


def test_operators_on_bools_are_logical() -> None:
    assert logical(OPS["add"], "b") is OPS["or"] and logical(OPS["mul"], "b") is OPS["and"]
    assert logical(OPS["add"], "i") is OPS["add"]


def test_what_an_operator_gives_has_to_go_back() -> None:
    with pytest.raises(CdTypeError, match="gives float64, which cannot be stored in int32"):
        operated(OPS["div"], Kind(dtypes.int32), Kind(dtypes.int32), NOWHERE)


def test_masks_choose_what_is_written() -> None:
    bench, x = Bench(), np.array([1.0, 2.0, 3.0])
    selected = subscript(bench.ctx, bench.array("x", x), [bench.array("m", x != 2.0)], NOWHERE, "x")
    assert isinstance(selected, Masked)
    assign(bench.ctx, selected, Static(9.0), NOWHERE)
    np.testing.assert_array_equal(bench.contents()[0], [9.0, 2.0, 9.0])


def test_only_places_are_written() -> None:
    bench = Bench()
    place = bench.array("x", np.zeros(3))
    value = Array(place.axes, place.shape, place.body, place.kind, copied=True)
    with pytest.raises(CdValueError, match="a new value"):
        assign(bench.ctx, value, Static(1.0), NOWHERE)


DISTINCT = {
    "an arange beside positions": "a[np.arange(3), idx] -= 1",
    "multiplied": "a[np.arange(3), idx] *= a[0, 0]",
    "backwards": "a[np.arange(3)[::-1], idx] += 2",
    "over two axes": "a[np.arange(3)[:, None], np.arange(4)] += idx[:, None]",
}


@pytest.mark.parametrize("body", DISTINCT.values(), ids=DISTINCT)
def test_positions_that_differ_may_be_accumulated_into(body: str, backend: str) -> None:
    mine, pythons = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4)
    idx = np.array([1, -1, 1])
    run(backend, "a, idx", body, mine, idx)
    plain("a, idx", body, pythons, idx)
    assert_same(mine, pythons)


def test_positions_that_may_be_one_are_refused() -> None:
    with pytest.raises(CdTypeError, match="CD0507"):
        run("numpy", "a, idx", "a[idx, 0] += 1", np.ones((3, 4)), np.array([1, 1]))


_PRODUCTS = (
    ((4,), (4,)), ((3, 4), (4,)), ((3, 4), (4, 1)), ((1, 4), (4, 4)), ((5, 3, 3), (3, 3)),
    ((1, 3, 3), (5, 3, 3)), ((3, 3), (5, 3, 3)), ((3, 3), (1, 3, 3)), ((4,), (4, 4)),
    ((1,), (1,)), ((4, 1), (1, 4)), ((5, 4, 4), (1, 4, 4)), ((1,), (1, 1, 1)), ((4,), (4, 1)),
    ((0, 4), (4, 4)), ((4, 0), (0, 0)), ((1, 1), (1,)),
)  # fmt: skip


@pytest.mark.parametrize(("left", "right"), _PRODUCTS)
def test_a_product_in_place_is_numpys_or_an_error(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    mine, x = np.arange(np.prod(left, dtype=int)).reshape(left) + 1.0, np.ones(right)
    numpys = mine.copy()
    try:
        plain("y, x", "y @= x", numpys, x)
    except ValueError:
        with pytest.raises(ValueError, match="CD0302.: the product has shape .* by `@=`"):
            run("numpy", "y, x", "y @= x", mine, x)
    else:
        run("numpy", "y, x", "y @= x", mine, x)
    assert_same(mine, numpys)


def test_a_product_in_place_whose_sizes_the_run_decides() -> None:
    def product(n: int) -> np.ndarray:
        y = np.arange(12.0).reshape(3, 4)
        run("numpy", "y, x, n", "y[:, :n] @= x[:n]", y, np.ones((4, 1)), n)
        return y

    with pytest.raises(ValueError, match="CD030"):
        product(2)
    expected = np.arange(12.0).reshape(3, 4)
    assert_same(product(1), expected)
