"""What an array is computed from: the nests that store it, turned round.

A `Layer` is a nest around one store. Layers lie over each other in program order: `zeros`, then an
inner slice, then a diagonal. `value_at` asks for one cell, and answers with an expression: the
value of the uppermost layer that reaches the cell. Whether it does is proven where that can be;
otherwise a range, or two indices that have to be equal, become a guard.

>>> from plusequals.lowering.ir import dtypes
>>> from plusequals.lowering.ir.assignments import Access
>>> from plusequals.lowering.ir.indexing import const
>>> from plusequals.lowering.ir.printer import print_expr
>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> d = Node(0, "d", (const(8), const(8)), dtypes.int64)
>>> store = Store(Access(d, (var(i), var(i))), Position(var(i)))
>>> diagonal = layer(For(i, const(0), const(8), 1, (store,)))
>>> zero = Const(0, dtypes.int64)
>>> print_expr(value_at((diagonal,), (const(3), var(j)), (), (), zero))
'3 if j == 3 else 0'
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Select, conjuncts
from ..ir.indexing import Affine, Range, Symbol, const, floordiv, mod, substitute, var
from ..ir.loops import Comment, Fill, For, If, Stmt, Store
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import substitute_expr
from .accesses import has_jumps
from .expression_cost import UNKNOWN, rounds
from .guarded_reads import nodes_of
from .subscripts import differs, holds, is_least

Guards = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A nest of loops and branches around one store."""

    node: Node
    index: tuple[Index, ...] | None
    """None: every cell gets the same value."""
    value: Expr
    inside: tuple[Stmt, ...]
    """The loops and branches of the nest."""
    tests: tuple[Expr, ...]

    @property
    def sources(self) -> frozenset[Node]:
        """The nodes that decide what is stored, and where."""
        places = (at.value for at in self.index or () if isinstance(at, Dynamic))
        return nodes_of(self.value).union(*map(nodes_of, (*self.tests, *places)))

    @property
    def points(self) -> int:
        """How often the store runs; of sizes that are not known, about."""
        if self.index is None:
            return prod(self.node.static_shape or (UNKNOWN,) * self.node.rank)
        return rounds(self.inside)


def layer(stmt: Stmt | None) -> Layer | None:
    """Return what a statement stores, if it is a nest of loops and branches around one store."""
    inside: list[Stmt] = []
    tests: list[Expr] = []
    while stmt is not None:
        match stmt:
            case Store(access, value):
                return Layer(access.node, access.index, value, tuple(inside), tuple(tests))
            case Fill(node, value):
                return None if inside else Layer(node, None, value, (), ())
            case For(body=body) if not has_jumps(stmt):
                inside.append(stmt)
            case If(test, body, ()):
                inside.append(stmt)
                tests += conjuncts(test)
            case _:
                return None
        code = [one for one in body if not isinstance(one, Comment)]
        stmt = code[0] if len(code) == 1 else None
    return None


class Unplaced(Exception):
    """The point at which a cell was computed cannot be told from its index."""


class Unwritten(Exception):
    """The cell may be one that no layer reaches."""


def value_at(
    layers: tuple[Layer, ...],
    index: tuple[Index, ...],
    known: tuple[Range, ...],
    tests: tuple[Expr, ...],
    below: Expr | None,
) -> Expr:
    """Return what a cell was computed from, where symbols are in ranges and tests hold.

    `below` is what cells hold that no layer reaches. Raises Unplaced, and Unwritten where `below`
    is None and it cannot be shown that a layer reaches the cell.
    """
    over: list[tuple[Guards, Expr]] = []
    for one in reversed(layers):
        found = _reached(one, index, known, tests)
        if found is None:
            continue
        guards, values = found
        value = substitute_expr(one.value, values)
        if not guards:
            below = value
            break
        over.append((guards, value))
    if below is None:
        raise Unwritten
    for guards, value in reversed(over):
        below = Select(_all(guards), value, below)
    return below


def zero_of(dtype: DType) -> Const:
    """Return the number that cells start from."""
    zeros: dict[str, bool | int | float | complex] = {"b": False, "f": 0.0, "c": 0j}
    return Const(zeros.get(dtype.kind, 0), dtype)


