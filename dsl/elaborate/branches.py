"""Elaboration of `if`: static and run-time branches, and the names that are merged behind them.

At the join of a run-time branch every name gets one location, as by a phi; at the points of index
variables a branch becomes selects (if-conversion).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdTypeError, Span
from ...lowering.ir.assignments import Branch, Statement
from ...lowering.ir.expressions import Expr, Read
from ...lowering.ir.node import Node
from ..source import surface as s
from ..values.adapting import require_joined
from ..values.arrays import as_scalar, describe
from ..values.builder import Context, error
from ..values.memory_order import alike, binds
from ..values.range_analysis import Assumptions
from ..values.types import join, negate
from ..values.values import Array, Group, Scalar, Static, Unset, Value, as_new, joined_identity
from . import object_attributes
from .bindings import copy_into, is_number, same_binding, spelled
from .early_exit import returns_inside
from .expressions import tested
from .recovery import Problems
from .scope import RESULT, Frame, Run, is_result, sources
from .select import require_both_joined
from .truth import given_in, note_choice, require_alike, select, settle_test


def returns(statement: s.If) -> bool:
    """Whether a side of an `if` ends in `return`."""
    return any(_ends_in_return(side) for side in (statement.then, statement.orelse))


def _ends_in_return(body: tuple[s.Statement, ...]) -> bool:
    """Whether statements end in a `return` or `raise` on all paths."""
    match body[-1] if body else None:
        case s.Return() | s.Raise():
            return True
        case s.If() as inner:
            return _ends_in_return(inner.then) and _ends_in_return(inner.orelse)
        case _:
            return False


def with_rest(statement: s.If, rest: tuple[s.Statement, ...]) -> s.If:
    """Return the `if` with the statements after it moved into the sides that fall through."""
    then = statement.then if _ends_in_return(statement.then) else (*statement.then, *rest)
    orelse = statement.orelse if _ends_in_return(statement.orelse) else (*statement.orelse, *rest)
    return replace(statement, then=then, orelse=orelse)


def branch(frame: Frame, statement: s.If, run: Run) -> None:
    """Elaborate an `if`: one side where the test is static, otherwise both, with names merged."""
    _branch_on(frame, settle_test(frame, tested(frame, statement.test)), statement, run)


def branch_with_rest(
    frame: Frame, statement: s.If, rest: tuple[s.Statement, ...], run: Run
) -> None:
    """Elaborate an `if` of which a side returns or raises, and the statements after it.

    Where a side raises, what follows stays beside the branch, so that what it makes lives on; else
    it is moved into the sides that fall through.
    """
    ctx = frame.ctx
    test = settle_test(frame, tested(frame, statement.test))
    raises = [_ends_in_raise(side) for side in (statement.then, statement.orelse)]
    if isinstance(test, Static) or ctx.pointwise or raises[0] == raises[1]:
        _branch_on(frame, test, with_rest(statement, rest), run)
        return
    side = statement.then if raises[0] else statement.orelse
    other = statement.orelse if raises[0] else statement.then
    holds = test.expr if raises[0] else negate(test.expr)
    entry, variables, assumptions = dict(frame.names), dict(frame.variables), ctx.assumptions
    problems = Problems(frame)
    with _collect_side(ctx, assumptions.assuming(holds)) as out, problems.collecting():
        run(frame, side)
    frame.names, frame.variables = entry, {**frame.variables, **variables}
    ctx.emit(Branch(holds, tuple(out), (), statement.span))
    with not_always(ctx, assumptions.assuming(negate(holds))), problems.collecting():
        run(frame, (*other, *rest))
    problems.tell()


def _ends_in_raise(body: tuple[s.Statement, ...]) -> bool:
    """Whether statements end in a `raise` on all paths, and return on none."""
    return _raises(body) and not returns_inside(body)


def _raises(body: tuple[s.Statement, ...]) -> bool:
    """Whether statements end in a `raise` on all paths that do not return."""
    match body[-1] if body else None:
        case s.Raise():
            return True
        case s.If() as inner:
            return _raises(inner.then) and _raises(inner.orelse)
        case _:
            return False


def _branch_on(frame: Frame, test: Static | Scalar, statement: s.If, run: Run) -> None:
    """Elaborate the sides of an `if`, or the one that a static test chooses."""
    ctx = frame.ctx
    if isinstance(test, Static):
        run(frame, statement.then if test.value else statement.orelse)
        return
    if ctx.pointwise:
        _select_branch(frame, statement, test.expr, run)
        return
    entry, variables, assumptions = dict(frame.names), dict(frame.variables), ctx.assumptions
    problems = Problems(frame)
    with _collect_side(ctx, assumptions.assuming(test.expr)) as then, problems.collecting():
        run(frame, statement.then)
    first, first_variables = frame.names, frame.variables
    frame.names, frame.variables = dict(entry), dict(variables)
    with (
        _collect_side(ctx, assumptions.assuming(negate(test.expr))) as orelse,
        problems.collecting(),
    ):
        run(frame, statement.orelse)
    second = frame.names
    problems.tell()
    frame.variables = {**first_variables, **frame.variables}
    jumps = [
        _ends_in_jump(body, returns=names.get(RESULT) is not entry.get(RESULT))
        for body, names in ((statement.then, first), (statement.orelse, second))
    ]
    if jumps[0] or jumps[1]:
        frame.names = second if jumps[0] else first
    else:
        outer, ctx.deciding = ctx.deciding, given_in(ctx, test.expr)
        try:
            frame.names = _merge_names(frame, _Side(first, then), _Side(second, orelse), statement)
        finally:
            ctx.deciding = outer
    ctx.emit(Branch(test.expr, tuple(then), tuple(orelse), statement.span))


@contextmanager
def _collect_side(ctx: Context, assumptions: Assumptions) -> Iterator[list[Statement]]:
    """Collect the statements of one side of a branch, which may not execute."""
    with not_always(ctx, assumptions), ctx.block() as out:
        yield out


@contextmanager
def not_always(ctx: Context, assumptions: Assumptions) -> Iterator[None]:
    """Elaborate statements that execute on some paths, on which these assumptions hold."""
    ctx.control, ctx.unsure = ctx.control + 1, ctx.unsure + 1
    try:
        with ctx.knowing(assumptions):
            yield
    finally:
        ctx.control, ctx.unsure = ctx.control - 1, ctx.unsure - 1


def _ends_in_jump(body: tuple[s.Statement, ...], returns: bool) -> bool:
    """Whether statements, of which some path `returns`, end in a jump, or in a `raise` on all."""
    if body and isinstance(body[-1], s.Break | s.Continue):
        return True
    return _raises(body) and not returns


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a branch: names at its end, and its statements, to which copies are appended."""

    names: Mapping[str, Value]
    block: list[Statement]


