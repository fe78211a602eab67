"""What users pass: layouts, conversions, copies that are written back, overlaps, refusals."""

from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plusequals.backends.runtime.arrays import (
    Layout,
    Overlap,
    as_array,
    byte_offset,
    describe,
    element_strides,
    overlaps,
    overlaps_itself,
    prepare,
)
from plusequals.base.diagnostic import CdError, CdTypeError, CdValueError
from plusequals.lowering.ir import dtypes


class Interface:
    """Has memory, and `__array_interface__` to show it."""

    def __init__(self, held: np.ndarray[Any, Any]) -> None:
        self.held = held
        self.__array_interface__ = held.__array_interface__


class Subclass(np.ndarray[Any, Any]):
    """An array with habits of its own."""


class Capsule:
    """Can only be had by DLPack."""

    def __init__(self, held: np.ndarray[Any, Any]) -> None:
        self.held = held

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_element_type_is_known(dtype: dtypes.DType) -> None:
    assert describe(np.zeros((2, 3), dtype.numpy)) == Layout(dtype, (2, 3), None)


def test_layouts() -> None:
    base = np.zeros((4, 6), np.float32)
    assert describe(base.T).strides == (1, 6)
    assert describe(base[:, ::2]).strides == (6, 2)
    assert describe(base[::-1]).strides == (-6, 1)
    assert describe(np.broadcast_to(base[0], (3, 6))) == Layout(
        dtypes.float32, (3, 6), (0, 1), writable=False
    )
    assert describe(base[:0].T).strides is None
    assert describe(np.float32(1)) == Layout(dtypes.float32, (), None, writable=True)
    assert describe(base.astype(">f4")) == Layout(dtypes.float32, (4, 6), None, native=False)
    odd = np.zeros(5, np.dtype([("a", "u1"), ("b", "<f4")]))["b"]
    assert describe(odd) == Layout(dtypes.float32, (5,), (2,), aligned=False)
    unaligned = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64)
    assert describe(unaligned) == Layout(dtypes.float64, (4,), None, aligned=False)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [(3, "int64", ()), (2.5, "float64", ()), (True, "bool", ()), (1j, "complex128", ()),
     (np.int8(3), "int8", ()), ([1, 2], "int64", (2,)), (((1.0, 2), (3, 4)), "float64", (2, 2)),
     ([], "float64", (0,)), (range(3), "int64", (3,)), (ml_dtypes.bfloat16(1), "bfloat16", ())],
)  # fmt: skip
def test_scalars_and_lists(value: object, dtype: str, shape: tuple[int, ...]) -> None:
    layout = describe(value)
    assert (layout.dtype.name, layout.shape) == (dtype, shape)


def test_foreign_arrays_share_their_memory() -> None:
    held = np.arange(6.0)
    buffer = array.array("d", held)
    for value in (Interface(held), Capsule(held), buffer, memoryview(buffer), held.view(Subclass)):
        seen = as_array(value)
        assert type(seen) is np.ndarray
        seen.flat[0] = 7.0
    assert (held[0], buffer[0]) == (7.0, 7.0)


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (np.array(["a", "b"]), "CD0701", "<U1"),
        (np.array([1, None], object), "CD0701", "object"),
        (np.array(["2020-01-01"], "M8[D]"), "CD0701", "datetime64"),
        (np.zeros(2, "f4,i4"), "CD0701", "('f0', '<f4')"),
        ("text", "CD0701", "<U4"),
        (None, "CD0701", "object"),
        ({}, "CD0701", "object"),
        (np.zeros(2, np.longdouble), "CD0701", '`x.astype("float64")`'),
        (np.ma.masked_array([1, 2], [0, 1]), "CD0701", "`x.filled(fill)`"),
        (np.ones((1, 1)).view(np.matrix), "CD0701", "`np.asarray(x)`"),
        ([[1, 2], [3]], "CD0702", "different lengths"),
    ],
)
def test_refused_with_a_way_out(value: object, code: str, words: str) -> None:
    with pytest.raises(CdTypeError) as caught:
        describe(value, "x")
    assert caught.value.code == code
    assert "`x`" in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.diagnostics[0].helps


def test_memory_of_a_gpu_is_refused() -> None:
    class OnDevice:
        __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (0, False)}

    with pytest.raises(CdTypeError, match="memory of a GPU"):
        as_array(OnDevice())


