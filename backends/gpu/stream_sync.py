"""Who waits for whom where a run uses arrays of other packages in place.

    before(device, arrays, stream)       a stream waits for what their packages have queued
    after(device, arrays, stream, name)  their streams wait for ours; or the host has to

Where a package says on which stream its work is, streams wait for each other and the host does not.
Where it does not say, the host waits: for the whole device before, for our stream after.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.diagnostic import CdTypeError, Diagnostic
from .device import Opened
from .device_array import LEGACY, Placed
from .driver_protocol import Handle


def before(device: Opened, arrays: Sequence[Placed], stream: Handle) -> None:
    """Let a stream wait for all that is queued on arrays. Raises CdTypeError CD0886."""
    for array in arrays:
        here = array.ordinal if array.ordinal is not None else _asked(device, array)
        if here != device.ordinal:
            message = f"an array lies on cuda:{here}, and the function runs on {device.name}"
            helps = (f'run it there: `f.on("cuda:{here}")(...)`', "or copy the array")
            raise CdTypeError(Diagnostic("CD0886", message, helps=helps))
    if any(array.order == "unknown" for array in arrays):
        device.context.finish()
    elif any(array.order == "legacy" for array in arrays):
        device.context.follow(stream, LEGACY)
    ours = device.context.number(stream)
    for other in dict.fromkeys(one.order for one in arrays if isinstance(one.order, int)):
        if other != ours:
            device.context.follow(stream, other)


def _asked(device: Opened, array: Placed) -> int:
    return device.context.where(array.address) if array.size else device.ordinal


def after(device: Opened, arrays: Sequence[Placed], stream: Handle, name: str) -> bool:
    """Let the streams of arrays wait for ours; return whether the host has to wait instead."""
    if any(not isinstance(array.order, int) for array in arrays):
        return True
    ours = device.context.number(stream)
    for other in dict.fromkeys(one.order for one in arrays if isinstance(one.order, int)):
        if other != ours:
            device.context.lead(other, stream)
    if arrays:
        device.unsettled(name)
    return False
