"""A driver and a compiler that run CUDA on this processor, to test everything around them.

Memory of the device is memory of the host with margins that are looked at after every launch. A
launch runs the text that g++ made, its threads as fibres; see `fibres.h`. With `Nothing` as the
compiler a launch does nothing but being noted.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cc.loader import Library, ffi
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.cuda.host_program import MAX_ANSWERS
from plusequals.backends.cuda.kernels import FAULT_RECORD_SIZE
from plusequals.backends.cuda.nvrtc import CompiledModule, CompileError
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import (
    DriverError,
    NotSupported,
    OutOfMemory,
    Properties,
)
from tests.counted import COUNTED, key_of
from tests.offered import offered

Array = np.ndarray[Any, Any]
GXX = shutil.which("g++")
needs_gxx = pytest.mark.skipif(GXX is None, reason="no g++ on this machine: CUDA was not run")
HEADER = Path(__file__).with_name("fibres.h")
THREADS = HEADER.with_suffix(".cpp")
FLAGS = (
    "-std=gnu++17 -O0 -fPIC -ffp-contract=off -fno-strict-aliasing"
    " -fsanitize=signed-integer-overflow -w -D_GLIBCXX_INCLUDE_NEXT_C_HEADERS"
).split()
"""The last one keeps the headers of C free of the templates of C++, which take long to read."""
FAST = ("-O2", "-U_FORTIFY_SOURCE")
"""How what is the same for all texts is compiled: jumps between stacks are not what is checked."""
LIBRARIES = ("-nostdlib", "-lm", "-lc", "-lgcc")
LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
"""The faster one, where it is."""
MARGIN = 64
"""Bytes before and behind each array that nobody may change."""
FILL = 0xA5
MOST_ARGUMENTS = 96
TURN = threading.RLock()
"""Held by what uses the memory of a device: a launch keeps its threads in globals of its text."""
UNASKED, MOST_SHARED = 48 * 1024, 227 * 1024
"""How many bytes a launch may give to a block, of kernels that did not ask for more, and did."""


@cache
def _compiled() -> tuple[Path, Path]:
    """Return the header in a folder where it is compiled already, and the object file of what is
    the same for all texts: each would take as long for these as for all the rest."""
    assert GXX is not None
    folder = Path(tempfile.mkdtemp(prefix="plusequals-fibres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header, threads = (Path(shutil.copy2(path, folder)) for path in (HEADER, THREADS))
    for command in (
        (GXX, "-x", "c++-header", *FLAGS, "-o", f"{header}.gch", header),
        (GXX, *FLAGS, *FAST, "-c", "-o", threads.with_suffix(".o"), threads),
    ):
        subprocess.run(command, check=True, capture_output=True)
    return header, threads.with_suffix(".o")


_NO_NODES = "a played driver of this kind has no conditional nodes"


class Gxx:
    """Compiles CUDA for this processor."""

    name = "g++"

    def flags(self, target: str) -> tuple[str, ...]:
        return (*FLAGS, *FAST, *(str(path.stat().st_mtime_ns) for path in (HEADER, THREADS)))

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        assert GXX is not None
        source = folder / "kernels.cu"
        source.write_text(text, "ascii")
        header, threads = map(str, _compiled())
        names = ("-include", header, "-x", "c++", "kernels.cu", "-x", "none", threads)
        command = [GXX, "-shared", *FLAGS, *LINKER, "-o", "kernels.so", *names, *LIBRARIES]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise CompileError(done.stderr)
        return CompiledModule((folder / "kernels.so").read_bytes(), done.stderr)


class Nothing:
    """Compiles nothing: for tests of what is asked of a device."""

    name = "nothing"

    def flags(self, target: str) -> tuple[str, ...]:
        return (target,)

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        return CompiledModule(b"", "")


@dataclass
class CpuDriver:
    """Devices that this processor plays. `log` is what they were asked to do, in order."""

    name: str = "fibres"
    devices: int = 2
    memory: int = 1 << 30
    seed: int = 0
    """Decides in which order blocks and threads run; 0 in that of their numbers."""
    shape: tuple[tuple[int, int, int], tuple[int, int, int]] | None = None
    """The grid and the block of launches with one axis of threads, instead of what was asked."""
    log: list[tuple[Any, ...]] = field(default_factory=list)

    def version(self) -> tuple[int, int]:
        return 13, 0

    def count(self) -> int:
        return self.devices

    def properties(self, device: int) -> Properties:
        return Properties(
            f"processor {device}", (9, 0), 4, self.memory, most_shared_bytes=MOST_SHARED
        )

    def open(self, device: int) -> CpuContext:
        return CpuContext(self, device)

    def opened(self, device: int) -> OpenedDevice:
        return OpenedDevice(self.open(device), self.properties(device), device)


class CpuContext:
    """One device. What is queued is done at once."""

    def __init__(self, driver: CpuDriver, device: int) -> None:
        self.driver, self.device = driver, device
        self.arrays: dict[int, Array] = {}
        self.used = 0
        self._numbers = count(1)
        self.capturing = threading.RLock()

    def note(self, *what: Any) -> None:
        self.driver.log.append((self.device, *what))

    def allocate(self, size: int, stream: Any) -> int:
        with TURN:
            if self.used + size > self.driver.memory:
                raise OutOfMemory("out of memory")
            self.used += size
            held = np.full(size + 2 * MARGIN, FILL, np.uint8)
            address = held.ctypes.data + MARGIN
            self.arrays[address] = held
        self.note("allocate", size)
        return int(address)

    def free(self, address: int, stream: Any) -> None:
        with TURN:
            held = self.arrays.pop(address)
            self.used -= held.nbytes - 2 * MARGIN
        self.note("free", held.nbytes - 2 * MARGIN)

    def free_memory(self) -> int:
        return self.driver.memory - self.used

    def pinned(self, size: int) -> Array:
        return np.empty(max(size, 1), np.uint8)

    def _memory(self, address: int, size: int) -> Array:
        """The bytes at an address, which have to be of one array."""
        with TURN:
            for start, held in self.arrays.items():
                if start <= address and address + size <= start + held.nbytes - 2 * MARGIN:
                    at = MARGIN + address - start
                    return held[at : at + size]
        raise DriverError(f"{size} bytes at {address:#x} are of no array")

    def upload(self, address: int, array: Array, stream: Any) -> None:
        self._memory(address, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        self.note("upload", array.nbytes, stream)

    def download(self, array: Array, address: int, stream: Any) -> None:
        array.reshape(-1).view(np.uint8)[:] = self._memory(address, array.nbytes)
        self.note("download", array.nbytes, stream)

    def copy(self, address: int, source: int, size: int, stream: Any) -> None:
        self._memory(address, size)[:] = self._memory(source, size)
        self.note("copy", size, stream)

    def copy_from(self, other: Any, address: int, source: int, size: int, stream: Any) -> None:
        self._memory(address, size)[:] = other._memory(source, size)
        self.note("copy_from", other.device, size, stream)

    def clear(self, address: int, size: int, stream: Any) -> None:
        self._memory(address, size)[:] = 0
        self.note("clear", size, stream)

    def stream(self) -> Any:
        return f"stream {next(self._numbers)}"

    def number(self, stream: Any) -> int:
        return 4096 + int(stream.split()[1])

    def follow(self, stream: Any, other: int) -> None:
        self.note("follow", stream, other)

    def lead(self, other: int, stream: Any) -> None:
        self.note("lead", other, stream)

    def finish(self) -> None:
        self.note("finish")

    def where(self, address: int) -> int:
        return self.device

    def event(self) -> Any:
        return [f"event {next(self._numbers)}"]

    def record(self, event: Any, stream: Any) -> None:
        self.note("record", event[0], stream)

    def wait(self, stream: Any, event: Any) -> None:
        self.note("wait", stream, event[0])

    def query(self, event: Any) -> bool:
        return True

    def synchronize(self, event: Any) -> None:
        self.note("synchronize", event[0])

    def load(self, code: bytes) -> Library | None:
        self.note("load", len(code))
        return Library(code, "kernels", key_of(code, "")) if code else None

    def function(
        self, code: Library | None, name: str, count: int, given: int = 0
    ) -> tuple[Any, Any, str, str, int]:
        if given > MOST_SHARED:
            raise DriverError(f"{name}: {given} bytes for a block are more than there are")
        if code is None:
            return None, None, name, "", given
        held = code._handle
        launch = held.load_function(ffi.typeof(_LAUNCH), "pe_launch")
        function = held.load_function(ffi.typeof("void(*)(void)"), name)
        return launch, function, name, f"{code.key}{name}", given

    def launch(
        self, function: Any, grid: Any, block: Any, arguments: Sequence[int], stream: Any,
        given: int = 0,
    ) -> None:  # fmt: skip
        """Run a kernel. Raises DriverError for a race that was seen, or a write past an array."""
        start, kernel, name, counted, asked = function
        self.note("launch", name, grid, block, stream, *[given] * (given > 0))
        if given > max(asked, UNASKED):
            raise DriverError(f"{name}: {given} bytes for a block are more than it asked for")
        if start is None:
            return
        COUNTED.ran.add(counted)
        assert len(arguments) <= MOST_ARGUMENTS, "more arguments than fibres.h passes"
        if self.driver.shape is not None and block[1] == 1:
            grid, block = self.driver.shape
        shape = ffi.new("int64_t[]", [*grid, *block, given])
        nothing = np.zeros(FAULT_RECORD_SIZE, np.int64)
        faults = next(
            (a for a in arguments if a % 8 == 0 and a - 8 * MAX_ANSWERS in self.arrays), None
        )
        values = [*arguments, *[0] * (MOST_ARGUMENTS - len(arguments))]
        values.append(faults or nothing.ctypes.data)
        with TURN:
            said = start(kernel, shape, ffi.new("int64_t[]", values), self.driver.seed)
            if said != ffi.NULL:
                raise DriverError(f"{name}: {ffi.string(said).decode()}")
            self.inspect(name)

    def prepared(
        self, function: Any, grid: Any, block: Any, arguments: Sequence[int], stream: Any,
        given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        values = tuple(arguments)
        return lambda: self.launch(function, grid, block, values, stream, given)

    def begin_capture(self, stream: Any) -> None:
        raise NotSupported("a played driver of this kind has no capture of streams")

    def end_capture(self, stream: Any) -> Any:
        raise NotImplementedError("none has begun")

    def condition(self, stream: Any) -> int:
        raise NotSupported(_NO_NODES)

    def conditional(self, stream: Any, condition: int, repeats: bool) -> Any:
        raise NotSupported(_NO_NODES)

    def begin_body(self, stream: Any, body: Any) -> None:
        raise NotSupported(_NO_NODES)

    def end_body(self, stream: Any) -> None:
        raise NotSupported(_NO_NODES)

    def launch_graph(self, graph: Any, stream: Any) -> None:
        raise NotImplementedError("there is none")

    def destroy_graph(self, graph: Any) -> None:
        raise NotImplementedError("there is none")

    def inspect(self, name: str) -> None:
        """Raise DriverError where something was written past an array."""
        for held in self.arrays.values():
            if (held[:MARGIN] != FILL).any() or (held[-MARGIN:] != FILL).any():
                raise DriverError(f"{name} writes past an array of {held.nbytes - 2 * MARGIN}")


def overflows(code: Any) -> int:
    """Return how many signed integers have overflowed in compiled code, where that is undefined."""
    return int(code.module._handle.load_function(ffi.typeof("int64_t(*)(void)"), "pe_overflows")())


_LAUNCH = "const char *(*)(void(*)(void), const int64_t *, const int64_t *, uint64_t)"


def backend(driver: CpuDriver | None = None, compiler: Any = Gxx) -> CompiledCuda:
    """Return the backend on devices that this processor plays."""
    held = driver or CpuDriver()
    return CompiledCuda(lambda: held, compiler)


@contextmanager
def installed(made: CompiledCuda | None = None) -> Iterator[CompiledCuda]:
    """Let `cuda` be such a backend inside the `with`."""
    made = made or backend()
    with offered("cuda", made):
        yield made
