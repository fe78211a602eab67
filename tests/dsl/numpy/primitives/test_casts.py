"""Rounding and casts."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.round(x, 2)",
    "np.round(y)",
    "x.round(1)",
    "np.float32(x)",
    "np.int32(y * 10)",
    "x.astype(np.float32)",
    "x.astype('f4')",
    "i.astype(float)",
    "x.astype(bool)",
    "b.astype(int)",
    "round(v[0])",
    "round(True), round(bool(v[0] > 0)), round(np.int32(3))",
    "round(v[0], 2)",
    "int(v[1] * 10)",
    "float(i[0, 0])",
    "bool(i[0, 1])",
    "complex(v[0], v[1])",
    "math.floor(v[0])",
    "math.ceil(s)",
    "np.float16(x)",
    "h.astype(np.float64)",
    "np.round(z)",
    "math.floor(s * n), math.ceil(-s), math.trunc(s)",
    "float(n) / 2, int(s), bool(n), int('7'), float('inf')",
    "np.int64(3) * 2, np.float32(2.5) * y",
    "np.bool_(x)",
    "i.astype('i8'), i.astype('u8'), i.astype('i2'), i.astype('u1')",
    "np.zeros(3, 'i8'), np.ones(2, dtype='uint16'), np.arange(3, dtype='f8')",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


def test_whole_numbers_are_rounded_once_to_float16() -> None:
    function = pe.cd_from_source("def f(x):\n    return x.astype(np.float16)\n", globals={"np": np})
    near = np.arange(-9, 10)
    x = np.concatenate([near, *(2**n + near for n in range(10, 17)), 2**24 + near, [2**40, 65519]])
    x = np.concatenate([x, -x])
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float64).astype(np.float16)
    np.testing.assert_array_equal(function.on("cc")(x), wanted)


@pytest.mark.parametrize("call", ["round(a)", "round(a, 1)"])
@pytest.mark.parametrize("number", [1.5 + 2j, np.complex64(2)], ids=repr)
def test_round_of_a_complex_number_is_refused(call: str, number: complex) -> None:
    assert_refused("CD0404.*`round` is not defined for complex numbers", call, number)


@pytest.mark.parametrize("text", ["int(x[0])", "x[0].item()", "x.item(0)", "x.max().item()"])
def test_pythons_int_of_a_large_uint64_is_refused(text: str, backend: str) -> None:
    f = pe.cd_from_source(f"lambda x: {text}", {"np": np}, backend=backend)
    assert f(np.array([2**63 - 1, 3], np.uint64)) == 2**63 - 1
    with pytest.raises(OverflowError, match="does not fit in an int"):
        f(np.array([2**63, 3], np.uint64))


@pytest.mark.parametrize(
    "pair",
    [(1 + 2j, 2.5), (1 + 2j, 3 - 4j), (2, 3.0), (True, 1j), (complex(-0.0, -0.0), -0.0),
     (np.complex64(1 + 2j), np.complex64(1j))],
    ids=repr,
)  # fmt: skip
def test_both_parts_of_both_arguments_of_complex_count(pair: tuple[object, object]) -> None:
    assert_as_plain("complex(a, b), complex(2.5, a), complex(a, 0), complex(a)", *pair)
