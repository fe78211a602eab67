"""Checks that sizes decide are made ahead of loops: these then have an order that is open.

    for i in 1..n: for j in 1..m: check i < p; u[i, j] = f(u[i - 1, j], u[i, j - 1])
    becomes
    if n - 1 < p: for i in 1..n: for j in 1..m: u[i, j] = f(u[i - 1, j], u[i, j - 1])
    else:         for i in 1..n: for j in 1..m: check i < p; u[i, j] = ...

where rounds need each other, or add up, and what may fail in them keeps them in their order. The
host knows sizes without asking. Needs comparisons of indices, whose least value over all rounds
follows from what is known before the loops; other checks stay where they are.

>>> program, _ = optimize(lowered("for i in range(1, 9): x[i] = x[i - 1]", x="i64[9]"),
...     Target("cuda"))
>>> ahead(program, facts_of(program), fresh_for(program)) == program  # nothing is left to check
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..analysis.conjunctions import every, parts_of
from ..analysis.parallel_band import Facts, uses_of
from ..analysis.self_dependence import extreme
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Alloc, Permute, Print
from ..ir.bounds import difference
from ..ir.expressions import Apply, Const, Expr, Position
from ..ir.fresh import Fresh
from ..ir.indexing import Affine
from ..ir.loops import Check, For, If, Kernel, Program, Stmt, While
from ..ir.ops import OPS
from ..ir.rewrite import map_statements, rename
from ..ir.walk import binds, bodies, statements

Body = tuple[Stmt, ...]
OFFSETS = {"lt": (1, -1), "le": (1, 0), "gt": (-1, -1), "ge": (-1, 0)}
"""What to do to a difference that is not negative then: its sign, and what is added."""


def ahead(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program with checks ahead of loops that may be done in another order then."""
    locals_ = {node.id: node for node in program.locals}
    whole = uses_of(stmt for kernel in program.kernels for stmt in kernel.body)

    def made(stmt: Stmt) -> Body:
        if not isinstance(stmt, For | While):
            return (stmt,)
        decided = _decided(stmt, facts)
        if not decided:
            return (stmt,)
        tests = dict.fromkeys(test for tests in decided.values() for test in tests)
        bare = map_statements((stmt,), lambda one: () if id(one) in decided else (one,))
        here = uses_of(bare)
        mine = [n for n in here if n in locals_ and here[n] == whole[n]]
        copies = {number: fresh.like(locals_[number]) for number in mine}
        names = {s: fresh.symbol(s.name) for one in statements(bare) for s in binds(one)}
        return (If(every([*tests]), rename(bare, names, copies), (stmt,), stmt.span),)

    kernels = tuple(
        Kernel(kernel.name, tuple(one for stmt in kernel.body for one in made(stmt)))
        for kernel in program.kernels
    )
    return program if kernels == program.kernels else replace(program, kernels=kernels)


def _decided(stmt: For | While, facts: Facts) -> dict[int, list[Expr]]:
    """Return what has to hold for checks in a statement to hold, by the `id` of each of those that
    can be decided before."""
    inside = statements((stmt,))
    halts = Print, Permute, Alloc
    if any(isinstance(one, halts) for one in inside):
        return {}
    if isinstance(stmt, For) and facts.is_free(stmt, facts.private(stmt)):
        return {}
    bound = {symbol for one in inside for symbol in binds(one)}
    out: dict[int, list[Expr]] = {}
    for check, loops in _checks(stmt, ()):
        least = [_least(part, loops) for part in parts_of(check.test)]
        if any(one is None or one.symbols() & bound for one in least):
            continue
        zero = Const(0, dtypes.int64)
        out[id(check)] = [
            Apply(OPS["ge"], (Position(one), zero), dtypes.bool_)
            for one in least if one is not None
        ]  # fmt: skip
    return out


def _checks(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[tuple[Check, tuple[For, ...]]]:
    """Yield the checks in a statement, with the loops around each."""
    if isinstance(stmt, Check):
        yield stmt, loops
    inner = (*loops, stmt) if isinstance(stmt, For) else loops
    for part in bodies(stmt):
        for one in part:
            yield from _checks(one, inner)


def _least(test: Expr, loops: tuple[For, ...]) -> Affine | None:
    """Return what is not negative where a test holds in all rounds, None where that is not seen."""
    found = difference(test)
    if found is None or found[0] not in OFFSETS:
        return None
    sign, more = OFFSETS[found[0]]
    return extreme(found[1] * sign + more, ranges(loops), -1)
