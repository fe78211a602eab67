"""Elaboration of loops: `for` and `while` as loops of the IR, `for` over static items unrolled.

The first iterations of a `for` are peeled where a name that is a number before it becomes an array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ...base.diagnostic import CdError, CdSyntaxError, CdTypeError, Span
from ...lowering.ir.assignments import For, Statement, While
from ...lowering.ir.bounds import last_value
from ...lowering.ir.expressions import Expr, Read
from ..source import surface as s
from ..source.desugar import leaves
from ..values.adapting import require_joined
from ..values.arrays import as_scalar, astype
from ..values.builder import Context, NeedKind, NeedUnroll, compare, error
from ..values.types import join
from ..values.values import Array, Group, Scalar, Static, Unset, Value
from .aliasing import seeing
from .bindings import (
    NeedPeel,
    bind,
    bound_to,
    carrier_of,
    is_carriable,
    is_number,
    spelled,
    stored_numbers,
)
from .branches import branch
from .early_exit import straightened
from .expressions import elements, tested
from .iteration_space import (
    IterationSpace,
    constant_trip_count,
    first_iteration,
    iteration_space_of,
    static_items,
)
from .loop_carried import (
    carried,
    closed_over,
    open_reserved,
    read_after,
)
from .loop_items import Stored, read_by
from .scope import (
    RESULT,
    Frame,
    Run,
    Saved,
    assigned_names,
    first_use,
    rebound_names,
    restore,
    snapshot,
    target_names,
)

T = TypeVar("T")

_MAX_UNROLLED = 4096
_MAX_PEELED = 3
"""How many iterations may be peeled off the beginning of a loop."""
_BREAK_FLAG = "left-early"
"""The name of the flag whether a loop that is being unrolled has been left by a `break`."""


def loop(frame: Frame, statement: s.For, run: Run) -> None:
    """Elaborate a `for`: a loop over ranges and arrays, unrolled over static sequences.

    CdSyntaxError CD0520 at the points of index variables.
    """
    if frame.ctx.pointwise or frame.guards:
        raise error(
            "CD0520",
            CdSyntaxError,
            "a loop cannot stand inside a statement or guard on index letters",
            statement.span,
        )

    def elaborate(source: IterationSpace | list[Value], stored: Stored) -> None:
        open_reserved(frame, statement)
        _loop_over(frame, statement, source, stored, run)

    written = set(assigned_names(statement.body)) - set(rebound_names(statement.body))
    over_items(frame, statement.iterable, statement.target, elaborate, written)


def over_items(
    frame: Frame,
    iterable: s.Expr,
    target: s.Expr,
    elaborate: Callable[[IterationSpace | list[Value], Stored], T],
    written: Collection[str] = (),
) -> T:
    """Return `elaborate(source, stored)` for the items of an iterable.

    Where that writes what they are read from, it is done again with the items stored: at once for
    arrays of the names `written`, whose elements are assigned.
    """
    ctx, state, stored = frame.ctx, snapshot(frame), Stored()
    while True:
        start = len(ctx.out)
        source = iteration_space_of(frame, iterable, target, stored)
        items = read_by(_sample_items(frame, target, source))
        names = {name: value for name, value in frame.names.items() if name in written}
        if not stored.values and items.nodes and seeing(names, items.nodes):
            stored = replace(stored, values=True)
            if not isinstance(source, IterationSpace) or any(
                x.aliased is None for x in source.over
            ):
                restore(frame, state)  # what it goes over has to be stored as well
                continue
        header = ctx.out[start:]
        result = elaborate(source, stored)
        if not items.rebound:
            return result
        body = ctx.out[start + len(header) :]
        wanted = stored.with_writes(ctx, items, state.locals, header, body)
        if wanted == stored:
            return result
        restore(frame, state)
        stored = wanted


def _sample_items(
    frame: Frame, target: s.Expr, source: IterationSpace | list[Value]
) -> list[tuple[s.Expr, Value]]:
    """Return items of a loop, with their targets, that tell what all of them are read from."""
    if not isinstance(source, IterationSpace):
        return [(target, item) for item in source]
    if isinstance(target, s.Name) or all(array.rank == 1 for array in source.over):
        item = s.Sequence((s.Name("item", target.span),), "tuple", target.span)
        return [(item, array) for array in source.over]
    with frame.ctx.block():
        return [(target, source.item(frame.ctx.symbol(source.name)))]


def _loop_over(
    frame: Frame,
    statement: s.For,
    source: IterationSpace | list[Value],
    stored: Stored,
    run: Run,
) -> None:
    """Elaborate a `for` over the items of its iterable."""
    if not isinstance(source, IterationSpace):
        _unroll(frame, statement, source, stored, run)
        return
    for remaining in range(_MAX_PEELED, -1, -1):
        state = snapshot(frame)
        try:
            _loop_or_unroll(frame, statement, source, stored, run)
        except NeedPeel as need:
            if carrier_of(need.name) in state.slots:  # of an enclosing loop
                raise
            if not remaining or not _has_first_iteration(frame, statement, source):
                raise need.problem from None
            restore(frame, state)
            source = _peel_first(frame, statement, source, stored, run)
            if not is_carriable(bound_to(frame, need.name)):  # a test may have skipped it
                raise need.problem from None
            continue
        widened = remaining and _widened_integers(frame, statement, state)
        if not widened or not _has_first_iteration(frame, statement, source):
            return
        restore(frame, state)
        source = _peel_first(frame, statement, source, stored, run)


def _widened_integers(frame: Frame, statement: s.For | s.While, before: Saved) -> list[str]:
    """Return the names that are bound to narrow integers or bools before a loop and to a wider type
    in it, and that it reads before it assigns them: NumPy's first iteration computes in the narrow
    type."""
    test = statement.test if isinstance(statement, s.While) else statement.iterable
    body = (s.Evaluate(test, test.span), *statement.body)
    return [
        name
        for name, value in before.names.items()
        if name not in before.slots
        and _is_widened(value, frame.names.get(name))
        and first_use(body, name) == "read"
    ]


def _is_widened(before: Value, after: Value | None) -> bool:
    """Whether integers or bools, whose sums may wrap or are logical, have become a wider type."""
    match before, after:
        case Group(items), Group(others):
            return any(map(_is_widened, items, others))
        case (Array(kind=kind), Array(kind=wide)) | (Scalar(kind=kind), Scalar(kind=wide)) if (
            not kind.weak
        ):
            is_narrow = kind.dtype.kind == "b" or kind.dtype.kind in "iu" and kind.dtype.bits < 64
            return is_narrow and wide.dtype != kind.dtype
        case _:
            return False


def _has_first_iteration(frame: Frame, statement: s.For, source: IterationSpace) -> bool:
    """Whether a loop surely has a first iteration that may be peeled; integer parameters that count
    its iterations become static."""
    frame.ctx.require_static_parameters(source.hi - source.lo)
    later_count = source.hi - source.lo - 1 if source.step > 0 else source.lo - source.hi - 1
    has_one = source.lo.constant is not None and frame.ctx.assumptions.nonnegative(later_count)
    return has_one and not leaves(statement.body)


def _peel_first(
    frame: Frame,
    statement: s.For,
    source: IterationSpace,
    stored: Stored,
    run: Run,
) -> IterationSpace:
    """Peel the first iteration: elaborate it before the loop; return the remaining iterations.

    A name that it binds to an array is an array in all of them.
    """
    item, rest = first_iteration(frame, source)
    outer, frame.unrolling = frame.unrolling, True
    try:
        _bind_unrolled(frame, statement.target, item, stored, statement.span)
        run(frame, statement.body)
    finally:
        frame.unrolling = outer
    return rest


def _loop_or_unroll(
    frame: Frame, statement: s.For, source: IterationSpace, stored: Stored, run: Run
) -> None:
    """Emit a loop, or unroll it where its counter has to be static."""
    state, count = snapshot(frame), constant_trip_count(source)
    if source.listed:
        try:
            _emit_loop(frame, statement, source, stored, run)
        except (CdError, NeedPeel, NeedUnroll):  # as static items they may be accepted
            restore(frame, state)
            _unroll(frame, statement, list(static_items(frame, source)), stored, run)
        return
    try:
        _emit_loop(frame, statement, source, stored, run)
    except (CdError, NeedPeel):
        if count != 0:
            raise
        restore(frame, state)  # the body of a loop without iterations is not refused
        _unroll(frame, statement, [], stored, run)
    except NeedUnroll as need:
        if frame.ctx.unrollable.get(need.symbol) is statement:
            frame.ctx.require_static_parameters(source.hi - source.lo)
            if count is None or count > _MAX_UNROLLED:
                raise _cannot_unroll(statement, count) from None
        if need.symbol not in frame.ctx.unrollable or count is None or count > _MAX_UNROLLED:
            raise
        if frame.ctx.unrollable[need.symbol] is not statement:
            raise
        del frame.ctx.unrollable[need.symbol]
        restore(frame, state)
        _unroll(frame, statement, list(static_items(frame, source)), stored, run)


def _cannot_unroll(statement: s.For, count: int | None) -> CdError:
    """Return CdTypeError CD0432 for a loop whose counter has to be static and that is too long."""
    name = statement.target.span.text
    why = "is known only in the run" if count is None else f"is {count}, more than {_MAX_UNROLLED}"
    return error(
        "CD0432", CdTypeError,
        f"`{name}` has to be a number known when compiling, and the length of its loop {why}",
        statement.span,
    )  # fmt: skip


def _uses_parameters(frame: Frame, source: IterationSpace) -> bool:
    """Whether integer parameters, which may become static, count the iterations of a loop."""
    return not frame.ctx.origin.keys().isdisjoint((source.hi - source.lo).symbols())


def _emit_loop(
    frame: Frame, statement: s.For, source: IterationSpace, stored: Stored, run: Run
) -> None:
    """Emit a loop."""
    ctx, span = frame.ctx, statement.span
    symbol = ctx.symbol(source.name)
    if isinstance(statement.target, s.Name):
        ctx.said.add(symbol)
    ctx.unrollable[symbol] = statement
    if constant_trip_count(source) is None and not _uses_parameters(frame, source):
        ctx.uncounted.add(symbol)
    final = last_value(source.lo, source.hi, source.step)
    first, last = (source.lo, final) if source.step > 0 else (final, source.lo)
    assumptions = ctx.assumptions.with_bounds(symbol, first, last)
    if ((last - first).constant or 0) >= 0:  # a loop without iterations gives no facts
        assumptions = assumptions.with_facts(last - first)
    targets = tuple(rebound_names((s.For(statement.target, statement.iterable, (), span),)))
    is_nested = frame.in_loop
    live_after = _live_targets(frame, statement, targets)
    entry_values = {name: frame.names.get(name) for name in live_after}
    exit_values: dict[str, Scalar] = {}

    def body(inner: tuple[s.Statement, ...]) -> None:
        with ctx.knowing(assumptions):
            ctx.loop_symbols.add(symbol)
            try:
                bind_target(frame, statement.target, source.item(symbol), stored, span)
                _store_in_slots(frame, targets, span)
                for name in live_after:
                    if is_number(frame.names[name]):
                        if is_nested:
                            kind = as_scalar(frame.names[name], span).kind
                            raise NeedKind(name, kind=kind, inner=statement)
                        entry = entry_values[name]
                        exit_values[name] = _store_exit_value(frame, name, entry, span)
                run(frame, inner)
            finally:
                ctx.loop_symbols.discard(symbol)

    runs = ctx.assumptions.nonnegative(last - first)
    target_names, symbols = frozenset(targets), frozenset({symbol})
    out = carried(frame, statement, statement.body, target_names, body, symbols, runs=runs)
    _store_entry_values(frame, entry_values, exit_values, compare("lt", last, first), span)
    ctx.emit(For(symbol, source.lo, source.hi, source.step, tuple(out), span))
    for name in targets:
        if name in frame.slots:
            frame.names[name] = frame.slots[name]
        elif name in exit_values:
            frame.names[name] = exit_values[name]
        elif name in rebound_names(statement.body):
            frame.names[name] = Unset(
                "is the variable of a loop, and is assigned inside it", span,
                ("use another name inside the loop",),
            )  # fmt: skip
        else:
            frame.names[name] = Unset("belongs to a loop that has ended", span)


def _store_in_slots(frame: Frame, targets: tuple[str, ...], span: Span) -> None:
    """Store the values of loop variables that are loop-carried in an enclosing loop in their slots.

    Inside the iteration a number stays an index expression.
    """
    for name in targets:
        value = frame.names[name]
        if name in frame.slots:
            bind(frame, name, value, span)
            if is_number(value):
                frame.names[name] = value


def _live_targets(frame: Frame, statement: s.For, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the loop's variables that are live after the loop.

    Inside another loop a number needs a slot there: an iteration may read the value that an
    earlier one stored.
    """
    assigned = frozenset(() if frame.in_loop else rebound_names(statement.body))
    return tuple(
        name
        for name in targets
        if name not in frame.slots and name not in assigned and read_after(frame, statement, name)
    )


