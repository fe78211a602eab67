"""Control flow: loops that run or unroll, branches decided now or in the run, guards on letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...lowering.diagnostic import CdSyntaxError, CdTypeError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Branch, For, Permute, While
from ...lowering.ir.expressions import Expr, Position, Read
from ...lowering.ir.indexing import Affine, Symbol, const, var
from .. import surface as s
from .arrays import as_scalar, describe
from .bindings import bind, copy_into, is_number, open_slot, uses_symbols
from .context import NeedKind, NeedUnroll, error
from .expressions import (
    as_affine, elements, evaluate, select, settle_test, test_of, value_of,
)  # fmt: skip
from .frame import (
    RESULT, Frame, Guard, first_use, loads_in, names_in, parts, rebound_names,
)  # fmt: skip
from .index_notation import index_statement
from .names import is_letter
from .proof import Known, facts_of
from .types import WEAK_INT, Kind, join, negate
from .values import Array, Group, Scalar, Section, Static, Unset, Value, replace_symbols
from .views import index_of, subscript

Run = Callable[[Frame, tuple[s.Statement, ...]], None]
_UNROLL_LIMIT = 4096
_TRIES = 12


class StaticBreak(Exception):
    """`break` in a loop that is being unrolled."""


class StaticContinue(Exception):
    """`continue` in a loop that is being unrolled."""


# -- loops --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The rounds of a loop that runs: its counter's range, and the target's value in a round."""

    name: str
    lo: Affine
    hi: Affine
    step: int
    item: Callable[[Symbol], Value]


def loop(frame: Frame, statement: s.For, run: Run) -> None:
    """Elaborate a `for`: over ranges and arrays it runs, over sequences known now it unrolls."""
    if frame.ctx.pointwise or frame.guards:
        raise error(
            "CD0520", CdSyntaxError, "a loop cannot stand inside a statement or guard on index letters",
            statement.span,
        )  # fmt: skip
    source = _rounds(frame, statement.iterable, statement.target)
    if not isinstance(source, _Rounds):
        _unroll(frame, statement, source, run)
        return
    state = _snapshot(frame)
    try:
        _run_rounds(frame, statement, source, run)
    except NeedUnroll as need:
        count = _count(source)
        if need.symbol not in frame.ctx.unrollable or count is None or count > _UNROLL_LIMIT:
            raise
        if frame.ctx.unrollable.pop(need.symbol) is not statement:
            raise
        _restore(frame, state)
        _unroll(frame, statement, list(_static_items(frame, source)), run)


def _count(source: _Rounds) -> int | None:
    lo, hi = source.lo.constant, source.hi.constant
    return None if lo is None or hi is None else len(range(lo, hi, source.step))


def _static_items(frame: Frame, source: _Rounds) -> Iterator[Value]:
    lo, hi = source.lo.constant, source.hi.constant
    assert lo is not None and hi is not None
    for n in range(lo, hi, source.step):
        symbol = frame.ctx.symbol(source.name)
        yield _at_number(source.item(symbol), symbol, n)


def _at_number(value: Value, symbol: Symbol, n: int) -> Value:
    values = {symbol: const(n)}
    match value:
        case Scalar(Position(index), _) if index.symbol == symbol:
            return Static(n)
        case Scalar(expr, kind):
            found = replace_symbols(expr, values)
            index = found.index.constant if isinstance(found, Position) else None
            return Scalar(found, kind) if index is None else Static(index)
        case Array():
            return replace(value, body=replace_symbols(value.body, values))
        case Group(items, kind):
            return Group(tuple(_at_number(item, symbol, n) for item in items), kind)
        case _:
            return value


