"""The page of an explanation: whole, alone in the world, and linked line by line."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.explain.page import render_page

TEXT = """\
def f(y, x):
    m[i] = max(x[i, j])
    y[i, j] = where(x[i, j] < m[i],
                    x[i, j] * 2, m[i])
"""
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Reads a page: open tags, links, and the lines of each column."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.columns: list[list[tuple[str, str]]] = []
        self.tables = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if found.get("class") == "column":
            self.columns.append([])
        if found.get("class") == "line":
            self.columns[-1].append((found.get("data-at") or "", ""))
        self.tables += tag == "table"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "div" in self.open and "span" in self.open and self.columns:
            at, text = self.columns[-1][-1]
            self.columns[-1][-1] = at, text + data


def read(page: str) -> Reader:
    """Return a page after reading all of it."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(pe.cd_from_source(TEXT, {}).explain(np.zeros((3, 4)), np.zeros((3, 4))))


def test_it_needs_nothing_but_itself(page: str) -> None:
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)=|url\(|https?://|@import", page)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_the_prelude_is_folded_below_the_functions(page: str) -> None:
    code = page[page.index("<h3>code</h3>") :]
    functions, fold = (
        code.index("static int f_body("),
        code.index("<summary>the prelude above it, "),
    )
    assert functions < fold < code.index("#include" if "#include" in code else "typedef")


def test_three_columns_name_the_same_lines(page: str) -> None:
    function, loops, code = read(page).columns
    own = [at for at, _ in function]
    assert own == ["0.1", "0.2", "0.3", "0.4"]
    for column in (loops, code):
        named = {at for places, _ in column for at in places.split()}
        assert named == {"0.2", "0.3", "0.4"}
    (product,) = (at for at, text in loops if "* 2.0" in text)
    assert product == "0.3 0.4"
    (maximum,) = (at for at, text in code if "max_f64(" in text and "x[" in text)
    assert maximum == "0.2"
    assert all(at == "" for at, text in code if "#include" in text)


def test_tables_and_sentences_are_there(page: str) -> None:
    reader = read(page)
    assert reader.tables == 6  # arrays, decisions, three of counts, what was assumed
    assert "peak temporary memory" in page
    assert "arithmetic intensity" in page
    assert "<code>" in page and "`" not in page.split("<script>")[0].split("<details>")[0].replace(
        "backend `cc`", ""
    )


def test_what_users_write_stays_text() -> None:
    text = (
        'def f(y, x):\n    with comment("<script>alert(1)</script> & more"):\n        y[i] = x[i]\n'
    )
    shown = pe.cd_from_source(text, {}, "<b>.py").explain(np.zeros(3), np.zeros(3)).to_html()
    assert "<script>alert" not in shown and "<b>" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    read(shown)


def test_without_loops_there_are_two_columns() -> None:
    with pe.override("numpy"):
        explained = pe.cd_from_source(TEXT, {}).explain(np.zeros((3, 4)), np.zeros((3, 4)))
    reader = read(render_page(explained))
    assert len(reader.columns) == 2
    assert reader.tables == 0
    assert {at for at, _ in reader.columns[1]} == {"", "0.2", "0.3 0.4"}
