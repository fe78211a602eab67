"""Subscripts of arrays: slices, single positions, new axes, gathers, masks and edge rules.

Slices and positions of a view are views; gathers and edges read elements one by one; a mask gives
a selection. Every position is proven to be in range or checked in the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...lowering.diagnostic import CdIndexError, CdTypeError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import (
    Apply, Domain, Dynamic, Expr, Index, Position, Read, Select, rebuild, walk,
)  # fmt: skip
from ...lowering.ir.indexing import (
    Affine, Quasi, Range, Symbol, const, floordiv, mod, substitute, var,
)  # fmt: skip
from ...lowering.ir.ops import OPS
from .arrays import as_array, as_scalar, broadcast_shape, broadcast_to, describe
from .context import Context, compare, error
from .types import both, cast, number
from .values import Array, Edge, Group, Masked, Scalar, Section, Static, Value


@dataclass(frozen=True, slots=True)
class _Cut:
    """One base axis turned into a new axis: element n is at `start + n * step`."""

    start: Affine
    step: int
    extent: Affine


def index_of(ctx: Context, value: Value, span: Span, what: str) -> Affine | Expr:
    """Return an integer value as an index: affine where it is, else an int64 expression.

    A run-time number that does not depend on index letters is read once, into a symbol.
    CdTypeError CD0501 where the value is not an integer.
    """
    if isinstance(value, Static) and isinstance(value.value, bool):
        raise error("CD0501", CdTypeError, f"{what} is indexed with a bool", span)
    scalar = as_scalar(value, span, f"an index of {what}")
    if scalar.kind.dtype.kind not in "iu":
        raise error(
            "CD0501", CdTypeError, f"{what} is indexed with {describe(value)}; integers index", span,
            helps=("convert it: `i64(...)`",),
        )  # fmt: skip
    expr = cast(scalar.expr, dtypes.int64)
    if isinstance(expr, Position):
        return expr.index
    letters = {r.symbol for r in ctx.domain}
    used = {s for e in walk(expr) if isinstance(e, Read | Position) for s in _symbols_of(e)}
    if ctx.conditions or letters & used or ctx.uses is not None and used:
        return expr
    return var(ctx.let("at", expr, span))


def _symbols_of(expr: Read | Position) -> frozenset[Symbol]:
    if isinstance(expr, Position):
        return expr.index.symbols()
    found: frozenset[Symbol] = frozenset()
    for index in expr.index:
        if isinstance(index, Affine):
            found |= index.symbols()
    return found


def subscript(ctx: Context, base: Array, items: Sequence[Value], span: Span, name: str) -> Value:
    """Return `base[items]`: an `Array` (rank 0 for one element) or a `Masked` selection.

    `name` is how the array is called in messages. CdIndexError CD0502 for too many subscripts.
    """
    items = _complete(ctx, base, [_prepared(ctx, item, span) for item in items], span, name)
    if any(isinstance(item, Array) and item.kind.dtype.kind == "b" for item in items):
        return _mask(ctx, base, items, span, name)
    gathers = [n for n, item in enumerate(items) if isinstance(item, Array)]
    if gathers:
        return _gather(ctx, base, items, span, name)
    axes: list[Symbol] = []
    shape: list[Affine] = []
    index: list[Affine | Expr] = []
    tests: list[Expr] = []
    fill: Value | None = None
    for item in items:
        axis = len(index)
        match item:
            case Static(None):
                axes.append(ctx.symbol("i"))
                shape.append(const(1))
            case Section():
                cut = cut_of(ctx, item, base.shape[axis], span)
                symbol = ctx.symbol(base.axes[axis].name)
                axes.append(symbol)
                shape.append(cut.extent)
                index.append(var(symbol) * cut.step + cut.start)
            case Edge():
                where, at = _edge(ctx, item, base.shape[axis], span, name)
                index.append(at)
                if where is not None:
                    tests.append(where)
                    fill = item.fill
            case _:
                index.append(_position(ctx, item, base.shape[axis], axis, span, name))
    place = _element(ctx, base, index, span)
    result = Array(tuple(axes), tuple(shape), place, base.kind, base.copied)
    test = both(*tests)
    if test is None:
        return result
    dtype = base.kind.dtype.compute
    outside = number(0, base.kind) if fill is None else as_scalar(fill, span, "the fill").expr
    return replace(result, body=Select(test, cast(place, dtype), cast(outside, dtype)), copied=True)


def cut_of(ctx: Context, section: Section, extent: Affine, span: Span) -> _Cut:
    """Return what a slice takes of an axis, clipped and counted from the end as NumPy does."""
    step = 1 if section.step is None else _static_step(ctx, section.step, span)
    lower, upper = (_bound(ctx, part, span) for part in (section.lower, section.upper))
    numbers = [part is None or part.constant is not None for part in (lower, upper)]
    if all(numbers) and extent.constant is not None:
        ends = [None if part is None else part.constant for part in (lower, upper)]
        start, stop, _ = slice(ends[0], ends[1], step).indices(extent.constant)
        return _Cut(const(start), step, const(len(range(start, stop, step))))
    known = ctx.known
    if step > 0:
        start_at = const(0) if lower is None else _clipped(ctx, lower, extent, 0, span)
        stop_at = extent if upper is None else _clipped(ctx, upper, extent, 0, span)
        gap = stop_at - start_at + (step - 1)
    else:
        start_at = extent - 1 if lower is None else _clipped(ctx, lower, extent, -1, span)
        stop_at = const(-1) if upper is None else _clipped(ctx, upper, extent, -1, span)
        gap = start_at - stop_at + (-step - 1)
    if abs(step) > 1:
        gap = floordiv(gap, const(abs(step)))
    return _Cut(start_at, step, known.maximum(gap, const(0)))


def _static_step(ctx: Context, value: Value, span: Span) -> int:
    at = index_of(ctx, value, span, "a slice step")
    if isinstance(at, Affine):
        ctx.require_static(at)
        if at.constant:
            return at.constant
    raise error(
        "CD0503", CdIndexError, "a slice step has to be a number other than zero, known when compiling",
        span,
    )  # fmt: skip


def _bound(ctx: Context, value: Value | None, span: Span) -> Affine | None:
    if value is None or value == Static(None):
        return None
    at = index_of(ctx, value, span, "a slice")
    if not isinstance(at, Affine):
        raise error(
            "CD0504", CdIndexError, "a slice bound cannot depend on an index letter", span,
            helps=("use an index with a range: `sum[k in range(lo, hi)](...)`",),
        )  # fmt: skip
    if at.symbols() & ctx.origin.keys():
        ctx.require_static(at)
    return at


def _clipped(ctx: Context, at: Affine, extent: Affine, floor: int, span: Span) -> Affine:
    """Return a slice bound within `floor .. extent + floor`, negative ones counted from the end."""
    known, top = ctx.known, extent + floor
    if known.nonnegative(at):
        return known.minimum(at, top)
    if known.nonnegative(-at - 1):
        return known.maximum(at + extent, const(floor))
    wrapped = Select(
        compare("lt", at, const(0)),
        Position(known.maximum(at + extent, const(floor))),
        Position(known.minimum(at, top)),
    )
    symbol = ctx.let("bound", wrapped, span)
    ctx.known = known.with_bounds(symbol, const(floor), top)
    return var(symbol)


def _prepared(ctx: Context, item: Value, span: Span) -> Value:
    """Return a subscript with lists made arrays and rank-0 arrays made numbers."""
    match item:
        case Group(items, "list"):
            return as_array(ctx, item, span) if items else item
        case Array() if item.rank == 0 and item.kind.dtype.kind != "b":
            return Scalar(item.body, item.kind)
        case _:
            return item


def _consumed(item: Value) -> int:
    match item:
        case Static(None):
            return 0
        case Array() if item.kind.dtype.kind == "b":
            return item.rank
        case _:
            return 1


def _complete(
    ctx: Context, base: Array, items: Sequence[Value], span: Span, name: str
) -> list[Value]:
    """Return the items with the ellipsis, or what is missing at the end, written as full slices."""
    dots = [n for n, item in enumerate(items) if item == Static(...)]
    taken = sum(_consumed(item) for item in items) - len(dots)
    missing = base.rank - taken
    if missing < 0:
        raise error(
            "CD0502", CdIndexError,
            f"`{name}` has {base.rank} {'axis' if base.rank == 1 else 'axes'} and is indexed with {taken}",
            span, label=f"`{name}` is {describe(base)}",
        )  # fmt: skip
    full: list[Value] = [Section(None, None, None)] * missing
    if not dots:
        return [*items, *full]
    return [*items[: dots[0]], *full, *items[dots[0] + 1 :]]


def _position(
    ctx: Context, item: Value, extent: Affine, axis: int, span: Span, name: str
) -> Affine | Expr:
    """Return a single position on an axis, in range: proven, refused or checked."""
    at = index_of(ctx, item, span, f"`{name}`")
    given = at.constant if isinstance(at, Affine) else None
    if given is not None and given < 0:
        at = extent + given
    size = extent.constant
    if given is not None and size is not None and not -size <= given < size:
        raise error(
            "CD0601", CdIndexError,
            f"index {given} is out of range for axis {axis} of `{name}` with size {size}", span,
            helps=(f"valid positions are 0 to {size - 1}",) if size else ("the axis is empty",),
        )  # fmt: skip
    ctx.require(at, extent, axis, name, span)
    return at


def _edge(
    ctx: Context, item: Edge, extent: Affine, span: Span, name: str
) -> tuple[Expr | None, Affine | Expr]:
    """Return the test for being inside (pad only) and the position to read."""
    at = index_of(ctx, item.index, span, f"`{name}`")
    last = extent - 1
    if isinstance(at, Affine):
        match item.mode:
            case "clamp":
                return None, ctx.known.maximum(ctx.known.minimum(at, last), const(0))
            case "wrap":
                return None, mod(at, extent)
            case _:
                inside = both(
                    None if ctx.known.nonnegative(at) else compare("ge", at, const(0)),
                    None if ctx.known.less(at, extent) else compare("lt", at, extent),
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
                Apply(OPS["ge"], (at, low), dtypes.bool_), Apply(OPS["le"], (at, high), dtypes.bool_)
            ), at


def _element(ctx: Context, base: Array, index: Sequence[Affine | Expr], span: Span) -> Expr:
    """Return the element of `base` at an index of which some parts may be data-dependent."""
    affine = {a: i for a, i in zip(base.axes, index, strict=True) if isinstance(i, Affine)}
    dynamic = {a: i for a, i in zip(base.axes, index, strict=True) if not isinstance(i, Affine)}
    if not dynamic:
        body = base.at(tuple(affine[a] for a in base.axes))
    else:
        if base.place is None:
            base = ctx.materialize(base, "gathered", span)
            return _element(ctx, base, index, span)
        body = _substitute_dynamic(base.body, affine, dynamic)
    return replace(body, span=span) if isinstance(body, Read) else body


def _substitute_dynamic(
    expr: Expr, affine: Mapping[Symbol, Affine], dynamic: Mapping[Symbol, Expr]
) -> Expr:
    """Return a read with axis symbols replaced by index expressions and by data-dependent ones."""

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
    """Return an index expression as an int64 expression, some symbols being data-dependent."""
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


def _gather(ctx: Context, base: Array, items: Sequence[Value], span: Span, name: str) -> Array:
    """Return `base` at integer arrays: NumPy's rule for where the broadcast axes go."""
    if base.place is None:
        base = ctx.materialize(base, "gathered", span)
    chosen = [n for n, item in enumerate(items) if isinstance(item, Array | Scalar)
              or isinstance(item, Static) and isinstance(item.value, int)]  # fmt: skip
    arrays = {n: as_array(ctx, items[n], span) for n in chosen}
    shape = broadcast_shape(ctx, [array.shape for array in arrays.values()], span)
    names = ctx.axes(len(shape))
    together = chosen == list(range(chosen[0], chosen[-1] + 1))
    at_front = not together
    axes: list[Symbol] = list(names) if at_front else []
    extents: list[Affine] = list(shape) if at_front else []
    index: list[Affine | Expr] = []
    for n, item in enumerate(items):
        axis = len(index)
        if n in arrays:
            if n == chosen[0] and not at_front:
                axes += names
                extents += shape
            spread = broadcast_to(ctx, arrays[n], shape, span)
            point = spread.at(tuple(var(name) for name in names))
            over = tuple(Range(a, const(0), e) for a, e in zip(names, shape, strict=True))
            index.append(_gathered(ctx, point, base.shape[axis], axis, over, span, name))
        elif item == Static(None):
            axes.append(ctx.symbol("i"))
            extents.append(const(1))
        elif isinstance(item, Section):
            cut = cut_of(ctx, item, base.shape[axis], span)
            axes.append(ctx.symbol("j"))
            extents.append(cut.extent)
            index.append(var(axes[-1]) * cut.step + cut.start)
        else:
            raise error(
                "CD0505", CdTypeError, f"{describe(item)} cannot index `{name}` beside an array", span
            )
    return Array(tuple(axes), tuple(extents), _element(ctx, base, index, span), base.kind)