def _rounds(frame: Frame, iterable: s.Expr, target: s.Expr) -> _Rounds | list[Value]:
    """Return what a loop goes over: rounds that run, or values to unroll over."""
    name = target.id if isinstance(target, s.Name) else "n"
    if isinstance(iterable, s.Call) and not iterable.keywords:
        function = evaluate(frame, iterable.function)
        if function == Static(range):
            return _range(frame, iterable, name)
        if function == Static(reversed) and len(iterable.args) == 1:
            return _reversed(frame, iterable, name, target)
        if function == Static(enumerate):
            return _enumerate(frame, iterable, target)
        if function == Static(zip):
            return _zip(frame, iterable)
    value = evaluate(frame, iterable)
    if isinstance(value, Static) and isinstance(value.value, range):
        steps = value.value
        return _Rounds(name, const(steps.start), const(steps.stop), steps.step, frame.ctx.scalar_index)
    if isinstance(value, Array) and value.rank:
        held = value if value.place else frame.ctx.materialize(value, "items", iterable.span)
        return _over(frame, held, "n", iterable.span)
    return elements(frame, value, iterable.span)


def _over(frame: Frame, array: Array, name: str, span: Span) -> _Rounds:
    def item(symbol: Symbol) -> Value:
        rest = [Section(None, None, None)] * (array.rank - 1)
        known = frame.ctx.known.with_bounds(symbol, const(0), array.shape[0] - 1)
        with frame.ctx.knowing(known):
            at = frame.ctx.scalar_index(symbol)
            return value_of(subscript(frame.ctx, array, [at, *rest], span, "the array"))

    return _Rounds(name, const(0), array.shape[0], 1, item)


