"""What the host writes to tensors: nothing lost, nothing that writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.host_writes import (
    Snapshot,
    conversion_problem,
    read_tensors_in_index,
)
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir import dtypes


@pytest.mark.parametrize(
    ("dtype", "value", "code"),
    [
        ("int8", 1.5, "CD0405.*float64 values.*int8"),
        ("int8", [1.0, 2.0, 3.0], "CD0405"),
        ("float32", 1j, "CD0405.*complex128 values"),
        ("bool", 0.5, "CD0405"),
        ("int8", 300, "CD0405.*300"),
        ("uint8", [1, -1, 2], "CD0405.*-1"),
        ("float32", "3", "CD0701"),
        ("float32", None, "CD0701"),
        ("float32", [[1], [2, 3]], "CD0702"),
    ],
)
def test_what_elements_cannot_hold_is_not_written(dtype: str, value: Any, code: str) -> None:
    p = pe.tensor("p", 3, dtype=dtype, init=1)
    with pytest.raises(CdError, match=code):
        p[...] = value
    assert p.numpy().tolist() == [1, 1, 1] and p.value.clock == 0


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", [1, 2, 3], [1, 2, 3]),
        ("float32", 2**70, [2**70] * 3),
        ("int8", np.array([300, 1, 2]), [44, 1, 2]),
        ("int8", True, [1, 1, 1]),
        ("complex64", 1.5, [1.5] * 3),
        ("float64", np.float32(0.5), [0.5] * 3),
        ("int64", range(3), [0, 1, 2]),
    ],
)
def test_what_they_can_hold_is_written(dtype: str, value: Any, expected: list[object]) -> None:
    p = pe.tensor("p", 3, dtype=dtype)
    p[...] = value
    assert p.numpy().tolist() == expected


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_first_value_loses_nothing_either(dtype: str) -> None:
    assert conversion_problem(1j, dtypes.BY_NAME[dtype])
    for init in (1.7j, lambda shape: np.full(shape, 1j)):
        with pytest.raises(TypeError, match="CD0860.*without a cast"):
            pe.tensor("p", 2, dtype=dtype, init=init)
    with pytest.raises(ValueError, match="CD0860.*300"):
        pe.tensor("p", 2, dtype="int8", init=300)


def test_a_first_value_keeps_its_fraction() -> None:
    with pytest.raises(TypeError, match="CD0860.*float64 values"):
        pe.tensor("p", 2, dtype="int32", init=1.7)


def test_tensors_are_written_to_tensors_also_within_lists_and_as_indices() -> None:
    p, q = pe.tensor("p", 3, init=[1, 2, 3]), pe.tensor("q", 2, dtype="int64", init=[0, 2])
    p[...] = [p]
    assert p.numpy().tolist() == [1, 2, 3]
    p[q,] = 5
    assert p.numpy().tolist() == [5, 2, 5]
    assert isinstance(read_tensors_in_index((q, [q]))[1][0], np.ndarray)


def add(p: Any) -> None:
    p[...] += 1


def multiply(p: Any) -> None:
    p[1:] *= 2


def set_one(p: Any) -> None:
    p[1:][0] = 5


def add_to_field(p: Any) -> None:
    p.grad += 1


def add_to_tensor(p: Any) -> None:
    p += np.ones(3)


@pytest.mark.parametrize(
    ("write", "way_out"),
    [
        (add, "p[...] = p[...] + v"),
        (multiply, "p[...] = p[...] * v"),
        (set_one, "p[...] = v"),
        (add_to_field, "with p.edit('grad') as a: a += v"),
        (add_to_tensor, "p[...] = p.numpy() + v"),
    ],
)
def test_what_would_write_nothing_says_what_does(
    write: Callable[[Any], None], way_out: str
) -> None:
    p = pe.tensor("p", 3, init=1.0)
    with pytest.raises(CdError, match="CD0861") as caught:
        write(p)
    assert way_out in str(caught.value)
    assert p.numpy().tolist() == [1, 1, 1] and not p.grad.numpy().any()


def test_indices_that_copy_and_single_elements_are_updated_as_in_numpy() -> None:
    p = pe.tensor("p", 3, init=1.0)
    p[0] += 1
    p[[1, 2]] += 2
    assert p.numpy().tolist() == [2, 3, 3]


def test_what_is_computed_of_a_snapshot_is_plain() -> None:
    p = pe.tensor("p", 3, init=[1, 2, 3])
    shown = p[1:]
    assert isinstance(shown, Snapshot) and repr(shown) == "array([2., 3.], dtype=float32)"
    assert type(shown * 2) is np.ndarray and type(shown.sum()) is np.float32
    own = shown.copy()
    own += 1
    own[0] = 7
    assert own.tolist() == [7, 4] and shown.tolist() == [2, 3]
    f = pe.cd_from_source("def f(x):\n    return x * 2\n", backend="numpy")
    assert f(shown).tolist() == [4, 6]


def test_an_array_is_always_a_copy() -> None:
    p = pe.tensor("p", 3, init=1.0)
    for one in (p, p.grad):
        with pytest.raises(ValueError, match="CD0861.*copy=False"):
            np.asarray(one, copy=False)
    assert np.array(p, copy=True).tolist() == np.asarray(p, "float64").tolist() == [1, 1, 1]
