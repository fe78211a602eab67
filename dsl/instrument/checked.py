"""Checked mode: what NumPy answers quietly becomes a check that raises, before the statement.

    a // b, a % b of integers, a / b    CD0763, CD0764 where b is 0
    a value that is NaN                 CD0765 where nothing that it is made from is NaN
    a + b, a - b, a * b, a ** b,        CD0766 where it does not fit its integer type, on request
    a << b, a // b, -a, abs(a), a cast  also of a float, which becomes the nearest one, NaN 0;
                                        also of Python integers, which are index expressions

Each says at which point of the statement, and with which values; tests and subscripts are looked
at, too. Terms of a sum, and what several points add to one element, are checked one by one; what
their sum becomes is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

from ...base import settings
from ...base.diagnostic import NOWHERE, Span
from ...base.settings import Settings
from ...lowering.analysis.self_dependence import symbols_of
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Alloc,
    Assign,
    Branch,
    Check,
    Fault,
    For,
    Let,
    Print,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.bounds import Bounds
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Position,
    Read,
    Select,
    children,
    walk,
)
from ...lowering.ir.indexing import Affine, Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import map_statements
from ...lowering.ir.text import Scope, expr_text
from ..values.types import TRUE, cast, negate
from .index_overflow import exact, known_in, named_in
from .integer_overflow import FALSE, either, fitting, float_casts, guarded

_SHOWN = 6
"""How many values a message tells."""
_MADE = {
    "total": "a sum", "product": "a product", "largest": "a maximum", "smallest": "a minimum",
}  # fmt: skip
"""What messages call the arrays that `build` makes: their labels are no names of the user's."""


class _Rule(NamedTuple):
    """What a broken rule raises."""

    code: str
    kind: str
    message: str
    help: str


_INTEGER = _Rule(
    "CD0763", "CdZeroDivisionError", "integer division by zero in checked mode",
    "test the divisor: `where(x != 0, y // x, 0)`; without checked mode the result is 0",
)  # fmt: skip
_FLOAT = _Rule(
    "CD0764", "CdZeroDivisionError", "division by zero in checked mode",
    "test the divisor: `where(x != 0, y / x, 0.0)`; without checked mode the result is infinite, "
    "or NaN for zero by zero",
)  # fmt: skip
_NAN = _Rule(
    "CD0765", "CdValueError", "a NaN is made of numbers in checked mode",
    "look at the values: zero by zero, infinity less infinity, a root or logarithm below zero",
)  # fmt: skip
_OVERFLOW = _Rule(
    "CD0766", "CdValueError", "a result does not fit its integer type in checked mode",
    "compute in a wider type: `x.astype(np.int64)`; without checked mode the result wraps around",
)  # fmt: skip
_WHOLE = _Rule(
    "CD0766", "CdValueError", "a whole number does not fit int64 in checked mode",
    "compute with floats, `float(n) * n`, or with smaller numbers; without checked mode the result "
    "wraps around",
)  # fmt: skip
_CAST = _Rule(
    "CD0766", "CdValueError", "a float has no place in the integer type that it becomes, in "
    "checked mode", "bring it into the range first: `np.clip(np.nan_to_num(x), low, high)`; "
    "without checked mode it becomes the nearest integer of the type, NaN becomes 0",
)  # fmt: skip


def checked(overflow: bool = False) -> AbstractContextManager[Settings]:
    """Return a `with` in which calls raise where NumPy would go on in silence.

    Division by zero, and values that become NaN where nothing that they are made from is; with
    `overflow` integers that do not fit their type. Each error names the statement, the index and
    the values. Subscripts are checked anyway. In this thread or task only. A routine is checked
    if it was compiled (`f.compile`) inside of the `with`, wherever it is called.
    """
    return settings.override(checked=True, checked_overflow=overflow)


class _Asked(NamedTuple):
    """What is to be checked, and which arrays the user has no names for."""

    overflow: bool
    made: frozenset[Node]
    known: Bounds
    named: frozenset[Symbol]
    """Symbols that users know: parameters, and variables of loops."""


