"""Version checks of rematerialization: the versions of fields that a routine read last.

A routine that recomputes the discarded values of an earlier one must read the same versions of the
same fields; otherwise it is rejected, as its values would differ.
"""

from __future__ import annotations

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdValueError, Diagnostic, Label, Span
from .field import Field
from .memory import Buffer


@dataclass(eq=False)
class ReadVersions:
    """The read-only fields of a routine, and their versions when it was last queued."""

    name: str
    reads: tuple[tuple[Field, Buffer], ...]
    ticks: tuple[int, ...] = ()
    """Empty before its first call."""
    has_versions: bool = False

    def note(self) -> None:
        """Record the current versions. Precondition: the scheduling lock is held."""
        self.ticks = tuple(buffer.tick for _, buffer in self.reads)
        self.has_versions = True


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """The check of a routine that rematerializes tensors of another, with their input fields."""

    labels: str
    """The tensors' labels, for messages."""
    ran: ReadVersions
    fields: tuple[Field, ...]

    def require(self, routine: str, span: Span) -> None:
        """Raise CdValueError CD0850 where the other one has not run, CD0859 where versions differ.

        Precondition: the scheduling lock is held, and no newer versions have been loaded.
        """
        first, labels = self.ran.name, self.labels
        if not self.ran.has_versions:
            raise CdValueError(
                Diagnostic(
                    "CD0850", f"`{routine}` reads {labels}, which nothing has computed so far",
                    (Label(span),),
                    (f"it is computed as `{first}` does, which was linked before it",),
                    (f"call `{first}` first",),
                )
            )  # fmt: skip
        changed = [field.label for field in self.fields if self._has_changed(field)]
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

    def _has_changed(self, field: Field) -> bool:
        """Whether a field has another version now, or will have after a load."""
        at = next(n for n, (read_field, _) in enumerate(self.ran.reads) if read_field is field)
        buffer = self.ran.reads[at][1]
        is_newer = field.host_tick > buffer.tick and settings.current().automatic_host_transfers
        return is_newer or buffer.tick != self.ran.ticks[at]