_SideEnd = tuple[Value, list[Statement]]
"""The binding of a name at the end of a side of a branch, and that side's statements."""


def _merge_names(frame: Frame, first: _Side, second: _Side, statement: s.If) -> dict[str, Value]:
    """Return one binding for each name at the join of both sides of a branch."""
    out: dict[str, Value] = {}
    for name in {**first.names, **second.names}:
        left, right = (_binding(frame, side.names, name) for side in (first, second))
        if name == RESULT and None in (left, right) and Static(None) in (left, right):
            out[name] = Static(None)  # `return` on one side, and the end of the function
        elif left is None or right is None:
            out[name] = Unset("is set on one side of an `if` only", statement.span)
        elif same_binding(left, right):
            out[name] = _one_of_two(left, right)
        else:
            ends = (left, first.block), (right, second.block)
            out[name] = _merge_binding(
                frame, name, *ends, statement.span, _assignment_spans(name, statement)
            )
    return out


def _one_of_two(left: Value, right: Value) -> Value:
    """Return the binding at a join of one location on both sides: a view of it, where these are two
    objects of the caller's that share their memory."""
    if isinstance(left, Group) and isinstance(right, Group):
        return replace(left, identity=joined_identity(left, right))
    if isinstance(left, Array) and isinstance(right, Array) and left.given != right.given:
        return as_new(left)
    return left


