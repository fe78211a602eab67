"""CUDA compilers: NVRTC, or nvcc where that is missing.

NVRTC is a library: of the package `nvidia-cuda-nvrtc`, of a toolkit, or of the system. It needs no
device and no headers. Its report on each kernel (registers, spills, shared memory) is kept with
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
from ..cc.toolchain import run_command

SEMANTIC_FLAGS = (
    "--std=c++17",
    "--fmad=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ftz=false",
)
"""Flags that affect results: operations are rounded as written, subnormals are kept."""
MAJOR_VERSIONS = (13, 12)
"""The supported major versions of CUDA, in order of preference."""
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


class CompileError(Exception):
    """A compilation error, with the compiler's output."""


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """The resource usage of a kernel."""

    registers: int
    shared: int
    spilled: int
    """Bytes of register spills."""
    stack: int

    def __str__(self) -> str:
        spilled = f", {self.spilled} bytes of them in memory" if self.spilled else ""
        stack = f", {self.stack} bytes of stack" if self.stack else ""
        return f"{self.registers} registers{spilled}, {self.shared} bytes shared{stack}"


@dataclass(frozen=True, slots=True)
class CompiledModule:
    """Compiled code, with the compiler's output."""

    code: bytes
    log: str

    @property
    def figures(self) -> dict[str, ResourceUsage]:
        """The resource usage of each kernel, by its name."""
        return parse_usage(self.log)


class Compiler(Protocol):
    """A compiler of CUDA text."""

    name: str
    """Its name with its version, a part of cache keys."""

    def flags(self, target: str) -> tuple[str, ...]:
        """Return all flags of a compilation for an architecture like `sm_90`."""

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        """Compile a text; raises Failed."""


def find_compiler(most: int = MAJOR_VERSIONS[0]) -> Compiler:
    """Return the compiler to use; raises Failed where there is none.

    `most` is the newest major version of CUDA whose code the driver accepts.
    """
    reasons = []
    for path in candidate_paths():
        try:
            library = Nvrtc(path)
        except OSError as why:
            if os.sep in path:
                reasons.append(str(why))
            continue
        if library.version[0] <= most:
            return library
        reasons.append(_version_problem(library.name, most))
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        command = Nvcc(nvcc)
        if _number(r"nvcc (\d+)\.", command.name) <= most:
            return command
        reasons.append(_version_problem(command.name, most))
    reasons.append("there is neither NVRTC (`pip install nvidia-cuda-nvrtc`) nor nvcc")
    raise CompileError("; ".join(reasons))


def _version_problem(name: str, most: int) -> str:
    return f"{name} makes code that the driver, of CUDA {most}, does not take"


def candidate_paths() -> Iterator[str]:
    """Yield candidate paths of the library: in packages, in toolkits, on the system's path."""
    for major in MAJOR_VERSIONS:
        names = (f"libnvrtc.so.{major}", f"nvrtc64_{major}0_0.dll")
        for folder in _folders():
            yield from (str(folder / name) for name in names if (folder / name).exists())
    for major in MAJOR_VERSIONS:
        yield f"libnvrtc.so.{major}"


