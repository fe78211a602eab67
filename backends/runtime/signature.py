"""Bound functions: the parameters of a compiled function, and its requirements on a context.

A context is checked completely before any array is allocated in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic, Label
from ...lowering.ir.assignments import Parameter, Procedure
from ..interface import Array
from .code_variants import CodeVariants
from .device import Context
from .field import Field
from .parameter_slots import Argument, Resident, Slot, TransientField
from .read_versions import VersionCheck
from .state import RUNTIME


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of rematerialized tensors: the function that computes them, and its inputs."""

    first: BoundFunction
    labels: str
    fields: tuple[Field, ...]


@dataclass(eq=False)
class BoundFunction:
    """A function specialized for its tensors and kinds of arrays; independent of any device."""

    name: str
    codes: CodeVariants
    slots: tuple[Slot, ...]
    """The role of each parameter of the procedure."""
    returned: Callable[[Sequence[Array], Mapping[str, Any]], Any]
    """Converts the results, and the arguments of a call by name, to the Python return value."""
    fleeting: tuple[TransientField, ...] = ()
    """The tensor fields that exist only during a call."""
    sources: tuple[Provenance, ...] = ()
    """The provenance of those that it rematerializes."""

    @property
    def procedure(self) -> Procedure:
        """The procedure in the IR."""
        return self.codes.procedure

    @functools.cached_property
    def computed(self) -> tuple[TransientField, ...]:
        """The tensor fields of a call that it writes."""
        is_written = self.codes.accesses.is_written
        return tuple(fleeting for fleeting in self.fleeting if is_written(fleeting.node))

    @property
    def parameters(self) -> tuple[tuple[Slot, Parameter], ...]:
        """The parameters of the procedure with their roles."""
        return tuple(zip(self.slots, self.procedure.parameters, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments of a call, in order."""
        return tuple(dict.fromkeys(s.name for s in self.slots if isinstance(s, Argument)))

    @property
    def given(self) -> dict[str, Any]:
        """What it was specialized for of the arguments of a call, by name: captured values, those
        in objects and lists, and numbers."""
        arguments = (slot for slot in self.slots if isinstance(slot, Argument))
        return {each.name: each.default for each in arguments if each.default is not None}

    @property
    def link_key(self) -> tuple[object, ...]:
        """The key of what a routine of it can be called for: its code and its tensors."""
        roles = (slot if isinstance(slot, Resident) else slot.name for slot in self.slots)
        return (self.codes, *roles, *(fleeting.key for fleeting in self.fleeting))

    @property
    def merged(self) -> tuple[int, ...]:
        """The positions of the parameters that are read from the merge buffer."""
        return tuple(
            at for at, slot in enumerate(self.slots) if isinstance(slot, Resident) and slot.merged
        )

    def require_source(self, source: Context) -> None:
        """Check a merge source; CdValueError CD0844 where the function merges nothing, CD0842 where
        the source has no array of the field."""
        self.require_context(source)
        merged = [slot.field for slot in self.slots if isinstance(slot, Resident) and slot.merged]
        if not merged:
            raise CdValueError(
                Diagnostic(
                    "CD0844", f"`{self.name}` merges nothing, and is linked with `merge_from`",
                    (Label(self.procedure.span),), helps=("link it without: `code.link(context)`",),
                )
            )  # fmt: skip
        source.array(merged[0])

    def require_retained_inputs(self, context: Context) -> None:
        """Raise CdTypeError CD0851 where it reads values that an earlier routine did not keep."""
        for fleeting in self.fleeting:
            producer = context.find_note(fleeting.key)
            if producer and fleeting not in self.computed:
                mode, label = fleeting.tensor.memory, fleeting.label
                remedy = f"or compile it with `inline={{{label}: {producer}}}`, to compute it again"
                raise CdTypeError(
                    Diagnostic(
                        "CD0851", f"`{self.name}` reads `{label}`, which is {mode}: what "
                        f"`{producer}` computed of it is not kept between routines",
                        (Label(self.procedure.span),),
                        helps=(f"make `{label}` without `memory={mode!r}`, or compute it in "
                               f"`{self.name}` as well", *([remedy] if mode == "virtual" else ())),
                    )
                )  # fmt: skip

    def again(self, context: Context) -> tuple[VersionCheck, ...]:
        """Return the version checks of rematerialized tensors in a context.

        Raises CdValueError CD0858 where no routine linked before computes them.
        """
        producers = [(source, context.find_note(source.first)) for source in self.sources]
        for source, versions in producers:
            if versions is None:
                first = source.first.name
                raise CdValueError(
                    Diagnostic(
                        "CD0858", f"`{self.name}` reads {source.labels}, computed as `{first}` "
                        f"does, and `{first}` was not linked before it",
                        (Label(self.procedure.span),),
                        helps=(f"link `{first}`, and then `{self.name}` into the context of that "
                               "routine: `code.link(routine.context)`",),
                    )
                )  # fmt: skip
        return tuple(
            VersionCheck(source.labels, versions, source.fields) for source, versions in producers
        )

    def settle(self, context: Context, name: str) -> None:
        """Record in a context which fields the routine `name` writes, for later functions."""
        for slot, parameter in self.parameters:
            if isinstance(slot, Resident) and parameter.written:
                context.notes.setdefault(slot.field, name)
        for fleeting in self.computed:
            context.notes.setdefault(fleeting.key, name)

    def require_context(self, context: Context) -> None:
        """Raise CdTypeError CD0847 for another type, CdBackendError CD0845 after `finalize`."""
        if not isinstance(context, Context):
            raise CdTypeError(
                Diagnostic(
                    "CD0847", f"`{self.name}` is linked into a {type(context).__name__}",
                    helps=("link it into a context: `code.link(stream.context())`",),
                )
            )  # fmt: skip
        context.require_live()

    def note_link(self, context: Context) -> None:
        """Say that it is linked into a context, where this thread records a plan or puts calls off.

        Raises CdTypeError CD0862 where an array would be allocated for what a plan writes.
        """
        if recorder := RUNTIME.planned():
            residents = [slot for slot in self.slots if isinstance(slot, Resident)]
            new = [s.field for s in residents if not s.merged and context.find(s.field) is None]
            recorder.link(self.name, new)

    def require_writable(self, context: Context) -> None:
        """Raise CdTypeError CD0804 for writes to constants, CdValueError CD0843 for writes of a
        second stream."""
        for slot, parameter in self.parameters:
            if isinstance(slot, Resident) and parameter.written:
                slot.field.require_writable()
                context.require_writable(slot.field)
