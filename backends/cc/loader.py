"""Compiled code in memory: from the bytes of a shared object to functions that can be called.

The bytes are loaded from an anonymous file in memory, so what was checked is what runs and no
folder has to allow execution; where there are none, from a file in a private folder. A library is
closed when nothing refers to it any more. cffi's own backend module is used directly: it parses
the one type there is without the C parser of `cffi.FFI`, which costs 45 ms of start-up.
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

from ...base.lazy_import import Later
from ..cache.folders import own_text

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = Later("tempfile", None)

ffi: Any = _cffi_backend.FFI()
ENTRY: Any = ffi.typeof("int(*)(void **)")
"""The type of every entry: one block of pointers in, a status out."""
T = TypeVar("T")
NUMBERS: Any = ffi.typeof("int64_t[]")
_serial = itertools.count()


class Broken(Exception):
    """The bytes are not a library that can be loaded; says why."""


class Library:
    """A loaded shared object, for as long as this lives.

    The handle closes it when it goes, after all finalizers of what goes with it: they may still
    call its code. The callback of a weak reference would run before them.
    """

    __slots__ = ("__weakref__", "_handle", "key")

    def __init__(self, code: bytes, name: str, key: str = "") -> None:
        """Load the bytes; the name is for debuggers, the key where they are kept. Raises Broken."""
        self.key = key
        if why := unsound(code):
            raise Broken(why)
        self._handle = _load(code, name, _open)

    def function(self, entry: str) -> Any:
        """Return the function of that name as a callable. Raises Broken where there is none."""
        try:
            return self._handle.load_function(ENTRY, entry)
        except AttributeError:
            raise Broken(f"it has no function `{entry}`") from None


def csrc(*names: str) -> str:
    """Return the C of files of the folder `csrc`, one after another."""
    folder = os.path.join(os.path.dirname(__file__), "csrc")
    return "\n".join(own_text(os.path.join(folder, f"{name}.c")) for name in names)


def address(pointer: Any) -> int:
    """Return where a pointer or an array leads to, as a number."""
    return int(ffi.cast("intptr_t", pointer))


def numbers(values: Sequence[int]) -> Any:
    """Return whole numbers as an array of C, the null pointer for none."""
    return ffi.new(NUMBERS, values) if values else ffi.NULL


def free() -> Any:
    """Return the C library's `free`, for what compiled code has allocated for its caller."""
    return _cffi_backend.load_library(None).load_function(ffi.typeof("void(*)(void *)"), "free")


def unsound(code: bytes) -> str | None:
    """Return why bytes cannot be a whole library, None where they may be.

    The loader maps files without looking at their length and dies of SIGBUS where one is short;
    an ELF file says how long it is, since its table of sections is the last thing in it.
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


def module(code: bytes, name: str) -> ModuleType:
    """Return the extension module of that name that the bytes are, with Python's lock held where
    it is called. Raises Broken. It stays loaded."""
    if why := unsound(code):
        raise Broken(why)

    def opened(path: str) -> ModuleType:
        found = spec_from_loader(name, ExtensionFileLoader(name, path))
        assert found is not None, "there is a loader"
        return module_from_spec(found)

    return _load(code, name, opened)


def _load(code: bytes, name: str, opened: Callable[[str], T]) -> T:
    """Return what is made of a file with these bytes, which is gone afterwards. Raises Broken.

    A sanitizer that was not in the process from the start ends it where it is loaded.
    """
    found = re.search(rb"__((?:hw)?a|t|m)san_init\0", code)
    if found and not _has(found[0][:-1].decode()):
        kind = {"a": "address", "hwa": "hwaddress", "t": "thread", "m": "memory"}[found[1].decode()]
        raise Broken(
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
        raise Broken(str(why)) from None


def _has(function: str) -> bool:
    """Whether the process has a function of that name."""
    try:
        _cffi_backend.load_library(None).load_function(ENTRY, function)
    except AttributeError:
        return False
    return True


def _load_from_memory(code: bytes, name: str, opened: Callable[[str], T]) -> T:
    held = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        with open(held, "wb", closefd=False) as file:
            file.write(code)
        return opened(_path(held, next(_serial)))
    finally:
        os.close(held)


def _path(held: int, serial: int) -> str:
    """Return a path of an open file that was never used before.

    The loader takes an equal path for the library it loaded from it earlier, even when the file's
    number now stands for another file; so every load spells the path differently.
    """
    spelled = "".join("./" if serial >> bit & 1 else "/" for bit in range(serial.bit_length()))
    return f"/proc/self/fd/{spelled}{held}"


def _open(path: str) -> Any:
    return _cffi_backend.load_library(path, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
