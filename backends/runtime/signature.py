"""A function bound to its tensors: what its parameters are, and what a context has to have for it.

What is wrong with a context is found here before anything is made in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic, Label
from ...lowering.ir.assignments import Parameter, Procedure
from ..interface import Array
from .code_variants import Codes
from .device import Context
from .field import Field
from .parameter_slots import Fleeting, Given, Resident, Slot
from .read_versions import Again


@dataclass(frozen=True, slots=True)
class Source:
    """What a compiled function computes again as another one does, and of which fields."""

    first: Bound
    labels: str
    fields: tuple[Field, ...]


@dataclass(eq=False)
class Bound:
    """A function for its tensors and kinds of arrays; independent of any device."""

    name: str
    codes: Codes
    slots: tuple[Slot, ...]
    """What each parameter of the procedure is."""
    returned: Callable[[Sequence[Array], Mapping[str, Any]], Any]
    """Makes what Python gets of the results, and of what a call gives by name."""
    fleeting: tuple[Fleeting, ...] = ()
    """What it has of tensors only while it runs."""
    sources: tuple[Source, ...] = ()
    """Where it takes some of these from: what it computes again."""

    @property
    def procedure(self) -> Procedure:
        """What it does."""
        return self.codes.procedure

    @functools.cached_property
    def computed(self) -> tuple[Fleeting, ...]:
        """What it computes of tensors that it has only while it runs."""
        is_written = self.codes.accesses.is_written
        return tuple(one for one in self.fleeting if is_written(one.node))

    @property
    def parameters(self) -> tuple[tuple[Slot, Parameter], ...]:
        """Each parameter of the procedure with what it is."""
        return tuple(zip(self.slots, self.procedure.parameters, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """What a call gives, in order."""
        return tuple(dict.fromkeys(s.name for s in self.slots if isinstance(s, Given)))

    @property
    def merged(self) -> tuple[int, ...]:
        """The positions of what is read from the merge buffer."""
        return tuple(
            at for at, slot in enumerate(self.slots) if isinstance(slot, Resident) and slot.merged
        )

    def require_source(self, source: Context) -> None:
        """Raise CdValueError where it merges nothing, CD0844, or what is not there, CD0842."""
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

    def require_kept(self, context: Context) -> None:
        """Raise CdTypeError CD0851 where it reads what an earlier routine computed and let go."""
        for one in self.fleeting:
            first = context.note_of(one.key)
            if first and one not in self.computed:
                mode, label = one.tensor.memory, one.label
                again = f"or compile it with `inline={{{label}: {first}}}`, to compute it again"
                raise CdTypeError(
                    Diagnostic(
                        "CD0851", f"`{self.name}` reads `{label}`, which is {mode}: what "
                        f"`{first}` computed of it is not kept between routines",
                        (Label(self.procedure.span),),
                        helps=(f"make `{label}` without `memory={mode!r}`, or compute it in "
                               f"`{self.name}` as well", *([again] if mode == "virtual" else ())),
                    )
                )  # fmt: skip

    def again(self, context: Context) -> tuple[Again, ...]:
        """Return what it computes again in a context; CdValueError CD0858 where nothing does."""
        found = [(one, context.note_of(one.first)) for one in self.sources]
        for source, ran in found:
            if ran is None:
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
        return tuple(Again(source.labels, ran, source.fields) for source, ran in found)

    def settle(self, context: Context, name: str) -> None:
        """Let what is linked into children of a context know what the routine of a name writes."""
        for slot, parameter in self.parameters:
            if isinstance(slot, Resident) and parameter.written:
                context.notes.setdefault(slot.field, name)
        for one in self.computed:
            context.notes.setdefault(one.key, name)

    def require_context(self, context: Context) -> None:
        """Raise CdTypeError CD0847 for what is no context, CdBackendError CD0845 after its end."""
        if not isinstance(context, Context):
            raise CdTypeError(
                Diagnostic(
                    "CD0847", f"`{self.name}` is linked into a {type(context).__name__}",
                    helps=("link it into a context: `code.link(stream.context())`",),
                )
            )  # fmt: skip
        context.require_live()

    def require_writable(self, context: Context) -> None:
        """Raise CdTypeError CD0804 or CdValueError CD0843 where it would write what it may not."""
        for slot, parameter in self.parameters:
            if isinstance(slot, Resident) and parameter.written:
                slot.field.require_writable()
                context.require_writable(slot.field)
