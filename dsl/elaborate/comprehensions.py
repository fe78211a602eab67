"""Elaboration of comprehensions: unrolled for few items, an array for many.

Many items, or items that a run-time test selects, become an array whose first axis is the
comprehension's variable: one expression where each item is a number that one gives, masked where
there is a test; else an array that a loop fills, if all items are numbers, or new arrays of one
shape. Where few items could be unrolled as well, and a later statement needs a list, elaboration
starts again and unrolls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial

from ...base.diagnostic import NOWHERE, CdError, CdTypeError, Span
from ...lowering.ir.assignments import Assign, Check, For, Statement
from ...lowering.ir.bounds import last_value
from ...lowering.ir.expressions import Expr, Position, Reduce, Select, walk
from ...lowering.ir.indexing import Range, Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.walk import expressions_of, statements
from ..numpy.primitives.views import subscript
from ..source import surface as s
from ..values.arrays import as_array, as_scalar
from ..values.builder import NeedUnroll, error
from ..values.evaluation_order import after
from ..values.stores import assign
from ..values.types import BOOL, WEAK_INT, Kind, both, cast, number
from ..values.values import Array, Group, Listed, Masked, Scalar, Static, Value
from . import bindings, control_flow, iteration_space, object_attributes
from .bindings import is_number, same_binding
from .expressions import elements, evaluate, tested
from .loop_carried import closed_over, in_loop_body
from .loop_items import Stored
from .scope import Frame, assigned_names, names_in, parts, restore, snapshot, sources, target_names

_MAX_UNROLLED = 64
"""The most items of a comprehension that is unrolled; with more it is an array."""
_MAX_UNROLLED_COST = 500
"""The most that all items of a comprehension that is unrolled should take, in nodes of expressions:
about half a second of compilation. Beyond, it is an array where it can be one, which may run up to
four times as long as what is unrolled."""
_STATEMENT_COST = 4
_LOOP_COST = 16
"""What a statement costs, and one that is a loop, as those on arrays and reductions are."""


def comprehend(frame: Frame, e: s.Comprehension) -> Value:
    """Return a comprehension as a list, unrolled over its items, or as an array.

    CdTypeError CD0431 or CD0437 where it can be neither.
    """
    _refuse_captured_targets(frame, e)
    elaborate = partial(_list_over, frame, e)
    return control_flow.over_items(frame, e.iterable, e.target, elaborate)


def _list_over(
    frame: Frame,
    e: s.Comprehension,
    source: iteration_space.IterationSpace | list[Value],
    stored: Stored,
) -> Value:
    """Return a comprehension over the items of its iterable."""
    if isinstance(source, iteration_space.IterationSpace) and source.listed:
        source = list(iteration_space.static_items(frame, source))
    if (
        isinstance(source, iteration_space.IterationSpace)
        and iteration_space.constant_trip_count(source) is None
    ):
        ctx, state = frame.ctx, snapshot(frame)
        if e.tests and ctx.unrolls_items:  # of integers known when compiling they may be decided
            ctx.require_static_parameters(source.hi - source.lo)
        with suppress(CdError):
            value = _array_or_refuse(frame, e, source, stored)  # one specialization for all sizes
            ctx.chose_arrays |= isinstance(value, Masked) and not ctx.unrolls_items
            return value
        restore(frame, state)
    items = _items_to_unroll(frame, source)
    if items is None:
        assert isinstance(source, iteration_space.IterationSpace), "what is known now has few items"
        return _array_or_refuse(frame, e, source, stored)
    if isinstance(source, iteration_space.IterationSpace) and items:
        array = _array_if_costly(frame, e, source, stored, items)
        if array is not None:
            return array
    out: list[Value] = []
    with _scope(frame):
        for item in items:
            added = after(frame.ctx, out, partial(_unroll_item, frame, e, item, stored), e.span)
            if added is None:
                break
            out += added
        else:
            return Group(tuple(out), "list")
    if not isinstance(source, iteration_space.IterationSpace):
        text = "a comprehension's test has to be known when compiling"
        raise error("CD0431", CdTypeError, text, e.span)
    return _array_or_refuse(frame, e, source, stored)


def _refuse_captured_targets(frame: Frame, e: s.Comprehension) -> None:
    """Refuse (CD0208) targets that a function defined outside of the comprehension reads as a name
    of its own scope: it would see those of the comprehension."""
    targets = set(target_names(e.target))
    for function in _functions_outside(frame.function, e):
        free = {name.id for name in names_in(function)}
        if isinstance(function, s.Define):
            inner = function.function
            free -= {param.name for param in inner.params} | set(assigned_names(inner.body))
        for name in sorted(free & targets):
            raise error(
                "CD0208", CdTypeError,
                f"a function reads another `{name}` than this comprehension, of the same name",
                e.span, helps=("give the variable of the comprehension a name of its own",),
            )  # fmt: skip


def _functions_outside(node: object, e: s.Comprehension) -> Iterator[s.Define | s.Lambda]:
    """Yield the functions defined in a node of the syntax, but for those in a comprehension."""
    for part in parts(node):
        if isinstance(part, s.Define | s.Lambda):
            yield part
        elif part is not e and part != e:
            yield from _functions_outside(part, e)


@contextmanager
def _scope(frame: Frame) -> Iterator[None]:
    """Context manager: give the targets of a comprehension a scope of their own."""
    scope = replace(frame, names={}, locals=frozenset(), parent=frame.closure or frame)
    outer, outer_closure, frame.closure = dict(frame.names), frame.closure, scope
    try:
        yield
    finally:
        frame.names = outer | object_attributes.states(frame, frame.names)
        frame.closure = outer_closure


def _share_targets(frame: Frame, target: s.Expr) -> None:
    """Let functions inside a comprehension see the present values of its targets."""
    assert frame.closure is not None, "a comprehension has a scope of its own"
    for name in target_names(target):
        value = frame.names[name]
        if name in closed_over(frame.function):  # by a function that may be called later
            value = bindings.stored_numbers(frame, value, name, target.span)
        frame.closure.names[name] = frame.names[name] = value


def _array_if_costly(
    frame: Frame,
    e: s.Comprehension,
    source: iteration_space.IterationSpace,
    stored: Stored,
    items: list[Value],
) -> Value | None:
    """Return a comprehension that could be unrolled as an array; None where that costs little to
    compile, as its first item tells, or where it has to be unrolled."""
    ctx, array = frame.ctx, None
    if ctx.unrolls_items or ctx.pointwise or isinstance(e.element, s.Starred):
        return None
    state = snapshot(frame)
    try:
        with ctx.block() as out, _scope(frame):
            added = _unroll_item(frame, e, items[0], stored)
        restore(frame, state)
        if len(items) * _cost(out, added or ()) > _MAX_UNROLLED_COST:
            array = _as_array(frame, e, source, stored)
    except CdError:
        array = None
    if array is None:
        restore(frame, state)
    ctx.chose_arrays |= array is not None
    return array


def _cost(out: list[Statement], values: Iterable[Value]) -> int:
    """Return about what statements and the numbers among some values cost to compile."""
    exprs = [value.expr for value in values if isinstance(value, Scalar)]
    cost = _STATEMENT_COST * len(exprs)
    for statement in statements(tuple(out)):
        is_loop = isinstance(statement, For)
        if isinstance(statement, Assign):
            is_loop = bool(statement.free.ranges or statement.reduced.ranges)
        cost += _LOOP_COST if is_loop else _STATEMENT_COST
        exprs += expressions_of(statement)
    for part in (part for expr in exprs for part in walk(expr)):
        cost += _LOOP_COST if isinstance(part, Reduce) else 1
    return cost


def _unroll_item(
    frame: Frame, e: s.Comprehension, item: Value, stored: Stored
) -> list[Value] | None:
    """Return the elements that one item adds to the list, None where a test of it is dynamic."""
    control_flow.bind_target(frame, e.target, item, stored, e.span)
    _share_targets(frame, e.target)
    for test in e.tests:
        condition = tested(frame, test)
        if not isinstance(condition, Static):
            return None
        if not condition.value:
            return []
    if isinstance(e.element, s.Starred):
        inner = evaluate(frame, e.element.value)
        if isinstance(inner, Masked):  # of a `for` with a test
            raise _unknown_length(e.span)
        return elements(frame, inner, e.span)
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
    frame: Frame, e: s.Comprehension, source: iteration_space.IterationSpace, stored: Stored
) -> Value:
    """Return a comprehension as an array. CdTypeError CD0437 where it cannot be one."""
    ctx = frame.ctx
    try:
        if ctx.pointwise or isinstance(e.element, s.Starred):
            raise _too_many_items(e, source)
        array = _as_array(frame, e, source, stored)
    except CdError as problem:
        if problem.code in ("CD0520", "CD0522"):  # about index variables: the source has none
            raise _too_many_items(e, source) from None
        raise
    if array is None:
        raise _too_many_items(e, source)
    return array


def _as_array(
    frame: Frame, e: s.Comprehension, source: iteration_space.IterationSpace, stored: Stored
) -> Value | None:
    """Return a comprehension as an array, None where it cannot be one."""
    if abs(source.step) != 1:
        source = iteration_space.counted(source)
    symbol = frame.ctx.symbol(source.name)
    if iteration_space.constant_trip_count(source) is None:
        frame.ctx.uncounted.add(symbol)
    state, problem = snapshot(frame), None
    try:
        try:
            array = _expression(frame, e, source, symbol)
        except CdError as refusal:
            array, problem = None, refusal
        if array is None and not e.tests:
            restore(frame, state)
            array = _filled(frame, e, source, stored, symbol)
    except NeedUnroll as need:
        if need.symbol is not symbol:
            raise
        return None
    if array is None and problem is not None:
        raise problem
    return array


def _filled(
    frame: Frame,
    e: s.Comprehension,
    source: iteration_space.IterationSpace,
    stored: Stored,
    symbol: Symbol,
) -> Array | None:
    """Return a comprehension as an array that a loop fills, None where its items are neither
    numbers nor new arrays of one shape, or where they change what names and attributes are."""
    ctx, span = frame.ctx, e.span
    state = snapshot(frame)
    items: Array | None = None
    with _iterations(frame, e, source, stored, symbol):
        item, new = evaluate(frame, e.element), frozenset(ctx.locals[state.locals :])
        listed = _list_of(frame, item, new)
        if listed is not Listed.NO and _keeps_bindings(frame, e.target, state.names):
            first = as_array(ctx, item, span)
            items = first if all(x.constant is not None for x in first.shape) else None
    restore(frame, state)
    if items is None:
        return None
    size = ctx.assumptions.maximum((source.hi - source.lo) * source.step, const(0))
    node = ctx.node("items", (size, *items.shape), items.kind.dtype)
    ctx.item_nodes.add(node)
    items = ctx.whole(node, span)
    with _iterations(frame, e, source, stored, symbol):
        at = Scalar(Position((var(symbol) - source.lo) * source.step), WEAK_INT)
        element = subscript(ctx, items, [at], span, "the list")
        assert isinstance(element, Array)
        assign(ctx, element, evaluate(frame, e.element), span)
    return replace(items, listed=listed)


@contextmanager
def _iterations(
    frame: Frame,
    e: s.Comprehension,
    source: iteration_space.IterationSpace,
    stored: Stored,
    symbol: Symbol,
) -> Iterator[None]:
    """Context manager: emit a loop over the items of a comprehension, of what is emitted inside."""
    ctx = frame.ctx
    final = last_value(source.lo, source.hi, source.step)
    ends = (source.lo, final) if source.step > 0 else (final, source.lo)
    runs = ctx.assumptions.nonnegative(ends[1] - ends[0])
    with _scope(frame), ctx.knowing(ctx.assumptions.with_bounds(symbol, *ends)):
        with in_loop_body(frame, runs), ctx.block() as out:
            ctx.loop_symbols.add(symbol)
            ctx.said |= {symbol} if isinstance(e.target, s.Name) else set()
            try:
                control_flow.bind_target(frame, e.target, source.item(symbol), stored, e.span)
                _share_targets(frame, e.target)
                yield
            finally:
                ctx.loop_symbols.discard(symbol)
    ctx.emit(For(symbol, source.lo, source.hi, source.step, tuple(out), e.span))


def _list_of(frame: Frame, item: Value, new: frozenset[Node]) -> Listed:
    """Return how a list of such items is an array: of numbers, of lists of them, or of arrays of
    their own; NO where it is none. What is in the list is a copy, so an array may be a view only of
    what is `new` in each iteration, and nothing else.
    """
    match item:
        case Group(items, "list") if items and item.named_tuple is None:
            kinds = {_list_of(frame, part, new) for part in items}
            alike = {as_scalar(part, NOWHERE).kind for part in items if is_number(part)}
            if len(kinds) == 1 and len(alike) == 1 and all(map(is_number, items)):
                return kinds.pop()
            return Listed.NO
        case Array():
            base = item.base
            is_own = base is None or base.node in new and sources(frame, base.node) <= new
            if item.sealed or not is_own or item.listed is Listed.ARRAYS:
                return Listed.NO
            return item.listed or (Listed.ARRAYS if item.rank else Listed.LIST)
        case _ if is_number(item):
            return Listed.NUMBERS if as_scalar(item, NOWHERE).kind.weak else Listed.LIST
        case _:
            return Listed.NO


def _keeps_bindings(frame: Frame, target: s.Expr, before: Mapping[str, Value]) -> bool:
    """Whether no name but a comprehension's targets is bound to something else than before."""
    targets = set(target_names(target))
    names = frame.names.keys() | before.keys()
    return all(
        name in before and name in frame.names and same_binding(frame.names[name], before[name])
        for name in names - targets
    )


