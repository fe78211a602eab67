"""The text of an explanation: columns that line up, lines beside what comes from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE, Source, Span
from plusequals.dsl.explain.parts import Remark
from plusequals.dsl.explain.text import decisions_text, number_lines, place_text, render_text
from plusequals.lowering.ir.printer import Line

HOME = Span(Source("models/model.py", 7, "def f(x):\n    return x\n"), 7, 0, 7, 9)
AWAY = Span(Source("lib\\other.py", 1, "pass\n"), 1, 0, 1, 4)


def test_places_are_lines_and_name_other_files() -> None:
    assert place_text(HOME, HOME) == "7"
    assert place_text(AWAY, HOME) == "other.py:1"
    assert place_text(NOWHERE, HOME) == ""


def test_lines_stand_beside_their_source() -> None:
    lines = [Line("loop", HOME), Line("  body", AWAY), Line("")]
    assert number_lines(lines, HOME).splitlines() == [
        "         7 | loop",
        "other.py:1 |   body",
        "           |",
    ]
    assert number_lines([], HOME) == ""


def test_long_sentences_are_wrapped_under_themselves() -> None:
    explained = pe.cd_from_source("def f(x):\n    return x + 1\n", {}).explain(np.zeros(3))
    told = (Remark("word " * 40, explained.home), Remark("short", NOWHERE))
    text = decisions_text(replace(explained, decisions=told))
    first, *rest, last = text.splitlines()
    assert first.startswith("line 1  word")
    assert rest and all(line.startswith("        word") for line in rest)
    assert last.strip() == "short"
    assert max(map(len, text.splitlines())) <= 100


def test_sections_without_content_are_left_out() -> None:
    explained = pe.cd_from_source("def f(x):\n    return x + 1\n", {}).explain(np.zeros(3))
    text = render_text(replace(explained, arrays=(), decisions=(), counts=None, lowered=()))
    for title in ("arrays", "decisions", "work of one call", "loops"):
        assert f"\n{title}" not in text
    assert text.endswith("\n") and not text.endswith("\n\n")
