"""Where a compiler might exchange what rounds of a loop need of each other.

A compiler that makes vectors of a loop takes neighbouring elements that it reads together where the
first of them is read, and those that it writes where the last is written. Where reads and writes of
one array take turns in a round, and a later round reads what an earlier one writes, that can go
wrong: gcc 12 lets

    for i: x[6*i + 6] = a; t[2*i] = x[6*i]; x[6*i + 7] = b; t[2*i + 1] = x[6*i + 1]

read before the round before has written. Such loops are few; they are kept from becoming vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...lowering.ir.expressions import Expr, Index, reads
from ...lowering.ir.indexing import Affine, Symbol, substitute, var
from ...lowering.ir.loops import Comment, For, If, Stmt, Store, Update
from ...lowering.ir.node import Node
from ...lowering.ir.walk import expressions_of

WRITTEN_OUT = 17
"""Compilers write out loops of so few rounds, so that a loop around them may become vectors."""
MOST = 128
"""What uses arrays more often than that is not written out."""
Values = Mapping[Symbol, Affine]


class _Touch(NamedTuple):
    """One use of an element in a round."""

    place: tuple[Index, ...]
    is_written: bool


def is_in_danger(loop: For) -> bool:
    """Whether rounds of a loop must be kept apart for the compiler."""
    if loop.kind != "serial":
        return False
    uses: dict[int, list[_Touch]] = {}
    for number, found in enumerate(_touches(loop.body, {})):
        if found is None or number == MOST:
            return False
        node, touch = found
        uses.setdefault(node.id, []).append(touch)
    return any(_takes_turns(found, loop) for found in uses.values())


def _takes_turns(found: Sequence[_Touch], loop: For) -> bool:
    """Whether a later round reads further down what is written, and writes come behind reads."""
    writes = [at for at, touch in enumerate(found) if touch.is_written]
    others = [at for at, touch in enumerate(found) if not touch.is_written]
    if not writes or not others or writes[-1] < others[0]:
        return False
    return any(
        _is_read_later(found[write].place, found[read].place, loop)
        for write in writes for read in others if write < read
    )  # fmt: skip


def _is_read_later(written: tuple[Index, ...], read: tuple[Index, ...], loop: For) -> bool:
    """Whether a later round may read the element that a round writes."""
    rounds = set[int]()
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
            rounds.add(later)
        elif gap:
            return False
    return len(rounds) < 2


def _touches(body: Sequence[Stmt], values: Values) -> Iterator[tuple[Node, _Touch] | None]:
    """Yield the arrays that a round uses, in its order, each with the place; None for a round of
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
                rounds = _written_out(stmt)
                for number in range(rounds):
                    at_round = substitute(lo, values) + step * number
                    yield from _touches(inner, {**values, symbol: at_round})
                if not rounds:
                    yield None
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
    """Return how many rounds a short loop has, 0 where it is long or not known."""
    rounds = (loop.hi - loop.lo).constant
    if rounds is None or loop.kind == "vector":
        return 0
    count = max(0, -(-rounds // loop.step))
    return count if count <= WRITTEN_OUT else 0
