"""Calls in the middle of first calls, some of those that `tests.reentry` makes; and at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reentry import KINDS, Trial, problem_of

ENDING = """
import sys, numpy as np
from plusequals import cd
@cd
def f(y, x): y[:] = np.sort(x) + 1
@cd
def g(y, x): y[:] = x * 3
class Last:
    def __init__(self): self.itself = self
    def __del__(self):
        y = zeros(4)
        f(y, zeros(4))
        print(y.tolist())
zeros = np.zeros
g(zeros(4), zeros(4))
for _ in range(int(sys.argv[1])): f(zeros(4), zeros(4))
last, alone = Last(), type("Alone", (), {"__del__": Last.__del__})()
"""
LATE = """
from importlib import import_module
kind = import_module("plusequals.backends.cc.fast_call").FastPath
kind.wanted = eval(
    "lambda *a, **k: wanted(*a, **k) if calls.append(1) or len(calls) > late else None",
    {"wanted": kind.wanted, "calls": [], "late": int(sys.argv[2]), "len": len},
)
"""
"""Has the library of the short way come only after so many looks for it."""
WORDS = "`f` is called while the interpreter ends, and cannot be compiled any more"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(("kind", "seed"), [*zip(KINDS, (11, 22, 36, 47), strict=True)])
def test_a_call_in_the_middle_of_a_first_call_runs(kind: str, seed: int, cache: Path) -> None:
    assert problem_of(Trial(kind, seed, cold=False, cache=str(cache))) == ""


@pytest.mark.parametrize("calls", [0, 1, 3])
def test_a_finalizer_at_the_end_runs_what_is_compiled(
    calls: int, cache: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDING.replace("x) + 1", f"x) + {calls + 1}"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, str(calls)],
        capture_output=True,
        text=True,
        env={**os.environ, "PLUSEQUALS_CACHE_DIR": str(cache)},
    )
    if calls:
        assert (done.stdout, done.stderr) == (f"{[calls + 1.0] * 4}\n" * 2, "")
    else:
        assert done.stderr.count(f"CdBackendError: error[CD0829]: {WORDS}") == 2


@pytest.mark.parametrize("late", [1, 4, 5])
def test_a_finalizer_at_the_end_learns_no_short_way(late: int, tmp_path: Path) -> None:
    program, cache = tmp_path / "program.py", str(tmp_path / "cache")
    program.write_text(ENDING.replace("zeros = np", LATE + "zeros = np"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, "3", str(late)],
        capture_output=True,
        text=True,
        env={**os.environ, "PLUSEQUALS_CACHE_DIR": cache},
    )
    assert (done.stdout, done.stderr) == (f"{[1.0] * 4}\n" * 2, "")
