"""`out=` of reductions, scans and products: the accumulator's type, the shape of the result."""

from __future__ import annotations

import numpy as np
import pytest

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy

LARGE = "a = np.array([1e8, 1, -1e8], np.float32)\n"
WIDE = "o = np.zeros((){})\n"
SUMS = (
    "np.sum(a, out=o)", "a.sum(out=o)", "np.add.reduce(a, out=o)", "np.mean(a, out=o)",
    "a.mean(None, None, o)", "np.var(a, out=o)", "a.std(out=o)", "np.subtract.reduce(a, out=o)",
    "np.trace(np.diag(a), out=o)", "np.einsum('i,i->', a, a, out=o)", "np.ptp(a, out=o)",
    "np.max(a, out=o)", "np.amax(a, out=o)", "np.amin(a, out=o)", "np.prod(a, out=o)",
    "np.sum(a, None, np.float32, o)",
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["", ", np.float32", ", np.complex128"])
@pytest.mark.parametrize("call", SUMS)
def test_a_reduction_accumulates_in_the_type_of_its_destination(call: str, dtype: str) -> None:
    if (call, dtype) != ("np.einsum('i,i->', a, a, out=o)", ""):  # whose order NumPy chooses
        assert_same_as_numpy(f"{LARGE}{WIDE.format(dtype)}r = {call}\nreturn r, o")


PROGRAMS = (
    "o = np.zeros(2)\nnp.prod(np.array([[1e30, 2], [1e30, 3]], np.float32), axis=0, out=o)",
    "o = np.zeros(3)\nnp.cumsum(np.array([1e8, 1, -1e8], np.float32), out=o)",
    "o = np.zeros(3)\nnp.array([1e8, 1, -1e8], np.float32).cumsum(0, None, o)",
    "o = np.zeros(3)\nnp.cumprod(np.array([1e30, 1e30, 2], np.float32), out=o)",
    "o = np.zeros(3)\nnp.subtract.accumulate(np.array([1e8, 1, -1e8], np.float32), out=o)",
    "o = np.zeros(4)\nnp.add.accumulate(w[:4], 0, None, o)",
    "o = np.zeros((), np.int8)\nnp.sum(u, out=o)",
    "o = np.zeros((), np.int16)\nnp.sum(u, out=o)",
    "o = np.zeros((), np.float32)\nnp.mean(u, out=o)",
    "o = np.zeros(4, np.int8)\nnp.cumsum(u, out=o)",
    "o = np.zeros((4, 3))\nnp.any(x.T > 0, axis=1, keepdims=True, out=o[:, :1])\nreturn o",
    "o = np.zeros(3, np.int32)\nnp.argmax(x, 1, o)\nreturn o",
    "o = np.zeros((1, 4))\nnp.sum(x, axis=0, keepdims=True, out=o)",
    "o = np.zeros(4)\nnp.mean(x, axis=0, where=b, out=o)\nreturn o",
    "np.sum(x, axis=0, out=x[0])\nreturn x",
    "np.cumsum(x, axis=0, out=x)\nreturn x",
    "o = np.zeros(())\nnp.mean(y[y > 0], out=o)",
    "o = np.zeros((3, 4))\nnp.round(y, 1, out=o)",
    "o = np.zeros((2, 3, 3))\nnp.matmul(x, x.T, out=o)",
    "o = np.zeros(())\nnp.dot(v, v, out=o)",
    "o = np.zeros((3, 3), np.float32)\nnp.matmul(x, x.T, out=o)",
    "o = np.zeros((4, 3))\nnp.einsum('ij->ji', y, out=o)",
    "o = np.zeros((), np.int64)\nnp.einsum('i,i->', k[0], k[1], out=o)",
    "o = np.zeros((), int)\nr = np.max(b1, initial=3, out=o)\nreturn r, o",
    "o = np.zeros((), int)\nnp.max(k, None, o, initial=300)",
    "o = np.zeros((), int)\nnp.max(k, None, o, initial=n + 300)",
    "o = np.zeros((), int)\nnp.min(k[:0], out=o, initial=300)",
    "o = np.zeros(4)\nk.min(0, o, initial=-2.5)",
    "o = np.zeros(())\nnp.max(k[k > 2], out=o, initial=7.5)",
    "o = np.zeros(())\nnp.min([1, 2], out=o, initial=0.5)",
    "o = np.zeros(2, np.int64)\nnp.vecdot([1, 2], [3, 4], out=o)",
)