def _store_entry_values(
    frame: Frame,
    entry_values: Mapping[str, Value | None],
    exit_values: Mapping[str, Scalar],
    has_no_iteration: Expr,
    span: Span,
) -> None:
    """Store the values of loop variables before a loop, which stay where it has no iteration."""
    for name, exit_value in exit_values.items():
        entry_value = entry_values[name]
        if entry_value is None or not is_number(entry_value):
            continue
        assert isinstance(exit_value.expr, Read)
        scalar = as_scalar(entry_value, span)
        with frame.ctx.under(has_no_iteration):
            require_joined(frame.ctx, scalar, exit_value.kind, spelled(name), span)
        frame.ctx.set(exit_value.expr.node, scalar.expr, span)


def _store_exit_value(frame: Frame, name: str, entry_value: Value | None, span: Span) -> Scalar:
    """Store a loop variable's number in this iteration in a new variable; return a read of it."""
    scalar = as_scalar(frame.names[name], span)
    kind = scalar.kind
    if entry_value is not None and is_number(entry_value):
        kind = join(kind, as_scalar(entry_value, span).kind)
    node = frame.ctx.node(name, (), kind.dtype)
    frame.ctx.set(node, scalar.expr, span)
    return Scalar(Read(node, ()), kind)


def bind_target(frame: Frame, target: s.Expr, value: Value, stored: Stored, span: Span) -> None:
    """Bind the target of a loop or comprehension to an item, unpacked where the target is a tuple.

    CdTypeError CD0419 where the lengths differ, CdSyntaxError CD0142 for another target.
    """
    match target:
        case s.Name(name):
            bound = stored.item(frame.ctx, value, name, span)
            frame.names[name] = bound
            if isinstance(bound, Scalar) and bound is value:
                frame.ctx.unstored.add(bound.expr)
        case s.Sequence(items, _):
            parts = elements(frame, value, span)
            if len(parts) != len(items):
                raise error(
                    "CD0419",
                    CdTypeError,
                    f"{len(items)} targets for {len(parts)} values",
                    target.span,
                )
            for item, part in zip(items, parts, strict=True):
                bind_target(frame, item, part, stored, span)
        case _:
            raise error("CD0142", CdSyntaxError, "a loop's target is a name", target.span)


