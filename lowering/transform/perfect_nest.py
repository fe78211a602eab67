"""Perfect nests by sinking scalars: definitions between loops move into the inner loop's body.

    for i: s = f(i); for j: body    becomes    for i: for j: s = f(i); body

Precondition: scalars that are private to an iteration of the outer loop, of cheap values that the
inner loop does not change, and an inner loop of independent iterations. It is done where that loop
has too few iterations for a thread block of its own, or much work in each of them.

>>> program = lowered('''
... s = sqrt(v)
... y[i, j] = x[i, j] * s[i]
... ''', y="f32[900, 8]", x="f32[900, 8]", v="f32[900]")
>>> program = optimize(program, Target("cuda"))[0]
>>> made = make_perfect_nests(program, facts_of(program))
>>> [len(perfect_nest(one.kernels[0].body[-1])[0]) for one in (program, made)]
[1, 2]
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from .. import thresholds
from ..analysis.expression_cost import cost
from ..analysis.parallel_band import (
    Facts,
    find_band,
    largest_trip_count,
    nest_loops,
    perfect_nest,
    static_trip_count,
)
from ..ir.loops import Comment, For, Program, Stmt, Store
from ..ir.rewrite import map_kernels, with_bodies
from ..ir.walk import bodies, reads, statements, writes


def make_perfect_nests(program: Program, facts: Facts) -> Program:
    """Return the program with nests made perfect where that exposes more parallelism to a
    device."""

    def change(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in body for new in rewrite(stmt))

    def rewrite(stmt: Stmt) -> tuple[Stmt, ...]:
        sunk = _sink_scalars(stmt, facts) if isinstance(stmt, For) else None
        if sunk is not None:
            return sunk
        parts = tuple(change(part) for part in bodies(stmt))
        return (stmt if parts == bodies(stmt) else with_bodies(stmt, parts),)

    return map_kernels(program, change)


def _sink_scalars(loop: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """Return a loop with its scalars sunk into the inner loop, None where they stay."""
    comments = tuple(stmt for stmt in loop.body if isinstance(stmt, Comment))
    code = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(code) < 2 or not isinstance(code[-1], For):
        return None
    scalars, inner = code[:-1], code[-1]
    private = facts.private(loop)
    changed = {node.id for node in writes((inner,))}
    for stmt in scalars:
        if (
            not isinstance(stmt, Store)
            or stmt.access.node.rank
            or cost(stmt.value) > thresholds.MAX_SUNK_COST
        ):
            return None
        if stmt.access.node.id not in private or stmt.access.node.id in changed:
            return None
        if any(node.id in changed for node in reads((stmt,))):
            return None
    inner_band = find_band(inner, facts)
    if inner_band is None or inner_band.serial:
        return None
    loops, body = perfect_nest(inner)
    if len(loops) != len(inner_band.free):
        return None
    is_long = any(
        isinstance(s, For) and largest_trip_count((s,)) >= thresholds.LONG_INNER_LOOP_ITERATIONS
        for s in statements(body)
    )
    counts = [static_trip_count(level) for level in loops]
    if not is_long and (
        None in counts or prod(count or 0 for count in counts) >= thresholds.ENOUGH_BLOCK_POINTS
    ):
        return None
    nest = nest_loops(loops, (*scalars, *body))
    return (*comments, replace(loop, body=nest))