def _range(frame: Frame, call: s.Call, name: str) -> _Rounds:
    ctx = frame.ctx
    if not 1 <= len(call.args) <= 3:
        raise error("CD0424", CdTypeError, "`range` takes one to three integers", call.span)
    ends: list[Affine] = []
    for arg in call.args:
        at = index_of(ctx, value_of(evaluate(frame, arg)), arg.span, "a range")
        assert isinstance(at, Affine), "outside index notation every integer is an index"
        ends.append(at)
    lo, hi = (const(0), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    step = ends[2] if len(ends) == 3 else const(1)
    ctx.require_static(step)
    if not step.constant:
        raise error(
            "CD0424", CdTypeError, "the step of a range has to be a number other than zero, known "
            "when compiling", call.args[-1].span,
        )  # fmt: skip
    return _Rounds(name, lo, hi, step.constant, ctx.scalar_index)


def _reversed(frame: Frame, call: s.Call, name: str, target: s.Expr) -> _Rounds | list[Value]:
    inner = _rounds(frame, call.args[0], target)
    if not isinstance(inner, _Rounds):
        return inner[::-1]
    if inner.step != 1:
        count = _count(inner)
        if count is None:
            raise error("CD0424", CdTypeError, "only plain ranges can be reversed", call.span)
        assert inner.lo.constant is not None
        last = inner.lo + (count - 1) * inner.step
        return replace(inner, lo=last, hi=inner.lo - inner.step, step=-inner.step)
    return replace(inner, lo=inner.hi - 1, hi=inner.lo - 1, step=-1)


def _enumerate(frame: Frame, call: s.Call, target: s.Expr) -> _Rounds | list[Value]:
    start = as_affine(value_of(evaluate(frame, call.args[1]))) if len(call.args) > 1 else const(0)
    if start is None:
        raise error("CD0424", CdTypeError, "`enumerate` starts at an integer", call.span)
    inner = _rounds(frame, call.args[0], s.Name("n", call.span))
    if not isinstance(inner, _Rounds):
        assert start.constant is not None
        first = start.constant
        return [Group((Static(first + n), item)) for n, item in enumerate(inner)]
    if inner.lo.constant != 0 or inner.step != 1:
        raise error("CD0424", CdTypeError, "`enumerate` goes over arrays and sequences", call.span)

    def item(symbol: Symbol) -> Value:
        return Group((Scalar(Position(var(symbol) + start), WEAK_INT), inner.item(symbol)))

    return replace(inner, item=item)


def _zip(frame: Frame, call: s.Call) -> _Rounds | list[Value]:
    inner = [_rounds(frame, arg, s.Name("n", call.span)) for arg in call.args]
    running = [one for one in inner if isinstance(one, _Rounds)]
    if len(running) < len(inner):
        known = [list(_static_items(frame, x)) if isinstance(x, _Rounds) else x for x in inner]
        return [Group(tuple(items)) for items in zip(*known, strict=False)]
    if any(one.step != 1 for one in running):
        raise error("CD0424", CdTypeError, "`zip` goes over arrays and plain ranges", call.span)
    count = running[0].hi - running[0].lo
    for one in running[1:]:
        count = frame.ctx.known.minimum(count, one.hi - one.lo)

    def item(symbol: Symbol) -> Value:
        return Group(tuple(_shifted(one, symbol) for one in running))

    return _Rounds("n", const(0), count, 1, item)


def _shifted(one: _Rounds, symbol: Symbol) -> Value:
    value = one.item(symbol)
    if one.lo.constant == 0:
        return value
    if isinstance(value, Scalar) and isinstance(value.expr, Position):
        return Scalar(Position(value.expr.index + one.lo), value.kind)
    return value


def _run_rounds(frame: Frame, statement: s.For, source: _Rounds, run: Run) -> None:
    """Emit a loop that runs."""
    ctx = frame.ctx
    symbol = ctx.symbol(source.name)
    ctx.unrollable[symbol] = statement
    first = source.lo if source.step > 0 else source.hi + 1
    last = source.hi - 1 if source.step > 0 else source.lo
    known = ctx.known.with_bounds(symbol, first, last).with_facts(last - first)
    targets = tuple(rebound_names((s.For(statement.target, statement.iterable, (), statement.span),)))
    after = _keep_last(frame, statement, targets)

    def body(inner: tuple[s.Statement, ...]) -> None:
        with ctx.knowing(known):
            ctx.loop_symbols.add(symbol)
            try:
                bind_target(frame, statement.target, source.item(symbol), statement.span)
                for name, node in after.items():
                    scalar = as_scalar(frame.names[name], statement.span)
                    ctx.set(node, scalar.expr, statement.span)
                run(frame, inner)
            finally:
                ctx.loop_symbols.discard(symbol)

    out = _carried(frame, statement, statement.body, frozenset(targets), body, frozenset({symbol}))
    ctx.emit(For(symbol, source.lo, source.hi, source.step, tuple(out), statement.span))
    for name in targets:
        if name in after:
            kind = WEAK_INT
            frame.names[name] = Scalar(Read(after[name], ()), kind)
        else:
            frame.names[name] = Unset("belongs to a loop that has ended", statement.span)


def _keep_last(frame: Frame, statement: s.For, targets: tuple[str, ...]) -> dict[str, object]:
    """Return variables for loop targets that are read after the loop (numbers only)."""
    if not isinstance(statement.target, s.Name) or frame.in_loop:
        return {}
    name = statement.target.id
    if not _read_after(frame, statement, name):
        return {}
    return {name: frame.ctx.node(name, (), dtypes.int64)}


def bind_target(frame: Frame, target: s.Expr, value: Value, span: Span) -> None:
    """Bind the target of a loop or comprehension to an item, unpacking it."""
    match target:
        case s.Name(name):
            frame.names[name] = value
        case s.Sequence(items, _):
            parts = elements(frame, value, span)
            if len(parts) != len(items):
                raise error(
                    "CD0419", CdTypeError, f"{len(items)} targets for {len(parts)} values", target.span
                )
            for item, part in zip(items, parts, strict=True):
                bind_target(frame, item, part, span)
        case _:
            raise error("CD0142", CdSyntaxError, "a loop's target is a name", target.span)


def _unroll(frame: Frame, statement: s.For, items: list[Value], run: Run) -> None:
    """Elaborate the body once for each item."""
    outer, frame.unrolling = frame.unrolling, True
    try:
        for item in items:
            _bind_unrolled(frame, statement.target, item, statement.span)
            try:
                run(frame, statement.body)
            except StaticContinue:
                continue
            except StaticBreak:
                break
    finally:
        frame.unrolling = outer


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
            "CD0520", CdSyntaxError, "a loop cannot stand inside a statement or guard on index letters",
            statement.span,
        )  # fmt: skip
    tests: list[Expr] = []
    preludes: list[list[object]] = []

    def body(inner: tuple[s.Statement, ...]) -> None:
        with ctx.block() as prelude:
            test = test_of(frame, evaluate(frame, statement.test), statement.test.span)
        expr = as_scalar(test, statement.test.span).expr
        tests[:], preludes[:] = [expr], [prelude]  # type: ignore[list-item]
        with ctx.knowing(ctx.known.with_facts(*facts_of(expr))):
            run(frame, inner)

    whole = (s.Evaluate(statement.test, statement.test.span), *statement.body)
    out = _carried(frame, statement, statement.body, frozenset(), body, frozenset(), whole)
    ctx.emit(While(tuple(preludes[0]), tests[0], tuple(out), statement.span))  # type: ignore[arg-type]


