"""Branches decided now or in the run, with names merged where sides meet; guards on letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, Span
from ...lowering.ir.assignments import Branch, Statement
from ...lowering.ir.expressions import Expr, Read
from ...lowering.ir.node import Node
from ..source import surface as s
from ..values.arrays import as_scalar, describe
from ..values.builder import Context, error
from ..values.memory_order import alike, binds
from ..values.range_analysis import Known
from ..values.types import join, negate
from ..values.values import Array, Group, Scalar, Static, Unset, Value
from . import object_attributes
from .bindings import copy_into, is_number
from .expressions import tested
from .index.notation import index_statement
from .loop_carried import same_binding
from .names import is_letter
from .recovery import Problems
from .scope import RESULT, Frame, Guard, Run, names_in, parts, sources
from .truth import given_in, require_alike, select, settle_test


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
    test = settle_test(frame, tested(frame, statement.test))
    if isinstance(test, Static):
        run(frame, statement.then if test.value else statement.other)
        return
    if ctx.pointwise:
        _select_branch(frame, statement, test.expr, run)
        return
    entry, variables, known = dict(frame.names), dict(frame.variables), ctx.known
    problems = Problems(frame)
    with _side(ctx, known.assuming(test.expr)) as then, problems.kept():
        run(frame, statement.then)
    first, first_variables = frame.names, frame.variables
    frame.names, frame.variables = dict(entry), dict(variables)
    with _side(ctx, known.assuming(negate(test.expr))) as other, problems.kept():
        run(frame, statement.other)
    second = frame.names
    problems.tell()
    frame.variables = {**first_variables, **frame.variables}
    leaves = [_jumps(statement.then), _jumps(statement.other)]
    if leaves[0] or leaves[1]:
        frame.names = second if leaves[0] else first
    else:
        outer, ctx.deciding = ctx.deciding, given_in(ctx, test.expr)
        try:
            frame.names = _merged(frame, _Side(first, then), _Side(second, other), statement)
        finally:
            ctx.deciding = outer
    ctx.emit(Branch(test.expr, tuple(then), tuple(other), statement.span))


@contextmanager
def _side(ctx: Context, known: Known) -> Iterator[list[Statement]]:
    """Collect what one side of a branch emits, which the run may not get to."""
    ctx.control, ctx.unsure = ctx.control + 1, ctx.unsure + 1
    try:
        with ctx.block() as out, ctx.knowing(known):
            yield out
    finally:
        ctx.control, ctx.unsure = ctx.control - 1, ctx.unsure - 1


def _jumps(body: tuple[s.Statement, ...]) -> bool:
    return bool(body) and isinstance(body[-1], s.Break | s.Continue | s.Raise)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a branch: names after it, and its statements, to which more may be added."""

    names: Mapping[str, Value]
    block: list[Statement]


_End = tuple[Value, list[Statement]]
"""What a name is bound to after a side of a branch, and that side's statements."""


def _merged(frame: Frame, first: _Side, second: _Side, statement: s.If) -> dict[str, Value]:
    """Return one binding for each name after both sides of a branch."""
    out: dict[str, Value] = {}
    for name in {**first.names, **second.names}:
        left, right = (_bound(frame, side.names, name) for side in (first, second))
        if name == RESULT and None in (left, right) and Static(None) in (left, right):
            out[name] = Static(None)  # `return` on one side, and the end of the function
        elif left is None or right is None:
            out[name] = Unset("is set on one side of an `if` only", statement.span)
        elif same_binding(left, right):
            out[name] = left
        else:
            ends = (left, first.block), (right, second.block)
            out[name] = _joined(frame, name, *ends, statement.span, _places(name, statement))
    return out


def _bound(frame: Frame, names: Mapping[str, Value], name: str) -> Value | None:
    """Return what a name is bound to on a side, None where it is not set there."""
    return names[name] if name in names else object_attributes.before(frame, name)


def _places(name: str, statement: s.If) -> tuple[Span, Span]:
    """Return where each side of a branch gives a name its value, the branch where it does not."""
    first, second = (
        next((one.span for one in reversed(side) if _sets(one, name)), statement.span)
        for side in (statement.then, statement.other)
    )
    return first, second


def _sets(statement: s.Statement, name: str) -> bool:
    match statement:
        case s.Assign((s.Name(target),), _):
            return target == name
        case _:
            return False


def _one_of_two(name: str, span: Span) -> Unset:
    return Unset(
        "may be one of two arrays, depending on a test", span,
        (f"make it an array of its own on each side: `{name} = x.copy()`",),
    )  # fmt: skip


