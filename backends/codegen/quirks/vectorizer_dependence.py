"""Missed loop-carried dependences of vectorizers: loops that gcc 12 would miscompile.

A vectorizer groups loads of adjacent elements at the first of them, and stores at the last. Where
loads and stores of one array alternate in an iteration, and a later iteration reads what an earlier
one writes, grouping can violate the dependence: gcc 12 lets

    for i: x[6*i + 6] = a; t[2*i] = x[6*i]; x[6*i + 7] = b; t[2*i + 1] = x[6*i + 1]

read before the previous iteration has written. Such loops are rare; their vectorization is
prevented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from ....base.dataclass import dataclass
from ....lowering.ir.expressions import Expr, Index, reads
from ....lowering.ir.indexing import Affine, Symbol, substitute, var
from ....lowering.ir.loops import Comment, For, If, Stmt, Store, Update
from ....lowering.ir.node import Node
from ....lowering.ir.walk import expressions_of, writes
from ....lowering.ir.walk import reads as reads_of

UNROLL_LIMIT = 17
"""Compilers unroll loops of less trip count than this, so that an outer loop may be vectorized."""
ACCESS_LIMIT = 512
"""Loops with more accesses than this in all their iterations are not unrolled: gcc peels a loop
completely up to 200 instructions, clang up to about 400, and each access is at least one."""
Values = Mapping[Symbol, Affine]


class _Access(NamedTuple):
    """One access of an element in an iteration."""

    place: tuple[Index, ...]
    is_written: bool


@dataclass(slots=True)
class _ArrayAccesses:
    """The accesses of a body to an array: sequence numbers by subscripts."""

    first_writes: dict[tuple[Index, ...], int] = field(default_factory=dict)
    last_reads: dict[tuple[Index, ...], int] = field(default_factory=dict)
    last_write: int = -1
    first_read: int | None = None

    def note(self, access: _Access, number: int) -> None:
        """Record one more access."""
        if access.is_written:
            self.first_writes.setdefault(access.place, number)
            self.last_write = number
        else:
            self.last_reads[access.place] = number
            self.first_read = number if self.first_read is None else self.first_read


def is_miscompiled(loop: For) -> bool:
    """Whether a loop needs a compiler barrier between iterations."""
    written = {node for node in writes(loop.body) if node.rank}
    if loop.kind != "serial" or written.isdisjoint(reads_of(loop.body)):
        return False
    accesses: dict[int, _ArrayAccesses] = {}
    for number, entry in enumerate(_accesses(loop.body, {})):
        if entry is None:
            return False
        node, access = entry
        accesses.setdefault(node.id, _ArrayAccesses()).note(access, number)
    return any(_violates_dependence(entry, loop) for entry in accesses.values())


def _violates_dependence(accesses: _ArrayAccesses, loop: For) -> bool:
    """Whether a later iteration reads, further down in the body, what one writes after a read.

    The first write and the last read of each subscript decide it, so that the cost is linear in the
    body where few distinct subscripts occur.
    """
    if accesses.first_read is None or accesses.last_write < accesses.first_read:
        return False
    return any(
        _is_read_later(write_index, read_index, loop)
        for write_index, write in accesses.first_writes.items()
        for read_index, read in accesses.last_reads.items()
        if write < read
    )


def _is_read_later(written: tuple[Index, ...], read: tuple[Index, ...], loop: For) -> bool:
    """Whether a later iteration may read the element that one writes."""
    distances = set[int]()
    for write_at, read_at in zip(written, read, strict=True):
        if not isinstance(write_at, Affine) or not isinstance(read_at, Affine):
            continue
        stride = write_at.coefficient(loop.symbol)
        offset = (write_at - read_at).constant
        if offset is None or loop.symbol in (write_at - var(loop.symbol) * stride).symbols():
            continue
        if stride:
            distance, rest = divmod(offset, stride * loop.step)
            if rest or distance < 1:
                return False
            distances.add(distance)
        elif offset:
            return False
    return len(distances) < 2


def _accesses(body: Sequence[Stmt], values: Values) -> Iterator[tuple[Node, _Access] | None]:
    """Yield the accesses of an iteration in order, with their arrays; None for a statement that
    prevents vectorization."""
    for stmt in body:
        match stmt:
            case Store(access) | Update(access):
                for value in expressions_of(stmt):
                    yield from _read_accesses(value, values)
                if access.node.rank:
                    at = _substitute_index(access.index, values)
                    if isinstance(stmt, Update):
                        yield access.node, _Access(at, False)
                    yield access.node, _Access(at, True)
            case If():
                for part in (stmt.then, stmt.orelse):
                    yield from _accesses(part, values)
            case For(symbol, lo, _, step, inner):
                count = _unrolled_trip_count(stmt)
                inner_accesses = list(_accesses(inner, {**values, symbol: substitute(lo, values)}))
                if (
                    not count
                    or count * len(inner_accesses) > ACCESS_LIMIT
                    or None in inner_accesses
                ):
                    yield None
                    continue
                yield from inner_accesses
                for number in range(1, count):
                    start = substitute(lo, values) + step * number
                    yield from _accesses(inner, {**values, symbol: start})
            case Comment():
                pass
            case _:
                yield None


def _read_accesses(value: Expr, values: Values) -> Iterator[tuple[Node, _Access]]:
    for read in reads(value):
        if read.node.rank:
            yield read.node, _Access(_substitute_index(read.index, values), False)


def _substitute_index(index: tuple[Index, ...], values: Values) -> tuple[Index, ...]:
    return tuple(substitute(at, values) if isinstance(at, Affine) else at for at in index)


def _unrolled_trip_count(loop: For) -> int:
    """Return the trip count of a short loop, 0 where it is long or dynamic."""
    length = (loop.hi - loop.lo).constant
    if length is None or loop.kind == "vector":
        return 0
    count = max(0, -(-length // loop.step))
    return count if count <= UNROLL_LIMIT else 0
