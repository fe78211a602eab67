"""Comments stay with what they head, where statements go.

>>> [stmt.text for stmt in headed([Comment("gone"), None, Comment("left")])]
['left']
"""

from __future__ import annotations

from .loops import Comment, Stmt


def headed(body: list[Stmt | None]) -> tuple[Stmt, ...]:
    """Return what is left of statements, None where one went: a comment goes with what it heads."""
    left = tuple([stmt for stmt in body if stmt is not None])
    if len(left) == len(body):  # as mostly
        return left
    found: list[Stmt] = []
    comment: Comment | None = None
    dropped = False
    for stmt in body:
        if stmt is None:
            dropped = True
            continue
        if comment is not None and not (isinstance(stmt, Comment) and dropped):
            found.append(comment)
        if isinstance(stmt, Comment):
            comment, dropped = stmt, False
            continue
        comment, dropped = None, False
        found.append(stmt)
    if comment is not None and not dropped:
        found.append(comment)
    return tuple(found)
