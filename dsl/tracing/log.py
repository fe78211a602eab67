"""The trace as a text log: one message a line, blocks closed by end lines; and back to a tree.

    f64 *x &[3, 4] = 0x7f2c40          a parameter: type, name, shape, address
    COMMENT: softmax                   a call or a comment begins
    index t = 0                        a round of a loop
    # y[i] += x[i] * t                 an assignment as it is written
    y[0]{=0.5} = 1.5 = 0.5 + x[0]{=1.0} * 1
    COMMENT: end                       the innermost comment ends

A line end inside of a message is written `$n`, a dollar sign `$$`, any other character at which
Python ends a line by its number, `$xd;`, and `$.` before a message that would be taken for a mark:
`COMMENT: $.end` is a comment whose text is `end`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ...backends.dump import make_folder, write_text
from ...backends.gpu.device_array import PlacedArray
from ...backends.interface import Array, CanPrint, PrintsLog
from ...backends.runtime.printed_output import PrintCapture
from ...backends.runtime.state import RUNTIME, RecordableCode
from ...base import settings
from ...base.dataclass import dataclass
from ...base.locks import ReentrantLock
from ...base.settings import Settings
from ...lowering.ir.assignments import Assign, Block, For, Parameter, While
from ..instrument import sites as s
from ..instrument.recording import Recorder, Run
from ..instrument.sites import Level, Wanted
from .points import Points, points_of
from .records import Record, in_ir, record_at, shown

_COMMENT, _END, _SOURCE = "COMMENT: ", "COMMENT: end", "# "
_SPECIAL = re.compile("[$\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029\\ud800-\\udfff]")
"""What is not written as it is: line ends of `str.splitlines`, and what UTF-8 has no bytes for."""
_NAMED = {"$": "$$", "\n": "$n"}
_WRITTEN = re.compile(r"\$(?:(n)|([$])|x([0-9a-f]+);)")


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment of a log: its source, and what it did, as header and body."""

    source: str
    header: str
    """`y[0]{=0.5} = 1.5`."""
    body: str
    """`0.5 + x[0]{=1.0} * 1`."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a log with what stands in it; `is_closed` where the log goes on behind it."""

    text: str
    inner: tuple[LogEntry, ...]
    is_closed: bool = True


LogEntry = Assigned | Comment | str
"""An assignment, a comment with its content, or any other message."""


def log_lines(entries: Iterable[LogEntry]) -> Iterator[str]:
    """Yield a tree as the lines of a log: what `log_tree` makes a tree of again."""
    for entry in entries:
        match entry:
            case Assigned(source, header, body):
                yield _SOURCE + _encoded(source)
                yield _encoded(f"{header} = {body}")
            case Comment(text, inner, is_closed):
                yield _COMMENT + _encoded(text)
                yield from log_lines(inner)
                if is_closed:
                    yield _END
            case str():
                yield _encoded(entry)


def log_tree(lines: Iterable[str]) -> tuple[LogEntry, ...]:
    """Return the lines of a log as a tree. Empty lines are skipped.

    A log that stops half way, since its run failed, leaves comments open.
    """
    return tuple(_entries(iter([line for line in lines if line.strip()]), False)[0])


def _entries(lines: Iterator[str], is_inside: bool) -> tuple[list[LogEntry], bool]:
    """Return entries up to the end of a comment, and whether that end was there."""
    found: list[LogEntry] = []
    for line in lines:
        if line == _END and is_inside:
            return found, True
        if line.startswith(_COMMENT):
            inner, is_closed = _entries(lines, True)
            found.append(Comment(_decoded(line[len(_COMMENT) :]), tuple(inner), is_closed))
        elif line.startswith(_SOURCE):
            parts = _decoded(next(lines, "")).split(" = ", 2)
            header = " = ".join(parts[:2])
            body = parts[2] if len(parts) == 3 else ""
            found.append(Assigned(_decoded(line[len(_SOURCE) :]), header, body))
        else:
            found.append(_decoded(line))
    return found, False


def _encoded(text: str) -> str:
    """Return a message as one line; what would be read as something else begins with `$.`."""
    line = _SPECIAL.sub(lambda found: _NAMED.get(found[0]) or f"$x{ord(found[0]):x};", text)
    is_mark = line == "end" or line.startswith((_COMMENT, _SOURCE)) or not line.strip()
    return f"$.{line}" if is_mark else line


def _decoded(text: str) -> str:
    return _WRITTEN.sub(
        lambda found: "\n" if found[1] else found[2] or chr(int(found[3], 16)),
        text.removeprefix("$."),
    )


@dataclass
class _Open:
    """A comment that is being filled."""

    text: str
    inner: list[LogEntry] = field(default_factory=list)


