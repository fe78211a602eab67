"""From CUDA text to code for one kind of device: by NVRTC, or by nvcc where that is missing.

NVRTC is a library: of the package `nvidia-cuda-nvrtc`, of a toolkit, or of the system. It needs no
device and no header. What it says of each kernel - registers, spills, shared memory - is kept with
the code, for `explain` and for tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import _cffi_backend

from ...base import settings
from ...base.dataclass import dataclass
from ..cc.toolchain import run

MEANING = ("--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
"""Flags that results depend on: operations are rounded as written, denormals are kept."""
MAJORS = (13, 12)
"""The versions of CUDA that are looked for, the newest first."""
_FOLDERS = ("lib64", "lib")
_TOOLKIT = Path("/usr/local/cuda")
ffi: Any = _cffi_backend.FFI()
_SIGNATURES = {
    "nvrtcVersion": "int(*)(int *, int *)",
    "nvrtcGetErrorString": "char *(*)(int)",
    "nvrtcCreateProgram": "int(*)(void **, char *, char *, int, void *, void *)",
    "nvrtcCompileProgram": "int(*)(void *, int, char **)",
    "nvrtcGetProgramLogSize": "int(*)(void *, size_t *)",
    "nvrtcGetProgramLog": "int(*)(void *, char *)",
    "nvrtcGetCUBINSize": "int(*)(void *, size_t *)",
    "nvrtcGetCUBIN": "int(*)(void *, char *)",
    "nvrtcDestroyProgram": "int(*)(void **)",
}
_POINTER: Any = ffi.typeof("void *[1]")
_TEXTS: Any = ffi.typeof("char *[]")
_BYTES: Any = ffi.typeof("char[]")
_INT: Any = ffi.typeof("int[1]")
_SIZE: Any = ffi.typeof("size_t[1]")


class Failed(Exception):
    """The text was not compiled; holds what the compiler said."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a kernel takes of a multiprocessor."""

    registers: int
    shared: int
    spilled: int
    """Bytes of registers that are kept in memory instead."""
    stack: int

    def __str__(self) -> str:
        spilled = f", {self.spilled} bytes of them in memory" if self.spilled else ""
        stack = f", {self.stack} bytes of stack" if self.stack else ""
        return f"{self.registers} registers{spilled}, {self.shared} bytes shared{stack}"


@dataclass(frozen=True, slots=True)
class Made:
    """Compiled code, and what the compiler said."""

    code: bytes
    log: str

    @property
    def figures(self) -> dict[str, Figures]:
        """What each kernel takes, by its name."""
        return figures_of(self.log)


class Compiler(Protocol):
    """What makes code for a device."""

    name: str
    """What people call it, version included; part of the key of what it makes."""

    def flags(self, target: str) -> tuple[str, ...]:
        """Return every flag of a compilation for a kind of device like `sm_90`."""

    def build(self, text: str, target: str, folder: Path) -> Made:
        """Return the code that it makes of a text; raises Failed."""


def find(most: int = MAJORS[0]) -> Compiler:
    """Return the compiler to use; raises Failed where there is none.

    `most` is the newest version of CUDA whose code the driver takes: that of newer ones it does
    not.
    """
    said = []
    for path in candidates():
        try:
            found = Nvrtc(path)
        except OSError as why:
            if os.sep in path:
                said.append(str(why))
            continue
        if found.version[0] <= most:
            return found
        said.append(_too_new(found.name, most))
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        command = Nvcc(nvcc)
        if _number(r"nvcc (\d+)\.", command.name) <= most:
            return command
        said.append(_too_new(command.name, most))
    said.append("there is neither NVRTC (`pip install nvidia-cuda-nvrtc`) nor nvcc")
    raise Failed("; ".join(said))


def _too_new(name: str, most: int) -> str:
    return f"{name} makes code that the driver, of CUDA {most}, does not take"


def candidates() -> Iterator[str]:
    """Yield where the library may be: in packages, in toolkits, where the system looks."""
    for major in MAJORS:
        names = (f"libnvrtc.so.{major}", f"nvrtc64_{major}0_0.dll")
        for folder in _folders():
            yield from (str(folder / name) for name in names if (folder / name).exists())
    for major in MAJORS:
        yield f"libnvrtc.so.{major}"


