"""A definition keeps the lines of its file, and reads them when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plusequals as pe
from plusequals.dsl.source.definition import Definition
from plusequals.dsl.source.function_source import scope_of, source_from_text

TEXT = "def f(v, by=2.0):\n    return v * by + K\n"


def defined(function: Any) -> Definition:
    return Definition(scope_of(function), function)


def test_what_is_edited_later_does_not_matter(module: Callable[..., Any], tmp_path: Path) -> None:
    definition, other = defined(module(TEXT).f), defined(module(TEXT).f)
    (tmp_path / "written.py").write_text("x = 1\n")
    assert definition.text.source.text == TEXT.rstrip()
    assert definition.surface.name == "f" and definition.surface is definition.surface
    assert definition.fingerprint == other.fingerprint is not None


def test_the_fingerprint_says_what_the_function_is(module: Callable[..., Any]) -> None:
    own = defined(module(TEXT).f).fingerprint
    assert defined(module("# moved\n" + TEXT).f).fingerprint == own
    assert defined(pe.cd(module(TEXT).f)).fingerprint == own
    for changed in (TEXT.replace("*", "/"), TEXT.replace("2.0", "3.0"), TEXT.replace("K", "L")):
        assert defined(module(changed).f).fingerprint not in (own, None)


@pytest.mark.parametrize("default", ["[]", "object()", "print.__self__.__dict__"])
def test_there_is_none_where_another_process_could_not_make_it(
    module: Callable[..., Any], default: str
) -> None:
    assert defined(module(TEXT.replace("2.0", default)).f).fingerprint is None
    names: dict[str, Any] = {}
    exec(TEXT, names)
    assert defined(names["f"]).fingerprint is None
    with pytest.raises(pe.CdError, match="cannot be read"):
        _ = defined(names["f"]).text


def test_a_text_that_was_read_is_the_text() -> None:
    definition = Definition(scope_of(defined))
    definition.text = source_from_text("def g(x):\n    return x")
    assert definition.surface.name == "g" and definition.fingerprint is None
