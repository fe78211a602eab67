"""Source lines of the file, cell, prompt entry or command that defined a function.

`lines_of` asks `linecache`, as tracebacks do: it has files, notebook cells, doctests, and entries
of the prompt of Python 3.13. The text of `python -c "..."` is among the arguments of the process.
Standard input is read once, by Python, and not available afterwards.
"""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import textwrap
from collections.abc import Sequence
from types import CodeType, FunctionType

from ...backends.cache.folders import descriptor_shortage
from ...base.diagnostic import CdSyntaxError, Diagnostic

COMMAND_FILE = "<string>"
"""The file name that Python gives to the text of `python -c`, and of `exec`."""


def lines_of(function: FunctionType) -> list[str]:
    """Return the lines of the file, cell, prompt entry or command that defined `function`.

    Raises CdBackendError CD0814 where the process can open no more files.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)  # drop the cached lines if the file has changed
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines and not code.co_filename.startswith("<"):
        _require_files(code.co_filename)
    if not lines and code.co_filename.startswith("<"):
        try:  # the prompt of Python 3.13 keeps its text under the code object
            lines = inspect.findsource(code)[0]
        except (OSError, TypeError, IndexError):
            pass
    if not lines and code.co_filename == COMMAND_FILE and function.__module__ == "__main__":
        lines = command_text(sys.orig_argv).splitlines(keepends=True)
        if sys.version_info >= (3, 14):  # which removes the common indentation
            lines = textwrap.dedent("".join(lines)).splitlines(keepends=True)
    return lines


def _require_files(path: str) -> None:
    """Raise CdBackendError CD0814 where the process can open no more files; `linecache` would
    report the file as empty."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as why:
        if (short := descriptor_shortage(why)) is not None:
            raise short from None


def command_text(arguments: Sequence[str]) -> str:
    r"""Return the text that `python -c` was given, or "".

    >>> command_text(["python", "-Bc", "x = 1\ny = 2", "-c", "no"])
    'x = 1\ny = 2'
    >>> command_text(["python", "-X", "dev", "-W", "error", "-cprint()"])
    'print()'
    >>> command_text(["python", "file.py", "-c", "x = 1"])
    ''
    >>> command_text(["python", "-m", "it", "-c", "x"])
    ''
    """
    at = 1
    while at < len(arguments) and len(arguments[at]) > 1 and arguments[at][0] == "-":
        option, following = arguments[at], arguments[at + 1 : at + 2]
        at += 1
        if option.startswith("--"):
            at += option == "--check-hash-based-pycs"
            continue
        end = next((n for n, letter in enumerate(option[1:], 1) if letter in "cmWX"), None)
        if end is None:
            continue
        value = option[end + 1 :]
        if option[end] == "c":
            return value or "".join(following)
        if option[end] == "m":
            return ""
        at += not value
    return ""


def missing_text_error(code: CodeType) -> CdSyntaxError:
    """Return the error (CD0101) for a function without source lines."""
    name, where = code.co_name, code.co_filename
    reason = f"it was defined in `{where}`, which keeps none"
    helps: tuple[str, ...] = (f"put `{name}` in a file and import it",)
    if where.startswith("<stdin>"):
        if hasattr(sys, "ps1"):
            reason = "this prompt keeps no text of what was typed"
            helps += ("or type it where it is kept: IPython, Jupyter, the prompt of Python 3.13",)
        else:
            reason = "it came from standard input, which is read only once"
            helps = ("save the program as a file, and run that: `python program.py`",)
    return CdSyntaxError(
        Diagnostic(
            "CD0101",
            f"the text of `{name}` cannot be read: {reason}",
            helps=(*helps, "or give the text itself: `pe.cd_from_source(text)`"),
        )
    )
