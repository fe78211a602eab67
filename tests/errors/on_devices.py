"""Errors of devices, each as a function that raises it; on devices that this processor plays."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.cuda.nvrtc import CompileError
from plusequals.backends.gpu.driver_protocol import DriverMissing
from tests.backends.cuda.foreign import Theirs
from tests.backends.cuda.on_cpu import CpuDriver, Nothing, backend, installed

SOURCE = "def f(y, x):\n    y[i] = y[i] // x[i]\n"


def no_driver() -> object:
    """Ask for a device where no package reaches one."""

    def find() -> Any:
        raise DriverMissing("pycuda: No module named 'pycuda'; cuda.bindings finds no device")

    with installed(CompiledCuda(find)):
        return pe.cd_from_source(SOURCE, backend="cuda")(np.ones(3, int), np.ones(3, int))


def no_nvrtc() -> object:
    """Ask for a device where nothing compiles for it."""

    def find() -> Any:
        raise CompileError("there is neither NVRTC (`pip install nvidia-cuda-nvrtc`) nor nvcc")

    with installed(backend(compiler=find)):
        return pe.cd_from_source(SOURCE, backend="cuda")(np.ones(3, int), np.ones(3, int))


def too_few_devices() -> object:
    """Ask for the third of two devices."""
    with installed(backend(compiler=Nothing)):
        return pe.cd_from_source(SOURCE, backend="cuda:2")(np.ones(3, int), np.ones(3, int))


def full_device() -> object:
    """Give a device more than it has room for."""
    with installed(backend(CpuDriver(memory=4096), Nothing)):
        return pe.cd_from_source(SOURCE, backend="cuda")(np.ones(999, int), np.ones(999, int))


def array_on_a_device() -> object:
    """Give an array of a device to code for the processor."""
    with installed(backend(compiler=Nothing)) as made:
        x = Theirs(made.opened(0), np.ones(3))
        return pe.cd_from_source(SOURCE, backend="cc")(np.ones(3), x)


def steps_on_a_device() -> object:
    """Give an array of a device whose elements are one and a half of them apart."""
    with installed(backend(compiler=Nothing)) as made:
        x = Theirs(made.opened(0), np.ones(3), strides=(12,))
        return pe.cd_from_source(SOURCE, backend="cuda")(np.ones(3), x)


ON_DEVICES: dict[str, Callable[[], object]] = {
    name: value
    for name, value in vars().copy().items()
    if isinstance(value, types.FunctionType) and value.__module__ == __name__ and name[0] != "_"
}
