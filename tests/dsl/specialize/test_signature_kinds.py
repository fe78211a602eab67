"""Kinds of inputs: what each is taken for, and which values share a cheap key."""

from __future__ import annotations

import array
import types
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.device_arrays.device_array import PlacedArray
from plusequals.dsl.elaborate.captures.inputs import (
    DEEPEST,
    ArraySpec,
    ConstantSpec,
    GroupSpec,
    Listed,
    MethodSpec,
    NumberSpec,
    ObjectSpec,
    TensorSpec,
)
from plusequals.dsl.specialize import signature
from plusequals.dsl.specialize.signature import (
    cheap_key,
    describe_input,
    has_arrays,
    is_field,
    is_foreign,
    is_group,
    is_like_tuple,
    looks_like_array,
)
from plusequals.lowering.ir import dtypes

X = np.arange(6.0).reshape(2, 3)
Pair = namedtuple("Pair", "a b")
PLACED = PlacedArray(4096, (2, 3), np.dtype("f4"), 0, None, True, "done", None)


class Point(NamedTuple):
    """A named tuple with annotations."""

    a: float
    b: float


class Reversed(tuple):
    """A tuple that yields other items than it holds."""

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, -1 - key)


class Foreign:
    """Memory of another package, given to NumPy by one of its protocols."""

    def __init__(self, name: str, held: Any) -> None:
        setattr(self, name, held)


