"""Recording: every program of the corpus for every target, in processes of a few programs each."""

from __future__ import annotations

import gc
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from plusequals.base.diagnostic import CdError, CdInternalError
from plusequals.lowering.ir.assignments import Procedure
from tests.programs.isolate import Child, first_ready

from . import store
from .corpus import (
    Entry,
    again,
    kernels,
    procedures,
    random_name,
    random_program,
    tutorials,
    workloads,
)
from .lowered import Lowered, lowered
from .targets import Variant

BATCH = 20
"""Programs of one process, and of one file."""
LONGEST = 1800.0
"""Seconds after which a process of a batch is given up."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A program to record, which is made in the process that records it."""

    name: str
    make: Callable[[], Entry]


@dataclass(slots=True)
class Counts:
    """What was recorded so far."""

    programs: int = 0
    lowerings: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    """Those that ended by an error which is no answer."""
    seconds: float = 0.0
    """Of processor time."""

    def add(self, other: Counts) -> None:
        """Add what another process recorded."""
        self.programs += other.programs
        self.lowerings += other.lowerings
        self.refused += other.refused
        self.failed += other.failed
        self.seconds += other.seconds

    def __str__(self) -> str:
        each = 1000 * self.seconds / max(self.lowerings, 1)
        return (
            f"{self.programs} programs, {self.lowerings} lowerings, {self.refused} refused, "
            f"{len(self.failed)} failed, {self.seconds:.0f} s of processor time, {each:.0f} ms each"
        )


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def named() -> list[Entry]:
    """Return the programs that are found by name."""
    return [*kernels(), *workloads(), *tutorials()]


def whole(programs: int, seed: int) -> list[Wanted]:
    """Return the corpus with so many random programs."""
    found = [Wanted(entry.name, partial(_itself, entry)) for entry in named()]
    return found + [
        Wanted(random_name(seed, number), partial(random_program, seed, number))
        for number in range(programs)
    ]


def same(recording: store.Recording) -> list[Wanted]:
    """Return the programs of a recording that are still there."""
    known = {entry.name: entry for entry in named()}
    out = []
    for one in (one for part in recording.batches() for one in part["programs"]):
        name, stored = one["name"], one["stored"]
        if stored is not None:
            out.append(Wanted(name, partial(again, name, stored)))
        elif name in known:
            out.append(Wanted(name, partial(_itself, known[name])))
    return out


def _itself(entry: Entry) -> Entry:
    return entry


def record(
    wanted: Sequence[Wanted], into: Path, jobs: int = 1, quiet: bool = False, asked: str = ""
) -> Counts:
    """Record programs into a folder; batches that are there already are left as they are.

    Raises Unreadable where the folder has a recording of something else, and Crashed where a
    process ended without an answer.
    """
    recording = store.Recording(into)
    recording.begin(commit(), asked)
    batches = [wanted[at : at + BATCH] for at in range(0, len(wanted), BATCH)]
    total, running = Counts(), dict[Child, int]()
    waiting = [at for at in range(len(batches)) if not recording.path(at).exists()]
    done, begun = len(wanted) - sum(len(batches[at]) for at in waiting), time.monotonic()
    while waiting or running:
        while waiting and len(running) < jobs:
            at = waiting.pop(0)
            running[Child(_batch, batches[at], recording.path(at))] = at
        child = first_ready(list(running))
        at = running.pop(child)
        total.add(child.result(LONGEST))
        done += len(batches[at])
        if not quiet:
            said = f"\r{done}/{len(wanted)}: {total}, {time.monotonic() - begun:.0f} s"
            print(said, end="", file=sys.stderr, flush=True)
    if not quiet:
        print(file=sys.stderr)
    return total


def commit() -> str:
    """Return the commit of the working tree, with a `+` where it has changes; empty without git."""
    root = Path(__file__).resolve().parents[2]

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changes = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changes)


def _batch(wanted: Sequence[Wanted], path: Path) -> Counts:
    """Record some programs, in a process of their own, into one file."""
    gc.disable()  # this process ends soon
    begun, counts = time.process_time(), Counts()
    kept: dict[str, str] = {}
    made = (one.make() for one in wanted)
    programs = [recorded(entry, kept, counts) for entry in made]
    store.write(path, {"programs": programs, "texts": kept})
    counts.seconds = time.process_time() - begun
    return counts


def recorded(entry: Entry, texts: dict[str, str], counts: Counts) -> dict[str, Any]:
    """Return a program with what it becomes for each target, as values for JSON."""
    rows: dict[str, Any] = {}
    for size, procedure in procedures(entry):
        for variant in entry.variants:
            if variant.size == size:
                rows[str(variant)] = _row(entry, procedure, variant, texts, counts)
    counts.programs += 1
    return {"name": entry.name, "stored": entry.stored, "rows": rows}


def _row(
    entry: Entry,
    procedure: Procedure | Exception,
    variant: Variant,
    texts: dict[str, str],
    counts: Counts,
) -> dict[str, Any]:
    try:
        if isinstance(procedure, Exception):
            raise procedure
        made = lowered(procedure, variant)
    except Exception as why:
        if isinstance(why, CdError) and not isinstance(why, CdInternalError):
            counts.refused += 1
            return {"error": f"{type(why).__name__} {why.code}: {why.diagnostics[0].message}"}
        error = f"{type(why).__name__}: {why}"
        counts.failed.append(f"{entry.name} {variant}: {error.splitlines()[0]}")
        return {"error": error.splitlines()[0]}
    counts.lowerings += 1
    return _digested(made, texts)


def _digested(made: Lowered, texts: dict[str, str]) -> dict[str, Any]:
    def keep(text: str) -> str:
        key = digest(text)
        texts[key] = text
        return key

    return {
        "stages": [[name, keep(text)] for name, text in made.stages],
        "ran": made.ran,
        "silent": made.silent,
        "prelude": keep(made.prelude),
        "text": keep(made.text),
        "table": made.table,
        "sentences": keep("".join(f"{one}\n" for one in made.sentences)),
    }
