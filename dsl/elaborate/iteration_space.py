"""Iteration spaces of loops: a counter's range with the target's value, or static items."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import BuiltinMethodType
from typing import TypeGuard, TypeVar

from ...base.dataclass import dataclass
from ...base.diagnostic import CdIndexError, CdSyntaxError, CdTypeError, Span
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Domain, Position, Read, Select
from ...lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from ..numpy.primitives.views import subscript
from ..source import surface as s
from ..values.arrays import as_array, describe
from ..values.builder import compare, error
from ..values.call_site import Word
from ..values.constant_tables import items_table, static_item
from ..values.evaluation_order import after
from ..values.positions import RANGE_OF_LETTERS, index_of, steady, step_of
from ..values.range_analysis import Assumptions
from ..values.types import WEAK_INT
from ..values.values import Array, Group, Handle, Masked, Scalar, Static, Value, replace_symbols
from .bindings import is_number
from .expressions import elements, evaluate
from .loop_items import Stored, taken_at_once
from .operators import as_affine, value_of
from .scope import Frame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """The iterations of a loop: its counter's range and step, and the target's value in each."""

    name: str
    lo: Affine
    hi: Affine
    step: int
    item: Callable[[Symbol], Value]
    listed: bool = False
    """Whether the items are a table of constants: such a loop may be unrolled as well."""
    is_capped: bool = False
    """Whether `hi` is a trip count, which stands for larger ones, too, from 2**63 - 2 on."""
    over: tuple[Array, ...] = ()
    """The arrays whose elements, or rows, are items or parts of them."""


_ITERTOOLS: dict[type, str] = {
    itertools.product: "write loops inside each other: `for i in range(n):`, `for j in range(m):`",
    itertools.combinations: "write loops inside each other: `for i in range(n):`, "
    "`for j in range(i + 1, n):`",
    itertools.combinations_with_replacement: "write loops inside each other: `for i in range(n):`, "
    "`for j in range(i, n):`",
    itertools.permutations: "write loops inside each other: `for i in range(n):`, "
    "`for j in range(n):`, `if i != j:`",
}
"""The help text for an iterable of `itertools`, by its type."""


_TAKERS = (sum, min, max, any, all, list, tuple, sorted, math.prod, math.fsum)
"""What takes all items of a generator at once."""


def constant_trip_count(source: IterationSpace) -> int | None:
    """Return the number of iterations, None where it is dynamic."""
    lo, hi = source.lo.constant, source.hi.constant
    return None if lo is None or hi is None else len(range(lo, hi, source.step))


def counted(source: IterationSpace) -> IterationSpace:
    """Return the iterations of a range with another step, normalized: from zero, with step one."""
    step, low = source.step, source.lo
    gap = source.hi - low if step > 0 else low - source.hi

    def item(symbol: Symbol) -> Value:
        return Scalar(Position(low + var(symbol) * step), WEAK_INT)

    count = floordiv(gap - 1, const(abs(step))) + 1
    return IterationSpace(source.name, const(0), count, 1, item)


def static_items(frame: Frame, source: IterationSpace) -> Iterator[Value]:
    """Yield the target's value in each iteration of a static range."""
    lo, hi = source.lo.constant, source.hi.constant
    assert lo is not None and hi is not None
    for n in range(lo, hi, source.step):
        symbol = frame.ctx.symbol(source.name)
        yield _substitute_counter(frame, source.item(symbol), symbol, const(n))


def first_iteration(frame: Frame, source: IterationSpace) -> tuple[Value, IterationSpace]:
    """Return the target's value in the first iteration, and the other iterations.

    Precondition: the counter starts at a static number.
    """
    first = source.lo.constant
    assert first is not None, "the first iteration is at a known number"
    symbol = frame.ctx.symbol(source.name)
    item = _substitute_counter(frame, source.item(symbol), symbol, const(first))
    return item, replace(source, lo=const(first + source.step))


