"""Stream-ordered memory pool of a device: blocks are kept by size and reused.

A freed block can be reused immediately by later work of the same stream, or by another stream,
which then waits on the device for the work queued on the first. The host never waits. Blocks in use
have labels, so that out-of-memory errors can say what holds memory.

Finalizers may re-enter the pool in the thread that has the lock: a block is removed from its list
before a driver call, and put back where that fails.
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
_GRANULARITY = 256
"""The granularity of block sizes in bytes, for more reuse."""
_MAX_NAMED = 4
"""The number of largest blocks that an error names."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block in use: its size, its label and the name of its owner."""

    size: int
    label: str
    name: str


@dataclass(frozen=True, slots=True)
class _Returned:
    """A block of a collected array; `lent` where other packages may have work queued on it."""

    address: int
    stream: Handle
    lent: bool


class MemoryPool:
    """The memory pool of one device; thread-safe."""

    def __init__(
        self, context: Context, name: str, after: Callable[[Handle, Handle], None]
    ) -> None:
        self.context, self.name = context, name
        self._after = after
        """Makes a stream wait for another one."""
        self._lock = threading.RLock()
        self._used: dict[int, Block] = {}
        self._free: dict[int, list[tuple[int, Handle]]] = {}
        """Free blocks by size, with the stream that used them last."""
        self._returned: deque[_Returned] = deque()
        """Blocks returned by finalizers, which may run at any point."""

    @property
    def used(self) -> int:
        """The bytes in use."""
        self._collect_returned()
        return sum(block.size for block in list(self._used.values()))

    @property
    def pooled_bytes(self) -> int:
        """The bytes of free blocks."""
        self._collect_returned()
        return sum(size * len(blocks) for size, blocks in list(self._free.items()))

    def take(self, size: int, label: str, name: str, stream: Handle) -> int:
        """Allocate uninitialized memory for work of a stream; return its address.

        Raises CdMemoryError CD0880; the pool stays usable.
        """
        rounded = max(1, -(-size // _GRANULARITY)) * _GRANULARITY
        self._collect_returned()
        with self._lock:
            address = self._reuse_block(rounded, stream)
            if address is None:
                try:
                    address = self._allocate_block(rounded, stream)
                except OutOfMemory:
                    raise self._too_large(size, label, name) from None
            self._used[address] = Block(rounded, label, name)
        return address

    def _reuse_block(self, size: int, stream: Handle) -> int | None:
        blocks = self._free.get(size)
        if not blocks:
            return None
        position = next(
            (n for n, (_, last) in enumerate(blocks) if last is stream), len(blocks) - 1
        )
        address, last = blocks.pop(position)
        if last is not stream:
            with _restored_on_error(blocks, (address, last)):
                self._after(stream, last)
        return address

    def _allocate_block(self, size: int, stream: Handle) -> int:
        """Allocate a new block; where memory runs out, free the unused blocks first."""
        try:
            return self.context.allocate(size, stream)
        except OutOfMemory:
            self.trim()
            return self.context.allocate(size, stream)

    def give_back(self, addresses: Sequence[int], stream: Handle) -> None:
        """Return blocks to the pool; work queued on the stream so far may still use them."""
        with self._lock:
            for address in addresses:
                block = self._used.pop(address)
                self._free.setdefault(block.size, []).append((address, stream))

    def returned(self, address: int, stream: Handle, lent: bool) -> None:
        """Enqueue a block for its return; lock-free, so that finalizers may call it."""
        self._returned.append(_Returned(address, stream, lent))

    def _collect_returned(self) -> None:
        """Return the blocks of finalizers to the pool; lent ones after a device synchronization."""
        with self._lock:
            while self._returned:
                returned_block = self._returned.popleft()
                if returned_block.lent:
                    with _restored_on_error(self._returned, returned_block):
                        self.context.finish()
                self.give_back((returned_block.address,), returned_block.stream)

    def trim(self) -> int:
        """Free all unused blocks; return how many bytes they had."""
        freed_bytes = 0
        with self._lock:
            self._collect_returned()
            for size, blocks in list(self._free.items()):
                while blocks:
                    block = blocks.pop()
                    with _restored_on_error(blocks, block):
                        self.context.free(*block)
                    freed_bytes += size
            self.context.finish()
        return freed_bytes

    def _too_large(self, size: int, label: str, name: str) -> CdMemoryError:
        blocks = sorted(self._used.values(), key=lambda used_block: -used_block.size)
        notes = [
            f"`{block.label}` of `{block.name}` holds {block.size:,} bytes"
            for block in blocks[:_MAX_NAMED]
        ]
        rest = sum(block.size for block in blocks[_MAX_NAMED:])
        if rest:
            notes.append(f"{len(blocks) - _MAX_NAMED} smaller arrays hold {rest:,} bytes")
        try:
            left = f", which has {self.context.free_memory():,} left"
        except DriverError:
            left = ""
        message = f"`{label}` of `{name}` takes {size:,} bytes of {self.name}{left}"
        helps = ("work on smaller pieces, or let go of tensors and contexts on the device",)
        return CdMemoryError(Diagnostic("CD0880", message, (), tuple(notes), helps))


@contextmanager
def _restored_on_error(items: MutableSequence[T], item: T) -> Iterator[None]:
    """Put an item back into a list where the body of the `with` fails."""
    try:
        yield
    except BaseException:
        items.append(item)
        raise