def _joined(
    frame: Frame,
    name: str,
    left: _End,
    right: _End,
    span: Span,
    places: tuple[Span, Span] | None = None,
) -> Value:
    """Return what a name is after a branch on whose sides it is bound to different things.

    A number is set where the `places` say, each for its side. Arrays are copied into one of the
    name's own; `check_sharing` refuses what could tell.
    """
    ctx = frame.ctx
    a, b = left[0], right[0]
    require_alike(ctx, ctx.deciding, a, b)
    label = "result" if name == RESULT else name
    if is_number(a) and is_number(b):
        kind = join(as_scalar(a, span).kind, as_scalar(b, span).kind)
        node = ctx.node(label, (), kind.dtype)
        frame.variables[name] = node
        for (value, block), place in zip((left, right), places or (span, span), strict=True):
            with _into(frame, block):
                ctx.set(node, as_scalar(value, span).expr, place)
        return Scalar(Read(node, ()), kind)
    if isinstance(a, Array) and isinstance(b, Array) and _meet(frame, name, a, b):
        if name != RESULT and len(_inputs(frame, a) | _inputs(frame, b)) > 1:
            return _one_of_two(name, span)
        kind = join(a.kind, b.kind)
        array = alike(ctx, label, (a, b), a.shape, kind, span)
        for value, block in (left, right):
            assert isinstance(value, Array)
            with _into(frame, block):
                copy_into(ctx, array, value, span)
                binds(ctx, array, value, span)
        return replace(array, listed=max(a.listed, b.listed))
    groups = isinstance(a, Group) and isinstance(b, Group) and a.made is b.made
    if groups and isinstance(a, Group) and isinstance(b, Group) and len(a.items) == len(b.items):
        parts = tuple(
            x if same_binding(x, y) else
            _joined(frame, f"{name}_{n}", (x, left[1]), (y, right[1]), span)
            for n, (x, y) in enumerate(zip(a.items, b.items, strict=True))
        )  # fmt: skip
        return a.of(parts)
    if name == RESULT:
        loop = span.text.startswith(("for ", "while "))
        ways = "this loop and what follows it" if loop else "the sides of this `if`"
        raise error(
            "CD0425",
            CdTypeError,
            f"{ways} return different things: {describe(a)} and {describe(b)}",
            span,
        )
    unset = next((end for end in (a, b) if isinstance(end, Unset)), None)
    if name in frame.reserved and Static(False) in (a, b):
        unset = Unset(
            f"is {describe(b if a == Static(False) else a)} where the loop is left, and nothing "
            "before", span, (f"give it a value of that kind before the loop: `{name} = ...`",)
        )  # fmt: skip
    return unset or _one_of_both(name, a, b, span)


def _one_of_both(name: str, a: Value, b: Value, span: Span) -> Unset:
    """Return that a name is bound to two things that have no place in common."""
    alike = isinstance(a, Array) and isinstance(b, Array) and a.shape == b.shape
    helps = (f"give both one element type: `{name} = {name}.astype(...)`",) if alike else ()
    return Unset(f"is {describe(a)} or {describe(b)}, depending on a test", span, helps)


def _meet(frame: Frame, name: str, a: Array, b: Array) -> bool:
    """Whether one array can be either: what the caller gave keeps its element type."""
    if a.shape != b.shape or name == RESULT or a.kind.dtype == b.kind.dtype:
        return a.shape == b.shape
    return not (_inputs(frame, a) or _inputs(frame, b))


@contextmanager
def _into(frame: Frame, block: list[Statement]) -> Iterator[None]:
    """Add what is emitted inside to a block that was collected before."""
    outer, frame.ctx.out = frame.ctx.out, block
    try:
        yield
    finally:
        frame.ctx.out = outer


def _inputs(frame: Frame, value: Array) -> set[Node]:
    """Return the arrays of the caller of which an array is, or may be, a part."""
    if value.base is None:
        return set()
    given = {parameter.node for parameter in frame.ctx.parameters.values()}
    return given & sources(frame, value.base.node)


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
        left, right = (_bound(frame, side, name) for side in (first, second))
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


def guard(frame: Frame, statement: s.If, run: Run) -> None:
    """Elaborate an `if` on index letters: it restricts every statement inside.

    A test that reads arrays and rules more than one statement is evaluated once, into a mask.
    """
    names = tuple(
        dict.fromkeys(name.id for name in names_in(statement.test) if is_letter(frame, name))
    )
    many = len(statement.then) > 1 or bool(statement.other)
    mask = _mask(frame, statement.test, names) if many and _reads(statement.test) else None
    outer = frame.guards
    try:
        frame.guards = (*outer, Guard(statement.test, False, names, mask))
        run(frame, statement.then)
        frame.guards = (*outer, Guard(statement.test, True, names, mask))
        run(frame, statement.other)
    finally:
        frame.guards = outer


def _reads(test: s.Expr) -> bool:
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