def _substitute_counter(frame: Frame, value: Value, symbol: Symbol, at: Affine) -> Value:
    """Return a value with an index substituted for the counter, static where it can be."""
    values = {symbol: at}
    match value:
        case Scalar(Position(index), kind) if index.symbol == symbol:
            return Scalar(Position(at), kind) if at.constant is None else Static(at.constant)
        case Scalar(expr, kind):
            new_expr = replace_symbols(expr, values)
            if isinstance(new_expr, Read):
                return static_item(frame.ctx, new_expr.node, new_expr.index) or Scalar(
                    new_expr, kind
                )
            position = new_expr.index.constant if isinstance(new_expr, Position) else None
            return Scalar(new_expr, kind) if position is None else Static(position)
        case Array():
            return replace(value, body=replace_symbols(value.body, values))
        case Group(items):
            return value.of(_substitute_counter(frame, item, symbol, at) for item in items)
        case _:
            return value


def _from_zero(frame: Frame, source: IterationSpace) -> IterationSpace:
    """Return the iterations counted from zero, with step one."""
    lo, step = source.lo, source.step
    if lo.constant == 0 and step == 1:
        return source

    def item(symbol: Symbol) -> Value:
        inner = frame.ctx.symbol(source.name)
        return _substitute_counter(frame, source.item(inner), inner, lo + var(symbol) * step)

    count = source.hi - lo if step > 0 else lo - source.hi
    if abs(step) > 1:
        count = floordiv(count - 1, const(abs(step))) + 1
    return replace(source, lo=const(0), hi=count, step=1, item=item)


def iteration_space_of(
    frame: Frame, iterable: s.Expr, target: s.Expr, stored: Stored
) -> IterationSpace | list[Value]:
    """Return the iteration space of an iterable: iterations of a loop, or items to unroll over.

    CdTypeError CD0406 where it cannot be iterated.
    """
    name = target.id if isinstance(target, s.Name) else "n"
    if not isinstance(iterable, s.Call):
        return _over_value(frame, evaluate(frame, iterable), iterable, name, stored)
    function = evaluate(frame, iterable.function)
    require_taken_at_once(function, iterable)
    iterable = _without_keywords(function, iterable)
    starred = any(isinstance(arg, s.Starred) for arg in iterable.args)
    if function == Static(zip) and iterable.args and not iterable.keywords:
        return _zip(frame, iterable, stored)
    if not iterable.keywords and not starred:
        if function == Static(range):
            return _range(frame, iterable, name)
        if function == Static(reversed) and len(iterable.args) == 1:
            return _reversed(frame, iterable, name, target, stored)
        if function == Static(enumerate) and len(iterable.args) in (1, 2):
            return _enumerate(frame, iterable, target, stored)
    value = frame.hooks.call_of(frame, function, iterable)
    return _over_value(frame, value, iterable, name, stored)


def takes_at_once(function: Value) -> bool:
    """Whether a function of Python takes all items of its first argument before it does more."""
    return isinstance(function, Static) and any(function.value is x for x in _TAKERS)


def require_taken_at_once(function: Value, call: s.Call) -> None:
    """Refuse (CD0112) a generator that is given to what does not take all of its items at once:
    Python evaluates them one by one, between what else is done, and only once."""
    if not any(isinstance(arg, s.Comprehension) and arg.is_lazy for arg in call.args):
        return
    match function:
        case _ if takes_at_once(function):
            return
        case Static(taker) if isinstance(taker, Word):
            return
        case Static(BuiltinMethodType(__self__=str())):  # `", ".join`
            return
    name = call.function.span.text
    raise error(
        "CD0112", CdSyntaxError,
        f"`{name}` would take the items of a generator one by one, and here they are a list",
        call.args[0].span,
        helps=(f"make it a list, whose items are all evaluated before: `{name}([...])`",),
    )  # fmt: skip


