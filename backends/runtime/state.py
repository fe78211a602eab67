"""The one object that outlives calls: which backends are in use, and what they did so far."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from ...base import float_modes, settings
from ...base.cached_property import once
from ...base.diagnostic import CdBackendError, Diagnostic
from ...base.lazy_import import Later
from .. import registry

if TYPE_CHECKING:
    from ...lowering.ir.assignments import Procedure
    from .. import interface
    from ..cache import cache
    from ..cache.cache import Cache
    from ..interface import Array, Backend, Code
    from . import failure, queue
    from .queue import Worker
    from .timeline import Timeline
else:
    cache, interface = Later("..cache.cache", __package__), Later("..interface", __package__)
    failure, queue = Later(".failure", __package__), Later(".queue", __package__)

Step = Callable[[], Any]


class Recorder(Protocol):
    """What keeps the records of what runs, while a trace is taken."""

    def step(
        self, codes: Recordable, arrays: Sequence[Array], title: tuple[str, str, str]
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the run of code that records on arrays for its parameters; its place among all
        runs is the one that it has now. The title is a name, a backend and a stream."""


class Recordable(Protocol):
    """What can be compiled so that it records."""

    @property
    def procedure(self) -> Procedure:
        """What is compiled."""

    def on(self, backend: str) -> Code:
        """Return the code for a backend, which records nothing."""

    def recording(self, wanted: Any, backend: str) -> Any:
        """Return the code that records what is wanted, for a backend."""

    @property
    def read(self) -> frozenset[int]:
        """The positions of the parameters of which a call reads what they hold before it."""


