"""Loops: those that run and those that unroll, `for` and `while`."""

from __future__ import annotations

from ...base.diagnostic import CdError, CdSyntaxError, CdTypeError, Span
from ...lowering.ir.assignments import For, Statement, While
from ...lowering.ir.bounds import last_value
from ...lowering.ir.expressions import Expr, Read
from ..source import surface as s
from ..values.arrays import as_scalar
from ..values.builder import NeedKind, NeedUnroll, error
from ..values.types import join
from ..values.values import Array, Scalar, Static, Unset, Value
from .bindings import NeedPeel, bind, is_number
from .branches import branch
from .early_exit import leaves, straightened
from .expressions import elements, tested
from .iteration_space import Rounds, first_round, round_count, rounds_of, static_items
from .loop_carried import carried, open_reserved, read_after, restore, snapshot
from .scope import RESULT, Frame, Run, rebound_names

_UNROLL_LIMIT = 4096
_PEELED = 3
"""How many rounds may be elaborated before their loop."""
_LEFT = "left-early"
"""The name of whether a loop that is being unrolled has been left by a `break`."""


def loop(frame: Frame, statement: s.For, run: Run) -> None:
    """Elaborate a `for`: over ranges and arrays it runs, over sequences known now it unrolls."""
    if frame.ctx.pointwise or frame.guards:
        raise error(
            "CD0520",
            CdSyntaxError,
            "a loop cannot stand inside a statement or guard on index letters",
            statement.span,
        )
    source = rounds_of(frame, statement.iterable, statement.target)
    open_reserved(frame, statement)
    if not isinstance(source, Rounds):
        _unroll(frame, statement, source, run)
        return
    for left in range(_PEELED, -1, -1):
        state = snapshot(frame)
        try:
            _in_rounds(frame, statement, source, run)
            return
        except NeedPeel as need:
            if need.name in state.slots:  # of a loop around this one
                raise
            if not left:
                raise need.problem from None
            restore(frame, state)
            source = _peeled(frame, statement, source, need, run)


def _peeled(frame: Frame, statement: s.For, source: Rounds, need: NeedPeel, run: Run) -> Rounds:
    """Elaborate the first round before its loop, as Python has it; return the other rounds.

    What it makes an array is one in all of them.
    """
    frame.ctx.require_static_parameters(source.hi - source.lo)
    ahead = source.hi - source.lo - 1 if source.step > 0 else source.lo - source.hi - 1
    some = source.lo.constant is not None and frame.ctx.known.nonnegative(ahead)
    if not some or leaves(statement.body):
        raise need.problem from None
    item, rest = first_round(frame, source)
    outer, frame.unrolling = frame.unrolling, True
    try:
        _bind_unrolled(frame, statement.target, item, statement.span)
        run(frame, statement.body)
    finally:
        frame.unrolling = outer
    if not isinstance(frame.names.get(need.name), Array):  # a test may have left it out
        raise need.problem
    return rest


def _in_rounds(frame: Frame, statement: s.For, source: Rounds, run: Run) -> None:
    """Emit a loop that runs, or unroll it where the number of its round is needed."""
    state, count = snapshot(frame), round_count(source)
    if source.listed:
        try:
            _run_rounds(frame, statement, source, run)
        except (CdError, NeedPeel, NeedUnroll):  # as constants they may mean something
            restore(frame, state)
            _unroll(frame, statement, list(static_items(frame, source)), run)
        return
    try:
        _run_rounds(frame, statement, source, run)
    except (CdError, NeedPeel):
        if count != 0:
            raise
        restore(frame, state)  # what is never run is never wrong
        _unroll(frame, statement, [], run)
    except NeedUnroll as need:
        if frame.ctx.unrollable.get(need.symbol) is statement:
            frame.ctx.require_static_parameters(source.hi - source.lo)
            if count is None or count > _UNROLL_LIMIT:
                raise _not_unrolled(statement, count) from None
        if need.symbol not in frame.ctx.unrollable or count is None or count > _UNROLL_LIMIT:
            raise
        if frame.ctx.unrollable[need.symbol] is not statement:
            raise
        del frame.ctx.unrollable[need.symbol]
        restore(frame, state)
        _unroll(frame, statement, list(static_items(frame, source)), run)


def _not_unrolled(statement: s.For, count: int | None) -> CdError:
    name = statement.target.span.text
    why = "is known only in the run" if count is None else f"is {count}, more than {_UNROLL_LIMIT}"
    return error(
        "CD0432", CdTypeError,
        f"`{name}` has to be a number known when compiling, and the length of its loop {why}",
        statement.span,
    )  # fmt: skip


