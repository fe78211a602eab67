"""The specialization cache of a function: lookup and compilation of specializations.

A specialization matches a call when the specifications of its arguments, the values along the
watched paths (captured names, attributes), the settings, and the identities among its arrays all
agree. Cheap keys are compared first; full specifications are computed only for new keys. Nothing
here runs a function.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...backends.call_entry import CacheEntry
from ...backends.runtime import link
from ...backends.runtime.code_variants import CodeVariants
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.diagnostic import CdError, CdTypeError, Diagnostic, Label, Span
from ...base.garbage_collector import gc_paused
from ...base.lazy_import import LazyModule
from ...base.locks import ReentrantLock
from ...base.process_state import State, register
from ...base.settings import Settings
from ...lowering.device_branches import select_cpu_branches
from ...lowering.ir.assignments import Procedure
from ..elaborate.captures.inputs import ArraySpec, ConstantSpec, DynamicArrays, Spec, is_static
from ..elaborate.elaborate import elaborate
from ..elaborate.normalize import build
from ..elaborate.typed import Typed
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.values import Path
from .dynamic_sizes import Specs, generalization_reason
from .layout_copies import can_take_copies
from .recompile_reasons import SpecializationKey, path_text, recompile_reason
from .signature import cheap_key, describe_input
from .static_sizes import sizes_to_fix
from .variant_table import (
    MAX_VARIANTS,
    VariantTable,
    add_general_variant,
    add_variant,
    must_be_static,
    used_as_constants,
)
from .variants import (  # fmt: skip
    Arguments,
    CaptureGuard,
    Lookup,
    Match,
    Specialization,
    capture_guards,
    current_spec,
    find_aliases,
    identity_classes,
    make_getter,
    replaced_array_error,
    written_pairs,
)

if TYPE_CHECKING:
    from ..instrument import checked, recording
else:  # what few programs need
    checked = LazyModule("..instrument.checked", __package__)
    recording = LazyModule("..instrument.recording", __package__)


_NO_STATICS: frozenset[str] = frozenset()
Described = tuple[frozenset[str], dict[str, Spec]]
"""Parameters that are constants, and the specifications of a call's arguments for them."""

_MAX_ATTEMPTS = 3
"""The number of compilations for a call whose arrays another thread replaces meanwhile."""
register(
    lambda: State(
        name="of each function: specializations, sizes seen, fast paths",
        owner=__name__,
        lock="a lock for each function",
        in_child="kept; locks are renewed",
        on_reset="kept; tests make a new function",
    )
)


