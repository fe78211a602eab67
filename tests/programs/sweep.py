"""Every function of NumPy that the language knows, with every parameter, against NumPy itself.

    python -m tests.programs.sweep --types all --shapes small --seed 1 --jobs 2
    python -m tests.programs.sweep --types f8,u1 --shapes large --only cumsum --backend numpy
    python -m tests.programs.sweep --settings random --programs 4000
    python -m tests.programs.sweep --ranks --types f8,i4

A case is a row of `expressions` with one element type, one size and drawn values and layouts. It
is right where results, their types, the arguments after the call and what shares memory are
NumPy's, at default settings or at drawn ones for each batch, `open` ones have run-time sizes; where
NumPy raises, an error is wanted. What is refused is counted. `--ranks` takes each row with each of
its arrays replaced by one of every other rank: a function may be right for matrices only.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base import settings
from plusequals.base.diagnostic import CdError, CdInternalError

from . import batch
from .agreement import Taken, parted, taken
from .expressions import GROUPS
from .isolate import Child, Crashed, first_ready
from .open_sizes import open_sizes
from .operands import NAMES, Given, made
from .rows import TOLERANCES
from .thresholds import lowered
from .ways import Ways, drawn, usual

TYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
SHAPES = ("small", "large")
SETTINGS = ("given", "random", "open")
BATCH = 48
"""Cases in one C file."""
OF_RANKS = "svxz"
"""The names of a number and of arrays of one, two and three axes."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row with an element type, a size, and what draws its values."""

    tolerance: str
    text: str
    dtype: str
    size: str
    seed: int

    @property
    def source(self) -> str:
        """The function of the row."""
        *before, result = self.text.split(";")
        names = ", ".join(name for name in NAMES if re.search(rf"\b{name}\b", self.text))
        lines = [*(line.strip() for line in before), f"return {result.strip()}"]
        return f"def f({names}):\n" + "".join(f"    {line}\n" for line in lines)

    def given(self) -> dict[str, Given]:
        """Return new arguments."""
        drawn = random.Random(f"{self.seed}:{self.text}:{self.dtype}:{self.size}").randrange(2**32)
        names = [name for name in NAMES if re.search(rf"\b{name}\b", self.text)]
        plain = self.tolerance in ("sums", "loose")
        unsigned = re.search(r"uint|'u[18]'", self.text) is not None
        factors = "prod(" in self.text and self.size == "large"
        return made(names, self.dtype, self.size, drawn, plain, unsigned, factors)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={one}" for name, one in self.given().items())
        return f"{self.text}   [{self.dtype} {self.size} seed {self.seed}] {given}"


@dataclass(slots=True)
class Verdict:
    """What became of a case: `same`, `refused`, `open` or `differs`, and why."""

    case: Case
    kind: str = ""
    why: str = ""


@dataclass(slots=True)
class _Run:
    verdict: Verdict
    want: Taken
    function: Any = None
    code: batch.Deferred | None = None


def check(cases: Sequence[Case], backend: str = "cc", ways: Ways | None = None) -> list[Verdict]:
    """Return what became of each case, at default settings where there are no ways; C is compiled
    for all at once."""
    changed = settings.override(cache=False, **({} if ways is None else ways.settings()))
    ways = ways or Ways()
    with batch.installed() as deferring, changed, lowered(ways.thresholds), open_sizes(ways.open):
        runs = [_begun(case, n, deferring) for n, case in enumerate(cases)]
        ready = [run for run in runs if run.code is not None]
        if backend == "cc":
            _compile(ready, ways.poison)
        for run in ready:
            if not run.verdict.kind:
                _finish(run)
    return [run.verdict for run in runs]