def _expression(
    frame: Frame, e: s.Comprehension, source: iteration_space.IterationSpace, symbol: Symbol
) -> Value | None:
    """Return a comprehension as one expression over its iterations, masked where it has tests.

    None where its element is no number, or needs other statements than checks.
    """
    ctx = frame.ctx
    lo, hi = (source.lo, source.hi) if source.step > 0 else (source.hi + 1, source.lo + 1)
    outer, outer_domain = dict(frame.names), ctx.domain
    tests: list[Expr] = []
    with ExitStack() as scopes:
        checks = scopes.enter_context(ctx.block())
        scopes.enter_context(ctx.knowing(ctx.assumptions.with_bounds(symbol, lo, hi - 1)))
        ctx.domain, ctx.of_items = (Range(symbol, lo, hi),), True
        try:
            control_flow.bind_target(frame, e.target, source.item(symbol), Stored(), e.span)
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
    items = replace(items, listed=Listed.NUMBERS if kind.weak else Listed.LIST)
    assert items.base is not None, "it is stored"
    ctx.item_nodes.add(items.base.node)
    if mask_expr is None:
        return items
    mask = ctx.materialize(array_of(mask_expr, BOOL), "chosen", e.span)
    return Masked(items, mask)


def _too_many_items(e: s.Comprehension, source: iteration_space.IterationSpace) -> CdError:
    """Return CdTypeError CD0437 for a comprehension that is neither unrolled nor an array."""
    if e.tests:
        return _unknown_length(e.span)
    count = iteration_space.constant_trip_count(source)
    items = "items whose number is known at run time only" if count is None else f"{count} items"
    return error(
        "CD0437", CdTypeError,
        f"a list of {items} is an array, so each has to be a number, or a new array, all of one "
        "shape", e.span,
        helps=("copy what is a view: `x[k:k + 3].copy()`", *iteration_space.instead_of(e)),
    )  # fmt: skip


def _unknown_length(span: Span) -> CdError:
    """Return CdTypeError CD0437 for a comprehension with a test whose items cannot be masked."""
    return error(
        "CD0437", CdTypeError,
        "a list whose length a test decides has one `for`, and numbers as items", span,
        helps=(
            "fill an array in a loop, and count: `found, n = np.zeros((size, 2), np.int64), 0` "
            "before it, `found[n] = a, b` and `n += 1` under the test; `found[:n]` are they",
        ),
    )  # fmt: skip
