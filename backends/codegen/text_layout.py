"""Formatting of generated text: lines of at most 100 columns, and user text in comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

WIDTH = 100
INDENT = "    "
_WORD = re.compile(r"[A-Za-z_]\w*")


def wrap_line(text: str, depth: int) -> list[str]:
    """Return a statement as indented lines, broken at spaces of the least bracket depth.

    Precondition: it has no string literals, so every space may become a line end.
    """
    indent = INDENT * depth
    lines: list[str] = []
    while len(indent) + len(text) > WIDTH:
        at = _best_break(text, WIDTH - len(indent))
        if at is None:
            break
        lines.append(indent + text[:at])
        text = text[at + 1 :]
        indent = INDENT * (depth + 2)
    return [*lines, indent + text]


def indent_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines of a frame indented as in a function; labels stay at the left."""
    out: list[str] = []
    for line in lines:
        bare = line.lstrip()
        depth = 0 if bare == "done:" else 1 + (len(line) - len(bare)) // len(INDENT)
        out += wrap_line(bare, depth)
    return out


def identifiers_in(lines: Iterable[str]) -> frozenset[str]:
    """Return the identifiers in lines of code, without lines that are comments.

    >>> sorted(identifiers_in(["    /* s[i] = 2 */", "    s += x[i]*2;"]))
    ['i', 's', 'x']
    """
    code = (line for line in lines if not line.lstrip().startswith("/*"))
    return frozenset(word for line in code for word in _WORD.findall(line))


def comment_line(text: str, depth: int) -> str:
    """Return user text as one indented comment line, which no text can terminate early."""
    indent = INDENT * depth
    return f"{indent}/* {sanitize_comment(text, WIDTH - len(indent) - 6)} */"


def sanitize_comment(text: str, width: int) -> str:
    """Return text that is safe in a C comment: printable ASCII, one line, truncated to the width.

    >>> sanitize_comment("a */ b /* c ??/\\\\n d \\u00fc", 60)
    'a * / b / * c ? ?/\\\\n d \\\\u00fc'
    >>> sanitize_comment("x" * 20, 10)
    'xxxxxxx...'
    """
    text = re.sub(r"\s+", " ", text).strip()
    text = "".join(c if " " <= c <= "~" else _escape(c) for c in text)
    text = re.sub(r"\*(?=/)", "* ", text)
    text = re.sub(r"/(?=\*)", "/ ", text)
    text = re.sub(r"\?(?=\?)", "? ", text)
    return text if len(text) <= width else text[: max(width - 3, 1)] + "..."


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _best_break(text: str, limit: int) -> int | None:
    """Return where to break: the least nested space of the last half, preferably after an operator.

    In a `for`, that after a semicolon is one less; casts stay whole where anything else fits.
    Where the last half has no space, the last one that fits, else the first beyond; None where
    there is no space at all.
    """
    best: tuple[int, bool, int] | None = None
    last = len(text) - 2 if text.endswith(" {") else len(text)
    nesting, fallback = 0, None
    for at, character in enumerate(text):
        if at > limit and (best is not None or fallback is not None):
            break
        if character in "([{":
            nesting += 1
        elif character in ")]}":
            nesting -= 1
        elif character == " " and at < last:
            fallback = at
            depth = nesting - (text[at - 1] == ";") + 99 * _is_in_cast(text, at)
            candidate = depth, text[at - 1].isalnum() or text[at - 1] in ")]_", at
            if limit // 2 <= at <= limit and (best is None or candidate[:2] <= best[:2]):
                best = candidate
    return fallback if best is None else best[2]


def _is_in_cast(text: str, at: int) -> bool:
    """Whether a space is in the type of a cast to a pointer."""
    return text.startswith("*)", at + 1) or text.endswith("(const", 0, at)
