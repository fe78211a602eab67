"""Loop versioning on checks: a copy without checks, for sizes by which they surely hold.

    for i in 1..n: for j in 1..m: check i < p; u[i, j] = f(u[i - 1, j], u[i, j - 1])
    becomes
    if n - 1 < p: for i in 1..n: for j in 1..m: u[i, j] = f(u[i - 1, j], u[i, j - 1])
    else:         for i in 1..n: for j in 1..m: check i < p; u[i, j] = ...

where iterations depend on each other, or are reductions, and checks would fix their order. The host
evaluates the guard, for it knows sizes. Precondition: comparisons of index expressions, whose least
value over all iterations follows from what is known before the loops; other checks stay where they
are.

>>> program, _ = optimize(lowered("for i in range(1, 9): x[i] = x[i - 1]", x="i64[9]"),
...     Target("cuda"))
>>> version_loops(program, facts_of(program), fresh_for(program)) == program  # nothing to check
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..analysis.conjunctions import conjunction, split_conjunction
from ..analysis.parallel_band import Facts, count_uses
from ..analysis.self_dependence import bound_over
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
"""The sign of a difference that is non-negative where a comparison holds, and what is added to
it."""


def version_loops(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program with loops versioned on checks that can be decided before them."""
    locals_ = {node.id: node for node in program.locals}
    all_uses = count_uses(stmt for kernel in program.kernels for stmt in kernel.body)

    def version(stmt: Stmt) -> Body:
        if not isinstance(stmt, For | While):
            return (stmt,)
        conditions = _decidable_checks(stmt, facts)
        if not conditions:
            return (stmt,)
        tests = dict.fromkeys(test for tests in conditions.values() for test in tests)
        unchecked = map_statements(
            (stmt,), lambda nested: () if id(nested) in conditions else (nested,)
        )
        loop_uses = count_uses(unchecked)
        ids = [n for n in loop_uses if n in locals_ and loop_uses[n] == all_uses[n]]
        copies = {number: fresh.like(locals_[number]) for number in ids}
        names = {s: fresh.symbol(s.name) for nested in statements(unchecked) for s in binds(nested)}
        return (If(conjunction([*tests]), rename(unchecked, names, copies), (stmt,), stmt.span),)

    kernels = tuple(
        Kernel(kernel.name, tuple(new for stmt in kernel.body for new in version(stmt)))
        for kernel in program.kernels
    )
    return program if kernels == program.kernels else replace(program, kernels=kernels)


def _decidable_checks(stmt: For | While, facts: Facts) -> dict[int, list[Expr]]:
    """Return the conditions under which checks in a statement hold, by the `id` of each check that
    can be decided before it."""
    inside = statements((stmt,))
    blocking = Print, Permute, Alloc
    if any(isinstance(nested, blocking) for nested in inside):
        return {}
    if isinstance(stmt, For) and facts.is_free(stmt, facts.private(stmt)):
        return {}
    bound = {symbol for nested in inside for symbol in binds(nested)}
    conditions: dict[int, list[Expr]] = {}
    for check, loops in _checks(stmt, ()):
        minima = [_minimum(part, loops) for part in split_conjunction(check.test)]
        if any(minimum is None or minimum.symbols() & bound for minimum in minima):
            continue
        zero = Const(0, dtypes.int64)
        conditions[id(check)] = [
            Apply(OPS["ge"], (Position(minimum), zero), dtypes.bool_)
            for minimum in minima if minimum is not None
        ]  # fmt: skip
    return conditions


def _checks(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[tuple[Check, tuple[For, ...]]]:
    """Yield the checks in a statement, with the loops around each."""
    if isinstance(stmt, Check):
        yield stmt, loops
    inner = (*loops, stmt) if isinstance(stmt, For) else loops
    for part in bodies(stmt):
        for nested in part:
            yield from _checks(nested, inner)


def _minimum(test: Expr, loops: tuple[For, ...]) -> Affine | None:
    """Return an expression that is non-negative where a test holds in all iterations, None where
    that is not known."""
    compared = difference(test)
    if compared is None or compared[0] not in OFFSETS:
        return None
    sign, offset = OFFSETS[compared[0]]
    return bound_over(compared[1] * sign + offset, ranges(loops), -1)
