"""Modules written by tests."""

import importlib.util
import types
from collections.abc import Callable
from pathlib import Path

import pytest


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
