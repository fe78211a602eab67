"""A broken program as a test case, and how its message is graded.

A case file holds text: blocks that start with `=== name: arguments`, then the function. Lines
before a `---` are Python run first: what the function finds around it. `=> a, b` after the
arguments names what of the values involved the message has to show.
"""

from __future__ import annotations

import ast
import linecache
import math
import re
from dataclasses import dataclass

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError, CdInternalError
from plusequals.dsl.api.cd import CdFunction

FILE = "example.py"


def run_text(text: str, names: dict[str, object], name: str) -> None:
    """Run a text as if it were a file, so that messages can show its lines."""
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = len(text), None, lines, name
    exec(compile(text, name, "exec"), names)


@dataclass(frozen=True)
class Case:
    """A broken program: its name, arguments as text, what is around it, its text."""

    name: str
    arguments: str
    shows: tuple[str, ...]
    around: str
    text: str

    def function(self, backend: str) -> CdFunction:
        """Return the function, parsed; raises what parsing raises."""
        return pe.cd_from_source(self.text, self.namespace(), FILE, backend)

    def namespace(self) -> dict[str, object]:
        """Return the names around the function."""
        names: dict[str, object] = {"np": np, "pe": pe, "math": math}
        run_text(self.around, names, "around.py")
        return names

    def call(self, backend: str = "numpy") -> object:
        """Call the function with the case's arguments; returns what it returns."""
        names = self.namespace()
        function = pe.cd_from_source(self.text, names, FILE, backend)
        given = eval(f"({self.arguments},)" if self.arguments else "()", names)
        return function(*given)

    def error(self, backend: str = "numpy") -> CdError:
        """Return the error of the call, which has to be one of the family and not internal."""
        try:
            result = self.call(backend)
        except CdError as problem:
            assert not isinstance(problem, CdInternalError), str(problem)
            return problem
        raise AssertionError(f"{self.name} is accepted and gives {result!r}")


def cases(text: str) -> dict[str, Case]:
    """Return the cases of a text by name."""
    found = {}
    for block in text.split("\n=== ")[1:]:
        head, _, rest = block.partition("\n")
        name, _, arguments = head.partition(":")
        arguments, _, shown = arguments.partition("=>")
        around, _, body = rest.rpartition("---\n")
        assert name not in found, f"two cases are called {name}"
        shows = tuple(re.findall(r"`([^`]*)`", shown)) if "`" in shown else tuple(shown.split())
        found[name] = Case(name, arguments.strip(), shows, around, body.strip("\n") + "\n")
    return found


# ---------------------------------------------------------------- grades

_INTERNAL = re.compile(
    r"\b(Scalar|Affine|NoneType|Unset|Opaque|Masked|Handle|Lazy|Const|KeyError|Traceback|"
    r"bitand|bitor|floordiv|AttributeError|NotImplemented)\b|object at 0x|<class |<function "
)
_PLACE = re.compile(r"^ --> [\w.]+:\d+:\d+$", re.MULTILINE)
_THEIR_OWN = {"CD0761", "CD0762"}
"""Errors that the user's own `assert` and `raise` make: what to do is theirs to say."""


def grades(case: Case, message: str) -> dict[str, bool]:
    """Return whether a message has each of its five parts."""
    first = message.splitlines()[0]
    code = re.match(r"error\[(CD\d{4})\]: ", first)
    sentence = first[code.end() :] if code else ""
    helps = re.findall(r"^  = help: (.*)$", message, re.MULTILINE)
    own = code is not None and code[1] in _THEIR_OWN
    return {
        "where": bool(_PLACE.search(message)) and " | " in message and "^" in message,
        "what": 0 < len(sentence) < 220 and (own or not _INTERNAL.search(sentence))
        and not sentence.endswith("."),
        "values": all(value in message for value in case.shows),
        "fix": own or any(helps),
        "code": code is not None,
    }  # fmt: skip


def offered(message: str) -> list[str]:
    """Return what the helps of a message offer to type, each as it stands between backquotes."""
    lines = re.findall(r"^  = help: (.*)$", message, re.MULTILINE)
    return [text for line in lines for text in re.findall(r"`([^`]+)`", line)]


def is_python(text: str) -> bool:
    """Whether an offered text parses, as a statement or as the part of one that it is."""
    forms = (
        "{}", "{}\n    pass", "if a:\n    pass\n{}\n    pass", "f({})", "f({}1)", "x[{}]", "a {} b",
        "_{}",
    )  # fmt: skip
    for whole in (form.format(text) for form in forms):
        try:
            ast.parse(whole)
        except SyntaxError:
            continue
        return True
    return False
