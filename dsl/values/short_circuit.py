"""Short-circuit evaluation: operands that are evaluated under a predicate.

These are later operands of `and`, `or` and chained comparisons, and the sides of `a if c else b`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ...base.diagnostic import Span
from ...lowering.ir.assignments import Alloc, Assign, Block, Branch, Check, Let, Statement
from ...lowering.ir.expressions import Expr, Position, Read, Select, walk
from ...lowering.ir.indexing import const
from ...lowering.ir.node import Node
from ...lowering.ir.walk import free_symbols, statements, writes
from .builder import Context
from .types import BOOL, negate
from .values import Scalar

T = TypeVar("T")


def under(
    ctx: Context, test: Expr, evaluate: Callable[[], T], span: Span, holds: bool = True
) -> tuple[Expr, T]:
    """Return a test, and the value of `evaluate()` under it, or under its negation (`holds=False`).

    Statements with side effects, of inlined functions, go into a branch. They may write what the
    test reads, so the test is saved in a variable then, and the value is elaborated again.
    """
    count = len(ctx.locals)
    wanted = test if holds else negate(test)
    with ctx.block() as out, ctx.under(wanted):
        value = evaluate()
    index_vars = {r.symbol for r in ctx.domain}
    varies = ctx.uses is not None or index_vars & free_symbols(test)
    if varies or _is_speculatable(out, ctx.locals[count:]):
        ctx.out += out
        return test, value
    del ctx.locals[count:]
    saved = Read(ctx.variable("holds", Scalar(test, BOOL), span), ())
    predicate = saved if holds else negate(saved)
    with ctx.block() as out, ctx.under(predicate), ctx.knowing(ctx.assumptions.assuming(wanted)):
        value = evaluate()
    ctx.out += _predicate(predicate, out, span)
    return saved, value


def _is_speculatable(out: list[Statement], new_nodes: list[Node]) -> bool:
    """Whether statements may be executed speculatively, where their results are not used.

    They write only new arrays, and their reads are in range: other indices would have checks.
    """
    inner = list(statements(out))
    if all(isinstance(statement, Let | Check | Alloc) for statement in inner):
        return not any(
            isinstance(statement, Check) and statement.fault.code[:5] == "CD076"
            for statement in inner
        )
    plain = all(isinstance(statement, Assign | Block | Let | Alloc) for statement in inner)
    return plain and set(writes(out)) <= set(new_nodes)


def _predicate(test: Expr, out: Iterable[Statement], span: Span) -> list[Statement]:
    """Return statements predicated on a test, by branches.

    What later code uses stays outside: allocations, and symbols, which are zero elsewhere.
    """
    result: list[Statement] = []
    pending: list[Statement] = []

    def flush() -> None:
        if pending:
            result.append(Branch(test, tuple(pending), (), span))
            pending.clear()

    for statement in out:
        match statement:
            case Let(symbol, value, let_span):
                flush()
                if any(isinstance(part, Read) for part in walk(value)):
                    value = Select(test, value, Position(const(0)))
                result.append(Let(symbol, value, let_span))
            case Alloc():
                flush()
                result.append(statement)
            case Block(text, body) if any(isinstance(part, Alloc) for part in statements(body)):
                flush()
                result.append(Block(text, tuple(_predicate(test, body, span)), statement.span))
            case _:
                pending.append(statement)
    flush()
    return result
