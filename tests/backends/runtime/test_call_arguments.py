"""What calls of routines give: by place, by name, bound; copied, refused."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.backends.runtime.call_arguments import (
    bind_arguments,
    convert_argument,
    require_disjoint,
)
from plusequals.base.diagnostic import NOWHERE
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.node import Node


def parameter(written: bool) -> Parameter:
    return Parameter(Node(1, "x", (const(3),), dtypes.float64), written)


def test_what_is_given_comes_before_what_is_bound() -> None:
    found = bind_arguments(
        "f", ("a", "b", "c"), {"a": 1, "b": 2, "c": 3}, (10,), {"c": 30}, NOWHERE
    )
    assert found == {"a": 10, "b": 2, "c": 30}
    for args, kwargs in (((), {}), ((1, 2), {}), ((1,), {"b": 2})):
        with pytest.raises(TypeError, match="CD0436"):
            bind_arguments("f", ("a",), {}, args, kwargs, NOWHERE)


def test_what_is_only_read_is_copied_and_what_is_written_is_not() -> None:
    array = np.arange(3.0)
    assert convert_argument("x", array, parameter(True), "cc") is array
    copy = convert_argument("x", array, parameter(False), "cc")
    assert not np.shares_memory(copy, array) and copy.tolist() == [0, 1, 2]
    for other in (np.arange(4.0), np.arange(3)):
        with pytest.raises(TypeError, match="CD0702"):
            convert_argument("x", other, parameter(False), "cc")


def test_arrays_of_one_call_are_apart() -> None:
    array = np.zeros(6)
    require_disjoint([array[:3], array[3:]], "f")
    with pytest.raises(ValueError, match="CD0708"):
        require_disjoint([array[:4], array[3:]], "f")


def number(dtype: dtypes.DType) -> Parameter:
    return Parameter(Node(1, "s", (), dtype), False)


@pytest.mark.parametrize(
    ("dtype", "given", "expected"),
    [
        (dtypes.int64, 3, 3),
        (dtypes.int64, np.int8(-4), -4),
        (dtypes.int8, 5, 5),
        (dtypes.int8, np.array(-128), -128),
        (dtypes.float64, 2, 2.0),
        (dtypes.float64, 2**70, 2.0**70),
        (dtypes.float64, np.float32(0.1), float(np.float32(0.1))),
        (dtypes.float64, np.array(1.5, ">f8"), 1.5),
        (dtypes.float32, np.float32(0.5), 0.5),
        (dtypes.complex128, 1.5, 1.5),
        (dtypes.complex64, 3, 3.0),
        (dtypes.bool_, True, True),
        (dtypes.bool_, np.bool_(False), False),
    ],
)
def test_a_number_is_given_exactly(dtype: dtypes.DType, given: object, expected: object) -> None:
    array = convert_argument("s", given, number(dtype), "cc")
    assert array.dtype == dtype.numpy and array.shape == () and array == expected
    assert array.dtype.isnative and array is not given


@pytest.mark.parametrize(
    ("dtype", "given", "why"),
    [
        (dtypes.int64, 2.7, "is of type float64, compiled for int64"),
        (dtypes.int64, 2.0, "is of type float64, compiled for int64"),
        (dtypes.int64, 2**70, "is 1180591620717411303424, which int64 cannot hold"),
        (dtypes.int64, 1j, "is of type complex128, compiled for int64"),
        (dtypes.int64, True, "is of type bool, compiled for int64"),
        (dtypes.int64, "3", "is a str, compiled for int64"),
        (dtypes.int64, None, "is a NoneType, compiled for int64"),
        (dtypes.int8, 300, "is 300, which int8 cannot hold"),
        (dtypes.uint8, -1, "is -1, which uint8 cannot hold"),
        (dtypes.float64, 2**53 + 1, "is 9007199254740993, which float64 cannot hold"),
        (dtypes.float64, 10**400, "is a number of many digits, which float64 cannot hold"),
        (dtypes.float16, 65536, "is 65536, which float16 cannot hold"),
        (dtypes.float64, "3", "is a str, compiled for float64"),
        (dtypes.float64, np.zeros(0), r"has shape \(0,\), compiled for a number"),
        (dtypes.float64, [1.5, 2.5], r"has shape \(2,\), compiled for a number"),
        (dtypes.float32, 0.1, "is of type float64, compiled for float32"),
        (dtypes.bool_, 1, "is 1, compiled for bool"),
    ],
)
def test_a_number_that_would_become_another_is_refused(
    dtype: dtypes.DType, given: object, why: str
) -> None:
    with pytest.raises(TypeError, match=f"CD0702.*`s` {why}"):
        convert_argument("s", given, number(dtype), "cc")
