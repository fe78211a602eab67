"""Lent arrays: a device array in the hands of foreign code for a limited time."""

from __future__ import annotations

from typing import Any

from .device_array import LEGACY, DeviceArray, Handle


class LentArray(DeviceArray):
    """A view of a device array for foreign code, which queues its work on `stream`.

    That stream is in order with ours by itself. Of another one the work is ordered if the array was
    exported for it: by `__dlpack__(stream=...)`, or by `__cuda_array_interface__`, which orders the
    legacy default stream.
    """

    def __init__(self, array: DeviceArray, stream: Handle, writable: bool) -> None:
        opened, _ = array.home
        super().__init__(
            opened, array.address, array.shape, array.dtype, stream, array, array.strides, writable
        )
        self._was_lent = self._loan[0]
        self._followed: set[int] = set()
        """The streams of others that it was exported for."""

    @property
    def stream(self) -> int:
        """The handle of our stream, for packages that take one: `cupy.cuda.ExternalStream`."""
        return int(self._opened.context.number(self._stream))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._followed.add(LEGACY)
        return super().__cuda_array_interface__

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        if stream != -1:
            self._followed.add(LEGACY if stream is None else stream)
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def end(self) -> LentWork:
        """Return the work that was queued on it: ours, from now on, comes after that."""
        self.writable = False
        with self._opened.working("an array that another package used"):
            for foreign in self._followed - {self.stream}:
                self._opened.context.follow(self._stream, foreign)
        return LentWork(self._opened, self._stream, self._loan, self._was_lent)


class LentWork:
    """What foreign code queued on a lent array, as far as its stream knows of it."""

    def __init__(self, opened: Any, stream: Handle, loan: list[bool], was_lent: bool) -> None:
        self._opened, self._stream = opened, stream
        self._loan, self._was_lent = loan, was_lent

    def finish(self) -> None:
        """Wait for it; raises CdBackendError CD0884 where the device failed.

        Nobody else works on the array from then on, as before it was lent.
        """
        with self._opened.working("an array that another package used"):
            self._opened.wait(self._stream)
        self._loan[0] = self._was_lent

    def is_finished(self) -> bool:
        """Whether it is done; a failure is left to `finish`."""
        try:
            return bool(self._opened.is_idle(self._stream))
        except Exception:
            return True