def _begun(case: Case, number: int, deferring: batch.Deferring) -> _Run:
    names: dict[str, Any] = {"np": np}
    exec(case.source, names)
    run = _Run(Verdict(case), taken(names["f"], case.given()))
    text = case.source.replace("def f(", f"def f{number}(", 1)
    before = len(deferring.made)
    try:
        run.function = pe.cd_from_source(text, {"np": np}, backend=batch.NAME)
        run.function.specialise(*(one.value for one in case.given().values()))
    except Exception as why:
        _told(run, why)
        return run
    if len(deferring.made) > before:
        run.code = deferring.made[-1]
    else:
        _finish(run)
    return run


def _told(run: _Run, why: Exception) -> None:
    """An error instead of a result: refused, or of the kind that nobody should see."""
    if isinstance(why, CdError) and not isinstance(why, CdInternalError):
        run.verdict.kind, run.verdict.why = "refused", f"{why.code} {why.diagnostics[0].message}"
        return
    at = traceback.extract_tb(why.__traceback__)[-1]
    run.verdict.kind = "differs"
    run.verdict.why = f"raw {type(why).__name__} {at.name}:{at.lineno}: {str(why)[:300]}"


def _compile(runs: list[_Run], poisoned: bool) -> None:
    """Compile all at once; where that fails, one by one."""
    codes = [run.code for run in runs if run.code is not None]
    try:
        made = batch.compile_all([code.procedure for code in codes], poisoned=poisoned)
    except Exception:
        made = []
        for run, code in zip(runs, codes):
            try:
                code.code = batch.compile_all([code.procedure], poisoned=poisoned)[0]
            except Exception as why:
                run.verdict.kind = "differs"
                run.verdict.why = f"not compiled: {str(why)[:300]}"
        return
    for code, one in zip(codes, made):
        code.code = one


def _finish(run: _Run) -> None:
    case, verdict = run.verdict.case, run.verdict
    got = taken(lambda *values: run.function(*values), case.given())
    if got.raised is not None:
        _told(run, got.raised)
        return
    if run.want.raised is not None:
        verdict.kind = "differs"
        verdict.why = f"gives {got.result!r:.80} where NumPy raises {run.want.raised!r:.120}"
        return
    if run.want.undefined or _sums_of_undefined_casts(case):
        verdict.kind = "open"
        return
    how = "ulps" if case.tolerance == "exact" and case.dtype in ("c8", "c16") else case.tolerance
    why = parted(got, run.want, TOLERANCES[how], how)
    verdict.kind, verdict.why = ("differs", why) if why else ("same", "")


def of_other_ranks(text: str) -> Iterator[str]:
    """Yield a row with each of its arrays, in turn, replaced by one of every other rank.

    >>> list(of_other_ranks("np.dot(x, q)"))
    ['np.dot(s, q)', 'np.dot(v, q)', 'np.dot(z, q)']
    """
    for name in OF_RANKS:
        if re.search(rf"\b{name}\b", text):
            for other in OF_RANKS.replace(name, ""):
                yield re.sub(rf"\b{name}\b", other, text)


def _sums_of_undefined_casts(case: Case) -> bool:
    """Whether a reduction casts numbers that no integer holds, of which NumPy does not warn."""
    if not re.search(r"(sum|prod|trace|mean)\(.*np\.u?int", case.text):
        return False
    values = [np.asarray(one.value) for one in case.given().values()]
    return any(one.dtype.kind in "fc" and not np.isfinite(one).all() for one in values)


