"""Modules written by tests, and the library of the short way, and who goes the long one."""

import importlib.util
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import plusequals as pe
from plusequals.backends.cc import fast_call
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.fast_call import FastPath
from plusequals.backends.runtime.state import RUNTIME
from plusequals.dsl.api.cd import CdFunction


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., types.ModuleType]:
    """A function that writes a module, imports it with names given to it, and returns it."""

    def load(text: str, **names: object) -> types.ModuleType:
        path = tmp_path / "written.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("written", path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        loaded.__dict__.update(names)
        spec.loader.exec_module(loaded)
        return loaded

    return load


@pytest.fixture
def short_way() -> Iterator[None]:
    """There is a library that takes the short way, or nothing to test."""
    backend = RUNTIME.backend("cc")
    assert isinstance(backend, CompiledC)
    if not fast_call.is_supported():
        pytest.skip("objects of this Python lie otherwise in memory")
    if backend.fast_path.caller is None:
        backend.fast_path = FastPath(backend.cache)
        backend.fast_path.wanted(backend.toolchain, RUNTIME.watching)
    assert backend.fast_path.caller is not None
    with pe.override(optimize=0, verify=False):
        yield


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that were called the long way, in order."""
    seen: list[str] = []
    long_way = CdFunction._call

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(self.__name__)
        return long_way(self, *args, **kwargs)

    monkeypatch.setattr(CdFunction, "_call", noted)
    return seen
