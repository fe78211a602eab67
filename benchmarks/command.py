"""The run: ceilings, cells, gradients, calls, imports, first calls, memory; with progress.

What was measured is on disk after every cell, so that a run that is interrupted is not lost.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import ceilings, chart, gradients, machine, options, results, startup, table
from .cell import Cell
from .measure import Crew, measure
from .options import Options
from .peers import Peer, peer
from .results import Report, Row

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SHARED = Path("/dev/shm")
ENOUGH = 4 << 30
"""Bytes that have to be free in shared memory for arrays to be handed over there."""


def main(words: Sequence[str]) -> int:
    """Return 0 where plusequals has a time for every cell that was begun."""
    asked = options.read(words)
    if asked.show is not None:
        _finish(results.read(asked.show), asked)
        return 0
    report = Report(" ".join(["python3 -m benchmarks", *words]), machine.facts())
    run = Run(asked, report)
    with scratch() as folder:
        try:
            run.all(folder)
        except KeyboardInterrupt:
            report.problems.append("interrupted: what follows was not begun")
    _finish(report, asked)
    return int(any(row.ours is None for row in (*report.rows, *report.gradients)))


class Run:
    """A report that grows, and what is shown meanwhile."""

    def __init__(self, asked: Options, report: Report) -> None:
        self.asked, self.report = asked, report
        self._end = time.monotonic() + asked.budget
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.percentage:>3.0f}%"), BarColumn(30), MofNCompleteColumn(),
            TimeElapsedColumn(), TextColumn("{task.description}"), console=self._console,
        )  # fmt: skip
        self._of = {"cells": asked.cells, "gradients": gradients.cells(asked.cells)}
        parts = [part for part in asked.parts if part not in self._of]
        cells = sum(len(self._of[part]) for part in asked.parts if part in self._of)
        total = len(parts) + cells * len(asked.threads)
        self._task = self._bar.add_task("starting", total=total)

    def say(self, text: str) -> None:
        """Show what is being done."""
        self._bar.update(self._task, description=text[:60])

    def all(self, folder: Path) -> None:
        """Do every part that was asked for, while the budget lasts."""
        with self._bar:
            for part in self.asked.parts:
                if part in self._of:
                    self._cells(part, folder)
                elif self._time_is_left(part):
                    getattr(self, f"_{part}")(folder)
                    self._bar.advance(self._task)
                self.report.write(self.asked.out / "results.json")
            self.say("done")

    def _time_is_left(self, what: str) -> bool:
        if time.monotonic() < self._end:
            return True
        self.report.problems.append(f"{what}: the budget was used up")
        return False

    def _ceilings(self, folder: Path) -> None:
        for threads in self.asked.threads:
            self.say(f"ceilings, {threads} threads")
            try:
                self.report.ceilings.append(ceilings.measure(threads))
            except ceilings.NotMeasured as why:
                self.report.problems.append(str(why))

    def _cells(self, part: str, folder: Path) -> None:
        asked, report = self.asked, self.report
        rows = report.rows if part == "cells" else report.gradients
        peers = asked.peers if part == "cells" else gradients.peers(asked.peers)
        for threads in asked.threads:
            with self._crew(threads, folder, peers) as crew:
                for cell in self._of[part]:
                    if self._time_is_left(f"{part}: {cell.name}, {threads} threads"):
                        row = (
                            self._row(crew, cell, folder) if part == "cells"
                            else gradients.row(crew, cell, asked.rounds, folder, self.say)
                        )  # fmt: skip
                        rows.append(row)
                        self._bar.console.print(table.line(row), highlight=False, soft_wrap=True)
                        report.write(asked.out / "results.json")
                    self._bar.advance(self._task)

    def _row(self, crew: Crew, cell: Cell, folder: Path) -> Row:
        timings, why = measure(crew, cell, self.asked.rounds, folder, self.say)
        known = self.report.ceiling(crew.threads)
        case = cell.workload.case(cell.size)
        roofline = None
        if known is not None:
            work = cell.flops, cell.traffic(case), case.footprint
            roofline = known.seconds(*work, cell.workload.precision)
        return Row(
            cell.name, cell.workload.kind, cell.size.regime, crew.threads, timings, why,
            str(cell.workload.tolerance), roofline,
        )  # fmt: skip

    @contextmanager
    def _crew(self, threads: int, folder: Path, peers: tuple[Peer, ...] = ()) -> Iterator[Crew]:
        asked = self.asked
        given = peers or asked.peers, threads, asked.settings, folder, self.say, asked.clock
        with Crew(*given) as crew:
            self.report.versions |= {peer(name).base: v for name, v in crew.versions.items()}
            self.report.left_out |= {peer(name).base: w for name, w in crew.left_out.items()}
            yield crew

    def _calls(self, folder: Path) -> None:
        with self._crew(1, folder) as crew:
            startup.calls(self.report, crew, self.asked.rounds, folder, self.say)

    def _imports(self, folder: Path) -> None:
        startup.imports(self.report, self.asked.peers, min(5, self.asked.rounds), self.say)

    def _firsts(self, folder: Path) -> None:
        asked = self.asked
        startup.firsts(self.report, asked.peers, startup.FIRSTS, asked.settings, folder, self.say)

    def _memory(self, folder: Path) -> None:
        asked = self.asked
        for cell in asked.cells:
            if cell.size.regime == "large" and self._time_is_left(f"memory of {cell.name}"):
                peers, settings = asked.peers, asked.settings
                startup.memory(self.report, peers, cell.name, settings, folder, self.say)
                self.report.write(self.asked.out / "results.json")


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder through which arrays are handed over: in memory where there is enough."""
    shared = SHARED.is_dir() and shutil.disk_usage(SHARED).free > ENOUGH
    with tempfile.TemporaryDirectory(
        prefix="plusequals-benchmarks-", dir=SHARED if shared else None
    ) as folder:
        yield Path(folder)


def replaced(page: str, measured: str) -> str:
    """Return a page with what stands between its two marks replaced. Raises ValueError."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines `{BEGIN}` and `{END}`")
    return f"{before}{BEGIN}\n\n{measured}\n{END}{after}"


def _finish(report: Report, asked: Options) -> None:
    """Write tables and pictures, and say where."""
    report.write(asked.out / "results.json")
    text = table.markdown(report)
    (asked.out / "performance.md").write_text(text, encoding="utf-8")
    pictures = chart.draw(report, asked.out)
    if asked.into is not None:
        page = asked.into.read_text(encoding="utf-8")
        asked.into.write_text(replaced(page, text), encoding="utf-8")
    print(text)
    written = [asked.out / "results.json", asked.out / "performance.md", *pictures]
    print("written: " + ", ".join(map(str, written)), file=sys.stderr)
