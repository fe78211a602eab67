"""Which loops with others inside may become vectors: those whose rounds can be done in lanes.

Each of their statements has to be one that a compiler makes vectors of, and where the innermost
loops are, neighbouring rounds have to use neighbours in memory, or the same element. It changes
nothing.

>>> program = lowered("s[j] = sum(x[i, j])", s="f32[70]", x="f32[9, 70]")
>>> down = Outer(program.kernels[0].body[-1], reorders=False)
>>> down.is_plain(), down.is_near(frozenset()), down.touched()
(True, True, 2520)
>>> program = lowered("s[i] = sum(x[i, j])", s="f32[9]", x="f32[9, 70]")
>>> across = Outer(program.kernels[0].body[-1], reorders=False)
>>> across.is_plain(), across.is_near(frozenset())
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from ...base.dataclass import dataclass
from ..ir.expressions import Apply, Dynamic, Expr, Index, Position, Read, Select, reads, walk
from ..ir.indexing import Affine, Symbol
from ..ir.loops import Comment, For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.walk import expressions_of, own_reads, own_writes, statements, writes
from .complex_parts import is_complex, is_of_parts
from .subscripts import is_in_range, ranges, stride

_SLOW = frozenset(("floordiv", "mod", "fmod", "round_to", "round_decimal"))
"""Operations that no compiler makes vectors of."""


@dataclass(frozen=True, slots=True)
class Outer:
    """A loop that has others inside."""

    loop: For
    reorders: bool
    """Whether sums may be added up in another order: then some are for `lanes`."""
    outer: tuple[For, ...] = ()
    """The loops around it."""

    def nodes(self) -> Iterator[Node]:
        """Yield what the loop uses."""
        for stmt in statements(self.loop.body):
            yield from own_reads(stmt)
            yield from own_writes(stmt)

    def is_plain(self) -> bool:
        """Whether the loop has loops inside, and nothing but what vectors can do."""
        loop, inside = self.loop, statements(self.loop.body)
        return (
            loop.kind == "serial"
            and loop.step == 1
            and any(isinstance(stmt, For) for stmt in inside)
            and any(isinstance(stmt, Store | Update) for stmt in inside)
            and all(self.can(stmt) for stmt in inside)
            and all(n.dtype.compute is n.dtype for n in self.nodes())
        )

    def can(self, stmt: Stmt) -> bool:
        """Whether a statement can be done in lanes."""
        match stmt:
            case Comment():
                return True
            case For(_, lo, hi, kind="serial"):
                return self.loop.symbol not in lo.symbols() | hi.symbols()
            case Update(pair=None) | Store():
                index = stmt.access.index
                summed = isinstance(stmt, Update) and stmt.over and self.reorders
                plain = all(isinstance(at, Affine) for at in index)
                if isinstance(stmt, Update) and is_complex(stmt.access.node.dtype):
                    return False
                can = (is_of_parts(e) and can_be_vector(e) for e in expressions_of(stmt))
                return not summed and plain and all(can)
            case _:
                return False

    def room(self, mine: frozenset[int]) -> int | None:
        """Return how many bytes of arrays a round has for itself, None where that is unclear."""
        total = 0
        for stmt in statements(self.loop.body):
            for node, index in places(stmt):
                if node.id in mine and not _is_fixed(node, index, self.loop.symbol):
                    return None
        for node in dict.fromkeys(self.nodes()):
            total += node.bytes if node.id in mine and node.rank else 0
        return total

    def kept(self, mine: frozenset[int]) -> int:
        """Return how many bytes a round has for itself, at least 1."""
        return max(1, sum(node.bytes for node in dict.fromkeys(self.nodes()) if node.id in mine))

    def touched(self) -> int:
        """Return how many bytes of memory the rounds of all loops use, 0 where that is unclear."""
        most = 0
        for _, inner in _innermost(self.loop):
            rounds = (self.loop.hi - self.loop.lo).constant, (inner.hi - inner.lo).constant
            for stmt in inner.body:
                for node, index in places(stmt):
                    both = {self.loop.symbol, inner.symbol} <= symbols_in(index)
                    if both and rounds[0] is not None and rounds[1] is not None:
                        most = max(most, rounds[0] * rounds[1] * node.dtype.itemsize)
        return most

    def is_near(self, mine: frozenset[int]) -> bool:
        """Whether the innermost loops use neighbours, and are no vectors as they are."""
        changed = {node.id for node in writes(self.loop.body)}
        worth = False
        for between, inner in _innermost(self.loop):
            known = ranges((*self.outer, self.loop, *between))
            for stmt in inner.body:
                for node, index in places(stmt):
                    step = stride(node, index, self.loop.symbol)
                    if node.id in mine:
                        continue
                    if step not in (0, 1):
                        is_still = node.id not in changed and inner.symbol not in symbols_in(index)
                        if is_still and is_in_range(node, index, known):
                            continue
                        return False
                    worth |= step == 1 and stride(node, index, inner.symbol) not in (0, 1)
                if _accumulates(stmt):
                    worth |= inner.symbol not in symbols_in(stmt.access.index)
        return worth


def _accumulates(stmt: Stmt) -> TypeGuard[Store | Update]:
    """Whether a statement changes an element by what it has."""
    if not isinstance(stmt, Store):
        return isinstance(stmt, Update)
    place = stmt.access.node, stmt.access.index
    return any((read.node, read.index) == place for read in reads(stmt.value))


def can_be_vector(expr: Expr) -> bool:
    """Whether compilers make vectors of an expression, whatever the lane decides in it."""
    for part in walk(expr):
        match part:
            case Apply(op, _, dtype) if op.name in _SLOW or (
                op.name == "pow" and dtype.kind != "f"
            ):
                return False
            case Read(_, index) if any(isinstance(at, Dynamic) for at in index):
                return False
            case Select(test) if any(isinstance(one, Position) for one in walk(test)):
                return False
            case _:
                pass
    return True


def _innermost(loop: For) -> Iterator[tuple[tuple[For, ...], For]]:
    """Yield the loops inside that have none inside, each with those between."""
    for stmt in loop.body:
        if isinstance(stmt, For):
            if any(isinstance(one, For) for one in stmt.body):
                yield from (((stmt, *between), one) for between, one in _innermost(stmt))
            else:
                yield (), stmt


def places(stmt: Stmt) -> Iterator[tuple[Node, tuple[Index, ...]]]:
    """Yield what a statement itself reads and writes."""
    if isinstance(stmt, Store | Update):
        yield stmt.access.node, stmt.access.index
        for expr in expressions_of(stmt):
            for read in reads(expr):
                yield read.node, read.index


def _is_fixed(node: Node, index: tuple[Index, ...], symbol: Symbol) -> bool:
    """Whether a round's own array may become another, and the number of the round no part in it."""
    is_free = node.static_shape is not None and node.request is None
    return is_free and symbol not in symbols_in(index)


def symbols_in(index: Iterable[Index]) -> frozenset[Symbol]:
    """Return the symbols of plain subscripts."""
    parts = (at.symbols() for at in index if isinstance(at, Affine))
    return frozenset[Symbol]().union(*parts)
