"""Memory of a device in the order of streams: pieces are kept by size and used again.

A piece that is given back may be taken at once for later work of the same stream; for another
stream, which then waits on the device for what the first has queued. The host waits for nothing.
Each piece that is in use is known by what it is for, so that an error can say who holds what.

A finalizer may use all this in the midst of it, in the thread that has the lock: whatever is handed
over is taken out before the driver is asked, and put back where that fails.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ...base.dataclass import dataclass
from ...base.diagnostic import CdMemoryError, Diagnostic
from .driver_protocol import Context, DriverError, Handle, OutOfMemory

T = TypeVar("T")
_STEP = 256
"""Sizes of memory are multiples of this, so that more of them are equal."""
_TOLD = 4
"""How many of the largest pieces an error names."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Memory in use: its size, and what for."""

    size: int
    label: str
    name: str


@dataclass(frozen=True, slots=True)
class _Returned:
    """Memory that an array had: `lent` where other packages may still have work queued on it."""

    address: int
    stream: Handle
    lent: bool


class Pool:
    """The memory of one device. Any number of threads may use it at once."""

    def __init__(
        self, context: Context, name: str, after: Callable[[Handle, Handle], None]
    ) -> None:
        self.context, self.name = context, name
        self._after = after
        """Has a stream wait for another one."""
        self._lock = threading.RLock()
        self._used: dict[int, Piece] = {}
        self._free: dict[int, list[tuple[int, Handle]]] = {}
        """Pieces that nobody uses, by size, with the stream that used them last."""
        self._returned: deque[_Returned] = deque()
        """What was given back by the garbage collector, which may run anywhere."""

    @property
    def used(self) -> int:
        """Bytes in use."""
        self._settle()
        return sum(piece.size for piece in list(self._used.values()))

    @property
    def kept(self) -> int:
        """Bytes that are kept for later."""
        self._settle()
        return sum(size * len(pieces) for size, pieces in list(self._free.items()))

    def take(self, size: int, label: str, name: str, stream: Handle) -> int:
        """Return the address of memory, whose contents are left open, for the work of a stream.

        Raises CdMemoryError CD0880; everything goes on to be of use.
        """
        rounded = max(1, -(-size // _STEP)) * _STEP
        self._settle()
        with self._lock:
            address = self._found(rounded, stream)
            if address is None:
                try:
                    address = self._allocated(rounded, stream)
                except OutOfMemory:
                    raise self._too_large(size, label, name) from None
            self._used[address] = Piece(rounded, label, name)
        return address

    def _found(self, size: int, stream: Handle) -> int | None:
        pieces = self._free.get(size)
        if not pieces:
            return None
        at = next((n for n, (_, last) in enumerate(pieces) if last is stream), len(pieces) - 1)
        address, last = pieces.pop(at)
        if last is not stream:
            with _putting_back(pieces, (address, last)):
                self._after(stream, last)
        return address

    def _allocated(self, size: int, stream: Handle) -> int:
        """Return new memory; where there is none, that which is kept for later goes first."""
        try:
            return self.context.allocate(size, stream)
        except OutOfMemory:
            self.trim()
            return self.context.allocate(size, stream)

    def give_back(self, addresses: Sequence[int], stream: Handle) -> None:
        """Keep memory for later; what is queued on the stream so far may still use it."""
        with self._lock:
            for address in addresses:
                piece = self._used.pop(address)
                self._free.setdefault(piece.size, []).append((address, stream))

    def returned(self, address: int, stream: Handle, lent: bool) -> None:
        """Note that memory may be given back; takes no lock, so that a finalizer may call it."""
        self._returned.append(_Returned(address, stream, lent))

    def _settle(self) -> None:
        """Give back what finalizers noted; for what others had, their work ends first."""
        with self._lock:
            while self._returned:
                one = self._returned.popleft()
                if one.lent:
                    with _putting_back(self._returned, one):
                        self.context.finish()
                self.give_back((one.address,), one.stream)

    def trim(self) -> int:
        """Give the memory that is kept for later back to the device, for anybody's use, and return
        how many bytes that were."""
        given = 0
        with self._lock:
            self._settle()
            for size, pieces in list(self._free.items()):
                while pieces:
                    piece = pieces.pop()
                    with _putting_back(pieces, piece):
                        self.context.free(*piece)
                    given += size
            self.context.finish()
        return given

    def _too_large(self, size: int, label: str, name: str) -> CdMemoryError:
        held = sorted(self._used.values(), key=lambda piece: -piece.size)
        notes = [f"`{one.label}` of `{one.name}` holds {one.size:,} bytes" for one in held[:_TOLD]]
        rest = sum(one.size for one in held[_TOLD:])
        if rest:
            notes.append(f"{len(held) - _TOLD} smaller arrays hold {rest:,} bytes")
        try:
            left = f", which has {self.context.free_memory():,} left"
        except DriverError:
            left = ""
        message = f"`{label}` of `{name}` takes {size:,} bytes of {self.name}{left}"
        helps = ("work on smaller pieces, or let go of tensors and contexts on the device",)
        return CdMemoryError(Diagnostic("CD0880", message, (), tuple(notes), helps))


@contextmanager
def _putting_back(where: MutableSequence[T], one: T) -> Iterator[None]:
    """Append what was taken out again where what is done inside fails."""
    try:
        yield
    except BaseException:
        where.append(one)
        raise
