"""Comments of removed statements: a comment is removed with the statements that it heads.

>>> [stmt.text for stmt in drop_removed([Comment("gone"), None, Comment("left")])]
['left']
"""

from __future__ import annotations

from .loops import Comment, Stmt


def drop_removed(body: list[Stmt | None]) -> tuple[Stmt, ...]:
    """Return the remaining statements, where None marks a removed one: a comment is removed with
    all that it heads."""
    remaining = tuple([stmt for stmt in body if stmt is not None])
    if len(remaining) == len(body):  # the usual case
        return remaining
    result: list[Stmt] = []
    comment: Comment | None = None
    dropped = False
    for stmt in body:
        if stmt is None:
            dropped = True
            continue
        if comment is not None and not (isinstance(stmt, Comment) and dropped):
            result.append(comment)
        if isinstance(stmt, Comment):
            comment, dropped = stmt, False
            continue
        comment, dropped = None, False
        result.append(stmt)
    if comment is not None and not dropped:
        result.append(comment)
    return tuple(result)