@pytest.mark.parametrize("body", PROGRAMS)
def test_what_is_written_is_what_numpy_writes(body: str) -> None:
    assert_same_as_numpy(body)


SHAPES = (
    ("np.sum(x, axis=0, out=np.zeros((2, 4)))", "`out` has shape (2, 4), and the result (4,)"),
    ("np.sum(x, out=np.zeros(3))", "`out` has shape (3,), and the result ()"),
    ("np.max(x, axis=1, out=np.zeros((2, 3)))", "`out` has shape (2, 3), and the result (3,)"),
    ("np.amin(x, axis=1, out=np.zeros((2, 3)))", "`out` has shape (2, 3), and the result (3,)"),
    ("np.mean(x, axis=0, keepdims=True, out=np.zeros((3, 4)))", "and the result (1, 4)"),
    ("np.std(x, out=np.zeros(1))", "and the result ()"),
    ("x.sum(0, out=np.zeros((1, 4)))", "and the result (4,)"),
    ("np.any(b, axis=0, out=np.zeros((2, 4), bool))", "and the result (4,)"),
    ("np.ptp(x, out=np.zeros(2))", "and the result ()"),
    ("np.add.reduce(x, out=np.zeros((2, 4)))", "and the result (4,)"),
    ("np.cumsum(v, out=np.zeros((2, 4)))", "and the result (4,)"),
    ("np.cumsum(v[:1], out=np.zeros(4))", "and the result (1,)"),
    ("np.argmax(v, out=np.zeros(1, int))", "and the result ()"),
    ("np.trace(m, out=np.zeros(2))", "and the result ()"),
    ("np.round(v, out=np.zeros((2, 4)))", "and the result (4,)"),
    ("np.dot(v, v, out=np.zeros(3))", "and the result ()"),
    ("np.matmul(x[:1], x.T, out=np.zeros((3, 3)))", "and the result (1, 3)"),
    ("np.einsum('i,i->', v, v, out=np.zeros(3))", "and the result ()"),
)


@pytest.mark.parametrize(("body", "message"), SHAPES)
def test_a_destination_of_another_shape_is_refused(body: str, message: str) -> None:
    assert_refused_as_by_numpy(body, "CD0302", message)


TYPES = (
    ("np.dot(v, v, out=np.zeros((), np.float32))", "CD0405", "`dot` stores float64"),
    ("o = np.zeros((6, 3))\nnp.dot(x, x.T, out=o[::2])", "CD0405", "in a contiguous `out`"),
    ("np.argmax(v, out=np.zeros(()))", "CD0405", "positions are int64"),
    ("np.argmin(v, out=np.zeros((), np.uint64))", "CD0405", "positions are int64"),
    ("np.einsum('i,i->', v, v, out=np.zeros((), np.float32))", "CD0405", "gives float64"),
    ("np.bitwise_or.reduce(idx, out=np.zeros(()))", "CD0404", "into an `out` of float64"),
    ("np.sum(v, out=n)", "CD0441", "`out` has to be an array"),
)


@pytest.mark.parametrize(("body", "code", "message"), TYPES)
def test_a_destination_of_another_type_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


@pytest.mark.parametrize("element", [np.int8, np.uint8, np.int64, np.float16, np.bool_])
def test_small_numbers_accumulate_in_the_type_of_the_destination(element: type) -> None:
    for name in ("sum", "prod", "max", "mean", "add.reduce", "logical_or.reduce"):
        for out in ("float32", "float64"):
            given = f"np.array([100, 100, 3]).astype(np.{element.__name__})"
            assert_same_as_numpy(f"o = np.zeros((), np.{out})\nnp.{name}({given}, out=o)")
