"""What runs in a process whose driver library is `libcuda.c`: `cuda.bindings`, or PyCUDA, itself.

    python -m tests.backends.cuda.on_libcuda cuda.bindings      or pycuda

with the library first where the system looks.

Nothing of a package is replaced: a verb that it has no more, takes otherwise, or gives otherwise,
fails here as it would on a device.
"""

from __future__ import annotations

import copy
import ctypes
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.cuda.code import CudaCode
from plusequals.backends.cuda.driver_bindings import Bindings
from plusequals.backends.cuda.driver_pycuda import PyCuda
from plusequals.backends.cuda.nvrtc import CompiledModule
from plusequals.backends.device_arrays.device_array import DeviceArray
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import Driver
from plusequals.base.diagnostic import CdError, CdMemoryError

from . import test_block_memory
from .on_cpu import MOST_SHARED, Gxx, installed

_HEAD = re.compile(r"__global__ void\s+(?:__launch_bounds__\(([\d,\s]+)\)\s+)?(\w+)\(([^)]*)\)")


class Shaped(Gxx):
    """Compiles CUDA for this processor, and says beside each kernel what it takes."""

    name = "g++ for libcuda.c"

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        return super().build(f"{text}\n{''.join(_shape(*found) for found in _HEAD.findall(text))}",
                             target, folder)  # fmt: skip


def _shape(bounds: str, name: str, parameters: str) -> str:
    names = [one.strip() for one in parameters.split(",") if one.strip()]
    faults = next((at for at, one in enumerate(names) if one.endswith("*faults")), -1)
    most = bounds.split(",")[0] or 0
    return f'extern "C" {{ int {name}_shape[3] = {{{len(names)}, {faults}, {most}}}; }}\n'


class Theirs:
    """An array of another package, on a stream that it names."""

    def __init__(self, device: OpenedDevice, array: Any, stream: Any) -> None:
        self.device, self.like, self.stream = device, np.array(array), stream
        self.address = device.context.allocate(self.like.nbytes, device.plain)
        device.upload(self.address, self.like, device.plain)
        device.wait(device.plain)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3, "shape": self.like.shape, "typestr": self.like.dtype.str,
            "data": (self.address, False), "strides": None, "stream": self.stream,
        }  # fmt: skip

    def get(self) -> Any:
        """Return what it holds now."""
        found = np.empty_like(self.like)
        self.device.download(found, self.address, self.device.plain)
        self.device.wait(self.device.plain)
        return found


def on(text: str) -> Any:
    return pe.cd_from_source(text, {"np": np}, backend="cuda")


def calls() -> None:
    """Calls with arrays of the host, a check that fails, memory that is not there."""
    f = on("def f(y, x, a):\n    y[i] = a * x[i] + 1\n    return y.sum(), x[::-1] * 2\n")
    for n in (1, 1000, 300_000):
        y, x = np.zeros(n), np.arange(float(n))
        total, back = f(y, x, 2.0)
        assert np.array_equal(y, 2 * x + 1) and np.isclose(total, y.sum())
        assert np.array_equal(back, x[::-1] * 2)
    pick = on("def f(y, x, k):\n    y[i] = x[k[i]]\n")
    try:
        pick(np.zeros(2), np.ones(2), np.array([0, 7]))
        raise AssertionError("the check has to fail")
    except CdError as why:
        assert "index 7" in str(why)
    try:
        on("def f(n):\n    z = np.zeros(n)\n    return z\n")(1 << 40)
        raise AssertionError("there is no such memory")
    except CdMemoryError as why:
        assert "CD0880" in str(why)


def arrays(device: OpenedDevice) -> None:
    """Arrays of others in place, on streams of every kind, traced and copied."""
    f = on("def f(y, x):\n    y[i] += x[i] * 2\n    return y * 2, y.sum()\n")
    theirs = device.context.stream()
    for stream in (1, 2, None, device.context.number(theirs)):
        y, x = Theirs(device, np.ones(100), stream), Theirs(device, np.arange(100.0), stream)
        double, total = f(y, x)
        want = 1 + 2 * np.arange(100.0)
        assert np.array_equal(y.get(), want) and total == want.sum()
        assert isinstance(double, DeviceArray) and np.array_equal(double.numpy(), 2 * want)
        assert double.__dlpack__(stream=1) and double.__cuda_array_interface__["stream"]
        assert np.array_equal(copy.deepcopy(double).numpy(), 2 * want)
        with pe.trace() as trace:
            f(y, x)
        assert len(trace) == 201 and trace[1].before == 3.0
    assert device.context.where(y.address) == 0