def _carried(
    frame: Frame,
    statement: s.For | s.While,
    body: tuple[s.Statement, ...],
    own: frozenset[str],
    elaborate: Callable[[tuple[s.Statement, ...]], None],
    symbols: frozenset[Symbol],
    whole: tuple[s.Statement, ...] | None = None,
) -> list:  # type: ignore[type-arg]
    """Return the statements of a loop's body, each name that lives across rounds in one place.

    Elaborated anew, with more or wider slots, until every round ends as it began.
    """
    ctx = frame.ctx
    rebound = [name for name in dict.fromkeys(rebound_names(body)) if name not in own]
    live = {
        name for name in rebound
        if first_use(whole or body, name) != "set" or _read_after(frame, statement, name)
    }  # fmt: skip
    slots: dict[str, Kind | None] = {
        name: None for name in live
        if name in frame.names and is_number(frame.names[name]) and name not in frame.slots
    }  # fmt: skip
    state = _snapshot(frame)
    for _ in range(_TRIES):
        _restore(frame, state)
        for name, kind in slots.items():
            open_slot(frame, name, kind, statement.span)
        entry = dict(frame.names)
        try:
            with ctx.block() as out, _looping(frame):
                elaborate(body)
                wanted = _close(frame, statement, entry, live, rebound, symbols)
        except NeedKind as need:
            if need.name not in slots:
                raise
            known = slots[need.name]
            slots[need.name] = need.kind if known is None else join(known, need.kind)
            continue
        if not wanted:
            for name in slots:
                frame.slots.pop(name, None)
            return out
        slots.update(dict.fromkeys(wanted))
    raise error("CD0210", CdTypeError, "the types of this loop's names do not settle", statement.span)


@contextmanager
def _looping(frame: Frame) -> Iterator[None]:
    outer = frame.in_loop, frame.unrolling
    frame.in_loop, frame.unrolling = True, False
    try:
        yield
    finally:
        frame.in_loop, frame.unrolling = outer


def _close(
    frame: Frame,
    statement: s.For | s.While,
    entry: dict[str, Value],
    live: set[str],
    rebound: list[str],
    symbols: frozenset[Symbol],
) -> list[str]:
    """Make the end of a round agree with its beginning; return names that need slots for it."""
    changed = [
        name for name in rebound
        if name in entry and name in frame.names and not _same(frame.names[name], entry[name])
    ]  # fmt: skip
    lasting = [name for name in changed if name in live]
    if lasting and _permute(frame, entry, lasting, statement):
        lasting = []
        for name in changed:
            frame.names[name] = entry[name]
    wanted: list[str] = []
    for name in lasting:
        value = entry[name]
        if isinstance(value, Array) or is_number(value):
            wanted.append(name)
        elif isinstance(value, Group) or not _read_after(frame, statement, name):
            frame.names[name] = Unset("changes from round to round of a loop", statement.span)
    for name in rebound:
        now = frame.names.get(name)
        if now is None or name in wanted or name in frame.slots:
            continue
        gone = symbols | _inner_symbols(frame, now)
        if name not in entry and (uses_symbols(now, gone)):
            frame.names[name] = _escaped(frame, name, now, statement, symbols)
        elif name in changed and name not in live:
            frame.names[name] = now if not uses_symbols(now, gone) else entry[name]
    return wanted