class SpecializationCache(ReentrantLock):
    """The specializations of one function; thread-safe."""

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
        self.derives: tuple[str, ...] = ()
        """The kinds of derivatives that are made of it; see `elaborate`."""
        self._statics = _NO_STATICS
        """The parameters that are static in any specialization."""
        self._needed: dict[str, Span] = {}
        """The statement that requires each static parameter to be static."""
        self._local_only: frozenset[str] = frozenset()
        self._tables: dict[Settings, VariantTable] = {}
        self._latest: tuple[Settings | None, VariantTable] = (None, VariantTable())
        self.plans = [] if plans is None else plans
        """The fast-path entries of earlier calls, the latest first; see `fast_path`."""

    def find(self, arguments: Arguments) -> Match:
        """Return a matching specialization, compiled now if there is none, with its inputs."""
        return self.cached(arguments) or self._find_or_compile(self._table(), arguments)

    def cached(self, arguments: Arguments) -> Match | None:
        """Return the cached specialization of the call's cheap key, None if none matches."""
        table = self._table()
        for constant in table.constants:
            key = self._key(arguments, constant)
            for candidate in table.quick.get(key, ()):
                match = candidate.match(arguments, key)
                if match is not None:
                    return match
        return None

    def peek(self, arguments: Arguments, compiled: bool = True) -> tuple[Specialization, bool]:
        """Return the specialization that a call would use, and whether it is cached.

        The cache is unchanged: later calls are not affected. Without `compiled` a new
        specialization has no routine.
        """
        table = self._table()
        known = [(constant, self._specs(arguments, constant)) for constant in table.constants]
        for constant, specs in known:
            key, exact = self._key(arguments, constant), table.full.get(tuple(specs.values()), ())
            for candidate in (*exact, *table.find_general(specs)):
                if candidate.match(arguments, key) is not None:
                    return candidate, True
        for constant, specs in known:
            for wanted, _ in table.sizes.wanted(specs):
                with contextlib.suppress(CdError):
                    new = self._specialize(table, arguments, compiled, wanted)
                    if _is_usable(new, constant, specs, wanted):
                        return new, False
        return self._specialize(table, arguments, compiled), False

    def for_linking(self, arguments: Arguments) -> Specialization:
        """Return a specialization for linking, which calls do not use and which has no routine."""
        with self.turn():
            table, specs = self._table(), tuple(self._specs(arguments, self._statics).values())
            for candidate in table.linked.get(specs, ()):
                if candidate.holds(arguments):
                    return candidate
            new = self._compile(arguments, False)
            if not new.typed.statics <= self._statics:
                self._statics |= new.typed.statics
                specs = tuple(self._specs(arguments, self._statics).values())
            if new.holds(arguments):  # else it would never match again
                add_variant(table.linked, specs, new)
            return new

    def alone(self, match: Match, arguments: Arguments) -> Match | None:
        """Return a specialization for the static sizes of a call, in place of a general one that
        found mismatched sizes; None where it is not possible, or of no use."""
        if not match.specialization.may_broadcast:
            return None
        with self.turn(), contextlib.suppress(CdError):
            table, key = self._table(), self._key(arguments, self._statics)
            for candidate in table.alone.get(key, ()):
                if (matched := candidate.match(arguments, key)) is not None:
                    return matched
            new = self._compile(arguments, True)
            if not new.typed.statics <= self._statics:
                self._statics |= new.typed.statics
                key = self._key(arguments, self._statics)
            add_variant(table.alone, key, new)
            if len(table.alone) > MAX_VARIANTS:  # failed calls count too
                del table.alone[next(iter(table.alone))]
            return new.match(arguments, key)
        return None

    def _find_or_compile(self, table: VariantTable, arguments: Arguments) -> Match:
        with self.turn():
            known = [(constant, self._specs(arguments, constant)) for constant in table.constants]
            if (matched := self._find(table, arguments, known)) is not None:
                return matched
            for constant, specs in known:
                matched = self._generalize(table, arguments, constant, specs)
                if matched is not None:
                    return matched
            for _ in range(_MAX_ATTEMPTS):
                new = self._specialize(table, arguments, True)
                # arguments may have changed meanwhile: the constants of the code are compared
                constant = new.typed.constant
                key, described = self._key(arguments, constant), self._specs(arguments, constant)
                table.sizes.note(described)
                self._note(table, new)
                add_variant(table.full, tuple(described.values()), new)
                add_variant(table.quick, key, new)
                match = new.match(arguments, key)
                changed = None if match is not None else new.first_changed(arguments)
                if changed is None:
                    inputs = [get(arguments) for get in new.arrays]
                    return replace(match or Match(new, inputs, key, False), fresh=True)
            assert changed is not None, "or a form was found"
            what, when = f"`{path_text(changed)}`", f"`{self.function.name}` is compiled for it"
            raise replaced_array_error(what, when, (Label(self.function.span),))

    def _find(
        self, table: VariantTable, arguments: Arguments, known: Sequence[Described]
    ) -> Match | None:
        """Return a matching specialization, a general one if there is no other, else None."""
        for find in (table.find_exact, table.find_general):
            for constant, specs in known:
                key = self._key(arguments, constant)
                for candidate in find(specs):
                    if (match := candidate.match(arguments, key)) is not None:
                        add_variant(table.quick, key, match.specialization)
                        return match
        return None

    def _generalize(
        self, table: VariantTable, arguments: Arguments, constant: frozenset[str], specs: Specs
    ) -> Match | None:
        """Return a general specialization, compiled now if one is due, else None."""
        for wanted, profile in table.sizes.wanted(specs):
            new = None
            with contextlib.suppress(CdError):  # static compilation reports the errors
                new = self._specialize(table, arguments, True, wanted)
            if new is None or not _is_usable(new, constant, specs, wanted):
                table.sizes.close(profile)
                continue
            self._note(table, new)
            key = self._key(arguments, new.typed.constant)
            described = self._specs(arguments, new.typed.constant)
            arrays = {name: spec for name, spec in wanted.items() if isinstance(spec, ArraySpec)}
            add_general_variant(table.general_variants, {**described, **arrays}, new)
            table.sizes.note(described)
            add_variant(table.quick, key, new)
            return Match(new, [get(arguments) for get in new.arrays], key, False)
        return None

    def _note(self, table: VariantTable, new: Specialization) -> None:
        """Record the values, sizes and static parameters of a specialization."""
        table.note(new)
        self._statics |= new.typed.statics

    def _specialize(
        self, table: VariantTable, arguments: Arguments, compiled: bool, opened: Specs | None = None
    ) -> Specialization:
        """Return a specialization with dynamic sizes of captured arrays and dynamic numbers where
        these are due, static ones where that is necessary."""
        while shapes := table.shapes.opened(arguments):
            required = frozenset(shapes)
            with contextlib.suppress(CdError):
                new = self._specialize_numbers(table, arguments, compiled, opened, shapes)
                required &= sizes_to_fix(new)
                if not required:
                    return new
            table.shapes.close(required)
        return self._specialize_numbers(table, arguments, compiled, opened, {})

    def _specialize_numbers(
        self,
        table: VariantTable,
        arguments: Arguments,
        compiled: bool,
        opened: Specs | None,
        shapes: DynamicArrays,
    ) -> Specialization:
        while numbers := table.numbers.opened():
            try:
                specialization = self._compile(arguments, compiled, opened, numbers, shapes)
            except CdError:
                break
            table.numbers.close(used_as_constants(specialization, numbers))
            in_use = _in_use(specialization.typed, numbers)
            if not (required := must_be_static(specialization, in_use)):
                return specialization
            table.numbers.close(required)
        specialization = self._compile(arguments, compiled, opened, frozenset(), shapes)
        table.numbers.close(numbers)
        return specialization

    def keep(self, plan: CacheEntry | None, match: Match, arguments: Arguments, most: int) -> None:
        """Insert a fast-path entry as the first to be tried, and keep at most `most` of them.

        It is dropped where the call's key has changed.
        """
        with self.turn():
            constant = match.specialization.typed.constant
            if plan is not None and self._key(arguments, constant) == match.key:
                self.plans.insert(0, plan)
                del self.plans[most:]

    def _table(self) -> VariantTable:
        """Return the table of the current settings; usually they are those of the last call."""
        current, (previous, table) = settings.current(), self._latest
        if current is not previous:
            table = self._tables.setdefault(current, table if previous is None else VariantTable())
            self._latest = current, table
        return table

    def _key(self, arguments: Arguments, constant: frozenset[str]) -> object:
        """Return the cheap key of a call, with the values of `constant` parameters."""
        try:
            if not constant:
                return tuple([cheap_key(value, False) for value in arguments.values()])
            pairs = arguments.items()
            return tuple(
                [
                    cheap_key(argument, is_static(name, argument, constant))
                    for name, argument in pairs
                ]
            )
        except CdTypeError:
            self._specs(arguments, constant)  # raises it with the parameter's name and span
            raise

    def _specs(self, arguments: Arguments, constant: frozenset[str]) -> dict[str, Spec]:
        """Return the specification of each argument, of `constant` parameters with their values;
        raises CdTypeError for the parameter."""
        specs = {}
        for name, value in arguments.items():
            try:
                specs[name] = describe_input(value, is_static(name, value, constant), name)
            except CdTypeError as problem:
                raise with_parameter_label(problem, self.function, name) from None
        return specs

    def _compile(
        self,
        arguments: Arguments,
        compiled: bool,
        opened: Specs | None = None,
        numbers: frozenset[Path] = frozenset(),
        shapes: DynamicArrays | None = None,
    ) -> Specialization:
        started = time.perf_counter()
        self._specs(arguments, frozenset())  # raises for an invalid argument, with its name
        is_recorded = _is_recorded()
        typed, alias = self._elaborate(arguments, opened or {}, numbers, shapes or {})
        if compiled and not is_recorded:
            link.prepare(self.backend)
        procedure = _normalized(typed.procedure)
        seconds = time.perf_counter() - started
        is_deferred = is_recorded and not _has_memory_requests(procedure)  # it has code of its own
        routine = link.link(procedure, self.backend, later=is_deferred) if compiled else None
        find_value = partial(make_getter, typed, self.lookup)
        watched = tuple(capture_guards(typed, find_value, arguments))
        fleeting = tuple(map(find_value, (*typed.nowhere, *typed.compared)))
        situation = self._situation(typed, watched, alias, arguments)
        specs = self._specs(arguments, typed.constant)
        wanted = {path_text(watch.path): watch.spec for watch in watched} | dict(opened or specs)
        used = _in_use(typed, numbers) & typed.used.keys()
        general = generalization_reason(specs, wanted, sorted(map(str, used)))
        return Specialization(
            situation=situation,
            reason=general or recompile_reason(situation, self._situations(arguments)),
            typed=typed,
            procedure=procedure,
            routine=routine,
            codes=_code_variants(typed, procedure),
            inputs=tuple(
                find_value(path, use="write" if parameter.written else "read")
                for path, parameter in zip(typed.passed, procedure.parameters, strict=True)
            ),
            watched=watched,
            seconds=seconds,
            pairs=written_pairs([parameter.written for parameter in procedure.parameters]),
            merged=tuple(
                (find_value(first, use="identity"), find_value(second, use="identity"))
                for first, second in alias.items()
            ),
            find=find_value,
            arrays=tuple(find_value(path, use="identity") for path in typed.passed),
            has_fields=any(path.owner is not None for path in typed.passed),
            is_general=bool(opened or shapes or used),
            fleeting=fleeting,
            same=identity_classes(fleeting, arguments),
            scalars=tuple(
                None if parameter.node.shape else parameter.node.dtype.numpy
                for parameter in procedure.parameters
            ),
            writes_fields=tuple(
                (find_value(owner), str(path.steps[-1])[1:])
                for path, parameter in zip(typed.passed, procedure.parameters, strict=True)
                if parameter.written and (owner := path.owner) is not None
            ),
        )

    def _situation(
        self,
        typed: Typed,
        watched: tuple[CaptureGuard, ...],
        alias: Mapping[Path, Path],
        arguments: Arguments,
    ) -> SpecializationKey:
        specs = {
            name: describe_input(value, is_static(name, value, typed.statics), name)
            for name, value in arguments.items()
        }
        captured = {watch.path: watch.spec for watch in watched}
        current = settings.current()
        return SpecializationKey(current, self.backend or current.backend, specs, captured, alias)

    @gc_paused()
    def _elaborate(
        self, arguments: Arguments, opened: Specs, numbers: frozenset[Path], shapes: DynamicArrays
    ) -> tuple[Typed, dict[Path, Path]]:
        """Return the typed function, and the inputs that alias a written array.

        `opened` are specifications with dynamic sizes, which replace those of arguments, `shapes`
        those of other arrays; `numbers` are the paths of dynamic numbers.
        """
        dynamic: DynamicArrays = {
            Path(name): (arguments[name], spec)
            for name, spec in opened.items() if isinstance(spec, ArraySpec)
        } | dict(shapes)  # fmt: skip
        alias: dict[Path, Path] = {}
        while True:
            typed = elaborate(
                self.function,
                arguments,
                describe_input,
                self._captured_value,
                alias,
                _NO_STATICS,  # not those of other calls: a result depends on its call alone
                numbers,
                dynamic,
                self.derives,
            )
            self._local_only |= typed.alone
            self._needed = {**typed.needed, **self._needed}
            typed = replace(typed, needed=self._needed)
            aliases = find_aliases(typed, self.lookup, arguments)
            if not aliases and _in_use(typed, numbers) == numbers:
                return typed, alias
            alias |= aliases
            numbers = _in_use(typed, numbers)

    def _captured_value(self, name: str) -> object:
        """Return the captured value of a name, MISSING for a name that is only a local's."""
        return MISSING if name in self._local_only else self.lookup(name)

    def _situations(
        self, arguments: Arguments
    ) -> Iterator[tuple[SpecializationKey, Mapping[Path, Spec]]]:
        """Yield the situation of each specialization, and the current values of its paths."""
        for table in list(self._tables.values()):
            for variants in list(table.full.values()):
                for variant in reversed(variants):
                    current = (
                        (watch.path, current_spec(watch, arguments)) for watch in variant.watched
                    )
                    captured = {path: spec for path, spec in current if spec is not None}
                    yield variant.situation, captured


