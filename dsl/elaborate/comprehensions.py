"""Comprehensions: written out for few items, and one array of numbers for many.

Many items, or items that a test of the run chooses, have to be numbers that one expression gives:
then they are an array whose axis is the comprehension's variable, masked where there is a test.
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

_WRITTEN_OUT = 64
"""A comprehension over more items is an array."""


def comprehend(frame: Frame, e: s.Comprehension) -> Value:
    """Return a comprehension as a list, written out for each item, or as an array."""
    source = iteration_space.rounds_of(frame, e.iterable, e.target)
    if isinstance(source, iteration_space.Rounds) and source.listed:
        source = list(iteration_space.static_items(frame, source))
    if isinstance(source, iteration_space.Rounds) and iteration_space.round_count(source) is None:
        count = len(frame.ctx.locals)
        with suppress(CdError):
            return _many(frame, e, source)  # one form for all sizes
        del frame.ctx.locals[count:]
    items = _few(frame, source)
    if items is None:
        assert isinstance(source, iteration_space.Rounds), "what is known now has few items"
        return _many(frame, e, source)
    scope = replace(frame, names={}, locals=frozenset(), parent=frame.closure or frame)
    outer, around, frame.closure = dict(frame.names), frame.closure, scope
    out: list[Value] = []
    try:
        for item in items:
            found = after(frame.ctx, out, partial(_written_out, frame, e, item), e.span)
            if found is None:
                break
            out += found
        else:
            return Group(tuple(out), "list")
    finally:
        frame.names = outer | object_attributes.states(frame, frame.names)
        frame.closure = around
    if not isinstance(source, iteration_space.Rounds):
        text = "a comprehension's test has to be known when compiling"
        raise error("CD0431", CdTypeError, text, e.span)
    return _many(frame, e, source)


def _written_out(frame: Frame, e: s.Comprehension, item: Value) -> list[Value] | None:
    """Return what one item of the iterable adds to the list, None where it is a run-time value."""
    assert frame.closure is not None, "a comprehension has a scope of its own"
    control_flow.bind_target(frame, e.target, item, e.span)
    for name in target_names(e.target):
        frame.closure.names[name] = frame.names[name]
    for test in e.tests:
        holds = tested(frame, test)
        if not isinstance(holds, Static):
            return None
        if not holds.value:
            return []
    if isinstance(e.element, s.Starred):
        return elements(frame, evaluate(frame, e.element.value), e.span)
    return [bindings.settled(frame.ctx, evaluate(frame, e.element), "item", e.span)]


def _few(frame: Frame, source: iteration_space.Rounds | list[Value]) -> list[Value] | None:
    """Return what a comprehension goes over, None where that is too much to be written out."""
    if not isinstance(source, iteration_space.Rounds):
        return source
    frame.ctx.require_static(source.hi - source.lo)
    count = iteration_space.round_count(source)
    if count is None or count > _WRITTEN_OUT:
        return None
    return list(iteration_space.static_items(frame, source))


def _many(frame: Frame, e: s.Comprehension, source: iteration_space.Rounds) -> Value:
    """Return the array of a comprehension. CdTypeError CD0437 where there can be none."""
    ctx = frame.ctx
    try:
        if ctx.pointwise or isinstance(e.element, s.Starred):
            raise _too_many(e, source)
        made = _as_array(
            frame, e, iteration_space.counted(source) if abs(source.step) != 1 else source
        )
    except CdError as problem:
        if problem.code in ("CD0520", "CD0522"):  # of index letters, which nobody wrote
            raise _too_many(e, source) from None
        raise
    if made is None:
        raise _too_many(e, source)
    return made


def _as_array(frame: Frame, e: s.Comprehension, source: iteration_space.Rounds) -> Value | None:
    ctx, symbol = frame.ctx, frame.ctx.symbol(source.name)
    lo, hi = (source.lo, source.hi) if source.step > 0 else (source.hi + 1, source.lo + 1)
    outer, around = dict(frame.names), ctx.domain
    tests: list[Expr] = []
    with ExitStack() as inside:
        checks = inside.enter_context(ctx.block())
        inside.enter_context(ctx.knowing(ctx.known.with_bounds(symbol, lo, hi - 1)))
        ctx.domain, ctx.of_items = (Range(symbol, lo, hi),), True
        try:
            control_flow.bind_target(frame, e.target, source.item(symbol), e.span)
            for test in e.tests:
                tests.append(as_scalar(tested(frame, test), test.span).expr)
                inside.enter_context(ctx.under(tests[-1]))
            item = evaluate(frame, e.element)
        finally:
            frame.names, ctx.domain, ctx.of_items = outer, around, False
    if not is_number(item) or not all(isinstance(one, Check) for one in checks):
        return None
    ctx.out += checks
    found, size = as_scalar(item, e.span), ctx.known.maximum(hi - lo, const(0))
    axis = ctx.symbol(source.name)
    place = var(axis) + lo if source.step > 0 else hi - 1 - var(axis)

    def of_all(expr: Expr, kind: Kind) -> Array:
        whole = Array((symbol,), (hi,), expr, kind)
        return Array((axis,), (size,), whole.at((place,)), kind, copied=True)

    where, expr, kind = both(*tests), found.expr, found.kind
    if where is not None:  # what the test leaves out is not read
        dtype = kind.dtype.compute
        expr = Select(where, cast(expr, dtype), cast(number(0, kind), dtype))
    items = ctx.materialize(of_all(expr, kind), "items", e.span)
    items = replace(items, kind=kind, listed=Listed.NUMBERS if kind.weak else Listed.LIST)
    if where is None:
        return items
    mask = ctx.materialize(of_all(where, BOOL), "chosen", e.span)
    return Masked(items, mask)


def _too_many(e: s.Comprehension, source: iteration_space.Rounds) -> CdError:
    count = iteration_space.round_count(source)
    why = "how many only the run knows" if count is None else f"{count}"
    return error(
        "CD0437", CdTypeError,
        f"a comprehension is written out for each item, and here there are {why}", e.span,
        helps=iteration_space.instead_of(e),
    )  # fmt: skip
