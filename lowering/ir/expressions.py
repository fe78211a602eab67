"""Scalar expressions, shared by both IRs.

    Expr  := Const(value, dtype)                       a number
           | Read(node, index)                         one element
           | Position(index)                           an index as an int64 number
           | Apply(op, args, dtype)                    an operation of the table, all args evaluated
           | Cast(value, dtype)                        conversion (float to int saturates)
           | Select(test, yes, no)                     only the selected arm is evaluated
           | Reduce(op, domain, value, dtype, position)   before `build` only
    Index := Affine | Dynamic(value)                   Dynamic: data-dependent, an int64 expression
    Domain := ranges, where                            ranges outermost first, then a predicate

Every access is in bounds when it is evaluated: proven by its builder, or guarded by an earlier
`Check` statement. Float16 and bfloat16 are read and immediately cast to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from operator import is_
from struct import pack

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from . import dtypes
from .dtypes import DType
from .indexing import Affine, Range, Symbol
from .node import Node
from .ops import Op


def _bits(value: complex) -> bytes:
    return pack("<dd", value.real, value.imag)


@dataclass(frozen=True, slots=True)
class Const:
    """A number of a type. Floats keep every bit: 0.0 and -0.0 differ, and NaN is itself."""

    value: bool | int | float | complex
    dtype: DType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const) or self.dtype != other.dtype:
            return False
        if self.dtype.kind in "fc":
            return _bits(self.value) == _bits(other.value)
        return self.value == other.value

    def __hash__(self) -> int:
        value = self.value
        return hash((value if value == value else None, self.dtype))


@dataclass(frozen=True, slots=True)
class Read:
    """One element of a node."""

    node: Node
    index: tuple[Index, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def dtype(self) -> DType:
        """The node's element type."""
        return self.node.dtype


@dataclass(frozen=True, slots=True)
class Position:
    """An index expression as a number."""

    index: Affine

    @property
    def dtype(self) -> DType:
        """Always int64."""
        return dtypes.int64


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation on operands that are already of its compute type."""

    op: Op
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Cast:
    """The value converted: to bool by `!= 0`, float to int truncating and saturating (NaN to 0),
    between integers wrapping, complex to real dropping the imaginary part."""

    value: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Select:
    """`yes` where `test` holds, else `no`; the other arm is not evaluated."""

    test: Expr
    yes: Expr
    no: Expr

    @property
    def dtype(self) -> DType:
        """The common type of both arms."""
        return self.yes.dtype


@dataclass(frozen=True, slots=True)
class Reduce:
    """The reduction of `value` over a domain, from the neutral element; `build` removes it.

    For the pair accumulators `position` is the number returned for the first best value.
    """

    op: Op
    domain: Domain
    value: Expr
    dtype: DType
    position: Affine | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A data-dependent subscript: an int64 expression that reads arrays."""

    value: Expr


Expr = Const | Read | Position | Apply | Cast | Select | Reduce
Index = Affine | Dynamic


@dataclass(frozen=True, slots=True)
class Domain:
    """The points of `ranges`, outermost first, at which `where` holds (None: at all of them)."""

    ranges: tuple[Range, ...] = ()
    where: Expr | None = None

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols that the domain binds, outermost first."""
        return tuple(r.symbol for r in self.ranges)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions, including those in dynamic subscripts and predicates."""
    match expr:
        case Apply():
            return expr.args
        case Read():
            return _subscripts(expr.index)
        case Const() | Position():
            return ()
        case Cast():
            return (expr.value,)
        case Select(test, yes, no):
            return (test, yes, no)
        case Reduce(_, domain, value, _, _):
            return (value,) if domain.where is None else (domain.where, value)


def _subscripts(index: tuple[Index, ...]) -> tuple[Expr, ...]:
    """The values of dynamic subscripts; there are seldom any."""
    for subscript in index:
        if type(subscript) is not Affine:
            return tuple([i.value for i in index if isinstance(i, Dynamic)])
    return ()


def walk(expr: Expr) -> list[Expr]:
    """Return the expression and all its subexpressions, parents first."""
    result: list[Expr] = []
    stack = [expr]
    while stack:
        node = stack.pop()
        result.append(node)
        if inner := children(node):
            stack += inner[::-1]
    return result


def reads(expr: Expr) -> list[Read]:
    """Return every read in an expression, including those in subscripts, parents first."""
    return [part for part in walk(expr) if isinstance(part, Read)]


def rebuild(
    expr: Expr, on_expr: Callable[[Expr], Expr], on_index: Callable[[Affine], Affine]
) -> Expr:
    """Return the expression with each child and each index expression replaced by the functions.

    The same object is returned where nothing changes.
    """
    match expr:
        case Const():
            return expr
        case Read(node, indices, span):
            subscripts = tuple([_rebuild_subscript(index, on_expr, on_index) for index in indices])
            return expr if _is_same(subscripts, indices) else Read(node, subscripts, span)
        case Apply(op, args, dtype):
            new = tuple(map(on_expr, args))
            return expr if _is_same(new, args) else Apply(op, new, dtype)
        case Position(index):
            at = on_index(index)
            return expr if at is index else Position(at)
        case Cast(value, dtype):
            inner = on_expr(value)
            return expr if inner is value else Cast(inner, dtype)
        case Select(test, yes, no):
            sides = (on_expr(test), on_expr(yes), on_expr(no))
            return expr if _is_same(sides, (test, yes, no)) else Select(*sides)
        case Reduce(_, domain, value, _, position):
            ranges = tuple(Range(r.symbol, on_index(r.lo), on_index(r.hi)) for r in domain.ranges)
            where = None if domain.where is None else on_expr(domain.where)
            return replace(
                expr,
                domain=Domain(ranges, where),
                value=on_expr(value),
                position=None if position is None else on_index(position),
            )


def _rebuild_subscript(
    index: Index, on_expr: Callable[[Expr], Expr], on_index: Callable[[Affine], Affine]
) -> Index:
    if not isinstance(index, Dynamic):
        return on_index(index)
    value = on_expr(index.value)
    return index if value is index.value else Dynamic(value)


def _is_same(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    """Whether two tuples of one length hold the same objects."""
    return all(map(is_, new, old))


def conjuncts(test: Expr | None) -> Iterator[Expr]:
    """Yield the conjuncts of a predicate; an earlier one may guard a later one."""
    match test:
        case None:
            return
        case Apply(Op("and"), (left, right), _) | Select(left, right, Const(False)):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield test
