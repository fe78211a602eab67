"""Elaboration of reductions over index variables: `sum(e)`, `sum[k](e)`, `max[k <= i](e)`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from ....base.diagnostic import CdNameError, CdSyntaxError, CdTypeError, Span
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Reduce
from ....lowering.ir.indexing import Affine, Range, Symbol, const, multiply, var
from ....lowering.ir.ops import ARGMAX, ARGMIN, OPS
from ...numpy import table
from ...source import surface as s
from ...values.arrays import as_scalar, describe
from ...values.builder import Context, Use, error
from ...values.fix_hints import WAYS_OUT
from ...values.range_analysis import Assumptions, extreme
from ...values.types import Kind, both, cast, kind_of_number, truth
from ...values.values import Scalar, Static, Value
from ..expressions import evaluate, tested
from ..names import bound_index_variable, is_letter
from ..operators import as_affine, value_of
from ..scope import Frame, Letters, names_in, new_letter
from .point_writes import at_points
from .range_inference import bounded, no_range, pinned, tighten, undecided

_OP_NAMES = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min", "any": "or",
        "all": "and"}  # fmt: skip


def reduce_letters(
    frame: Frame,
    name: str,
    argument: s.Expr,
    binders: tuple[s.Expr, ...] | None,
    accumulate: Kind | None,
    span: Span,
) -> Value:
    """Return a reduction over index variables; the value where it has none and is no number.

    Without binders it reduces over those that are not on the left. `accumulate` is the accumulator
    type that the program requests. CdSyntaxError CD0509 where no index variable is reduced.
    """
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    reduced = letters.inner.setdefault(letters.next_position(), {})
    letters.scopes.append((reduced, binders is None))
    domain, assumptions, conditions, uses = ctx.domain, ctx.assumptions, ctx.conditions, ctx.uses
    first_use = 0 if uses is None else len(uses)
    try:
        bound_ranges, comparisons = _declare_binders(frame, binders or (), reduced)
        tests: list[Expr] = []
        if ctx.uses is None:
            full_ranges = [
                bound_ranges.get(x) or Range(x, const(0), letters.extents[x])
                for x in reduced.values()
            ]
            for part in (*comparisons, argument):  # a test is evaluated where those before it hold
                ranges, conditions_left = tighten(full_ranges, tests, assumptions)
                ctx.domain, ctx.assumptions = (*domain, *ranges), assumptions.with_ranges(ranges)
                predicate = both(*conditions_left)
                with nullcontext() if predicate is None else ctx.under(predicate):
                    if part is argument:
                        value = value_of(evaluate(frame, argument))
                    else:
                        tests.append(_binder_test(frame, part))
        else:
            with at_points(ctx, argument.span):
                tests += (_binder_test(frame, binder) for binder in comparisons)
                value = value_of(evaluate(frame, argument))
            _set_extents(letters, reduced, bound_ranges, tests, ctx.uses[first_use:], assumptions)
            ranges, predicate = tuple(Range(x, const(0), const(1)) for x in reduced.values()), None
    finally:
        letters.scopes.pop()
        ctx.domain, ctx.assumptions, ctx.conditions = domain, assumptions, conditions
    if not reduced:
        if isinstance(value, Scalar | Static):
            raise _nothing_reduced(name, argument, span)
        return value
    if binders is None:
        for key in reduced:
            letters.implicit.setdefault(key, span)
    value = _number(name, value, span)
    reduced_domain = Domain(ranges, predicate)
    if predicate is not None and name in ("max", "min") and value.kind.dtype.kind in "iu":
        _check_nonempty(ctx, name, reduced_domain, span)
    return _build_reduction(ctx, name, value, reduced_domain, accumulate, span)


def _number(name: str, value: Value, span: Span) -> Scalar:
    """Return what is reduced at each point. CdTypeError CD0416 where it is no number."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Static) and kind_of_number(value.value) is not None:
        return as_scalar(value, span)
    raise error(
        "CD0416", CdTypeError, f"`{name}` over index letters needs one number per point", span,
        label=f"this is {describe(value)}",
    )  # fmt: skip


