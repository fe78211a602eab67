"""Comments of generated code: which of a body's comments are printed.

Lowering heads each statement of the source with its text. Passes merge, split and remove what they
head; what is left to say is one comment for a nest, and none for an assignment of a scalar. The
text of a block, which the user asked for, is always printed.

>>> from plusequals.base.diagnostic import Source
>>> body = Comment("gone", Span(Source("f.py", 1, "gone"), 1, 0, 1, 4)), Comment("a block")
>>> sorted(visible_comments(body, ""))
[1]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.assignments import Let
from ...lowering.ir.loops import Comment, Stmt, Store, Update
from ...lowering.ir.walk import statements


def visible_comments(body: Sequence[Stmt], heading: str) -> frozenset[int]:
    """Return the positions of the comments that are printed; `heading` is the last one before."""
    shown: set[int] = set()
    for at, stmt in enumerate(body):
        if not isinstance(stmt, Comment):
            continue
        if stmt.span is NOWHERE:
            shown.add(at)
            heading = ""
        elif stmt.text != heading and _heads_nest(stmt.span, body[at + 1 :]):
            shown.add(at)
            heading = stmt.text
    return frozenset(shown)


def _heads_nest(span: Span, rest: Sequence[Stmt]) -> bool:
    """Whether what follows, up to the next comment that heads something, has more of a statement
    than assignments of scalars."""
    spans = [getattr(stmt, "span", NOWHERE) for stmt in statements(tuple(_headed(rest)))]
    if all(stmt_span is NOWHERE for stmt_span in spans):  # a pass made all of it
        return bool(spans) and not isinstance(rest[0], Comment)
    return span in spans


def _headed(rest: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield the statements up to the next comment after one, without assignments of scalars."""
    has_statement = False
    for stmt in rest:
        if isinstance(stmt, Comment):
            if has_statement or stmt.span is NOWHERE:
                return
            continue
        has_statement = True
        if not _is_scalar_assignment(stmt):
            yield stmt


def _is_scalar_assignment(stmt: Stmt) -> bool:
    match stmt:
        case Store(access) | Update(access, pair=None):
            return not access.node.rank
        case Let():
            return True
        case _:
            return False
