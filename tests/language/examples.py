"""The worked examples with arguments: several sizes, element types, and the edges 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import references

Arguments = tuple[Any, ...]
F32, F64, I32, I64 = np.float32, np.float64, np.int32, np.int64


@dataclass(frozen=True, slots=True)
class Example:
    """A function of `index_functions` by name, with one set of arguments."""

    function: str
    case: str
    make: Callable[[], Arguments]
    rtol: float = 1e-9

    @property
    def reference(self) -> Callable[..., Any]:
        """The NumPy function that says what it means."""
        return getattr(references, self.function)

    def __repr__(self) -> str:
        return f"{self.function}-{self.case}"


def _draw(shape: tuple[int, ...], dtype: Any = F64, seed: int = 3) -> np.ndarray:
    """Return values between 0 and 1, or integers between -9 and 9."""
    r = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return r.integers(-9 if np.dtype(dtype).kind == "i" else 0, 10, shape).astype(dtype)
    return r.random(shape).astype(dtype)


def _gemm(n: int, m: int, k: int, dtype: Any, alpha: Any, beta: Any) -> Arguments:
    return _draw((n, m), dtype), _draw((n, k), dtype, 4), _draw((k, m), dtype, 5), alpha, beta


def _conv(n: int, c: int, size: int, o: int, k: int, stride: int, p: int, dtype: Any) -> Arguments:
    out = (size + 2 * p - k) // stride + 1
    return (np.zeros((n, o, out, out), dtype), _draw((n, c, size, size), dtype),
            _draw((o, c, k, k), dtype, 4), _draw((o,), dtype, 5), stride, p)  # fmt: skip


def _attention(h: int, n: int, d: int, dtype: Any) -> Arguments:
    return np.zeros((h, n, d), dtype), *_draw((3, h, n, d), dtype), 0.5


def _definite(n: int, dtype: Any) -> np.ndarray:
    root = _draw((n, n))
    return (root @ root.T + n * np.eye(n)).astype(dtype)


def _layernorm(n: int, m: int, dtype: Any) -> Arguments:
    return (np.zeros((n, m), dtype), _draw((n, m), dtype), _draw((m,), dtype, 4),
            _draw((m,), dtype, 5), 1e-5)  # fmt: skip


EXAMPLES: tuple[Example, ...] = (
    Example("gemm_ab", "f64", lambda: _gemm(4, 5, 6, F64, 1.5, 0.5)),
    Example("gemm_ab", "f32", lambda: _gemm(3, 4, 9, F32, 1.5, 0.5), 1e-5),
    Example("gemm_ab", "i64", lambda: _gemm(3, 4, 5, I64, 2, -1)),
    Example("gemm_ab", "c128", lambda: _gemm(3, 4, 5, np.complex128, 1.5, 0.5)),
    Example("gemm_ab", "transposed", lambda: (_draw((4, 3)), _draw((5, 4)).T, _draw((3, 5)).T,
                                              1.0, 0.0)),
    Example("gemm_ab", "strided", lambda: (_draw((4, 3)), _draw((8, 10))[::2, ::-2],
                                           _draw((5, 3)), 1.0, 2.0)),
    Example("gemm_ab", "ones", lambda: _gemm(1, 1, 1, F64, 1.5, 0.5)),
    Example("gemm_ab", "no_terms", lambda: _gemm(3, 2, 0, F64, 1.5, 0.5)),
    Example("gemm_ab", "no_rows", lambda: _gemm(0, 2, 3, F64, 1.5, 0.5)),
    Example("conv2d", "plain", lambda: _conv(2, 2, 6, 3, 3, 1, 0, F64)),
    Example("conv2d", "padded", lambda: _conv(1, 2, 5, 2, 3, 1, 1, F64)),
    Example("conv2d", "strided_f32", lambda: _conv(2, 3, 7, 2, 3, 2, 1, F32), 1e-5),
    Example("conv2d", "window_of_one", lambda: _conv(1, 2, 4, 2, 1, 1, 0, F64)),
    Example("conv2d", "no_images", lambda: _conv(0, 2, 4, 2, 3, 1, 1, F64)),
    Example("conv1d_valid", "f64", lambda: (_draw((9,)), _draw((3,), seed=4))),
    Example("conv1d_valid", "f32", lambda: (_draw((9,), F32), _draw((4,), F32, 4)), 1e-5),
    Example("conv1d_valid", "i32", lambda: (_draw((9,), I32), _draw((3,), I32, 4))),
    Example("conv1d_valid", "mixed", lambda: (_draw((9,), I32), _draw((3,), F32, 4))),
    Example("conv1d_valid", "whole", lambda: (_draw((5,)), _draw((5,), seed=4))),
    Example("conv1d_valid", "window_of_one", lambda: (_draw((4,)), _draw((1,), seed=4))),
    Example("softmax", "f64", lambda: (np.zeros((5, 7)), _draw((5, 7)))),
    Example("softmax", "f32", lambda: (np.zeros((3, 33), F32), _draw((3, 33), F32)), 1e-5),
    Example("softmax", "large", lambda: (np.zeros((2, 3)), 1e4 * _draw((2, 3)))),
    Example("softmax", "one", lambda: (np.zeros((1, 1)), _draw((1, 1)))),
    Example("softmax", "no_rows", lambda: (np.zeros((0, 3)), _draw((0, 3)))),
    Example("softmax", "no_columns", lambda: (np.zeros((3, 0)), _draw((3, 0)))),
    Example("attention", "f64", lambda: _attention(2, 5, 4, F64)),
    Example("attention", "f32", lambda: _attention(2, 6, 3, F32), 1e-5),
    Example("attention", "one_step", lambda: _attention(1, 1, 2, F64)),
    Example("attention", "no_heads", lambda: _attention(0, 4, 2, F64)),
    Example("jacobi", "f64", lambda: (_draw((6, 7)), 3)),
    Example("jacobi", "f32", lambda: (_draw((5, 5), F32), 4), 1e-5),
    Example("jacobi", "no_inside", lambda: (_draw((2, 2)), 3)),
    Example("jacobi", "one_cell", lambda: (_draw((1, 1)), 3)),
    Example("jacobi", "no_rows", lambda: (_draw((0, 4)), 3)),
    Example("jacobi", "no_steps", lambda: (_draw((4, 4)), 0)),
    Example("jacobi", "transposed", lambda: (_draw((6, 5)).T, 2)),
    Example("cholesky", "f64", lambda: (np.zeros((6, 6)), _definite(6, F64), 6)),
    Example("cholesky", "f32", lambda: (np.zeros((5, 5), F32), _definite(5, F32), 5), 1e-4),
    Example("cholesky", "one", lambda: (np.zeros((1, 1)), _definite(1, F64), 1)),
    Example("cholesky", "empty", lambda: (np.zeros((0, 0)), _definite(0, F64), 0)),
    Example("lu", "f64", lambda: (_definite(6, F64), 6)),
    Example("lu", "f32", lambda: (_definite(5, F32), 5), 1e-4),
    Example("lu", "one", lambda: (_definite(1, F64), 1)),
    Example("lu", "empty", lambda: (_definite(0, F64), 0)),
    Example("histogram", "f64", lambda: (np.ones(4), np.array([0, 3, 3, 1, 0, 3]), _draw((6,)))),
    Example("histogram", "small_index", lambda: (np.zeros(4), np.array([2, 2, 0], np.uint8),
                                                 _draw((3,)))),
    Example("histogram", "counts", lambda: (np.zeros(3, I64), np.array([1, 1, 2], I32),
                                            np.ones(3, I64))),
    Example("histogram", "nothing", lambda: (np.ones(4), np.zeros(0, I64), np.zeros(0))),
    Example("embed", "f64", lambda: (np.zeros((2, 3, 4)), _draw((5, 4)),
                                     np.array([[0, 4, 2], [2, 2, 1]]))),
    Example("embed", "f32_i32", lambda: (np.zeros((1, 3, 2), F32), _draw((5, 2), F32),
                                         np.array([[0, 4, 4]], I32))),
    Example("embed", "nothing", lambda: (np.zeros((0, 3, 2)), _draw((5, 2)),
                                         np.zeros((0, 3), I64))),
    Example("maxpool", "two", lambda: (np.zeros((2, 3, 4)), -_draw((2, 6, 8)), 2)),
    Example("maxpool", "leftover", lambda: (np.zeros((1, 2, 2), F32), _draw((1, 7, 7), F32), 3)),
    Example("maxpool", "one", lambda: (np.zeros((2, 3, 4)), _draw((2, 3, 4)), 1)),
    Example("maxpool", "ints", lambda: (np.zeros((2, 2, 2), I32), _draw((2, 4, 4), I32) - 20, 2)),
    Example("maxpool", "nan", lambda: (np.zeros((1, 1, 1)),
                                       np.array([[[1.0, np.nan], [3.0, 2.0]]]), 2)),
    Example("layernorm", "f64", lambda: _layernorm(4, 6, F64)),
    Example("layernorm", "f32", lambda: _layernorm(3, 17, F32), 1e-5),
    Example("layernorm", "one_column", lambda: _layernorm(3, 1, F64)),
    Example("layernorm", "no_rows", lambda: _layernorm(0, 3, F64)),
    Example("cumsum", "f64", lambda: (np.zeros(9), _draw((9,)))),
    Example("cumsum", "f32", lambda: (np.zeros(9, F32), _draw((9,), F32)), 1e-5),
    Example("cumsum", "i32", lambda: (np.zeros(9, I64), _draw((9,), I32))),
    Example("cumsum", "one", lambda: (np.zeros(1), _draw((1,)))),
    Example("cumsum", "empty", lambda: (np.zeros(0), _draw((0,)))),
    Example("assign", "f64", lambda: (np.zeros(7, I64), _draw((7, 2)), _draw((3, 2), seed=4))),
    Example("assign", "small_labels", lambda: (np.zeros(7, I32), _draw((7, 2), F32),
                                               _draw((3, 2), F32, 4))),
    Example("assign", "ties", lambda: (np.zeros(2, I64), np.zeros((2, 2)), np.ones((4, 2)))),
    Example("assign", "one_centre", lambda: (np.full(3, 9), _draw((3, 2)), _draw((1, 2)))),
    Example("advect", "f64", lambda: (_draw((8,)), 0.3, 4)),
    Example("advect", "f32", lambda: (_draw((8,), F32), 0.3, 4), 1e-5),
    Example("advect", "one_cell", lambda: (_draw((1,)), 0.3, 4)),
    Example("advect", "two_cells", lambda: (_draw((2,)), 0.3, 3)),
    Example("dot_f64", "long", lambda: (np.zeros(1, F32), np.full(2000, 0.1, F32),
                                        np.full(2000, 0.3, F32)), 2e-7),
    Example("dot_f64", "empty", lambda: (np.ones(1, F32), np.zeros(0, F32), np.zeros(0, F32))),
)  # fmt: skip
