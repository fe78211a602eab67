"""Multi-level loop exits: nested loops left together, by a flag that the inner one sets.

    for i: for j: if t: found = True; break
           if found: break

Analysis only.

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
>>> nest = find_exit_nest(body[at], body[:at], frozenset())
>>> [loop.symbol.name for loop in nest.loops]
['i', 'j']
"""

from __future__ import annotations

from collections.abc import Iterator

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.dependence import has_break
from ...analysis.expression_cost import cost
from ...analysis.guarded_reads import negate
from ...analysis.predicate_facts import is_always, is_never, scalar_values_after
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.assignments import Break, Continue
from ...ir.expressions import Apply, Expr, Position, reads
from ...ir.loops import Comment, For, If, Stmt, Store
from ...ir.ops import OPS
from ...ir.walk import direct_reads, direct_writes, statements, writes

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class ExitNest:
    """A nest all of whose loops a `Break` in the body leaves."""

    loops: tuple[For, ...]
    body: Body
    before: Body = ()
    """Statements of the outer loops' iterations that need be executed only once."""


def find_exit_nest(
    loop: For, before: Body, only: frozenset[int], outer: tuple[For, ...] = ()
) -> ExitNest | None:
    """Return the nest of a loop that is left by a break, None for other loops; `before` are the
    statements executed before it, `only` the temporaries that nothing but it, and its `outer`
    loops, use."""
    if loop.kind != "serial" or not has_break(loop.body):
        return None
    return _join_nests(loop, before, only, outer) or ExitNest((loop,), loop.body)


def _join_nests(
    loop: For, before: Body, only: frozenset[int], outer: tuple[For, ...]
) -> ExitNest | None:
    """Return the nest of a loop and one in it that are left together, None where they are not."""
    stmts = tuple(stmt for stmt in loop.body if not isinstance(stmt, Comment))
    at = next((n for n, stmt in enumerate(stmts) if isinstance(stmt, For)), None)
    test = None if at is None else _exit_test(stmts[at + 1 :])
    if at is None or test is None:
        return None
    start, inner_loop = stmts[:at], stmts[at]
    assert isinstance(inner_loop, For), "that is what was looked for"
    inner = find_exit_nest(inner_loop, (*before, *start), only, (*outer, loop))
    stores = [store for store in start if isinstance(store, Store) and not store.access.node.rank]
    if inner is None or inner.before or len(stores) < len(start):
        return None
    flags = frozenset(read.node.id for read in reads(test))
    local_stores = tuple(store for store in stores if store.access.node.id not in flags)
    flag_stores = tuple(store for store in stores if store.access.node.id in flags)
    if any(cost(store.value) > thresholds.MAX_FLAG_VALUE_COST for store in local_stores):
        return None
    if not _stay_as_stored(local_stores, inner.body):
        return None
    bounds = ranges((*outer, loop, *inner.loops))
    if not is_never(test, scalar_values_after((*before, *start)), bounds):
        return None
    exits = tuple(_exit_paths(inner.body))
    if not exits or not all(is_always(test, scalar_values_after(exit_), bounds) for exit_ in exits):
        return None
    if not _are_set_only_by(flags, inner.body, exits):
        return None
    body = (*local_stores, *inner.body)
    if all(store.access.node.id in only for store in flag_stores):
        return ExitNest((loop, *inner.loops), body)
    ends = (loop.hi, loop.lo) if loop.step > 0 else (loop.lo, loop.hi)
    has_iteration = Apply(OPS["gt"], (Position(ends[0]), Position(ends[1])), dtypes.bool_)
    return ExitNest((loop, *inner.loops), body, (If(has_iteration, flag_stores),))


def _stay_as_stored(stores: tuple[Store, ...], body: Body) -> bool:
    """Whether the iterations of an inner loop leave what is stored before it as it is, so that each
    of them may store it again."""
    changed = frozenset(node.id for node in writes(body))
    used = (node.id for store in stores for node in (store.access.node, *direct_reads(store)))
    return changed.isdisjoint(used)


def _exit_test(tail: Body) -> Expr | None:
    """Return the test that leaves a loop at the end of its iteration, None where there is more."""
    if not tail or not isinstance(tail[0], If) or len(tail) > 2:
        return None
    test, rest = tail[0].test, tail[1:]
    if rest and (tail[0].orelse or not isinstance(rest[0], Break)):
        return None
    ends = [
        [type(stmt) for stmt in part if not isinstance(stmt, Comment)]
        for part in (tail[0].then, tail[0].orelse or rest)
    ]
    if ends[0] == [Break] and ends[1] in ([], [Continue]):
        return test
    return negate(test) if ends == [[Continue], [Break]] else None


def _exit_paths(body: Body) -> Iterator[Body]:
    """Yield the lists that end in a `Break`."""
    for stmt in body:
        if isinstance(stmt, If):
            for part in (stmt.then, stmt.orelse):
                stmts = tuple(nested for nested in part if not isinstance(nested, Comment))
                if stmts and isinstance(stmts[-1], Break):
                    yield stmts
                else:
                    yield from _exit_paths(part)


def _are_set_only_by(flags: frozenset[int], body: Body, exits: tuple[Body, ...]) -> bool:
    """Whether only the exits access the flags, and each exit is left at its end."""
    if any(has_break(exit_[:-1]) for exit_ in exits):
        return False
    exit_ids = {id(stmt) for exit_ in exits for stmt in exit_}
    stmts = statements(body)
    used = [n.id for s in stmts for n in direct_reads(s)]
    used += [n.id for s in stmts if id(s) not in exit_ids for n in direct_writes(s)]
    return flags.isdisjoint(used)
