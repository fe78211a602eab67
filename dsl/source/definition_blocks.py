"""Parsing of a single definition without the rest of its file."""

from __future__ import annotations

import ast
import inspect
import tokenize
from collections.abc import Iterator


def parse_candidates(lines: list[str], first: int) -> Iterator[list[ast.stmt]]:
    """Yield the parsed candidates for the definition that begins at line `first` (1-based).

    The block by indentation is tried first: where it ends inside a string or brackets it does not
    parse. The fallback tokenizes, which takes much of a short compilation.
    """
    for block in (indented_block, inspect.getblock):
        try:
            tree = parse_block("".join(block(lines[first - 1 :])), first)
        except (SyntaxError, IndexError, tokenize.TokenError):
            continue
        yield tree


def indented_block(lines: list[str]) -> list[str]:
    """Return the lines up to the first one after `def` that is indented no further.

    >>> indented_block(["@cd", "def f(x):", "    return x", "# a comment", "", "y = 1"])
    ['@cd', 'def f(x):', '    return x', '# a comment', '']
    """
    indent = len(lines[0]) - len(lines[0].lstrip())
    is_inside = False
    for at, line in enumerate(lines):
        text = line.lstrip()
        if is_inside and text and text[0] != "#" and len(line) - len(text) <= indent:
            return lines[:at]
        is_inside = is_inside or text.startswith(("def ", "async def "))
    return lines


def parse_file(lines: list[str]) -> ast.Module:
    """Return the module of a whole file, an empty one where the file does not parse."""
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def parse_block(text: str, first_line: int) -> list[ast.stmt]:
    """Parse lines that may be indented; columns and line numbers are those of the file."""
    if text[:1] in (" ", "\t"):
        module = ast.parse("if 1:\n" + text)
        block = module.body[0]
        assert isinstance(block, ast.If)
        body, shift = block.body, first_line - 2
    else:
        body, shift = ast.parse(text).body, first_line - 1
    for statement in body:
        ast.increment_lineno(statement, shift)
    return body
