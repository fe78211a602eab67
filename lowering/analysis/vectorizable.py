"""Outer-loop vectorization: loops with inner loops whose iterations can be SIMD lanes.

Each of their statements has to be one that compilers vectorize, and in the innermost loops
neighbouring iterations have to access neighbours in memory, or the same element. Analysis only.

>>> program = lowered("s[j] = sum(x[i, j])", s="f32[70]", x="f32[9, 70]")
>>> down = OuterLoop(program.kernels[0].body[-1], reorders=False)
>>> down.is_plain(), down.is_near(frozenset()), down.touched()
(True, True, 2520)
>>> program = lowered("s[i] = sum(x[i, j])", s="f32[9]", x="f32[9, 70]")
>>> across = OuterLoop(program.kernels[0].body[-1], reorders=False)
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
from ..ir.walk import direct_reads, direct_writes, expressions_of, statements, writes
from .complex_parts import is_complex, reads_only_parts
from .subscripts import is_in_range, ranges, stride

_SCALAR_OPS = frozenset(("floordiv", "mod", "fmod", "round_to", "round_decimal"))
"""Operations that no compiler vectorizes."""


@dataclass(frozen=True, slots=True)
class OuterLoop:
    """A loop with inner loops."""

    loop: For
    reorders: bool
    """Whether sums are reassociable: then some are for `vectorize_reductions`."""
    outer: tuple[For, ...] = ()
    """The loops around it."""

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes that the loop accesses."""
        for stmt in statements(self.loop.body):
            yield from direct_reads(stmt)
            yield from direct_writes(stmt)

    def is_plain(self) -> bool:
        """Whether the loop has inner loops, and only statements that can be vectorized."""
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
        """Whether a statement can be done in SIMD lanes."""
        match stmt:
            case Comment():
                return True
            case For(_, lo, hi, kind="serial"):
                return self.loop.symbol not in lo.symbols() | hi.symbols()
            case Update(pair=None) | Store():
                index = stmt.access.index
                is_for_lanes = isinstance(stmt, Update) and stmt.over and self.reorders
                is_affine = all(isinstance(at, Affine) for at in index)
                if isinstance(stmt, Update) and is_complex(stmt.access.node.dtype):
                    return False
                can = (reads_only_parts(e) and can_be_vector(e) for e in expressions_of(stmt))
                return not is_for_lanes and is_affine and all(can)
            case _:
                return False

    def private_bytes(self, private: frozenset[int]) -> int | None:
        """Return how many bytes of arrays are private to an iteration, None where an array cannot
        be expanded."""
        total = 0
        for stmt in statements(self.loop.body):
            for node, index in statement_accesses(stmt):
                if node.id in private and not _is_expandable(node, index, self.loop.symbol):
                    return None
        for node in dict.fromkeys(self.nodes()):
            total += node.bytes if node.id in private and node.rank else 0
        return total

    def lane_bytes(self, private: frozenset[int]) -> int:
        """Return how many bytes are private to an iteration, at least 1."""
        return max(1, sum(node.bytes for node in dict.fromkeys(self.nodes()) if node.id in private))

    def touched(self) -> int:
        """Return how many bytes of memory all iterations access, 0 where that is unclear."""
        greatest = 0
        for _, inner in _innermost(self.loop):
            trip_counts = (self.loop.hi - self.loop.lo).constant, (inner.hi - inner.lo).constant
            for stmt in inner.body:
                for node, index in statement_accesses(stmt):
                    is_in_both = {self.loop.symbol, inner.symbol} <= subscript_symbols(index)
                    if is_in_both and trip_counts[0] is not None and trip_counts[1] is not None:
                        greatest = max(
                            greatest, trip_counts[0] * trip_counts[1] * node.dtype.itemsize
                        )
        return greatest

    def is_near(self, private: frozenset[int]) -> bool:
        """Whether accesses of the innermost loops are contiguous or invariant in this loop, and not
        in those themselves."""
        changed = {node.id for node in writes(self.loop.body)}
        is_worthwhile = False
        for between, inner in _innermost(self.loop):
            domain = ranges((*self.outer, self.loop, *between))
            for stmt in inner.body:
                for node, index in statement_accesses(stmt):
                    step = stride(node, index, self.loop.symbol)
                    if node.id in private:
                        continue
                    if step not in (0, 1):
                        is_invariant = (
                            node.id not in changed and inner.symbol not in subscript_symbols(index)
                        )
                        if is_invariant and is_in_range(node, index, domain):
                            continue
                        return False
                    is_worthwhile |= step == 1 and stride(node, index, inner.symbol) not in (0, 1)
                if _is_update(stmt):
                    is_worthwhile |= inner.symbol not in subscript_symbols(stmt.access.index)
        return is_worthwhile


def _is_update(stmt: Stmt) -> TypeGuard[Store | Update]:
    """Whether a statement updates an element from its old value."""
    if not isinstance(stmt, Store):
        return isinstance(stmt, Update)
    target = stmt.access.node, stmt.access.index
    return any((read.node, read.index) == target for read in reads(stmt.value))


def can_be_vector(expr: Expr) -> bool:
    """Whether compilers vectorize an expression, whatever the lane decides in it."""
    for part in walk(expr):
        match part:
            case Apply(op, _, dtype) if op.name in _SCALAR_OPS or (
                op.name == "pow" and dtype.kind != "f"
            ):
                return False
            case Read(_, index) if any(isinstance(at, Dynamic) for at in index):
                return False
            case Select(test) if any(isinstance(operand, Position) for operand in walk(test)):
                return False
            case _:
                pass
    return True


def _innermost(loop: For) -> Iterator[tuple[tuple[For, ...], For]]:
    """Yield the innermost loops, each with those between."""
    for stmt in loop.body:
        if isinstance(stmt, For):
            if any(isinstance(nested, For) for nested in stmt.body):
                yield from (
                    ((stmt, *between), innermost) for between, innermost in _innermost(stmt)
                )
            else:
                yield (), stmt


def statement_accesses(stmt: Stmt) -> Iterator[tuple[Node, tuple[Index, ...]]]:
    """Yield the accesses of a statement itself."""
    if isinstance(stmt, Store | Update):
        yield stmt.access.node, stmt.access.index
        for expr in expressions_of(stmt):
            for read in reads(expr):
                yield read.node, read.index


def _is_expandable(node: Node, index: tuple[Index, ...], symbol: Symbol) -> bool:
    """Whether a private array has a static shape and no memory request, so that it can be expanded,
    and its index does not use the loop's variable."""
    is_free = node.static_shape is not None and node.request is None
    return is_free and symbol not in subscript_symbols(index)


def subscript_symbols(index: Iterable[Index]) -> frozenset[Symbol]:
    """Return the symbols of affine subscripts."""
    parts = (at.symbols() for at in index if isinstance(at, Affine))
    return frozenset[Symbol]().union(*parts)