def _gathered(
    ctx: Context, point: Expr, extent: Affine, axis: int, over: tuple[Range, ...], span: Span, name: str
) -> Affine | Expr:
    """Return one gathered position; negative ones count from the end, as NumPy's do."""
    if point.dtype.kind not in "iu":
        raise error("CD0501", CdTypeError, f"`{name}` is indexed with {point.dtype} numbers", span)
    value = cast(point, dtypes.int64)
    size = Position(extent)
    low = Apply(OPS["ge"], (value, Position(-extent)), dtypes.bool_)
    high = Apply(OPS["lt"], (value, size), dtypes.bool_)
    fault = Fault(
        "CD0601", "CdIndexError",
        f"index {{0}} is out of range for axis {axis} of `{name}` with size {{1}}",
    )  # fmt: skip
    test = Apply(OPS["and"], (low, high), dtypes.bool_)
    domain = Domain((*ctx.domain, *over))
    if isinstance(value, Position):
        known = ctx.known.with_ranges(over)
        if known.nonnegative(value.index) and known.less(value.index, extent):
            return value.index
    ctx.check(test, fault, (value, size), span, domain)
    if point.dtype.kind == "u":
        return value
    below = Apply(OPS["lt"], (value, Position(const(0))), dtypes.bool_)
    return Select(below, Apply(OPS["add"], (value, size), dtypes.int64), value)


def _mask(
    ctx: Context, base: Array, items: Sequence[Value], span: Span, name: str
) -> Masked:
    """Return the selection of a boolean mask; further subscripts are taken first."""
    masks = [n for n, item in enumerate(items) if isinstance(item, Array)]
    if len(masks) > 1:
        raise error("CD0506", CdTypeError, f"`{name}` is indexed with more than one array beside a mask", span)
    mask = items[masks[0]]
    assert isinstance(mask, Array)
    rest: list[Value] = []
    lead = sum(
        1 for item in items[: masks[0]] if isinstance(item, Section) or item == Static(None)
    )
    for n, item in enumerate(items):
        rest += [Section(None, None, None)] * mask.rank if n == masks[0] else [item]
    inner = subscript(ctx, base, rest, span, name)
    assert isinstance(inner, Array)
    for axis in range(mask.rank):
        what = f"the mask of `{name}` does not have its size along axis {lead + axis}"
        ctx.equal_extents(mask.shape[axis], inner.shape[lead + axis], what, span)
    index = tuple(var(inner.axes[lead + axis]) for axis in range(mask.rank))
    wide = Array(inner.axes, inner.shape, mask.at(index), mask.kind, copied=True)
    return Masked(inner, wide)
