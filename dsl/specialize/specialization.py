"""What a compiled form depends on, and where a function keeps those it has.

A specialisation fits a call when the specifications of its arguments, what is found along the
watched paths (captured names, attributes), the settings, and which of its arrays are one and the
same all agree. Cheap keys are compared first; full specifications are made only where a key is
new. Nothing here runs a function.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...backends.cc.fast_call import CacheEntry
from ...backends.runtime import link
from ...backends.runtime.code_variants import CodeVariants
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.diagnostic import CdError, CdTypeError, Diagnostic, Label, Span
from ...base.garbage_collector import gc_paused
from ...base.lazy_import import LazyModule
from ...base.locks import ReentrantLock
from ...base.settings import Settings
from ...lowering.device_branches import select_cpu_branches
from ...lowering.ir.assignments import Procedure
from ..elaborate.captures.inputs import ArraySpec, Spec, is_static
from ..elaborate.elaborate import elaborate
from ..elaborate.normalize import build
from ..elaborate.typed import Typed
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.values import Path
from .dynamic_sizes import Specs, why_wanted
from .layout_copies import takes_copies
from .recompile_reasons import Situation, path_text, why
from .signature import describe_input, quick_key
from .variant_table import MOST, Opened, Table, keep, keep_open, known_after_all, to_be_known
from .variants import (  # fmt: skip
    Arguments,
    Lookup,
    Match,
    Specialisation,
    Watch,
    exchanged,
    getter,
    pairs_with,
    same_arrays,
    same_objects,
    spec_now,
    watches,
)

if TYPE_CHECKING:
    from ..instrument import checked, recording
else:  # what few programs need
    checked = LazyModule("..instrument.checked", __package__)
    recording = LazyModule("..instrument.recording", __package__)


_TRIES = 3
"""So often a form is made for a call whose arrays are exchanged meanwhile by another thread."""


class Specialisations(ReentrantLock):
    """The compiled forms of one function. Any number of threads may ask for one."""

    def __init__(
        self,
        function: s.Function,
        lookup: Lookup,
        backend: str | None,
        plans: list[CacheEntry] | None = None,
    ) -> None:
        super().__init__()
        self.function = function
        self.lookup = lookup
        self.backend = backend
        self._statics: frozenset[str] = frozenset()
        self._needed: dict[str, Span] = {}
        """The statement for which each of them is static."""
        self._alone: frozenset[str] = frozenset()
        self._tables: dict[Settings, Table] = {}
        self._latest: tuple[Settings | None, Table] = (None, Table())
        self.plans = [] if plans is None else plans
        """The short ways of calls that were made, the latest first; see `plan`."""

    def find(self, arguments: Arguments) -> Match:
        """Return a form that fits, made now where there is none, with what it is called with."""
        return self.known(arguments) or self._found_or_made(self._table(), arguments)

    def known(self, arguments: Arguments) -> Match | None:
        """Return a form that was found for such a call before, if it still fits."""
        key = self._key(arguments)
        for known in self._table().quick.get(key, ()):
            found = known.match(arguments, key)
            if found is not None:
                return found
        return None

    def peek(self, arguments: Arguments, compiled: bool = True) -> tuple[Specialisation, bool]:
        """Return the form that a call would use, and whether it is one that is kept already.

        Nothing is kept: a later call decides as if nobody had asked. Without `compiled` a new
        form has no routine.
        """
        key, specs, table = self._key(arguments), self._specs(arguments), self._table()
        exact = table.full.get(tuple(specs.values()), ())
        for known in (*exact, *table.of_many(specs)):
            if known.match(arguments, key) is not None:
                return known, True
        for wanted, _ in table.sizes.wanted(specs):
            with contextlib.suppress(CdError):
                made = self._opened(table, arguments, compiled, wanted)
                if self._serves(made, specs, wanted):
                    return made, False
        return self._opened(table, arguments, compiled), False

    def apart(self, arguments: Arguments) -> Specialisation:
        """Return a form to be linked, which no call uses and which has no routine."""
        self._key(arguments)  # raises for what is no argument
        with self.turn():
            table, specs = self._table(), tuple(self._specs(arguments).values())
            for known in table.apart.get(specs, ()):
                if known.holds(arguments):
                    return known
            made = self._make(arguments, False)
            if not made.typed.statics <= self._statics:
                self._add_statics(made)
                specs = tuple(self._specs(arguments).values())
            if made.holds(arguments):  # or it would never be found again
                keep(table.apart, specs, made)
            return made

    def alone(self, match: Match, arguments: Arguments) -> Match | None:
        """Return a form for a call alone in the place of one for many, which found that sizes
        differ; None where that cannot be, or would find the same."""
        if not match.known.may_broadcast:
            return None
        with self.turn(), contextlib.suppress(CdError):
            table, key = self._table(), self._key(arguments, self._statics)
            for known in table.alone.get(key, ()):
                if (found := known.match(arguments, key)) is not None:
                    return found
            made = self._make(arguments, True)
            if not made.typed.statics <= self._statics:
                self._add_statics(made)
                key = self._key(arguments, self._statics)
            keep(table.alone, key, made)
            if len(table.alone) > MOST:  # of calls that are in vain, too
                del table.alone[next(iter(table.alone))]
            return made.match(arguments, key)
        return None

    def _found_or_made(self, table: Table, arguments: Arguments) -> Match:
        with self.turn():
            key, specs = self._key(arguments), tuple(self._specs(arguments).values())
            for known in table.full.get(specs, ()):
                found = known.match(arguments, key)
                if found is not None:
                    keep(table.quick, key, found.known)
                    return found
            found = self._of_any_size(table, arguments, key)
            if found is not None:
                return found
            for _ in range(_TRIES):
                made = self._opened(table, arguments, True)
                table.sizes.note(self._specs(arguments))
                table.note(made)
                if not made.typed.statics <= self._statics:
                    self._add_statics(made)
                # what comes with a call may have changed meanwhile; its constants are compared
                key = self._key(arguments, made.typed.constant)
                specs = tuple(self._specs(arguments, made.typed.constant).values())
                keep(table.full, specs, made)
                keep(table.quick, key, made)
                match = made.match(arguments, key)
                changed = None if match is not None else made.exchanged(arguments)
                if changed is None:
                    held = [get(arguments) for get in made.arrays]
                    return replace(match or Match(made, held, key, False), fresh=True)
            assert changed is not None, "or a form was found"
            what, when = f"`{path_text(changed)}`", f"`{self.function.name}` is compiled for it"
            raise exchanged(what, when, (Label(self.function.span),))

    def _of_any_size(self, table: Table, arguments: Arguments, key: object) -> Match | None:
        """Return a form with run-time sizes that fits, made now where it is time for one."""
        specs = self._specs(arguments)
        for known in table.of_many(specs):
            found = known.match(arguments, key)
            if found is not None:
                keep(table.quick, key, found.known)
                return found
        for wanted, profile in table.sizes.wanted(specs):
            made = None
            with contextlib.suppress(CdError):  # what is wrong otherwise shows without
                made = self._opened(table, arguments, True, wanted)
            if made is None or not self._serves(made, specs, wanted):
                table.sizes.close(profile)
                continue
            table.note(made)
            key = self._key(arguments, made.typed.constant)
            keep_open(table.any_size, wanted, made)
            table.sizes.note(specs)
            keep(table.quick, key, made)
            return Match(made, [get(arguments) for get in made.arrays], key, False)
        return None

    def _serves(self, made: Specialisation, specs: Specs, wanted: Specs) -> bool:
        """Whether a form for more than one call knows no more than it was made for."""
        statics = self._compared(self._table())
        return made.typed.statics <= statics and takes_copies(made, specs, wanted)

    def _opened(
        self, table: Table, arguments: Arguments, compiled: bool, opened: Specs | None = None
    ) -> Specialisation:
        """Return a form for any sizes of arrays of objects that came in many, and that is given
        their numbers that did, or one that knows them where that has to be."""
        if shapes := table.shapes.opened(arguments):
            with contextlib.suppress(CdError):
                return self._numbered(table, arguments, compiled, opened, shapes)
            table.shapes.close(shapes)
        return self._numbered(table, arguments, compiled, opened, {})

    def _numbered(
        self,
        table: Table,
        arguments: Arguments,
        compiled: bool,
        opened: Specs | None,
        shapes: Opened,
    ) -> Specialisation:
        while numbers := table.numbers.opened():
            try:
                made = self._make(arguments, compiled, opened, numbers, shapes)
            except CdError:
                break
            table.numbers.close(known_after_all(made, numbers))
            if not (asked := to_be_known(made, numbers)):
                return made
            table.numbers.close(asked)
        made = self._make(arguments, compiled, opened, frozenset(), shapes)
        table.numbers.close(numbers)
        return made

    def keep(self, plan: CacheEntry | None, match: Match, arguments: Arguments, most: int) -> None:
        """Keep the plan of a call as the first to be tried, and of all only so many.

        Not where the call would have another key by now: where a number became a constant.
        """
        with self.turn():
            if plan is not None and self._key(arguments) == match.key:
                self.plans.insert(0, plan)
                del self.plans[most:]

    def _compared(self, table: Table) -> frozenset[str]:
        """Return the parameters whose values are part of what a call is like."""
        return self._statics - table.numbers.free if table.numbers.free else self._statics

    def _add_statics(self, made: Specialisation) -> None:
        """Have the numbers compared that a form has as constants, also by those that know none."""
        self._statics |= made.typed.statics
        self.plans.clear()

    def _table(self) -> Table:
        """Return the table for the settings that hold now; usually those of the call before."""
        now, (before, table) = settings.current(), self._latest
        if now is not before:
            table = self._tables.setdefault(now, table if before is None else Table())
            self._latest = now, table
        return table

    def _key(self, arguments: Arguments, constant: frozenset[str] = frozenset()) -> object:
        """Return what calls that look alike share; the values of `constant` ones are in it, too."""
        statics = self._compared(self._table()) | constant
        try:
            if not statics:
                return tuple([quick_key(value, False) for value in arguments.values()])
            pairs = arguments.items()
            return tuple([quick_key(one, is_static(name, one, statics)) for name, one in pairs])
        except CdTypeError:
            self._specs(arguments)  # raises it again, with the parameter's name and place
            raise

    def _specs(
        self, arguments: Arguments, constant: frozenset[str] = frozenset()
    ) -> dict[str, Spec]:
        """Return the specification of every argument; raises CdTypeError, naming the parameter."""
        found, statics = {}, self._compared(self._table()) | constant
        for name, value in arguments.items():
            try:
                found[name] = describe_input(value, is_static(name, value, statics), name)
            except CdTypeError as problem:
                raise placed(problem, self.function, name) from None
        return found

    def _make(
        self,
        arguments: Arguments,
        compiled: bool,
        opened: Specs | None = None,
        numbers: frozenset[Path] = frozenset(),
        shapes: Opened | None = None,
    ) -> Specialisation:
        started = time.perf_counter()
        recorded = RUNTIME.recording(settings.current().debug_log_from_routines) is not None
        typed, alias = self._elaborated(arguments, opened or {}, numbers, shapes or {})
        if compiled and not recorded:
            link.prepare(self.backend)
        procedure = _built(typed.procedure)
        seconds = time.perf_counter() - started
        later = recorded and not _asks(procedure)  # what records is code of its own
        routine = link.link(procedure, self.backend, later=later) if compiled else None
        find = partial(getter, typed, self.lookup)
        watched = tuple(watches(typed, find, arguments))
        fleeting = tuple(map(find, (*typed.nowhere, *typed.compared)))
        situation, specs = self._situation(typed, watched, alias, arguments), self._specs(arguments)
        others = {path_text(watch.path): watch.spec for watch in watched}
        wanted = {**others, **(opened or specs)}
        return Specialisation(
            situation=situation,
            reason=why_wanted(specs, wanted, sorted(map(str, numbers & typed.used.keys())))
            or why(situation, self._situations(arguments)),
            typed=typed,
            procedure=procedure,
            routine=routine,
            codes=CodeVariants(
                procedure, partial(_recording, select_cpu_branches(typed.procedure))
            ),
            inputs=tuple(
                find(path, use="write" if parameter.written else "read")
                for path, parameter in zip(typed.passed, procedure.parameters, strict=True)
            ),
            watched=watched,
            seconds=seconds,
            pairs=pairs_with([parameter.written for parameter in procedure.parameters]),
            merged=tuple(
                (find(one, use="identity"), find(two, use="identity")) for one, two in alias.items()
            ),
            find=find,
            arrays=tuple(find(path, use="identity") for path in typed.passed),
            has_fields=any(path.owner is not None for path in typed.passed),
            general=bool(opened or shapes or numbers & typed.used.keys()),
            fleeting=fleeting,
            same=same_objects(fleeting, arguments),
            scalars=tuple(
                None if parameter.node.shape else parameter.node.dtype.numpy
                for parameter in procedure.parameters
            ),
            writes_fields=tuple(
                (find(owner), str(path.steps[-1])[1:])
                for path, parameter in zip(typed.passed, procedure.parameters, strict=True)
                if parameter.written and (owner := path.owner) is not None
            ),
        )

    def _situation(
        self,
        typed: Typed,
        watched: tuple[Watch, ...],
        alias: Mapping[Path, Path],
        arguments: Arguments,
    ) -> Situation:
        specs = {
            name: describe_input(value, is_static(name, value, typed.statics), name)
            for name, value in arguments.items()
        }
        captured = {watch.path: watch.spec for watch in watched}
        now = settings.current()
        return Situation(now, self.backend or now.backend, specs, captured, alias)

    @gc_paused()
    def _elaborated(
        self, arguments: Arguments, opened: Specs, numbers: frozenset[Path], shapes: Opened
    ) -> tuple[Typed, dict[Path, Path]]:
        """Return the typed function, and which inputs are one array because one is written.

        `opened` are specifications with run-time sizes, which stand for those of the arguments,
        `shapes` for those of other arrays, `numbers` the ways to attributes that each call gives.
        """
        instead = {id(arguments[name]): spec for name, spec in opened.items()}
        owned = {id(value): spec for value, spec in shapes.values()}

        def described(value: object, static: bool) -> Spec:
            if id(value) in owned:
                return owned[id(value)]
            found = None if static else instead.get(id(value))
            return found if isinstance(found, ArraySpec) else describe_input(value, static)

        alias: dict[Path, Path] = {}
        while True:
            typed = elaborate(
                self.function, arguments, described, self._around, alias, self._statics, numbers
            )
            self._alone |= typed.alone
            self._needed = {**typed.needed, **self._needed}
            typed = replace(typed, needed=self._needed)
            more = same_arrays(typed, self.lookup, arguments)
            if not more:
                return typed, alias
            alias |= more

    def _around(self, name: str) -> object:
        """Return what a name is around the function: nothing, if it once was a local's alone."""
        return MISSING if name in self._alone else self.lookup(name)

    def _situations(self, arguments: Arguments) -> Iterator[tuple[Situation, Mapping[Path, Spec]]]:
        """Yield what each form was made for, and what its watched paths lead to now."""
        for table in list(self._tables.values()):
            for forms in list(table.full.values()):
                for known in reversed(forms):
                    now = ((watch.path, spec_now(watch, arguments)) for watch in known.watched)
                    found = {path: spec for path, spec in now if spec is not None}
                    yield known.situation, found


def _asks(procedure: Procedure) -> bool:
    """Whether it is asked where arrays live, which compiling may refuse."""
    outside = (*(one.node for one in procedure.parameters), *procedure.results)
    return any(node.request is not None for node in (*procedure.locals, *outside))


def placed(problem: CdTypeError, function: s.Function, name: str) -> CdTypeError:
    """Return the error about an argument with the place of its parameter."""
    spans = [param.span for param in function.params if param.name == name]
    label = Label(spans[0] if spans else function.span)
    return CdTypeError(
        *(
            Diagnostic(d.code, d.message, (label, *d.labels), d.notes, d.helps, d.stack)
            for d in problem.diagnostics
        )
    )


def _built(procedure: Procedure) -> Procedure:
    """Return a typed function as it is compiled under the settings that hold now."""
    chosen = settings.current()
    built = build(procedure, chosen.checked)
    if not chosen.checked:
        return built
    made = built.locals[len(procedure.locals) :]
    return checked.add_checks(built, chosen.checked_overflow, made)


def _recording(procedure: Procedure, wanted: Any, backend: str) -> Any:
    return recording.recording_of(procedure, _built, wanted, backend)
