"""Text log of a trace, one message per line with nested comments; writer and parser.

    f64 *x &[3, 4] = 0x7f2c40          a parameter: type, name, shape, address
    COMMENT: softmax                   a call or a comment begins
    index t = 0                        an iteration of a loop
    # y[i] += x[i] * t                 the source of an assignment
    y[0]{=0.5} = 1.5 = 0.5 + x[0]{=1.0} * 1
    COMMENT: end                       the innermost comment ends

A newline inside a message is escaped as `$n`, a dollar sign as `$$`, any other character at which
Python ends a line by its code point, `$xd;`, and `$.` precedes a message that would be read as a
mark: `COMMENT: $.end` is a comment whose text is `end`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from ...backends.device_arrays.device_array import PlacedArray
from ...backends.dump import make_folder, write_text
from ...backends.interface import Array, CanPrint, PrintsLog
from ...backends.runtime.printed_output import PrintCapture
from ...backends.runtime.state import RUNTIME, RecordableCode
from ...base import settings
from ...base.dataclass import dataclass
from ...base.locks import ReentrantLock
from ...base.process_state import State, register
from ...base.settings import Settings
from ...lowering.ir.assignments import Assign, Block, For, Parameter, While
from ..instrument import sites as s
from ..instrument.recording import Recorder, Run
from ..instrument.sites import Level, TraceFilter
from .points import Points, read_points
from .records import Record, ir_text, read_record, to_text

_COMMENT, _END, _SOURCE = "COMMENT: ", "COMMENT: end", "# "
_SPECIAL = re.compile("[$\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029\\ud800-\\udfff]")
"""Escaped characters: line ends of `str.splitlines`, and surrogates, which UTF-8 cannot encode."""
_ESCAPES = {"$": "$$", "\n": "$n"}
_ESCAPE = re.compile(r"\$(?:(n)|([$])|x([0-9a-f]+);)")


@dataclass(frozen=True, slots=True)
class LoggedAssignment:
    """An assignment of a log: its source, and its effect, as header and body."""

    source: str
    header: str
    """`y[0]{=0.5} = 1.5`."""
    body: str
    """`0.5 + x[0]{=1.0} * 1`."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a log with its entries; `is_closed` where the log has its end."""

    text: str
    inner: tuple[LogEntry, ...]
    is_closed: bool = True


LogEntry = LoggedAssignment | Comment | str
"""An assignment, a comment with its entries, or any other message."""


def log_lines(entries: Iterable[LogEntry]) -> Iterator[str]:
    """Yield the lines of a log; `log_tree` is the inverse."""
    for entry in entries:
        match entry:
            case LoggedAssignment(source, header, body):
                yield _SOURCE + _escape(source)
                yield _escape(f"{header} = {body}")
            case Comment(text, inner, is_closed):
                yield _COMMENT + _escape(text)
                yield from log_lines(inner)
                if is_closed:
                    yield _END
            case str():
                yield _escape(entry)


def log_tree(lines: Iterable[str]) -> tuple[LogEntry, ...]:
    """Parse the lines of a log. Empty lines are skipped.

    In a log that ends early, since its run failed, comments stay open.
    """
    return tuple(_parse_entries(iter([line for line in lines if line.strip()]), False)[0])


def _parse_entries(lines: Iterator[str], is_inside: bool) -> tuple[list[LogEntry], bool]:
    """Return the entries up to the end of a comment, and whether that end was found."""
    entries: list[LogEntry] = []
    for line in lines:
        if line == _END and is_inside:
            return entries, True
        if line.startswith(_COMMENT):
            inner, is_closed = _parse_entries(lines, True)
            entries.append(Comment(_unescape(line[len(_COMMENT) :]), tuple(inner), is_closed))
        elif line.startswith(_SOURCE):
            parts = _unescape(next(lines, "")).split(" = ", 2)
            header = " = ".join(parts[:2])
            body = parts[2] if len(parts) == 3 else ""
            entries.append(LoggedAssignment(_unescape(line[len(_SOURCE) :]), header, body))
        else:
            entries.append(_unescape(line))
    return entries, False


def _escape(text: str) -> str:
    """Return a message as one escaped line; an ambiguous one is prefixed with `$.`."""
    line = _SPECIAL.sub(lambda match: _ESCAPES.get(match[0]) or f"$x{ord(match[0]):x};", text)
    is_mark = line == "end" or line.startswith((_COMMENT, _SOURCE)) or not line.strip()
    return f"$.{line}" if is_mark else line


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: "\n" if match[1] else match[2] or chr(int(match[3], 16)),
        text.removeprefix("$."),
    )


@dataclass
class _OpenComment:
    """A comment under construction."""

    text: str
    inner: list[LogEntry] = field(default_factory=list)


