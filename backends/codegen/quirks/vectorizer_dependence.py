"""Where a compiler might exchange what iterations of a loop need of each other.

A compiler that makes vectors of a loop takes neighbouring elements that it reads together where the
first of them is read, and those that it writes where the last is written. Where reads and writes of
one array take turns in an iteration, and a later one reads what an earlier one writes, that can go
wrong: gcc 12 lets

    for i: x[6*i + 6] = a; t[2*i] = x[6*i]; x[6*i + 7] = b; t[2*i + 1] = x[6*i + 1]

read before the iteration before has written. Such loops are few; they are kept from becoming
vectors.
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

WRITTEN_OUT = 17
"""Compilers write out loops of so few iterations, so that a loop around them may become vectors."""
PEELED = 512
"""Loops that use arrays more often than that in all their iterations are not written out: gcc peels
a loop completely for at most 200 instructions, clang for about 400, and each use is one or more."""
Values = Mapping[Symbol, Affine]


class _Touch(NamedTuple):
    """One use of an element in an iteration."""

    place: tuple[Index, ...]
    is_written: bool


@dataclass(slots=True)
class _Uses:
    """Where a body uses an array: the number of a use by its place, counted over all arrays."""

    first_writes: dict[tuple[Index, ...], int] = field(default_factory=dict)
    last_reads: dict[tuple[Index, ...], int] = field(default_factory=dict)
    last_write: int = -1
    first_read: int | None = None

    def note(self, touch: _Touch, number: int) -> None:
        """Count one more use."""
        if touch.is_written:
            self.first_writes.setdefault(touch.place, number)
            self.last_write = number
        else:
            self.last_reads[touch.place] = number
            self.first_read = number if self.first_read is None else self.first_read


def is_in_danger(loop: For) -> bool:
    """Whether iterations of a loop must be kept apart for the compiler."""
    written = {node for node in writes(loop.body) if node.rank}
    if loop.kind != "serial" or written.isdisjoint(reads_of(loop.body)):
        return False
    uses: dict[int, _Uses] = {}
    for number, found in enumerate(_touches(loop.body, {})):
        if found is None:
            return False
        node, touch = found
        uses.setdefault(node.id, _Uses()).note(touch, number)
    return any(_takes_turns(found, loop) for found in uses.values())


def _takes_turns(found: _Uses, loop: For) -> bool:
    """Whether a later iteration reads further down what is written, and writes come behind reads.

    Only the first write of a place and the last read of one can decide it, so that a body that
    uses a few places many times costs no more than its length.
    """
    if found.first_read is None or found.last_write < found.first_read:
        return False
    return any(
        _is_read_later(place, other, loop)
        for place, write in found.first_writes.items()
        for other, read in found.last_reads.items()
        if write < read
    )


def _is_read_later(written: tuple[Index, ...], read: tuple[Index, ...], loop: For) -> bool:
    """Whether a later iteration may read the element that one writes."""
    distances = set[int]()
    for one, other in zip(written, read, strict=True):
        if not isinstance(one, Affine) or not isinstance(other, Affine):
            continue
        by = one.coefficient(loop.symbol)
        gap = (one - other).constant
        if gap is None or loop.symbol in (one - var(loop.symbol) * by).symbols():
            continue
        if by:
            later, rest = divmod(gap, by * loop.step)
            if rest or later < 1:
                return False
            distances.add(later)
        elif gap:
            return False
    return len(distances) < 2


def _touches(body: Sequence[Stmt], values: Values) -> Iterator[tuple[Node, _Touch] | None]:
    """Yield the arrays that an iteration uses, in its order, each with the place; None for one of
    which no vectors are made."""
    for stmt in body:
        match stmt:
            case Store(access) | Update(access):
                for value in expressions_of(stmt):
                    yield from _read(value, values)
                if access.node.rank:
                    at = _at(access.index, values)
                    if isinstance(stmt, Update):
                        yield access.node, _Touch(at, False)
                    yield access.node, _Touch(at, True)
            case If():
                for part in (stmt.then, stmt.other):
                    yield from _touches(part, values)
            case For(symbol, lo, _, step, inner):
                count = _written_out(stmt)
                found = list(_touches(inner, {**values, symbol: substitute(lo, values)}))
                if not count or count * len(found) > PEELED or None in found:
                    yield None
                    continue
                yield from found
                for number in range(1, count):
                    start = substitute(lo, values) + step * number
                    yield from _touches(inner, {**values, symbol: start})
            case Comment():
                pass
            case _:
                yield None


def _read(value: Expr, values: Values) -> Iterator[tuple[Node, _Touch]]:
    for read in reads(value):
        if read.node.rank:
            yield read.node, _Touch(_at(read.index, values), False)


def _at(index: tuple[Index, ...], values: Values) -> tuple[Index, ...]:
    return tuple(substitute(at, values) if isinstance(at, Affine) else at for at in index)


def _written_out(loop: For) -> int:
    """Return how many iterations a short loop has, 0 where it is long or not known."""
    length = (loop.hi - loop.lo).constant
    if length is None or loop.kind == "vector":
        return 0
    count = max(0, -(-length // loop.step))
    return count if count <= WRITTEN_OUT else 0
