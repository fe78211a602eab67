"""Stream synchronization of runs that use arrays of other packages in place.

    before(device, arrays, stream)       a stream waits for the work queued by their packages
    after(device, arrays, stream, name)  their streams wait for ours; or the host has to

Where a package tells the stream of its work, streams wait for each other and the host does not.
Otherwise the host waits: for the whole device before, for our stream after.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.diagnostic import CdTypeError, Diagnostic
from ..device_arrays.device_array import LEGACY, PlacedArray
from .device import OpenedDevice
from .driver_protocol import Handle


def wait_for_foreign(device: OpenedDevice, arrays: Sequence[PlacedArray], stream: Handle) -> None:
    """Make a stream wait for all work queued on arrays. Raises CdTypeError CD0886."""
    for array in arrays:
        ordinal = array.ordinal if array.ordinal is not None else _find_ordinal(device, array)
        if ordinal != device.ordinal:
            message = f"an array lies on cuda:{ordinal}, and the function runs on {device.name}"
            helps = (f'run it there: `f.on("cuda:{ordinal}")(...)`', "or copy the array")
            raise CdTypeError(Diagnostic("CD0886", message, helps=helps))
    if any(array.order == "unknown" for array in arrays):
        device.context.finish()
    elif any(array.order == "legacy" for array in arrays):
        device.context.follow(stream, LEGACY)
    stream_handle = device.context.number(stream)
    for foreign in dict.fromkeys(
        placed.order for placed in arrays if isinstance(placed.order, int)
    ):
        if foreign != stream_handle:
            device.context.follow(stream, foreign)


def _find_ordinal(device: OpenedDevice, array: PlacedArray) -> int:
    return device.context.where(array.address) if array.size else device.ordinal


def signal_foreign(
    device: OpenedDevice, arrays: Sequence[PlacedArray], stream: Handle, name: str
) -> bool:
    """Make the streams of arrays wait for ours; return whether the host has to wait instead."""
    if any(not isinstance(array.order, int) for array in arrays):
        return True
    stream_handle = device.context.number(stream)
    for foreign in dict.fromkeys(
        placed.order for placed in arrays if isinstance(placed.order, int)
    ):
        if foreign != stream_handle:
            device.context.lead(foreign, stream)
    if arrays:
        device.record_unwaited(name)
    return False