def build_log(run: Run, arrays: Sequence[Any]) -> tuple[LogEntry, ...]:
    """Return the records of a run as a log."""
    head = list(_parameter_lines(run.parameters, arrays))
    stack = [_OpenComment(run.name)]
    path: tuple[Level, ...] = ()
    previous: list[int] = []
    last_site = -1
    points: dict[int, Points] = {}
    for number, row in enumerate(run.table):
        site = run.layout.sites[int(row[0])]
        if site.reduce is not None:
            continue
        values = [
            int(row[s.FIRST_SYMBOL + site.symbols.index(level.symbol)])
            if isinstance(level, For)
            else 0
            for level in site.path
        ]
        shared_count = _shared_levels(path, site.path, previous, values, site.number > last_site)
        for level in reversed(path[shared_count:]):
            if isinstance(level, Block):
                _close_comment(stack)
        for level, value in zip(site.path[shared_count:], values[shared_count:], strict=True):
            if isinstance(level, Block):
                stack.append(_OpenComment(level.comment))
            if isinstance(level, For):
                stack[-1].inner.append(f"index {level.symbol.name} = {value}")
        path, previous, last_site = site.path, values, site.number
        if isinstance(site.statement, Assign):
            if site.number not in points:
                points[site.number] = read_points(run, site)
            stack[-1].inner += _assignments(points[site.number], number)
    while len(stack) > 1:
        _close_comment(stack)
    end = [run.lost] if run.dropped else []
    end += [f"error: {run.error}"] if run.error else []
    return (*head, Comment(run.name, (*stack[0].inner, *end)))


def _parameter_lines(parameters: Sequence[Parameter], arrays: Sequence[Any]) -> Iterator[str]:
    """Yield the log lines of the arguments: type, name, shape and address."""
    for parameter, array in zip(parameters, arrays, strict=False):
        node = parameter.node
        is_on_device = isinstance(array, PlacedArray)
        address = array.address if is_on_device else array.__array_interface__["data"][0]
        yield f"{node.dtype.short} *{node.label} &{list(array.shape)} = {address:#x}"


def _shared_levels(
    path: tuple[Level, ...],
    new: tuple[Level, ...],
    previous: Sequence[int],
    current: Sequence[int],
    has_advanced: bool,
) -> int:
    """Return how many levels stay open from one row to the next, outermost first.

    A loop whose variable has another value has begun another iteration: its inner levels close.
    So has the innermost `while` around both rows where the next one is neither further down nor
    in a later iteration of an inner loop.
    """
    count = 0
    for level, new_level, old, value in zip(path, new, previous, current, strict=False):
        if level is not new_level and level != new_level:
            break
        if isinstance(level, For) and old != value:
            has_advanced = (value > old) == (level.step > 0)
            break
        count += 1
    if not has_advanced:
        loops = [position for position in range(count) if isinstance(path[position], While)]
        return loops[-1] + 1 if loops else count
    return count


def _close_comment(stack: list[_OpenComment]) -> None:
    closed = stack.pop()
    stack[-1].inner.append(Comment(closed.text, tuple(closed.inner)))


def _assignments(points: Points, row: int) -> Iterator[LoggedAssignment]:
    first, end = points.row.searchsorted([row, row + 1])
    for position in range(int(first), int(end)):
        record = read_record(0, points, position)
        yield LoggedAssignment(
            record.site.statement.span.text, _header_text(record), ir_text(record)
        )


def _header_text(record: Record) -> str:
    return f"{record.element}{{={to_text(record.before)}}} = {to_text(record.after)}"


class Logger(ReentrantLock):
    """Writes the log of every run to a file, if the settings enable that."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = PrintCapture()

    def step(
        self, codes: RecordableCode, arrays: Sequence[Any], title: tuple[str, str, str]
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the function that runs recording code and writes its log afterwards."""
        options, backend = settings.current(), RUNTIME.backend(title[1])
        make_folder(_log_folder(options))  # raise an error before the run, not after it
        if isinstance(backend, PrintsLog):
            return self._printing(backend, codes, arrays, title)
        prints = options.debug_log_by_printf and isinstance(backend, CanPrint)
        recorder = Recorder(TraceFilter(printed=prints), 1 << 40, self._printed if prints else None)
        run = recorder.step(codes, arrays, title)

        def run_and_log() -> tuple[Array, ...]:
            try:
                return run()
            finally:
                self._write(log_lines(build_log(recorder.runs[0], arrays)), title, options)

        return run_and_log

    def _printing(
        self,
        backend: PrintsLog,
        codes: RecordableCode,
        arrays: Sequence[Any],
        title: tuple[str, str, str],
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the function that runs code whose device prints the log, extracted from stdout."""
        options, code, procedure = settings.current(), codes.on(title[1]), codes.procedure
        results = [None for _ in procedure.results]
        head = [_escape(line) for line in _parameter_lines(procedure.parameters, arrays)]

        def run_and_log() -> tuple[Array, ...]:
            lines: list[str] = []
            try:
                with self._printed.run() as run:
                    lines = run.lines
                    return backend.run_printing(code, (*arrays, *results), run.mark)
            finally:
                self._write((*head, *lines), title, options)

        return run_and_log

    def _write(self, lines: Iterable[str], title: tuple[str, str, str], options: Settings) -> None:
        """Write a log to the file that the settings at the call name."""
        text = "".join(f"{line}\n" for line in lines)
        name, backend, stream = title
        is_appended = options.debug_log_to_stream_files
        file_name = (
            f"{backend}-{stream or 'calls'}" if is_appended else f"debug-{stream or 'calls'}-{name}"
        )
        with self._lock:
            write_text(_log_folder(options), _file_name(file_name), text, is_appended)


@cache
def logger() -> Logger:
    """Return the writer of run logs."""
    return Logger()


register(
    lambda: State(
        name="the writer of run logs, which reads the standard output while a device prints",
        owner=__name__,
        holders=("logger",),
        lock="two locks",
        in_child="kept; locks are renewed",
    )
)


def _log_folder(chosen: Settings) -> Path:
    """Return the folder of log files."""
    return Path(chosen.dump_dir or ".").expanduser()


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", name) + ".log"
