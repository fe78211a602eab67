"""Checked mode: sanitizer checks before statements, for faults that NumPy passes over silently.

    a // b, a % b of integers, a / b    CD0763, CD0764 where b is 0; so does a ** b of floats where
                                        a is 0 and b is negative
    a value that is NaN                 CD0765 where none of its operands is NaN
    a + b, a - b, a * b, a ** b,        CD0766 where it does not fit its integer type, on request
    a << b, a // b, -a, abs(a), a cast  also of a float, which saturates, NaN becomes 0;
                                        also of Python integers, which are index expressions

Messages report the point of the statement and the operand values; tests and subscripts are checked
too. Terms of a sum and contributions of several points to one element are checked one by one, the
accumulated sum is not. Of library calls the divisions are checked, and the results, for NaNs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
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
from ...lowering.ir.rewrite import map_bodies
from ...lowering.ir.text import Scope, expr_text
from ..values.types import TRUE, negate
from .call_results import ResultChecks, is_nan
from .index_overflow import index_overflow_tests, symbol_bounds, user_symbols
from .integer_overflow import FALSE, disjunction, float_cast_tests, guarded_operands, overflow_tests
from .library_calls import is_library_text

Body = tuple[Statement, ...]
_DIVISIONS = ("floordiv", "mod", "fmod", "div", "recip", "recip_sqrt")
"""Operations that divide by their last operand."""
_POWERS = ("pow", "whole_pow", "half_pow")
"""Operations that divide by their first operand where the other one is negative."""
_MAX_VALUES = 6
"""The largest number of values in a message."""
_CREATED_NAMES = {
    "total": "a sum", "product": "a product", "largest": "a maximum", "smallest": "a minimum",
}  # fmt: skip
"""Descriptions in messages of arrays that `build` creates, which have no names of the user's."""