def _over_value(
    frame: Frame, value: Value, iterable: s.Expr, name: str, stored: Stored
) -> IterationSpace | list[Value]:
    """Return the iteration space of an iterable with that value."""
    if isinstance(value, Handle):
        value = as_array(frame.ctx, value, iterable.span)
    if isinstance(value, Static) and isinstance(value.value, range):
        indices = value.value
        return IterationSpace(
            name, const(indices.start), const(indices.stop), indices.step, frame.ctx.scalar_index
        )
    if isinstance(value, Array) and value.rank:
        source = value
        if value.base is None:
            array = frame.ctx.materialize(value, "items", iterable.span)
            source = replace(array, listed=value.listed)
        held_source = stored.iterable(frame.ctx, source, iterable.span)
        assert isinstance(held_source, Array), "an array that is stored is one"
        return _over_axis(frame, held_source, "n", iterable.span)
    if is_number(value):
        raise error(
            "CD0406", CdTypeError, f"{describe(value)} cannot be looped over", iterable.span,
            helps=(f"loop over positions: `range({iterable.span.text})`",),
        )  # fmt: skip
    if isinstance(value, Masked):
        raise error(
            "CD0406", CdTypeError, f"{describe(value)} cannot be looped over", iterable.span,
            helps=(_masked_help(iterable, name, value.mask.rank),),
        )  # fmt: skip
    if type(inner := getattr(value, "value", None)).__module__ == "itertools":
        raise error(
            "CD0406", CdTypeError, f"`{iterable.span.text}` cannot be looped over", iterable.span,
            helps=(_ITERTOOLS.get(type(inner), "write its items as a loop: `for i in range(n):`"),),
        )  # fmt: skip
    items = elements(frame, value, iterable.span)
    read = None if frame.ctx.pointwise else items_table(frame.ctx, items, iterable.span)
    if read is None:
        return [stored.iterable(frame.ctx, item, iterable.span) for item in items]
    return IterationSpace(name, const(0), const(len(items)), 1, lambda x: read(var(x)), listed=True)


def _masked_help(iterable: s.Expr, name: str, rank: int) -> str:
    """Return the help text for a loop over a masked array, by the rank of the mask."""
    if not isinstance(iterable, s.Subscript) or len(iterable.items) != 1:
        return "loop over all elements, and test each: `for v in x:`, `if v > 0:`"
    array, test = iterable.value.span.text, iterable.items[0].span.text
    if rank > 1:
        return f"loop over rows and their elements, and test each: `for row in {array}:`"
    each = re.sub(rf"(?<![\w.]){re.escape(array)}(?!\w)", name, test)
    if each == test:
        return f"loop over positions, and test at each: `for k in range(len({array})):`"
    return f"loop over all elements, and test each: `for {name} in {array}:`, `if {each}:`"


def instead_of(e: s.Comprehension) -> tuple[str, ...]:
    """Return the help texts for a comprehension over many items."""
    loop_help = "or fill one in a loop: `y = np.zeros(n)`, `for k in range(n): y[k] = ...`"
    if isinstance(e.iterable, s.Call) and isinstance(e.target, s.Name):
        head = f"for {e.target.id} in {e.iterable.span.text}:"
        sum_help = f"add up in a loop: `total = 0.0`, `{head} total += {e.element.span.text}`"
        return sum_help, loop_help
    return f"work on the whole array: `{e.iterable.span.text} * 2`", loop_help


def _without_keywords(function: Value, call: s.Call) -> s.Call:
    """Return `enumerate(x, start=1)` and `zip(x, y, strict=False)` without their keywords."""
    start = tuple(k.value for k in call.keywords if k.name == "start")
    has_defaults = all(isinstance(k.value, s.Literal) and not k.value.value for k in call.keywords)
    if function == Static(enumerate) and start:
        return replace(call, args=(*call.args, *start), keywords=())
    return replace(call, keywords=()) if function == Static(zip) and has_defaults else call


def _over_axis(frame: Frame, array: Array, name: str, span: Span) -> IterationSpace:
    """Return the iterations over the first axis of an array."""

    def item(symbol: Symbol) -> Value:
        assumptions = frame.ctx.assumptions.with_bounds(symbol, const(0), array.shape[0] - 1)
        with frame.ctx.knowing(assumptions):
            at = frame.ctx.scalar_index(symbol)
            return value_of(subscript(frame.ctx, array, [at], span, "the array"))

    return IterationSpace(name, const(0), array.shape[0], 1, item, over=(array,))


