"""A cache folder of each test's own, and functions written as a new process has them."""

import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import plusequals as pe

from .found import HEAD


@pytest.fixture
def own_cache(tmp_path: Path) -> Iterator[Path]:
    """The folder of an empty cache."""
    with pe.override(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


@pytest.fixture
def world(module: Callable[..., types.ModuleType]) -> Callable[..., Any]:
    """A function from a module's text and names to the function `f` of it, as a new process has."""
    return lambda text, **names: module(HEAD + textwrap.dedent(text), **names).f
