"""What one fault is: a program under it, in a process of its own, and what may come of that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 60.0
"""Seconds after which a program hangs."""

HEAD = """
import os, resource, shutil, signal, subprocess, sys, threading, time, warnings
import numpy as np
import plusequals as pe
from plusequals import cd

@cd
def f(x):
    t = np.exp(-x * x)
    return np.sum(t) + t[0]

@cd
def g(x, n):
    return x.reshape(n, -1)[0, 0] + np.sum(x)

X = np.linspace(0, 1, 1000)
FOLDER = os.environ["FAULTS_FOLDER"]
CACHE = os.environ["PLUSEQUALS_CACHE_DIR"]
SAID = os.path.join(FOLDER, "said.txt")

def say(text):
    lines.append(" ".join(str(text).split())[:200])

lines = []
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by jobs of a shell

def attempt(call=lambda: f(X), want=float(np.sum(np.exp(-X * X)) + 1)):
    try:
        got = call()
    except pe.CdError as problem:
        return say(f"refused {problem.code}" if len(str(problem)) > 20 else "empty error")
    except BaseException as problem:
        return say(f"raw {type(problem).__name__}: {problem}")
    say("right" if np.allclose(got, want) else f"wrong {got} for {want}")

def tell():
    with open(SAID, "a") as file:
        file.write("".join(line + "\\n" for line in lines))
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fault."""

    subject: str
    name: str
    body: str = "attempt()"
    """What the process does: it calls `attempt` once or more often."""
    ends: Sequence[str] = ("right",)
    """What the last attempt may come to: "right", "refused" (with any code), "refused CD0812"."""
    between: Sequence[str] = ("right", "refused")
    """What the attempts before it may come to."""
    warm: bool = False
    """Whether another process has filled the cache before."""
    before: Callable[[Path], object] | None = None
    """What is done to the folder (with `cache` in it) after `warm`, before the process begins."""
    after: Callable[[Path], object] | None = None
    """What is done to the folder in the end."""
    flags: Sequence[str] = ()
    """What Python is given."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables: `{folder}` stands for the folder; an empty text unsets one."""
    warnings: int | None = None
    """How many warnings of the cache have to be told, if that is known."""


class Unavailable(Exception):
    """This system, or this user, cannot have the fault."""


def run(row: Row) -> tuple[bool | None, str]:
    """Return whether a fault is survived, None where it cannot be tried, and what came of it."""
    with tempfile.TemporaryDirectory(prefix="faults-") as made:
        try:
            return _tried(row, Path(made))
        except Unavailable as why:
            return None, str(why)
        finally:
            if row.after is not None:
                row.after(Path(made))


def _tried(row: Row, folder: Path) -> tuple[bool, str]:
    (folder / "cache").mkdir(mode=0o700)
    if row.warm:
        problem = _ran(Row(subject="", name="warm", body="attempt()"), folder)
        if problem or _said(folder) != ["right"]:
            return False, f"could not begin: {problem} {_said(folder)}"
        (folder / "said.txt").unlink()
    if row.before is not None:
        row.before(folder)
    problem, said = _ran(row, folder), _said(folder)
    told = (folder / "errors.txt").read_text(errors="replace")
    text = ", ".join(dict.fromkeys(said))
    if problem or not said:
        return False, f"{problem or 'nothing was said'}: {text} {told[-300:]}"
    warned = told.count("CacheWarning:")
    if row.warnings not in (None, warned):
        return False, f"{text}; {warned} warnings"
    if all(_is(one, row.between) for one in said[:-1]) and _is(said[-1], row.ends):
        return True, text
    return False, f"{text} {told[-2000:]}"


def _is(said: str, allowed: Sequence[str]) -> bool:
    return any(f"{said} ".startswith((f"{one} ", f"{one}:")) for one in allowed)


def _ran(row: Row, folder: Path) -> str:
    """Run the program of a fault; return how it went wrong, empty if it ended well."""
    (folder / "program.py").write_text(f"{HEAD}\n{row.body}\ntell()\n", encoding="utf-8")
    given = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "FAULTS_FOLDER": str(folder),
        "PLUSEQUALS_CACHE_DIR": str(folder / "cache"),
        "PLUSEQUALS_OPTIMIZE": "0",
    }
    given |= {name: text.replace("{folder}", str(folder)) for name, text in row.environment.items()}
    given = {name: text for name, text in given.items() if text}
    command = [sys.executable, *row.flags, str(folder / "program.py")]
    with open(folder / "errors.txt", "wb") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"hangs for {LONGEST:g} seconds"
    return f"ends with {status}" if status else ""


def _said(folder: Path) -> list[str]:
    try:
        return (folder / "said.txt").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
