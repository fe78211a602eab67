"""Loading code from memory: the bytes given are the code that runs, and nothing else changes."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from plusequals.backends.cc import loader
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.compiler import Trial, compile_flags
from plusequals.backends.cc.loader import Library, LoadError, ffi
from plusequals.base import settings

from .conftest import REAL


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Libraries whose function `f` returns 40, 41, 42."""
    if not REAL:
        pytest.skip("no C compiler on this machine")
    with settings.override(cache_dir=str(tmp_path_factory.mktemp("cache")), optimize=0):
        cc = CompiledC()
        compiler = cc.toolchain()
        texts = (
            f"int f(void **args) {{ (void)args; return {number}; }}\n" for number in (40, 41, 42)
        )
        trials = [
            Trial((text,), "kernel.c", compiler, compile_flags(compiler), cc.cache)
            for text in texts
        ]
        return [trial.ended()[0] for trial in trials]


def test_equal_names_are_different_libraries(codes: list[bytes]) -> None:
    libraries = [Library(code, "f") for code in codes * 3]
    assert [one.function("f")(ffi.NULL) for one in libraries] == [40, 41, 42] * 3
    kept = libraries[4]
    del libraries
    gc.collect()
    again = Library(codes[0], "f")
    assert (kept.function("f")(ffi.NULL), again.function("f")(ffi.NULL)) == (41, 40)


def test_closed_when_nothing_refers_to_it(codes: list[bytes]) -> None:
    maps = Path("/proc/self/maps")
    before = maps.read_text().count("memfd:closing")
    one = Library(codes[0], "closing")
    assert maps.read_text().count("memfd:closing") > before
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
    assert maps.read_text().count("memfd:closing") == before


def test_loads_from_a_file_where_memory_cannot_be_executed(
    codes: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*args: object) -> None:
        raise OSError("not allowed")

    monkeypatch.setattr(loader, "_load_from_memory", forbidden)
    libraries = [Library(code, "f") for code in codes]
    assert [one.function("f")(ffi.NULL) for one in libraries] == [40, 41, 42]


def test_every_truncation_is_refused_before_it_is_loaded(codes: list[bytes]) -> None:
    code = codes[0]
    assert loader.truncation_problem(code) is None
    for size in (*range(200), *range(200, len(code), 97), len(code) - 1):
        assert loader.truncation_problem(code[:size]) == "it is cut short"
    with pytest.raises(LoadError, match="cut short"):
        Library(code[: len(code) // 2], "f")


def test_what_is_no_library_is_refused() -> None:
    with pytest.raises(LoadError):
        Library(b"not a library" * 20, "f")


def test_a_missing_function_is_told(codes: list[bytes]) -> None:
    with pytest.raises(LoadError, match="it has no function `g`"):
        Library(codes[0], "f").function("g")


def test_paths_are_never_the_same() -> None:
    paths = {loader._unique_path(held, serial) for held in (3, 33) for serial in range(300)}
    assert len(paths) == 600
    assert all(Path(path).parent == Path("/proc/self/fd") for path in paths)


def test_subnormal_numbers_stay(codes: list[bytes]) -> None:
    tiny = np.array([1e-40], np.float32)
    assert (tiny * np.float32(0.5))[0] > 0
    held = [Library(code, "f") for code in codes]
    assert [one.function("f")(ffi.NULL) for one in held] == [40, 41, 42]
    assert (tiny * np.float32(0.5))[0] > 0
    assert float(np.array([5e-324])[0] * 1.0) == 5e-324


def test_sanitizers_that_would_end_the_process_are_refused(codes: list[bytes]) -> None:
    with pytest.raises(LoadError, match="-fsanitize=address, which has to be in the process"):
        Library(codes[0] + b"\0__asan_init\0", "f")


def test_finalizers_of_what_goes_with_a_library_may_call_it(codes: list[bytes]) -> None:
    told: list[int] = []

    class Holder:
        """One of a circle that holds a library, as an object does that keeps its function."""

        def __init__(self) -> None:
            self.library, self.itself = Library(codes[1], "f"), self

        def __del__(self) -> None:
            told.append(self.library.function("f")(ffi.NULL))

    gone = weakref.ref(Holder().library)
    gc.collect()
    assert told == [41]
    assert gone() is None
