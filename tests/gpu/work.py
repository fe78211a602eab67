"""What is measured on a device: workloads of `benchmarks`, at sizes that fill one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Literal

import ml_dtypes  # noqa: F401 -- NumPy knows bfloat16 by it
import numpy as np

from benchmarks.cell import Array, Case, Cell, Result, Size, Tolerance, Workload, uniform
from benchmarks.cells import WORKLOADS

Mark = Literal["bytes", "operations"]
"""Which of both a device is measured by: how fast it moves, or how fast it computes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload at the size for a device, and at one that can be tested anywhere."""

    workload: Workload
    dims: tuple[int, ...]
    small: tuple[int, ...]
    mark: Mark
    function: str = ""
    """The name of its functions, where it is another one than the workload's."""
    tf32: bool = False
    """Whether tensor cores may round float32 for it, in every library."""

    def cell(self, is_small: bool = False) -> Cell:
        """Return the cell."""
        dims = self.small if is_small else self.dims
        return Cell(self.workload, Size("x".join(map(str, dims)), "large", dims))

    @property
    def called(self) -> str:
        """What its functions are called."""
        return self.function or self.workload.name

    @property
    def triton(self) -> str:
        """What its function of Triton is called."""
        return "gemm_tf32" if self.tf32 else self.called

    def functions(self, peer: str) -> ModuleType:
        """Return the module with the functions for a peer: `plusequals`, `torch`."""
        return import_module(f"benchmarks.{self.workload.kind}.with_{peer}")


def _gemm(dtype: str) -> Callable[..., Case]:
    def make(random: np.random.Generator, n: int) -> Case:
        inputs = uniform(random, n, n).astype(dtype), uniform(random, n, n).astype(dtype)
        return Case(inputs, (Result((n, n), dtype),))

    return make


def _multiplied(a: Array, b: Array) -> Array:
    """Return a product with its sums in float32: NumPy takes minutes for one of narrower types."""
    product: Array = a.astype(np.float32) @ b.astype(np.float32)
    return product.astype(a.dtype)


def _product(name: str, dtype: str, bound: float, tf32: bool = False) -> Measured:
    flops: Callable[..., float] = lambda n: 2 * n**3  # noqa: E731 -- as in the tables there
    made = Workload(name, "products", (), _gemm(dtype), _multiplied, flops, Tolerance(bound))
    return Measured(made, (4096,), (70,), "operations", "gemm_f32", tf32)


def _known(name: str, dims: tuple[int, ...], small: tuple[int, ...], mark: Mark) -> Measured:
    found = next(work for work in WORKLOADS if work.name == name)
    return Measured(found, dims, small, mark)


MEASURED: tuple[Measured, ...] = (
    _known("saxpy", (1 << 26,), (1000,), "bytes"),
    _known("black_scholes", (1 << 25,), (300,), "bytes"),
    _known("sum_all", (8192, 8192), (130, 70), "bytes"),
    _known("sum_axis0", (8192, 8192), (130, 70), "bytes"),
    _known("sum_axis1", (8192, 8192), (130, 70), "bytes"),
    _known("softmax", (8192, 4096), (20, 70), "bytes"),
    _known("layer_norm", (8192, 4096), (20, 70), "bytes"),
    _known("gemv", (8192, 8192), (70, 90), "bytes"),
    _product("gemm_f32_4096", "float32", 1e-4),
    _product("gemm_tf32_4096", "float32", 5e-3, tf32=True),
    _product("gemm_f16_4096", "float16", 2e-3),
    _product("gemm_bf16_4096", "bfloat16", 1e-2),
    _known("conv_nchw", (32, 58, 64, 64), (2, 9, 5, 17), "operations"),
    _known("attention", (4, 16, 1024, 64), (1, 2, 33, 16), "operations"),
    _known("nbody", (8192,), (200,), "operations"),
    _known("mlp_step", (4096, 784, 1024, 10), (40, 30, 20, 10), "operations"),
)
"""In the order of the table."""


def empty(case: Case) -> list[Array]:
    """Return outputs before they are written."""
    return [result.empty() for result in case.results]
