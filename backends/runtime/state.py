"""Process state of the run time: backends in use, workers, recorders, counts of compilations."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from ...base import float_modes, settings
from ...base.cached_property import cached_property
from ...base.diagnostic import CdBackendError, CdError, Diagnostic, raise_internal_error
from ...base.lazy_import import LazyModule
from ...base.process_state import State, register
from .. import capabilities, registry

if TYPE_CHECKING:
    from ...lowering.ir.assignments import Procedure
    from .. import interface
    from ..cache import cache
    from ..cache.cache import Cache
    from ..direct_calls import CallerLibrary
    from ..interface import Array, Backend, Code
    from . import failure, queue
    from .queue import Holder, Worker
    from .timeline import Timeline
else:
    cache, interface = (
        LazyModule("..cache.cache", __package__),
        LazyModule("..interface", __package__),
    )
    failure, queue = LazyModule(".failure", __package__), LazyModule(".queue", __package__)

Step = Callable[[], Any]


class Recorder(Protocol):
    """An observer that records runs while a trace is taken."""

    def step(
        self, codes: RecordableCode, arrays: Sequence[Array], title: tuple[str, str, str]
    ) -> Callable[[], tuple[Array, ...]]:
        """Return a recording run of code on arrays for its parameters; its position among all runs
        is fixed now. The title is a name, a backend and a stream."""


class PlanRecorder(Protocol):
    """A recorder that takes the calls of a thread for a plan, instead of their being queued."""

    def call(self, routine: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Take a call of a routine; return what it returns."""

    def function(
        self, function: Any, arguments: Mapping[str, Any], backend: str | None
    ) -> tuple[()] | tuple[Any]:
        """Take a call of a function, if it uses tensors: return what the call returns, else ()."""

    def copy(self, field: Any, ends: tuple[Any, Any], source: Any, target: Any) -> None:
        """Take a copy of a field from one of its arrays to another one, between contexts, of which
        None is the host."""

    def merge(self, consumer: Any, field: Any, source: Any, once: bool) -> None:
        """Take the fill of the merge buffer of a routine's stream."""

    def touch(self, label: str) -> None:
        """Take note that the host needs or writes a value now."""

    def settle(self) -> None:
        """Run what was only deferred: what comes now is to see it, or not to see it."""

    def link(self, name: str, fields: Sequence[Any]) -> None:
        """Take note that the routine of a name gets arrays of fields, with their values of now."""


class RecordableCode(Protocol):
    """Code variants that include recording ones."""

    @property
    def procedure(self) -> Procedure:
        """The procedure in the IR."""

    def on(self, backend: str) -> Code:
        """Return the plain code for a backend."""

    def recording(self, wanted: Any, backend: str) -> Any:
        """Return code for a backend that records what is requested."""

    @property
    def read(self) -> frozenset[int]:
        """The positions of the parameters whose initial contents a call reads."""


class SchedulingLock:
    """The lock that guards scheduling decisions; it is never held while work runs.

    It is taken by `with scheduling.lock:` only, which no interrupt can leave locked, as it can a
    method or a generator around it.
    """

    __slots__ = ("decisions", "direct", "lock")

    def __init__(self) -> None:
        self.decisions = 0
        """Advanced by whoever takes the lock to change the state that dependences are derived
        from; while it is unchanged, only steps of fast paths, see `direct`, have changed that."""
        self.renew()

    def renew(self) -> None:
        """Create a new lock: in a forked child a thread of the parent may hold the old one."""
        self.lock = threading.RLock()
        self.decisions += 1
        self.direct: queue.Event | None = None
        """The event of the last step that was run synchronously on a fast path."""


