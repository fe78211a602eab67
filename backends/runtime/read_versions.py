"""Which versions a routine read when it was last called: what was computed of them can be again.

A routine that computes what an earlier one let go reads the same versions of the same fields, or is
refused: it would compute something else.
"""

from __future__ import annotations

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdValueError, Diagnostic, Label, Span
from .field import Field
from .memory import Buffer


@dataclass(eq=False)
class Ran:
    """What a routine only reads, and the versions of it that it read when it was last queued."""

    name: str
    reads: tuple[tuple[Field, Buffer], ...]
    ticks: tuple[int, ...] = ()
    """Empty before its first call."""
    is_noted: bool = False

    def note(self) -> None:
        """Note the versions that are read now; who calls this holds the lock of scheduling."""
        self.ticks = tuple(buffer.tick for _, buffer in self.reads)
        self.is_noted = True


@dataclass(frozen=True, slots=True)
class Again:
    """What a routine computes again of what another one computed, and of which fields."""

    labels: str
    """The tensors, as a reader is told."""
    ran: Ran
    fields: tuple[Field, ...]

    def require(self, routine: str, span: Span) -> None:
        """Raise CdValueError CD0850 where the other one has not run, CD0859 where versions differ.

        Who calls this holds the lock of scheduling, and has not loaded anything so far.
        """
        first, labels = self.ran.name, self.labels
        if not self.ran.is_noted:
            raise CdValueError(
                Diagnostic(
                    "CD0850", f"`{routine}` reads {labels}, which nothing has computed so far",
                    (Label(span),),
                    (f"it is computed as `{first}` does, which was linked before it",),
                    (f"call `{first}` first",),
                )
            )  # fmt: skip
        changed = [field.label for field in self.fields if self._is_other(field)]
        if changed:
            raise CdValueError(
                Diagnostic(
                    "CD0859", f"`{routine}` reads {labels}, which `{first}` computed of another "
                    f"version of `{'`, `'.join(changed)}`",
                    (Label(span),),
                    (f"it is computed again, and would not be what it was when `{first}` ran",),
                    (f"call `{first}` again before `{routine}`, or make it a tensor that is kept, "
                     "without `memory='virtual'`",),
                )
            )  # fmt: skip

    def _is_other(self, field: Field) -> bool:
        """Whether a field has another version now, or would have when it is loaded."""
        at = next(n for n, (one, _) in enumerate(self.ran.reads) if one is field)
        buffer = self.ran.reads[at][1]
        is_newer = field.host_tick > buffer.tick and settings.current().automatic_host_transfers
        return is_newer or buffer.tick != self.ran.ticks[at]