def _unroll(frame: Frame, statement: s.For, items: list[Value], stored: Stored, run: Run) -> None:
    """Unroll a loop: elaborate its body once for each item."""
    outer, frame.unrolling = frame.unrolling, True
    shadowed = frame.names.get(_BREAK_FLAG)
    frame.names[_BREAK_FLAG] = Static(False)
    body = straightened(statement.body, _BREAK_FLAG)
    try:
        for item in items:
            has_left = frame.names[_BREAK_FLAG]
            if has_left == Static(True) or RESULT in frame.names:
                break
            _unroll_iteration(frame, statement, body, item, stored, run)
    finally:
        frame.unrolling = outer
        frame.names.pop(_BREAK_FLAG, None)
        if shadowed is not None:
            frame.names[_BREAK_FLAG] = shadowed
    _store_last_items(frame, statement)


def _store_last_items(frame: Frame, statement: s.For) -> None:
    """Store the numbers that the targets of an unrolled loop are bound to after it: what they were
    read from may be assigned then."""
    header = s.For(statement.target, statement.iterable, (), statement.span)
    for name in rebound_names((header,)):
        value = frame.names.get(name)
        if isinstance(value, Scalar | Group) and name not in frame.slots:
            if name in closed_over(frame.function) or read_after(frame, statement, name):
                frame.names[name] = stored_numbers(frame, value, name, statement.span)