class Made:
    """An array of another package that is converted on request."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.held


class OnDevice:
    """An array of another package in the memory of a device."""

    def __init__(self, typestr: str, strides: tuple[int, ...] | None) -> None:
        self.typestr, self.strides = typestr, strides

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = {"data": (4096, False), "stream": None, "version": 3}
        return {**data, "shape": (2, 3), "typestr": self.typestr, "strides": self.strides}


def nested(depth: int, item: Any = 1.0) -> Any:
    return item if depth == 0 else [nested(depth - 1, item)]


# ---------------------------------------------------------------- predicates


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(tuple, True), (Pair, True), (Point, True), (Reversed, False), (list, False), (object, False)],
)
def test_tuples_that_yield_what_they_hold(kind: type, expected: bool) -> None:
    assert is_like_tuple(kind) is expected


@pytest.mark.parametrize(
    ("value", "arrays", "group"),
    [
        ([X, 1], True, True), ([1, X], True, True), ([X, X], True, True),
        ([1, [2.0]], False, False),
        ([1, "a"], False, True), (["a"], False, True), ([], False, False), ([[X]], False, False),
        ((X, 1), False, False), (X, False, False), ([np.float32(1), 2j, True], False, False),
        ([[1], "a"], False, True), ([(1, 2)], False, True), ("a", False, False),
    ],
)  # fmt: skip
def test_lists_of_more_than_numbers(value: object, arrays: bool, group: bool) -> None:
    assert (has_arrays(value), is_group(value)) == (arrays, group)


@pytest.mark.parametrize(
    ("value", "array_like", "foreign"),
    [
        (X, True, False), ([1.0], True, False), ([], True, False),
        (X.view(np.recarray), True, True),
        (Foreign("__array_interface__", X.__array_interface__), True, True), (Made(X), True, True),
        (Foreign("__array_struct__", X.__array_struct__), True, True),
        (array.array("d", [1.0]), True, True), (memoryview(X), True, True),
        (bytearray(b"a"), True, True), (b"abc", False, True), ("abc", False, True),
        (None, False, True), ((1.0, 2.0), False, True), (len, False, True),
        (np.float64(1), True, False), (PLACED, False, False),
        (OnDevice("<f4", None), False, False),
    ],
)  # fmt: skip
def test_what_is_an_array_or_converted_to_one(
    value: object, array_like: bool, foreign: bool
) -> None:
    assert (looks_like_array(value), is_foreign(value)) == (array_like, foreign)


def test_a_field_is_known_from_its_tensor() -> None:
    t = pe.tensor("t", (3,), "float64")
    assert [is_field(one) for one in (t.grad, t.value, t, X, None)] == [True, True, *[False] * 3]
    assert not is_foreign(t) and not is_foreign(t.grad)
    assert describe_input(t.grad, False) == ArraySpec(dtypes.float64, (3,), None)


# ---------------------------------------------------------------- specifications


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X, ArraySpec(dtypes.float64, (2, 3), None)),
        (X.T, ArraySpec(dtypes.float64, (3, 2), (1, 3))),
        ([[1, 2]], ArraySpec(dtypes.int64, (1, 2), None, Listed.NUMBERS)),
        ([np.float32(1)], ArraySpec(dtypes.float32, (1,), None, Listed.LIST)),
        (Made(X), ArraySpec(dtypes.float64, (2, 3), None)),
        (array.array("f", [1, 2]), ArraySpec(dtypes.float32, (2,), None)),
        (memoryview(X), ArraySpec(dtypes.float64, (2, 3), None)),
        (PLACED, ArraySpec(dtypes.float32, (2, 3), None)),
        (replace(PLACED, strides=(1, 2)), ArraySpec(dtypes.float32, (2, 3), (1, 2), placed=True)),
        (OnDevice("<i4", None), ArraySpec(dtypes.int32, (2, 3), None)),
        (OnDevice("<i4", (4, 8)), ArraySpec(dtypes.int32, (2, 3), (1, 2), placed=True)),
        (pe.tensor("t", (3,), "int32"), TensorSpec(dtypes.int32, (3,), ("value", "grad"), "")),
        (max, ObjectSpec(id(max), max)),
        (b"ab", ConstantSpec(bytes, "b'ab'", b"ab")),
        ([].append, MethodSpec(types.BuiltinFunctionType, 0, None)),
    ],
)  # fmt: skip
def test_what_code_is_compiled_for(value: Any, expected: Any) -> None:
    spec: Any = describe_input(value, False)
    if isinstance(expected, MethodSpec):
        assert isinstance(spec, MethodSpec)
    elif isinstance(expected, TensorSpec):
        assert replace(spec, fields=expected.fields) == expected
    else:
        assert spec == expected


def test_numbers_are_constants_only_where_asked_for() -> None:
    assert isinstance(describe_input(2, False), NumberSpec)
    assert cheap_key(np.bool_(True), False) != cheap_key(np.bool_(False), False)
    assert cheap_key(np.int8(1), False) == cheap_key(np.int8(2), False) != cheap_key(1, False)
    assert describe_input(2, True) == ConstantSpec(int, "2", 2)
    group = describe_input([1, 2], True)
    assert isinstance(group, GroupSpec) and group.items[1] == ConstantSpec(int, "2", 2)


@pytest.mark.parametrize("static", [False, True])
def test_an_element_type_of_no_device_is_refused_by_name(static: bool) -> None:
    with pytest.raises(pe.CdError, match="CD0701.*`the argument`.*M8"):
        describe_input(OnDevice("<M8[s]", None), static)


# ---------------------------------------------------------------- cheap keys


def refused(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the key is not cheap")


@pytest.mark.parametrize(
    "make",
    [
        lambda: X.copy(), lambda: 7, lambda: 7.5, lambda: 1j, lambda: np.int8(3), lambda: True,
        lambda: "text", lambda: np, lambda: len, lambda: pe.f32, lambda: pe.f32[3],
        lambda: np.float32, lambda: np.sin, lambda: PLACED, lambda: [1.0, 2.0],
        lambda: [[1, 2], [3, 4]], lambda: [2**62, -(2**63), 2**63 - 1], lambda: (1, 2, "a"),
        lambda: Pair(1, 2), lambda: [X, 1], lambda: [(1, 2), "a"],
        lambda: [*range(3), 1.5, 2**62], lambda: nested(DEEPEST), lambda: [1e300, 1],
    ],
)  # fmt: skip
def test_common_inputs_are_not_described(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("describe_input", "as_array"):
        monkeypatch.setattr(signature, name, refused)
    one, other = cheap_key(make(), False), cheap_key(make(), False)
    assert one == other and hash(one) == hash(other)


def test_lists_of_constants_are_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature, "describe_input", refused)
    assert cheap_key([1, 2], True) == cheap_key([1, 2], True) != cheap_key([1, 3], True)
    assert cheap_key([[1], 2], True) != cheap_key([1, [2]], True)


def test_tensors_and_fields_share_a_key_with_those_of_their_layout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signature, "describe_input", refused)
    t, u = (pe.tensor(name, (3,), "float64") for name in "tu")
    others = [
        pe.tensor("v", (4,), "float64"), pe.tensor("v", (3,), "float32"), X[0], X[0].copy(),
        pe.tensor("v", (3,), "float64", fields=("speed",)),
        pe.tensor("v", (3,), "float64", init=0.0, constant=True),
    ]  # fmt: skip
    assert cheap_key(t, False) == cheap_key(u, False) == cheap_key(t, True)
    assert all(cheap_key(t, False) != cheap_key(other, False) for other in others)
    assert cheap_key(t.grad, False) == cheap_key(u.value, False)
    for other in (pe.tensor("v", (4,), "float64").grad, pe.tensor("v", (3,)).grad, t, X[0]):
        assert cheap_key(t.grad, False) != cheap_key(other, False)


@pytest.mark.parametrize(
    "change",
    [
        {"address": 4098}, {"shape": (3, 2)}, {"dtype": np.dtype("i4")}, {"ordinal": 1},
        {"strides": (1, 2)}, {"writable": False}, {"whole": False},
    ],
)  # fmt: skip
def test_device_arrays_share_a_key_by_layout(change: dict[str, Any]) -> None:
    assert cheap_key(PLACED, False) == cheap_key(replace(PLACED, address=8192), False)
    assert cheap_key(PLACED, False) != cheap_key(replace(PLACED, **change), False)


@pytest.mark.parametrize("wrap", [np.asarray, Made, lambda x: np.ndarray.view(x, np.recarray)])
def test_who_owns_the_memory_is_no_part_of_a_key(wrap: Callable[[Any], Any]) -> None:
    whole, key = np.arange(6.0), cheap_key(wrap(np.arange(3.0)), False)
    frozen, odd = np.arange(3.0), np.zeros(25, "u1")[1:].view("f8")
    frozen.flags.writeable = False
    assert key == cheap_key(wrap(whole[:3]), False) == cheap_key(wrap(np.ones(3)), False)
    assert key != cheap_key(frozen, False) and key != cheap_key(odd, False)
    for other in (frozen, odd, whole[::2], whole, whole[:3].astype("f4"), whole.reshape(2, 3)):
        assert key != cheap_key(wrap(other), False)


def test_arrays_of_other_classes_do_not_share_a_key() -> None:
    kinds = [X, X.view(np.recarray), Made(X), memoryview(X), [[0.0] * 3] * 2]
    keys = [cheap_key(one, False) for one in kinds]
    assert len(set(keys)) == len(keys)


def test_objects_without_a_layout_are_keyed_by_what_they_are() -> None:
    one, other = object(), object()
    assert cheap_key(one, False) == cheap_key(one, True) == describe_input(one, False)
    assert (cheap_key(other, False) == cheap_key(one, False)) == (
        describe_input(other, False) == describe_input(one, False)
    )
    assert cheap_key([].append, False) == cheap_key([1].append, False)
    assert cheap_key([].append, False) != cheap_key([].pop, False)
    assert cheap_key(len, False) is len and cheap_key(np, True) is np


@pytest.mark.parametrize("edge", [2**63, -(2**63) - 1])
def test_integers_that_fit_share_a_key_and_others_are_constants(edge: int) -> None:
    inside = edge - 1 if edge > 0 else edge + 1
    assert cheap_key(inside, False) == cheap_key(0, False) != cheap_key(inside, True)
    assert cheap_key(edge, False) != cheap_key(0, False)
    assert cheap_key(edge, False) != cheap_key(edge + edge, False)
    assert cheap_key([inside], False) == cheap_key([0], False)
    assert cheap_key([0.5, inside], False) == cheap_key([0.5, 1], False)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([2**63], "uint64"), ([0, 2**63 - 1], "int64"), ([-(2**63), 0], "int64"),
        ([0.5, 2**63], "float64"), ([[0], [2**63]], "float64"), ([-(2**63) - 1], None),
        ([0, 2**64], None), ([[0], [-(2**63) - 1]], None), ([0.5, 2**70], None),
        ([-(2**63) - 1, 0], None),
    ],
)  # fmt: skip
def test_numpy_decides_what_integers_in_a_list_become(value: list[Any], dtype: str | None) -> None:
    if dtype is None:
        with pytest.raises(pe.CdError, match="CD0701.*of type object"):
            cheap_key(value, False)
        return
    spec = describe_input(value, False)
    assert isinstance(spec, ArraySpec) and spec.dtype.name == dtype == np.asarray(value).dtype.name
    if dtype != "int64":
        assert cheap_key(value, False) != cheap_key(nested(np.ndim(value), 1), False)


def test_the_class_of_a_tuple_and_each_item_are_in_its_key() -> None:
    made = [(1, 2), Pair(1, 2), Point(1, 2), (1, 3), (1.0, 2), (1, 2, 2), [(1, 2)], [1, 2]]
    keys = [cheap_key(one, False) for one in made]
    assert len(set(keys)) == len(made)
    assert [cheap_key(one, False) for one in made] == keys
    assert cheap_key((X, 1), False) == cheap_key((X + 1, 1), False) != cheap_key((X, 2), False)
    assert cheap_key([X, 1], False) == cheap_key([X + 1, 1], False) != cheap_key([X, 2], False)


@pytest.mark.parametrize(
    ("one", "others"),
    [
        ([1, 2], [[1, 2, 3], [1.0, 2], [[1, 2]], [[1], [2]], [True, 2], []]),
        ([[1, 2], [3, 4]], [[[1, 2]], [[1, 2], [3.0, 4]], [[1, 2, 3, 4]], [1, 2, 3, 4]]),
        ([[[1.0]]], [[[1.0]], [1.0], [[[1.0], [2.0]]], [[[1.0, 2.0]]], [[[1.0]], [[1.0]]]]),
    ],
)
def test_lists_share_a_key_by_shape_and_element_type(one: list[Any], others: list[Any]) -> None:
    for other in others:
        assert cheap_key(one, False) != cheap_key(other, False)


def test_lists_may_nest_as_deep_as_arrays_have_axes() -> None:
    deep = nested(DEEPEST)
    assert cheap_key(deep, False) == cheap_key(nested(DEEPEST, 2.0), False)
    spec: Any = describe_input(deep, False)
    assert spec.shape == (1,) * DEEPEST
    around: list[Any] = []
    around.append((around,))
    for static in (False, True):
        with pytest.raises(pe.CdError, match="CD0702.*holds itself"):
            cheap_key(around, static)
    for item in (1.0, "a"):
        with pytest.raises(pe.CdError, match="CD0702.*nests more than"):
            cheap_key(nested(DEEPEST + 1, item), False)
