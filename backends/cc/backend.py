"""C backend: compiles procedures by a C compiler, with caches in memory and on disk."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakValueDictionary

from ...base import garbage_collector, settings
from ...base.diagnostic import CdBackendError, Diagnostic, Span
from ...base.lazy_import import LazyModule
from ...base.locks import ReentrantLock
from ...base.process_state import State, register
from ..cache.cache import Cache, Entry, cache_key
from . import toolchain
from .compiler import AdvanceCompilation, Trial, compile_flags, finish_compilation
from .cpu_info import processors, target, target_inputs
from .fast_call import FastPath
from .loader import Library, LoadError, address_of, int64_array
from .toolchain import Toolchain

if TYPE_CHECKING:
    from ...lowering import lower, pipeline
    from ...lowering.ir import verify
    from ...lowering.ir.assignments import Fault, Procedure
    from ...lowering.target import Target
    from .. import dump
    from ..codegen import c_printer, names, translation_units
    from ..codegen import source as texts
    from ..codegen.source import Source
    from ..interface import Origin
    from . import code, probe, thread_pool
else:  # what only compiling needs
    lower, pipeline = (
        LazyModule("...lowering.lower", __package__),
        LazyModule("...lowering.pipeline", __package__),
    )
    verify, dump = (
        LazyModule("...lowering.ir.verify", __package__),
        LazyModule("..dump", __package__),
    )
    c_printer, names = (
        LazyModule("..codegen.c_printer", __package__),
        LazyModule("..codegen.names", __package__),
    )
    texts, translation_units = (
        LazyModule("..codegen.source", __package__),
        LazyModule("..codegen.translation_units", __package__),
    )
    code, thread_pool = LazyModule(".code", __package__), LazyModule(".thread_pool", __package__)
    probe = LazyModule(".probe", __package__)

_LOCKS = 16
_FILE = "kernel.c"
register(
    lambda: State(
        name="of the backend `cc`: toolchains, compilations in advance, libraries, worker threads",
        owner=__name__,
        lock="locks by key, and that of the fast path; a fork renews them",
        in_child="compilations of the parent are left to it; threads start again at the next call",
        on_reset="kept; tests make a `CompiledC` of their own",
    )
)


class CompiledC:
    """The backend: compiles each distinct text once, by the C compiler of the settings."""

    name = "cc"
    api_version = 1
    """`interface.API_VERSION`, without importing it."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.fast_path = FastPath(self.cache)
        self._toolchains: dict[tuple[str, ...], Toolchain] = {}
        self._inspections: dict[tuple[str, ...], probe.CompilerProbe] = {}
        self._libraries: WeakValueDictionary[str, Library] = WeakValueDictionary()
        self._threads: dict[Library, thread_pool.ThreadPool] = {}
        """The run-time libraries, one per compiler."""
        self._advance: dict[str, AdvanceCompilation] = {}
        """Compilations started in advance, by key."""
        self._guess: AdvanceCompilation | None = None
        """A speculative compilation of the run-time library, before the compiler is probed."""
        self._locks = tuple(ReentrantLock() for _ in range(_LOCKS))

    def unavailable(self) -> CdBackendError | None:
        """Return the error that says why no C can be compiled here, None where it can."""
        try:
            self.toolchain()
        except CdBackendError as why:
            return why
        return None

    def toolchain(self) -> Toolchain:
        """Return the toolchain of the settings; raises CdBackendError."""
        command = toolchain.find_compiler()
        with self._locks[0].turn():
            compiler = self._cached_toolchain(command)
            if compiler is None:
                compiler = self._toolchains[command] = self._probe_toolchain(command)
            return compiler

    def begin(self) -> None:
        """Start probing the compiler asynchronously, unless it is known."""
        with contextlib.suppress(CdBackendError):  # it is raised on first use
            command = toolchain.find_compiler()
            with self._locks[0].turn():
                if self._cached_toolchain(command) is None and command not in self._inspections:
                    self._inspections[command] = probe.CompilerProbe(command, self.cache.scratch())
                    self._begin_guess(command)

    def _begin_guess(self, command: tuple[str, ...]) -> None:
        """Start compiling the run-time library with the flags of a compiler that accepts them all:
        the first call is ready sooner."""
        if self.parallel_limits()[0] > 1 and processors() > 1:
            compiler = Toolchain(command, "", "", probe.probe_flags(command), ())
            all_flags = compile_flags(compiler, thread_pool.LIBRARY_OPTIONS[1])
            self._guess = AdvanceCompilation(
                thread_pool.library_text(), "threads.c", compiler, all_flags, self.cache
            )

    def prepare(self) -> None:
        """Start compiling the libraries that calls may need, concurrently with lowering, as far as
        there are processors; raises CdBackendError."""
        if self.parallel_limits()[0] > 1 and settings.current().cache:  # otherwise once per process
            self._begin_threads()
        if processors() > 2:
            self.fast_path.begin(self.toolchain)

    def load_caller(self, watching: list[object], wait: bool = True) -> type | None:
        """Load the library of the fast path, or start its compilation; return its class of
        callables, None where there is none now; raises CdBackendError."""
        return self.fast_path.wanted(self.toolchain, watching, wait)

    def target(self) -> Target:
        """Return the target description of this machine, under the current settings."""
        return target()

    def code_inputs(self) -> list[object]:
        """Return the compiler, its flags and the processor; raises CdBackendError."""
        compiler = self.toolchain()
        return [compiler.written(), compile_flags(compiler), target_inputs()]

    def restore(
        self, saved: Mapping[str, Any], faults: Callable[[], Sequence[tuple[Fault, Span]]]
    ) -> StoredCall | None:
        """Return code of an earlier process, None where the cache has it no more."""
        try:
            library = self.cached_library(saved["key"], saved["entry"])
            if library is None:
                return None
            pool = self.threads(saved["threads"]) if saved["threads"] else None
            table = None if pool is None else pool.table(*self.parallel_limits())
            return StoredCall(saved, library, pool, table, faults)
        except LoadError:
            return None

    def compile(self, procedure: Procedure) -> code.CompiledCode:
        """Return code for the procedure; raises CdBackendError where it cannot be compiled."""
        (code,) = self.compile_all((procedure,))
        return code

    def compile_all(self, procedures: Sequence[Procedure]) -> tuple[code.CompiledCode, ...]:
        """Return code for procedures, compiled as one text; raises CdBackendError."""
        started, joined_names = (
            time.perf_counter(),
            ", ".join(procedure.name for procedure in procedures),
        )
        sources = texts.merge_sources(
            [translate(procedure) for procedure in _with_distinct_names(procedures)]
        )
        needs_runtime = any(source.asks for source in sources)
        if needs_runtime:
            self._begin_threads()
        library, origin = self.load(sources[0], joined_names)
        runtime = self.threads() if needs_runtime else None
        milliseconds = 1000 * (time.perf_counter() - started)
        dump.debug_print(1, f"plusequals: {joined_names}: cc, {origin}, {milliseconds:.1f} ms")
        return tuple(
            code.CompiledCode(
                procedure.name,
                source,
                tuple(parameter.node for parameter in procedure.parameters),
                procedure.results,
                origin,
                library,
                library.function(source.entry),
                runtime if source.asks else None,
                self.parallel_limits(),
                self.fast_path.empty,
            )
            for procedure, source in zip(procedures, sources, strict=True)
        )

    def threads(self, key: str = "") -> thread_pool.ThreadPool:
        """Return the run-time library, compiled if needed; raises CdBackendError.

        With the key of an earlier process it is loaded from the cache without its text.
        """
        library = self.cached_library(key, thread_pool.ENTRY) if key else None
        if library is None:
            library, _ = self.load(thread_pool.library_source(), *thread_pool.LIBRARY_OPTIONS)
        with self._locks[0].turn():
            existing = self._threads.get(library)
            if existing is None:
                pool = thread_pool.ThreadPool(library)
                existing = self._threads.setdefault(library, pool)
                if existing is pool:
                    pool.start()
            return existing

    def parallel_limits(self) -> tuple[int, int]:
        """Return the number of threads of parallel loops, and their least work."""
        machine = target()
        return machine.threads, machine.parallel_from

    def load(
        self, source: Source, name: str, optimize: settings.Effort | None = None
    ) -> tuple[Library, Origin]:
        """Return the library of generated text and its origin; raises CdBackendError."""
        compiler = self.toolchain()
        all_flags = compile_flags(compiler, optimize)
        key = _key(source, compiler, all_flags)
        with self._lock_of(key).turn() as is_held:
            library = self._libraries.get(key)
            if library is not None:
                return library, "memory"
            library = self._from_disk(key, source.entry)
            origin: Origin = "disk"
            if library is None:
                library, origin = self._build_library(
                    key, source, name, compiler, all_flags, is_held
                )
            self._libraries[key] = library
            return library, origin

    def _cached_toolchain(self, command: tuple[str, ...]) -> Toolchain | None:
        """Return a known toolchain, from memory or, if the compiler is unchanged, from disk."""
        compiler = self._toolchains.get(command)
        stamp = None if compiler is not None else toolchain.fingerprint(command)
        entry = self.cache.get(cache_key(toolchain=stamp)) if stamp else None
        if entry is not None:
            compiler = self._toolchains[command] = Toolchain.of(entry.metadata)
            if (inspection := self._inspections.pop(command, None)) is not None:
                inspection.drop()  # another process was faster
        return compiler

    def _probe_toolchain(self, command: tuple[str, ...]) -> Toolchain:
        """Probe a compiler and cache the result."""
        compiler, stamp = (
            toolchain.retry_once(lambda: self._finish_probe(command)),
            toolchain.fingerprint(command),
        )
        if stamp:
            self.cache.put(cache_key(toolchain=stamp), Entry(compiler.written(), "", b""))
        return compiler

    def _finish_probe(self, command: tuple[str, ...]) -> Toolchain:
        inspection = self._inspections.get(command)
        if inspection is not None:  # one of the parent process must not be used
            is_of_this_process = inspection.process == os.getpid()
            inspection = self._inspections.pop(command, None) if is_of_this_process else None
        if inspection is None:
            inspection = probe.CompilerProbe(command, self.cache.scratch())
        return inspection.ended()

    def cached_library(self, key: str, entry: str) -> Library | None:
        """Return the library of a key, with an entry point, from memory or disk, else None."""
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
            return _load_library(entry.object, name, key)
        except LoadError as why:
            dump.debug_print(
                1, f"plusequals: a cached library could not be loaded, and is made again: {why}"
            )
            return None

    def _begin_threads(self) -> None:
        """Start compiling the run-time library asynchronously, where it is not cached and there is
        a processor for it."""
        compiler, source = self.toolchain(), thread_pool.library_source()
        name, optimize = thread_pool.LIBRARY_OPTIONS
        all_flags = compile_flags(compiler, optimize)
        key = _key(source, compiler, all_flags)
        with self._lock_of(key).turn():
            compilation, self._guess = self._guess, None
            is_requested = key in self._libraries or key in self._advance
            unwanted = is_requested or processors() < 2 or self.cache.get(key) is not None
            if compilation is not None and (unwanted or not compilation.has_toolchain(compiler)):
                compilation.drop()
                compilation = None
            if unwanted:
                return

            def keep(code: bytes) -> None:
                if code:
                    self.cache.put(key, _cache_entry(source, name, compiler, code))

            if compilation is None:
                compilation = AdvanceCompilation(
                    source.text, "threads.c", compiler, all_flags, self.cache
                )
            compilation.keep = keep
            self._advance[key] = compilation

    def _build_library(
        self,
        key: str,
        source: Source,
        name: str,
        compiler: Toolchain,
        all_flags: Sequence[str],
        is_held: bool,
    ) -> tuple[Library, Origin]:
        """Compile, unless another process does: then wait for its cache entry.

        A thread that is compiling already, and was re-entered, waits for no process: that one may
        wait for this thread. `is_held` says whether it holds the key's lock.
        """
        is_first = is_held and sum(lock.is_held_here for lock in self._locks[1:]) == 1
        with self.cache.building(key) if is_first else contextlib.nullcontext():
            library = self._from_disk(key, source.entry)
            if library is not None:
                return library, "disk"
            library_code = self._take_advance(key)
            is_cached = library_code is not None
            if library_code is None:
                units = translation_units.split_source(source, processors(), _FILE)

                def compile_units() -> bytes:
                    trial = Trial(units, _FILE, compiler, all_flags, self.cache)
                    return finish_compilation(trial, source.text, name, source.line_map.get)

                library_code = toolchain.retry_once(compile_units)
            try:
                library = _load_library(library_code, source.entry, key)
            except LoadError as why:
                message = f"what {compiler.name} made of `{name}` cannot be loaded: {why}"
                raise CdBackendError(
                    Diagnostic(
                        "CD0813", message, helps=("the setting `compiler` names another one",)
                    )
                ) from None
            if not is_cached:
                self.cache.put(key, _cache_entry(source, name, compiler, library_code))
            return library, "compiled"

    def _take_advance(self, key: str) -> bytes | None:
        """Return the code compiled in advance; None where there is none, or where that failed, for
        example because its folder was removed."""
        compilation = self._advance.get(key)
        if (
            compilation is None
            or not compilation.is_of_this_process()
            or self._advance.pop(key, None) is None
        ):
            return None
        with contextlib.suppress(CdBackendError):
            return compilation.ended()[0] or None
        return None

    def _lock_of(self, key: str) -> ReentrantLock:
        return self._locks[int(key[:4], 16) % (_LOCKS - 1) + 1]

    def after_fork(self) -> None:
        """Renew the lock of the fast path in a forked child: a thread of the parent may hold it."""
        self.fast_path.after_fork()