class Scheduling:
    """The lock that is held while it is decided what waits for what; never while work runs.

    `taken` counts how often it was taken with `with`: as long as it stays the same, nobody but
    steps that are run at once, see `direct`, has changed anything that an order depends on.
    """

    __slots__ = ("acquire", "direct", "release", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self.renew()

    def renew(self) -> None:
        """Become a new lock; in a forked child a thread that is not there may hold the old one."""
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release
        self.taken += 1
        self.direct: queue.Event | None = None
        """Of the last step of all that was run at once."""

    def __enter__(self) -> None:
        self.acquire()
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.release()


class Runtime:
    """The backends in use and counts of what was compiled. Any number of threads may use it."""

    def __init__(self) -> None:
        self.scheduling = Scheduling()
        self._backends: dict[str, Backend] = {}
        self._begun: dict[str, Backend] = {}
        """Those that will be asked for soon; whether they can be used is not known."""
        self.devices: dict[tuple[str, int], Any] = {}
        """The devices that were asked for, by backend and number."""
        self.workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        """Those of all streams, also of streams that were collected while they worked."""
        self.watching: list[object] = []
        """What has to see every call; while it is empty, a call may take the short way."""
        self.timeline: Timeline | None = None
        """Where what runs is noted, while a profile is taken; see `note`."""
        self._recorders: tuple[Recorder, ...] = ()
        self.is_recording = False
        """Whether a trace is taken."""
        self.logger: Callable[[], Recorder] | None = None
        """Returns what writes logs, where the setting `debug_log_from_routines` asks for them."""
        self._counts: Counter[tuple[str, int]] = Counter()
        """How many procedures came from where, by the thread that counted them: without a lock,
        which a finalizer that compiles would wait for."""
        atexit.register(self._finish)
        os.register_at_fork(after_in_child=self._after_fork)

    @once
    def disk(self) -> Cache:
        """What is on disk, for all that is no backend."""
        return cache.Cache()

    def _watch(self) -> None:
        timelines = () if self.timeline is None else (self.timeline,)
        self.watching[:] = (*self._recorders, *timelines)

    def backend(self, name: str | None = None) -> Backend:
        """Return the backend of a name, or of the settings; the same instance every time.

        A number may follow, `cuda:1`, which tells the device. Raises CdBackendError CD0801 where
        there is none, and what says why it cannot run here.
        """
        name = name or settings.current().backend
        found = self._backends.get(name)
        if found is not None:
            return found
        base, _, number = name.partition(":")
        if number.isdecimal():
            made = self.backend(base)
            made = made.on(int(number)) if isinstance(made, interface.HasDevices) else made
        else:
            made = self._begun.get(name) or registry.get(name)
        if why := made.unavailable():
            raise why
        return self._backends.setdefault(name, made)

    def begin(self, name: str) -> None:
        """Have a backend begin what it needs its time for, beside what is done next."""
        if name in self._backends:
            return
        made = self._begun.setdefault(name, registry.get(name))
        begin = getattr(made, "begin", None)  # of `interface.Begins`, which takes 5 ms to import
        if begin is not None:
            begin()

    def require(self, name: str) -> None:
        """Raise CdBackendError CD0801 where no backend has that name; a number may follow it."""
        base, _, number = name.partition(":")
        base = base if number.isdecimal() else name
        if name not in self._backends and base not in self._backends:
            registry.require(base)

    def recording(self, logged: bool) -> Recorder | None:
        """Return what keeps the records of a run that begins now, None where nothing does."""
        recorders = self._recorders
        if recorders or not logged:
            return recorders[-1] if recorders else None
        return None if self.logger is None else self.logger()

    def note(self, timeline: Timeline | None) -> None:
        """Have a timeline note what runs from now on, or nothing; any thread may change it."""
        with self.scheduling:
            self.timeline = timeline
            self._watch()

    def record(self, recorder: Recorder) -> None:
        """Have runs recorded from now on, by this recorder until another one comes."""
        with self.scheduling:
            self._recorders = (*self._recorders, recorder)
            self.is_recording = True
            self._watch()

    def stop_recording(self, recorder: Recorder) -> None:
        """Have a recorder get no more runs; the one before it goes on, if there is one."""
        with self.scheduling:
            self._recorders = tuple(one for one in self._recorders if one is not recorder)
            self.is_recording = bool(self._recorders)
            self._watch()

    def compile(self, procedure: Procedure, backend: str | None = None) -> Code:
        """Return code for a procedure, from memory or disk where it was compiled before."""
        (code,) = self.compile_all((procedure,), backend)
        return code

    @float_modes.default()
    def compile_all(
        self, procedures: Sequence[Procedure], backend: str | None = None
    ) -> Sequence[Code]:
        """Return code for several procedures, made as one where the backend can do that."""
        if not procedures:
            return ()
        made, timeline = self.backend(backend), self.timeline
        name = f"compile {', '.join(procedure.name for procedure in procedures)}"
        with nullcontext() if timeline is None else timeline.here(name, "compile"):
            if len(procedures) > 1 and isinstance(made, interface.CompilesTogether):
                codes = made.compile_all(procedures)
            else:
                codes = [made.compile(procedure) for procedure in procedures]
        for code in codes:
            self.count(code.origin)
        return codes

    def count(self, origin: str) -> None:
        """Count a procedure that came from somewhere."""
        self._counts[origin, threading.get_ident()] += 1

    def timed(self, name: str, kind: str, where: str, run: Step) -> Step:
        """Return a step that is about to be queued; while a profile is taken, one that tells."""
        timeline = self.timeline
        return run if timeline is None else timeline.timed(name, kind, where, run)

    def counts(self) -> dict[str, int]:
        """Return how many procedures came from where: `compiled`, `disk`, `memory`, ..."""
        found: Counter[str] = Counter()
        for (origin, _), count in list(self._counts.items()):
            found[origin] += count
        return dict(found)

    def _after_fork(self) -> None:
        """Replace the locks: in the parent a thread that the child lacks may hold them."""
        self.scheduling.renew()
        given = given_up()  # the same one for all: it is told once
        for worker in list(self.workers):
            worker.after_fork(given)
        for backend in {**self._begun, **self._backends}.values():
            backend.after_fork()

    def _finish(self) -> None:
        """Let work in flight end before the process does: it uses memory that goes with it."""
        for worker in list(self.workers):
            found = worker.drain()
            if found is not None:
                found.say()


def given_up() -> failure.Failure:
    """Return the failure of work that a forked child does not do."""
    what = "what the parent of this process had queued is not done here"
    helps = ("call `device.synchronize()` before the process forks",)
    return failure.Failure(CdBackendError(Diagnostic("CD0841", what, helps=helps)), quiet=True)


RUNTIME = Runtime()
"""The process's own. The only state of the package beside the settings."""
