"""Elaboration of comprehensions: unrolled for few items, one array expression for many.

Many items, or items that a run-time test selects, have to be numbers given by one expression:
they become an array whose axis is the comprehension's variable, masked where there is a test.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from ...base.diagnostic import CdError, CdTypeError
from ...lowering.ir.assignments import Check
from ...lowering.ir.expressions import Expr, Select
from ...lowering.ir.indexing import Range, const, var
from ..source import surface as s
from ..values.arrays import as_scalar
from ..values.builder import error
from ..values.evaluation_order import after
from ..values.types import BOOL, Kind, both, cast, number
from ..values.values import Array, Group, Listed, Masked, Static, Value
from . import bindings, control_flow, iteration_space, object_attributes
from .bindings import is_number
from .expressions import elements, evaluate, tested
from .scope import Frame, target_names

_MAX_UNROLLED = 64
"""The most items of a comprehension that is unrolled; with more it is an array."""


def comprehend(frame: Frame, e: s.Comprehension) -> Value:
    """Return a comprehension as a list, unrolled over its items, or as an array.

    CdTypeError CD0431 or CD0437 where it can be neither.
    """
    source = iteration_space.iteration_space_of(frame, e.iterable, e.target)
    if isinstance(source, iteration_space.IterationSpace) and source.listed:
        source = list(iteration_space.static_items(frame, source))
    if (
        isinstance(source, iteration_space.IterationSpace)
        and iteration_space.constant_trip_count(source) is None
    ):
        count = len(frame.ctx.locals)
        with suppress(CdError):
            return _array_or_refuse(frame, e, source)  # one specialization for all sizes
        del frame.ctx.locals[count:]
    items = _items_to_unroll(frame, source)
    if items is None:
        assert isinstance(source, iteration_space.IterationSpace), "what is known now has few items"
        return _array_or_refuse(frame, e, source)
    scope = replace(frame, names={}, locals=frozenset(), parent=frame.closure or frame)
    outer, outer_closure, frame.closure = dict(frame.names), frame.closure, scope
    out: list[Value] = []
    try:
        for item in items:
            added = after(frame.ctx, out, partial(_unroll_item, frame, e, item), e.span)
            if added is None:
                break
            out += added
        else:
            return Group(tuple(out), "list")
    finally:
        frame.names = outer | object_attributes.states(frame, frame.names)
        frame.closure = outer_closure
    if not isinstance(source, iteration_space.IterationSpace):
        text = "a comprehension's test has to be known when compiling"
        raise error("CD0431", CdTypeError, text, e.span)
    return _array_or_refuse(frame, e, source)


def _unroll_item(frame: Frame, e: s.Comprehension, item: Value) -> list[Value] | None:
    """Return the elements that one item adds to the list, None where a test of it is dynamic."""
    assert frame.closure is not None, "a comprehension has a scope of its own"
    control_flow.bind_target(frame, e.target, item, e.span)
    for name in target_names(e.target):
        frame.closure.names[name] = frame.names[name]
    for test in e.tests:
        condition = tested(frame, test)
        if not isinstance(condition, Static):
            return None
        if not condition.value:
            return []
    if isinstance(e.element, s.Starred):
        return elements(frame, evaluate(frame, e.element.value), e.span)
    return [bindings.materialized(frame.ctx, evaluate(frame, e.element), "item", e.span)]


def _items_to_unroll(
    frame: Frame, source: iteration_space.IterationSpace | list[Value]
) -> list[Value] | None:
    """Return the items of a comprehension, None where they are too many to unroll, or unknown."""
    if not isinstance(source, iteration_space.IterationSpace):
        return source
    frame.ctx.require_static(source.hi - source.lo)
    count = iteration_space.constant_trip_count(source)
    if count is None or count > _MAX_UNROLLED:
        return None
    return list(iteration_space.static_items(frame, source))


def _array_or_refuse(
    frame: Frame, e: s.Comprehension, source: iteration_space.IterationSpace
) -> Value:
    """Return a comprehension as an array. CdTypeError CD0437 where it cannot be one."""
    ctx = frame.ctx
    try:
        if ctx.pointwise or isinstance(e.element, s.Starred):
            raise _too_many_items(e, source)
        array = _as_array(
            frame, e, iteration_space.counted(source) if abs(source.step) != 1 else source
        )
    except CdError as problem:
        if problem.code in ("CD0520", "CD0522"):  # about index variables: the source has none
            raise _too_many_items(e, source) from None
        raise
    if array is None:
        raise _too_many_items(e, source)
    return array


def _as_array(
    frame: Frame, e: s.Comprehension, source: iteration_space.IterationSpace
) -> Value | None:
    """Return a comprehension as one array over its iterations, masked where it has tests.

    None where its element is no number, or needs other statements than checks.
    """
    ctx, symbol = frame.ctx, frame.ctx.symbol(source.name)
    lo, hi = (source.lo, source.hi) if source.step > 0 else (source.hi + 1, source.lo + 1)
    outer, outer_domain = dict(frame.names), ctx.domain
    tests: list[Expr] = []
    with ExitStack() as scopes:
        checks = scopes.enter_context(ctx.block())
        scopes.enter_context(ctx.knowing(ctx.assumptions.with_bounds(symbol, lo, hi - 1)))
        ctx.domain, ctx.of_items = (Range(symbol, lo, hi),), True
        try:
            control_flow.bind_target(frame, e.target, source.item(symbol), e.span)
            for test in e.tests:
                tests.append(as_scalar(tested(frame, test), test.span).expr)
                scopes.enter_context(ctx.under(tests[-1]))
            item = evaluate(frame, e.element)
        finally:
            frame.names, ctx.domain, ctx.of_items = outer, outer_domain, False
    if not is_number(item) or not all(isinstance(check, Check) for check in checks):
        return None
    ctx.out += checks
    element, size = as_scalar(item, e.span), ctx.assumptions.maximum(hi - lo, const(0))
    axis = ctx.symbol(source.name)
    subscript = var(axis) + lo if source.step > 0 else hi - 1 - var(axis)

    def array_of(expr: Expr, kind: Kind) -> Array:
        indexed = Array((symbol,), (hi,), expr, kind)
        return Array((axis,), (size,), indexed.at((subscript,)), kind, copied=True)

    mask_expr, expr, kind = both(*tests), element.expr, element.kind
    if mask_expr is not None:  # elements that the test excludes are not read
        dtype = kind.dtype.compute
        expr = Select(mask_expr, cast(expr, dtype), cast(number(0, kind), dtype))
    items = ctx.materialize(array_of(expr, kind), "items", e.span)
    items = replace(items, kind=kind, listed=Listed.NUMBERS if kind.weak else Listed.LIST)
    if mask_expr is None:
        return items
    mask = ctx.materialize(array_of(mask_expr, BOOL), "chosen", e.span)
    return Masked(items, mask)


def _too_many_items(e: s.Comprehension, source: iteration_space.IterationSpace) -> CdError:
    """Return CdTypeError CD0437 for a comprehension with too many items to unroll."""
    count = iteration_space.constant_trip_count(source)
    count_text = "how many is known at run time only" if count is None else f"{count}"
    return error(
        "CD0437", CdTypeError,
        f"a comprehension is written out for each item, and here there are {count_text}", e.span,
        helps=iteration_space.instead_of(e),
    )  # fmt: skip
