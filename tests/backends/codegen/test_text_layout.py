"""No user text gets out of its comment, no line is too long."""

import re

import pytest

from plusequals.backends.codegen.text_layout import WIDTH, comment_line, sanitize_comment, wrap_line


@pytest.mark.parametrize(
    "text",
    ["*/ int x; /*", "a **/ b", "//*/*/", "??/", "a ???/ b", "end\\", "two\nlines\r\n",
     "\x00\x1b[2J", "naïve ‮ text", "*" * 300 + "/", "/" * 300, "x" * 94 + "*/" + "y" * 50],
)  # fmt: skip
def test_no_text_gets_out_of_its_comment(text: str) -> None:
    line = comment_line(text, 2)
    assert line.isascii() and line.isprintable() and len(line) <= WIDTH
    inside = re.fullmatch(r" {8}/\* (.*) \*/", line)
    assert inside is not None
    assert "*/" not in inside[1] and "/*" not in inside[1] and "??" not in inside[1]


def test_ordinary_text_is_not_touched() -> None:
    text = "y[i, j] = e[i, j] / sum[k](e[i, k])"
    assert sanitize_comment(text, 90) == text


def test_long_statements_break_where_few_brackets_are_open() -> None:
    term = "alpha*(first[i*1024 + j] - second[i*1024 + j])"
    lines = wrap_line("y[i] = " + " + ".join([term] * 6) + ";", 1)
    assert all(len(line) <= WIDTH for line in lines)
    assert len(lines) > 2
    assert all(line.count("(") == line.count(")") for line in lines)
    assert " ".join(line.strip() for line in lines) == "y[i] = " + " + ".join([term] * 6) + ";"


def test_a_word_without_spaces_is_left_whole() -> None:
    assert wrap_line("x" * 150, 0) == ["x" * 150]
