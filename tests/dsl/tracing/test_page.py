"""A trace as a page, and as JSON."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import numpy as np

import plusequals as pe
from plusequals.dsl.tracing import page as pages

from .functions import CALLS

VOID = {"meta", "input"}


class Structure(HTMLParser):
    """Checks that what is opened is closed, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("class") or tag
        self.counts[name] = self.counts.get(name, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def traced(name: str = "steps") -> pe.Trace:
    function, make = CALLS[name]
    with pe.trace() as trace:
        function(*make())
    return trace


def test_the_page_stands_alone_and_is_well_formed(tmp_path: Path) -> None:
    trace = traced("triangle")
    page = trace.to_html(tmp_path / "trace.html")
    assert (tmp_path / "trace.html").read_text(encoding="utf-8") == page
    structure = Structure()
    structure.feed(page)
    assert structure.open == [] and structure.counts["record"] == len(trace)
    assert "http" not in page.replace("http-equiv", "") and "src=" not in page
    page = traced().to_html()
    assert 'class="comment"' in page and "for t in range(3)" in page


def test_lines_of_several_functions_are_told_apart() -> None:
    one = pe.cd_from_source("def f(x):\n    x[i] += 1\n", name="one.py")
    two = pe.cd_from_source("def g(x):\n    x[i] *= 2\n", name="two.py")
    with pe.trace() as trace:
        one(np.ones(1))
        two(np.ones(1))
    page = trace.to_html()
    for place, text in (("0:2", "x[i] += 1"), ("1:2", "x[i] *= 2")):
        assert f'<span data-line="{place}">   2      {text}</span>' in page
        assert f'<span class="at" data-line="{place}">2</span>{text}' in page


def test_what_is_no_number_is_marked() -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] = x[i] / 0.0\n")
    with pe.trace() as trace:
        f(np.array([0.0, 1.0]))
    assert trace.to_html().count("record bad") == 2


def test_what_people_write_is_escaped() -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] = x[i] if x[i] <3 else 0  # <b>\n")
    with pe.trace() as trace:
        f(np.ones(2))
    page = trace.to_html()
    assert "<b>" not in page and "&lt;b&gt;" in page


def test_json_holds_everything(tmp_path: Path) -> None:
    trace = traced()
    trace.to_json(tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())
    assert told["runs"][0]["records"] == len(trace) == len(told["records"])
    assert [r["after"] for r in told["records"]] == [r.after for r in trace]
    assert [r["index"] for r in told["records"]] == [list(r.index) for r in trace]


def test_json_has_texts_for_what_json_lacks() -> None:
    f = pe.cd_from_source("def f(x, z):\n    x[i] = x[i] / 0.0\n    z *= 1j\n")
    with pe.trace() as trace:
        f(np.array([0.0, 1.0]), np.ones(1, complex))
    told = json.loads(trace.to_json())["records"]
    assert [r["after"] for r in told] == ["nan", "inf", "1j"]


def test_a_page_has_so_many_lines_at_most_unless_all_is_asked_for() -> None:
    text = """def f(y):
    for a in range(9):
        for b in range(9):
            for c in range(9):
                y[c] += a
"""
    f = pe.cd_from_source(text, backend="numpy")
    with pe.trace() as trace:
        for _ in range(3):
            f(np.zeros(9))
    for most, lines in ((300, 300), (20, 21)):
        with mock.patch.object(pages, "MAX_PAGE_LINES", most):
            found = trace.to_html()
            assert found.count("<div") + found.count("<details") <= lines + 12
            assert trace.to_html(head=0).count('class="record') == len(trace)
        assert found.count("<details") == found.count("</details>") > 3
        assert ("more is left out" in found) == (most == 20)
    assert trace.to_html() == trace.to_html(head=0) and "left out" not in trace.to_html()
