"""Reductions along axes: sums, products, extremes, truth, and argmin and argmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Reduce
from ....lowering.ir.indexing import Affine, Range, Symbol, const, multiply, substitute, var
from ....lowering.ir.ops import OPS, PAIR_OPS, Op
from ...values.arrays import describe, elementwise, strong
from ...values.broadcasting import broadcast_to
from ...values.builder import compare, error
from ...values.call_site import (  # fmt: skip
    NO,
    NONE,
    YES,
    Body,
    Site,
    array_of,
    axes_of,
    axis_of,
    constant,
    dtype_of,
    is_none,
    static_bool,
)
from ...values.fix_hints import WAYS_OUT
from ...values.masks import aligned, unaligned
from ...values.memory_order import mapped, of_operands, of_rest
from ...values.types import BOOL, WEAK_BOOL, WEAK_INT, Kind, both, cast, truth
from ...values.values import Array, Group, Masked, Scalar, Static, Value, replace_symbols
from .elementwise import converted, isclose
from .ufuncs import combine_of


@dataclass(frozen=True, slots=True)
class Reduction:
    """The operand of a reduction: an array, the axes of it that are reduced, and the predicate
    over its axes of the elements that take part, None for all.

    Of a masked selection the array is that from which it selects. A selection whose selected axis
    is reduced is one with a predicate. Where that axis stays, the array is reduced for all its
    elements, and the result is a selection of these results by the same mask.
    """

    array: Array
    axes: tuple[int, ...]
    where: Expr | None
    keepdims: bool
    selection: Masked | None = None

    @property
    def stays(self) -> bool:
        """Whether the operand is a selection whose selected axis is not reduced."""
        return self.selection is not None and self.selection.start not in self.axes

    @property
    def shape(self) -> tuple[Affine, ...]:
        """The shape of a result without a selected axis."""
        axes, sizes = set(self.axes), self.array.shape
        if not self.keepdims:
            return tuple(size for axis, size in enumerate(sizes) if axis not in axes)
        merged = () if self.selection is None else self.selection.spanned[1:]
        kept = (axis for axis in range(len(sizes)) if axis not in merged)
        return tuple(const(1) if axis in axes else sizes[axis] for axis in kept)

    def result(self, value: Value, added: int = 0) -> Value:
        """Return the reduction of the array as that of the operand.

        `added` axes of the result are before those of the array.
        """
        if self.selection is None or not isinstance(value, Array):
            return value
        selection = self.selection
        if self.stays:
            before = 0 if self.keepdims else sum(axis < selection.start for axis in self.axes)
            start = selection.start + added - before
            return Masked(value, selection.mask, selection.held, start)
        merged = selection.spanned[1:]
        if not self.keepdims or not merged:
            return value
        kept = [n for n in range(value.rank) if n not in merged]
        axes = tuple(value.axes[n] for n in kept)
        return replace(value, axes=axes, shape=tuple(value.shape[n] for n in kept), order=())


def operand(
    site: Site, value: Value, axis: Value = NONE, keepdims: Value = NO, where: Value = YES
) -> Reduction:
    """Return the operand of a reduction over some axes.

    `where` selects elements, too: bools that are broadcast to the shape of the operand. CdTypeError
    CD0404 for others, CD0403 for those that do not broadcast to a selection.
    """
    keeps_axes = static_bool(site, keepdims, "keepdims")
    if not isinstance(value, Masked):
        array = array_of(site, value)
        axes = axes_of(site, axis, array.rank)
        return Reduction(array, axes, _predicate(site, array, where), keeps_axes)
    array = value.array
    over = axes_of(site, axis, value.rank)
    later = value.mask.rank - 1
    axes = tuple(
        axis if axis < value.start else axis + later for axis in over if axis != value.start
    )
    predicate = _predicate(site, array, where, value)
    if value.start in over:
        axes = tuple(sorted((*axes, *value.spanned)))
        predicate = both(truth(value.where), predicate)
    return Reduction(array, axes, predicate, keeps_axes, value)


def number_axis(site: Site, value: Value, axis: Value) -> Value:
    """Return the axis of a reduction by a ufunc, which of a number may be 0 or -1: none, then."""
    if isinstance(value, Masked) or isinstance(axis, Group) or array_of(site, value).rank:
        return axis
    given = constant(axis)
    return NONE if type(given) is int and given in (0, -1) else axis


def _predicate(
    site: Site, array: Array, where: Value, selection: Masked | None = None
) -> Expr | None:
    """Return the `where=` of a reduction of an array, or a selection of it, over its axes."""
    if where == YES:
        return None
    given = where if isinstance(where, Masked) and selection else array_of(site, where)
    mask = given.array if isinstance(given, Masked) else given
    if mask.kind.dtype.kind != "b":
        text = f"`where` of a reduction is of bools, and is {describe(where)}"
        raise error("CD0404", CdTypeError, text, site.span, helps=("compare: `where=m != 0`",))
    if selection is not None:
        wide = aligned(site.ctx, given, selection, site.span)
        if wide is None:
            text = "`where` takes bools along the other axes of a selection, or selected so, too"
            raise unaligned(text, site.span)
        mask = wide
    mask = broadcast_to(site.ctx, mask, array.shape, site.span)
    return truth(mask.at(tuple(map(var, array.axes))))


def rebase_predicate(where: Expr, old: Array, new: Array) -> Expr:
    """Return a predicate over the axes of `old`, rewritten over the axes of `new`."""
    moved = Array(old.axes, old.shape, where, BOOL)
    return moved.at(tuple(var(axis) for axis in new.axes))


def accumulate(
    site: Site,
    op: Op,
    value: Array,
    axes: Sequence[int],
    kind: Kind,
    keepdims: bool = False,
    where: Expr | None = None,
    position: Affine | None = None,
) -> Value:
    """Return the reduction of `value` over some axes, as a value of `kind`.

    `where`, the predicate of the elements that take part, and `position`, what an argmin or argmax
    returns of the best element, are expressions over the axes of `value`.
    """
    dtype = kind.dtype.compute
    bound = {value.axes[axis]: site.ctx.symbol(value.axes[axis].name) for axis in axes}
    substitution = {old: var(new) for old, new in bound.items()}
    ranges = tuple(Range(bound[value.axes[axis]], const(0), value.shape[axis]) for axis in axes)
    body = replace_symbols(value.body, substitution)
    expr = Reduce(
        op, Domain(ranges, None if where is None else replace_symbols(where, substitution)),
        cast(body, dtype if position is None else value.kind.dtype.compute), dtype,
        None if position is None else substitute(position, substitution), site.span,
    )  # fmt: skip
    reduced = set(axes)
    remaining = [axis for axis in range(value.rank) if axis not in reduced]
    if keepdims and value.rank:
        names = tuple(
            site.ctx.symbol("i") if axis in reduced else value.axes[axis]
            for axis in range(value.rank)
        )
        shape = tuple(
            const(1) if axis in reduced else value.shape[axis] for axis in range(value.rank)
        )
        order = of_operands(site.ctx, [value], value.shape) if position is None else ()
        return Array(names, shape, expr, strong(kind), copied=True, order=order)
    if not remaining:
        return Scalar(expr, strong(kind))
    names = tuple(value.axes[axis] for axis in remaining)
    sizes = tuple(value.shape[axis] for axis in remaining)
    order = of_rest(site.ctx, value, remaining) if position is None else ()
    return Array(names, sizes, expr, strong(kind), copied=True, order=order)


def _initial_value(site: Site, initial: Value, kind: Kind) -> Value:
    """Return the initial value of a reduction, in the type of its accumulator.

    CdValueError CD0452 for an array of them. An integer has to fit, but for one of NumPy that meets
    an unsigned type, where it wraps there, too.
    """
    number = constant(initial)
    if isinstance(number, np.integer) and kind.dtype.kind == "i":
        number = int(number)
    if isinstance(number, int | float | complex | np.number | np.bool_):
        return Static(kind.dtype.numpy.type(number))
    array = array_of(site, initial)
    if array.rank:
        text = f"`initial` of a reduction is one number, and is given {describe(initial)}"
        helps = ("add it to the result: `np.sum(x) + y`",)
        raise error("CD0452", CdValueError, text, site.span, helps=helps)
    if array.kind == WEAK_INT and kind.dtype.kind in "iu":
        return initial  # a weak integer adapts, and has to be in range
    if array.kind.dtype.kind in "iu" and kind.dtype.kind == "i" and not _holds_all(array, kind):
        return Scalar(cast(array.body, dtypes.int64), WEAK_INT)
    return converted(site, array, kind.dtype)


def _holds_all(integers: Array, kind: Kind) -> bool:
    """Whether a kind of integers holds those of an array, or all but ones that int64 does not."""
    source = integers.kind.dtype
    return source is dtypes.uint64 or dtypes.promote(source, kind.dtype) is kind.dtype


def reducer(name: str) -> Body:
    """Return the handler of `np.sum`, `np.prod`, `np.max` or `np.min`."""
    op = OPS[{"sum": "add", "prod": "mul"}.get(name, name)]

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        *,
        keepdims: Value = NO,
        initial: Value = NONE,
        where: Value = YES,
    ) -> Value:
        over = operand(site, a, number_axis(site, a, axis), keepdims, where)
        array, axes, predicate = over.array, over.axes, over.where
        wanted = dtype_of(site, dtype)
        if name in ("max", "min"):
            kind = Kind(array.kind.dtype)
            require_ordered(site, array, name)
            if is_none(initial) and where != YES:
                text = f"`{name}` of nothing has no value, and `where` may select nothing"
                helps = (f"say what it is then: `{name}(..., initial=0)`",)
                raise error("CD0440", CdValueError, text, site.span, helps=helps)
            if is_none(initial):
                require_elements(site, array, axes, name, predicate, WAYS_OUT["CD0459"])
            elif predicate is None:
                predicate = Const(True, dtypes.bool_)  # starts at the limit of its type
        else:
            kind = Kind(wanted or array.kind.dtype.summed)
        if wanted is not None and array.kind.dtype is not wanted:
            as_wanted = array_of(site, converted(site, array, wanted))
            if predicate is not None:
                predicate = rebase_predicate(predicate, array, as_wanted)
            array = as_wanted
        operation = OPS["or" if name == "sum" else "and"] if kind.dtype.kind == "b" and op.name in (
            "add", "mul") else op  # fmt: skip
        result = accumulate(site, operation, array, axes, kind, over.keepdims, predicate)
        if is_none(initial):
            return over.result(result)
        ufuncs = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
        initial_value = _initial_value(site, initial, kind)
        combine = combine_of(ufuncs[name])
        return over.result(elementwise(site.ctx, combine, [result, initial_value], site.span))

    def extreme(
        site: Site,
        a: Value,
        axis: Value = NONE,
        *,
        keepdims: Value = NO,
        initial: Value = NONE,
        where: Value = YES,
    ) -> Value:
        return body(site, a, axis, NONE, keepdims=keepdims, initial=initial, where=where)

    return extreme if name in ("max", "min") else body


def require_ordered(site: Site, array: Array, name: str) -> None:
    """Refuse (CdTypeError CD0404) an ordering of complex numbers."""
    if array.kind.dtype.kind == "c":
        message = f"`{name}` is not defined for complex numbers"
        raise error("CD0404", CdTypeError, message, site.span)


def require_subtracted(site: Site, array: Array, name: str) -> None:
    """Refuse (CdTypeError CD0404) a function that subtracts, for bools."""
    if array.kind.dtype.kind == "b":
        message = f"`{name}` subtracts, and `-` is not defined for bools"
        helps = ("convert them: `x.astype(float)`",)
        raise error("CD0404", CdTypeError, message, site.span, helps=helps)


def require_elements(
    site: Site,
    array: Array,
    axes: Sequence[int],
    name: str,
    where: Expr | None = None,
    helps: tuple[str, ...] = ("test the size before: `if x.size > 0:`",),
) -> None:
    """Require a nonempty reduction: proven, or by a run-time check.

    The predicate `where` depends on none of the axes that stay. CdValueError CD0459 where there are
    no elements.
    """
    message = f"`{name}` of nothing has no value"
    if where is not None:
        ranges = tuple(Range(array.axes[axis], const(0), array.shape[axis]) for axis in axes)
        number = Reduce(OPS["add"], Domain(ranges, where), _unit(dtypes.int64), dtypes.int64,
                        span=site.span)  # fmt: skip
        test: Expr = Apply(OPS["lt"], (Position(const(0)), number), dtypes.bool_)
        site.ctx.check(test, _empty_fault(message, helps), (), site.span, _outer_domain(site))
        return
    for axis in axes:
        size = array.shape[axis]
        if not site.ctx.assumptions.less(const(0), size):
            fault = _empty_fault(f"{message}: axis {axis} of {describe(array)} is empty", helps)
            site.ctx.check(compare("lt", const(0), size), fault, (), site.span, _outer_domain(site))


def _empty_fault(message: str, helps: tuple[str, ...]) -> Fault:
    return Fault("CD0459", "CdValueError", message, helps)


def _outer_domain(site: Site) -> Domain:
    return Domain(site.ctx.domain)


def _unit(dtype: DType) -> Const:
    return Const(True if dtype.kind == "b" else 1.0 if dtype.kind == "f" else 1, dtype)


def truth_reducer(name: str) -> Body:
    """Return the handler of `np.any` or `np.all`."""
    op = OPS["or" if name == "any" else "and"]

    def body(
        site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO, where: Value = YES
    ) -> Value:
        over = operand(site, a, number_axis(site, a, axis), keepdims, where)
        tested = mapped(site.ctx, over.array, truth(over.array.body), BOOL)
        return over.result(accumulate(site, op, tested, over.axes, BOOL, over.keepdims, over.where))

    return body


def position_reducer(name: str) -> Body:
    """Return the handler of `np.argmin` or `np.argmax`: the position (int64) of the first extreme.

    Without an axis it is the row-major position among all elements.
    """

    def body(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
        if isinstance(a, Masked):
            raise error(
                "CD0403", CdTypeError, f"`{name}` of a masked selection is not supported",
                site.span,
                helps=("use `np.where(mask, x, limit)` and take it of that",),
            )  # fmt: skip
        array, axis = array_of(site, a), number_axis(site, a, axis)
        require_ordered(site, array, name)
        axes = tuple(range(array.rank)) if is_none(axis) else (axis_of(site, axis, array.rank),)
        require_elements(site, array, axes, name)
        at = flat_position(array.axes, array.shape) if is_none(axis) else var(array.axes[axes[0]])
        keep_dims = static_bool(site, keepdims, "keepdims")
        if not array.rank:
            return Static(np.int64(0))
        return accumulate(
            site, PAIR_OPS[name], array, axes, Kind(dtypes.int64), keep_dims, position=at
        )

    return body


def flat_position(axes: Sequence[Symbol], shape: Sequence[Affine]) -> Affine:
    """Return the row-major (linearized) position of the index `axes` in an array of a shape."""
    total = const(0)
    for axis, extent in zip(axes, shape, strict=True):
        total = multiply(total, extent) + var(axis)
    return total


def count_nonzero(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the number of nonzero elements, int64."""
    over = operand(site, a, number_axis(site, a, axis), keepdims)
    counted = cast(truth(over.array.body), dtypes.int64)
    tested = mapped(site.ctx, over.array, counted, Kind(dtypes.int64))
    total = accumulate(
        site, OPS["add"], tested, over.axes, tested.kind, over.keepdims, over.where
    )  # fmt: skip
    return over.result(total)