def cases_of(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the options ask for, in an order that the seed draws."""
    types = TYPES if options.types == "all" else options.types.split(",")
    sizes = SHAPES if options.shapes == "both" else (options.shapes,)
    groups = options.groups.split(",") if options.groups else list(GROUPS)
    rows = [row for group in groups for row in GROUPS[group] if options.only in row[1]]
    if options.ranks:
        known = {text for _, text in rows}
        others = {text: tolerance for tolerance, row in rows for text in of_other_ranks(row)}
        rows = [(tolerance, text) for text, tolerance in others.items() if text not in known]
    out = [
        Case(tolerance, text, dtype, size, options.seed)
        for size in sizes for dtype in types for tolerance, text in rows
    ]  # fmt: skip
    wanted = min(options.programs or len(out), len(out))
    return random.Random(options.seed).sample(out, wanted)


@dataclass
class Tally:
    """What came out so far."""

    started: float = field(default_factory=time.monotonic)
    kinds: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict, told: bool) -> None:
        """Count a verdict; print it where it is a finding."""
        self.kinds[verdict.kind] += 1
        if verdict.kind == "refused":
            behind = f" <- {verdict.case.text}" if told else ""
            self.refused[verdict.why[:60] + behind] += 1
        if verdict.kind == "differs":
            self.findings.append(verdict)
            print(f"\n{verdict.case}\n    {verdict.why}", flush=True)

    def line(self, wanted: int) -> str:
        """Return the progress as one line."""
        done = sum(self.kinds.values())
        rate = done / max(time.monotonic() - self.started, 1e-9)
        return (
            f"{done}/{wanted} cases, {rate:.1f}/s, {self.kinds['same']} same, "
            f"{self.kinds['refused']} refused, {self.kinds['open']} left open by NumPy, "
            f"{len(self.findings)} findings"
        )


def ways_of(cases: Sequence[Case], chosen: str) -> Ways | None:
    """Return how a batch runs: at the settings that were given, or at ones that it draws."""
    if chosen == "given":
        return None
    rng = random.Random(f"{cases[0].seed}:{cases[0]}:settings")
    if all(case.size == "small" for case in cases) and chosen == "random":
        return drawn(rng, passes=False)
    return replace(usual(rng), open=True) if chosen == "open" else usual(rng)


def sweep(
    cases: Sequence[Case], backend: str, jobs: int, told: bool = False, chosen: str = "given"
) -> Tally:
    """Run the cases, each batch in a process of its own; return the tally."""
    tally = Tally()
    waiting = [list(cases[n : n + BATCH]) for n in range(0, len(cases), BATCH)]
    running: dict[Child, list[Case]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            some = waiting.pop(0)
            running[Child(check, some, backend, ways_of(some, chosen))] = some
        child = first_ready(list(running))
        some = running.pop(child)
        for verdict in _answer(child, some, backend, ways_of(some, chosen)):
            tally.add(verdict, told)
        print(f"\r{tally.line(len(cases))}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return tally


def _answer(child: Child, cases: list[Case], backend: str, ways: Ways | None) -> list[Verdict]:
    """Return what a process found; after a crash, what a process for each case finds."""
    try:
        answer: list[Verdict] = child.result(900.0)
        return answer
    except Crashed as why:
        if len(cases) == 1:
            return [Verdict(cases[0], "differs", f"crashed: {why}")]
    return [
        one for case in cases
        for one in _answer(Child(check, [case], backend, ways), [case], backend, ways)
    ]  # fmt: skip


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", default="all", help="`all`, or some, as in `f8,u1`")
    parser.add_argument("--shapes", choices=(*SHAPES, "both"), default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--programs", type=int, default=0, help="so many, drawn; 0: all")
    parser.add_argument("--groups", default="", help=f"some of {','.join(GROUPS)}")
    parser.add_argument("--only", default="", help="rows with that text in them")
    parser.add_argument("--ranks", action="store_true", help="the rows for arrays of other ranks")
    parser.add_argument("--backend", choices=("cc", "numpy"), default="cc")
    parser.add_argument("--settings", choices=SETTINGS, default="given",
                        help="random: drawn for each batch; open: run-time sizes")  # fmt: skip
    parser.add_argument("--refused", action="store_true", help="list what was refused, too")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where anything was found."""
    options = options_of(arguments)
    cases = cases_of(options)
    tally = sweep(cases, options.backend, options.jobs, options.refused, options.settings)
    print(tally.line(len(cases)))
    for reason, count in tally.refused.most_common(None if options.refused else 20):
        print(f"  refused {count:5}  {reason}")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
