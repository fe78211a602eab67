"""Ordered sums of several terms: loops whose vectors add the wrong elements.

gcc 12 vectorizes a sum whose terms are added in order, and keeps that order. Where an iteration,
with short loops inside unrolled, adds several terms to one float, it loads them as a group, and
loses their permutation: of

    for i: s += x[2*i + 1]; s += x[2*i]

it adds other elements. Sums whose terms are loaded in order are right, but gain nothing from
vectors either, as each addition waits for the one before it: vectorization is prevented for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ....base.dataclass import dataclass
from ....lowering.ir.assignments import Access, Let
from ....lowering.ir.expressions import Apply, Dynamic, Expr, Index, Position, Read, walk
from ....lowering.ir.indexing import Affine, Symbol, substitute, var
from ....lowering.ir.loops import For, If, Stmt, Store, Update
from ....lowering.ir.node import Node
from ....lowering.ir.walk import free_symbols
from .vectorizer_dependence import UNROLL_LIMIT

_Place = tuple[int, tuple[Index | None, ...]]
"""A node, by its id, and the subscripts of an element; None for one that is computed."""


def sums_in_order(loop: For) -> bool:
    """Whether an iteration adds several terms to one float, and may be vectorized."""
    terms: Counter[_Place] = Counter()
    lets: dict[Symbol, Expr] = {}
    numbers: dict[int, list[Expr]] = {}
    for stmt in _statements(loop.body):
        match stmt:
            case Let(symbol, value):
                lets[symbol] = value
            case Store(access, value) if not access.index:
                numbers.setdefault(access.node.id, []).append(value)
    if not _Sums(loop.symbol, lets, numbers).count(loop.body, (), terms):
        return False
    return any(count > 1 for count in terms.values())


def _statements(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield statements and those inside."""
    for stmt in body:
        yield stmt
        match stmt:
            case If(_, then, orelse):
                yield from _statements((*then, *orelse))
            case For():
                yield from _statements(stmt.body)
            case _:
                pass


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums in the iterations of a loop."""

    symbol: Symbol
    lets: Mapping[Symbol, Expr]
    """The values that an iteration binds."""
    numbers: Mapping[int, Sequence[Expr]]
    """The values that it stores to nodes without axes, by their ids."""

    def count(self, body: Sequence[Stmt], inner: tuple[For, ...], terms: Counter[_Place]) -> bool:
        """Count the terms that are added to each element that is the same in all iterations; return
        whether the body, inside of some short loops, has no loops but short ones."""
        for stmt in body:
            match stmt:
                case Store(access, value) if self.is_sum(access):
                    added = self.added(value, self.place(access.node, access.index))
                    terms[self.place(access.node, access.index, inner)] += added * _times(
                        access, inner
                    )
                case Update(access, op, value) if self.is_sum(access):
                    place = self.place(access.node, access.index)
                    added = (1 if op.name in ("add", "sub") else 0) + self.added(value, place)
                    terms[self.place(access.node, access.index, inner)] += added * _times(
                        access, inner
                    )
                case If(_, then, orelse):
                    if not all(self.count(side, inner, terms) for side in (then, orelse)):
                        return False
                case For():
                    trip_count = (stmt.hi - stmt.lo).constant
                    if trip_count is None or trip_count >= UNROLL_LIMIT or stmt.kind == "vector":
                        return False
                    if not self.count(stmt.body, (*inner, stmt), terms):
                        return False
                case _:
                    pass
        return True

    def place(self, node: Node, index: tuple[Index, ...], inner: tuple[For, ...] = ()) -> _Place:
        """Return the key of an element: those at computed subscripts may be the same one, and so
        may those that short loops one after another access."""
        depths = {loop.symbol: var(Symbol("", depth - 64)) for depth, loop in enumerate(inner)}
        return node.id, tuple(
            None if isinstance(at, Dynamic) or any(s in self.lets for s in at.symbols())
            else substitute(at, depths)
            for at in index
        )  # fmt: skip

    def is_sum(self, access: Access) -> bool:
        """Whether an element is a float that every iteration of the loop accesses."""
        return access.node.dtype.kind in "fc" and not any(map(self.varies, access.index))

    def varies(self, at: Index) -> bool:
        """Whether a subscript is computed from the number of the iteration."""
        pending = [at.value if isinstance(at, Dynamic) else Position(at)]
        seen: set[object] = set()
        while pending:
            value = pending.pop()
            symbols = free_symbols(value) - seen
            if self.symbol in symbols:
                return True
            nodes = {each.node.id for each in walk(value) if isinstance(each, Read)} - seen
            seen |= symbols | nodes
            pending += [self.lets[symbol] for symbol in symbols if symbol in self.lets]
            pending += [stored for node in nodes for stored in self.numbers.get(node, ())]
        return False

    def added(self, value: Expr, place: _Place) -> int:
        """Return how many terms a value adds to the element that it is stored to."""
        match value:
            case Apply(op, (left, right)) if op.name in ("add", "sub"):
                return max(
                    1 + self.added(side, place) if self.reads(side, place) else 0
                    for side in (left, right)
                )
            case _:
                return 0

    def reads(self, value: Expr, place: _Place) -> bool:
        """Whether a sum has an element as a term."""
        match value:
            case Read(node, index):
                return self.place(node, index) == place
            case Apply(op, args) if op.name in ("add", "sub"):
                return any(self.reads(side, place) for side in args)
            case _:
                return False


def _times(access: Access, inner: tuple[For, ...]) -> int:
    """Return how often short loops access the same element."""
    times = 1
    for loop in inner:
        if not any(loop.symbol in at.symbols() for at in access.index if isinstance(at, Affine)):
            times *= max((loop.hi - loop.lo).constant or 0, 0)
    return times
