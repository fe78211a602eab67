"""Loops down neighbouring columns, apart from what waits for earlier iterations.

    for j: s = 0; for i: s = s + x[i, j]                    for j: s = 0; for i: s = s + x[i, j]
           if s > best: best = s; at = j         becomes           s_rounds[j] = s
                                                            for j: if s_rounds[j] > best: ...

Fusion joins what computes a value of each column with what uses it. Where the use waits for earlier
iterations, as an accumulation does, none of the loop can be done in lanes, and memory is read down
its columns. The first of the two loops is for `strips` and `abreast`. What crosses is kept for
`AT_A_TIME` iterations; loops of more are cut into blocks.

Precondition: iterations whose part up to the last loop inside could be done in lanes if it were
alone, and waits for no other iteration. Postcondition: results are bit-identical: each part does
what it did, in its order. The method is loop fission after strip-mining, with scalar expansion
(Allen and Kennedy, Optimizing Compilers for Modern Architectures, 5.3 and 5.4).

>>> from plusequals.lowering.target import Target
>>> show(lambda program: split(program, Target(schedule=True)), '''
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
    s_rounds[j] = s
for j in 0..70:
    let at = k[j]
    check 0 <= at and at < 9 else CdIndexError('CD0601',
            'index {0} is out of range for axis 0 of `h` with size {1}', at, 9)
    h[at] += s_rounds[j]
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.dependence import independent, private
from ..analysis.parallel_band import fails, trips
from ..analysis.subscripts import ranges
from ..analysis.vectorizable import Outer
from ..ir.decision import Decided, Decision, Reason
from ..ir.indexing import Affine, const, var
from ..ir.loops import For, Program, Stmt, Store, Update
from ..ir.rewrite import rename
from ..ir.walk import reads, writes
from ..target import Target
from ..transform.distribute import crossing_of, cut, halves, may_split
from ..transform.outermost import Outermost

Body = tuple[Stmt, ...]
AT_A_TIME = 2048
"""So many iterations keep at a time what crosses: with a few values of each, the first cache."""


class Split(Reason):
    """Why a loop is split."""

    COLUMNS = "its iterations go down columns side by side, then do what waits for earlier ones"


def split(program: Program, target: Target) -> Program:
    """Return the program whose loops do first what can be done in lanes."""
    return loops_split(program, target).program


def loops_split(program: Program, target: Target) -> Decided:
    """Return the program whose loops do first what can be done in lanes, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return the loops that take the place of one, None where it stays."""
        if loop.step != 1 or not may_split(loop):
            return None
        only = self.only()[id(loop)]
        loop = replace(loop, body=_sunk(loop.body, only))
        at = cut(loop.body)
        first = replace(loop, body=loop.body[:at])
        shape = Outer(first, self.target.reorders, outer)
        if not at or not shape.is_plain() or not shape.is_near(only):
            return None
        if fails(loop.body[at:]) and any(node.id not in self.own for node in writes(first.body)):
            return None  # what later iterations write would be seen
        own, known = private(loop, only), ranges(outer)
        crossing = crossing_of(loop, at, own)
        if crossing is None or independent(loop, own, self.own, known) is None:
            return None
        mine = own | {node.id for node in crossing}
        if independent(first, mine, self.own, known) is not None:
            return None
        node, name = next(iter(writes(loop.body[at:])), None), loop.symbol.name
        self.decisions.append(Decision("split", Split.COLUMNS, node, span=loop.span, variable=name))
        size = const(min(trips(loop) or AT_A_TIME, AT_A_TIME))

        def block(width: int, lo: Affine, hi: Affine) -> For:
            return For(self.fresh.symbol("block"), lo, hi, width, (), span=loop.span)

        parts = self.cut(loop, self.end(loop, outer), (AT_A_TIME,), block)
        nodes = [n for n in dict.fromkeys((*reads(loop.body), *writes(loop.body))) if n.id in own]
        out: list[Stmt] = []
        for number, one in enumerate(parts):
            assert isinstance(one, For), "it is cut into loops"
            copies = {node.id: self.fresh.like(node) for node in nodes} if number else {}
            part = replace(loop, body=rename(loop.body, {}, copies))
            kept = [copies.get(node.id, node) for node in crossing]
            if one.symbol != loop.symbol:  # a loop over blocks
                start = var(one.symbol)
                part = replace(part, lo=start, hi=start + AT_A_TIME)
                body = halves(part, at, kept, size, self.fresh, "panel")
                out.append(replace(one, body=body))
            else:
                part = replace(part, lo=one.lo, hi=one.hi)
                out += halves(part, at, kept, size, self.fresh, "panel")
        return tuple(out)


def _sunk(body: Body, only: frozenset[int]) -> Body:
    """Return the body of a loop with what changes a number that iterations share, `only` others
    being each one's own, behind the last loop inside where nothing on the way has to do with it."""
    last = max((at for at, one in enumerate(body, 1) if isinstance(one, For)), default=0)
    kept, sunk = list[Stmt](), list[Stmt]()
    for one in reversed(body[:last]):
        number = one.access.node if isinstance(one, Store | Update) else None
        shared = number is not None and not number.rank and number.id not in only
        (sunk if shared and _is_apart(one, kept) else kept).insert(0, one)
    return (*kept, *sunk, *body[last:]) if sunk else body


def _is_apart(one: Stmt, others: list[Stmt]) -> bool:
    """Whether a statement and others write nothing that the other ones use."""
    mine, theirs = set(writes((one,))), set(writes(others))
    return mine.isdisjoint(theirs | set(reads(others))) and theirs.isdisjoint(reads((one,)))
