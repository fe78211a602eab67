"""Loops in each other that are left together: by a flag that the inner one sets where it is left.

    for i: for j: if t: found = True; break
           if found: break

It changes nothing.

>>> program, _ = optimize(lowered('''
... found = False
... for i in range(8):
...     for j in range(9):
...         if x[i, j] > 3:
...             found = True
...             break
...     if found:
...         break
... y[0] = found
... ''', y="b[1]", x="f32[8, 9]"), Target("cuda"))
>>> at = next(n for n, one in enumerate(program.kernels[0].body) if isinstance(one, For))
>>> body = program.kernels[0].body
>>> made = nest_that_is_left(body[at], body[:at], frozenset())
>>> [loop.symbol.name for loop in made.loops]
['i', 'j']
"""

from __future__ import annotations

from collections.abc import Iterator

from ....base.dataclass import dataclass
from ...analysis.dependence import is_left
from ...analysis.expression_cost import cost
from ...analysis.guarded_reads import negated
from ...analysis.predicate_facts import after, is_never, is_sure
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.assignments import Break, Continue
from ...ir.expressions import Apply, Expr, Position, reads
from ...ir.loops import Comment, For, If, Stmt, Store
from ...ir.ops import OPS
from ...ir.walk import own_reads, own_writes, statements

Body = tuple[Stmt, ...]
CHEAP = 8
"""A value up to this cost is worth computing in each round."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops in each other that a `Break` in the body leaves all of."""

    loops: tuple[For, ...]
    body: Body
    before: Body = ()
    """What rounds of the loops around do first, which need be done only once."""


def nest_that_is_left(
    loop: For, before: Body, only: frozenset[int], outer: tuple[For, ...] = ()
) -> Nest | None:
    """Return the nest of a loop that is left, None where it goes on to its end; `before` are the
    statements that ran before it, `only` the temporaries that nothing but it, and loops that are
    `outer` of it, use."""
    if loop.kind != "serial" or not is_left(loop.body):
        return None
    return _both(loop, before, only, outer) or Nest((loop,), loop.body)


def _both(loop: For, before: Body, only: frozenset[int], outer: tuple[For, ...]) -> Nest | None:
    """Return the nest of a loop and one in it that are left together, None where they are not."""
    plain = tuple(stmt for stmt in loop.body if not isinstance(stmt, Comment))
    at = next((n for n, stmt in enumerate(plain) if isinstance(stmt, For)), None)
    test = None if at is None else _leaves(plain[at + 1 :])
    if at is None or test is None:
        return None
    start, whole = plain[:at], plain[at]
    assert isinstance(whole, For), "that is what was looked for"
    inner = nest_that_is_left(whole, (*before, *start), only, (*outer, loop))
    stores = [one for one in start if isinstance(one, Store) and not one.access.node.rank]
    if inner is None or inner.before or len(stores) < len(start):
        return None
    flags = frozenset(read.node.id for read in reads(test))
    mine = tuple(one for one in stores if one.access.node.id not in flags)
    starts = tuple(one for one in stores if one.access.node.id in flags)
    if any(cost(one.value) > CHEAP for one in mine):
        return None
    known = ranges((*outer, loop, *inner.loops))
    if not is_never(test, after((*before, *start)), known):
        return None
    events = tuple(_events(inner.body))
    if not events or not all(is_sure(test, after(event), known) for event in events):
        return None
    if not _are_set_by(flags, inner.body, events):
        return None
    body = (*mine, *inner.body)
    if all(one.access.node.id in only for one in starts):
        return Nest((loop, *inner.loops), body)
    ends = (loop.hi, loop.lo) if loop.step > 0 else (loop.lo, loop.hi)
    some = Apply(OPS["gt"], (Position(ends[0]), Position(ends[1])), dtypes.bool_)
    return Nest((loop, *inner.loops), body, (If(some, starts),))


def _leaves(tail: Body) -> Expr | None:
    """Return the test that leaves a loop at the end of its round, None where there is more."""
    if not tail or not isinstance(tail[0], If) or len(tail) > 2:
        return None
    test, behind = tail[0].test, tail[1:]
    if behind and (tail[0].other or not isinstance(behind[0], Break)):
        return None
    ends = [
        [type(one) for one in part if not isinstance(one, Comment)]
        for part in (tail[0].then, tail[0].other or behind)
    ]
    if ends[0] == [Break] and ends[1] in ([], [Continue]):
        return test
    return negated(test) if ends == [[Continue], [Break]] else None


def _events(body: Body) -> Iterator[Body]:
    """Yield the lists that end in a `Break`."""
    for stmt in body:
        if isinstance(stmt, If):
            for part in (stmt.then, stmt.other):
                plain = tuple(one for one in part if not isinstance(one, Comment))
                if plain and isinstance(plain[-1], Break):
                    yield plain
                else:
                    yield from _events(part)


def _are_set_by(flags: frozenset[int], body: Body, events: tuple[Body, ...]) -> bool:
    """Whether nothing else in rounds uses flags, and each of these lists is left at its end."""
    if any(is_left(event[:-1]) for event in events):
        return False
    theirs = {id(stmt) for event in events for stmt in event}
    inside = statements(body)
    used = [n.id for s in inside for n in own_reads(s)]
    used += [n.id for s in inside if id(s) not in theirs for n in own_writes(s)]
    return flags.isdisjoint(used)
