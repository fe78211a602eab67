"""Truth values: static and run-time tests, `not`, `and` and `or` of them, and selects."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType

from ...base.diagnostic import CdTypeError, Span
from ...lowering.ir.expressions import Const, Expr, Position, Read, Select, walk
from ...lowering.ir.indexing import Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.walk import free_symbols
from ..values.arrays import describe
from ..values.builder import NO_ORIGINS, Context, Origins, error
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
from .captures.instances import is_instance, is_library
from .scope import Frame


def test_of(frame: Frame, value: Value, span: Span) -> Static | Scalar:
    """Return a value as a test: static, or a bool expression.

    CdTypeError CD0408 for whole arrays, whose truth is not one bool, and for objects whose classes
    define it: that may change from call to call.
    """
    match value:
        case Static(inner) if not _defines_truth(inner):
            return Static(bool(inner))
        case Group(items, _):
            return Static(bool(items))
        case Scalar(expr, _):
            return Scalar(truth(expr), BOOL)
        case Array() if all(size.constant == 1 for size in value.shape):
            return Scalar(truth(value.at((const(0),) * value.rank)), BOOL)
        case Array() | Masked():
            raise error(
                "CD0408", CdTypeError, "the truth of a whole array is not one bool", span,
                label=f"this is {describe(value)}",
                helps=(
                    "elementwise: `&`, `|`, `~` and `np.where(test, a, b)`",
                    "of all elements: `np.all(...)` or `np.any(...)`",
                ),
            )  # fmt: skip
        case Opaque(inner, _) if not is_instance(inner) and not _defines_truth(inner):
            return Static(bool(inner))
        case Static(inner) | Opaque(inner, _) if any(
            hasattr(type(inner), method) for method in ("__bool__", "__len__")
        ):
            raise error(
                "CD0408", CdTypeError, f"the truth of {describe(value)} is what its class says",
                span, helps=("test an attribute of it, or pass `bool(...)` of it as an argument",),
            )  # fmt: skip
        case _:
            return Static(True)


def _defines_truth(value: object) -> bool:
    """Whether a class of the user's says what the truth of its objects is."""
    methods = (getattr(type(value), name, None) for name in ("__bool__", "__len__"))
    return any(isinstance(method, FunctionType) and not is_library(method) for method in methods)


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


def given_in(ctx: Context, test: Expr) -> Origins:
    """Return the inputs that make a test a run-time one only because they came in many values or
    sizes: as constants they would have decided it statically."""
    origins = ctx.origins_of(test) or NO_ORIGINS
    assigned = origins & ctx.assigned
    direct = {ctx.origin.get(x) for x in free_symbols(test)} if assigned else ()
    return origins if assigned <= frozenset(direct) else NO_ORIGINS


def require_alike(ctx: Context, deciding: Origins, first: Value, second: Value) -> None:
    """Require as static the inputs that alone select one of two values, unless both have one type
    and shape, and neither is an array of the caller: otherwise they decide more than what is
    computed. Where sizes select an array of the caller, it must not be returned, see `chosen`."""
    has_numbers = any(isinstance(name, str) for name in deciding)
    match first, second:
        case (Array(), Array()):
            new = all(
                value.base is None or value.base.node in ctx.locals for value in (first, second)
            )
            is_alike = (new or not has_numbers) and (first.shape, first.kind, first.listed) == (
                second.shape, second.kind, second.listed,
            )  # fmt: skip
        case ((Static() | Scalar()), (Static() | Scalar())):
            kinds = [_kind_of_test(value) for value in (first, second)]
            is_alike = first == second or kinds[0] is not None and kinds[0] == kinds[1]
        case (Group(items), Group(others)) if len(items) == len(others):
            for pair in zip(items, others, strict=True):
                require_alike(ctx, deciding, *pair)
            is_alike = True
        case _:  # no value, if any use of it is refused: then sizes become static
            is_alike = not has_numbers
    if not is_alike:
        ctx.require_known(deciding)


def note_choice(ctx: Context, deciding: Origins, chosen: Value, sides: tuple[Value, Value]) -> None:
    """Record an array that is a copy of one of two, which inputs alone choose."""
    if deciding and isinstance(chosen, Array) and chosen.base is not None:
        sources = frozenset(
            side.base.node for side in sides if isinstance(side, Array) and side.base is not None
        )
        ctx.chosen[chosen.base.node] = deciding, sources


def require_unobserved_choices(ctx: Context, results: Sequence[Node]) -> None:
    """Require as static the inputs that choose a returned array among arrays of the caller or of
    the result: Python returns that array itself, not a copy."""
    visible = {parameter.node for parameter in ctx.parameters.values()}.union(results)
    for node, (deciding, sources) in ctx.chosen.items():
        if node in results and not visible.isdisjoint(sources - {node}):
            ctx.require_known(deciding)


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


def of_python(value: Value) -> Value:
    """Return a test as a bool of Python's."""
    return Scalar(value.expr, WEAK_BOOL) if isinstance(value, Scalar) else value


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
