"""The library of the short way: when it is made, and when it is done without."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cache.cache import Entry
from plusequals.backends.cc import fast_call
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.fast_call import FastPath
from plusequals.backends.cc.toolchain import Toolchain
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError

KNOWN = Toolchain(("cc",), "cc 1", "any", (), ())


def asked(cc: CompiledC, begun: bool = False) -> type | None:
    """What a new short way has when it is asked."""
    short = FastPath(cc.cache)
    if begun:
        short.begin(cc.toolchain)
    return short.wanted(cc.toolchain, [])


def entries(cache_dir: Path) -> int:
    return len(list(cache_dir.glob("v*/*.entry")))


def test_compiled_once_and_then_taken_from_disk(cc: CompiledC, cache_dir: Path) -> None:
    cc.toolchain()
    before = entries(cache_dir)
    first = asked(cc, begun=True)
    assert first is not None and first.__name__ == "Caller"
    assert entries(cache_dir) == before + 1
    with settings.override(compiler_timeout=0.0):  # nothing can be compiled any more
        assert asked(cc) is not None and asked(cc, begun=True) is not None
    with settings.override(cache=False):
        assert asked(cc) is not None


def test_it_is_not_waited_for_and_kept_when_the_process_ends(
    cc: CompiledC, fake: Any, tmp_path: Path
) -> None:
    path = fake(f'while [ ! -e "{tmp_path}/go" ]; do sleep 0.01; done; exec "$real" "$@"')
    Path(path).write_text(Path(path).read_text().replace("kernel.c", "warm.c"))
    with settings.override(compiler=path):
        short, other = FastPath(cc.cache), FastPath(cc.cache)
        for one in (short, other):
            assert one.wanted(cc.toolchain, [], wait=False) is None
            assert one.is_compiling and one.caller is None
        (tmp_path / "go").touch()
        assert short._coming is not None
        short._coming._at_exit()  # as at the end of the process
        assert asked(cc) is not None
        while other.is_compiling:
            other.wanted(cc.toolchain, [], wait=False)
        assert other.caller is not None


def test_a_forked_child_leaves_its_parents_compilation_alone(cc: CompiledC) -> None:
    short = FastPath(cc.cache)
    short.begin(cc.toolchain)
    assert short._coming is not None
    short._coming._process = -1
    short._coming._at_exit()
    assert short.wanted(cc.toolchain, []) is None and short.is_compiling
    short._coming._process = os.getpid()
    assert short.wanted(cc.toolchain, []) is not None


def test_a_compiler_that_cannot_is_asked_once(cc: CompiledC, fake: Any, tmp_path: Path) -> None:
    path = fake(f'echo >> "{tmp_path}/asked"; exit 1')
    Path(path).write_text(Path(path).read_text().replace("kernel.c", "warm.c"))
    with settings.override(compiler=path):
        assert asked(cc, begun=True) is None and asked(cc) is None and asked(cc) is None
    assert (tmp_path / "asked").read_text() == "\n"
    assert not list(tmp_path.glob("plusequals-report-*"))


def test_without_a_compiler_it_says_so_and_is_asked_again(cc: CompiledC) -> None:
    short = FastPath(cc.cache)
    with settings.override(compiler="/no/such/cc"):
        for ask in (lambda: short.begin(cc.toolchain), lambda: short.wanted(cc.toolchain, [])):
            with pytest.raises(CdBackendError, match="was not found"):
                ask()
    assert short.wanted(cc.toolchain, []) is not None


def test_a_library_that_cannot_be_loaded_is_done_without(cc: CompiledC, monkeypatch: Any) -> None:
    for code in (b"\x7fELF" + bytes(60), b"no library", b""):
        monkeypatch.setattr(cc.cache, "get", lambda key, code=code: Entry({}, "", code))
        short = FastPath(cc.cache)
        assert short.wanted(lambda: KNOWN, []) is None and short.wanted(lambda: KNOWN, []) is None


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="objects of another Python")
def test_the_layout_of_objects_is_looked_at(cc: CompiledC, monkeypatch: Any) -> None:
    assert fast_call.is_supported()
    with monkeypatch.context() as patch:
        patch.setattr(fast_call, "_ARRAY", struct.Struct("2P 8x P i4x P P P P i"))
        assert not fast_call.is_supported()
        assert asked(cc) is None
    with monkeypatch.context() as patch:
        patch.setattr(sys, "abiflags", "t")
        assert not fast_call.is_supported()


# ------------------------------------------------------------------- memory of results


LARGE = 1 << 18
"""Elements of arrays whose memory is kept."""


@pytest.fixture
def short(cc: CompiledC) -> FastPath:
    """A short way with its library."""
    assert cc.fast_path.wanted(cc.toolchain, []) is not None
    return cc.fast_path


def handler(array: np.ndarray) -> str | None:
    name: str | None = np._core.multiarray.get_handler_name(array)
    return name


def test_a_new_result_has_the_memory_of_one_that_is_gone(short: FastPath) -> None:
    first = short.empty((LARGE,), np.dtype("f4"))
    first[:] = 7
    place = first.ctypes.data
    other = short.empty((LARGE,), np.dtype("f4"))
    assert other.ctypes.data != place and place % 64 == other.ctypes.data % 64 == 0
    del first
    again = short.empty((512, LARGE // 1024), np.dtype("f8"))
    assert again.ctypes.data == place and again.shape == (512, LARGE // 1024)
    assert again.flags.owndata and again.flags.writeable and again.base is None
    assert handler(again) == "plusequals"


def test_others_are_left_to_numpy(short: FastPath, cc: CompiledC) -> None:
    small = short.empty((3,), np.dtype("f4"))
    assert handler(small) == handler(np.empty(LARGE)) == "default_allocator"
    assert handler(FastPath(cc.cache).empty((LARGE,), np.dtype("f4"))) == "default_allocator"


def test_memory_of_another_size_is_taken_where_little_is_wasted(short: FastPath) -> None:
    first = short.empty((LARGE,), np.dtype("f8"))
    place = first.ctypes.data
    del first
    less = short.empty((LARGE // 2,), np.dtype("f8"))
    assert less.ctypes.data != place, "half of it would be wasted"
    near = short.empty((LARGE * 7 // 8,), np.dtype("f8"))
    assert near.ctypes.data == place
    del near
    assert short.empty((LARGE,), np.dtype("f8")).ctypes.data == place, "it is all there"


def test_a_result_can_be_resized(short: FastPath) -> None:
    array = short.empty((LARGE,), np.dtype("i4"))
    array[:] = np.arange(LARGE)
    array.resize(2 * LARGE, refcheck=False)
    np.testing.assert_array_equal(array, [*range(LARGE), *[0] * LARGE])
    array.resize(10, refcheck=False)
    assert array.tolist() == list(range(10)) and handler(array) == "plusequals"


def test_not_everything_is_kept(short: FastPath) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not Path("/proc/self/statm").exists():
        pytest.skip("what a process holds is not told here")
    before = resident()
    for count in range(40):  # of 16 MiB each, and more by a quarter each time they are used up
        short.empty(((16 + count) << 20,), np.dtype("u1"))[::4096] = 1
    huge = short.empty((300 << 20,), np.dtype("u1"))
    huge[::4096] = 1
    del huge
    assert resident() - before < (256 << 20) + (32 << 20)
    for _ in range(100):  # what nobody wants for a while is let go
        short.empty((LARGE,), np.dtype("u1"))
    assert resident() - before < 32 << 20


def test_what_there_is_no_memory_for(short: FastPath) -> None:
    with pytest.raises(MemoryError):
        short.empty((1 << 60,), np.dtype("u1"))
    assert handler(np.empty(LARGE)) == "default_allocator", "NumPy's own is in its place again"


def test_arrays_may_end_in_other_threads(short: FastPath) -> None:
    kept: list[list[np.ndarray]] = [[] for _ in range(4)]

    def work(mine: list[np.ndarray], theirs: list[np.ndarray]) -> None:
        for count in range(200):
            array = short.empty((LARGE // 4,), np.dtype("i4"))
            array[:] = count
            mine.append(array)
            with contextlib.suppress(IndexError):
                found = theirs.pop(0)
                assert (found == found[0]).all()

    with ThreadPoolExecutor(4) as pool:
        for at in range(4):
            pool.submit(work, kept[at], kept[at - 1])
    assert all((array == array[0]).all() for arrays in kept for array in arrays)