def _folders() -> Iterator[Path]:
    spec = find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        for package in ("cu13", "cuda_nvrtc", "cu12"):
            yield from (Path(location, package, folder) for folder in ("lib", "bin"))
    chosen = (settings.variable(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    for toolkit in (*(Path(path) for path in chosen if path), _TOOLKIT):
        yield from (toolkit / folder for folder in _FOLDERS)


class Nvrtc:
    """The NVRTC library, loaded."""

    def __init__(self, path: str) -> None:
        """Load the library; raises OSError where it cannot be loaded."""
        self._builtins = _load_builtins(path)
        self._library = _cffi_backend.load_library(path)
        major, minor = ffi.new(_INT), ffi.new(_INT)
        self._call("nvrtcVersion", major, minor)
        self.version = major[0], minor[0]
        self.name = f"NVRTC {major[0]}.{minor[0]}"

    def flags(self, target: str) -> tuple[str, ...]:
        """Return all flags of a compilation for an architecture like `sm_90`."""
        return (f"--gpu-architecture={target}", *SEMANTIC_FLAGS, *_ptxas_flags())

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        """Compile a text; raises Failed."""
        program = ffi.new(_POINTER)
        source, name = _c_string(text), _c_string("kernels.cu")
        self._call("nvrtcCreateProgram", program, source, name, 0, ffi.NULL, ffi.NULL)
        try:
            flags = [_c_string(flag) for flag in self.flags(target)]
            block = ffi.new(_TEXTS, flags)
            status = self._function("nvrtcCompileProgram")(program[0], len(flags), block)
            log = self._bytes("nvrtcGetProgramLog", program[0]).rstrip(b"\0").decode()
            if status:
                raise CompileError(log.strip() or self._error(status))
            return CompiledModule(self._bytes("nvrtcGetCUBIN", program[0]), log)
        finally:
            self._call("nvrtcDestroyProgram", program)

    def _function(self, name: str) -> Any:
        return self._library.load_function(ffi.typeof(_SIGNATURES[name]), name)

    def _call(self, name: str, *given: Any) -> None:
        status = self._function(name)(*given)
        if status:
            raise CompileError(f"{name}: {self._error(status)}")

    def _error(self, status: int) -> str:
        return str(ffi.string(self._function("nvrtcGetErrorString")(status)).decode())

    def _bytes(self, name: str, program: Any) -> bytes:
        """Return an output of variable size: the log or the code."""
        size = ffi.new(_SIZE)
        self._call(f"{name}Size", program, size)
        buffer = ffi.new(_BYTES, size[0])
        self._call(name, program, buffer)
        return bytes(ffi.buffer(buffer))


def _c_string(text: str) -> Any:
    return ffi.new(_BYTES, text.encode())


def _load_builtins(path: str) -> Any:
    """Load the library of built-ins, which NVRTC searches on the system's path only."""
    for candidate in (
        sorted(Path(path).parent.glob("libnvrtc-builtins.so.*")) if os.sep in path else ()
    ):
        with contextlib.suppress(OSError):
            return _cffi_backend.load_library(str(candidate), ffi.RTLD_NOW | ffi.RTLD_GLOBAL)
    return None


class Nvcc:
    """The command `nvcc` of a toolkit."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.name = _version_of(command)

    def flags(self, target: str) -> tuple[str, ...]:
        """Return all flags of a compilation for an architecture like `sm_90`."""
        return ("-cubin", f"-arch={target}", *SEMANTIC_FLAGS, *_ptxas_flags())

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        """Compile a text in an empty folder; raises Failed."""
        (folder / "kernels.cu").write_text(text, encoding="utf-8")
        command = (self.command, *self.flags(target), "-o", "kernels.cubin", "kernels.cu")
        process = run_command(command, str(folder))
        cubin = folder / "kernels.cubin"
        if process.status or not cubin.exists():
            raise CompileError(process.said.strip() or f"it ended with {process.status}")
        return CompiledModule(cubin.read_bytes(), process.said)


def parse_usage(log: str) -> dict[str, ResourceUsage]:
    """Return the resource usage of each kernel, by its name, from the output of ptxas.

    >>> parse_usage('''ptxas info    : Compiling entry function 'k' for 'sm_90'
    ... ptxas info    : Function properties for k
    ...     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
    ... ptxas info    : Used 18 registers, used 1 barriers, 512 bytes smem''')
    {'k': Figures(registers=18, shared=512, spilled=12, stack=8)}
    """
    figures: dict[str, ResourceUsage] = {}
    _, *sections = re.split(r"Compiling entry function '(\w+)'", log)
    for name, section in zip(sections[::2], sections[1::2]):
        figures[name] = ResourceUsage(
            _number(r"Used (\d+) registers", section),
            _number(r"(\d+)(?:\+\d+)? bytes smem", section),
            max(_number(r"(\d+) bytes spill stores", section),
                _number(r"(\d+) bytes spill loads", section)),
            _number(r"(\d+) bytes stack frame", section),
        )  # fmt: skip
    return figures


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def _ptxas_flags() -> tuple[str, ...]:
    """Return the flags of verbosity and of the optimization level of ptxas."""
    effort = settings.current().optimize
    level = 1 if effort == "g" else effort  # ptxas has no level g
    return ("--ptxas-options=-v", f"--ptxas-options=-O{level}")


def _version_of(command: str) -> str:
    output = run_command((command, "--version"), str(Path(command).parent)).said
    release = re.search(r"release (\S+), (\S+)", output)
    return f"nvcc {release[2].lstrip('V')}" if release else f"nvcc {output.strip()[-40:]}"