def _unroll_iteration(
    frame: Frame,
    statement: s.For,
    body: tuple[s.Statement, ...],
    item: Value,
    stored: Stored,
    run: Run,
) -> None:
    """Elaborate an iteration of an unrolled loop, under a test where an earlier one may `break`."""
    span = statement.span

    def inside(frame: Frame, inner: tuple[s.Statement, ...]) -> None:
        if inner:
            _bind_unrolled(frame, statement.target, item, stored, span)
        run(frame, inner)

    if frame.names[_BREAK_FLAG] == Static(False):
        inside(frame, body)
    else:
        test = s.Unary("not", s.Name(_BREAK_FLAG, span), span)
        branch(frame, s.If(test, body, (), span), inside)


def _bind_unrolled(frame: Frame, target: s.Expr, value: Value, stored: Stored, span: Span) -> None:
    """Bind the target of an unrolled iteration, its names in their slots where they have some."""
    if isinstance(target, s.Name) and target.id in frame.slots:
        bind(frame, target.id, value, span)
        return
    bind_target(frame, target, value, stored, span)
    for name in target_names(target):
        if name in frame.slots:
            bind(frame, name, frame.names[name], span)


def repeat(frame: Frame, statement: s.While, run: Run) -> None:
    """Elaborate a `while`. CdSyntaxError CD0520 at the points of index variables."""
    ctx = frame.ctx
    if ctx.pointwise or frame.guards:
        raise error(
            "CD0520",
            CdSyntaxError,
            "a loop cannot stand inside a statement or guard on index letters",
            statement.span,
        )
    state = snapshot(frame)
    open_reserved(frame, statement)
    tests: list[Expr] = []
    preludes: list[list[Statement]] = []

    def body(inner: tuple[s.Statement, ...]) -> None:
        with ctx.block() as prelude:
            test = tested(frame, statement.test)
        expr = as_scalar(test, statement.test.span).expr
        tests[:], preludes[:] = [expr], [prelude]
        with ctx.knowing(ctx.assumptions.assuming(expr)):
            run(frame, inner)

    whole = (s.Evaluate(statement.test, statement.test.span), *statement.body)
    endless = isinstance(statement.test, s.Literal) and bool(statement.test.value)
    inner = statement.body
    out = carried(frame, statement, inner, frozenset(), body, frozenset(), whole, endless)
    ctx.emit(While(tuple(preludes[0]), tests[0], tuple(out), statement.span))
    widened = _widened_integers(frame, statement, state)
    if widened and not leaves(inner):
        wide = {name: frame.names[name] for name in widened}
        restore(frame, state)
        peeled = s.If(statement.test, (*inner, statement), (), statement.span)
        branch(frame, peeled, partial(_run_or_widen, wide, run, statement.span))


def _run_or_widen(
    wide: Mapping[str, Value], run: Run, span: Span, frame: Frame, body: tuple[s.Statement, ...]
) -> None:
    """Elaborate the first iteration of a `while` and the others, or, where there is none, give
    names the types that they have after others."""
    if body:
        run(frame, body)
        return
    for name, value in wide.items():
        bind(frame, name, _converted(frame.ctx, frame.names[name], value, span), span)


def _converted(ctx: Context, value: Value, wide: Value, span: Span) -> Value:
    """Return an array or number, or those of a tuple or list, in the type of another value."""
    match value, wide:
        case Group(items), Group(others):
            pairs = zip(items, others, strict=True)
            return value.of(_converted(ctx, *pair, span) for pair in pairs)
        case (Array(), Array(kind=kind)) | (Scalar(), Scalar(kind=kind)):
            return astype(ctx, value, kind.dtype, span)
        case _:
            return value