class _Rule(NamedTuple):
    """A rule of checked mode, and the error that a violation raises."""

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
_INDEX_OVERFLOW = _Rule(
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
    """Return a context manager in which calls raise on faults that NumPy passes over silently.

    Division by zero, and NaNs made of operands that are not NaN; with `overflow` also integers
    that do not fit their type. Each error names the statement, the index and the values.
    Subscripts are checked anyway. It applies to this thread or task only. A routine is checked if
    it was compiled (`f.compile`) inside the `with`, wherever it is called.
    """
    return settings.override(checked=True, checked_overflow=overflow)


class _CheckContext(NamedTuple):
    """The checks to add, and the facts about the procedure that they use."""

    overflow: bool
    created: frozenset[Node]
    bounds: Bounds
    named: frozenset[Symbol]
    """Symbols that the user named: parameters and loop variables."""
    loops: tuple[Symbol, ...] = ()
    """The loop variables of the enclosing `for` statements, outermost first."""


def add_checks(
    procedure: Procedure, overflow: bool = False, created: Iterable[Node] = ()
) -> Procedure:
    """Return the procedure with checks before each assignment that could violate a rule.

    `created` are the arrays that `build` created: messages describe them by their contents.
    """
    facts = symbol_bounds(procedure) if overflow else Bounds()
    context = _CheckContext(overflow, frozenset(created), facts, user_symbols(procedure))

    def with_checks(statement: Statement, context: _CheckContext) -> Iterator[Statement]:
        match statement:
            case Assign(call=Span() as call) if is_library_text(statement):
                yield from _library_checks(statement, call, context.loops)
            case _ if is_library_text(statement):
                pass
            case Assign(span=span) if span is not NOWHERE:  # recording assignments have none
                yield from _assignment_checks(statement, context)
            case Branch(test, span=span) | Let(_, test, span=span) if span is not NOWHERE:
                yield from _operation_checks(test, Domain(), span, context)
            case For(_, lo, hi, span=span) if span is not NOWHERE:
                yield from _index_checks((lo, hi), Domain(), span, context)
            case Alloc(node, span):
                yield from _index_checks(node.shape, Domain(), span, context)
            case Print(parts, span=span) if span is not NOWHERE:
                for part in parts:
                    if not isinstance(part, str):
                        yield from _operation_checks(part, Domain(), span, context)
            case Check(test, Fault(code="CD0761"), over=over, span=span):
                yield from _operation_checks(test, over, span, context)
            case While(prelude, test, span=span):
                checks = _operation_checks(test, Domain(), span, context)
                statement = replace(statement, prelude=(*prelude, *checks))
        yield statement

    def block_with_checks(body: Body, context: _CheckContext) -> Body:
        out: list[Statement] = []
        for statement in body:
            inner = context
            if isinstance(statement, For) and statement.symbol in procedure.source_symbols:
                inner = context._replace(loops=(*context.loops, statement.symbol))
            checked_inside = map_bodies(statement, partial(block_with_checks, context=inner))
            out += with_checks(checked_inside, context)
        return tuple(out)

    results = ResultChecks(procedure, _result_check)
    body = results.add_to(block_with_checks(procedure.body, context))
    return replace(procedure, body=body, locals=(*procedure.locals, *results.locals))


def _result_check(test: Expr, domain: Domain, call: Span, loops: tuple[Symbol, ...]) -> Check:
    """Return the check that a library call has made no NaN."""
    return _call_check(_NAN, "in the result of this call", test, domain, call, loops)


def _call_check(
    rule: _Rule, where: str, test: Expr, domain: Domain, call: Span, loops: tuple[Symbol, ...]
) -> Check:
    """Return a check in a library call, whose message reports the iteration around the call."""
    message = f"{rule.message}, {where}{_point_text(Scope(), loops)}"
    points = tuple(Position(var(symbol)) for symbol in loops)
    return Check(test, Fault(rule.code, rule.kind, message, (rule.help,)), points, domain, call)


def _point_text(scope: Scope, symbols: Iterable[Symbol]) -> str:
    """Return `, at i = {0}, j = {1}` for the symbols, empty for none."""
    names = [f"{scope.symbol(symbol)} = {{{n}}}" for n, symbol in enumerate(symbols)]
    return f", at {', '.join(names)}" if names else ""


def _assignment_checks(statement: Assign, context: _CheckContext) -> Iterator[Check]:
    """Yield the checks of one assignment, over its iteration domain."""
    domain, value = _iteration_domain(statement), _assigned_value(statement)
    ranges = domain.ranges
    target, span = statement.target, statement.span
    for at, r in enumerate(ranges):
        yield from _index_checks((r.lo, r.hi), Domain(ranges[:at]), span, context)
    for where in (statement.free.where, statement.reduced.where):
        if where is not None:
            yield from _operation_checks(where, Domain(ranges), span, context)
    for index in target.index:
        value_of = index.value if isinstance(index, Dynamic) else Position(index)
        yield from _operation_checks(value_of, statement.free, span, context)
    yield from _operation_checks(value, domain, span, context)
    if value.dtype.kind in "fc" and not isinstance(value, Const | Read):
        test = disjunction(negate(is_nan(value)), _operand_is_nan(value))
        shown = _shown_values(value, domain, context)
        yield _build_check(_NAN, test, shown, domain, span, context)


def _iteration_domain(statement: Assign) -> Domain:
    """Return the domain of all iterations of an assignment, of its reduction, too."""
    free, reduced = statement.free, statement.reduced
    domain = Domain((*free.ranges, *reduced.ranges), free.where)
    if reduced.where is not None and free.where is not None:
        both = (free.where, reduced.where)
        domain = replace(domain, where=Apply(OPS["and"], both, dtypes.bool_))
    elif reduced.where is not None:
        domain = replace(domain, where=reduced.where)
    return domain


def _assigned_value(statement: Assign) -> Expr:
    """Return the value of an assignment, combined with the previous one where that is used."""
    value, target, op = statement.value, statement.target, statement.op
    previous, dtype = Read(target.node, target.index), value.dtype
    overwrites = op is None or statement.initialize or bool(statement.reduced.ranges)
    if not overwrites and op is not None and previous.dtype is dtype is dtype.compute:
        return Apply(op, (previous, value), dtype)
    return value


def _library_checks(statement: Assign, call: Span, loops: tuple[Symbol, ...]) -> Iterator[Check]:
    """Yield the checks of divisions in a statement of library text, located at the user's call."""
    for rule, test, _ in _division_tests(_assigned_value(statement)):
        domain = _iteration_domain(statement)
        yield _call_check(rule, "inside this call", test, domain, call, loops)


def _operation_checks(
    value: Expr, domain: Domain, span: Span, context: _CheckContext
) -> Iterator[Check]:
    """Yield the checks of the operations in an expression."""
    shown = _shown_values(value, domain, context)
    for rule, test, divisor in _division_tests(value):
        is_shown = divisor in shown[:_MAX_VALUES] or _is_number(divisor)
        yield _build_check(
            rule, test, shown if is_shown else [divisor, *shown], domain, span, context
        )
    if context.overflow:
        for test in overflow_tests(value):
            yield _build_check(_OVERFLOW, test, shown, domain, span, context)
        for test in float_cast_tests(value):
            yield _build_check(_CAST, test, shown, domain, span, context)
        for test in index_overflow_tests(value, context.bounds):
            yield _build_check(_INDEX_OVERFLOW, test, shown, domain, span, context)


def _shown_values(value: Expr, domain: Domain, context: _CheckContext) -> list[Expr]:
    """Return what a message about an expression shows: numbers and loop variables that the point
    does not tell, and elements."""
    named = symbols_of(value) & context.named - {*context.loops, *domain.symbols}
    numbers = [Position(var(x)) for x in sorted(named, key=lambda symbol: symbol.serial)]
    return [*numbers, *dict.fromkeys(_unconditional_reads(value))]


def _index_checks(
    ends: Iterable[Affine], domain: Domain, span: Span, context: _CheckContext
) -> Iterator[Check]:
    """Yield the checks of index expressions."""
    for end in ends if context.overflow else ():
        yield from _operation_checks(Position(end), domain, span, context)


def _build_check(
    rule: _Rule,
    test: Expr,
    values: Iterable[Expr],
    domain: Domain,
    span: Span,
    context: _CheckContext,
) -> Check:
    """Return a check whose message reports the point, and the first values there.

    Precondition: each value is evaluated where the test fails.
    """
    scope, symbols = Scope(), (*context.loops, *domain.symbols)
    points = tuple(Position(var(symbol)) for symbol in symbols)
    where = _point_text(scope, symbols)  # first: an axis never takes the name of a loop variable
    described = [
        (_value_name(value, scope, context.created), value) for value in dict.fromkeys(values)
    ]
    named = [(name, value) for name, value in described if name][:_MAX_VALUES]
    operands = [value for _, value in named]
    texts = [
        f"{name.replace('{', '{{').replace('}', '}}')} = {{{n}}}"
        for n, (name, _) in enumerate(named, len(points))
    ]
    values_text = f": {', '.join(texts)}" if texts else ""
    fault = Fault(rule.code, rule.kind, f"{rule.message}{where}{values_text}", (rule.help,))
    return Check(test, fault, (*points, *operands), domain, span)


def _value_name(value: Expr, scope: Scope, created: frozenset[Node]) -> str:
    """Return the description of a value in a message, empty where there is none."""
    if isinstance(value, Read) and value.node in created:
        return _CREATED_NAMES.get(value.node.label, "")
    if any(isinstance(part, Read) and part.node in created for part in walk(value)):
        return "the divisor"
    return expr_text(value, scope)


def _unconditional_reads(expr: Expr) -> Iterator[Read]:
    """Yield the reads of an expression that are evaluated unconditionally."""
    match expr:
        case Select(test, _, _):
            yield from _unconditional_reads(test)
        case Apply(op, (left, _), _) if op.name in ("and", "or"):
            yield from _unconditional_reads(left)
        case Read():
            yield expr
        case _:
            for child in children(expr):
                yield from _unconditional_reads(child)


def _division_tests(expr: Expr) -> Iterator[tuple[_Rule, Expr, Expr]]:
    """Yield the rule and test of each division in an expression, where it is evaluated, and the
    divisor as the user wrote it; operands come first, in the order of evaluation."""
    for guard, child in guarded_operands(expr):
        for rule, test, divisor in _division_tests(child):
            yield rule, test if guard is None else Select(guard, test, TRUE), divisor
    match expr:
        case Apply(op, (_, divisor) | (divisor,), dtype) if op.name in _DIVISIONS:
            if dtype.kind in "iufc" and not _is_nonzero(divisor):
                rule = _INTEGER if dtype.kind in "iu" else _FLOAT
                yield rule, _compared("ne", divisor), _without_casts(divisor)
        case Apply(op, (base, exponent), dtype) if op.name in _POWERS and dtype.kind == "f":
            if not _is_nonzero(base) and not _is_not_negative(exponent):
                sides = _compared("eq", base), _compared("lt", exponent)
                yield _FLOAT, negate(Apply(OPS["and"], sides, dtypes.bool_)), _without_casts(base)
        case _:
            pass


def _is_not_negative(expr: Expr) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, int | float) and expr.value >= 0


def _compared(op: str, number: Expr) -> Expr:
    """Return the comparison of a number with zero."""
    zero = Const(0, number.dtype) if number.dtype is not dtypes.int64 else Position(const(0))
    return Apply(OPS[op], (number, zero), dtypes.bool_)


def _without_casts(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.value
    return expr


def _is_number(expr: Expr) -> bool:
    """Whether an expression is a number, which its text shows already."""
    return not any(
        isinstance(part, Read) or isinstance(part, Position) and part.index.terms
        for part in walk(expr)
    )


def _operand_is_nan(expr: Expr) -> Expr:
    """Return the test whether an evaluated operand of an expression is NaN."""
    result: Expr = FALSE
    if isinstance(expr, Read):
        return is_nan(expr) if expr.dtype.kind in "fc" else FALSE
    if isinstance(expr, Const):
        return Const(expr.value != expr.value, dtypes.bool_)
    for guard, child in guarded_operands(expr):
        inner = _operand_is_nan(child)
        if inner != FALSE:
            inner = inner if guard is None else Select(guard, inner, FALSE)
            result = inner if result == FALSE else disjunction(result, inner)
    return result


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
