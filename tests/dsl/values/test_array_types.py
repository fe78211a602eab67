"""`f32[n, m]` as Python objects: what they hold, what is an instance, what a cast gives."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from typeguard import TypeCheckError, check_type, typechecked

import plusequals as pe
from plusequals import f32, f64, i64
from plusequals.idx import m, n

X = np.zeros((3, 4), "f4")


@pytest.mark.parametrize(
    ("kind", "is_instance"),
    [
        (f32, True), (f64, False), (f32[3, 4], True), (f32[:, 4], True), (f32[3, 5], False),
        (f32[3], False), (f32[n, m], True), (f32[n, n], False), (f32["n", 4], True),
        (i64[3, 4], False),
    ],
)  # fmt: skip
def test_isinstance_and_typeguard_agree(kind: Any, is_instance: bool) -> None:
    assert isinstance(X, kind) is is_instance
    if is_instance:
        assert check_type(X, kind) is X
    else:
        with pytest.raises(TypeCheckError, match=f"plusequals.{kind!r}".split("[")[0]):
            check_type(X, kind)


def test_other_things_with_a_type_and_a_shape() -> None:
    assert isinstance(np.float32(1), f32) and not isinstance(1.0, f32)
    assert isinstance(pe.tensor("p", (2, 2)), f32[n, n])
    assert not isinstance(np.zeros(2, "M8[s]"), f64) and not isinstance(None, f32)


def test_checked_annotations() -> None:
    @typechecked
    def f(x: f32[2, m]) -> None:
        return None

    assert f(np.zeros((2, 7), "f4")) is None
    with pytest.raises(TypeCheckError, match=r"not an instance of plusequals.f32\[2, m\]"):
        f(X)


def test_contracts_of_compiled_functions() -> None:
    @pe.cd
    def f(x: f32[n, m], y: f64[n]):
        return x[0, 0] + y[0]

    assert f(X, np.ones(3)) == 1.0
    with pytest.raises(ValueError, match="size `n` of `y`"):
        f(X, np.ones(4))
    with pytest.raises(TypeError, match="`x` is declared f32"):
        f(X.astype("f8"), np.ones(3))


def test_calling_one_casts() -> None:
    assert type(f32(2)) is np.float32 and i64(2.9) == 2
    assert f32(np.ones(2)).dtype == np.float32


def test_they_are_compared_by_what_they_say() -> None:
    assert f32[n, 3] == f32["n", 3] != f32[n, 4]
    assert len({f32[3], f32[3], f32[4]}) == 2
    assert repr(f32[n, :, 3]) == "f32[n, :, 3]"
    assert pickle.loads(pickle.dumps(f32)) is f32  # noqa: S301 - our own


@pytest.mark.parametrize("item", [-1, 1.5, True, "rows", slice(1, 2), None])
def test_sizes_are_numbers_letters_or_open(item: Any) -> None:
    with pytest.raises(TypeError, match="a size is a number"):
        f32[item]


def test_sizes_are_given_once() -> None:
    with pytest.raises(TypeError, match="has its sizes already"):
        f32[3][4]
