"""Loader: shared objects from bytes in memory, and their functions as callables.

The bytes are loaded from an anonymous file in memory, so that the checked bytes are those that run
and no folder has to allow execution; without such files, from a file in a private folder. A library
is closed when it is no longer referenced. cffi's backend module is used directly: it parses the
single type without the C parser of `cffi.FFI`, which costs 45 ms of start-up.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import struct
from collections.abc import Callable, Sequence
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import _cffi_backend

from ...base.lazy_import import LazyModule
from ...base.process_state import State, register
from ..cache.folders import read_package_text

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = LazyModule("tempfile", None)

ffi: Any = _cffi_backend.FFI()
ENTRY: Any = ffi.typeof("int(*)(void **)")
"""The type of entry points: a block of pointers in, a status out."""
T = TypeVar("T")
NUMBERS: Any = ffi.typeof("int64_t[]")
_serial = itertools.count()
register(
    lambda: State(
        name="numbers of loaded libraries",
        owner=__name__,
        holders=("_serial",),
        lock="the interpreter's lock",
    )
)
register(
    lambda: State(
        name="static variables of the thread pool, the memory pool and the fast path, in C",
        owner=__name__,
        lock="a mutex that a fork renews; a spin lock; the interpreter's lock",
        in_child="threads start again at the next call",
    )
)


class LoadError(Exception):
    """The bytes are no loadable library, with the reason."""


class Library:
    """A loaded shared object; it is closed with this object.

    The handle closes it in its destructor, after the finalizers of objects that refer to it: they
    may still call its code. The callback of a weak reference would run before them.
    """

    __slots__ = ("__weakref__", "_handle", "key")

    def __init__(self, code: bytes, name: str, key: str = "") -> None:
        """Load the bytes; the name is for debuggers, the key that of the cache. Raises Broken."""
        self.key = key
        if why := truncation_problem(code):
            raise LoadError(why)
        self._handle = _load(code, name, _open)

    def function(self, entry: str) -> Any:
        """Return the function of that name as a callable. Raises Broken where there is none."""
        try:
            return self._handle.load_function(ENTRY, entry)
        except AttributeError:
            raise LoadError(f"it has no function `{entry}`") from None


def read_csrc(*names: str) -> str:
    """Return the concatenated C text of files of the folder `read_csrc`."""
    folder = os.path.join(os.path.dirname(__file__), "csrc")
    return "\n".join(read_package_text(os.path.join(folder, f"{name}.c")) for name in names)


def address_of(pointer: Any) -> int:
    """Return the address of a pointer or an array as an integer."""
    return int(ffi.cast("intptr_t", pointer))


def int64_array(values: Sequence[int]) -> Any:
    """Return integers as a C array of int64_t, the null pointer for none."""
    return ffi.new(NUMBERS, values) if values else ffi.NULL


def c_free() -> Any:
    """Return the C library's `c_free`, for memory that compiled code allocates for its caller."""
    return _cffi_backend.load_library(None).load_function(ffi.typeof("void(*)(void *)"), "free")


def truncation_problem(code: bytes) -> str | None:
    """Return why bytes cannot be a complete library, None where they may be.

    The loader maps files without checking their length, and dies of SIGBUS where one is truncated;
    the length of an ELF file follows from its section header table, which is at its end.
    """
    if len(code) < 64:
        return "it is cut short"
    if code[:4] != b"\x7fELF" or code[4] != 2:
        return None  # another system's format: its loader checks it
    order = "<" if code[5] == 1 else ">"
    table, size, count = (
        struct.unpack_from(order + "Q", code, 40)[0],
        *struct.unpack_from(order + "HH", code, 58),
    )
    return "it is cut short" if table == 0 or table + size * count > len(code) else None


def load_module(code: bytes, name: str) -> ModuleType:
    """Load the bytes as an extension module of a name; it stays loaded. Raises Broken."""
    if why := truncation_problem(code):
        raise LoadError(why)

    def open_module(path: str) -> ModuleType:
        spec = spec_from_loader(name, ExtensionFileLoader(name, path))
        assert spec is not None, "there is a loader"
        return module_from_spec(spec)

    return _load(code, name, open_module)


def _load(code: bytes, name: str, opened: Callable[[str], T]) -> T:
    """Return the result of `opened` on a temporary file with these bytes. Raises Broken.

    A sanitizer runtime that is loaded later than at process start would terminate the process.
    """
    sanitizer = re.search(rb"__((?:hw)?a|t|m)san_init\0", code)
    if sanitizer and not _has_function(sanitizer[0][:-1].decode()):
        kind = {"a": "address", "hwa": "hwaddress", "t": "thread", "m": "memory"}[
            sanitizer[1].decode()
        ]
        raise LoadError(
            f"it was made by -fsanitize={kind}, which has to be in the process from the start "
            "(LD_PRELOAD)"
        )
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError, ImportError):  # some systems forbid to execute such files
            return _load_from_memory(code, name, opened)
    try:
        with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
            path = os.path.join(folder, f"{name}-{next(_serial)}.so")
            with open(path, "wb") as file:
                file.write(code)
            return opened(path)
    except (OSError, ImportError) as why:
        raise LoadError(str(why)) from None


def _has_function(function: str) -> bool:
    """Whether the process has a function of a name."""
    try:
        _cffi_backend.load_library(None).load_function(ENTRY, function)
    except AttributeError:
        return False
    return True


def _load_from_memory(code: bytes, name: str, opened: Callable[[str], T]) -> T:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(code)
        return opened(_unique_path(descriptor, next(_serial)))
    finally:
        os.close(descriptor)


def _unique_path(descriptor: int, serial: int) -> str:
    """Return a path of an open file that has not been used before.

    The loader identifies libraries by path, even where a reused descriptor refers to another file;
    so every load spells the path differently.
    """
    spelled = "".join("./" if serial >> bit & 1 else "/" for bit in range(serial.bit_length()))
    return f"/proc/self/fd/{spelled}{descriptor}"


def _open(path: str) -> Any:
    return _cffi_backend.load_library(path, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
