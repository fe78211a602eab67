"""Every kernel: sane in plain NumPy, and the same on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings

from ..compare import assert_same, copied, run_on
from .kernel import Kernel, Size
from .registry import KERNELS

SEED = 20


def _numbers(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple | list):
        return [array for part in value for array in _numbers(part)]
    return [] if value is None else [np.asarray(value)]


def _compare(kernel: Kernel, size: Size, backend: str) -> None:
    args, kwargs = kernel.make(size, SEED)
    plain, compiled = copied(args), copied(args)
    expected = kernel.function(*plain, **kwargs)
    got = run_on(backend, pe.cd(kernel.function), *compiled, **kwargs)
    assert_same(got, expected, kernel.rtol)
    assert_same(compiled, plain, kernel.rtol, "arguments")


@pytest.mark.parametrize("size", ["tiny", "medium"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_plain_numpy_is_sane(kernel: Kernel, size: Size) -> None:
    args, kwargs = kernel.make(size, SEED)
    used = copied(args)
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        result = kernel.function(*used, **kwargs)
    for position, (before, after) in enumerate(zip(args, used)):
        if position in kernel.mutated:
            assert not np.array_equal(before, after), "a mutated argument has to change"
        else:
            assert_same(after, before, 0.0, f"argument {position}")
    seen = _numbers(result) + [used[position] for position in kernel.mutated]
    assert seen, "a kernel returns or changes something"
    assert all(np.isfinite(array).all() for array in seen)
    assert any(np.any(array != 0) for array in seen)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_tiny_inputs_agree_with_numpy(kernel: Kernel, backend: str) -> None:
    _compare(kernel, "tiny", backend)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_medium_inputs_agree_with_numpy(kernel: Kernel) -> None:
    _compare(kernel, "medium", "cc")


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_any_number_of_threads_gives_the_same_bits(kernel: Kernel) -> None:
    args, kwargs = kernel.make("tiny", SEED)

    def bits(threads: int, profile: str) -> list[bytes]:
        given = copied(args)
        how = {"schedule": threads > 0, "threads": threads, "parallel_from": 0, "optimize": "g"}
        with settings.override("cc", profile=profile, **how):
            returned = pe.cd(kernel.function)(*given, **kwargs)
        return [number.tobytes() for number in _numbers((returned, given))]

    assert bits(1, "default") == bits(7, "default")
    assert bits(0, "strict") == bits(2, "strict"), "whatever the order of the loops"