def allclose(
    site: Site,
    a: Value,
    b: Value,
    rtol: Value = Static(1e-5),
    atol: Value = Static(1e-8),
    equal_nan: Value = NO,
) -> Value:
    """Return `np.allclose`: whether `isclose` holds for all elements, a Python bool."""
    return as_pythons(truth_reducer("all")(site, isclose(site, a, b, rtol, atol, equal_nan)))


def as_pythons(value: Value) -> Value:
    """Return a scalar bool as a weak Python bool, as functions like `np.allclose` do."""
    return Scalar(value.expr, WEAK_BOOL) if isinstance(value, Scalar) else value


def array_equal(site: Site, a1: Value, a2: Value, equal_nan: Value = NO) -> Value:
    """Return whether two arrays have one shape and equal elements, a Python bool. With `equal_nan`
    elements that are NaN in both are equal."""
    left, right = array_of(site, a1), array_of(site, a2)
    if left.rank != right.rank:
        return Static(False)
    if any(site.ctx.assumptions.differ(x, y) for x, y in zip(left.shape, right.shape, strict=True)):
        return Static(False)
    same = elementwise(site.ctx, combine_of(np.equal), [left, right], site.span)
    kinds = {left.kind.dtype.kind, right.kind.dtype.kind}
    if static_bool(site, equal_nan, "equal_nan") and kinds <= {"f", "c"}:
        missing = [
            elementwise(site.ctx, combine_of(np.isnan), [x], site.span) for x in (left, right)
        ]
        both_missing = elementwise(site.ctx, combine_of(np.logical_and), missing, site.span)
        same = elementwise(site.ctx, combine_of(np.logical_or), [same, both_missing], site.span)
    return as_pythons(truth_reducer("all")(site, same))
