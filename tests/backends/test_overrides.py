"""Values of classes that override what numbers, tuples and arrays do are refused."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.overrides import OF_NUMBERS, overridden, overridden_in_foreign
from plusequals.base.diagnostic import CdTypeError

X = np.arange(3.0)


def overriding(base: type, name: str, **more: Any) -> type:
    return type("Own", (base,), {name: lambda self, *args: 42, **more})


class Color(enum.IntEnum):
    RED = 1


class Wide(enum.Enum):
    pass


class Half(float, enum.Enum):
    VALUE = 0.5


class Flags(enum.IntFlag):
    ONE = 1
    TWO = 2


class Loud(enum.IntEnum):
    RED = 1

    def __add__(self, other: object) -> int:
        return 42


class Named(int):
    def __repr__(self) -> str:
        return "named"

    def describe(self) -> str:
        return "an integer"


OF_FLOATS = (
    "__eq__", "__ne__", "__lt__", "__ge__", "__add__", "__rmul__", "__imul__", "__divmod__",
    "__neg__", "__pos__", "__abs__", "__bool__", "__int__", "__float__", "__round__", "__floor__",
    "__trunc__", "__array_ufunc__", "__array__", "__getattribute__",
)  # fmt: skip
OF_INTEGERS = ("__invert__", "__and__", "__ror__", "__lshift__", "__index__", "__complex__")


@pytest.mark.parametrize(
    ("base", "name"),
    [
        *((base, name) for base in (float, np.float64) for name in OF_FLOATS),
        *((int, name) for name in OF_INTEGERS),
        (complex, "__eq__"),
    ],
)
def test_numbers_with_operators_of_their_own_are_refused(base: type, name: str) -> None:
    f = cd(backend="numpy")(lambda x, n: x * n)
    with pytest.raises(CdTypeError, match=f"overrides `{name}`") as caught:
        f(X, overriding(base, name)(3))
    assert caught.value.code == "CD0701"


def test_a_captured_one_and_a_member_are_refused() -> None:
    number = overriding(float, "__eq__")(3.0)
    for value in (number, Loud.RED):
        with pytest.raises(CdTypeError, match="overrides"):
            cd(backend="numpy")(lambda x: x * value)(X)  # noqa: B023 - called at once
        with pytest.raises(CdTypeError, match="overrides"):
            cd(backend="numpy")(lambda x, t: x * t[0])(X, (value,))


@pytest.mark.parametrize("value", [Named(3), Color.RED, Half.VALUE, Flags.ONE, True, np.int8(3)])
def test_numbers_with_the_operators_of_numbers_are_taken(value: Any) -> None:
    def f(x, n):
        return x * n, n + 1, n == 3

    found, expected = cd(backend="numpy")(f)(X, value), f(X, value)
    np.testing.assert_array_equal(found[0], expected[0])
    assert (found[1:], *map(type, found)) == (expected[1:], *map(type, expected))
    assert overridden(type(value), OF_NUMBERS) is None


@pytest.mark.parametrize(
    ("base", "name"),
    [
        *((base, name) for base in (tuple, list) for name in (
            "__getitem__", "__iter__", "__len__", "__contains__", "__eq__", "__lt__", "__add__",
            "__rmul__", "__bool__",
        )),
    ],
)  # fmt: skip
def test_sequences_with_items_of_their_own_are_refused(base: type, name: str) -> None:
    f = cd(backend="numpy")(lambda x, t: x * t[0])
    with pytest.raises(CdTypeError, match=f"overrides `{name}`"):
        f(X, overriding(base, name)([1, X]))
    assert f(X, type("Plain", (base,), {"more": 1})([2, X])).tolist() == (2 * X).tolist()


class Vector(NamedTuple):
    u: float
    v: float

    def __add__(self, other: Any) -> Any:
        return 42

    def __eq__(self, other: object) -> bool:
        return True

    def __gt__(self, other: Any) -> bool:
        return True


Point = collections.namedtuple("Point", "u v")


@pytest.mark.parametrize(
    "body",
    ["t + t", "t == (1, 2)", "(1, 2) == t", "t != t", "t in ((1.0, 3.0),)", "(1, 2) < t", "t > t",
     "(1, 1) in (t,)"],
)  # fmt: skip
def test_operators_of_named_tuples_are_refused_where_they_are_their_own(body: str) -> None:
    f = pe.cd_from_source(f"lambda t: {body}", {}, backend="numpy")
    with pytest.raises(CdTypeError, match="which would not be called"):
        f(Vector(1.0, 2.0))
    assert f(Point(1.0, 2.0)) == eval(body, {"t": Point(1.0, 2.0)})


@pytest.mark.parametrize("body", ["t.u + t[1]", "(0,) + t", "t * 2", "t._replace(u=3.0)"])
def test_other_operators_of_those_are_pythons(body: str) -> None:
    found = pe.cd_from_source(f"lambda t: {body}", {}, backend="numpy")(Vector(1.0, 2.0))
    expected = eval(body, {"t": Vector(1.0, 2.0)})
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    "name",
    ["__mul__", "__rsub__", "__getitem__", "__array_ufunc__", "__array_function__", "sum", "T",
     "__eq__", "__iadd__", "__len__", "__getattr__"],
)  # fmt: skip
def test_arrays_with_operators_of_their_own_are_refused(name: str) -> None:
    kind = overriding(np.ndarray, name)
    f = cd(backend="numpy")(lambda x: x * 2)
    for value in (np.ndarray.view(X, kind), np.ndarray.view(X.view(np.recarray), kind)):
        with pytest.raises(CdTypeError, match=f"class Own, whose `{name}` is not"):
            f(value)


def _mapped(folder: Path) -> np.ndarray[Any, Any]:
    array = np.memmap(folder / "x", dtype="f8", mode="w+", shape=(3,))
    array[:] = X
    return array


class Labelled(np.ndarray):
    label = "x"

    def __array_finalize__(self, base: object) -> None:
        self.label = "y"

    def __repr__(self) -> str:
        return "labelled"


@pytest.mark.parametrize(
    "make", [_mapped, lambda _: X.view(np.recarray), lambda _: X.view(Labelled)]
)
def test_other_subclasses_are_arrays(make: Callable[[Path], Any], tmp_path: Path) -> None:
    assert cd(backend="numpy")(lambda x: x * 2)(make(tmp_path)).tolist() == (2 * X).tolist()


class Array:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return X.copy()


@pytest.mark.parametrize("name", ["__mul__", "__getitem__", "__array_ufunc__", "__rsub__"])
def test_objects_that_make_arrays_and_compute_otherwise_are_refused(name: str) -> None:
    f = cd(backend="numpy")(lambda x: x * 2)
    assert f(Array()).tolist() == (2 * X).tolist()
    with pytest.raises(CdTypeError, match=f"class Own, whose `{name}` is not") as caught:
        f(overriding(Array, name)())
    assert caught.value.diagnostics[0].helps == ("pass the array: `np.asarray(x)`",)
    standard = overriding(Array, name, __array_namespace__=lambda self: np)
    assert overridden_in_foreign(standard) is None
    assert overridden_in_foreign(overriding(Array, name, __dlpack__=X.__dlpack__)) is None
