"""Loop distribution: reductions down columns, split from what depends on earlier iterations.

    for j: s = 0; for i: s = s + x[i, j]                    for j: s = 0; for i: s = s + x[i, j]
           if s > best: best = s; at = j         becomes           s_expanded[j] = s
                                                            for j: if s_expanded[j] > best: ...

Fusion joins what computes a value of each column with what uses it. Where the use depends on
earlier iterations, as an accumulation does, no part of the loop can be vectorized, and memory is
read down its columns. The first of the two loops is for `vectorize_columns` and `vectorize_outer`.
What crosses is expanded for `MAX_COLUMN_EXPANDED_ITERATIONS` iterations; loops of more are
strip-mined.

Precondition: iterations whose part up to the last inner loop could be vectorized if it were alone,
and depends on no other iteration. Postcondition: results are bit-identical: each part does what it
did, in its order. The method is loop fission after strip-mining, with scalar expansion (Allen and
Kennedy, Optimizing Compilers for Modern Architectures, 5.3 and 5.4).

>>> from plusequals.lowering.target import Target
>>> show(lambda program: distribute_columns(program, Target(schedule=True)),
... '''
... for j in range(70):
...     s = 0.0
...     for i in range(9):
...         s += x[i, j]
...     h[k[j]] += s
... ''', x="f64[9, 70]", h="f64[9]", k="i64[70]")
for j in 0..70:
    s = 0.0
    for i in 0..9:
        s = s + x[i, j]
    s_expanded[j] = s
for j in 0..70:
    let at = k[j]
    check 0 <= at and at < 9 else CdIndexError('CD0601',
            'index {0} is out of range for axis 0 of `h` with size {1}', at, 9)
    h[at] += s_expanded[j]
"""

from __future__ import annotations

from dataclasses import replace

from .. import thresholds
from ..analysis.dependence import find_dependence, find_privatizable
from ..analysis.parallel_band import has_checks, static_trip_count
from ..analysis.subscripts import ranges
from ..analysis.vectorizable import OuterLoop
from ..ir.decision import Decided, Decision, Reason
from ..ir.indexing import Affine, const, var
from ..ir.loops import For, Program, Stmt, Store, Update
from ..ir.rewrite import rename
from ..ir.walk import reads, writes
from ..target import Target
from ..transform.distribute import can_distribute, distribute_at, distribution_point, find_crossing
from ..transform.outermost import OutermostRewriter

Body = tuple[Stmt, ...]


class ColumnReason(Reason):
    """Why a loop is split."""

    COLUMNS = "its columns are independent, what follows them depends on earlier iterations"


def distribute_columns(program: Program, target: Target) -> Decided:
    """Return the program with loops distributed whose first part can be vectorized then, and the
    decisions."""
    return _Distribution.on(program, target)


class _Distribution(OutermostRewriter):
    """The distribution of the loops of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return the two loops that replace one, in blocks of iterations; None where it stays."""
        if loop.step != 1 or not can_distribute(loop):
            return None
        only = self.only()[id(loop)]
        loop = replace(loop, body=_sink_updates(loop.body, only))
        at = distribution_point(loop.body)
        first = replace(loop, body=loop.body[:at])
        shape = OuterLoop(first, self.target.reorders, outer)
        if not at or not shape.is_plain() or not shape.is_near(only):
            return None
        if has_checks(loop.body[at:]) and any(
            node.id not in self.temporaries for node in writes(first.body)
        ):
            return None  # what later iterations write would be seen
        privates, domain = find_privatizable(loop, only), ranges(outer)
        crossing = find_crossing(loop, at, privates)
        if crossing is None or find_dependence(loop, privates, self.temporaries, domain) is None:
            return None
        expanded = privates | {node.id for node in crossing}
        if find_dependence(first, expanded, self.temporaries, domain) is not None:
            return None
        node, name = next(iter(writes(loop.body[at:])), None), loop.symbol.name
        self.decisions.append(
            Decision("split", ColumnReason.COLUMNS, node, span=loop.span, variable=name)
        )
        most = thresholds.MAX_COLUMN_EXPANDED_ITERATIONS
        size = const(min(static_trip_count(loop) or most, most))

        def block(width: int, lo: Affine, hi: Affine) -> For:
            return For(self.fresh.symbol("block"), lo, hi, width, (), span=loop.span)

        parts = self.strip_mine(
            loop, self.end(loop, outer), (thresholds.MAX_COLUMN_EXPANDED_ITERATIONS,), block
        )
        nodes = [
            n for n in dict.fromkeys((*reads(loop.body), *writes(loop.body))) if n.id in privates
        ]
        out: list[Stmt] = []
        for number, replacement in enumerate(parts):
            assert isinstance(replacement, For), "it is cut into loops"
            copies = {node.id: self.fresh.like(node) for node in nodes} if number else {}
            part = replace(loop, body=rename(loop.body, {}, copies))
            crossed = [copies.get(node.id, node) for node in crossing]
            if replacement.symbol != loop.symbol:  # a loop over blocks
                start = var(replacement.symbol)
                part = replace(part, lo=start, hi=start + thresholds.MAX_COLUMN_EXPANDED_ITERATIONS)
                body = distribute_at(part, at, crossed, size, self.fresh, "panel")
                out.append(replace(replacement, body=body))
            else:
                part = replace(part, lo=replacement.lo, hi=replacement.hi)
                out += distribute_at(part, at, crossed, size, self.fresh, "panel")
        return tuple(out)


def _sink_updates(body: Body, exclusive: frozenset[int]) -> Body:
    """Return a loop body in which updates of shared scalars are moved after the last inner loop,
    where no statement on the way depends on them; the scalars in `exclusive` are private."""
    last = max((at for at, stmt in enumerate(body, 1) if isinstance(stmt, For)), default=0)
    stay, sunk = list[Stmt](), list[Stmt]()
    for stmt in reversed(body[:last]):
        scalar = stmt.access.node if isinstance(stmt, Store | Update) else None
        is_shared = scalar is not None and not scalar.rank and scalar.id not in exclusive
        (sunk if is_shared and _is_independent(stmt, stay) else stay).insert(0, stmt)
    return (*stay, *sunk, *body[last:]) if sunk else body


def _is_independent(stmt: Stmt, others: list[Stmt]) -> bool:
    """Whether there is no dependence between a statement and others."""
    written, others_written = set(writes((stmt,))), set(writes(others))
    return written.isdisjoint(others_written | set(reads(others))) and others_written.isdisjoint(
        reads((stmt,))
    )
