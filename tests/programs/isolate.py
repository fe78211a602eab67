"""A function in a process of its own: a crash of compiled code is an answer like any other."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

_FORK = multiprocessing.get_context("fork")
_SPAWN = multiprocessing.get_context("spawn")


class Crashed(Exception):
    """The process ended by a signal, or ran out of time."""


class Child:
    """A call in a process of its own: a fork, or a `new` interpreter."""

    def __init__(self, function: Callable[..., Any], *args: Any, new: bool = False) -> None:
        context = _SPAWN if new else _FORK
        self.out, inside = context.Pipe(duplex=False)
        self.process = context.Process(target=_inside, args=(inside, function, args))
        self.process.start()
        inside.close()

    def result(self, timeout: float = 120.0) -> Any:
        """Return what the function returns. Raises Crashed."""
        try:
            if not self.out.poll(timeout):
                self.process.kill()
                raise Crashed(f"no answer after {timeout:g} seconds")
            return self.out.recv()
        except EOFError:
            self.process.join()
            raise Crashed(_ended(self.process.exitcode)) from None
        finally:
            self.process.join()
            self.out.close()


def first_ready(children: list[Child]) -> Child:
    """Return a child that has an answer or has ended; waits for it."""
    ready = wait([child.out for child in children], timeout=120.0)
    return next((child for child in children if child.out in ready), children[0])


def _inside(out: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    out.send(function(*args))


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
