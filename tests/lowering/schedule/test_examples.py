"""The examples in the docstrings of schedules are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from plusequals.lowering import schedule
from plusequals.lowering.target import Target

from ..passes.shown import lowered, show

NAMES = sorted(module.name for module in pkgutil.iter_modules(schedule.__path__))


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_true(name: str) -> None:
    module = importlib.import_module(f"plusequals.lowering.schedule.{name}")
    names = {"show": show, "lowered": lowered, "Target": Target}
    result = doctest.testmod(module, extraglobs=names)
    assert result.attempted > 0, "a schedule shows what it does"
    assert result.failed == 0
