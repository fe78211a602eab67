"""Which nests accumulate for every pair of a row and a column: products of matrices, whatever the
order, number, stride or affine form of their axes, and all that is done to their elements.

    for i, for j:  start;  for k: acc = acc + f(a(i, k), b(k, j));  rest

The terms are made from parts that know only the row and parts that know only the column (and the
rounds `k` that count), so a block of rows and a block of columns need each part once. That is
found here; `tiles` makes loops of it. It changes nothing.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> program = lowered("c[i, j] = sum(a[i, k] * b[j, k])", c="f32[8, 9]", a="f32[8, 5]",
...                   b="f32[9, 5]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> found = contraction(nest, fresh_for(program))
>>> found.row.symbol.name, found.column.symbol.name, [k.symbol.name for k in found.nest.depth]
('i', 'j', ['k'])
>>> [(part.side, part.value.node.label) for part in found.parts]
[('row', 'a'), ('column', 'b')]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..clash import symbols_of
from ..ir import dtypes
from ..ir.expressions import Apply, Cast, Expr, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, Store, Update
from ..ir.node import Node
from ..ir.walk import statements
from .accumulation import Accumulation, Body, accumulation

ON_VECTORS = frozenset(("add", "sub", "mul", "product", "div", "neg", "max", "min"))
"""What a vector of columns can do without a loop."""
Side = Literal["row", "column"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of each term that knows only the row, or only the column."""

    node: Node
    """Stands for it in the term; the program does not have it."""
    value: Expr
    side: Side


@dataclass(frozen=True, slots=True)
class Contraction:
    """A nest that accumulates for every row and every column."""

    nest: Accumulation
    row: For
    column: For
    term: Expr
    """What is accumulated, in terms of the parts."""
    parts: tuple[Part, ...]

    @property
    def others(self) -> tuple[For, ...]:
        """The loops that are neither row nor column."""
        chain = self.nest.chain
        return tuple(one for one in chain if one is not self.row and one is not self.column)


def contraction(loop: For, fresh: Fresh) -> Contraction | None:
    """Return the contraction that a nest is, None where it is none.

    Whether its loops may change places is for the caller to find out.
    """
    nest = accumulation(loop, fresh)
    pair = None if nest is None else _pair(nest)
    if nest is None or pair is None:
        return None
    row, column = pair
    split = _Split(row.symbol, column.symbol, frozenset(k.symbol for k in nest.depth))
    term = split.term(nest.update.value)
    if term is None or {part.side for part in split.parts} != {"row", "column"}:
        return None
    return Contraction(nest, row, column, term, tuple(split.parts))


def _pair(nest: Accumulation) -> tuple[For, For] | None:
    """Return the loops over rows and over columns, of which neighbours are stored side by side."""
    counting = {k.symbol for k in nest.depth}
    read = (symbols_of(one) for one in reads(nest.update.value))
    terms = [symbols for symbols in read if symbols & counting]
    stored = _last_axes(nest.rest)
    best: tuple[tuple[bool, int, int, int], tuple[For, For]] | None = None
    for number, column in enumerate(nest.chain):
        for row in nest.chain:
            alone = any(column.symbol in one and row.symbol not in one for one in terms)
            other = any(row.symbol in one and column.symbol not in one for one in terms)
            if alone and other and _is_free(nest, row, column):
                sides = column.symbol in stored, _rounds(column), _rounds(row), number
                if best is None or sides > best[0]:
                    best = sides, (row, column)
    return None if best is None else best[1]


def _is_free(nest: Accumulation, row: For, column: For) -> bool:
    """Whether no bound of a loop depends on the row or the column."""
    pair = {row.symbol, column.symbol}
    loops = (*nest.chain, *nest.depth)
    return all(not (one.lo.symbols() | one.hi.symbols()) & pair for one in loops)


def _last_axes(rest: Body) -> frozenset[Symbol]:
    """Return the symbols of the last axes of what is stored."""
    found: frozenset[Symbol] = frozenset()
    for stmt in statements(rest):
        if isinstance(stmt, Store | Update) and stmt.access.index:
            last = stmt.access.index[-1]
            found |= last.symbols() if isinstance(last, Affine) else frozenset()
    return found


def _rounds(loop: For) -> int:
    """Return how many rounds a loop has, up to which more make no difference."""
    rounds = (loop.hi - loop.lo).constant
    return 64 if rounds is None else min(64, rounds)


@dataclass(slots=True)
class _Split:
    """The parts of a term, as they are found."""

    row: Symbol
    column: Symbol
    counting: frozenset[Symbol]
    parts: list[Part] = field(default_factory=list)

    def term(self, value: Expr) -> Expr | None:
        """Return a term with its parts named; None where more than arithmetic joins them."""
        used = symbols_of(value)
        if not {self.row, self.column} <= used:
            if used.isdisjoint((self.row, self.column, *self.counting)):
                return value
            return self.part(value, "column" if self.column in used else "row")
        match value:
            case Apply(op, args, dtype) if op.name in ON_VECTORS:
                terms = [self.term(arg) for arg in args]
                known = tuple(term for term in terms if term is not None)
                return Apply(op, known, dtype) if len(known) == len(terms) else None
            case Cast(inner, dtypes.float64) if inner.dtype is dtypes.float32:
                term = self.term(inner)
                return None if term is None else Cast(term, dtypes.float64)
            case _:
                return None

    def part(self, value: Expr, side: Side) -> Expr | None:
        """Return what stands for a part of the term, None where vectors do not hold its type."""
        if value.dtype not in (dtypes.float32, dtypes.float64):
            return None
        for known in self.parts:
            if known.value == value:
                return Read(known.node, ())
        made = Part(Node(-1 - len(self.parts), f"{side}s", (), value.dtype), value, side)
        self.parts.append(made)
        return Read(made.node, ())