def _reached(
    one: Layer, index: tuple[Index, ...], known: tuple[Range, ...], tests: tuple[Expr, ...]
) -> tuple[Guards, Mapping[Symbol, Affine]] | None:
    """Return the point of a layer that stored a cell, and what has to hold; None if none did."""
    if one.index is None:
        return (), {}
    solved = _solved(one, index)
    guards: list[Expr] = []
    for left, right in solved.equal:
        if differs(left, right, known):
            return None
        if left != right:
            guards.append(compared("eq", left, right))
    for loop in (stmt for stmt in one.inside if isinstance(stmt, For)):
        at = solved.values[loop.symbol]
        lo, hi = substitute(loop.lo, solved.values), substitute(loop.hi, solved.values)
        if loop.step < 0:
            lo, hi = hi + 1, lo + 1
        if any(at.symbol == r.symbol and lo == r.lo and hi == r.hi for r in known):
            continue
        if is_least(lo - at - 1, known, tests) or is_least(at - hi, known, tests):
            return None
        if not is_least(at - lo, known, tests):
            guards.append(compared("le", lo, at))
        if not is_least(hi - at - 1, known, tests):
            guards.append(compared("lt", at, hi))
    moved = (substitute_expr(test, solved.values) for test in one.tests)
    guards += (test for test in moved if not holds(test, known, tests))
    return tuple(guards), solved.values


@dataclass(frozen=True, slots=True)
class _Solved:
    """The point of a nest, and the indices that have to be equal for it to be one."""

    values: Mapping[Symbol, Affine]
    equal: tuple[tuple[Affine, Affine], ...]


def _solved(one: Layer, wanted: tuple[Index, ...]) -> _Solved:
    """Return the point that stores a cell. Each axis gives one symbol, or has to agree."""
    loops = [stmt for stmt in one.inside if isinstance(stmt, For)]
    if any(loop.step not in (1, -1) for loop in loops):
        raise Unplaced
    fresh = {s.symbol: Symbol(s.symbol.name, -2 - s.symbol.serial) for s in loops}
    names = {old: var(new) for old, new in fresh.items()}
    open_ = set(fresh.values())
    values: dict[Symbol, Affine] = {}
    equal: list[tuple[Affine, Affine]] = []
    axes: list[tuple[Affine, Affine]] = []
    for place, cell in zip(one.index or (), wanted, strict=True):
        if isinstance(place, Affine) and isinstance(cell, Affine):
            axes.append((substitute(place, names), cell))
        elif place != cell or (isinstance(place, Dynamic) and _moves(place, fresh)):
            raise Unplaced
    used: set[int] = set()
    for at, (place, cell) in (*enumerate(axes), *enumerate(axes)):
        place = substitute(place, values)  # again, for axes that use symbols of axes behind them
        missing = place.symbols() & open_ - values.keys()
        if place.symbol in missing:  # as most are: nothing to solve
            values[place.symbol] = cell
            used.add(at)
        elif len(missing) == 1:
            (symbol,) = missing
            factor = place.coefficient(symbol)
            rest = place - var(symbol) * factor
            if not factor or symbol in rest.symbols():
                raise Unplaced
            gap, by = (cell - rest) * (1 if factor > 0 else -1), const(abs(factor))
            if mod(gap, by) != const(0):
                raise Unplaced
            values[symbol] = floordiv(gap, by)
            used.add(at)
    if open_ - values.keys():
        raise Unplaced
    equal += (
        (cell, substitute(place, values)) for at, (place, cell) in enumerate(axes) if at not in used
    )
    return _Solved({old: values[new] for old, new in fresh.items()}, tuple(equal))


def _moves(place: Dynamic, fresh: Mapping[Symbol, Symbol]) -> bool:
    names = {old: var(new) for old, new in fresh.items()}
    return substitute_expr(place.value, names) != place.value


def compared(name: str, left: Affine, right: Affine) -> Expr:
    """Return a comparison of index expressions, without what stands on both sides."""
    gap = right - left
    if name != "eq":
        less = Affine(tuple((atom, -k) for atom, k in gap.terms if k < 0))
        more = Affine(tuple((atom, k) for atom, k in gap.terms if k > 0))
        left, right = (less, more + gap.offset) if less.terms else (const(-gap.offset), more)
    sides = (
        Position(side) if side.terms else Const(side.offset, dtypes.int64) for side in (left, right)
    )
    return Apply(OPS[name], tuple(sides), dtypes.bool_)


def _all(guards: Guards) -> Expr:
    """Return the test that all hold: a later one is only looked at where those before it do."""
    first, *rest = guards
    return Select(first, _all(tuple(rest)), Const(False, dtypes.bool_)) if rest else first