def _check_nonempty(ctx: Context, name: str, reduced_domain: Domain, span: Span) -> None:
    """Emit a check that a reduction is not empty: `max` of integers has no neutral element."""
    is_nonempty = Reduce(
        OPS["or"], reduced_domain, Const(True, dtypes.bool_), dtypes.bool_, span=span
    )
    message = f"`{name}` of no elements has no value"
    fault = Fault("CD0603", "CdValueError", message, WAYS_OUT["CD0603"])
    ctx.check(is_nonempty, fault, (), span, Domain(ctx.domain))


def _set_extents(
    letters: Letters,
    reduced: Mapping[str, Symbol],
    bound_ranges: Mapping[Symbol, Range],
    tests: list[Expr],
    uses: list[Use],
    assumptions: Assumptions,
) -> None:
    """Set the extents of reduced index variables. CdIndexError CD0604 where one has no range."""
    for x in reduced.values():
        extent = bound_ranges[x].hi if x in bound_ranges else pinned(x, uses, assumptions)
        letters.open_pairs += undecided(x, uses, assumptions)
        if extent is None:
            extent = bounded(x, tests, letters.extents, assumptions)
        if extent is None:
            raise no_range(x, letters.spans[x], uses)
        letters.extents[x] = extent


def _nothing_reduced(name: str, argument: s.Expr, span: Span) -> CdSyntaxError:
    """Return CdSyntaxError CD0509 for a reduction whose index variables are all on the left."""
    problem = error(
        "CD0509", CdSyntaxError,
        f"`{name}(...)` reduces over nothing: every index in it is on the left", span,
        helps=(f"name the index to reduce over, one that is not on the left: `{name}[k](...)`",),
    )  # fmt: skip
    assert isinstance(problem, CdSyntaxError)
    return problem


def _declare_binders(
    frame: Frame, binders: tuple[s.Expr, ...], reduced: dict[str, Symbol]
) -> tuple[dict[Symbol, Range], list[s.Compare]]:
    """Declare the index variables of binders; return their explicit ranges and the tests.

    CdSyntaxError CD0510 for other expressions than binders.
    """
    bound_ranges: dict[Symbol, Range] = {}
    tests: list[s.Compare] = []
    for binder in binders:
        match binder:
            case s.Name():
                _declare(frame, binder, reduced)
            case s.Compare((s.Name() as name, iterable), ("in",)):
                x = _declare(frame, name, reduced)
                lo, hi = _binder_bounds(frame, iterable)
                bound_ranges[x] = Range(x, lo, hi)
            case s.Compare():
                bound = _declare_compared(frame, binder, reduced)
                if not bound:
                    raise error(
                        "CD0510", CdSyntaxError, "a binder's comparison names no new index letter",
                        binder.span, helps=("write for example `sum[k < j](...)`",),
                    )  # fmt: skip
                tests.append(binder)
            case _:
                raise error(
                    "CD0510",
                    CdSyntaxError,
                    f"`{binder.span.text}` is no binder: an index, `k in range(n)`, or a "
                    "comparison",
                    binder.span,
                )
    return bound_ranges, tests


def _binder_test(frame: Frame, binder: s.Expr) -> Expr:
    """Return the test of a binder as a bool."""
    test = tested(frame, binder)
    if isinstance(test, Scalar):
        return truth(test.expr)
    return Const(bool(test.value), dtypes.bool_)


def _declare(frame: Frame, name: s.Name, reduced: dict[str, Symbol]) -> Symbol:
    """Return the symbol of an index variable that a reduction binds, declared once.

    CdNameError CD0204 for a name with a value, CdSyntaxError CD0511 for one on the left.
    """
    letters = frame.letters
    assert letters is not None
    if not is_letter(frame, name):
        raise error(
            "CD0204", CdNameError, f"`{name.id}` has a value here and cannot be an index letter",
            name.span, helps=("choose another letter",),
        )  # fmt: skip
    if name.id in letters.outer:
        raise error(
            "CD0511", CdSyntaxError,
            f"`{name.id}` is on the left and cannot be reduced over as well", name.span,
            helps=("use another letter inside the reduction",),
        )  # fmt: skip
    if name.id not in reduced:
        reduced[name.id] = new_letter(frame.ctx, name.id)
        letters.spans[reduced[name.id]] = name.span
    return reduced[name.id]


