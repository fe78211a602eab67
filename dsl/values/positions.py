"""Subscripts of one axis: integer indices, slices clipped to the axis, boundary modes, gathers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdIndexError, CdTypeError, CdValueError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    rebuild,
    walk,
)  # fmt: skip
from ...lowering.ir.indexing import (
    Affine,
    Quasi,
    Symbol,
    const,
    floordiv,
    maximum,
    mod,
    substitute,
    var,
)  # fmt: skip
from ...lowering.ir.ops import OPS, Op
from .arrays import as_scalar, describe
from .bounds_messages import index_fault
from .builder import Context, compare, error
from .constant_tables import require_static_reads
from .types import FALSE, WEAK_BOOL, WEAK_INT, both, cast
from .values import Array, Edge, Scalar, Section, Static, Value

_INDEX_HINTS = (
    ("give a whole number: `0`, `n - 1`",),
    ("give a whole number, a slice or an array of positions: `x[0]`, `x[1:3]`, `x[idx]`",),
)
"""Fix hints where a number is missing: as a bound of a slice or range, and as a subscript."""
RANGE_OF_LETTERS = "use an index with a range: `sum[k in range(lo, hi)](...)`"


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of an axis that a slice selects: element n is at `start + n * step`."""

    start: Affine
    step: Affine
    extent: Affine


def index_of(ctx: Context, value: Value, span: Span, what: str) -> Affine | Expr:
    """Return an integer value as a subscript: affine where it is, else an int64 expression.

    A run-time number that does not depend on index variables is read once, into a symbol.
    CdTypeError CD0501 where the value is not an integer. A bound or a step may be a Python bool;
    a subscript of an array may not: in NumPy that is a mask.
    """
    if not what.startswith("`"):
        value = _as_int(value)
    elif isinstance(value, Static) and isinstance(value.value, bool):
        raise error("CD0501", CdTypeError, f"{what} is indexed with a bool", span)
    helps = () if isinstance(value, Array) else _INDEX_HINTS[what.startswith("`")]
    scalar = as_scalar(value, span, f"an index of {what}", *helps)
    if scalar.kind.dtype.kind not in "iu":
        hint = "convert it: `int(...)`"
        if "/" in span.text.replace("//", ""):
            whole = re.sub("(?<!/)/(?!/)", "//", span.text)
            hint = f"whole numbers are divided by `//`: `{whole}`"
        raise error(
            "CD0501", CdTypeError, f"{what} takes integers, and is given {describe(value)}", span,
            helps=(hint,),
        )  # fmt: skip
    expr = cast(scalar.expr, dtypes.int64)
    if isinstance(expr, Position):
        return expr.index
    require_static_reads(ctx, expr, negative=True)
    index_vars = {r.symbol for r in ctx.domain}
    used = {s for e in walk(expr) if isinstance(e, Read | Position) for s in _symbols_of(e)}
    if ctx.conditions or index_vars & used or ctx.uses is not None and used:
        return expr
    return var(ctx.let("at", expr, span))


def _as_int(value: Value) -> Value:
    """Return a Python bool as an integer, any other value unchanged."""
    match value:
        case Static(bool(constant)):
            return Static(int(constant))
        case Scalar(expr, kind) if kind == WEAK_BOOL:
            return Scalar(cast(expr, dtypes.int64), WEAK_INT)
        case _:
            return value


def steady(ctx: Context, at: Affine | Expr, otherwise: int, span: Span) -> Affine | Expr:
    """Return an index that is invariant in the index variables as a symbol, read once.

    Under conditions the symbol is `otherwise` where they do not hold, since its operands may be
    out of range there. A single variable can always be read, whatever the conditions.
    """
    if isinstance(at, Affine):
        return at
    guarded = at
    for condition in reversed(ctx.conditions):
        guarded = Select(condition, guarded, Position(const(otherwise)))
    is_variable = isinstance(at, Read) and not at.index
    index_vars = {r.symbol for r in ctx.domain}
    for value in (guarded, at) if is_variable else (guarded,):
        used = {s for e in walk(value) if isinstance(e, Read | Position) for s in _symbols_of(e)}
        if not index_vars & used and (ctx.uses is None or used <= ctx.stable):
            return var(ctx.let("at", value, span))
    return at