def _inner_symbols(frame: Frame, value: Value) -> frozenset[Symbol]:
    """Return symbols of a binding that were read inside a block and end with it."""
    if not isinstance(value, Scalar) or not isinstance(value.expr, Position):
        return frozenset()
    stable = frame.ctx.loop_symbols | frame.ctx.origin.keys()
    return frozenset(x for x in value.expr.index.symbols() if x not in stable)


def _escaped(
    frame: Frame, name: str, value: Value, statement: s.For | s.While, symbols: frozenset[Symbol]
) -> Value:
    """Return how a name first set inside a loop is bound after it."""
    if isinstance(value, Scalar):
        node = frame.ctx.variable(name, value, statement.span)
        return Scalar(Read(node, ()), value.kind)
    return Unset("has another shape or place in each round of a loop that has ended", statement.span)


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, Array) and isinstance(right, Array) and left.rank == right.rank:
        index = tuple(var(axis) for axis in left.axes)
        return left.shape == right.shape and right.at(index) == left.body
    return left == right


def _permute(
    frame: Frame, entry: dict[str, Value], names: list[str], statement: s.For | s.While
) -> bool:
    """Exchange buffers where the names only swapped their arrays; False where they did more."""
    if _leaves_early(statement.body):
        return False
    before = [_whole_node(entry[name]) for name in names]
    after = [_whole_node(frame.names[name]) for name in names]
    if None in before or None in after or len(set(before)) < len(names):
        return False
    if set(before) != set(after):
        return False
    nodes = [node for node in before if node is not None]
    if len({(node.shape, node.dtype) for node in nodes}) > 1:
        return False
    sources = tuple(node for node in after if node is not None)
    frame.ctx.emit(Permute(tuple(nodes), sources, statement.span))
    return True


def _whole_node(value: Value):  # type: ignore[no-untyped-def]
    if not isinstance(value, Array) or value.view is None:
        return None
    plain = tuple(var(axis) for axis in value.axes)
    whole = value.view.index == plain and value.shape == value.view.node.shape
    return value.view.node if whole else None


def _leaves_early(body: tuple[s.Statement, ...]) -> bool:
    for statement in body:
        match statement:
            case s.Break() | s.Continue():
                return True
            case s.If(_, then, other):
                if _leaves_early(then) or _leaves_early(other):
                    return True
            case s.Comment(_, inner):
                if _leaves_early(inner):
                    return True
    return False


def _read_after(frame: Frame, statement: s.For | s.While, name: str) -> bool:
    """Whether a name is read anywhere outside a loop."""
    inside = {(n.span.line, n.span.column) for n in loads_in(statement)}
    if name == RESULT:
        return True
    return any(
        n.id == name and (n.span.line, n.span.column) not in inside
        for n in loads_in_body(frame.function)
    )


def loads_in_body(function: s.Function) -> Iterator[s.Name]:
    """Yield every name read in a function's body."""
    for statement in function.body:
        yield from loads_in(statement)


def _snapshot(frame: Frame) -> tuple[object, ...]:
    ctx = frame.ctx
    return (dict(frame.names), dict(frame.variables), dict(frame.slots), list(ctx.out),
            len(ctx.locals), ctx.known)  # fmt: skip


def _restore(frame: Frame, state: tuple[object, ...]) -> None:
    names, variables, slots, out, count, known = state
    ctx = frame.ctx
    frame.names, frame.variables = dict(names), dict(variables)  # type: ignore[call-overload]
    frame.slots = dict(slots)  # type: ignore[call-overload]
    ctx.out[:] = out  # type: ignore[index]
    del ctx.locals[count:]  # type: ignore[misc]
    assert isinstance(known, Known)
    ctx.known = known


# -- branches -----------------------------------------------------------------------------------


def returns(statement: s.If) -> bool:
    """Whether a side of an `if` ends in `return`."""
    return any(_ends_in_return(side) for side in (statement.then, statement.other))