class Runtime:
    """The backends in use and counts of compilations; thread-safe."""

    def __init__(self) -> None:
        self.scheduling = SchedulingLock()
        self._backends: dict[str, Backend] = {}
        self._initializing: dict[str, Backend] = {}
        """Backends being initialized, whose availability has not been checked."""
        self.devices: dict[tuple[str, int], Any] = {}
        """The devices in use, by backend and number."""
        self.workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        """The workers of all streams, also of streams collected before their work ended."""
        self.holds: list[Holder] = []
        """The uses of arrays by foreign code; see `hazards.Hold`."""
        self.watching: list[object] = []
        """Observers of every call; while it is empty, a call may take the fast path."""
        self.timeline: Timeline | None = None
        """The timeline that runs are added to, while a profile is taken; see `note`."""
        self.planning: dict[int, PlanRecorder] = {}
        """The recorders of plans, by the thread whose calls they take."""
        self._recorders: tuple[Recorder, ...] = ()
        self.is_recording = False
        """Whether a trace is taken."""
        self.logger: Callable[[], Recorder] | None = None
        """Returns the recorder of logs, for the setting `debug_log_from_routines`."""
        self._counts: Counter[tuple[str, int]] = Counter()
        """Counts of procedures by origin and by the counting thread: without a lock, on which a
        finalizer that compiles could deadlock."""
        atexit.register(self._finish)

    @cached_property
    def disk_cache(self) -> Cache:
        """The persistent cache, for clients other than backends."""
        return cache.Cache()

    def _update_observers(self) -> None:
        timelines = () if self.timeline is None else (self.timeline,)
        self.watching[:] = (*self._recorders, *timelines, *self.planning.values())

    def plan(self, recorder: PlanRecorder | None) -> None:
        """Let a recorder take the calls of this thread from now on; None: nobody does."""
        with self.scheduling.lock:
            self.scheduling.decisions += 1
            if recorder is None:
                self.planning.pop(threading.get_ident(), None)
            else:
                self.planning[threading.get_ident()] = recorder
            self._update_observers()

    def planned(self) -> PlanRecorder | None:
        """Return the recorder that takes the calls of this thread, if any."""
        return self.planning.get(threading.get_ident()) if self.planning else None

    def settle(self) -> None:
        """Run what this thread has deferred."""
        if recorder := self.planned():
            recorder.settle()

    def backend(self, name: str | None = None) -> Backend:
        """Return the backend of a name, or that of the settings; always the same instance.

        A device number may follow: `cuda:1`. Raises CdBackendError CD0801 for an unknown name, and
        the error of `unavailable` where it cannot run here.
        """
        name = name or settings.current().backend
        instance = self._backends.get(name)
        if instance is not None:
            return instance
        base, _, number = name.partition(":")
        if number.isdecimal():
            instance = self.backend(base)
            instance = (
                instance.on(int(number)) if isinstance(instance, interface.HasDevices) else instance
            )
        else:
            instance = self._initializing.get(name) or registry.get(name)
        if why := instance.unavailable():
            raise why
        return self._backends.setdefault(name, instance)

    def peek(self, name: str) -> Backend:
        """Return a backend for a look at what it can do: whether it can run is not known yet.

        Of one for a device (`cuda:1`), that for all of them. Raises CdBackendError CD0801.
        """
        base = _base_name(name)
        backend = self._backends.get(base) or self._initializing.get(base)
        return backend or self._initializing.setdefault(base, registry.get(base))

    def load_caller(self, wait: bool = True) -> CallerLibrary | None:
        """Return the library of the fast path, loaded or, unless `wait`, perhaps on its way; None
        where there is none. Raises CdBackendError."""
        backend = capabilities.caller_library(self.backend(registry.CALLER))
        if backend is None:
            return None
        backend.load_caller(self.watching, wait)
        return backend.fast_path

    def begin(self, name: str) -> None:
        """Start the initialization of a backend asynchronously."""
        if name in self._backends:
            return
        backend = self.peek(name)
        begin = getattr(backend, "begin", None)  # of `interface.Begins`, whose import takes 5 ms
        if begin is not None:
            begin()

    def require(self, name: str) -> None:
        """Raise CdBackendError CD0801 for an unknown backend; a device number may follow it."""
        base = _base_name(name)
        if name not in self._backends and base not in self._backends:
            registry.require(base)

    def recording(self, logged: bool) -> Recorder | None:
        """Return the recorder of a run that starts now, None where there is none."""
        recorders = self._recorders
        if recorders or not logged:
            return recorders[-1] if recorders else None
        return None if self.logger is None else self.logger()

    def note(self, timeline: Timeline | None) -> None:
        """Set the timeline that runs are added to from now on, or None; thread-safe."""
        with self.scheduling.lock:
            self.scheduling.decisions += 1
            self.timeline = timeline
            self._update_observers()

    def record(self, recorder: Recorder) -> None:
        """Push a recorder, which records runs from now on."""
        with self.scheduling.lock:
            self.scheduling.decisions += 1
            self._recorders = (*self._recorders, recorder)
            self.is_recording = True
            self._update_observers()

    def stop_recording(self, recorder: Recorder) -> None:
        """Remove a recorder; the one below it, if any, records again."""
        with self.scheduling.lock:
            self.scheduling.decisions += 1
            self._recorders = tuple(active for active in self._recorders if active is not recorder)
            self.is_recording = bool(self._recorders)
            self._update_observers()

    def compile(self, procedure: Procedure, backend: str | None = None) -> Code:
        """Return code for a procedure, from the memory or disk cache where it is there."""
        (code,) = self.compile_all((procedure,), backend)
        return code

    @float_modes.default()
    def compile_all(
        self, procedures: Sequence[Procedure], backend: str | None = None
    ) -> Sequence[Code]:
        """Return code for several procedures, compiled together where the backend supports it.

        Raises what the backend does, CdInternalError CD0904 for any other exception in it.
        """
        if not procedures:
            return ()
        instance, timeline = self.backend(backend), self.timeline
        names = ", ".join(procedure.name for procedure in procedures)
        with nullcontext() if timeline is None else timeline.here(f"compile {names}", "compile"):
            try:
                if len(procedures) > 1 and isinstance(instance, interface.CompilesTogether):
                    codes = instance.compile_all(procedures)
                else:
                    codes = [instance.compile(procedure) for procedure in procedures]
            except (CdError, MemoryError, OSError, ImportError, SystemError):
                raise  # also for want of memory, descriptors or space
            except Exception as problem:
                raise_internal_error(f"compiling `{names}`", problem)
        for code in codes:
            self.count(code.origin)
        return codes

    def count(self, origin: str) -> None:
        """Count a procedure by its origin."""
        self._counts[origin, threading.get_ident()] += 1

    def timed(self, name: str, kind: str, where: str, run: Step) -> Step:
        """Return a step to be queued, which adds itself to the timeline of a profile, if any."""
        timeline = self.timeline
        return run if timeline is None else timeline.timed(name, kind, where, run)

    def counts(self) -> dict[str, int]:
        """Return counts of procedures by origin: `compiled`, `disk`, `memory`, ..."""
        counts: Counter[str] = Counter()
        for (origin, _), count in list(self._counts.items()):
            counts[origin] += count
        return dict(counts)

    def reset(self) -> None:
        """Wait for work in flight, end what observes calls, and forget the counts.

        Backends and devices stay, as arrays and compiled code of theirs may be in use.
        """
        for worker in list(self.workers):
            worker.drain()  # what failed is raised where it is waited for
        with self.scheduling.lock:
            self.scheduling.decisions += 1
            self.timeline, self._recorders, self.is_recording = None, (), False
            self.planning.clear()
            self._update_observers()
        self._counts.clear()

    def after_fork(self) -> None:
        """Replace the locks: threads of the parent may hold them."""
        self.scheduling.renew()
        worker_failure = fork_failure()  # one for all: it is reported once
        for worker in list(self.workers):
            worker.after_fork(worker_failure)
        for backend in {**self._initializing, **self._backends}.values():
            backend.after_fork()

    def _finish(self) -> None:
        """Wait for work in flight at exit: it uses memory of the process."""
        for worker in list(self.workers):
            worker_failure = worker.drain()
            if worker_failure is not None:
                worker_failure.say()


def _base_name(name: str) -> str:
    """Return the name of a backend without the number of a device."""
    base, _, number = name.partition(":")
    return base if number.isdecimal() else name


def fork_failure() -> failure.Failure:
    """Return the failure of the parent's queued work in a forked child."""
    message = "what the parent of this process had queued is not done here"
    helps = ("call `device.synchronize()` before the process forks",)
    return failure.Failure(CdBackendError(Diagnostic("CD0841", message, helps=helps)), quiet=True)


RUNTIME = Runtime()
"""The instance of the process."""
register(
    lambda: State(
        name="backends in use, devices, workers of streams, holds, what observes calls, counts",
        owner=__name__,
        holders=("RUNTIME",),
        lock="the lock of scheduling; backends: one `setdefault` each",
        in_child="locks are renewed, queued work fails, backends forget what a child cannot use",
        on_reset="work is waited for, nothing observes calls, counts begin at 0; the rest is kept",
        after_fork=RUNTIME.after_fork,
        reset=RUNTIME.reset,
    )
)
