"""Reaching definitions of array elements: the nests that store an array, inverted.

A `Layer` is a nest around one store. Layers cover each other in program order: `zeros`, then an
inner slice, then a diagonal. `reaching_value` answers for one element with an expression: the value
of the last layer that writes it. Whether a layer does is proven where that can be; otherwise a
range, or two subscripts that have to be equal, become a guard.

>>> from plusequals.lowering.ir import dtypes
>>> from plusequals.lowering.ir.assignments import Access
>>> from plusequals.lowering.ir.indexing import const
>>> from plusequals.lowering.ir.printer import print_expr
>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> d = Node(0, "d", (const(8), const(8)), dtypes.int64)
>>> store = Store(Access(d, (var(i), var(i))), Position(var(i)))
>>> diagonal = find_layer(For(i, const(0), const(8), 1, (store,)))
>>> zero = Const(0, dtypes.int64)
>>> print_expr(reaching_value((diagonal,), (const(3), var(j)), (), (), zero))
'3 if j == 3 else 0'
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...base.dataclass import dataclass
from .. import thresholds
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Select, conjuncts
from ..ir.indexing import Affine, Range, Symbol, const, floordiv, mod, substitute, var
from ..ir.loops import Comment, Fill, For, If, Stmt, Store
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import substitute_expr
from .effects import has_jumps
from .expression_cost import estimate_iterations
from .guarded_reads import nodes_of
from .subscripts import are_different, is_implied, is_nonnegative

Guards = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A nest of loops and branches around one store: a definition of array elements."""

    node: Node
    index: tuple[Index, ...] | None
    """None: every element gets the same value."""
    value: Expr
    inside: tuple[Stmt, ...]
    """The loops and branches of the nest, outermost first."""
    tests: tuple[Expr, ...]

    @property
    def sources(self) -> frozenset[Node]:
        """The nodes that values, subscripts and tests depend on."""
        subscripts = (at.value for at in self.index or () if isinstance(at, Dynamic))
        return nodes_of(self.value).union(*map(nodes_of, (*self.tests, *subscripts)))

    @property
    def points(self) -> int:
        """How often the store runs; an estimate where sizes are not known."""
        if self.index is None:
            return prod(self.node.static_shape or (thresholds.ASSUMED_SIZE,) * self.node.rank)
        return estimate_iterations(self.inside)


def find_layer(stmt: Stmt | None) -> Layer | None:
    """Return the definition that a statement is: a nest of loops and branches around one store;
    None for others."""
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
        code = [inner for inner in body if not isinstance(inner, Comment)]
        stmt = code[0] if len(code) == 1 else None
    return None


class NotInvertible(Exception):
    """The subscripts cannot be inverted: the iteration that computed an element is not known."""


class MaybeUnwritten(Exception):
    """The element may be one that no layer writes."""


def reaching_value(
    layers: tuple[Layer, ...],
    index: tuple[Index, ...],
    domain: tuple[Range, ...],
    tests: tuple[Expr, ...],
    below: Expr | None,
) -> Expr:
    """Return the value of an element as an expression, where symbols are in ranges and tests hold.

    `below` is the value of elements that no layer writes. Raises Unplaced, and Unwritten where
    `below` is None and it cannot be shown that a layer writes the element.
    """
    guarded: list[tuple[Guards, Expr]] = []
    for layer in reversed(layers):
        reached = _match_definition(layer, index, domain, tests)
        if reached is None:
            continue
        guards, values = reached
        value = substitute_expr(layer.value, values)
        if not guards:
            below = value
            break
        guarded.append((guards, value))
    if below is None:
        raise MaybeUnwritten
    for guards, value in reversed(guarded):
        below = Select(_all_hold(guards), value, below)
    return below


def zero_of(dtype: DType) -> Const:
    """Return the zero of a type, which elements are initialized with."""
    zeros: dict[str, bool | int | float | complex] = {"b": False, "f": 0.0, "c": 0j}
    return Const(zeros.get(dtype.kind, 0), dtype)


