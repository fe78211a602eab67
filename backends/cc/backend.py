"""The backend `cc`: any C compiler, its code kept in memory while used and on disk for later."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ...base import garbage_collector, settings
from ...base.diagnostic import CdBackendError, Diagnostic
from ...base.lazy_import import Later
from ...base.locks import Locked
from ..cache.cache import Cache, Entry, content_key
from . import toolchain
from .compiler import Ahead, Trial, built, flags
from .cpu_info import processors, target
from .fast_call import ShortWay
from .loader import Broken, Library
from .toolchain import Toolchain

if TYPE_CHECKING:
    from ...lowering import lower, pipeline
    from ...lowering.ir import verify
    from ...lowering.ir.assignments import Procedure
    from .. import dump
    from ..codegen import c_printer, names, translation_units
    from ..codegen import source as texts
    from ..codegen.source import Source
    from ..interface import Origin
    from . import code, probe, thread_pool
else:  # what only compiling needs
    lower, pipeline = (
        Later("...lowering.lower", __package__),
        Later("...lowering.pipeline", __package__),
    )
    verify, dump = Later("...lowering.ir.verify", __package__), Later("..dump", __package__)
    c_printer, names = (
        Later("..codegen.c_printer", __package__),
        Later("..codegen.names", __package__),
    )
    texts, translation_units = (
        Later("..codegen.source", __package__),
        Later("..codegen.translation_units", __package__),
    )
    code, thread_pool = Later(".code", __package__), Later(".thread_pool", __package__)
    probe = Later(".probe", __package__)

_LOCKS = 16
_FILE = "kernel.c"


class CompiledC:
    """Compiles with the C compiler that the settings choose, once for each different text."""

    name = "cc"
    api_version = 1
    """`interface.API_VERSION`, without importing it."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.short_way = ShortWay(self.cache)
        self._toolchains: dict[tuple[str, ...], Toolchain] = {}
        self._inspections: dict[tuple[str, ...], probe.Inspection] = {}
        self._libraries: WeakValueDictionary[str, Library] = WeakValueDictionary()
        self._threads: dict[Library, thread_pool.Threads] = {}
        """The run-time libraries, one for each compiler that was used."""
        self._ahead: dict[str, Ahead] = {}
        """What is compiled before it is asked for, by key."""
        self._guess: Ahead | None = None
        """The run-time library, compiled while nothing is known of the compiler."""
        self._locks = tuple(Locked() for _ in range(_LOCKS))

    def unavailable(self) -> CdBackendError | None:
        """Return why no C can be compiled here, and what to do about it; None where it can."""
        try:
            self.toolchain()
        except CdBackendError as why:
            return why
        return None

    def toolchain(self) -> Toolchain:
        """Return the compiler that the settings choose; raises CdBackendError."""
        command = toolchain.find()
        with self._locks[0].turn():
            found = self._known(command)
            if found is None:
                found = self._toolchains[command] = self._inspected(command)
            return found

    def begin(self) -> None:
        """Have the compiler looked at beside what is done next, where nothing is known of it."""
        with contextlib.suppress(CdBackendError):  # it is raised where it stands in the way
            command = toolchain.find()
            with self._locks[0].turn():
                if self._known(command) is None and command not in self._inspections:
                    self._inspections[command] = probe.Inspection(command, self.cache.scratch())
                    self._begin_guess(command)

    def _begin_guess(self, command: tuple[str, ...]) -> None:
        """Begin to compile the run-time library as a compiler will do that takes what it is asked
        about: a small function is compiled sooner."""
        if self.shares()[0] > 1 and processors() > 1:
            compiler = Toolchain(command, "", "", probe.asked(command), ())
            chosen = flags(compiler, thread_pool.LOADED[1])
            self._guess = Ahead(thread_pool.text(), "threads.c", compiler, chosen, self.cache)

    def prepare(self) -> None:
        """Begin to compile what calls may want, beside the lowering of the first of them, as far
        as there are processors for that; raises CdBackendError."""
        if self.shares()[0] > 1 and settings.current().cache:  # or each process would make its own
            self._begin_threads()
        if processors() > 2:
            self.short_way.begin(self.toolchain)

    def compile(self, procedure: Procedure) -> code.CompiledCode:
        """Return code for the procedure; raises CdBackendError where it cannot be compiled."""
        (code,) = self.compile_all((procedure,))
        return code

    def compile_all(self, procedures: Sequence[Procedure]) -> tuple[code.CompiledCode, ...]:
        """Return code for procedures of one text, which is compiled once; raises CdBackendError."""
        started, called = time.perf_counter(), ", ".join(one.name for one in procedures)
        sources = texts.joined([translate(one) for one in _named_apart(procedures)])
        asks = any(source.asks for source in sources)
        if asks:
            self._begin_threads()
        library, origin = self.load(sources[0], called)
        shared = self.threads() if asks else None
        took = 1000 * (time.perf_counter() - started)
        dump.tell(1, f"plusequals: {called}: cc, {origin}, {took:.1f} ms")
        return tuple(
            code.CompiledCode(
                one.name,
                source,
                tuple(parameter.node for parameter in one.parameters),
                one.results,
                origin,
                library,
                library.function(source.entry),
                shared if source.asks else None,
                self.shares(),
                self.short_way.empty,
            )
            for one, source in zip(procedures, sources, strict=True)
        )

    def threads(self, key: str = "") -> thread_pool.Threads:
        """Return the run-time library, compiled now if need be; raises CdBackendError.

        Under the key that it had when code was made it is found without its text.
        """
        library = self.kept(key, thread_pool.ENTRY) if key else None
        if library is None:
            library, _ = self.load(thread_pool.source(), *thread_pool.LOADED)
        with self._locks[0].turn():
            found = self._threads.get(library)
            if found is None:
                made = thread_pool.Threads(library)
                found = self._threads.setdefault(library, made)
                if found is made:
                    made.start()
            return found

    def shares(self) -> tuple[int, int]:
        """Return among how many threads calls may share loops now, and from how much work on."""
        machine = target()
        return machine.threads, machine.parallel_from

    def load(
        self, source: Source, name: str, optimize: settings.Effort | None = None
    ) -> tuple[Library, Origin]:
        """Return the library of generated text and where it came from; raises CdBackendError."""
        compiler = self.toolchain()
        chosen = flags(compiler, optimize)
        key = _key(source, compiler, chosen)
        with self._lock_of(key).turn() as is_held:
            library = self._libraries.get(key)
            if library is not None:
                return library, "memory"
            library = self._from_disk(key, source.entry)
            origin: Origin = "disk"
            if library is None:
                library, origin = self._made(key, source, name, compiler, chosen, is_held)
            self._libraries[key] = library
            return library, origin

    def _known(self, command: tuple[str, ...]) -> Toolchain | None:
        """Return what is known of a compiler; as long as nothing about it changed, from disk."""
        found = self._toolchains.get(command)
        stamp = None if found is not None else toolchain.stamp(command)
        entry = self.cache.get(content_key(toolchain=stamp)) if stamp else None
        if entry is not None:
            found = self._toolchains[command] = Toolchain.of(entry.metadata)
            if (begun := self._inspections.pop(command, None)) is not None:
                begun.drop()  # another process was sooner
        return found

    def _inspected(self, command: tuple[str, ...]) -> Toolchain:
        """Return what a compiler is, as it says itself."""
        found, stamp = toolchain.twice(lambda: self._asked(command)), toolchain.stamp(command)
        if stamp:
            self.cache.put(content_key(toolchain=stamp), Entry(found.written(), "", b""))
        return found

    def _asked(self, command: tuple[str, ...]) -> Toolchain:
        begun = self._inspections.get(command)
        if begun is not None:  # that of a parent is the parent's
            is_mine = begun.process == os.getpid()
            begun = self._inspections.pop(command, None) if is_mine else None
        if begun is None:
            begun = probe.Inspection(command, self.cache.scratch())
        return begun.ended()

    def kept(self, key: str, entry: str) -> Library | None:
        """Return the library of a key with that entry, from memory or disk; None for none."""
        with self._lock_of(key).turn():
            library = self._libraries.get(key) or self._from_disk(key, entry)
            if library is not None:
                self._libraries[key] = library
            return library

    def _from_disk(self, key: str, name: str) -> Library | None:
        entry = self.cache.get(key)
        if entry is None:
            return None
        try:
            return _loaded(entry.object, name, key)
        except Broken as why:
            dump.tell(
                1, f"plusequals: a cached library could not be loaded, and is made again: {why}"
            )
            return None

    def _begin_threads(self) -> None:
        """Begin to compile the run-time library beside what is done next, where it is not known
        and there is a processor for that."""
        compiler, source = self.toolchain(), thread_pool.source()
        name, optimize = thread_pool.LOADED
        chosen = flags(compiler, optimize)
        key = _key(source, compiler, chosen)
        with self._lock_of(key).turn():
            begun, self._guess = self._guess, None
            known = key in self._libraries or key in self._ahead
            unwanted = known or processors() < 2 or self.cache.get(key) is not None
            if begun is not None and (unwanted or not begun.is_as(compiler)):
                begun.drop()
                begun = None
            if unwanted:
                return

            def keep(code: bytes) -> None:
                if code:
                    self.cache.put(key, _entry(source, name, compiler, code))

            if begun is None:
                begun = Ahead(source.text, "threads.c", compiler, chosen, self.cache)
            begun.keep = keep
            self._ahead[key] = begun

    def _made(
        self,
        key: str,
        source: Source,
        name: str,
        compiler: Toolchain,
        chosen: Sequence[str],
        is_held: bool,
    ) -> tuple[Library, Origin]:
        """Compile, unless another process does: then wait for what it puts on disk.

        A thread that compiles something already, and was interrupted, waits for no process: that
        one may wait for this thread. `is_held` says whether it holds the key's lock.
        """
        is_first = is_held and sum(one.is_own for one in self._locks[1:]) == 1
        with self.cache.building(key) if is_first else contextlib.nullcontext():
            library = self._from_disk(key, source.entry)
            if library is not None:
                return library, "disk"
            made = self._taken(key)
            is_kept = made is not None
            if made is None:
                parts = translation_units.divided(source, processors(), _FILE)

                def compiled() -> bytes:
                    trial = Trial(parts, _FILE, compiler, chosen, self.cache)
                    return built(trial, source.text, name, source.line_map.get)

                made = toolchain.twice(compiled)
            try:
                library = _loaded(made, source.entry, key)
            except Broken as why:
                message = f"what {compiler.name} made of `{name}` cannot be loaded: {why}"
                raise CdBackendError(
                    Diagnostic(
                        "CD0813", message, helps=("the setting `compiler` names another one",)
                    )
                ) from None
            if not is_kept:
                self.cache.put(key, _entry(source, name, compiler, made))
            return library, "compiled"

    def _taken(self, key: str) -> bytes | None:
        """Return what was compiled ahead; None where nothing was, or where that went wrong, as when
        its folder was removed."""
        begun = self._ahead.get(key)
        if begun is None or not begun.is_ours() or self._ahead.pop(key, None) is None:
            return None
        with contextlib.suppress(CdBackendError):
            return begun.ended()[0] or None
        return None

    def _lock_of(self, key: str) -> Locked:
        return self._locks[int(key[:4], 16) % (_LOCKS - 1) + 1]

    def after_fork(self) -> None:
        """Renew the lock of the short way in a forked child: a thread that is not there may hold
        it."""
        self.short_way.after_fork()


