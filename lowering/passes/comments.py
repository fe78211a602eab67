"""Comments stay with what they head, where statements go.

>>> [stmt.text for stmt in headed((Comment("gone"), None, Comment("left")))]
['left']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir.loops import Comment, Stmt


def headed(body: Iterable[Stmt | None]) -> Iterator[Stmt]:
    """Yield statements, of which None is left where one goes: a comment goes with what it heads."""
    comment: Comment | None = None
    dropped = False
    for stmt in body:
        if stmt is None:
            dropped = True
            continue
        if comment is not None and not (isinstance(stmt, Comment) and dropped):
            yield comment
        if isinstance(stmt, Comment):
            comment, dropped = stmt, False
            continue
        comment, dropped = None, False
        yield stmt
    if comment is not None and not dropped:
        yield comment