def add_checks(
    procedure: Procedure, overflow: bool = False, made: Iterable[Node] = ()
) -> Procedure:
    """Return the procedure with checks before each assignment that could break a rule.

    `made` are the arrays that `build` made: messages call them by what they hold.
    """
    known = known_in(procedure) if overflow else Bounds()
    asked = _Asked(overflow, frozenset(made), known, named_in(procedure))

    def with_checks(statement: Statement) -> Iterator[Statement]:
        match statement:
            case Assign(span=span) if span is not NOWHERE:  # a record's have none
                yield from _checks(statement, asked)
            case Branch(test, span=span) | Let(_, test, span=span) if span is not NOWHERE:
                yield from _alone(test, Domain(), span, asked)
            case For(_, lo, hi, span=span) if span is not NOWHERE:
                yield from _whole((lo, hi), Domain(), span, asked)
            case Alloc(node, span):
                yield from _whole(node.shape, Domain(), span, asked)
            case Print(pieces, span=span) if span is not NOWHERE:
                for piece in pieces:
                    if not isinstance(piece, str):
                        yield from _alone(piece, Domain(), span, asked)
            case Check(test, Fault(code="CD0761"), over=over, span=span):
                yield from _alone(test, over, span, asked)
            case While(prelude, test, span=span):
                found = _alone(test, Domain(), span, asked)
                statement = replace(statement, prelude=(*prelude, *found))
        yield statement

    return replace(procedure, body=map_statements(procedure.body, with_checks))


def _checks(statement: Assign, asked: _Asked) -> Iterator[Check]:
    """Yield the checks of one statement, at every point that it has."""
    value, ranges = statement.value, (*statement.free.ranges, *statement.reduced.ranges)
    over = Domain(ranges, statement.free.where)
    if statement.reduced.where is not None and statement.free.where is not None:
        both = (statement.free.where, statement.reduced.where)
        over = replace(over, where=Apply(OPS["and"], both, dtypes.bool_))
    elif statement.reduced.where is not None:
        over = replace(over, where=statement.reduced.where)
    target, span = statement.target, statement.span
    for at, r in enumerate(ranges):
        yield from _whole((r.lo, r.hi), Domain(ranges[:at]), span, asked)
    for where in (statement.free.where, statement.reduced.where):
        if where is not None:
            yield from _alone(where, Domain(ranges), span, asked)
    for index in target.index:
        value_of = index.value if isinstance(index, Dynamic) else Position(index)
        yield from _alone(value_of, statement.free, span, asked)
    old = Read(target.node, target.index)
    plain = statement.op is None or statement.initialize or bool(statement.reduced.ranges)
    dtype = value.dtype
    if not plain and statement.op is not None and old.dtype is dtype is dtype.compute:
        value = Apply(statement.op, (old, value), value.dtype)
    yield from _alone(value, over, span, asked)
    if value.dtype.kind in "fc" and not isinstance(value, Const | Read):
        test = either(negate(is_nan(value)), _has_nan(value))
        yield _check(_NAN, test, list(_always(value)), over, span, asked)


def _alone(value: Expr, over: Domain, span: Span, asked: _Asked) -> Iterator[Check]:
    """Yield the checks of what is computed in an expression, wherever it stands."""
    reads = list(dict.fromkeys(_always(value)))
    for rule, test, divisor in _tests(value):
        known = divisor in reads[:_SHOWN] or _is_number(divisor)
        yield _check(rule, test, reads if known else [divisor, *reads], over, span, asked)
    if asked.overflow:
        for test in fitting(value):
            yield _check(_OVERFLOW, test, reads, over, span, asked)
        for test in float_casts(value):
            yield _check(_CAST, test, reads, over, span, asked)
        named = sorted(symbols_of(value) & asked.named, key=lambda symbol: symbol.serial)
        numbers = [Position(var(symbol)) for symbol in named]
        for test in exact(value, asked.known):
            yield _check(_WHOLE, test, [*numbers, *reads], over, span, asked)


def _whole(ends: Iterable[Affine], over: Domain, span: Span, asked: _Asked) -> Iterator[Check]:
    """Yield the checks of index expressions."""
    for end in ends if asked.overflow else ():
        yield from _alone(Position(end), over, span, asked)