def _run_rounds(frame: Frame, statement: s.For, source: Rounds, run: Run) -> None:
    """Emit a loop that runs."""
    ctx = frame.ctx
    symbol = ctx.symbol(source.name)
    if isinstance(statement.target, s.Name):
        ctx.said.add(symbol)
    ctx.unrollable[symbol] = statement
    final = last_value(source.lo, source.hi, source.step)
    first, last = (source.lo, final) if source.step > 0 else (final, source.lo)
    known = ctx.known.with_bounds(symbol, first, last)
    if ((last - first).constant or 0) >= 0:  # nothing follows from a loop without an iteration
        known = known.with_facts(last - first)
    targets = tuple(
        rebound_names((s.For(statement.target, statement.iterable, (), statement.span),))
    )
    nested = frame.in_loop
    lasting = _lasting(frame, statement, targets)
    before = {name: frame.names.get(name) for name in lasting}
    after: dict[str, Scalar] = {}

    def body(inner: tuple[s.Statement, ...]) -> None:
        with ctx.knowing(known):
            ctx.loop_symbols.add(symbol)
            try:
                bind_target(frame, statement.target, source.item(symbol), statement.span)
                _into_slots(frame, targets, statement.span)
                for name in lasting:
                    if is_number(frame.names[name]):
                        if nested:
                            kind = as_scalar(frame.names[name], statement.span).kind
                            raise NeedKind(name, kind, statement)
                        after[name] = _kept(frame, name, before[name], statement.span)
                run(frame, inner)
            finally:
                ctx.loop_symbols.discard(symbol)

    runs = ctx.known.nonnegative(last - first)
    own, symbols = frozenset(targets), frozenset({symbol})
    out = carried(frame, statement, statement.body, own, body, symbols, runs=runs)
    for name, kept in after.items():
        old = before[name]
        if old is not None and is_number(old):  # what it is where there is no round
            assert isinstance(kept.expr, Read)
            ctx.set(kept.expr.node, as_scalar(old, statement.span).expr, statement.span)
    ctx.emit(For(symbol, source.lo, source.hi, source.step, tuple(out), statement.span))
    for name in targets:
        if name in frame.slots:
            frame.names[name] = frame.slots[name]
        elif name in after:
            frame.names[name] = after[name]
        elif name in rebound_names(statement.body):
            frame.names[name] = Unset(
                "is the variable of a loop, and is assigned inside it", statement.span,
                ("use another name inside the loop",),
            )  # fmt: skip
        else:
            frame.names[name] = Unset("belongs to a loop that has ended", statement.span)


def _into_slots(frame: Frame, targets: tuple[str, ...], span: Span) -> None:
    """Store what a loop's variables are in this round where a loop around it looks for them.

    Inside the round a number stays the index that it is.
    """
    for name in targets:
        value = frame.names[name]
        if name in frame.slots:
            bind(frame, name, value, span)
            if is_number(value):
                frame.names[name] = value


def _lasting(frame: Frame, statement: s.For, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the loop's variables that are read after the loop.

    Inside another loop a number needs a slot there: a round may find what an earlier one has left.
    """
    assigned = frozenset(() if frame.in_loop else rebound_names(statement.body))
    return tuple(
        name
        for name in targets
        if name not in frame.slots and name not in assigned and read_after(frame, statement, name)
    )


def _kept(frame: Frame, name: str, before: Value | None, span: Span) -> Scalar:
    """Store the number that a loop's variable has in this round; return where it is."""
    scalar = as_scalar(frame.names[name], span)
    kind = scalar.kind
    if before is not None and is_number(before):
        kind = join(kind, as_scalar(before, span).kind)
    node = frame.ctx.node(name, (), kind.dtype)
    frame.ctx.set(node, scalar.expr, span)
    return Scalar(Read(node, ()), kind)


def bind_target(frame: Frame, target: s.Expr, value: Value, span: Span) -> None:
    """Bind the target of a loop or comprehension to an item, unpacking it."""
    match target:
        case s.Name(name):
            frame.names[name] = value
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
                bind_target(frame, item, part, span)
        case _:
            raise error("CD0142", CdSyntaxError, "a loop's target is a name", target.span)


def _unroll(frame: Frame, statement: s.For, items: list[Value], run: Run) -> None:
    """Elaborate the body once for each item."""
    outer, frame.unrolling = frame.unrolling, True
    shadowed = frame.names.get(_LEFT)
    frame.names[_LEFT] = Static(False)
    body = straightened(statement.body, _LEFT)
    try:
        for item in items:
            left = frame.names[_LEFT]
            if left == Static(True) or RESULT in frame.names:
                break
            _round(frame, statement, body, item, run)
    finally:
        frame.unrolling = outer
        frame.names.pop(_LEFT, None)
        if shadowed is not None:
            frame.names[_LEFT] = shadowed


def _round(
    frame: Frame, statement: s.For, body: tuple[s.Statement, ...], item: Value, run: Run
) -> None:
    """Elaborate a round of an unrolled loop, under a test where an earlier one may have left it."""
    span = statement.span

    def inside(frame: Frame, inner: tuple[s.Statement, ...]) -> None:
        if inner:
            _bind_unrolled(frame, statement.target, item, span)
        run(frame, inner)

    if frame.names[_LEFT] == Static(False):
        inside(frame, body)
    else:
        test = s.Unary("not", s.Name(_LEFT, span), span)
        branch(frame, s.If(test, body, (), span), inside)


def _bind_unrolled(frame: Frame, target: s.Expr, value: Value, span: Span) -> None:
    if isinstance(target, s.Name) and target.id in frame.slots:
        bind(frame, target.id, value, span)
    else:
        bind_target(frame, target, value, span)


def repeat(frame: Frame, statement: s.While, run: Run) -> None:
    """Elaborate a `while`."""
    ctx = frame.ctx
    if ctx.pointwise or frame.guards:
        raise error(
            "CD0520",
            CdSyntaxError,
            "a loop cannot stand inside a statement or guard on index letters",
            statement.span,
        )
    open_reserved(frame, statement)
    tests: list[Expr] = []
    preludes: list[list[Statement]] = []

    def body(inner: tuple[s.Statement, ...]) -> None:
        with ctx.block() as prelude:
            test = tested(frame, statement.test)
        expr = as_scalar(test, statement.test.span).expr
        tests[:], preludes[:] = [expr], [prelude]
        with ctx.knowing(ctx.known.assuming(expr)):
            run(frame, inner)

    whole = (s.Evaluate(statement.test, statement.test.span), *statement.body)
    endless = isinstance(statement.test, s.Literal) and bool(statement.test.value)
    inner = statement.body
    out = carried(frame, statement, inner, frozenset(), body, frozenset(), whole, endless)
    ctx.emit(While(tuple(preludes[0]), tests[0], tuple(out), statement.span))