def _binding(frame: Frame, names: Mapping[str, Value], name: str) -> Value | None:
    """Return the binding of a name on a side, None where it is not set there."""
    return names[name] if name in names else object_attributes.before(frame, name)


def _assignment_spans(name: str, statement: s.If) -> tuple[Span, Span]:
    """Return where each side of a branch last assigns a name: the branch itself where none does."""
    first, second = (
        next((inner.span for inner in reversed(side) if _assigns(inner, name)), statement.span)
        for side in (statement.then, statement.orelse)
    )
    return first, second


def _assigns(statement: s.Statement, name: str) -> bool:
    """Whether a statement is an assignment to a name alone."""
    match statement:
        case s.Assign((s.Name(assigned),), _):
            return assigned == name
        case _:
            return False


def _ambiguous_array(name: str, span: Span) -> Unset:
    """Return the unset value of a name that may alias one of two arrays of the caller."""
    return Unset(
        "may be one of two arrays, depending on a test", span,
        (f"make it an array of its own on each side: `{name} = x.copy()`",),
    )  # fmt: skip


def _merge_binding(
    frame: Frame,
    name: str,
    left: _SideEnd,
    right: _SideEnd,
    span: Span,
    store_spans: tuple[Span, Span] | None = None,
) -> Value:
    """Return the binding of a name at a join whose sides bind it to different values.

    Numbers are stored in one variable; `store_spans` are the locations of these stores, by side.
    Arrays are copied into a new one; `check_sharing` refuses programs that can observe the copy.
    """
    ctx = frame.ctx
    a, b = left[0], right[0]
    require_alike(ctx, ctx.deciding, a, b)
    label = "result" if name == RESULT else name
    if is_number(a) and is_number(b):
        kind = join(as_scalar(a, span).kind, as_scalar(b, span).kind)
        node = ctx.node(label, (), kind.dtype)
        frame.variables[name] = node
        for (value, block), at in zip((left, right), store_spans or (span, span), strict=True):
            with _append_to(frame, block):
                require_joined(ctx, as_scalar(value, at), kind, spelled(name), at)
                ctx.set(node, as_scalar(value, span).expr, at)
        ctx.derive_choice(node, ctx.deciding)
        return Scalar(Read(node, ()), kind)
    if isinstance(a, Array) and isinstance(b, Array) and _can_share_array(frame, name, a, b):
        if name != RESULT and len(_caller_arrays(frame, a) | _caller_arrays(frame, b)) > 1:
            return _ambiguous_array(name, span)
        kind = join(a.kind, b.kind)
        array = alike(ctx, label, (a, b), a.shape, kind, span)
        for value, block in (left, right):
            assert isinstance(value, Array)
            with _append_to(frame, block):
                copy_into(ctx, array, value, span)
                binds(ctx, array, value, span)
        note_choice(ctx, ctx.deciding, array, (a, b))
        return replace(array, listed=max(a.listed, b.listed))
    groups = isinstance(a, Group) and isinstance(b, Group) and a.named_tuple is b.named_tuple
    if groups and isinstance(a, Group) and isinstance(b, Group) and len(a.items) == len(b.items):
        parts = tuple(
            x if same_binding(x, y) else
            _merge_binding(frame, f"{name}_{n}", (x, left[1]), (y, right[1]), span)
            for n, (x, y) in enumerate(zip(a.items, b.items, strict=True))
        )  # fmt: skip
        return replace(a.of(parts), identity=joined_identity(a, b))
    if is_result(name):
        raise _different_results(a, b, span)
    unset = next((end for end in (a, b) if isinstance(end, Unset)), None)
    if name in frame.reserved and Static(False) in (a, b):
        unset = Unset(
            f"is {describe(b if a == Static(False) else a)} where the loop is left, and nothing "
            "before", span, (f"give it a value of that kind before the loop: `{name} = ...`",)
        )  # fmt: skip
    return unset or _incompatible_sides(name, a, b, span)


