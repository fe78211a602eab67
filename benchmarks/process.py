"""A worker as its parent sees it: a process that answers, or does not."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

LIMIT = 600.0
"""Seconds that one answer may take; compiling is the longest of them."""
PATIENCE = 20.0
"""Seconds that a process may take to end."""


class Died(Exception):
    """The process ended, or did not answer in time; says which."""


class LeftOut(Exception):
    """The peer does not do this; says why."""


class Process:
    """A worker of one peer. Ends with the `with` block that it is used in.

    Between the answers the system does not run it: some libraries let their threads spin for long
    after a call, on the processors that the next peer is measured on.
    """

    def __init__(
        self, python: Path, peer: str, threads: int, variables: Mapping[str, str], log: Path,
        kept: bool = False,
    ) -> None:  # fmt: skip
        self.peer = peer
        self._log = log
        command = [str(python), "-m", "benchmarks.worker", peer, str(threads)]
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, *(["--kept"] if kept else [])], env=dict(variables), stderr=said,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=variables["PYTHONPATH"],
            )  # fmt: skip
        self._held = b""
        try:
            self.hello = self._answer(LIMIT)
        except Died:
            self.close()
            raise

    def ask(self, do: str, limit: float = LIMIT, **request: Any) -> dict[str, Any]:
        """Return the answer to a request. Raises Died, and LeftOut where the peer says so."""
        line = json.dumps({"do": do, **request}) + "\n"
        assert self._process.stdin is not None, "it was opened as a pipe"
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:
            raise Died(self._last_words()) from None
        answer = self._answer(limit)
        self._rest()
        for problem in ("left_out", "error"):
            if problem in answer:
                raise LeftOut(answer[problem])
        return answer

    @property
    def number(self) -> int:
        """What the system calls the process."""
        return self._process.pid

    def close(self) -> None:
        """End the process, and return when it has ended.

        It has some time to end as any program does: what is put on disk then counts later.
        """
        assert self._process.stdin and self._process.stdout, "they were opened as pipes"
        self._process.send_signal(signal.SIGCONT)
        with suppress(OSError):  # it is gone already
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def _rest(self) -> None:
        """Stop the process, and return when it has stopped or ended."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.number, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self._process.stdout is not None, "it was opened as a pipe"
        end = time.monotonic() + limit
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._held:
                if not waiting.select(max(0.0, end - time.monotonic())):
                    self._process.kill()
                    raise Died(f"no answer in {limit:.0f} seconds")
                more = os.read(self._process.stdout.fileno(), 1 << 16)
                if not more:
                    raise Died(self._last_words())
                self._held += more
        line, self._held = self._held.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        status = self._process.wait()
        said = self._log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        return f"the process ended with status {status}: {said[-1][:300]}"
