"""The before and after in the docstring of every pass is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from plusequals.lowering import passes

from ..shown import lowered, show

NAMES = sorted(module.name for module in pkgutil.iter_modules(passes.__path__))
WITHOUT = {"decision", "pair", "products", "reading"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_the_example_is_true(name: str) -> None:
    module = importlib.import_module(f"plusequals.lowering.passes.{name}")
    result = doctest.testmod(module, extraglobs={"show": show, "lowered": lowered})
    assert result.attempted > 0, "a pass shows what it does"
    assert result.failed == 0
