"""Nests with nothing between their loops: what stands there is done for each point.

    for i: s = f(i); for j: body    becomes    for i: for j: s = f(i); body

Needs scalars that each round of the outer loop has of its own, of values that are cheap and that
the loop inside does not change, and a loop inside whose rounds are independent. It is done where
that loop has too few rounds for a block of its own, or much to do in each of them.

>>> program = lowered('''
... s = sqrt(v)
... y[i, j] = x[i, j] * s[i]
... ''', y="f32[900, 8]", x="f32[900, 8]", v="f32[900]")
>>> program = optimize(program, Target("cuda"))[0]
>>> made = inward(program, facts_of(program))
>>> [len(nest_of(one.kernels[0].body[-1])[0]) for one in (program, made)]
[1, 2]
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..analysis.expression_cost import cost
from ..analysis.parallel_band import Facts, around, band, nest_of, trips, within
from ..ir.loops import Comment, For, Program, Stmt, Store
from ..ir.rewrite import over_kernels, with_bodies
from ..ir.walk import bodies, reads, statements, writes

CHEAP = 8
"""A value up to this cost is worth computing for each point."""
FEW = 1024
"""So many rounds are enough for a block."""
LONG = 32
"""A loop inside of a point with so many rounds is more than the values are."""


def inward(program: Program, facts: Facts) -> Program:
    """Return a program whose nests are perfect where that gives a device more to deal out."""

    def change(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(one for stmt in body for one in within_it(stmt))

    def within_it(stmt: Stmt) -> tuple[Stmt, ...]:
        found = _moved(stmt, facts) if isinstance(stmt, For) else None
        if found is not None:
            return found
        parts = tuple(change(part) for part in bodies(stmt))
        return (stmt if parts == bodies(stmt) else with_bodies(stmt, parts),)

    return over_kernels(program, change)


def _moved(loop: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """Return a loop with the scalars that it computes in the loop inside, None where they stay."""
    told = tuple(stmt for stmt in loop.body if isinstance(stmt, Comment))
    plain = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(plain) < 2 or not isinstance(plain[-1], For):
        return None
    scalars, inner = plain[:-1], plain[-1]
    own = facts.private(loop)
    changed = {node.id for node in writes((inner,))}
    for stmt in scalars:
        if not isinstance(stmt, Store) or stmt.access.node.rank or cost(stmt.value) > CHEAP:
            return None
        if stmt.access.node.id not in own or stmt.access.node.id in changed:
            return None
        if any(node.id in changed for node in reads((stmt,))):
            return None
    found = band(inner, facts)
    if found is None or found.serial:
        return None
    loops, body = nest_of(inner)
    if len(loops) != len(found.free):
        return None
    is_long = any(isinstance(s, For) and within((s,)) >= LONG for s in statements(body))
    counts = [trips(one) for one in loops]
    if not is_long and (None in counts or prod(count or 0 for count in counts) >= FEW):
        return None
    whole = around(loops, (*scalars, *body))
    return (*told, replace(loop, body=whole))
