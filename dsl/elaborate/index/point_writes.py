"""What is evaluated at the points of index variables writes nothing but arrays that it makes.

y[i] = x[i] + bump(x)    # refused, where `bump` writes `x`: before, after, or at each point?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from ....base.diagnostic import CdSyntaxError, Span
from ....lowering.ir.assignments import Statement
from ....lowering.ir.node import Node
from ....lowering.ir.walk import direct_writes, statements
from ...values.builder import Context, error
from ...values.fix_hints import before_the_points


def written_outside(out: Iterable[Statement], made: Collection[Node]) -> Statement | None:
    """Return the first of some statements that writes another node than those that they made."""
    inner = statements(tuple(out))
    return next((x for x in inner if not set(direct_writes(x)) <= set(made)), None)


@contextmanager
def at_points(ctx: Context, span: Span) -> Iterator[None]:
    """Context manager: elaborate an expression at the points of index variables.

    CdSyntaxError CD0522 where it writes an array that it did not make.
    """
    count = len(ctx.locals)
    with ctx.block() as out:
        yield
    made = frozenset(ctx.locals[count:])
    writing = written_outside(out, made)
    if writing is not None:
        name = next(node.label for node in direct_writes(writing) if node not in made)
        raise error(
            "CD0522", CdSyntaxError,
            f"a call in `{span.text}` writes `{name}`, and would have to run at every point of the "
            "index letters", span,
            helps=("call what writes before, in a statement of its own: `t = f(...)`",
                   *before_the_points("")),
        )  # fmt: skip
    ctx.out += out