def unpacked(kind: str) -> np.ndarray[Any, Any]:
    match kind:
        case "swapped":
            return np.arange(6, dtype=">i4").reshape(2, 3)
        case "misaligned":
            return np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64).reshape(2, 3)
        case _:
            return np.zeros((2, 3), np.dtype([("a", "u1"), ("b", "<f4"), ("c", "<i2")]))["b"]


@pytest.mark.parametrize("kind", ["swapped", "misaligned", "in a record"])
def test_unusual_layouts_are_packed_and_written_back(kind: str) -> None:
    given_ = unpacked(kind)
    usable, back = prepare(given_, written=True)
    assert usable is not given_
    assert (usable == given_).all()
    assert usable.flags.aligned and usable.dtype.isnative
    assert usable.flags.c_contiguous == given_.flags.c_contiguous
    assert describe(usable).strides == describe(given_).strides
    usable += 5
    wanted = usable.copy()
    assert not (given_ == wanted).any()
    assert back is not None
    back()
    assert (given_ == wanted).all()
    assert prepare(given_, written=False)[1] is None


FIELDS = np.dtype([("a", "u1"), ("b", ">f4", (2, 3)), ("c", "<i2")])
PACKED = {
    "swapped, Fortran order": np.zeros((3, 4), ">f4").T,
    "swapped, reversed": np.zeros((3, 4), ">f4")[::-1],
    "swapped, every third": np.zeros((9, 4), ">f4")[::3],
    "swapped, repeated": np.broadcast_to(np.zeros(4, ">f4"), (3, 4)),
    "swapped, sliding": np.lib.stride_tricks.sliding_window_view(np.zeros(6, ">f4"), 3),
    "records": np.zeros((2, 2), FIELDS)["b"],
    "records, transposed": np.zeros((2, 2), FIELDS)["b"].T,
    "records, sliced": np.zeros((4, 3), FIELDS)["b"][::-2, 1:, :, ::-2],
    "a column": np.zeros(3, FIELDS)["b"][:, 1, 2],
    "one row": np.zeros((1, 3), FIELDS)["b"][:, ::2],
}


@pytest.mark.parametrize("given_", PACKED.values(), ids=list(PACKED))
def test_a_packed_copy_has_the_views_of_the_array(given_: np.ndarray[Any, Any]) -> None:
    usable, _ = prepare(given_, written=False)
    assert usable is not given_ and usable.shape == given_.shape
    size = given_.size
    for shape in ((size,), (size, 1), (given_.shape[-1], -1), (given_.shape[0], -1)):
        for order in ("C", "F"):
            pair = [np.reshape(one, shape, order) for one in (given_, usable)]
            shares = [np.shares_memory(*two) for two in zip(pair, (given_, usable), strict=True)]
            assert shares[0] == shares[1]
    assert usable.flags.c_contiguous == given_.flags.c_contiguous
    assert usable.flags.f_contiguous == given_.flags.f_contiguous


@pytest.mark.parametrize("given_", PACKED.values(), ids=list(PACKED))
def test_places_in_a_packed_copy_are_places_in_the_array(given_: np.ndarray[Any, Any]) -> None:
    strides = element_strides(given_)
    assert strides is not None
    moves = list(np.ndindex(*(2 * n - 1 for n in given_.shape)))
    for move in moves:
        steps = [at - n + 1 for at, n in zip(move, given_.shape, strict=True)]
        number, offset = (
            sum(step * by for step, by, n in zip(steps, every, given_.shape, strict=True) if n > 1)
            for every in (strides, given_.strides)
        )
        assert byte_offset(given_, number) == offset


def test_usual_layouts_are_used_as_they_are() -> None:
    base = np.zeros((4, 6))
    for one in (base, base.T, base[::-2, 1:4], base[:0], base[0, 0, ...], base[:1, :1]):
        assert prepare(one, written=True) == (one, None)


def test_rank_zero_keeps_its_rank_when_packed() -> None:
    usable, back = prepare(np.array(5, ">i8"), written=True)
    assert (usable.shape, usable.dtype.isnative, int(usable)) == ((), True, 5)
    assert back is not None


