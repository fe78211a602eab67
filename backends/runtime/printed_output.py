"""What runs print, taken out of the standard output of the process while they run.

    !@#12: index t = 0            a line that the run 12 printed: it gets `index t = 0`
    anything else                 passes through at once, every byte of it

A device that cannot write records prints them; what else is printed meanwhile is nobody's log.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.locks import Locked
from ..codegen import records

_MARK = records.MARK.encode()
_LINE = re.compile(rb"!@#(\d{1,18}): (.*)", re.S)
_BEGINNING = re.compile(rb"!(@(#(\d{1,18}(:( .*)?)?)?)?)?", re.S)
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class PrintingRun:
    """A run that prints: its number, and the lines of it that came."""

    number: int
    lines: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """What each of its lines has to begin with."""
        return f"{records.MARK}{self.number}: "


class Printed(Locked):
    """Reads the standard output of the process while runs need that; any number of threads may."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[int, PrintingRun] = {}
        self._last = 0
        self._reader: _Reader | None = None

    @contextmanager
    def run(self) -> Iterator[PrintingRun]:
        """Yield a run that may print; behind the `with` all of its lines are there.

        What it prints has to be on its way when the `with` ends: synchronize before.
        """
        with self._lock:
            self._last += 1
            number, run = self._last, PrintingRun(self._last)
            self._runs[number] = run
            if self._reader is None:
                self._reader = _Reader(self._taken)
        try:
            yield run
        finally:
            with self._lock:
                reader = self._reader
                assert reader is not None, "somebody reads while there are runs"
                if len(self._runs) == 1:
                    self._reader = None
                    reader.stop()
                else:
                    reader.settle()
                del self._runs[number]

    def _taken(self, line: bytes) -> bool:
        """Give a line to the run that printed it; return whether there is one."""
        found = _LINE.fullmatch(line)
        run = None if found is None else self._runs.get(int(found[1]))
        if found is None or run is None:
            return False
        run.lines.append(found[2].decode(errors="replace"))
        return True


class Splitter:
    """Tells lines of runs from everything else, as it comes in pieces of any size."""

    def __init__(self, taken: Callable[[bytes], bool]) -> None:
        self._taken = taken
        self._held = b""

    def given(self, data: bytes) -> bytes:
        """Return what passes through now; the beginning of what may be a run's line is held."""
        data, out = self._held + data, []
        while data:
            at = data.find(_MARK[:1])
            if at:
                out.append(data if at < 0 else data[:at])
                data = b"" if at < 0 else data[at:]
                continue
            line, end, rest = data.partition(b"\n")
            if not _BEGINNING.fullmatch(line):
                out.append(data[:1])
                data = data[1:]
            elif not end:
                break
            else:
                if not self._taken(line):
                    out.append(line + end)
                data = rest
        self._held = data
        return b"".join(out)

    def rest(self) -> bytes:
        """Return what was held and never became a line."""
        held, self._held = self._held, b""
        return held


class _Reader:
    """A thread between the standard output and where it led before."""

    def __init__(self, taken: Callable[[bytes], bool]) -> None:
        _flush()
        self._split = Splitter(taken)
        self._kept = os.dup(1)
        self._from, into = os.pipe()
        os.dup2(into, 1)
        os.close(into)
        self._asked, self._ask = os.pipe()
        self._settled = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._read, name="printed", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait until everything that was printed so far is read."""
        _flush()
        os.write(self._ask, b"s")
        self._settled.acquire()

    def stop(self) -> None:
        """Put the standard output back when everything is read."""
        _flush()
        os.dup2(self._kept, 1)
        os.write(self._ask, b"e")
        self._thread.join()
        for one in (self._kept, self._from, self._asked, self._ask):
            os.close(one)

    def _read(self) -> None:
        """Read until asked to stop: children of the process may keep the pipe open for ever."""
        while True:
            ready, _, _ = select.select((self._from, self._asked), (), ())
            if self._asked not in ready:
                self._pass(self._split.given(os.read(self._from, _CHUNK)))
                continue
            what = os.read(self._asked, 1)
            while select.select((self._from,), (), (), 0)[0]:
                data = os.read(self._from, _CHUNK)
                if not data:
                    break
                self._pass(self._split.given(data))
            if what == b"e":
                self._pass(self._split.rest())
                return
            self._settled.release()

    def _pass(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._kept, data) :]


def _flush() -> None:
    """Have Python and the C library write what they still hold back."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