def _folders() -> Iterator[Path]:
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for package in ("cu13", "cuda_nvrtc", "cu12"):
            yield from (Path(place, package, folder) for folder in ("lib", "bin"))
    chosen = (settings.variable(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    for toolkit in (*(Path(path) for path in chosen if path), _TOOLKIT):
        yield from (toolkit / folder for folder in _FOLDERS)


class Nvrtc:
    """The library NVRTC, loaded."""

    def __init__(self, path: str) -> None:
        """Load it; raises OSError where that cannot be done."""
        self._builtins = _load_beside(path)
        self._library = _cffi_backend.load_library(path)
        major, minor = ffi.new(_INT), ffi.new(_INT)
        self._call("nvrtcVersion", major, minor)
        self.version = major[0], minor[0]
        self.name = f"NVRTC {major[0]}.{minor[0]}"

    def flags(self, target: str) -> tuple[str, ...]:
        """Return every flag of a compilation for a kind of device like `sm_90`."""
        return (f"--gpu-architecture={target}", *MEANING, *_asked())

    def build(self, text: str, target: str, folder: Path) -> Made:
        """Return the code that it makes of a text; raises Failed."""
        program = ffi.new(_POINTER)
        source, name = _text(text), _text("kernels.cu")
        self._call("nvrtcCreateProgram", program, source, name, 0, ffi.NULL, ffi.NULL)
        try:
            flags = [_text(flag) for flag in self.flags(target)]
            block = ffi.new(_TEXTS, flags)
            status = self._function("nvrtcCompileProgram")(program[0], len(flags), block)
            said = self._bytes("nvrtcGetProgramLog", program[0]).rstrip(b"\0").decode()
            if status:
                raise Failed(said.strip() or self._error(status))
            return Made(self._bytes("nvrtcGetCUBIN", program[0]), said)
        finally:
            self._call("nvrtcDestroyProgram", program)

    def _function(self, name: str) -> Any:
        return self._library.load_function(ffi.typeof(_SIGNATURES[name]), name)

    def _call(self, name: str, *given: Any) -> None:
        status = self._function(name)(*given)
        if status:
            raise Failed(f"{name}: {self._error(status)}")

    def _error(self, status: int) -> str:
        return str(ffi.string(self._function("nvrtcGetErrorString")(status)).decode())

    def _bytes(self, name: str, program: Any) -> bytes:
        """Return what has a size of its own: the log, the code."""
        size = ffi.new(_SIZE)
        self._call(f"{name}Size", program, size)
        held = ffi.new(_BYTES, size[0])
        self._call(name, program, held)
        return bytes(ffi.buffer(held))


def _text(text: str) -> Any:
    return ffi.new(_BYTES, text.encode())


def _load_beside(path: str) -> Any:
    """Load the library of built-ins, which NVRTC would only look for where the system does."""
    for beside in (
        sorted(Path(path).parent.glob("libnvrtc-builtins.so.*")) if os.sep in path else ()
    ):
        with contextlib.suppress(OSError):
            return _cffi_backend.load_library(str(beside), ffi.RTLD_NOW | ffi.RTLD_GLOBAL)
    return None


class Nvcc:
    """The compiler of a toolkit, as a command."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.name = _version_of(command)

    def flags(self, target: str) -> tuple[str, ...]:
        """Return every flag of a compilation for a kind of device like `sm_90`."""
        return ("-cubin", f"-arch={target}", *MEANING, *_asked())

    def build(self, text: str, target: str, folder: Path) -> Made:
        """Return the code that it makes of a text in an empty folder; raises Failed."""
        (folder / "kernels.cu").write_text(text, encoding="utf-8")
        command = (self.command, *self.flags(target), "-o", "kernels.cubin", "kernels.cu")
        ran = run(command, str(folder))
        made = folder / "kernels.cubin"
        if ran.status or not made.exists():
            raise Failed(ran.said.strip() or f"it ended with {ran.status}")
        return Made(made.read_bytes(), ran.said)


def figures_of(log: str) -> dict[str, Figures]:
    """Return what each kernel takes, by its name, as the assembler says.

    >>> figures_of('''ptxas info    : Compiling entry function 'k' for 'sm_90'
    ... ptxas info    : Function properties for k
    ...     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
    ... ptxas info    : Used 18 registers, used 1 barriers, 512 bytes smem''')
    {'k': Figures(registers=18, shared=512, spilled=12, stack=8)}
    """
    found: dict[str, Figures] = {}
    _, *parts = re.split(r"Compiling entry function '(\w+)'", log)
    for name, part in zip(parts[::2], parts[1::2]):
        found[name] = Figures(
            _number(r"Used (\d+) registers", part),
            _number(r"(\d+)(?:\+\d+)? bytes smem", part),
            max(_number(r"(\d+) bytes spill stores", part),
                _number(r"(\d+) bytes spill loads", part)),
            _number(r"(\d+) bytes stack frame", part),
        )  # fmt: skip
    return found


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def _asked() -> tuple[str, ...]:
    """Return the flags that say how much is told, and how hard the assembler tries."""
    effort = settings.current().optimize
    level = 1 if effort == "g" else effort  # which is no level of the assembler
    return ("--ptxas-options=-v", f"--ptxas-options=-O{level}")


def _version_of(command: str) -> str:
    said = run((command, "--version"), str(Path(command).parent)).said
    release = re.search(r"release (\S+), (\S+)", said)
    return f"nvcc {release[2].lstrip('V')}" if release else f"nvcc {said.strip()[-40:]}"