def _symbols_of(expr: Read | Position) -> frozenset[Symbol]:
    if isinstance(expr, Position):
        return expr.index.symbols()
    symbols: frozenset[Symbol] = frozenset()
    for index in expr.index:
        if isinstance(index, Affine):
            symbols |= index.symbols()
    return symbols


def cut_of(ctx: Context, section: Section, extent: Affine, span: Span) -> Cut:
    """Return what a slice selects of an axis, clipped and counted from the end as in NumPy."""
    stride = const(1) if section.step is None else step_of(ctx, section.step, "a slice", span)
    step = 1 if stride.constant is None else stride.constant
    lower, upper = (_slice_bound(ctx, part, span) for part in (section.lower, section.upper))
    numbers = [part is None or part.constant is not None for part in (lower, upper)]
    if all(numbers) and extent.constant is not None and stride.constant is not None:
        ends = [None if part is None else part.constant for part in (lower, upper)]
        start, stop, _ = slice(ends[0], ends[1], step).indices(extent.constant)
        return Cut(const(start), stride, const(len(range(start, stop, step))))
    if stride.constant is None:
        return _cut_by_run_time_step(ctx, stride, lower, upper, extent, span)
    start_at, gap = _start_and_distance(ctx, lower, upper, extent, step < 0, span)
    if abs(step) > 1:  # adding a large step would overflow
        gap = floordiv(gap - 1, const(abs(step))) + 1
    cut = Cut(start_at, stride, ctx.assumptions.maximum(gap, const(0)))
    width = _static_width(section, extent)
    return cut if width is None else _limit_extent(ctx, cut, width, extent, span)


def _static_width(section: Section, extent: Affine) -> int | None:
    """Return the static difference `upper - lower` of the bounds of a slice, None where it varies.

    Where its sign is that of the step it limits the extent, whatever the signs of the bounds and
    wherever they wrap, as both wrap in one type. (For `x[1:-1]` the sign is the opposite one.)
    """
    ends = [
        None if left is None else _linearize(left, extent)
        for left in (section.lower, section.upper)
    ]
    if ends[0] is None or ends[1] is None:
        return None
    (left, first, low), (right, second, high) = ends[0], ends[1]
    types = {left, right} - {None}
    return high - low if first == second and len(types) < 2 else None


def _linearize(value: Value, extent: Affine) -> tuple[DType | None, dict[object, int], int] | None:
    """Return a bound as a linear form: the type it is computed in, coefficients and a constant.

    The type is None where nothing is computed. The result is None where the type may wrap within
    the axis, counted from its end too.
    """
    if isinstance(value, Static):
        return (None, {}, int(value.value)) if isinstance(value.value, int | np.integer) else None
    if not isinstance(value, Scalar) or value.kind.dtype.kind not in "iu":
        return None
    expr = _strip_widening_casts(cast(value.expr, dtypes.int64))
    if not isinstance(expr, Position) and not _is_linear_op(expr):
        return None, {expr: 1}, 0
    dtype, size = expr.dtype, extent.constant
    if dtype.kind == "i" and dtype.bits < 64 and (size is None or size > 1 << (dtype.bits - 1)):
        return None
    terms: dict[object, int] = {}
    offset = _add_terms(terms, expr, 1, dtype)
    return dtype, {atom: k for atom, k in terms.items() if k}, offset