def _check(
    rule: _Rule, test: Expr, values: Iterable[Expr], over: Domain, span: Span, asked: _Asked
) -> Check:
    """Return a check that tells the point, and the first of some values there.

    Each value has to be one that is evaluated where the test fails.
    """
    scope, points = Scope(), tuple(Position(var(r.symbol)) for r in over.ranges)
    names = [f"{scope.symbol(r.symbol)} = {{{n}}}" for n, r in enumerate(over.ranges)]
    told = [(_name(value, scope, asked.made), value) for value in dict.fromkeys(values)]
    named = [(name, value) for name, value in told if name][:_SHOWN]
    shown = [value for _, value in named]
    texts = [
        f"{name.replace('{', '{{').replace('}', '}}')} = {{{n}}}"
        for n, (name, _) in enumerate(named, len(points))
    ]
    where = f", at {', '.join(names)}" if names else ""
    values_text = f": {', '.join(texts)}" if texts else ""
    fault = Fault(rule.code, rule.kind, f"{rule.message}{where}{values_text}", (rule.help,))
    return Check(test, fault, (*points, *shown), over, span)


def _name(value: Expr, scope: Scope, made: frozenset[Node]) -> str:
    """Return what a message calls a value: empty where the user has no words for it."""
    if isinstance(value, Read) and value.node in made:
        return _MADE.get(value.node.label, "")
    if any(isinstance(part, Read) and part.node in made for part in walk(value)):
        return "the divisor"
    return expr_text(value, scope)


def _always(expr: Expr) -> Iterator[Read]:
    """Yield the reads of an expression that no test stands before."""
    match expr:
        case Select(test, _, _):
            yield from _always(test)
        case Apply(op, (left, _), _) if op.name in ("and", "or"):
            yield from _always(left)
        case Read():
            yield expr
        case _:
            for child in children(expr):
                yield from _always(child)


def _tests(expr: Expr) -> Iterator[tuple[_Rule, Expr, Expr]]:
    """Yield what has to hold for the divisions in an expression where they are evaluated, and the
    divisor as the user wrote it: the operands' own before theirs, as Python evaluates them."""
    for guard, child in guarded(expr):
        for rule, test, divisor in _tests(child):
            yield rule, test if guard is None else Select(guard, test, TRUE), divisor
    match expr:
        case Apply(op, (_, divisor), dtype) if op.name in ("floordiv", "mod", "div"):
            if dtype.kind in "iufc" and not _is_nonzero(divisor):
                zero = Position(const(0)) if dtype is dtypes.int64 else Const(0, dtype)
                rule = _INTEGER if dtype.kind in "iu" else _FLOAT
                yield rule, Apply(OPS["ne"], (divisor, zero), dtypes.bool_), _without_casts(divisor)
        case _:
            pass


def _without_casts(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.value
    return expr


def _is_number(expr: Expr) -> bool:
    """Whether an expression is a plain number, which its text says already."""
    return not any(
        isinstance(part, Read) or isinstance(part, Position) and part.index.terms
        for part in walk(expr)
    )


def is_nan(expr: Expr) -> Expr:
    """Return whether a float or complex value is NaN."""
    return Apply(OPS["isnan"], (cast(expr, expr.dtype.compute),), dtypes.bool_)


def _has_nan(expr: Expr) -> Expr:
    """Return whether anything that an expression is made from is NaN, where it is evaluated."""
    found: Expr = FALSE
    if isinstance(expr, Read):
        return is_nan(expr) if expr.dtype.kind in "fc" else FALSE
    if isinstance(expr, Const):
        return Const(expr.value != expr.value, dtypes.bool_)
    for guard, child in guarded(expr):
        inner = _has_nan(child)
        if inner != FALSE:
            inner = inner if guard is None else Select(guard, inner, FALSE)
            found = inner if found == FALSE else either(found, inner)
    return found


def _is_nonzero(expr: Expr) -> bool:
    match expr:
        case Const(value, _):
            return value != 0
        case Position(index):
            return bool(index.constant)
        case Cast(value, _):
            return _is_nonzero(value)
        case _:
            return False
