"""The sizes that have to be static, because code for any size may compute what Python does not.

Static sizes are computed by Python: exactly, or it raises. Of values that are computed from dynamic
sizes alone, this module finds the intervals: integers have to fit in 64 bits, divisors must not be
zero, operands be in the domains of functions, and subscripts not negative, which would count from
the end. Divisors and products that are checked in the run are right, see `Context.guard`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Access, Assign, Check, For, Let, Statement, While
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Expr,
    Position,
    Read,
    Select,
    children,
)  # fmt: skip
from ...lowering.ir.indexing import Affine, Quasi, Symbol, const, substitute
from ...lowering.ir.node import Node
from ...lowering.ir.walk import expressions_of, free_symbols, statements
from ..values.range_analysis import Assumptions
from ..values.values import Path
from . import intervals
from .intervals import ANY, BOOLS, Interval
from .variants import Specialization

Leaf = Node | Symbol
Sizes = frozenset[Symbol]

_SIZES: Interval = (2.0, 2.0**42)
"""Dynamic sizes: no memory holds more elements. Products with a factor of 20 bits fit in 64."""
_GUARDED: Interval = (-(2.0**62), 2.0**62)
"""Products that are checked."""
_NO_SIZES: Sizes = frozenset()


def sizes_to_fix(specialization: Specialization) -> frozenset[Path]:
    """Return the arrays of a specialization whose dynamic sizes have to be static."""
    typed = specialization.typed
    arrays = {
        symbol: path
        for path, parameter in zip(typed.passed, typed.procedure.parameters, strict=True)
        for extent in parameter.node.shape
        for symbol in extent.symbols()
    }
    if not arrays:
        return frozenset()
    sizes: dict[Leaf, _Known] = {size: _Known(_SIZES, frozenset((size,))) for size in arrays}
    assumptions = Assumptions({size: (const(2), None) for size in arrays})
    analysis = _Analysis(typed.guarded, assumptions, sizes)
    analysis.visit(list(statements(typed.procedure.body)))
    return frozenset(arrays[size] for size in analysis.unsafe)


@dataclass(frozen=True, slots=True)
class _Known:
    """A value that is computed from sizes alone: its interval, and the sizes."""

    interval: Interval
    sizes: Sizes = _NO_SIZES


@dataclass(slots=True)
class _Analysis:
    """The analysis of one procedure; `unsafe` are the sizes that have to be static."""

    guarded: frozenset[Expr]
    assumptions: Assumptions
    known: dict[Leaf, _Known]
    """The variables that are computed from sizes alone."""
    fitting: set[Expr] = field(default_factory=set)
    """The integers that are checked to fit in the type of an array."""
    unsafe: set[Symbol] = field(default_factory=set)

    def visit(self, body: list[Statement]) -> None:
        """Analyse the statements of a body, in order."""
        carried = _carried(body)
        first_values = {loop.symbol: loop.lo for loop in body if isinstance(loop, For)}
        for statement in body:
            if isinstance(statement, Check) and statement.fault.code == "CD0464":
                self.fitting.update(statement.values)
            for expr in expressions_of(statement):
                self.value(expr)
            match statement:
                case Let(symbol, value):
                    self._note(symbol, self.value(value))
                case Assign(Access(node, ()), op, _, value):
                    is_variable = op is None and node not in carried
                    self._note(node, self.value(value) if is_variable else None)
                case Check(_, fault, (index, *_), over) if fault.code == "CD0601":
                    if free_symbols(index).isdisjoint(over.symbols):
                        self._subscript(index, first_values)
                case _:
                    pass

    def value(self, expr: Expr) -> _Known | None:
        """Return a value that is computed from sizes alone, None for others; `unsafe` receives the
        sizes for which an operation in it may differ from Python's."""
        match expr:
            case Const(value, _):
                is_real = not isinstance(value, complex) and value == value
                return _Known((float(value.real), float(value.real)) if is_real else ANY)
            case Position(index):
                return self._index(index)
            case Read(node, ()):
                return self.known.get(node)
            case Apply():
                return self._apply(expr)
            case Cast(inner, dtype):
                known = self.value(inner)
                return None if known is None else self._cast(known, inner, dtype)
            case Select(test, yes, no):
                parts = [self.value(part) for part in (test, yes, no)]
                given = [part for part in parts if part is not None]
                if len(given) < len(parts):
                    return None
                sides = given[1].interval, given[2].interval
                return _Known(intervals.hull(*sides), _sizes_of(given))
            case _:
                for part in children(expr):
                    self.value(part)
                return None

    def _note(self, target: Leaf, value: _Known | None) -> None:
        """Record the value of a variable, which may have been set before."""
        former = self.known.get(target, value)
        if value is None or former is None:
            self.known.pop(target, None)
        else:
            joined = intervals.hull(former.interval, value.interval)
            self.known[target] = _Known(joined, former.sizes | value.sizes)

    def _require(self, is_right: bool, sizes: Sizes) -> None:
        if not is_right:
            self.unsafe |= sizes

    def _subscript(self, index: Expr, first_values: Mapping[Symbol, Affine]) -> None:
        """Require sizes that decide whether a subscript counts from the end: a static one does
        where it is negative, of a loop's variable where its first value is."""
        if isinstance(index, Position):
            first = substitute(substitute(index.index, first_values), first_values)
            if self.assumptions.nonnegative(first):
                return
            index = Position(first)
        value = self.value(index)
        if value is not None:
            self._require(value.interval[0] >= 0, value.sizes)

    def _apply(self, expr: Apply) -> _Known | None:
        """Return the value of an operation."""
        name, values = expr.op.name, [self.value(arg) for arg in expr.args]
        known = [value for value in values if value is not None]
        if len(known) < len(values):  # powers of arrays by constants are products
            self._require(name != "pow", _sizes_of(known))
            return None
        sizes, operands = _sizes_of(known), [value.interval for value in known]
        if name in ("div", "floordiv", "mod", "fmod"):
            is_checked = expr in self.guarded or self._is_guarded(expr.args[1])
            self._require(is_checked or not intervals.may_be_zero(operands[1]), sizes)
            is_whole = is_checked and _uncast(expr.args[1]).dtype.kind in "iu"
            return _Known(intervals.quotient(name, operands[0], operands[1], is_whole), sizes)
        is_integer = expr.dtype.kind in "iu"
        if name == "pow" and is_integer:  # a negative power of integers is a float in Python
            self._require(operands[1][0] >= 0, sizes)
        if expr.dtype.kind == "c":
            return _Known(ANY, sizes)
        result = intervals.result(name, operands)
        self._require(result is not None, sizes)
        if result is None or not is_integer:
            return _Known(result or ANY, sizes)
        if name == "mul" and (expr in self.guarded or all(map(_is_factor, expr.args))):
            return _Known(intervals.clipped(result, _GUARDED), sizes)
        held = intervals.of_type(expr.dtype)
        if expr.dtype.bits == 64:  # narrower ones are NumPy's, which wrap
            self._require(intervals.within(result, held), sizes)
        return _Known(intervals.clipped(result, held), sizes)

    def _cast(self, value: _Known, source: Expr, dtype: DType) -> _Known:
        """Return a converted value. As static numbers, Python's integers that a narrower type does
        not hold are refused; that is checked where they meet an array."""
        if dtype.kind == "b":
            return _Known(BOOLS, value.sizes)
        if dtype.kind not in "iu":
            return value
        held = intervals.of_type(dtype)
        is_numpy = source.dtype.kind in "iu" and source.dtype.bits < 64  # which wraps
        if not is_numpy and source not in self.fitting:
            self._require(intervals.within(value.interval, held), value.sizes)
        return _Known(intervals.clipped(value.interval, held), value.sizes)

    def _index(self, index: Affine) -> _Known | None:
        """Return the value of an index expression; its part of sizes alone has to have 64 bits."""
        total: Interval = (float(index.offset), float(index.offset))
        sizes, is_known = _NO_SIZES, True
        for atom, factor in index.terms:
            value = self.known.get(atom) if isinstance(atom, Symbol) else self._quasi(atom)
            if value is None:
                is_known = False
                continue
            total = intervals.add(
                total, intervals.times(value.interval, (float(factor), float(factor)))
            )
            sizes |= value.sizes
        self._require(intervals.within(total, intervals.INT64), sizes)
        if not is_known:
            return None
        if total[0] < 0 and self.assumptions.nonnegative(index):
            total = 0.0, total[1]
        return _Known(total, sizes)

    def _quasi(self, atom: Quasi) -> _Known | None:
        """Return the value of a product, quotient, minimum or the like of index expressions."""
        left, right = self._index(atom.left), self._index(atom.right)
        if left is None or right is None:
            return None
        sizes = left.sizes | right.sizes
        if atom.op in ("floordiv", "mod"):
            is_checked = self._is_guarded(Position(atom.right))
            is_right = is_checked or not intervals.may_be_zero(right.interval)
            self._require(is_right or self.assumptions.differ(atom.right, const(0)), sizes)
            return _Known(intervals.quotient(atom.op, left.interval, right.interval, True), sizes)
        result = intervals.result(atom.op, [left.interval, right.interval])
        assert result is not None, "of integers"
        if atom.op == "mul":
            is_checked = Position(Affine(((atom, 1),))) in self.guarded or _is_count(atom)
            self._require(is_checked or intervals.within(result, intervals.INT64), sizes)
            result = intervals.clipped(result, _GUARDED)
        return _Known(result, sizes)

    def _is_guarded(self, divisor: Expr) -> bool:
        return divisor in self.guarded or _uncast(divisor) in self.guarded