def _named_apart(procedures: Sequence[Procedure]) -> Iterator[Procedure]:
    """Yield procedures whose names differ as names of C do."""
    taken: set[str] = set()
    for procedure in procedures:
        name, number = procedure.name, 1
        while names.identifier(name) in taken:
            number += 1
            name = f"{names.identifier(procedure.name)[:40]}_{number}"
        taken.add(names.identifier(name))
        yield replace(procedure, name=name)


@garbage_collector.paused()
def translate(procedure: Procedure) -> Source:
    """Return the C text of a procedure for this machine, showing and checking as settings ask."""
    chosen = settings.current()
    if chosen.verify:
        verify.verify_procedure(procedure)
    program, placement = pipeline.optimize(
        lower.lower(procedure),
        target(),
        dump.observer(procedure.name),
        verify.Verifier() if chosen.verify else None,
        chosen.stop_after,
    )
    source = c_printer.emit(program, placement)
    saved = dump.save(procedure.name, "source.c", source.text)
    if chosen.debug >= 3:
        dump.show_end(procedure.name, program, placement, source.text, saved)
    return source


def _key(source: Source, compiler: Toolchain, chosen: Sequence[str]) -> str:
    return content_key(text=source.text, flags=chosen, compiler=compiler.written())


def _entry(source: Source, name: str, compiler: Toolchain, made: bytes) -> Entry:
    metadata = {"name": name, "entry": source.entry, "compiler": compiler.version}
    return Entry(metadata, source.text, made)


def _loaded(made: bytes, entry: str, key: str) -> Library:
    """Return the library in the bytes if it has the entry. Raises Broken."""
    library = Library(made, entry, key)
    library.function(entry)
    return library