def _range(frame: Frame, call: s.Call, name: str) -> IterationSpace:
    """Return the iterations of a call of `range`; normalized where its step is dynamic."""
    ctx = frame.ctx
    if not 1 <= len(call.args) <= 3:
        raise error("CD0424", CdTypeError, "`range` takes one to three integers", call.span)
    ends: list[Affine] = []
    for arg in call.args[:2]:
        bound = index_of(ctx, value_of(evaluate(frame, arg)), arg.span, "a range")
        invariant_end = steady(ctx, bound, 0, arg.span)
        if not isinstance(invariant_end, Affine):
            text = "the end of a range cannot depend on what is read at an index letter"
            raise error("CD0504", CdIndexError, text, arg.span, helps=(RANGE_OF_LETTERS,))
        ends.append(invariant_end)
    lo, hi = (const(0), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    if len(call.args) < 3:
        return IterationSpace(name, lo, hi, 1, ctx.scalar_index)
    step = step_of(ctx, value_of(evaluate(frame, call.args[2])), "a range", call.args[2].span)
    if step.constant is not None:
        return IterationSpace(name, lo, hi, step.constant, ctx.scalar_index)

    def item(symbol: Symbol) -> Value:
        return Scalar(Position(lo + multiply(var(symbol), step)), WEAK_INT)

    count = _trip_count(ctx.assumptions, lo, hi, ctx.assumptions.maximum(step, const(1)))
    if not ctx.assumptions.nonnegative(step - 1):
        fault = Fault("CD0461", "CdOverflowError", "the step of a range is below {0}")
        smallest = const(1 - 2**63)  # whose negative is an int64
        ctx.check(compare("ge", step, smallest), fault, (Position(smallest),), call.span, Domain())
        down = maximum(const(0) - step, const(1))
        # mirrored by `-1 - x`, which is an int64 for each
        down_count = _trip_count(ctx.assumptions, const(-1) - lo, const(-1) - hi, down)
        selected = Select(compare("ge", step, const(1)), Position(count), Position(down_count))
        symbol = ctx.let("count", selected, call.span)
        ctx.assumptions = ctx.assumptions.with_bounds(symbol, const(0), None)
        count = var(symbol)
    return IterationSpace(name, const(0), count, 1, item, is_capped=True)


def _trip_count(assumptions: Assumptions, lo: Affine, hi: Affine, step: Affine) -> Affine:
    """Return `max(0, ceil((hi - lo) / step))`, the trip count of an ascending range.

    No intermediate value overflows, as `hi - lo` would where the signs of the ends differ. A count
    above the largest int64 becomes that number: no loop executes that many iterations.
    """
    hi = assumptions.maximum(lo, hi)
    if assumptions.nonnegative(lo):
        return floordiv(hi - lo - 1, step) + 1
    last_quotient, first_quotient = floordiv(hi, step), floordiv(lo, step)
    first_quotient = maximum(first_quotient, maximum(last_quotient, const(-2)) - (2**63 - 2))
    remainder = maximum(mod(hi, step) - mod(lo, step), const(0))
    return last_quotient - first_quotient + minimum(remainder, const(1))


def _reversed(
    frame: Frame, call: s.Call, name: str, target: s.Expr, stored: Stored
) -> IterationSpace | list[Value]:
    """Return the iterations of a call of `reversed`."""
    inner = iteration_space_of(frame, call.args[0], target, stored)
    if not isinstance(inner, IterationSpace):
        return inner[::-1]
    if inner.step != 1 and constant_trip_count(inner) is None:
        inner = counted(inner)
    if inner.step != 1:
        count = constant_trip_count(inner)
        assert inner.lo.constant is not None and count is not None
        last = inner.lo + (count - 1) * inner.step
        return replace(inner, lo=last, hi=inner.lo - inner.step, step=-inner.step)
    if inner.is_capped:
        most = const(2**63 - 2)
        fault = Fault("CD0461", "CdOverflowError", "a range of {0} items or more is reversed")
        test = compare("lt", inner.hi, most)
        frame.ctx.check(test, fault, (Position(most),), call.span, Domain())
    return replace(inner, lo=inner.hi - 1, hi=inner.lo - 1, step=-1)


def _enumerate(
    frame: Frame, call: s.Call, target: s.Expr, stored: Stored
) -> IterationSpace | list[Value]:
    """Return the iterations of a call of `enumerate`. CdTypeError CD0424 for other starts."""
    inner = iteration_space_of(frame, call.args[0], s.Name("n", call.span), stored)
    start: Affine | None = const(0)
    if len(call.args) > 1:
        (inner,), value = _after_items(frame, [inner], partial(evaluate, frame, call.args[1]), call)
        start = _start_of(frame, value_of(value), call.args[1].span)
    if start is None:
        raise error("CD0424", CdTypeError, "`enumerate` starts at an integer", call.span)
    if not isinstance(inner, IterationSpace):
        frame.ctx.require_static(start)
    elif inner.listed and (inner.lo.constant != 0 or inner.step != 1):
        inner = list(static_items(frame, inner))
    if not isinstance(inner, IterationSpace):
        return [Group((_number_at(start + n), element)) for n, element in enumerate(inner)]
    items = _from_zero(frame, inner)

    def item(symbol: Symbol) -> Value:
        return Group((Scalar(Position(var(symbol) + start), WEAK_INT), items.item(symbol)))

    match target:
        case s.Sequence((s.Name(name), _), _) if start == const(0):  # the counter is that name
            items = replace(items, name=name)
        case _:
            pass
    return replace(items, item=item)


def _start_of(frame: Frame, value: Value, span: Span) -> Affine | None:
    """Return an integer that `enumerate` starts at, read once; None for other values."""
    start = as_affine(value)
    if start is None and isinstance(value, Scalar) and value.kind.dtype.kind in "iu":
        at = steady(frame.ctx, index_of(frame.ctx, value, span, "a range"), 0, span)
        start = at if isinstance(at, Affine) else None
    return start


def _number_at(index: Affine) -> Value:
    """Return an index as a Python int, static where it can be."""
    number = index.constant
    return Scalar(Position(index), WEAK_INT) if number is None else Static(number)


def _zip(frame: Frame, call: s.Call, stored: Stored) -> IterationSpace | list[Value]:
    """Return the iterations of a call of `zip`."""
    inner: list[IterationSpace | list[Value]] = []
    for arg in call.args:
        operand = partial(_zipped, frame, arg, s.Name("n", call.span), stored)
        inner, sources = _after_items(frame, inner, operand, call)
        inner += sources
    if any(isinstance(loop, IterationSpace) and loop.listed and loop.step != 1 for loop in inner):
        inner = [list(static_items(frame, x)) if _is_table(x) else x for x in inner]
    loops = [loop for loop in inner if isinstance(loop, IterationSpace)]
    if len(loops) < len(inner):
        item_lists = [
            list(static_items(frame, x)) if isinstance(x, IterationSpace) else x for x in inner
        ]
        return [Group(tuple(items)) for items in zip(*item_lists, strict=False)]
    loops = [_from_zero(frame, loop) for loop in loops]
    count = loops[0].hi
    for loop in loops[1:]:
        count = frame.ctx.assumptions.minimum(count, loop.hi)

    def item(symbol: Symbol) -> Value:
        return Group(tuple(loop.item(symbol) for loop in loops))

    return IterationSpace(
        "n", const(0), count, 1, item, any(loop.listed for loop in loops),
        over=tuple(array for loop in loops for array in loop.over),
    )  # fmt: skip


def _zipped(
    frame: Frame, arg: s.Expr, target: s.Name, stored: Stored
) -> list[IterationSpace | list[Value]]:
    """Return the iteration spaces of an argument of `zip`: of each item for `*x`."""
    if not isinstance(arg, s.Starred):
        return [iteration_space_of(frame, arg, target, stored)]
    items = elements(frame, evaluate(frame, taken_at_once(frame, arg.value)), arg.span)
    return [_over_value(frame, item, arg.value, target.id, stored) for item in items]


def _after_items(
    frame: Frame, inner: list[IterationSpace | list[Value]], evaluate: Callable[[], T], call: s.Call
) -> tuple[list[IterationSpace | list[Value]], T]:
    """Return the items of earlier operands of a call, and the value of `evaluate()`, the next one,
    before whose writes those of tuples and lists were evaluated."""
    groups: list[Value] = [Group(tuple(x) if isinstance(x, list) else ()) for x in inner]
    value = after(frame.ctx, groups, evaluate, call.span)
    return [
        list(group.items) if isinstance(x, list) and isinstance(group, Group) else x
        for x, group in zip(inner, groups, strict=True)
    ], value


def _is_table(source: IterationSpace | list[Value]) -> TypeGuard[IterationSpace]:
    """Whether an iteration space is over a table of constants."""
    return isinstance(source, IterationSpace) and source.listed
