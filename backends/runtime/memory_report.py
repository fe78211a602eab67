"""Memory of a routine as text: the array of each field, its owner, and the rule that decided.

The rules are those of `device`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...base.dataclass import dataclass
from .device import Context, HostContext
from .field import Field
from .memory import Buffer
from .parameter_slots import Resident
from .signature import BoundFunction


@dataclass(frozen=True, slots=True)
class ArrayPlacement:
    """The array of a field in a routine."""

    field: str
    use: str
    """What the routine does with it: `reads`, `writes`, `reads and writes`."""
    array: str
    """Which array it is: the host's, one that streams share, one of its own, or none."""
    owner: str | None
    """The stream that may write it, None where none does so far."""
    reason: str
    """The rule that decided, as a sentence."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The arrays of all fields of a routine. `str()` is a table."""

    routine: str
    stream: str
    placements: tuple[ArrayPlacement, ...]

    def __str__(self) -> str:
        rows = [
            (p.field, p.use, p.array, "no owner" if p.owner is None else f"owned by {p.owner}")
            for p in self.placements
        ]
        if not rows:
            return f"`{self.routine}` on {self.stream} uses no fields of tensors"
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"`{self.routine}` on {self.stream}"]
        for row, placement in zip(rows, self.placements, strict=True):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines += ["  " + "  ".join(cells).rstrip(), f"      {placement.reason}"]
        return "\n".join(lines)

    __repr__ = __str__


def report_memory(
    function: BoundFunction, context: Context, buffers: Mapping[int, Buffer]
) -> MemoryReport:
    """Return the arrays of a routine: of a function in a context, with arrays by parameter."""
    placements = (
        *_persistent_placements(function, context, buffers),
        *_transient_placements(function),
    )
    return MemoryReport(function.name, context.stream.name, placements)


def _persistent_placements(
    function: BoundFunction, context: Context, buffers: Mapping[int, Buffer]
) -> Iterator[ArrayPlacement]:
    stream = context.stream.name
    for at, (slot, parameter) in enumerate(function.parameters):
        use = _use(at in function.codes.needed or not parameter.written, parameter.written)
        match slot:
            case Resident(field, True):
                reason = "what is merged is copied there, or read in place, before each call"
                array = f"merge buffer of {stream}"
                yield ArrayPlacement(f"{field.label}.merge", use, array, stream, reason)
            case Resident(field, False):
                yield ArrayPlacement(field.label, use, *_place(context, field, buffers[at]))


def _transient_placements(function: BoundFunction) -> Iterator[ArrayPlacement]:
    for transient in function.fleeting:
        is_written = transient in function.computed
        reason = f"it was asked to be {transient.tensor.memory}: it is there during a call alone"
        use = _use(not is_written, is_written)
        yield ArrayPlacement(transient.label, use, "no array", None, reason)


def _use(is_read: bool, is_written: bool) -> str:
    return " and ".join(
        word for word, holds in (("reads", is_read), ("writes", is_written)) if holds
    )


def _place(context: Context, field: Field, buffer: Buffer) -> tuple[str, str | None, str]:
    """Return which array of a field it is, its owner, and why."""
    device, stream = context.device, context.stream.name
    if isinstance(context, HostContext):
        return "the host's", "the host", "it is linked for the host, as plain calls are"
    shared = device.shared.get(field)
    if shared is None or shared.buffer is not buffer:
        reason = f"it was written when it first got an array on {device.name}"
        if field.sharing == "per stream":
            reason = f"it was asked to be {_request(field)}"
        inherited = context.parent is not None and context.parent.find(field) is buffer
        origin = "; it is that of the context it was linked into" if inherited else ""
        return f"one of its own on {stream}", stream, reason + origin
    owner = None if shared.owner is None else shared.owner()
    reason = f"it was only read when it first got an array on {device.name}"
    if field.sharing == "shared across streams":
        reason = f"it was asked to be {_request(field)}"
    array = f"shared by the streams of {device.name}"
    if buffer is field.host:
        array, reason = "the host's", f"{reason}; that device uses host memory"
    elif device.uses_host_memory:
        reason = f"{reason}; the host's was out of date then"
    return array, None if owner is None else owner.name, reason


def _request(field: Field) -> str:
    return str(field.tensor.memory)
