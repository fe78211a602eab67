"""Opened devices: streams, synchronization between them, transfers, and errors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...base.diagnostic import NOWHERE, CdBackendError, Diagnostic, Label, Span
from ..captures import NotCapturable
from ..interface import Array
from .driver_protocol import Context, DriverError, Handle, Properties
from .graphs import Graphs
from .memory_pool import MemoryPool
from .staging import StagingPool, Transfers


class OpenedDevice:
    """A device in use; thread-safe.

    Plain calls share one stream, so that they are in order: the results of one, and the memory that
    it frees, can be used by the next without waiting.
    """

    def __init__(self, context: Context, properties: Properties, ordinal: int) -> None:
        self.context = context
        self.properties = properties
        self.ordinal = ordinal
        self._lock = threading.RLock()
        self._plain: Handle | None = None
        self._events: dict[int, tuple[Handle, Handle]] = {}
        """Each stream with its event, which is recorded for queries and waits."""
        self.spare: list[Handle] = []
        """Streams for reuse; finalizers may append at any point."""
        self._unsettled: dict[str, None] = {}
        """The names of runs that were queued and not waited for, since the device was last idle."""
        self.lost = False
        """Whether this process is a fork of the one that opened it."""
        self.pool = MemoryPool(context, self.name, self.after)
        self.staging = StagingPool(context)
        self.graphs = Graphs(context)
        self.condition_kernels: Callable[[], tuple[Handle, Handle]] = _no_kernels
        """Returns the kernels that set conditions of graphs, of loops and of branches."""

    @property
    def name(self) -> str:
        """Its name: `cuda:0`."""
        return f"cuda:{self.ordinal}"

    def stream(self) -> Handle:
        """Return a stream with an event: an idle spare one, or else a new one.

        Streams are never destroyed, as free blocks of the pool refer to the stream of their last
        use.
        """
        with self._lock:
            for spare in list(self.spare):
                if self.is_idle(spare):
                    self.spare.remove(spare)
                    return spare
            stream, event = self.context.stream(), self.context.event()
            self._events[id(stream)] = stream, event
            return stream

    @property
    def plain(self) -> Handle:
        """The stream of plain calls."""
        with self._lock:
            if self._plain is None:
                self._plain = self.stream()
            return self._plain

    @contextmanager
    def working(
        self, name: str, span: Span = NOWHERE, stream: Handle | None = None
    ) -> Iterator[Handle]:
        """Yield a stream for a run of that name; raises CD0884 where the device fails, and CD0882
        in a forked process."""
        if self.lost:
            raise forked_error()
        try:
            yield self.plain if stream is None else stream
        except DriverError as why:
            raise self.failed(name, why, span) from None

    def failed(self, name: str, why: DriverError, span: Span = NOWHERE) -> CdBackendError:
        """Return the error CD0884 of a failed run, or of earlier runs that were not waited for."""
        if self.lost:  # a thread of the parent may hold the lock
            return forked_error()
        with self._lock:
            pending_names = [f"`{pending}`" for pending in self._unsettled if pending != name]
            self._unsettled.clear()
        return failure_error(name, self.name, why, span, pending_names)

    def record_unwaited(self, name: str) -> None:
        """Record a run that is queued and not waited for."""
        with self._lock:
            self._unsettled[name] = None

    def wait(self, stream: Handle) -> None:
        """Wait for everything queued on a stream."""
        _, event = self._events[id(stream)]
        with self._lock:
            self.context.record(event, stream)
            names = list(self._unsettled)
        self.context.synchronize(event)
        if stream is self._plain:
            with self._lock:
                for name in names:
                    self._unsettled.pop(name, None)

    def is_idle(self, stream: Handle) -> bool:
        """Whether everything queued on a stream is done."""
        _, event = self._events[id(stream)]
        with self._lock:
            self.context.record(event, stream)
            return self.context.query(event)

    def after(self, stream: Handle, producer: Handle) -> None:
        """Make a stream wait for the work queued so far on another one, asynchronously."""
        if stream is not producer:
            _, event = self._events[id(producer)]
            with self._lock:
                self.context.record(event, producer)
                self.context.wait(stream, event)

    # ------------------------------------------------------------------------- copies

    def transfers(self, stream: Handle) -> Transfers:
        """Return transfers between host and device in the order of a stream."""
        return Transfers(self.staging, stream, lambda: self.wait(stream))

    def upload(self, address: int, array: Array, stream: Handle) -> None:
        """Queue a copy of an array in C order to the device."""
        if array.nbytes:
            self.context.upload(address, array, stream)

    def download(self, array: Array, address: int, stream: Handle) -> None:
        """Queue a copy from the device into an array in C order."""
        if array.nbytes:
            self.context.download(array, address, stream)

    def copy(self, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy within the device."""
        if size:
            self.context.copy(address, source, size, stream)

    def show(self, text: str) -> None:
        """Print text to Python's current standard output."""
        sys.stdout.write(text)


def unusable_error(message: str, help_: str) -> CdBackendError:
    """Return the error CD0882: no device can be used here."""
    return CdBackendError(Diagnostic("CD0882", message, helps=(help_, 'backend="cc" needs none')))


def forked_error() -> CdBackendError:
    """Return the error CD0882 of a process that was forked."""
    return unusable_error(
        "a forked process cannot use the devices of its parent",
        'start processes with `multiprocessing.get_context("spawn")`',
    )


def failure_error(
    name: str,
    device: str,
    why: DriverError,
    span: Span = NOWHERE,
    pending_names: list[str] | None = None,
) -> CdBackendError:
    """Return the error CD0884 of a device that failed."""
    message = f"`{name}` failed on {device}: {why}"
    notes = (f"before it, and not waited for: {', '.join(pending_names)}",) if pending_names else ()
    labels = () if span is NOWHERE else (Label(span),)
    helps = (
        'run it with `backend="cc"`: what is wrong with the function shows there, too',
        "a device that has failed once may refuse everything until the process starts again",
    )
    return CdBackendError(Diagnostic("CD0884", message, labels, notes, helps))


def _no_kernels() -> tuple[Handle, Handle]:
    """Raise NotCapturable: a backend that has these kernels sets them."""
    raise NotCapturable("has no kernels for loops and branches of graphs")
