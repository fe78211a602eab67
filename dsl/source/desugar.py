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
    either = tuple(s.Reserve(name, span) for name in sorted(_set_either_way(loop.body, other)))
    return [first, *either, whole, s.If(test, other, (), span)]


def _set_either_way(body: Body, other: Body) -> frozenset[str]:
    """Return the names that every `break` of a loop's body and its `else` have surely set."""
    leaving: list[frozenset[str]] = []
    _surely_set(body, frozenset(), leaving)
    ended = _surely_set(other, frozenset(), [])
    return frozenset.intersection(*leaving, *(() if ended is None else (ended,)))


def _surely_set(
    body: Body, names: frozenset[str], leaving: list[frozenset[str]]
) -> frozenset[str] | None:
    """Return the names that are set behind statements, None where nothing gets there; add those at
    each `break` to `leaving`."""
    for statement in body:
        match statement:
            case s.Break():
                leaving.append(names)
                return None
            case s.Continue() | s.Return() | s.Raise():
                return None
            case s.If(_, then, other):
                ends = [_surely_set(side, names, leaving) for side in (then, other)]
                some = [end for end in ends if end is not None]
                if not some:
                    return None
                names = frozenset.intersection(*some)
            case s.Comment(_, inner):
                end = _surely_set(inner, names, leaving)
                if end is None:
                    return None
                names = end
            case s.Assign(targets, _):
                names = names.union(*map(_plain_names, targets))
            case s.Declare(target, _, _):
                names = names.union(_plain_names(target))
            case _:
                pass
    return names


def _plain_names(target: s.Expr) -> frozenset[str]:
    match target:
        case s.Name(name):
            return frozenset({name})
        case s.Sequence(items, _):
            return frozenset().union(*map(_plain_names, items))
        case _:
            return frozenset()


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
