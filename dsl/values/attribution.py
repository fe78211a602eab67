"""Attribution of inlined library statements to the user's call, by which traces group them."""

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
    """Context manager: assignments emitted inside get `call`, the library call they implement.

    Library functions call each other: the outermost call, which is the user's, remains.
    """
    begin = len(ctx.out)
    yield
    body = tuple(ctx.out[begin:])
    ctx.out[begin:] = map_statements(body, lambda statement: (_attribute_to(statement, call),))


def _attribute_to(statement: Statement, call: Span) -> Statement:
    if isinstance(statement, Assign):
        return replace(statement, call=call)
    return statement
