"""The collector pauses while a program is compiled, and is afterwards what it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from plusequals.base.garbage_collector import gc_paused
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_what_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the outer one is not over"
    assert gc.isenabled() is enabled


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(ValueError, match="here"), gc_paused():
        raise ValueError("here")
    assert gc.isenabled()


def test_passes_run_without_it() -> None:
    program, seen = lower(Procedure("f", (), (), (), ())), []
    optimize(program, HOST, lambda name, now: seen.append(gc.isenabled()))
    assert seen and not any(seen)
    assert gc.isenabled()
