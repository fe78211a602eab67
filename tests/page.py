"""Pages whose examples are run: which there are, what each gives, and the page with that in it.

An example is a block of Python. After `# ->` on an expression's last line stands the value that
it has, as Python shows it on one line; after `# !!` the code and the sentence of the error that it
raises. A block of `text` right after it is what it prints, or the whole error that it ends with.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

import plusequals as pe

FILE = "example.py"
"""The name of the file in the errors of examples."""
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?", re.M | re.S
)
_RULE = re.compile(r"^### ([A-Z]\d+) (.+)$", re.M)
_MARK = re.compile(r"  # (->|!!)")


@dataclass(frozen=True, slots=True)
class Example:
    """A block of a page: the rule it stands under, its number there, its text and its output."""

    rule: str
    number: int
    code: str
    text: str | None

    def __repr__(self) -> str:
        return f"{self.rule}-{self.number}"


def rules(page: str) -> dict[str, str]:
    """Return the title of each rule of a page, by its name."""
    found = _RULE.findall(page)
    assert len(dict(found)) == len(found), "a rule stands twice on the page"
    return dict(found)


def examples(page: str) -> list[Example]:
    """Return the examples of a page in order."""
    heads = [(match.start(), match[1]) for match in _RULE.finditer(page)]
    out: list[Example] = []
    for block in _BLOCK.finditer(page):
        rule = next((name for at, name in reversed(heads) if at < block.start()), "page")
        number = sum(one.rule == rule for one in out) + 1
        out.append(Example(rule, number, block["code"], block["text"]))
    return out


def run(example: Example, kept: dict[str, Any] | None = None) -> tuple[str, str | None]:
    """Return the example's text and its output as they should be.

    Names that are `kept` are there, and those that it makes join them.
    """
    lines = example.code.splitlines(keepends=True)
    linecache.cache[FILE] = (len(example.code), None, lines, FILE)  # `@cd` reads its source there
    names: dict[str, Any] = {} if kept is None else kept
    names |= {"np": np, "pe": pe, "cd": pe.cd, "__name__": "example"}
    printed, ended = io.StringIO(), ""
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        for statement in ast.parse(example.code).body:
            last = (statement.end_lineno or 1) - 1
            mark = _MARK.search(lines[last])
            try:
                value = _result(statement, names)
            except pe.CdError as problem:
                if mark is None:
                    ended = str(problem)
                    break
                first = problem.diagnostics[0]
                lines[last] = _marked(lines[last], "!!", f"{first.code} {first.message}")
                continue
            if mark is not None:
                lines[last] = _marked(lines[last], "->", " ".join(repr(value).split()))
    text = printed.getvalue() + (ended + "\n" if ended else "")
    return "".join(lines), text or None


def _result(statement: ast.stmt, names: dict[str, Any]) -> object:
    """Run one statement; return the value of an expression."""
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), FILE, "eval"), names)
    exec(compile(ast.Module([statement], []), FILE, "exec"), names)
    return None


def _marked(line: str, mark: str, text: str) -> str:
    return f"{_MARK.split(line)[0].rstrip()}  # {mark} {text}\n"


def filled(page: str, kept: dict[str, Any] | None = None) -> str:
    """Return the page with the outputs of all its examples; `kept` names go on from one to next."""
    found = iter(examples(page))

    def block(match: re.Match[str]) -> str:
        code, text = run(next(found), kept)
        return f"```python\n{code}```\n" + (f"\n```text\n{text}```\n" if text else "")

    return _BLOCK.sub(block, page)