def _ends_in_return(body: tuple[s.Statement, ...]) -> bool:
    match body[-1] if body else None:
        case s.Return() | s.Raise():
            return True
        case s.If() as inner:
            return _ends_in_return(inner.then) and _ends_in_return(inner.other)
        case _:
            return False


def with_rest(statement: s.If, rest: tuple[s.Statement, ...]) -> s.If:
    """Return the `if` with what follows it put into the sides that go on."""
    then = statement.then if _ends_in_return(statement.then) else (*statement.then, *rest)
    other = statement.other if _ends_in_return(statement.other) else (*statement.other, *rest)
    return replace(statement, then=then, other=other)


def branch(frame: Frame, statement: s.If, run: Run) -> None:
    """Elaborate an `if` on a test: decided now, or both sides with their names merged."""
    ctx = frame.ctx
    found = test_of(frame, evaluate(frame, statement.test), statement.test.span)
    test = settle_test(frame, found)
    if isinstance(test, Static):
        run(frame, statement.then if test.value else statement.other)
        return
    if ctx.pointwise:
        _select_branch(frame, statement, test.expr, run)
        return
    outer, frame.unrolling = frame.unrolling, False
    entry, variables, known = dict(frame.names), dict(frame.variables), ctx.known
    with ctx.block() as then:
        with ctx.knowing(known.with_facts(*facts_of(test.expr))):
            run(frame, statement.then)
        first, first_variables = frame.names, frame.variables
    frame.names, frame.variables = dict(entry), dict(variables)
    with ctx.block() as other:
        with ctx.knowing(known.with_facts(*facts_of(negate(test.expr)))):
            run(frame, statement.other)
        second = frame.names
    frame.unrolling = outer
    frame.variables = {**first_variables, **frame.variables}
    leaves = [_jumps(statement.then), _jumps(statement.other)]
    if leaves[0] or leaves[1]:
        frame.names = second if leaves[0] else first
    else:
        frame.names = _merged(frame, entry, (first, then), (second, other), statement)
    ctx.emit(Branch(test.expr, tuple(then), tuple(other), statement.span))


def _jumps(body: tuple[s.Statement, ...]) -> bool:
    return bool(body) and isinstance(body[-1], s.Break | s.Continue | s.Raise)


def _merged(
    frame: Frame,
    entry: dict[str, Value],
    first: tuple[dict[str, Value], list],  # type: ignore[type-arg]
    second: tuple[dict[str, Value], list],  # type: ignore[type-arg]
    statement: s.If,
) -> dict[str, Value]:
    """Return one binding for each name after both sides of a branch."""
    out: dict[str, Value] = {}
    for name in {**first[0], **second[0]}:
        left, right = first[0].get(name), second[0].get(name)
        if left is None or right is None:
            out[name] = Unset("is set on one side of an `if` only", statement.span)
        elif _same(left, right):
            out[name] = left
        else:
            out[name] = _joined(frame, name, (left, first[1]), (right, second[1]), statement)
    return out


def _joined(
    frame: Frame, name: str, left: tuple[Value, list], right: tuple[Value, list], statement: s.If  # type: ignore[type-arg]
) -> Value:
    ctx, span = frame.ctx, statement.span
    a, b = left[0], right[0]
    label = "result" if name == RESULT else name
    if is_number(a) and is_number(b):
        kind = join(as_scalar(a, span).kind, as_scalar(b, span).kind)
        node = ctx.node(label, (), kind.dtype)
        frame.variables[name] = node
        for value, block in (left, right):
            with _into(frame, block):
                ctx.set(node, as_scalar(value, span).expr, span)
        return Scalar(Read(node, ()), kind)
    if isinstance(a, Array) and isinstance(b, Array) and a.shape == b.shape:
        if name != RESULT and _aliases(frame, a, name) | _aliases(frame, b, name):
            return Unset(
                "may be one of two arrays, depending on a test; copy it: `.copy()`", span
            )
        kind = join(a.kind, b.kind)
        array = ctx.whole(ctx.node(label, a.shape, kind.dtype), span)
        for value, block in (left, right):
            assert isinstance(value, Array)
            with _into(frame, block):
                copy_into(ctx, array, value, span)
        return array
    if isinstance(a, Group) and isinstance(b, Group) and len(a.items) == len(b.items):
        parts = tuple(
            x if _same(x, y) else
            _joined(frame, f"{name}_{n}", (x, left[1]), (y, right[1]), statement)
            for n, (x, y) in enumerate(zip(a.items, b.items, strict=True))
        )  # fmt: skip
        return Group(parts, a.kind)
    if name == RESULT:
        raise error(
            "CD0425", CdTypeError,
            f"the sides of this `if` return different things: {describe(a)} and {describe(b)}", span,
        )  # fmt: skip
    return Unset(f"is {describe(a)} or {describe(b)}, depending on a test", span)


