"""Backends by name: ours, those of plug-ins, and why one is missing."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from plusequals.backends import registry
from plusequals.backends.interpreter import Interpreter
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError


def offer(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = [EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)


class Plugin(Interpreter):
    name = "plugin"


class Old(Interpreter):
    api_version = 0


class Raising:
    def __init__(self) -> None:
        raise RuntimeError("no driver")


def test_ours_are_there() -> None:
    assert registry.backends()["numpy"] == "available"
    assert registry.get("numpy").name == "numpy"


def test_one_that_cannot_run_says_why_and_others_are_unharmed() -> None:
    with settings.override(compiler="/no/such/cc"):
        states = registry.backends()
    assert states["cc"] == "the C compiler `/no/such/cc` of the setting `compiler` was not found"
    assert states["numpy"] == "available"


def test_unknown_names_list_the_known_and_the_nearest() -> None:
    with pytest.raises(CdBackendError) as caught:
        registry.get("numpi")
    assert caught.value.code == "CD0801"
    assert "there is no backend `numpi`; there are cc, " in str(caught.value)
    assert 'did you mean "numpy"?' in str(caught.value)


def test_plug_ins_are_found_and_cannot_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, plugin=f"{__name__}:Plugin", numpy=f"{__name__}:Plugin")
    assert registry.backends()["plugin"] == "available"
    assert registry.get("plugin").name == "plugin"
    assert registry.get("numpy").name == "numpy"


def test_broken_plug_ins_break_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(
        monkeypatch, gone="no_such_module:X", old=f"{__name__}:Old", raising=f"{__name__}:Raising"
    )
    states = registry.backends()
    assert states["numpy"] == "available"
    assert "cannot be loaded from no_such_module:X" in states["gone"]
    assert "made for another version" in states["old"]
    assert "no driver" in states["raising"]
    for name in ("gone", "old", "raising"):
        with pytest.raises(CdBackendError, match="CD0801"):
            registry.get(name)
