"""Profiles: a timeline of what ran when and where, as a table, a trace file or a picture.

    Work     := one step of a stream, one plain call, or one compilation, with its times
    Timeline := the works that started while it was open

Times are nanoseconds since the timeline was opened.
"""

from __future__ import annotations

import html
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import CdBackendError, Diagnostic

Kind = str
"""`routine`, `copy`, `merge`, `graph`, `host`, `call` or `compile`."""
_COLOURS = 10
"""The number of names with distinct colours in the picture."""


@dataclass(frozen=True, slots=True, repr=False)
class Work:
    """An interval of work, with its times in nanoseconds."""

    name: str
    kind: Kind
    where: str
    """The stream, or the thread of a plain call."""
    queued: int
    started: int
    ended: int

    @property
    def duration(self) -> int:
        """Its duration."""
        return self.ended - self.started

    @property
    def waited(self) -> int:
        """The time from its submission to its start."""
        return self.started - self.queued

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} on {self.where}: {self.duration / 1e3:.1f} us>"


class Timeline:
    """The works of a profile; any thread may add to it."""

    def __init__(self) -> None:
        self._opened = time.perf_counter_ns()
        self._works: list[Work] = []

    @property
    def works(self) -> tuple[Work, ...]:
        """The finished works, in order of their start."""
        return tuple(sorted(self._works, key=lambda work: (work.started, work.ended)))

    def now(self) -> int:
        """Return the time since it was opened, in nanoseconds."""
        return time.perf_counter_ns() - self._opened

    def part(self, works: Sequence[Work]) -> Timeline:
        """Return a timeline of some of the works, with the same zero of time."""
        made = Timeline()
        made._opened, made._works = self._opened, list(works)
        return made

    def timed(
        self,
        name: str,
        kind: Kind,
        where: str,
        run: Callable[[], Any],
        note: Callable[[Work], None] | None = None,
    ) -> Callable[[], Any]:
        """Return a step, queued now, that adds itself after its run, even if it fails.

        `note` is called with the work then.
        """
        queued = self.now()

        def timed() -> Any:
            started = self.now()
            try:
                return run()
            finally:
                work = Work(name, kind, where, queued, started, self.now())
                self._works.append(work)
                if note is not None:
                    note(work)

        return timed

    @contextmanager
    def here(self, name: str, kind: Kind) -> Iterator[None]:
        """Add the body of the `with` as a work of this thread."""
        started = self.now()
        try:
            yield
        finally:
            where = threading.current_thread().name
            self._works.append(Work(name, kind, where, started, started, self.now()))

    def __str__(self) -> str:
        return "\n".join((*_table_by_name(self.works), "", *_table_by_stream(self.works)))

    def __repr__(self) -> str:
        works, last = self.works, max((work.ended for work in self._works), default=0)
        return f"<timeline: {len(works)} works in {last / 1e6:.3f} ms>"

    def _repr_html_(self) -> str:
        """Return the tables for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def save_trace(self, path: str | os.PathLike[str]) -> Path:
        """Write a file for trace viewers, JSON in trace event format; return its path.

        The format is that of the "Trace Event Format" document of the Chromium project.
        """
        thread_ids = {where: number for number, where in enumerate(_streams(self.works), 1)}
        events: list[dict[str, Any]] = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": where}}
            for where, number in thread_ids.items()
        ]
        events += [
            {
                "name": work.name, "cat": work.kind, "ph": "X", "pid": 1,
                "tid": thread_ids[work.where],
                "ts": work.started / 1e3, "dur": work.duration / 1e3,
                "args": {"waited_us": work.waited / 1e3},
            }
            for work in self.works
        ]  # fmt: skip
        target = Path(path)
        target.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), "utf-8")
        return target

    def save_picture(self, path: str | os.PathLike[str]) -> Path:
        """Draw a row for each stream or thread into an image file; return its path.

        Raises CdBackendError CD0848 where matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
            from matplotlib.patches import Patch
        except ImportError:
            raise CdBackendError(
                Diagnostic(
                    "CD0848", "a picture of a timeline needs matplotlib, which is not installed",
                    helps=("`pip install matplotlib`, or write a file for a viewer: "
                           "`timeline.save_trace(\"trace.json\")`",),
                )
            ) from None  # fmt: skip
        works, streams = self.works, _streams(self.works)
        frequent = [name for name, _ in Counter(work.name for work in works).most_common(_COLOURS)]
        colours = {name: f"C{number}" for number, name in enumerate(frequent)}
        figure = Figure(figsize=(10, 1.4 + 0.45 * max(1, len(streams))), layout="constrained")
        axes = figure.subplots()
        for row, where in enumerate(streams):
            row_works = [work for work in works if work.where == where]
            axes.broken_barh(
                [(work.started / 1e6, max(work.duration, 1) / 1e6) for work in row_works],
                (row - 0.4, 0.8),
                facecolors=[colours.get(work.name, "0.6") for work in row_works],
            )
        axes.set_yticks(range(len(streams)), streams)
        axes.invert_yaxis()
        axes.set_xlabel("milliseconds")
        patches = [Patch(color=colour, label=name) for name, colour in colours.items()]
        if patches:
            figure.legend(handles=patches, loc="outside upper center", ncols=5, frameon=False)
        target = Path(path)
        figure.savefig(target, dpi=120)
        return target


def _streams(works: Sequence[Work]) -> list[str]:
    return list(dict.fromkeys(work.where for work in works))


def _table_by_name(works: Sequence[Work]) -> list[str]:
    """Return a table by name: count, total and mean duration, and longest wait."""
    rows = [("name", "kind", "times", "total ms", "mean us", "longest wait us")]
    groups: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        groups.setdefault((work.name, work.kind), []).append(work)
    for (name, kind), group in sorted(
        groups.items(), key=lambda item: -sum(w.duration for w in item[1])
    ):
        total, longest_wait = (
            sum(work.duration for work in group),
            max(work.waited for work in group),
        )
        mean = total / len(group) / 1e3
        rows.append((name, kind, str(len(group)), f"{total / 1e6:.3f}", f"{mean:.1f}",
                     f"{longest_wait / 1e3:.1f}"))  # fmt: skip
    return _align_columns(rows, 2)


def _table_by_stream(works: Sequence[Work]) -> list[str]:
    """Return a table by stream or thread: count, busy time, and utilization."""
    rows = [("where", "works", "busy ms", "busy %")]
    end = max((work.ended for work in works), default=0)
    for where in _streams(works):
        stream_works = [work for work in works if work.where == where]
        busy = _busy_time(stream_works)
        rows.append(
            (where, str(len(stream_works)), f"{busy / 1e6:.3f}", f"{100 * busy / max(end, 1):.1f}")
        )
    return _align_columns(rows, 1)


def _busy_time(works: Sequence[Work]) -> int:
    """Return the measure of the union of intervals: nested works count once."""
    covered, until = 0, 0
    for work in works:
        covered += max(0, work.ended - max(work.started, until))
        until = max(until, work.ended)
    return covered


def _align_columns(rows: Sequence[tuple[str, ...]], texts: int) -> list[str]:
    """Return rows as aligned lines: text columns to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at < texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
