"""What Python's loops have beyond the ones of `Surface`: an `else`, said by a flag."""

from __future__ import annotations

from dataclasses import replace

from . import surface as s

Body = tuple[s.Statement, ...]


def breaks(body: Body) -> bool:
    """Whether statements may `break` out of the loop that they are the body of."""
    return any(isinstance(one, s.Break) or any(map(breaks, blocks(one))) for one in body)


def blocks(statement: s.Statement) -> tuple[Body, ...]:
    """Return the blocks of a statement that a jump in them leaves too: those that are no loops."""
    match statement:
        case s.If(_, then, other):
            return then, other
        case s.Comment(_, inner):
            return (inner,)
        case _:
            return ()


def with_else(loop: s.For | s.While, other: Body) -> list[s.Statement]:
    """Return a loop and its `else`, which runs where no `break` has left the loop."""
    if not other or not breaks(loop.body):
        return [loop, *other]
    span = loop.span
    flag = s.Name(f"broken-{span.line}", span)
    whole = replace(loop, body=_flagged(loop.body, flag))
    test = s.Unary("not", flag, span)
    first = s.Assign((flag,), s.Literal(False, span), span)
    return [first, whole, s.If(test, other, (), span)]


def _flagged(body: Body, flag: s.Name) -> Body:
    """Return a loop's body whose breaks set the flag."""
    out: list[s.Statement] = []
    for statement in body:
        match statement:
            case s.Break(span):
                out += [s.Assign((flag,), s.Literal(True, span), span), statement]
            case s.If(_, then, other):
                out.append(
                    replace(statement, then=_flagged(then, flag), other=_flagged(other, flag))
                )
            case s.Comment(_, inner):
                out.append(replace(statement, body=_flagged(inner, flag)))
            case _:
                out.append(statement)
    return tuple(out)
