"""Loops that the threads of a block share: how many rounds each of them has, and these counted.

    for j in 0..n thread: body                               becomes, with n = 256*m + r
    for t in 0..256 thread: for j in t..n step 256: body     for t in 0..256 thread:
                                                                 for q in 0..m: body of t + 256*q
                                                                 if t < r: body of t + 256*m

Both deal their rounds out in the same way. Counted, a compiler sees how many there are, and puts
loads of several rounds before what is done with them. Needs numbers that are known, and bodies
that only move and compute numbers; all other loops stay.

>>> program = lowered("y[i] = x[i] * 2", y="f32[600]", x="f32[600]")
>>> found = dealt(in_kind(program.kernels[0].body[-1], "thread"))
>>> found.count, found.size, found.rounds
(600, 256, 3)
>>> print_loops((counted(found, found.body, fresh_for(program)),))
for thread in 0..256 thread:
    for q in 0..2:
        y[256*q + thread] = x[256*q + thread] * 2.0
    if thread < 88:
        y[thread + 512] = x[thread + 512] * 2.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..analysis.parallel_band import around, nest_of, rounds_of, trips, with_value
from ..ir import dtypes
from ..ir.expressions import Apply, Position
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import For, If, LoopKind, Stmt
from ..ir.ops import OPS
from .thread_points import THREADS, is_light

STRIP = 32
"""So many rounds are written out at most where loads come first: more have no registers."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """A loop of threads in which each does every `size`-th round of `count`, the first its own."""

    loop: For
    """Of the threads."""
    inner: For | None
    """The loop in it whose rounds they share; None where these are its own."""
    around: tuple[For, ...]
    """Loops between the two, outermost first."""
    lo: Affine
    step: int
    count: int
    size: int

    @property
    def shared(self) -> For:
        """The loop whose rounds are dealt out."""
        return self.loop if self.inner is None else self.inner

    @property
    def body(self) -> tuple[Stmt, ...]:
        """What is done in each round."""
        return self.shared.body

    @property
    def rounds(self) -> int:
        """How many rounds a thread has at most."""
        return -(-self.count // self.size)

    @property
    def dealing(self) -> tuple[int, int]:
        """What loops have in common whose rounds of the same number are the same thread's."""
        return self.count, self.size if self.rounds > 1 else 0

    def at(self, place: Affine) -> Affine:
        """Return what the variable of the loop is in the round of a number."""
        return self.lo + place * self.step


def dealt(loop: For) -> Dealt | None:
    """Return how a loop of threads deals out its rounds; None where that is not plain."""
    if loop.kind != "thread" or loop.step != 1:
        return None
    if is_light(loop.body):
        count = trips(loop)
        return Dealt(loop, None, (), loop.lo, 1, count, min(count, THREADS)) if count else None
    nests = [stmt for stmt in loop.body if isinstance(stmt, For)]
    others = tuple(stmt for stmt in loop.body if not isinstance(stmt, For))
    size = loop.hi.constant
    if len(nests) != 1 or loop.lo != const(0) or not size or not is_light(others):
        return None
    (*outer, inner), body = nest_of(nests[0])
    step = inner.lo.coefficient(loop.symbol)
    lo = inner.lo - var(loop.symbol) * step
    bounds = (lo, inner.hi, *(end for one in outer for end in (one.lo, one.hi)))
    if step < 1 or inner.step != step * size or any(loop.symbol in b.symbols() for b in bounds):
        return None
    count = rounds_of(replace(inner, lo=lo, step=step)).constant
    if count is None or count < 1 or not is_light(body):
        return None
    return Dealt(loop, inner, tuple(outer), lo, step, count, size)


def counted(
    found: Dealt, body: tuple[Stmt, ...], fresh: Fresh, before: tuple[Stmt, ...] = (),
    round_: Symbol | None = None, kind: LoopKind = "serial",
) -> For:  # fmt: skip
    """Return a loop of threads with a body and counted rounds; `before` is done in all of them
    first. `round_` is the number of a round in both, and `kind` that of loops over rounds."""
    symbol = fresh.symbol("q") if round_ is None else round_
    if found.inner is None and found.rounds == 1:
        return replace(found.loop, body=with_value((*before, *body), symbol, const(0)))
    thread = fresh.symbol("thread") if found.inner is None else found.loop.symbol
    made = tuple(
        stmt for part in (before, body) if part
        for stmt in _rounds(found, part, thread, symbol, kind, fresh)
    )  # fmt: skip
    if found.inner is None:
        return For(thread, const(0), const(found.size), 1, made, "thread", found.loop.span)
    whole = around(found.around, made)
    parts = ((stmt,) if not isinstance(stmt, For) else whole for stmt in found.loop.body)
    return replace(found.loop, body=tuple(stmt for part in parts for stmt in part))


def _rounds(
    found: Dealt, body: tuple[Stmt, ...], thread: Symbol, symbol: Symbol, kind: LoopKind,
    fresh: Fresh,
) -> Sequence[Stmt]:  # fmt: skip
    """Return all rounds of a thread: those that every thread has, then that which some have."""
    whole, rest = divmod(found.count, found.size)
    body = with_value(body, found.shared.symbol, found.at(var(thread) + var(symbol) * found.size))
    out: tuple[Stmt, ...] = ()
    if whole == 1:
        out = with_value(body, symbol, const(0))
    elif whole:
        loop = For(symbol, const(0), const(whole), 1, body, kind)
        out = (loop,) if kind == "unrolled" else stripped(loop, fresh)
    if rest:
        test = Apply(OPS["lt"], (Position(var(thread)), Position(const(rest))), dtypes.bool_)
        out = (*out, If(test, with_value(body, symbol, const(whole))))
    return out


def stripped(loop: For, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return a loop as strips of so many rounds that compilers write each of them out, and what is
    left; itself where it is short, or its rounds are not known or do more than moving and computing
    numbers.

    >>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[70]")
    >>> print_loops(stripped(program.kernels[0].body[-1], fresh_for(program)))
    for i in 0..64 step 32:
        for q in 0..32:
            s[0] += x[i + q]
    for i in 64..70:
        s[0] += x[i]
    """
    count = trips(loop)
    if count is None or count <= STRIP or loop.step != 1 or not is_light(loop.body):
        return (loop,)
    whole, symbol = count // STRIP * STRIP, fresh.symbol("q")
    body = with_value(loop.body, loop.symbol, var(loop.symbol) + var(symbol))
    inner = For(symbol, const(0), const(STRIP), 1, body)
    made = replace(loop, hi=loop.lo + whole, step=STRIP, body=(inner,))
    return (made, replace(loop, lo=loop.lo + whole)) if whole < count else (made,)