def _different_results(a: Value, b: Value, span: Span) -> CdError:
    """Return the error CD0425 of paths that return values of no common type or shape."""
    loop = span.text.startswith(("for ", "while "))
    paths = "this loop and what follows it" if loop else "the sides of this `if`"
    shown = f"{describe(a)} and {describe(b)}"
    if isinstance(a, Array) and isinstance(b, Array) and a.rank == b.rank and a.shape != b.shape:
        what, helps = f"arrays of different sizes: {shown}", (
            "make one array before the `if`, as large as it gets: `out = np.zeros(n)`, and return "
            "the part that is filled, `out[:k]`, by one `return` at the end",
        )  # fmt: skip
        if describe(a) == describe(b):
            what = f"arrays whose sizes are found on each path by itself: {shown}"
        return error("CD0425", CdTypeError, f"{paths} return {what}", span, helps=helps)
    return error("CD0425", CdTypeError, f"{paths} return different things: {shown}", span)


def _incompatible_sides(name: str, a: Value, b: Value, span: Span) -> Unset:
    """Return the unset value of a name whose two bindings have no common type."""
    alike = isinstance(a, Array) and isinstance(b, Array) and a.shape == b.shape
    helps = (f"give both one element type: `{name} = {name}.astype(...)`",) if alike else ()
    return Unset(f"is {describe(a)} or {describe(b)}, depending on a test", span, helps)


def _can_share_array(frame: Frame, name: str, a: Array, b: Array) -> bool:
    """Whether one array can store either: arrays of the caller keep their element type."""
    if a.shape != b.shape or bool(a.listed) != bool(b.listed):
        return False
    if name == RESULT or a.kind.dtype == b.kind.dtype:
        return True
    return not (_caller_arrays(frame, a) or _caller_arrays(frame, b))


@contextmanager
def _append_to(frame: Frame, block: list[Statement]) -> Iterator[None]:
    """Append the statements emitted inside to a block that was collected before."""
    outer, frame.ctx.out = frame.ctx.out, block
    try:
        yield
    finally:
        frame.ctx.out = outer


def _caller_arrays(frame: Frame, value: Array) -> set[Node]:
    """Return the caller's arrays of which an array is, or may be, a part."""
    if value.base is None:
        return set()
    inputs = {parameter.node for parameter in frame.ctx.parameters.values()}
    return inputs & sources(frame, value.base.node)


def _select_branch(frame: Frame, statement: s.If, test: Expr, run: Run) -> None:
    """Elaborate both sides of an `if` at every point of index variables; names become selects."""
    entry = dict(frame.names)
    with frame.ctx.under(test):
        run(frame, statement.then)
        first = frame.names
    frame.names = dict(entry)
    with frame.ctx.under(negate(test)):
        run(frame, statement.orelse)
        second = frame.names
    out: dict[str, Value] = {}
    for name in {**first, **second}:
        left, right = (_binding(frame, side, name) for side in (first, second))
        if left is None or right is None:
            out[name] = Unset("is set on one side of an `if` only", statement.span)
        elif left == right:
            out[name] = left
        elif is_number(left) and is_number(right):
            a, b = as_scalar(left, statement.span), as_scalar(right, statement.span)
            require_both_joined(frame.ctx, test, (a, b), spelled(name), statement.span)
            out[name] = Scalar(*select(test, (a.expr, a.kind), (b.expr, b.kind)))
        else:
            out[name] = Unset("differs between the sides of an `if`", statement.span)
    frame.names = out