def log_of(run: Run, arrays: Sequence[Any]) -> tuple[LogEntry, ...]:
    """Return what a run recorded as the tree of its log."""
    head = list(_parameters(run.parameters, arrays))
    stack = [_Open(run.name)]
    path: tuple[Level, ...] = ()
    before: list[int] = []
    last = -1
    points: dict[int, Points] = {}
    for number, row in enumerate(run.table):
        site = run.layout.sites[int(row[0])]
        if site.reduce is not None:
            continue
        at = [
            int(row[s.FIRST + site.symbols.index(level.symbol)]) if isinstance(level, For) else 0
            for level in site.path
        ]
        shared = _still_open(path, site.path, before, at, site.number > last)
        for level in reversed(path[shared:]):
            if isinstance(level, Block):
                _close(stack)
        for level, value in zip(site.path[shared:], at[shared:], strict=True):
            if isinstance(level, Block):
                stack.append(_Open(level.comment))
            if isinstance(level, For):
                stack[-1].inner.append(f"index {level.symbol.name} = {value}")
        path, before, last = site.path, at, site.number
        if isinstance(site.statement, Assign):
            if site.number not in points:
                points[site.number] = points_of(run, site)
            stack[-1].inner += _assigned(points[site.number], number)
    while len(stack) > 1:
        _close(stack)
    end = [run.lost] if run.dropped else []
    end += [f"error: {run.error}"] if run.error else []
    return (*head, Comment(run.name, (*stack[0].inner, *end)))


def _parameters(parameters: Sequence[Parameter], arrays: Sequence[Any]) -> Iterator[str]:
    """Yield what a log tells of the arguments: type, name, shape and address."""
    for parameter, array in zip(parameters, arrays, strict=False):
        node = parameter.node
        there = isinstance(array, PlacedArray)
        address = array.address if there else array.__array_interface__["data"][0]
        yield f"{node.dtype.short} *{node.label} &{list(array.shape)} = {address:#x}"


def _still_open(
    path: tuple[Level, ...],
    new: tuple[Level, ...],
    before: Sequence[int],
    now: Sequence[int],
    is_further: bool,
) -> int:
    """Return how many levels stay open from one row to the next, outermost first.

    A loop whose variable has another value has begun another iteration: what is in it is closed.
    So has the innermost `while` around both rows where the next one is neither further down nor
    in a later iteration of an inner loop.
    """
    count = 0
    for one, other, was, value in zip(path, new, before, now, strict=False):
        if one is not other and one != other:
            break
        if isinstance(one, For) and was != value:
            is_further = (value > was) == (one.step > 0)
            break
        count += 1
    if not is_further:
        loops = [place for place in range(count) if isinstance(path[place], While)]
        return loops[-1] + 1 if loops else count
    return count


def _close(stack: list[_Open]) -> None:
    done = stack.pop()
    stack[-1].inner.append(Comment(done.text, tuple(done.inner)))


def _assigned(points: Points, row: int) -> Iterator[Assigned]:
    first, end = points.row.searchsorted([row, row + 1])
    for place in range(int(first), int(end)):
        record = record_at(0, points, place)
        yield Assigned(record.site.statement.span.text, _header(record), in_ir(record))


def _header(record: Record) -> str:
    return f"{record.element}{{={shown(record.before)}}} = {shown(record.after)}"


class Logger(ReentrantLock):
    """Writes the log of every run to a file, where the settings ask for that."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = PrintCapture()

    def step(
        self, codes: RecordableCode, arrays: Sequence[Any], title: tuple[str, str, str]
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the run of code that records, whose log is written when it is done."""
        chosen, made = settings.current(), RUNTIME.backend(title[1])
        make_folder(_folder(chosen))  # an error comes before the run, not after it
        if isinstance(made, PrintsLog):
            return self._printing(made, codes, arrays, title)
        prints = chosen.debug_log_by_printf and isinstance(made, CanPrint)
        recorder = Recorder(Wanted(printed=prints), 1 << 40, self._printed if prints else None)
        run = recorder.step(codes, arrays, title)

        def logged() -> tuple[Array, ...]:
            try:
                return run()
            finally:
                self._write(log_lines(log_of(recorder.runs[0], arrays)), title, chosen)

        return logged

    def _printing(
        self,
        made: PrintsLog,
        codes: RecordableCode,
        arrays: Sequence[Any],
        title: tuple[str, str, str],
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the run of code that prints its log, which is taken out of the output."""
        chosen, code, procedure = settings.current(), codes.on(title[1]), codes.procedure
        results = [None for _ in procedure.results]
        head = [_encoded(line) for line in _parameters(procedure.parameters, arrays)]

        def logged() -> tuple[Array, ...]:
            found: list[str] = []
            try:
                with self._printed.run() as run:
                    found = run.lines
                    return made.run_printing(code, (*arrays, *results), run.mark)
            finally:
                self._write((*head, *found), title, chosen)

        return logged

    def _write(self, lines: Iterable[str], title: tuple[str, str, str], chosen: Settings) -> None:
        """Write a log where the settings at the call say."""
        text = "".join(f"{line}\n" for line in lines)
        name, backend, stream = title
        appended = chosen.debug_log_to_stream_files
        called = (
            f"{backend}-{stream or 'calls'}" if appended else f"debug-{stream or 'calls'}-{name}"
        )
        with self._lock:
            write_text(_folder(chosen), _file(called), text, appended)


def _folder(chosen: Settings) -> Path:
    """Return the folder for logs."""
    return Path(chosen.dump_dir or ".").expanduser()


def _file(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", name) + ".log"
