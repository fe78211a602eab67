"""What functions of the library assign says of which call it is: a trace tells them by that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...base.diagnostic import Span
from ...lowering.ir.assignments import Assign, Statement
from ...lowering.ir.rewrite import map_statements
from .builder import Context


@contextmanager
def standing_in(ctx: Context, call: Span) -> Iterator[None]:
    """A function of the library is elaborated inside: what it assigns says of which call it is."""
    begin = len(ctx.out)
    yield
    body = tuple(ctx.out[begin:])
    ctx.out[begin:] = map_statements(body, lambda one: (_part_of(one, call),))


def _part_of(statement: Statement, call: Span) -> Statement:
    if isinstance(statement, Assign) and statement.call is None:
        return replace(statement, call=call)
    return statement