def _declare_compared(frame: Frame, binder: s.Compare, reduced: dict[str, Symbol]) -> list[Symbol]:
    """Declare the new index variables of a comparison; return those that it binds.

    None of them may be used outside of the reduction as well, so that the meaning of a statement
    does not depend on which use comes first.
    """
    bound: list[Symbol] = []
    letters = frame.letters
    assert letters is not None
    for name in names_in(binder):
        if not is_letter(frame, name):
            continue
        symbol = bound_index_variable(frame, name.id)
        if symbol is None or name.id in reduced:
            bound.append(_declare(frame, name, reduced))
            letters.implicit.setdefault(name.id, name.span)
    return bound


def _binder_bounds(frame: Frame, iterable: s.Expr) -> tuple[Affine, Affine]:
    """Return the bounds of `range(n)` or `range(lo, hi)` in a binder. CdSyntaxError CD0510."""
    if isinstance(iterable, s.Call):
        function = evaluate(frame, iterable.function)
        if function == Static(range) and 1 <= len(iterable.args) <= 2 and not iterable.keywords:
            ends = [as_affine(value_of(evaluate(frame, arg))) for arg in iterable.args]
            for end in ends:
                if end is not None:
                    frame.ctx.prefer_static(end)
            if all(end is not None for end in ends):
                lo, hi = (const(0), ends[0]) if len(ends) == 1 else ends
                assert lo is not None and hi is not None
                return lo, hi
    raise error(
        "CD0510", CdSyntaxError, "a binder's range is `range(n)` or `range(lo, hi)` of integers",
        iterable.span,
    )  # fmt: skip


def _build_reduction(
    ctx: Context, name: str, value: Scalar, domain: Domain, accumulate: Kind | None, span: Span
) -> Scalar:
    """Return the reduction of a number over a domain, in NumPy's result type or the requested one.

    CdTypeError CD0404 where it is not defined for the type.
    """
    kind = value.kind
    if name in ("argmin", "argmax"):
        if kind.dtype.kind == "c":
            text = f"`{name}` is not defined for complex numbers"
            raise error("CD0404", CdTypeError, text, span)
        op = ARGMIN if name == "argmin" else ARGMAX
        expr = cast(value.expr, kind.dtype.compute)
        position = const(0)
        for at, r in enumerate(domain.ranges):
            extent = extreme(r.hi, domain.ranges[:at], upwards=True)
            position = multiply(position, extent) + var(r.symbol)
        reduction = Reduce(op, domain, expr, dtypes.int64, position, span)
        return Scalar(reduction, Kind(dtypes.int64))
    row = OPS[_OP_NAMES[name]]
    if name in ("any", "all"):
        return Scalar(
            Reduce(row, domain, truth(value.expr), dtypes.bool_, span=span), Kind(dtypes.bool_)
        )
    if accumulate is not None:
        kind = accumulate
    elif name == "mean":
        kind = kind if kind.dtype.kind in "fc" else Kind(dtypes.float64)
    elif name in ("sum", "prod"):
        kind = Kind(kind.dtype.summed, kind.weak)
    if kind.dtype.kind not in row.admits:
        raise error("CD0404", CdTypeError, f"`{name}` is not defined for {kind}", span)
    dtype = kind.dtype.compute
    total = Reduce(row, domain, cast(value.expr, dtype), dtype, span=span)
    if name != "mean":
        return Scalar(total, kind)
    quotient_dtype = dtype if dtype.kind in "fc" else dtypes.float64
    operands = (total, _point_count(ctx.assumptions, domain, span))
    quotient = Apply(
        OPS["div"], tuple(cast(side, quotient_dtype) for side in operands), quotient_dtype
    )
    return Scalar(cast(quotient, dtype), kind)


def _point_count(assumptions: Assumptions, domain: Domain, span: Span) -> Expr:
    """Return the number of points of a domain: a product of extents for a box, otherwise a sum.

    A range whose end is before its start, as that of `k < i - 1` at 0, has no points.
    """
    symbols = set(domain.symbols)
    nested = any((r.lo.symbols() | r.hi.symbols()) & symbols for r in domain.ranges)
    if domain.where is None and not nested:
        count = const(1)
        for r in domain.ranges:
            count = multiply(count, assumptions.maximum(r.hi - r.lo, const(0)))
        return Position(count)
    unit = Position(const(1))
    return Reduce(OPS["add"], domain, unit, dtypes.int64, span=span)


def reduction_name(value: Value) -> str | None:
    """Return the name of the reduction that a called value is, None for other values."""
    return table.reduction_of(value.value) if isinstance(value, Static) else None
