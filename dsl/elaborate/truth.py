"""Truth values: static and run-time tests, `not`, `and` and `or` of them, and selects."""

from __future__ import annotations

from ...base.diagnostic import CdTypeError, Span
from ...lowering.ir.expressions import Const, Expr, Position, Read, Select, walk
from ...lowering.ir.indexing import Symbol, var
from ..values.arrays import describe
from ..values.builder import Context, NeedStatic, error
from ..values.range_analysis import facts_of
from ..values.types import (
    BOOL,
    FALSE,
    TRUE,
    WEAK_BOOL,
    Kind,
    cast,
    join,
    kind_of_number,
    negate,
    truth,
)
from ..values.values import Array, Group, Masked, Opaque, Scalar, Static, Value
from .captures.instances import is_instance
from .scope import Frame


def test_of(frame: Frame, value: Value, span: Span) -> Static | Scalar:
    """Return a value as a test: static, or a bool expression.

    CdTypeError CD0408 for whole arrays, whose truth is not one bool, and for objects whose classes
    define it: that may change from call to call.
    """
    match value:
        case Static(inner):
            return Static(bool(inner))
        case Group(items, _):
            return Static(bool(items))
        case Scalar(expr, _):
            return Scalar(truth(expr), BOOL)
        case Array() if value.rank == 0:
            return Scalar(truth(value.body), BOOL)
        case Array() | Masked():
            raise error(
                "CD0408", CdTypeError, "the truth of a whole array is not one bool", span,
                label=f"this is {describe(value)}",
                helps=(
                    "elementwise: `&`, `|`, `~` and `np.where(test, a, b)`",
                    "of all elements: `np.all(...)` or `np.any(...)`",
                ),
            )  # fmt: skip
        case Opaque(inner, _) if not is_instance(inner):
            return Static(bool(inner))
        case Opaque(inner, _) if any(
            hasattr(type(inner), method) for method in ("__bool__", "__len__")
        ):
            raise error(
                "CD0408", CdTypeError, f"the truth of {describe(value)} is what its class says",
                span, helps=("test an attribute of it, or pass `bool(...)` of it as an argument",),
            )  # fmt: skip
        case _:
            return Static(True)


def settle_test(frame: Frame, test: Static | Scalar) -> Static | Scalar:
    """Return a test that integer parameters decide as static, by requiring their values; those
    that are run-time parameters decide it at run time."""
    if isinstance(test, Scalar):
        symbols = _test_symbols(test.expr)
        if symbols and symbols <= frame.ctx.origin.keys():
            for x in symbols:
                frame.ctx.prefer_static(var(x))
        if isinstance(test.expr, Const):
            return Static(bool(test.expr.value))
        folded = folded_test(frame, test.expr)
        if folded is not None:
            return Static(folded)
    return test


def given_in(ctx: Context, test: Expr) -> frozenset[str]:
    """Return the integer parameters that make a test a run-time one only because they were called
    with many values: as constants they would have decided it statically."""
    symbols = _test_symbols(test)
    names = {ctx.origin.get(x, "") for x in symbols}
    return frozenset(names) if symbols and names <= ctx.given else frozenset()


def require_alike(ctx: Context, deciding: frozenset[str], first: Value, second: Value) -> None:
    """Require the values of the parameters that select one of two values, unless both are fresh
    and of one type and shape: otherwise they decide more than what is computed."""
    match first, second:
        case (Array(), Array()):
            ends = (
                (first.shape, first.kind, first.listed),
                (second.shape, second.kind, second.listed),
            )
            new = all(
                value.base is None or value.base.node in ctx.locals for value in (first, second)
            )
            alike = ends[0] == ends[1] and new
        case ((Static() | Scalar()), (Static() | Scalar())):
            kinds = [_kind_of_test(value) for value in (first, second)]
            alike = kinds[0] is not None and kinds[0] == kinds[1]
        case _:
            alike = False
    if deciding and not alike:
        raise NeedStatic(deciding)


def _kind_of_test(value: Static | Scalar) -> Kind | None:
    return value.kind if isinstance(value, Scalar) else kind_of_number(value.value)


def folded_test(frame: Frame, test: Expr) -> bool | None:
    """Return the static result of a comparison of indices, None where it is undecided."""
    yes, no = facts_of(test), facts_of(negate(test))
    facts = frame.ctx.assumptions
    if yes and all(facts.nonnegative(fact) for fact in yes):
        return True
    if no and all(facts.nonnegative(fact) for fact in no):
        return False
    return None


def _test_symbols(expr: Expr) -> frozenset[Symbol]:
    """Return the symbols of a test that reads no array; none where it reads one."""
    nodes = list(walk(expr))
    if any(isinstance(part, Read) for part in nodes):
        return frozenset()
    symbols = (part.index.symbols() for part in nodes if isinstance(part, Position))
    return frozenset().union(*symbols)


def negation(frame: Frame, operand: Value, span: Span) -> Value:
    """Return `not operand`."""
    test = test_of(frame, operand, span)
    if isinstance(test, Static):
        return Static(not test.value)
    return Scalar(negate(test.expr), WEAK_BOOL)


def both_hold(frame: Frame, left: Value, right: Value, span: Span) -> Value:
    """Return the conjunction of two tests (short circuit)."""
    first, second = test_of(frame, left, span), test_of(frame, right, span)
    if isinstance(first, Static):
        return second if first.value else first
    if isinstance(second, Static):
        return first if second.value else second
    return Scalar(Select(first.expr, second.expr, FALSE), WEAK_BOOL)


def is_bool(value: Value) -> bool:
    """Whether a value is one bool, static or not."""
    kind = kind_of_number(value.value) if isinstance(value, Static) else None
    return isinstance(value, Scalar) and value.kind.dtype.kind == "b" or kind == WEAK_BOOL


def kind_of_bools(left: Value, right: Value) -> Kind:
    """Return the common kind of two bools: NumPy's where either is, as in branches."""
    strong = (isinstance(x, Scalar | Array) and x.kind != WEAK_BOOL for x in (left, right))
    return BOOL if any(strong) else WEAK_BOOL


def both(left: Scalar, right: Static | Scalar, stop: bool, kind: Kind) -> Value:
    """Return `and` of bools, `or` where `stop`, the short-circuiting truth value, is true."""
    if isinstance(right, Static):
        return Scalar(left.expr, kind) if right.value != stop else Static(stop)
    sides = (TRUE, right.expr) if stop else (right.expr, FALSE)
    return Scalar(Select(left.expr, *sides), kind)


def select(test: Expr, yes: tuple[Expr, Kind], no: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    """Return `yes if test else no` over typed expressions of a common kind."""
    kind = join(yes[1], no[1])
    dtype = kind.dtype.compute
    return Select(test, cast(yes[0], dtype), cast(no[0], dtype)), kind