@contextmanager
def _into(frame: Frame, block: list) -> Iterator[None]:  # type: ignore[type-arg]
    outer, frame.ctx.out = frame.ctx.out, block
    try:
        yield
    finally:
        frame.ctx.out = outer


def _aliases(frame: Frame, value: Array, name: str) -> bool:
    """Whether an array is (part of) a parameter: writing it would be seen outside."""
    inputs = {parameter.node for parameter in frame.ctx.parameters.values()}
    return value.place is not None and value.place.node in inputs


def _select_branch(frame: Frame, statement: s.If, test: Expr, run: Run) -> None:
    """Elaborate both sides of an `if` at every point of index letters; names become selections."""
    entry = dict(frame.names)
    with frame.ctx.under(test):
        run(frame, statement.then)
        first = frame.names
    frame.names = dict(entry)
    with frame.ctx.under(negate(test)):
        run(frame, statement.other)
        second = frame.names
    out: dict[str, Value] = {}
    for name in {**first, **second}:
        left, right = first.get(name), second.get(name)
        if left is None or right is None:
            out[name] = Unset("is set on one side of an `if` only", statement.span)
        elif left == right:
            out[name] = left
        elif is_number(left) and is_number(right):
            a, b = as_scalar(left, statement.span), as_scalar(right, statement.span)
            out[name] = Scalar(*select(test, (a.expr, a.kind), (b.expr, b.kind)))
        else:
            out[name] = Unset("differs between the sides of an `if`", statement.span)
    frame.names = out


# -- guards -------------------------------------------------------------------------------------


def guard(frame: Frame, statement: s.If, run: Run) -> None:
    """Elaborate an `if` on index letters: it restricts every statement inside.

    A test that reads arrays and rules more than one statement is evaluated once, into a mask.
    """
    names = tuple(
        dict.fromkeys(name.id for name in names_in(statement.test) if is_letter(frame, name))
    )
    many = len(statement.then) > 1 or bool(statement.other)
    mask = _mask(frame, statement.test, names) if many and _reads(frame, statement.test) else None
    outer = frame.guards
    try:
        frame.guards = (*outer, Guard(statement.test, False, names, mask))
        run(frame, statement.then)
        frame.guards = (*outer, Guard(statement.test, True, names, mask))
        run(frame, statement.other)
    finally:
        frame.guards = outer


def _reads(frame: Frame, test: s.Expr) -> bool:
    return any(isinstance(part, s.Subscript) for part in _all_parts(test))


def _all_parts(node: object) -> Iterator[object]:
    yield node
    for part in parts(node):
        yield from _all_parts(part)


def _mask(frame: Frame, test: s.Expr, names: tuple[str, ...]) -> Array:
    """Return the guard's test over its letters, evaluated now, as an array of bools."""
    hidden = "where"
    while hidden in frame.names or hidden in frame.locals:
        hidden += "_"
    letters = tuple(s.Name(name, test.span) for name in names)
    target = s.Subscript(s.Name(hidden, test.span), letters, test.span)
    outer, frame.guards = frame.guards, ()
    frame.locals = frame.locals | {hidden}
    try:
        index_statement(frame, target, None, test, test.span)
        mask = frame.names.pop(hidden)
    finally:
        frame.guards = outer
        frame.locals = frame.locals - {hidden}
    assert isinstance(mask, Array)
    return mask