def _code_variants(typed: Typed, procedure: Procedure) -> CodeVariants:
    return CodeVariants(procedure, partial(_recording, select_cpu_branches(typed.procedure)))


def _is_recorded() -> bool:
    return RUNTIME.recording(settings.current().debug_log_from_routines) is not None


def _in_use(typed: Typed, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the dynamic numbers that would be static if they were not dynamic; other
    parameters are run-time values in any case."""
    return frozenset(
        path
        for path in numbers
        if not path.is_parameter
        or path.root in typed.preferred
        or isinstance(typed.used.get(path), ConstantSpec)
    )


def _is_usable(
    specialization: Specialization, constant: frozenset[str], specs: Specs, wanted: Specs
) -> bool:
    """Whether a general specialization has no more static parameters than `constant`, which are
    compared, and computes what those for static sizes do."""
    return (
        specialization.typed.constant <= constant
        and can_take_copies(specialization, specs, wanted)
        and not any(path.is_parameter for path in sizes_to_fix(specialization))
    )


def _has_memory_requests(procedure: Procedure) -> bool:
    """Whether arrays have memory requests, which compilation may refuse."""
    external = (*(parameter.node for parameter in procedure.parameters), *procedure.results)
    return any(node.request is not None for node in (*procedure.locals, *external))


def with_parameter_label(problem: CdTypeError, function: s.Function, name: str) -> CdTypeError:
    """Return the error about an argument with the span of its parameter."""
    spans = [param.span for param in function.params if param.name == name]
    label = Label(spans[0] if spans else function.span)
    return CdTypeError(
        *(
            Diagnostic(d.code, d.message, (label, *d.labels), d.notes, d.helps, d.stack)
            for d in problem.diagnostics
        )
    )


def _normalized(procedure: Procedure) -> Procedure:
    """Return a typed function normalized for compilation under the current settings."""
    options = settings.current()
    built = build(procedure, options.checked)
    if not options.checked:
        return built
    created = built.locals[len(procedure.locals) :]
    return checked.add_checks(built, options.checked_overflow, created)


def _recording(procedure: Procedure, wanted: Any, backend: str) -> Any:
    return recording.compile_recording(procedure, _normalized, wanted, backend)