def _match_definition(
    layer: Layer, index: tuple[Index, ...], domain: tuple[Range, ...], tests: tuple[Expr, ...]
) -> tuple[Guards, Mapping[Symbol, Affine]] | None:
    """Return the guards and the iteration of a layer that stored an element; None if none did."""
    if layer.index is None:
        return (), {}
    solved = _invert_subscripts(layer, index)
    guards: list[Expr] = []
    for left, right in solved.equal:
        if are_different(left, right, domain):
            return None
        if left != right:
            guards.append(compare_indices("eq", left, right))
    for loop in (stmt for stmt in layer.inside if isinstance(stmt, For)):
        at = solved.values[loop.symbol]
        lo, hi = substitute(loop.lo, solved.values), substitute(loop.hi, solved.values)
        if loop.step < 0:
            lo, hi = hi + 1, lo + 1
        if any(at.symbol == r.symbol and lo == r.lo and hi == r.hi for r in domain):
            continue
        if is_nonnegative(lo - at - 1, domain, tests) or is_nonnegative(at - hi, domain, tests):
            return None
        if not is_nonnegative(at - lo, domain, tests):
            guards.append(compare_indices("le", lo, at))
        if not is_nonnegative(hi - at - 1, domain, tests):
            guards.append(compare_indices("lt", at, hi))
    moved = (substitute_expr(test, solved.values) for test in layer.tests)
    guards += (test for test in moved if not is_implied(test, domain, tests))
    return tuple(guards), solved.values


@dataclass(frozen=True, slots=True)
class _Solution:
    """The iteration of a nest, and the subscripts that have to be equal for it to exist."""

    values: Mapping[Symbol, Affine]
    equal: tuple[tuple[Affine, Affine], ...]


def _invert_subscripts(layer: Layer, wanted: tuple[Index, ...]) -> _Solution:
    """Return the iteration that stores an element: each axis determines one symbol, or has to be
    equal."""
    loops = [stmt for stmt in layer.inside if isinstance(stmt, For)]
    if any(loop.step not in (1, -1) for loop in loops):
        raise NotInvertible
    fresh = {s.symbol: Symbol(s.symbol.name, -2 - s.symbol.serial) for s in loops}
    renaming = {old: var(new) for old, new in fresh.items()}
    unknown = set(fresh.values())
    values: dict[Symbol, Affine] = {}
    equal: list[tuple[Affine, Affine]] = []
    axes: list[tuple[Affine, Affine]] = []
    for subscript, element in zip(layer.index or (), wanted, strict=True):
        if isinstance(subscript, Affine) and isinstance(element, Affine):
            axes.append((substitute(subscript, renaming), element))
        elif subscript != element or (
            isinstance(subscript, Dynamic) and _is_variant(subscript, fresh)
        ):
            raise NotInvertible
    used: set[int] = set()
    for at, (subscript, element) in (*enumerate(axes), *enumerate(axes)):
        subscript = substitute(subscript, values)  # again, for axes that use symbols of later axes
        missing = subscript.symbols() & unknown - values.keys()
        if subscript.symbol in missing:  # as most are: nothing to solve
            values[subscript.symbol] = element
            used.add(at)
        elif len(missing) == 1:
            (symbol,) = missing
            factor = subscript.coefficient(symbol)
            rest = subscript - var(symbol) * factor
            if not factor or symbol in rest.symbols():
                raise NotInvertible
            gap, by = (element - rest) * (1 if factor > 0 else -1), const(abs(factor))
            if mod(gap, by) != const(0):
                raise NotInvertible
            values[symbol] = floordiv(gap, by)
            used.add(at)
    if unknown - values.keys():
        raise NotInvertible
    equal += (
        (element, substitute(subscript, values))
        for at, (subscript, element) in enumerate(axes)
        if at not in used
    )
    return _Solution({old: values[new] for old, new in fresh.items()}, tuple(equal))


def _is_variant(subscript: Dynamic, fresh: Mapping[Symbol, Symbol]) -> bool:
    renaming = {old: var(new) for old, new in fresh.items()}
    return substitute_expr(subscript.value, renaming) != subscript.value


def compare_indices(name: str, left: Affine, right: Affine) -> Expr:
    """Return a comparison of index expressions, with common terms cancelled."""
    gap = right - left
    if name != "eq":
        less = Affine(tuple((atom, -k) for atom, k in gap.terms if k < 0))
        more = Affine(tuple((atom, k) for atom, k in gap.terms if k > 0))
        left, right = (less, more + gap.offset) if less.terms else (const(-gap.offset), more)
    sides = (
        Position(side) if side.terms else Const(side.offset, dtypes.int64) for side in (left, right)
    )
    return Apply(OPS[name], tuple(sides), dtypes.bool_)


def _all_hold(guards: Guards) -> Expr:
    """Return the conjunction of guards: one is evaluated only where those before it hold."""
    first, *rest = guards
    return Select(first, _all_hold(tuple(rest)), Const(False, dtypes.bool_)) if rest else first
