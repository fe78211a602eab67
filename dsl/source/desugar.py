"""Desugaring of `for ... else` and `while ... else`: a flag records whether a `break` ran."""

from __future__ import annotations

from dataclasses import replace

from . import surface as s

Body = tuple[s.Statement, ...]


def has_break(body: Body) -> bool:
    """Whether a loop's body has a `break` of that loop."""
    return any(
        isinstance(statement, s.Break) or any(map(has_break, nested_blocks(statement)))
        for statement in body
    )


def nested_blocks(statement: s.Statement) -> tuple[Body, ...]:
    """Return the nested blocks of a statement that is no loop: a `break` there leaves it too."""
    match statement:
        case s.If(_, then, orelse):
            return then, orelse
        case s.Comment(_, inner):
            return (inner,)
        case _:
            return ()


def leaves(body: Body) -> bool:
    """Whether statements leave their iteration or loop, jumps of inner loops not counted."""
    return any(
        isinstance(statement, s.Break | s.Continue) or any(map(leaves, nested_blocks(statement)))
        for statement in body
    )


def desugar_else(loop: s.For | s.While, orelse: Body) -> list[s.Statement]:
    """Return a loop and its `else` block, which runs where no `break` left the loop."""
    if not orelse or not has_break(loop.body):
        return [loop, *orelse]
    span = loop.span
    flag = s.Name(f"broken-{span.line}", span)
    flagged = replace(loop, body=_set_flag(loop.body, flag))
    test = s.Unary("not", flag, span)
    clear_flag = s.Assign((flag,), s.Literal(False, span), span)
    reserved = tuple(
        s.Reserve(name, span) for name in sorted(_assigned_at_exits(loop.body, orelse))
    )
    return [clear_flag, *reserved, flagged, s.If(test, orelse, (), span)]


def _assigned_at_exits(body: Body, orelse: Body) -> frozenset[str]:
    """Return the names definitely assigned at every `break` of a loop and at the end of `else`."""
    at_breaks: list[frozenset[str]] = []
    _definitely_assigned(body, frozenset(), at_breaks)
    at_end = _definitely_assigned(orelse, frozenset(), [])
    return frozenset.intersection(*at_breaks, *(() if at_end is None else (at_end,)))


def _definitely_assigned(
    body: Body, names: frozenset[str], at_breaks: list[frozenset[str]]
) -> frozenset[str] | None:
    """Return the names definitely assigned after statements, None where the end is unreachable;
    append those at each `break` to `at_breaks`."""
    for statement in body:
        match statement:
            case s.Break():
                at_breaks.append(names)
                return None
            case s.Continue() | s.Return() | s.Raise():
                return None
            case s.If(_, then, orelse):
                ends = [_definitely_assigned(side, names, at_breaks) for side in (then, orelse)]
                reachable = [end for end in ends if end is not None]
                if not reachable:
                    return None
                names = frozenset.intersection(*reachable)
            case s.Comment(_, inner):
                end = _definitely_assigned(inner, names, at_breaks)
                if end is None:
                    return None
                names = end
            case s.Assign(targets, _):
                names = names.union(*map(_target_names, targets))
            case s.Declare(target, _, _):
                names = names.union(_target_names(target))
            case _:
                pass
    return names


def _target_names(target: s.Expr) -> frozenset[str]:
    match target:
        case s.Name(name):
            return frozenset({name})
        case s.Sequence(items, _):
            return frozenset().union(*map(_target_names, items))
        case _:
            return frozenset()


def _set_flag(body: Body, flag: s.Name) -> Body:
    """Return a loop's body in which each `break` sets the flag first."""
    out: list[s.Statement] = []
    for statement in body:
        match statement:
            case s.Break(span):
                out += [s.Assign((flag,), s.Literal(True, span), span), statement]
            case s.If(_, then, orelse):
                out.append(
                    replace(statement, then=_set_flag(then, flag), orelse=_set_flag(orelse, flag))
                )
            case s.Comment(_, inner):
                out.append(replace(statement, body=_set_flag(inner, flag)))
            case _:
                out.append(statement)
    return tuple(out)