def _is_linear_op(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.op.name in ("add", "sub", "neg", "mul")


def _strip_widening_casts(expr: Expr) -> Expr:
    """Return a number without its value-preserving (widening) casts."""
    while isinstance(expr, Cast) and expr.value.dtype.kind in "iu":
        inner, outer = expr.value.dtype, expr.dtype
        wider = inner.bits < outer.bits if inner.kind != outer.kind else inner.bits <= outer.bits
        if not wider or outer.kind == "u" and inner.kind == "i":
            break
        expr = expr.value
    return expr


def _add_terms(terms: dict[object, int], expr: Expr, by: int, dtype: DType) -> int:
    """Add the terms of `by * expr`, computed in `dtype`, to `terms`; return the constant."""
    plain = _strip_widening_casts(expr)
    match plain:
        case Position(index) if dtype is dtypes.int64:
            for atom, k in index.terms:
                terms[atom] = terms.get(atom, 0) + by * k
            return by * index.offset
        case Const(int(number)):
            return by * number
        case Apply(Op(name="add" | "sub" as name), (left, right)) if plain.dtype is dtype:
            right_by = by if name == "add" else -by
            return _add_terms(terms, left, by, dtype) + _add_terms(terms, right, right_by, dtype)
        case Apply(Op(name="neg"), (inner,)) if plain.dtype is dtype:
            return _add_terms(terms, inner, -by, dtype)
        case Apply(Op(name="mul"), (Const(int(k)), inner) | (inner, Const(int(k)))) if (
            plain.dtype is dtype
        ):
            return _add_terms(terms, inner, by * k, dtype)
        case _:
            part = expr if _is_linear_op(plain) else plain
            terms[part] = terms.get(part, 0) + by
            return 0


def _limit_extent(ctx: Context, cut: Cut, width: int, extent: Affine, span: Span) -> Cut:
    """Return a cut with the fact that its extent is limited by the distance of its bounds."""
    assumptions, step = ctx.assumptions, cut.step.constant
    assert step is not None, "its sign is known"
    distance = width if step > 0 else -width
    max_count = -(-distance // abs(step))
    if distance == 0:
        return Cut(cut.start, cut.step, const(0))
    if (
        distance < 0
        or abs(step) > 1
        and max_count > 1
        or assumptions.nonnegative(const(max_count) - cut.extent)
    ):
        return cut
    count = ctx.let("count", Position(cut.extent), span)
    start = ctx.let("start", Position(cut.start), span)
    ends = (const(0), extent - var(count)) if step > 0 else (var(count) - 1, extent - 1)
    ctx.assumptions = assumptions.with_bounds(count, const(0), const(max_count)).with_bounds(
        start, *ends
    )
    return Cut(var(start), cut.step, var(count))


def _start_and_distance(
    ctx: Context, lower: Affine | None, upper: Affine | None, extent: Affine, down: bool, span: Span
) -> tuple[Affine, Affine]:
    """Return the start of a slice of positive or negative step, and the distance to its stop."""
    floor = -1 if down else 0
    first, past_end = (extent - 1, const(-1)) if down else (const(0), extent)
    start = first if lower is None else clipped(ctx, lower, extent, floor, span)
    stop = past_end if upper is None else clipped(ctx, upper, extent, floor, span)
    return start, start - stop if down else stop - start


def _cut_by_run_time_step(
    ctx: Context,
    step: Affine,
    lower: Affine | None,
    upper: Affine | None,
    extent: Affine,
    span: Span,
) -> Cut:
    """Return what a slice of run-time step selects: the sign of the step decides the bounds."""
    assumptions = ctx.assumptions
    if assumptions.nonnegative(step - 1):
        start, gap = _start_and_distance(ctx, lower, upper, extent, False, span)
        return Cut(start, step, assumptions.maximum(floordiv(gap - 1, step) + 1, const(0)))
    ends = [_start_and_distance(ctx, lower, upper, extent, down, span) for down in (False, True)]
    upwards = compare("ge", step, const(1))
    (first, up_gap), (last, down_gap) = ends
    by, down_by = (
        maximum(step, const(1)),
        maximum(negated_step(step), const(1)),
    )  # also where it is never looked at
    counts = (floordiv(up_gap - 1, by) + 1, floordiv(down_gap - 1, down_by) + 1)
    most = (Position(maximum(count_if, const(0))) for count_if in counts)
    start_at = ctx.let("start", Select(upwards, Position(first), Position(last)), span)
    count = ctx.let("count", Select(upwards, *most), span)
    ctx.assumptions = assumptions.with_bounds(start_at, const(-1), extent)
    ctx.assumptions = ctx.assumptions.with_bounds(count, const(0), extent)
    return Cut(var(start_at), step, var(count))


def negated_step(step: Affine) -> Affine:
    """Return `-step`, of the smallest int64 the largest: no slice has an element at both."""
    return const(0) - maximum(step, const(1 - 2**63))


def step_of(ctx: Context, value: Value, what: str, span: Span) -> Affine:
    """Return the step of a slice or range: static, or a run-time integer checked to be nonzero.

    CdValueError CD0503 where it is zero, CdIndexError CD0503 where it uses an index variable.
    """
    at = steady(ctx, index_of(ctx, value, span, f"the step of {what}"), 1, span)
    text, helps = (
        f"the step of {what} has to be an integer other than zero",
        (
            "write the step as a number: "
            + ("`range(0, n, 2)`" if what == "a range" else "`x[::2]`"),
        ),
    )
    if not isinstance(at, Affine) or at.constant == 0:
        kind = CdValueError if isinstance(at, Affine) else CdIndexError  # uses an index variable
        raise error("CD0503", kind, text, span, helps=helps)
    ctx.prefer_static(at)
    if at.constant is None and not ctx.assumptions.nonnegative(at - 1):
        fault = Fault("CD0503", "CdValueError", f"{text}, and is {{0}}", helps)
        ctx.check(compare("ne", at, const(0)), fault, (Position(at),), span, Domain())
    return at


def _slice_bound(ctx: Context, value: Value | None, span: Span) -> Affine | None:
    if value is None or value == Static(None):
        return None
    at = steady(ctx, index_of(ctx, value, span, "a slice"), 0, span)
    if not isinstance(at, Affine):
        raise error(
            "CD0504", CdIndexError, "a slice bound cannot depend on an index letter", span,
            helps=(RANGE_OF_LETTERS,),
        )  # fmt: skip
    ctx.prefer_static(at)
    return at


def clipped(ctx: Context, at: Affine, extent: Affine, floor: int, span: Span) -> Affine:
    """Return a slice bound clipped to `floor .. extent + floor`, negative ones from the end."""
    assumptions, top = ctx.assumptions, extent + floor
    if assumptions.nonnegative(at):
        return assumptions.minimum(at, top)
    if assumptions.nonnegative(-at - 1):
        return assumptions.maximum(at + extent, const(floor))
    wrapped = Select(
        compare("lt", at, const(0)),
        Position(assumptions.maximum(at + extent, const(floor))),
        Position(assumptions.minimum(at, top)),
    )
    symbol = ctx.let("bound", wrapped, span)
    ctx.assumptions = assumptions.with_bounds(symbol, const(floor), top)
    return var(symbol)


def position_on(
    ctx: Context, item: Value, extent: Affine, axis: int, span: Span, name: str
) -> Affine | Expr:
    """Return an integer subscript of an axis, in range: proven, refused or checked.

    A static one that is out of range is refused where it is surely reached (CdIndexError CD0601).
    Under a condition or in a loop a check that fails is emitted; the read after it is dead code.
    """
    at = index_of(ctx, item, span, f"`{name}`")
    given = at.constant if isinstance(at, Affine) else None
    if isinstance(at, Affine) and (given is not None or not ctx.pointwise):
        at = (
            extent + at if ctx.assumptions.nonnegative(-at - 1) else at
        )  # proven to count from the end
    size = extent.constant
    if given is not None and size is not None and not -size <= given < size:
        if ctx.unsure or ctx.conditions:
            _emit_failure(ctx, given, extent, axis, name, span)
            return const(0)
        raise error(
            "CD0601", CdIndexError,
            f"index {given} is out of range for axis {axis} of `{name}` with size {size}", span,
            helps=(f"valid positions are 0 to {size - 1}",) if size else ("the axis is empty",),
        )  # fmt: skip
    ctx.require(at, extent, axis, name, span)
    return at


def _emit_failure(
    ctx: Context, given: int, extent: Affine, axis: int, name: str, span: Span
) -> None:
    """Emit a check that always fails: a static position is out of range."""
    if ctx.uses is None:
        at = Position(const(given))
        fault, values = index_fault(at, extent, axis, name, ctx.domain)
        ctx.check(FALSE, fault, values, span, Domain(ctx.domain))


def edge_of(
    ctx: Context, item: Edge, extent: Affine, axis: int, span: Span, name: str
) -> tuple[Expr | None, Affine | Expr]:
    """Return the in-range predicate (pad only, else None) and the position to read.

    An empty axis has no element to clamp or wrap to: a check fails where one is read.
    """
    at = index_of(ctx, item.index, span, f"`{name}`")
    if item.mode != "pad":
        ctx.require(const(0), extent, axis, name, span)
        if extent.constant == 0:
            return None, const(0)
    last = extent - 1
    if isinstance(at, Affine):
        match item.mode:
            case "clamp":
                return None, ctx.assumptions.maximum(ctx.assumptions.minimum(at, last), const(0))
            case "wrap":
                return None, mod(at, extent)
            case _:
                inside = both(
                    None if ctx.assumptions.nonnegative(at) else compare("ge", at, const(0)),
                    None if ctx.assumptions.less(at, extent) else compare("lt", at, extent),
                )
                return inside, at
    low, high = Position(const(0)), Position(last)
    match item.mode:
        case "clamp":
            capped = Apply(OPS["min"], (at, high), dtypes.int64)
            return None, Apply(OPS["max"], (capped, low), dtypes.int64)
        case "wrap":
            return None, Apply(OPS["mod"], (at, Position(extent)), dtypes.int64)
        case _:
            return both(
                Apply(OPS["ge"], (at, low), dtypes.bool_),
                Apply(OPS["le"], (at, high), dtypes.bool_),
            ), at


def element_at(ctx: Context, base: Array, index: Sequence[Affine | Expr], span: Span) -> Expr:
    """Return the element of `base` at subscripts, some of which may be data-dependent."""
    affine = {a: i for a, i in zip(base.axes, index, strict=True) if isinstance(i, Affine)}
    dynamic = {a: i for a, i in zip(base.axes, index, strict=True) if not isinstance(i, Affine)}
    if not dynamic:
        body = base.at(tuple(affine[a] for a in base.axes))
    else:
        if base.base is None:
            base = ctx.materialize(base, "gathered", span)
            return element_at(ctx, base, index, span)
        body = _substitute_dynamic(base.body, affine, dynamic)
    return replace(body, span=span) if isinstance(body, Read) else body


def _substitute_dynamic(
    expr: Expr, affine: Mapping[Symbol, Affine], dynamic: Mapping[Symbol, Expr]
) -> Expr:
    """Return an expression with axis symbols replaced by affine and data-dependent subscripts."""

    def index_for(index: Index) -> Index:
        if isinstance(index, Dynamic):
            return Dynamic(_substitute_dynamic(index.value, affine, dynamic))
        if index.symbols() & dynamic.keys():
            return Dynamic(as_expr(index, affine, dynamic))
        return substitute(index, affine)

    match expr:
        case Read(_, index):
            return replace(expr, index=tuple(index_for(i) for i in index))
        case Position(index):
            return as_expr(index, affine, dynamic)
        case _:
            return rebuild(
                expr,
                lambda child: _substitute_dynamic(child, affine, dynamic),
                lambda index: substitute(index, affine),
            )


def as_expr(index: Affine, affine: Mapping[Symbol, Affine], dynamic: Mapping[Symbol, Expr]) -> Expr:
    """Return an index expression as an int64 expression, its symbols substituted."""
    total: Expr | None = None
    plain = const(index.offset)
    for atom, factor in index.terms:
        match atom:
            case Symbol() if atom in dynamic:
                term = dynamic[atom]
            case Quasi(op, left, right) if (left.symbols() | right.symbols()) & dynamic.keys():
                sides = (as_expr(left, affine, dynamic), as_expr(right, affine, dynamic))
                term = Apply(OPS[op], sides, dtypes.int64)
            case _:
                plain = plain + substitute(Affine(((atom, factor),), 0), affine)
                continue
        if factor != 1:
            term = Apply(OPS["mul"], (Position(const(factor)), term), dtypes.int64)
        total = term if total is None else Apply(OPS["add"], (total, term), dtypes.int64)
    if total is None:
        return Position(plain)
    if plain.constant == 0:
        return total
    return Apply(OPS["add"], (total, Position(plain)), dtypes.int64)
