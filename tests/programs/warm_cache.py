"""Random programs called with many sizes and values, in processes that share a cache.

A specialization that is right for its first call may be wrong for the fourth, and one that was
found on disk for a value that was not the first: each process calls in an order of its own.

warm       a call against a compilation for it alone, which no cache is asked for
plain      that compilation against plain Python and NumPy
refused    a call that Python runs is refused in both, or only by code for any size because a size
           that only a call knows does not broadcast where it is 1 (counted, no finding)
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
import types
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import plusequals as pe
from plusequals.base import settings

from .check import NAMES, USUAL, Case, Finding, against, called, of_python
from .isolate import Child, Crashed
from .model import Program
from .outcomes import Outcome, difference, run
from .plain_expressions import Unknown
from .ways import Ways

Answer = tuple[str, Finding | None]
"""Why a program was refused, and the finding."""
_HEAD = "import math\n\nimport numpy as np\n\n\n"
_SECONDS = 300.0
_ONE = re.compile(r"sizes (1 and \d+|\d+ and 1) differ")


def check_sequences(programs: Sequence[Program], ways: Ways = USUAL) -> list[Case]:
    """Return what became of each program in all of its processes, of one cache."""
    with tempfile.TemporaryDirectory(prefix="plusequals-") as name:
        folder = Path(name)
        try:
            return _checked(programs, ways, folder)
        except Crashed as why:
            if len(programs) == 1:
                case = Case(programs[0], ways)
                case.finding = Finding("crash", str(why), programs[0], ways)
                return [case]
    return [case for program in programs for case in check_sequences([program], ways)]


def _checked(programs: Sequence[Program], ways: Ways, folder: Path) -> list[Case]:
    for number, program in enumerate(programs):
        (folder / f"program{number}.py").write_text(_HEAD + program.text, encoding="utf-8")
    cases = [Case(program, ways) for program in programs]
    for process in range(max(len(program.orders) for program in programs)):
        new = len(programs) > 1  # a fork starts at once, for what is made small
        child = Child(_answers, folder, programs, ways, process, new=new)
        answers: list[Answer] = child.result(_SECONDS)
        for case, (refused, finding) in zip(cases, answers, strict=True):
            case.refused = case.refused or refused
            case.finding = case.finding or finding
    return cases


def _answers(folder: Path, programs: Sequence[Program], ways: Ways, process: int) -> list[Answer]:
    """Return what this process says of each program."""
    with settings.override(cache_dir=str(folder / "cache"), **ways.settings()):
        return [_answer(folder, n, one, ways, process) for n, one in enumerate(programs)]


def _answer(folder: Path, number: int, program: Program, ways: Ways, process: int) -> Answer:
    refused = ""
    try:
        module = _module(folder, number)
        function = pe.cd(module.f, backend="cc" if ways.c else "numpy")
    except pe.CdError as why:
        return f"{type(why).__name__} {why.code}: {why.diagnostics[0].message}", None
    for at in program.orders[process] if process < len(program.orders) else ():
        case = Case(replace(program, args=program.calls[at]), ways)
        try:
            _called(case, function, module)
        except Exception as why:
            raise RuntimeError(f"{program.text}{program.calls[at]}") from why
        refused = refused or case.refused
        if case.finding is not None:
            why = f"process {process}, call {at}: {case.finding.why}"
            return refused, replace(case.finding, why=why, program=program)
    return refused, None


def _module(folder: Path, number: int) -> types.ModuleType:
    name = f"program{number}"
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None, "a file of ours"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _called(case: Case, function: Any, module: types.ModuleType) -> None:
    """Hold one call against plain Python, and what differs against a compilation of its own."""
    program = case.program
    outcome = run(program, partial(called, program, function, module.__dict__))
    expected = of_python(program)
    if _is_right(case, outcome, expected):
        return
    alone = _alone(program)
    rounds = program.rounds or settings.current().profile != "strict"
    both = outcome.error.startswith("Cd") and alone.error.startswith("Cd")
    why = difference(outcome, alone, rooms=False, rtol=1e-5 if rounds else 0.0)
    if _ONE.search(outcome.message) and outcome.error == "CdShapeError CD0301":
        case.refused = "run-time size 1: " + outcome.message.splitlines()[0]
    elif why and not (both and "CdInternal" not in outcome.error):
        case.finding = Finding("warm", why, program, case.ways)
    elif alone.error:
        case.refused = f"{alone.error}: {alone.message.splitlines()[0]}"
    elif expected.error != Unknown.__name__:
        against(case, "plain", alone, expected)


def _is_right(case: Case, outcome: Outcome, expected: Outcome) -> bool:
    if outcome.error:
        is_told = outcome.error.startswith("Cd") and "CdInternal" not in outcome.error
        return bool(expected.error) and (is_told or outcome.error == expected.error)
    tried = Case(case.program, case.ways)
    against(tried, "warm", outcome, expected)
    return tried.finding is None


def _alone(program: Program) -> Outcome:
    """Return what a compilation for these arguments gives, interpreted."""
    names = dict(NAMES)
    with settings.override(cache=False):
        function: Any = None

        def call(arguments: Any) -> Any:
            nonlocal function
            names.update((name, arguments[name]) for name in program.captured)
            function = pe.cd_from_source(program.text, names, backend="numpy")
            return called(program, function, names, arguments)

        return run(program, call)
