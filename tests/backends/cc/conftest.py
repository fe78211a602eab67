"""A cache of its own for each test, and compilers that misbehave."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plusequals.backends.cc.backend import CompiledC
from plusequals.base import settings

REAL = next((path for name in ("gcc", "cc", "clang") if (path := shutil.which(name))), "")


@pytest.fixture(autouse=True)
def real_compiler() -> str:
    if not REAL:
        pytest.skip("no C compiler on this machine")
    return REAL


@pytest.fixture(scope="session")
def known_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that knows what the compiler is, and nothing else."""
    folder = tmp_path_factory.mktemp("known")
    with settings.override(cache_dir=str(folder)):
        CompiledC().unavailable()
    return folder


@pytest.fixture(scope="session")
def shared(known_compiler: Path) -> Path:
    """A cache that knows the run-time library, too."""
    with settings.override(cache_dir=str(known_compiler), optimize="g"):
        CompiledC().threads()
    return known_compiler


@pytest.fixture(autouse=True)
def cache_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_compiler: Path
) -> Iterator[Path]:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shutil.copytree(known_compiler, tmp_path / "cache")
    with settings.override(cache_dir=str(tmp_path / "cache"), optimize="g"):
        yield tmp_path / "cache"


@pytest.fixture
def cc() -> CompiledC:
    return CompiledC()


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], str]:
    """Makes a compiler that answers as the real one does, and does this for a kernel instead."""

    def make(script: str, name: str = "fake-cc") -> str:
        path = tmp_path / name
        path.write_text(
            f'#!/bin/sh\nreal="{REAL}"\ncase "$*" in\n*kernel.c*) {script} ;;\n'
            '*) exec "$real" "$@" ;;\nesac\n'
        )
        path.chmod(0o755)
        return str(path)

    return make