def _uncast(expr: Expr) -> Expr:
    """Return a value before its conversions."""
    while isinstance(expr, Cast):
        expr = expr.value
    return expr


def _sizes_of(values: list[_Known]) -> Sizes:
    return _NO_SIZES.union(*(value.sizes for value in values))


def _is_factor(expr: Expr) -> bool:
    """Whether a value is an index expression without products: of two, counts have 64 bits."""
    if not isinstance(expr, Position):
        return False
    atoms = (atom for atom, _ in expr.index.terms)
    return not any(isinstance(atom, Quasi) and atom.op == "mul" for atom in atoms)


def _is_count(product: Quasi) -> bool:
    """Whether a product counts elements: of one array, each size once, or of two axes."""
    factors = list[Affine]()
    sides = [product.left, product.right]
    while sides:
        match sides.pop():
            case Affine(((Quasi("mul", left, right), 1),), 0):
                sides += [left, right]
            case side:
                factors.append(side)
    symbols = [symbol for factor in factors for symbol in factor.symbols()]
    return len(factors) <= 2 or len(symbols) == len(set(symbols))


def _carried(body: list[Statement]) -> frozenset[Node]:
    """Return the variables that the iterations of a loop change: at run time in any code."""
    total = _count_assignments(body)
    carried = set[Node]()
    for loop in body:
        if isinstance(loop, For | While):
            inside = _count_assignments(list(statements((loop,))))
            carried |= {node for node, count in inside.items() if count < total[node]}
    return frozenset(carried)


def _count_assignments(body: list[Statement]) -> Counter[Node]:
    return Counter(
        statement.target.node
        for statement in body
        if isinstance(statement, Assign) and not statement.target.index
    )