def tensors() -> None:
    """Routines on two devices, queued ahead and not, and a copy between them."""
    p = pe.tensor("p", (5,), "float64", init=1.0)
    streams = [pe.device(f"cuda:{k}").stream() for k in (0, 1)]
    code = on("def step(p):\n    p[i] = p[i] * 2\n").compile(p)
    one, two = (code.link(stream.context()) for stream in streams)
    library, current = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(1)
    assert library.cuCtxSetCurrent(None) == 0
    for _ in range(3):
        one()
    assert library.cuCtxGetCurrent(ctypes.byref(current)) == 0
    assert not current.value, "what is current is the caller's"
    two.context.copy_from(one.context, p)
    two()
    assert np.array_equal(two.context.numpy(p), np.full(5, 16.0))
    assert np.array_equal(one.context.numpy(p), np.full(5, 8.0))
    assert streams[0].query()
    for stream in streams:
        stream.synchronize()
    known = pe.device("cuda:1").properties
    assert (known["model"], known["architecture"]) == ("played 1", "sm_90")


def graphs() -> None:
    """Plans that are captured, on two streams, with a merge, more than once."""
    tensors = [pe.tensor(name, 5, "float64", init=1.0) for name in "pqr"]
    p, q, r = tensors
    context = pe.device("cuda:0").stream().context()
    routines = []
    for text, arguments in (
        ("def double(q, p):\n    q[i] = p[i] * 2\n", (q, p)),
        ("def add(r, p, n):\n    r[i] = r[i] + p[i] + n\n", (r, p, 1)),
        ("def both(p, q, r):\n    p[i] = q[i] + r[i] + p.merge[i]\n", (p, q, r)),
    ):
        routines.append(on(text).compile(*arguments).link(context))
        context = routines[-1].context
    double, add, both = routines
    with pe.plan() as plan:
        context.merge_into(both, p)
        double(), add(n=2), both()
    want = [array.numpy().copy() for array in tensors]
    for captured in (plan, plan.capture(), plan.capture()):
        for run in (captured, lambda captured=captured: captured.run(on=context.stream).wait()):
            run()
            want[1] = want[0] * 2
            want[2] = want[2] + want[0] + 2
            want[0] = want[1] + want[2] + want[0]
            for tensor, array in zip(tensors, want, strict=True):
                assert np.array_equal(tensor.numpy(), array)


def shared(made: CompiledCuda) -> None:
    """A kernel whose launches give each block more memory than it may declare."""
    device, planned = made.opened(0), test_block_memory.planned(6000)
    assert device.properties.most_shared_bytes == MOST_SHARED
    found, _ = made.load(planned, "reversing", device)
    parameters = planned.program.parameters
    code = CudaCode("reversing", planned, found.functions, parameters, (), "compiled", device, {},
                    found.module)  # fmt: skip
    test_block_memory.checked(code, 6000)


def in_a_fork() -> None:
    """A forked child says why it cannot go on."""
    f = on("def f(x):\n    x[i] += 1\n")
    f(np.ones(3))
    child = os.fork()
    if not child:
        try:
            f(np.ones(3))
        except CdError as why:
            os._exit(0 if "a forked process" in str(why) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def rest(folder: Path) -> str:
    """Return the C of functions of the driver that PyCUDA, which lies in a folder, has to find:
    those that `libcuda.c` does not play find no device."""
    (code,) = folder.glob("_driver*.so")
    names = re.findall(rb"(?<=\0)cu[A-Z]\w+(?=\0)", code.read_bytes())
    weak = "__attribute__((weak)) int {}(void) {{ return 100; }}\n"
    return "".join(weak.format(name.decode()) for name in sorted(set(names)))


def main(words: Sequence[str]) -> int:
    """Do all of it; raises where something is wrong."""
    package: Callable[[], Driver] = {"cuda.bindings": Bindings, "pycuda": PyCuda}[words[0]]
    with installed(CompiledCuda(package, Shaped)) as made:
        assert made.unavailable() is None, made.unavailable()
        calls()
        arrays(made.opened(0))
        tensors()
        graphs()
        shared(made)
        in_a_fork()
        print(made.driver().name, made.driver().version())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