def test_written_arrays_must_be_writable_and_not_overlap_themselves() -> None:
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert prepare(fixed, written=False)[0] is fixed
    with pytest.raises(CdValueError, match="`out` is read-only, and the function writes it") as one:
        prepare(fixed, written=True, name="out")
    spread = np.lib.stride_tricks.as_strided(np.zeros(3), (3, 4), (8, 0))
    assert prepare(spread, written=False)[0] is spread
    with pytest.raises(CdValueError, match="elements of `out` share memory") as two:
        prepare(spread, written=True, name="out")
    assert (one.value.code, two.value.code) == ("CD0703", "CD0704")
    assert "`out = out.copy()`" in str(one.value)
    assert "`out.flags.writeable = True`" in str(one.value)
    for never in (np.frombuffer(b"12345678"), np.broadcast_to(np.ones(1), (3,))):
        with pytest.raises(CdValueError, match="is read-only") as three:
            prepare(never, written=True, name="out")
        assert "flags" not in str(three.value)
    assert "`out.copy()`" in str(two.value)


def test_overlaps_are_exact() -> None:
    x = np.zeros((6, 6))
    assert overlaps([x[::2], x[1::2], x[:, :3], np.zeros(3)]) == (
        Overlap(0, 2, False), Overlap(1, 2, False),
    )  # fmt: skip
    assert overlaps([x, x.T, x[:], x.view()]) == (
        Overlap(0, 1, False), Overlap(0, 2, True), Overlap(1, 2, False),
        Overlap(0, 3, True), Overlap(1, 3, False), Overlap(2, 3, True),
    )  # fmt: skip
    assert overlaps([x[:0], x, np.zeros(0)]) == ()
    assert overlaps([x, x.view(np.int64)]) == (Overlap(0, 1, False),)
    assert overlaps([x[0, ::2], x[0, 1::2]]) == ()


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-5, 5)), min_size=1, max_size=3),
)
def test_overlap_with_itself_is_exact(axes: list[tuple[int, int]]) -> None:
    base = np.zeros(64, np.int16)
    shape = tuple(extent for extent, _ in axes)
    steps = tuple(2 * step for _, step in axes)
    view = np.lib.stride_tricks.as_strided(base[32:], shape, steps)
    places = {sum(k * s for k, s in zip(at, steps, strict=True)) for at in np.ndindex(*shape)}
    assert overlaps_itself(view) == (len(places) < view.size)


@given(st.data())
def test_any_array_is_prepared_or_refused(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([">f4", "<f8", ">c8", "i2", "?", "U2", "M8[s]"]))
    base = np.zeros((5, 4), dtype)
    step = st.sampled_from([-2, -1, 1, 2])
    view = base[:: data.draw(step), :: data.draw(step)]
    view = view.T if data.draw(st.booleans()) else view
    try:
        layout = describe(view)
    except CdError as error:
        assert error.code == "CD0701"
        return
    usable, _ = prepare(view, written=True)
    after = describe(usable)
    assert (after.native, after.aligned, after.shape) == (True, True, layout.shape)


class Foreign:
    """Something that makes an array, as those of other packages do."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.ones(3)


class Lazy(Foreign):
    def __dask_graph__(self) -> dict[str, object]:
        return {}


class Named(Foreign):
    coords = "x"

    def to_numpy(self) -> np.ndarray[Any, Any]:
        return np.ones(3)

    def __dask_graph__(self) -> None:
        return None


class Series(Foreign):
    to_numpy = Named.to_numpy
    index = range(3)


class Stored(Foreign):
    chunks = (2,)


class Unlabelled(Foreign):
    to_numpy = Named.to_numpy


@pytest.mark.parametrize(
    ("value", "message", "way"),
    [
        (Lazy(), "`x` is lazy (Lazy), and would be computed as a whole", "x.compute()"),
        (Named(), "the labels of `x` (Named) would be lost", "x.to_numpy()"),
        (Series(), "the labels of `x` (Series) would be lost", "x.to_numpy()"),
        (Stored(), "`x` (Stored) is stored in chunks, and would be loaded as a whole", "x[...]"),
    ],
)
def test_labels_are_not_lost_and_nothing_large_is_loaded(
    value: object, message: str, way: str
) -> None:
    with pytest.raises(CdTypeError) as caught:
        as_array(value, "x")
    assert message in str(caught.value) and way in str(caught.value)
    assert as_array(Unlabelled(), "x").tolist() == as_array(Foreign(), "x").tolist() == [1.0] * 3
