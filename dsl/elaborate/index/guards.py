"""Elaboration of guards: an `if` on index variables restricts the domain of the statements inside.

The test holds as it was on entry, whatever the statements inside write. Where they are several,

    if x.sum() > 0 and a[i] > 0:    # what is the same at all points is stored in a variable,
        a[i] = 0                    # what is read at a point, with the rest of the test, in a mask
        y[i] = 1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....base.diagnostic import CdError, CdSyntaxError
from ....lowering.ir.assignments import Check, Statement
from ....lowering.ir.expressions import Expr, Read, walk
from ....lowering.ir.walk import reads, statements
from ...source import surface as s
from ...values.builder import error
from ...values.values import Array, Scalar
from ..expressions import evaluate
from ..operators import value_of
from ..scope import Frame, Guard, Run, parts, restore, snapshot
from .free_variables import free_letters, idle_reduction
from .notation import elaborated_test, index_statement
from .point_writes import written_outside


def guard(frame: Frame, statement: s.If, names: tuple[str, ...], run: Run) -> None:
    """Elaborate an `if` on index variables: it restricts the domain of every statement inside.

    A test that reads arrays and guards more than one statement is evaluated once.
    CdSyntaxError CD0509 for a reduction in it that binds none of its index variables.
    """
    if (idle := idle_reduction(frame, statement)) is not None:
        raise _reduces_nothing(idle)
    outer, kept, test, mask = frame.guards, dict[str, Scalar](), statement.test, None
    if _count((*statement.then, *statement.orelse)) > 1:
        if not any(free_letters(frame, part, names) for part in _subscripts(test)):
            test = _store_invariant_numbers(frame, test, names, kept, True)
        if _reads_array(frame, test, names):
            mask = _evaluate_mask(frame, test, names)
    try:
        frame.guards = (*outer, Guard(test, False, names, mask))
        run(frame, statement.then)
        frame.guards = (*outer, Guard(test, True, names, mask))
        run(frame, statement.orelse)
    finally:
        frame.guards = outer
        frame.locals = frame.locals - kept.keys()
        for name in kept:
            frame.names.pop(name, None)


def _count(body: tuple[s.Statement, ...]) -> int:
    """Return the number of assignments among statements, nested ones included."""
    number = 0
    for statement in body:
        match statement:
            case s.If(_, then, other):
                number += _count((*then, *other))
            case s.Comment(_, inner):
                number += _count(inner)
            case _:
                number += 1
    return number


def _reduces_nothing(call: s.Call) -> CdError:
    """Return the error for a reduction of a guard's test without index variables of its own."""
    name = call.function.span.text
    return error(
        "CD0509", CdSyntaxError,
        f"`{name}(...)` reduces over nothing: every index in it is on the left of a statement "
        "inside the `if`", call.span,
        helps=(f"name the index to reduce over, one that is not on the left: `{name}[k](...)`",),
    )  # fmt: skip


def _store_invariant_numbers(
    frame: Frame, node: s.Expr, names: tuple[str, ...], kept: dict[str, Scalar], certain: bool
) -> s.Expr:
    """Return a test whose numbers that read arrays, the same at all points, are stored before it.

    `certain` tells that the node is evaluated whatever the operands before it are.
    """

    def operand(inner: s.Expr, also: bool = True) -> s.Expr:
        return _store_invariant_numbers(frame, inner, names, kept, certain and also)

    if not free_letters(frame, node, names):
        return _store_number(frame, node, kept, certain)
    match node:
        case s.Logical(op, items):
            fixed = next(n for n, x in enumerate(items) if free_letters(frame, x, names))
            if fixed > 1:  # the first operands decide together, as a number, which others run
                items = (s.Logical(op, items[:fixed], node.span), *items[fixed:])
            return replace(node, operands=tuple(operand(x, not n) for n, x in enumerate(items)))
        case s.Compare(items):
            return replace(node, operands=tuple(operand(x, n < 2) for n, x in enumerate(items)))
        case s.Unary(_, inner):
            return replace(node, operand=operand(inner))
        case s.Binary(_, left, right):
            return replace(node, left=operand(left), right=operand(right))
        case _:
            return node


def _store_number(frame: Frame, node: s.Expr, kept: dict[str, Scalar], certain: bool) -> s.Expr:
    """Return the name of a variable in which a number that reads arrays is stored; other nodes as
    they are, and those that only the operands before them let run."""
    ctx = frame.ctx
    if isinstance(node, s.Literal | s.Name):
        return node
    state, early, guarded = snapshot(frame), len(ctx.prologue), set(ctx.guarded)
    try:
        with ctx.block() as out:
            value = value_of(evaluate(frame, node))
    except CdError:
        if certain:
            raise
        out, value = [], None
    if isinstance(value, Array) and not value.rank:
        value = Scalar(value.body, value.kind)
    checks = (isinstance(part, Check) for part in statements((*out, *ctx.prologue[early:])))
    is_free = not any(checks) and written_outside(out, ctx.locals[state.locals :]) is None
    if not isinstance(value, Scalar) or not (
        (certain or is_free) and _reads_elements(value.expr, out)
    ):
        restore(frame, state)
        ctx.prologue[early:] = [x for x in ctx.prologue[early:] if not isinstance(x, Check)]
        ctx.guarded = guarded
        return node
    ctx.out += out
    name = "before"
    while name in frame.names or name in frame.locals:
        name += "_"
    kept[name] = Scalar(Read(ctx.variable(name, value, node.span), ()), value.kind)
    frame.names[name] = kept[name]
    frame.locals = frame.locals | {name}
    return s.Name(name, node.span)


def _reads_elements(expr: Expr, out: list[Statement]) -> bool:
    """Whether an expression, or statements that compute it, read arrays with axes."""
    nodes = {part.node for part in walk(expr) if isinstance(part, Read)} | set(reads(out))
    return any(node.shape for node in nodes)


def _reads_array(frame: Frame, test: s.Expr, names: tuple[str, ...]) -> bool:
    """Whether a test contains a subscript, or a call that reads an array."""
    if any(True for _ in _subscripts(test)):
        return True
    if not any(isinstance(part, s.Call) for part in _walk_parts(test)):
        return False
    return _reads_elements(*elaborated_test(frame, test, names))


def _subscripts(test: s.Expr) -> Iterator[s.Subscript]:
    return (part for part in _walk_parts(test) if isinstance(part, s.Subscript))


def _walk_parts(node: object) -> Iterator[object]:
    """Yield a node of the syntax and all nodes below it, in pre-order."""
    yield node
    for part in parts(node):
        yield from _walk_parts(part)


def _evaluate_mask(frame: Frame, test: s.Expr, names: tuple[str, ...]) -> Array:
    """Return the guard's test over its index variables, stored in an array of bools."""
    mask_name = "where"
    while mask_name in frame.names or mask_name in frame.locals:
        mask_name += "_"
    indices = tuple(s.Name(name, test.span) for name in names)
    target = s.Subscript(s.Name(mask_name, test.span), indices, test.span)
    outer, frame.guards = frame.guards, ()
    frame.locals = frame.locals | {mask_name}
    try:
        index_statement(frame, target, None, test, test.span)
        mask = frame.names.pop(mask_name)
    finally:
        frame.guards = outer
        frame.locals = frame.locals - {mask_name}
    assert isinstance(mask, Array)
    return mask
