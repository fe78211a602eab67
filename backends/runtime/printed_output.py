"""Capture of device prints: lines of runs are filtered out of the process's standard output.

    !@#12: index t = 0            a line that run 12 printed: it receives `index t = 0`
    anything else                 is passed through immediately and unchanged

For devices that cannot write records to memory and print them instead.
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
from ...base.locks import ReentrantLock
from ..codegen import records

_MARK = records.PRINT_PREFIX.encode()
_LINE = re.compile(rb"!@#(\d{1,18}): (.*)", re.S)
_BEGINNING = re.compile(rb"!(@(#(\d{1,18}(:( .*)?)?)?)?)?", re.S)
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class PrintingRun:
    """A run that prints: its number, and the lines received from it."""

    number: int
    lines: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """The prefix of each of its lines."""
        return f"{records.PRINT_PREFIX}{self.number}: "


class PrintCapture(ReentrantLock):
    """Reads the standard output of the process while there are runs; thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[int, PrintingRun] = {}
        self._last = 0
        self._reader: _Reader | None = None

    @contextmanager
    def run(self) -> Iterator[PrintingRun]:
        """Yield a run that may print; after the `with` all of its lines have been received.

        Precondition: the device is synchronized before the `with` ends.
        """
        with self._lock:
            self._last += 1
            number, run = self._last, PrintingRun(self._last)
            self._runs[number] = run
            if self._reader is None:
                self._reader = _Reader(self._deliver)
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

    def _deliver(self, line: bytes) -> bool:
        """Append a line to the run that printed it; return whether there is one."""
        match = _LINE.fullmatch(line)
        run = None if match is None else self._runs.get(int(match[1]))
        if match is None or run is None:
            return False
        run.lines.append(match[2].decode(errors="replace"))
        return True


class Splitter:
    """Separates lines of runs from other output, which arrives in blocks of any size."""

    def __init__(self, taken: Callable[[bytes], bool]) -> None:
        self._deliver = taken
        self._buffer = b""

    def given(self, data: bytes) -> bytes:
        """Return the output to pass through; the prefix of a possible run's line is buffered."""
        data, passed = self._buffer + data, []
        while data:
            start = data.find(_MARK[:1])
            if start:
                passed.append(data if start < 0 else data[:start])
                data = b"" if start < 0 else data[start:]
                continue
            line, newline, rest = data.partition(b"\n")
            if not _BEGINNING.fullmatch(line):
                passed.append(data[:1])
                data = data[1:]
            elif not newline:
                break
            else:
                if not self._deliver(line):
                    passed.append(line + newline)
                data = rest
        self._buffer = data
        return b"".join(passed)

    def rest(self) -> bytes:
        """Return and clear the buffered incomplete line."""
        incomplete, self._buffer = self._buffer, b""
        return incomplete


class _Reader:
    """A thread that filters the standard output through a pipe."""

    def __init__(self, taken: Callable[[bytes], bool]) -> None:
        _flush()
        self._splitter = Splitter(taken)
        self._original_fd = os.dup(1)
        self._pipe_fd, write_fd = os.pipe()
        os.dup2(write_fd, 1)
        os.close(write_fd)
        self._request_fd, self._requester_fd = os.pipe()
        self._drained = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._read, name="printed", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait until everything printed so far has been read."""
        _flush()
        os.write(self._requester_fd, b"s")
        self._drained.acquire()

    def stop(self) -> None:
        """Restore the standard output after everything has been read."""
        _flush()
        os.dup2(self._original_fd, 1)
        os.write(self._requester_fd, b"e")
        self._thread.join()
        for fd in (self._original_fd, self._pipe_fd, self._request_fd, self._requester_fd):
            os.close(fd)

    def _read(self) -> None:
        """Read until asked to stop: child processes may keep the pipe open indefinitely."""
        while True:
            ready, _, _ = select.select((self._pipe_fd, self._request_fd), (), ())
            if self._request_fd not in ready:
                self._write(self._splitter.given(os.read(self._pipe_fd, _CHUNK)))
                continue
            request = os.read(self._request_fd, 1)
            while select.select((self._pipe_fd,), (), (), 0)[0]:
                data = os.read(self._pipe_fd, _CHUNK)
                if not data:
                    break
                self._write(self._splitter.given(data))
            if request == b"e":
                self._write(self._splitter.rest())
                return
            self._drained.release()

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._original_fd, data) :]


def _flush() -> None:
    """Flush the buffers of Python and of the C library."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