class StoredCall:
    """Code of an earlier process for certain sizes, loaded without its text: a direct call."""

    __slots__ = ("_faults", "_held", "_name", "_threads", "addresses")

    def __init__(
        self,
        saved: Mapping[str, Any],
        library: Library,
        threads: thread_pool.ThreadPool | None,
        table: Any,
        faults: Callable[[], Sequence[tuple[Fault, Span]]],
    ) -> None:
        """Find the entry point; raises LoadError where there is none."""
        function, sizes = library.function(saved["entry"]), int64_array(saved["sizes"])
        table_address = 0 if table is None else address_of(table)
        self.addresses = address_of(function), address_of(sizes), table_address
        self._name, self._threads, self._faults = str(saved["name"]), threads, faults
        self._held = library, function, sizes, table

    def fail(self, status: int, *fault: int) -> NoReturn:
        """Raise the error of a status other than 0, with the fault record of the run."""
        if status == 3 and self._threads is not None:
            raise self._threads.error()
        code.raise_status(self._name, self._faults() if status == 1 else (), status, fault)


def _with_distinct_names(procedures: Sequence[Procedure]) -> Iterator[Procedure]:
    """Yield procedures renamed so that their C identifiers are distinct."""
    used_names: set[str] = set()
    for procedure in procedures:
        name, number = procedure.name, 1
        while names.identifier(name) in used_names:
            number += 1
            name = f"{names.identifier(procedure.name)[:40]}_{number}"
        used_names.add(names.identifier(name))
        yield replace(procedure, name=name)


@garbage_collector.gc_paused()
def translate(procedure: Procedure) -> Source:
    """Return the C text of a procedure for this machine, dumped and verified as settings ask."""
    options = settings.current()
    if options.verify:
        verify.verify_procedure(procedure)
    program, placement = pipeline.optimize(
        lower.lower(procedure),
        target(),
        dump.stage_observer(procedure.name),
        verify.Verifier() if options.verify else None,
        options.stop_after,
    )
    source = c_printer.print_program(program, placement)
    path = dump.save(procedure.name, "source.c", source.text)
    if options.debug >= 3:
        dump.report_final(procedure.name, program, placement, source.text, path)
    return source


def _key(source: Source, compiler: Toolchain, chosen: Sequence[str]) -> str:
    return cache_key(text=source.text, flags=chosen, compiler=compiler.written())


def _cache_entry(source: Source, name: str, compiler: Toolchain, compiled: bytes) -> Entry:
    metadata = {"name": name, "entry": source.entry, "compiler": compiler.version}
    return Entry(metadata, source.text, compiled)


def _load_library(compiled: bytes, entry: str, key: str) -> Library:
    """Load a library that has an entry point. Raises LoadError."""
    library = Library(compiled, entry, key)
    library.function(entry)
    return library
