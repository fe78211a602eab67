"""A Triton of NumPy: programs one after the other, blocks as arrays, pointers that know arrays.

It shows that kernels compute what they should, and that none reads or writes past its arrays; it
says nothing of what the real compiler takes, but for the arguments that functions have here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Tensor:
    """What PyTorch has of an array as far as the kernels ask for it."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape = array, array.shape

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

    def __len__(self) -> int:
        return len(self.array)


@dataclass(frozen=True)
class Pointer:
    """Addresses of elements of an array."""

    flat: Array
    at: Any = 0

    def __add__(self, more: Any) -> Pointer:
        return replace(self, at=self.at + more)


def _load(pointer: Pointer, mask: Any = True, other: float = 0.0) -> Array:
    at, inside = np.broadcast_arrays(pointer.at, mask)
    assert ((at >= 0) & (at < pointer.flat.size))[inside].all(), "it reads past an array"
    found = pointer.flat[np.where(inside, at, 0)]
    return np.where(inside, found, np.array(other, found.dtype))


def _store(pointer: Pointer, value: Any, mask: Any = True) -> None:
    at, inside, values = np.broadcast_arrays(pointer.at, mask, value)
    assert ((at >= 0) & (at < pointer.flat.size))[inside].all(), "it writes past an array"
    pointer.flat[at[inside]] = values[inside]


def _dot(left: Array, right: Array, total: Any = 0.0, input_precision: str = "tf32") -> Array:
    assert min(*left.shape, *right.shape) >= 16, "tensor cores take blocks of 16 or more"
    assert input_precision in ("ieee", "tf32")
    return left.astype(np.float32) @ right.astype(np.float32) + total


def _arange(first: int, end: int) -> Array:
    assert (end - first) & (end - first - 1) == 0, "blocks have powers of two"
    return np.arange(first, end)


class Language(ModuleType):
    """`triton.language`."""

    constexpr, float32 = int, np.float32
    load, store, dot, arange = map(staticmethod, (_load, _store, _dot, _arange))
    exp, sqrt, where, maximum, minimum = map(
        staticmethod, (np.exp, np.sqrt, np.where, np.maximum, np.minimum)
    )
    max, sum, zeros = map(staticmethod, (np.max, np.sum, np.zeros))
    place: tuple[int, ...] = ()

    def program_id(self, axis: int) -> int:
        return self.place[axis]

    def cdiv(self, a: int, b: int) -> int:
        return -(-a // b)

    def cast(self, value: Array, dtype: Any) -> Array:
        return value.astype(dtype)


class Triton(ModuleType):
    """`triton`."""

    def __init__(self) -> None:
        super().__init__("triton")
        self.language = Language("triton.language")

    def cdiv(self, a: int, b: int) -> int:
        return -(-a // b)

    def next_power_of_2(self, n: int) -> int:
        return 1 << (n - 1).bit_length()

    def jit(self, kernel: Callable[..., None]) -> Any:
        return _Jitted(kernel, self.language)


@dataclass(frozen=True)
class _Jitted:
    """A kernel, which a grid in brackets makes a function."""

    kernel: Callable[..., None]
    language: Language

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def run(*given: Any, num_warps: int = 4, num_stages: int = 3, **sizes: Any) -> None:
            arguments = [
                Pointer(one.array.reshape(-1)) if isinstance(one, Tensor) else one for one in given
            ]
            for self.language.place in itertools.product(*map(range, grid)):
                self.kernel(*arguments, **sizes)

        return run
