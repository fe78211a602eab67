"""The examples of docs/errors.md: programs and messages, kept true by the cases and golden files.

The page's words are written by hand. `python -m tests.errors.page` rewrites the blocks of code
under each heading: the first case that gives the code, and its message.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

from tests.dsl.source.test_unsupported import REFUSED
from tests.errors import (
    cases_arrays,
    cases_functions,
    cases_index,
    cases_inputs,
    cases_memory,
    cases_numpy,
    cases_run,
    cases_statements,
    cases_types,
    cases_values,
)
from tests.errors.case import Case
from tests.errors.outside import OUTSIDE

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs" / "errors.md"
GOLDEN = TESTS / "golden" / "test_errors"
PARSER = TESTS / "golden" / "dsl" / "source" / "test_unsupported"
FILES = (
    cases_arrays, cases_functions, cases_index, cases_inputs, cases_memory, cases_numpy, cases_run,
    cases_statements, cases_types, cases_values,
)  # fmt: skip


@cache
def examples() -> dict[str, tuple[str, str]]:
    """The program and the message that stand for each code, the shortest program of all."""
    found: dict[str, tuple[str, str]] = {}
    for name, case in sorted(all_cases().items()):
        _offer(found, _program(case), (GOLDEN / f"{name}.err").read_text("utf-8"))
    for name, text in REFUSED.items():
        path = PARSER / f"{name}.err"
        lines = "\n".join("    " + line for line in text.split("\n"))
        if path.exists():
            _offer(found, f"@cd\ndef f(x):\n{lines}\n", path.read_text("utf-8"))
    own = dict(found)
    for name, function in OUTSIDE.items():
        message = (GOLDEN / "outside" / f"{name}.err").read_text("utf-8")
        if _code(message) not in own:
            body = inspect.getsource(function).split('"""')[2]
            body = re.sub("^( *)return ", r"\1", inspect.cleandoc(body), flags=re.MULTILINE)
            _offer(found, body + "\n", message)
    return found


def all_cases() -> dict[str, Case]:
    """Every case of every file, by name."""
    return {name: case for file in FILES for name, case in file.CASES.items()}


def _program(case: Case) -> str:
    around = case.around.strip("\n") + "\n\n" if case.around.strip() else ""
    return f"{around}@cd\n{case.text}\nf({case.arguments})\n"


def _offer(found: dict[str, tuple[str, str]], program: str, message: str) -> None:
    code = _code(message)
    if code and (code not in found or len(program) < len(found[code][0])):
        found[code] = program, message.split("\n\n")[0].rstrip("\n") + "\n"


def _code(message: str) -> str:
    match = re.match(r"error\[(CD\d{4})\]", message)
    return match[1] if match else ""


def refreshed(page: str) -> str:
    """Return the page with the blocks under each heading as the examples are now."""
    head, *sections = re.split(r"^(?=## CD\d{4})", page, flags=re.MULTILINE)
    return head + "".join(map(_section, sections))


def _section(section: str) -> str:
    rest = re.search(r"^# ", section, re.MULTILINE)
    tail = section[rest.start() :] if rest else ""
    words = section[: rest.start()] if rest else section
    words = words.partition("\n```")[0].rstrip("\n")
    example = examples().get(words[3:9])
    if example is None:
        return f"{words}\n\n{tail}"
    program, message = example
    return f"{words}\n\n```python\n{program}```\n\n```text\n{message}```\n\n{tail}"


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text("utf-8")), "utf-8")
