"""Expressions that are evaluated only where a test holds: the later operands of `and` and `or`,
one side of `a if c else b`, what stands behind the first comparison that fails."""

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
    """Return a test, and what is evaluated where it holds, or where it does not.

    What an inlined function does there is done in a branch. It may change what the test is made of,
    so the test is a variable then, and everything is elaborated again under that.
    """
    count = len(ctx.locals)
    wanted = test if holds else negate(test)
    with ctx.block() as out, ctx.under(wanted):
        value = evaluate()
    letters = {r.symbol for r in ctx.domain}
    open_ = ctx.uses is not None or letters & free_symbols(test)
    if open_ or _is_harmless(out, ctx.locals[count:]):
        ctx.out += out
        return test, value
    del ctx.locals[count:]
    kept = Read(ctx.variable("holds", Scalar(test, BOOL), span), ())
    side = kept if holds else negate(kept)
    with ctx.block() as out, ctx.under(side), ctx.knowing(ctx.known.assuming(wanted)):
        value = evaluate()
    ctx.out += _only_where(side, out, span)
    return kept, value


def _is_harmless(out: list[Statement], made: list[Node]) -> bool:
    """Whether statements may run where nobody asks for what they give.

    They fill new arrays, which nobody else sees, and read what is there: an index that may be out
    of range would have a check.
    """
    inner = list(statements(out))
    if all(isinstance(one, Let | Check | Alloc) for one in inner):
        return not any(isinstance(one, Check) and one.fault.code[:5] == "CD076" for one in inner)
    plain = all(isinstance(one, Assign | Block | Let | Alloc) for one in inner)
    return plain and set(writes(out)) <= set(made)


def _only_where(test: Expr, out: Iterable[Statement], span: Span) -> list[Statement]:
    """Return statements that run only where a test holds, and what is needed behind them: symbols,
    which are zero elsewhere, and storage."""
    found: list[Statement] = []
    run: list[Statement] = []

    def close() -> None:
        if run:
            found.append(Branch(test, tuple(run), (), span))
            run.clear()

    for one in out:
        match one:
            case Let(symbol, value, place):
                close()
                if any(isinstance(part, Read) for part in walk(value)):
                    value = Select(test, value, Position(const(0)))
                found.append(Let(symbol, value, place))
            case Alloc():
                close()
                found.append(one)
            case Block(text, body) if any(isinstance(part, Alloc) for part in statements(body)):
                close()
                found.append(Block(text, tuple(_only_where(test, body, span)), one.span))
            case _:
                run.append(one)
    close()
    return found
