"""The values of the forward statements that the adjoint statements read again, and where they are.

A value that nothing overwrites later is read where it is. Any other is kept: its array is copied
before the statement that read it, into an array with an axis for each sequential loop around.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    For,
    Permute,
    Procedure,
    Statement,
    While,
)
from ..ir.dtypes import DType
from ..ir.expressions import Domain, Dynamic, Expr, Index, Read, rebuild
from ..ir.indexing import Affine, Quasi, Range, Symbol, const, floordiv, maximum, substitute, var
from ..ir.node import Node
from ..ir.walk import binds, bodies, direct_writes, statements
from .refusal import NotDifferentiable

Loops = tuple[For | While, ...]


@dataclass(slots=True)
class Names:
    """New nodes and symbols of a procedure."""

    node: int
    serial: int
    nodes: list[Node] = field(default_factory=list)

    @classmethod
    def above(cls, procedure: Procedure) -> Names:
        """Return names that occur nowhere in a procedure."""
        nodes = [p.node for p in procedure.parameters]
        ids = [n.id for n in (*nodes, *procedure.locals, *procedure.results)]
        symbols = [s.serial for stmt in statements(procedure.body) for s in binds(stmt)]
        symbols += [s.serial for n in nodes for e in n.shape for s in e.symbols()]
        return cls(max(ids, default=0), max(symbols, default=0))

    def array(self, label: str, shape: Sequence[Affine], dtype: DType) -> Node:
        """Return a new local."""
        self.node += 1
        node = Node(self.node, label, tuple(shape), dtype)
        self.nodes.append(node)
        return node

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def axes(self, shape: Sequence[Affine]) -> tuple[Range, ...]:
        """Return new symbols over the axes of an array."""
        return tuple(
            Range(self.symbol("ijklmn"[axis % 6]), const(0), size)
            for axis, size in enumerate(shape)
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement is: its number in program order, and the loops around it."""

    number: int
    loops: Loops


def places(body: Sequence[Statement]) -> dict[int, Place]:
    """Return the places of all statements of a body, by the `id` of each."""
    found: dict[int, Place] = {}

    def visit(stmts: Sequence[Statement], loops: Loops) -> None:
        for stmt in stmts:
            found[id(stmt)] = Place(len(found), loops)
            inner = (*loops, stmt) if isinstance(stmt, For | While) else loops
            for nested in bodies(stmt):
                visit(nested, inner)

    visit(body, ())
    return found


def writes(body: Sequence[Statement], at: Mapping[int, Place]) -> dict[int, list[Place]]:
    """Return where each node is written, by its id."""
    found: dict[int, list[Place]] = {}
    for stmt in statements(body):
        nodes = [stmt.node] if isinstance(stmt, Alloc) else list(direct_writes(stmt))
        if isinstance(stmt, Permute):
            nodes += stmt.nodes
        for node in nodes:
            found.setdefault(node.id, []).append(at[id(stmt)])
    return found


@dataclass(slots=True)
class Kept:
    """What is kept: arrays by node and statement, and the statements that fill them."""

    names: Names
    places: Mapping[int, Place]
    written: Mapping[int, list[Place]]
    arrays: dict[tuple[int, int], Node] = field(default_factory=dict)
    allocations: list[Alloc] = field(default_factory=list)
    """Those of run-time shape, which have to be allocated before the outermost loop."""

    def is_stable(self, node: Node, place: Place) -> bool:
        """Whether nothing writes a node from a statement on."""
        return all(
            write.number < place.number
            and not any(loop in place.loops for loop in write.loops)
            for write in self.written.get(node.id, ())
        )

    def reads(self, expr: Expr, stmt: Statement, before: list[Statement]) -> Expr:
        """Return an expression with the values that its reads had at a statement.

        `before` receives the statements that keep them.
        """
        place = self.places[id(stmt)]

        def changed(part: Expr) -> Expr:
            part = rebuild(part, changed, lambda index: index)
            if not isinstance(part, Read) or self.is_stable(part.node, place):
                return part
            kept, index = self.array(part.node, place, before)
            return Read(kept, (*index, *part.index), part.span)

        return changed(expr)

    def index(self, index: tuple[Index, ...], stmt: Statement, before: list[Statement]) -> tuple[Index, ...]:
        """Return subscripts with the values that they had at a statement."""
        return tuple(
            Dynamic(self.reads(at.value, stmt, before)) if isinstance(at, Dynamic) else at
            for at in index
        )

    def array(
        self, node: Node, place: Place, before: list[Statement]
    ) -> tuple[Node, tuple[Affine, ...]]:
        """Return the array that keeps a node, and the subscripts of the iteration in it."""
        iteration = tuple(_iteration(loop) for loop in place.loops)
        key = node.id, place.number
        if key not in self.arrays:
            shape = (*_trip_counts(place.loops), *node.shape)
            kept = self.names.array(f"{node.label}_kept", shape, node.dtype)
            self.arrays[key] = kept
            if kept.static_shape is None:
                self.allocations.append(Alloc(kept))
            ranges = self.names.axes(node.shape)
            axes = tuple(var(r.symbol) for r in ranges)
            target = Access(kept, (*iteration, *axes))
            before.append(Assign(target, None, False, Read(node, axes), Domain(ranges)))
        return self.arrays[key], iteration


def _iteration(loop: For | While) -> Affine:
    """Return the number of an iteration, from zero."""
    if isinstance(loop, While):
        raise NotDifferentiable("the number of iterations of a `while` is not known", loop.span)
    return floordiv(var(loop.symbol) - loop.lo, const(loop.step))


def trip_count(loop: For) -> Affine:
    """Return the number of iterations of a loop."""
    if loop.step == 1:
        return loop.hi - loop.lo
    toward = 1 if loop.step > 0 else -1
    return floordiv(loop.hi - loop.lo + (loop.step - toward), const(loop.step))


def _trip_counts(loops: Loops) -> Iterator[Affine]:
    """Yield the largest trip count of each loop over all iterations of those around it."""
    around: list[For] = []
    for loop in loops:
        assert isinstance(loop, For)
        count = trip_count(loop)
        for outer in reversed(around):
            count = _largest(count, outer)
        yield maximum(count, const(0))
        around.append(loop)


def _largest(count: Affine, outer: For) -> Affine:
    """Return the largest value of an index expression over the iterations of a loop."""
    if outer.symbol not in count.symbols():
        return count
    if any(isinstance(a, Quasi) and outer.symbol in Affine(((a, 1),)).symbols() for a, _ in count.terms):
        raise NotDifferentiable("a loop's length depends on another loop in no linear way", outer.span)
    last = outer.lo + (trip_count(outer) - 1) * outer.step
    at_end = (count.coefficient(outer.symbol) > 0) == (outer.step > 0)
    return substitute(count, {outer.symbol: last if at_end else outer.lo})
