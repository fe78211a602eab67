"""Errors of runs whose code was found: places are written down, and read where they are now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import plusequals as pe
from plusequals.backends.cc.code import raise_status
from plusequals.base.diagnostic import NOWHERE, Source, Span
from plusequals.dsl.dispatch import stored_errors
from plusequals.dsl.source.definition import Definition
from plusequals.dsl.source.function_source import read_source, scope_of

TEXT = "def g(v):\n    return v\ndef f(x):\n    return g(x)\n"


class Restored:
    """A call whose faults are those of an entry."""

    addresses = 0, 0, 0

    def __init__(self, data: dict[str, Any], definition: Definition, *inlined: Any) -> None:
        self.decode = lambda: stored_errors.decode_faults(data, definition, inlined)

    def fail(self, status: int, *fault: int) -> NoReturn:
        """Raise the error, as code does."""
        raise_status("f", self.decode() if status == 1 else (), status, fault)


def placed(module: Any, lines: int = 0) -> tuple[Any, Definition]:
    made = module("\n" * lines + TEXT)
    return made, Definition(scope_of(made.f), made.f)


def test_a_place_is_found_again_where_the_text_is_now(module: Callable[..., Any]) -> None:
    before, definition = placed(module)
    others: list[list[Any]] = []
    sources = stored_errors.function_sources(definition, [before.g])
    elsewhere = Source("library", 3, "one\ntwo\n")
    spans = [
        Span(sources[0], 4, 4, 4, 15), Span(sources[1], 2, 11, 2, 12), Span(elsewhere, 4, 0, 4, 3),
        NOWHERE,
    ]  # fmt: skip
    places = [stored_errors.encode_span(span, sources, others) for span in spans]
    assert places[0] == [0, 1, 4, 1, 15] and places[1] == [1, 1, 11, 1, 12]
    assert others[0] == ["library", 3, "one\ntwo\n"]

    after, moved = placed(module, 5)
    faults = [["CD0601", "CdIndexError", "it is wrong", [], place] for place in places]
    call = Restored({"sources": others, "faults": faults}, moved, after.g)
    shown = []
    for number in range(3):
        with pytest.raises(pe.CdError) as caught:
            stored_errors.raise_error(call, moved, 1, number, *[0] * 20)
        shown.append(str(caught.value))
    assert "written.py:9:5" in shown[0] and "return g(x)" in shown[0]
    assert "written.py:7:12" in shown[1] and "return v" in shown[1]
    assert "library:4:1" in shown[2] and "two" in shown[2]
    with pytest.raises(pe.CdError, match="it is wrong"):
        stored_errors.raise_error(call, moved, 1, 3, *[0] * 20)


def test_a_helper_that_was_edited_has_no_place(module: Callable[..., Any], tmp_path: Path) -> None:
    made, definition = placed(module)
    sources = stored_errors.function_sources(
        definition, [made.g, Definition(scope_of(made.g), made.g)]
    )
    assert sources[1] == sources[2] == read_source(made.g).source
    (tmp_path / "written.py").write_text("x = 1\n")
    assert stored_errors.function_sources(definition, [made.g]) == [sources[0], NOWHERE.source]
    data = {
        "sources": [],
        "faults": [["CD0601", "CdIndexError", "wrong", [], [1, 1, 0, 1, 4]]],
    }
    with pytest.raises(pe.CdError, match="wrong"):
        call = Restored(data, definition, made.g)
        stored_errors.raise_error(call, definition, 1, 0, *[0] * 20)


def test_memory_that_is_not_there(module: Callable[..., Any]) -> None:
    _, definition = placed(module)
    call = Restored({"sources": [], "faults": []}, definition)
    with pytest.raises(pe.CdError, match="`f`(.|\\n)*written.py:3:1(.|\\n)*smaller pieces"):
        stored_errors.raise_error(call, definition, 2, 1 << 40)
