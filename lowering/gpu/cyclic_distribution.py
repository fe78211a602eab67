"""Cyclic distribution of a loop over the threads of a block, with static trip counts per thread.

    for j in 0..n thread: body                               becomes, with n = 256*m + r
    for t in 0..256 thread: for j in t..n step 256: body     for t in 0..256 thread:
                                                                 for q in 0..m: body of t + 256*q
                                                                 if t < r: body of t + 256*m

Both distribute the iterations in the same way. With a static trip count the compiler unrolls the
loop and issues the loads of several iterations ahead of their uses. Precondition: static trip
counts, and bodies of assignments without loops, checks or jumps; all other loops stay.

>>> program = lowered("y[i] = x[i] * 2", y="f32[600]", x="f32[600]")
>>> cyclic = find_cyclic_loop(in_kind(program.kernels[0].body[-1], "thread"))
>>> cyclic.count, cyclic.size, cyclic.max_iterations
(600, 256, 3)
>>> print_loops((build_cyclic_loop(cyclic, cyclic.body, fresh_for(program)),))
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
from .. import thresholds
from ..analysis.parallel_band import (
    nest_loops,
    perfect_nest,
    static_trip_count,
    substitute_symbol,
    trip_count,
)
from ..ir import dtypes
from ..ir.expressions import Apply, Position
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import For, If, LoopKind, Stmt
from ..ir.ops import OPS
from .thread_points import is_loop_free


@dataclass(frozen=True, slots=True)
class CyclicLoop:
    """A thread loop whose thread `t` executes iterations `t`, `t + size`, ... of `count`."""

    loop: For
    """The thread loop."""
    inner: For | None
    """The loop in it whose iterations are distributed; None where these are the thread loop's."""
    around: tuple[For, ...]
    """Loops between the two, outermost first."""
    lo: Affine
    step: int
    count: int
    size: int

    @property
    def shared(self) -> For:
        """The loop whose iterations are distributed."""
        return self.loop if self.inner is None else self.inner

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The body of one iteration."""
        return self.shared.body

    @property
    def max_iterations(self) -> int:
        """The most iterations that a thread executes."""
        return -(-self.count // self.size)

    @property
    def dealing(self) -> tuple[int, int]:
        """The key of the distribution: equal keys assign equal iterations to equal threads."""
        return self.count, self.size if self.max_iterations > 1 else 0

    def at(self, iteration: Affine) -> Affine:
        """Return the value of the loop variable in the iteration of that number."""
        return self.lo + iteration * self.step


def find_cyclic_loop(loop: For) -> CyclicLoop | None:
    """Return the cyclic distribution of a thread loop; None where it is no such loop."""
    if loop.kind != "thread" or loop.step != 1:
        return None
    if is_loop_free(loop.body):
        count = static_trip_count(loop)
        if not count:
            return None
        return CyclicLoop(loop, None, (), loop.lo, 1, count, min(count, thresholds.BLOCK_THREADS))
    nests = [stmt for stmt in loop.body if isinstance(stmt, For)]
    others = tuple(stmt for stmt in loop.body if not isinstance(stmt, For))
    size = loop.hi.constant
    if len(nests) != 1 or loop.lo != const(0) or not size or not is_loop_free(others):
        return None
    (*outer, inner), body = perfect_nest(nests[0])
    step = inner.lo.coefficient(loop.symbol)
    lo = inner.lo - var(loop.symbol) * step
    bounds = (lo, inner.hi, *(end for enclosing in outer for end in (enclosing.lo, enclosing.hi)))
    if step < 1 or inner.step != step * size or any(loop.symbol in b.symbols() for b in bounds):
        return None
    count = trip_count(replace(inner, lo=lo, step=step)).constant
    if count is None or count < 1 or not is_loop_free(body):
        return None
    return CyclicLoop(loop, inner, tuple(outer), lo, step, count, size)


def build_cyclic_loop(
    cyclic: CyclicLoop, body: tuple[Stmt, ...], fresh: Fresh, prologue: tuple[Stmt, ...] = (),
    counter: Symbol | None = None, kind: LoopKind = "serial",
) -> For:  # fmt: skip
    """Return a thread loop with static trip counts and a body. All iterations of `prologue` are
    executed first; `counter` is the iteration's number in both, `kind` the kind of the loops over
    iterations."""
    counter_symbol = fresh.symbol("q") if counter is None else counter
    if cyclic.inner is None and cyclic.max_iterations == 1:
        return replace(
            cyclic.loop, body=substitute_symbol((*prologue, *body), counter_symbol, const(0))
        )
    thread = fresh.symbol("thread") if cyclic.inner is None else cyclic.loop.symbol
    iterations = tuple(
        stmt for stmts in (prologue, body) if stmts
        for stmt in _build_iterations(cyclic, stmts, thread, counter_symbol, kind, fresh)
    )  # fmt: skip
    if cyclic.inner is None:
        return For(thread, const(0), const(cyclic.size), 1, iterations, "thread", cyclic.loop.span)
    nest = nest_loops(cyclic.around, iterations)
    stmt_lists = ((stmt,) if not isinstance(stmt, For) else nest for stmt in cyclic.loop.body)
    return replace(cyclic.loop, body=tuple(stmt for stmts in stmt_lists for stmt in stmts))


def _build_iterations(
    cyclic: CyclicLoop, body: tuple[Stmt, ...], thread: Symbol, counter: Symbol, kind: LoopKind,
    fresh: Fresh,
) -> Sequence[Stmt]:  # fmt: skip
    """Return the iterations of a thread: those of all threads, then the predicated remainder."""
    full_trips, remainder = divmod(cyclic.count, cyclic.size)
    body = substitute_symbol(
        body, cyclic.shared.symbol, cyclic.at(var(thread) + var(counter) * cyclic.size)
    )
    out: tuple[Stmt, ...] = ()
    if full_trips == 1:
        out = substitute_symbol(body, counter, const(0))
    elif full_trips:
        loop = For(counter, const(0), const(full_trips), 1, body, kind)
        out = (loop,) if kind == "unrolled" else strip_mine_loop(loop, fresh)
    if remainder:
        test = Apply(OPS["lt"], (Position(var(thread)), Position(const(remainder))), dtypes.bool_)
        out = (*out, If(test, substitute_symbol(body, counter, const(full_trips))))
    return out


def strip_mine_loop(loop: For, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return a loop strip-mined into strips that compilers unroll, and the remainder loop; the loop
    itself where it is short, its trip count is dynamic or its body is not loop-free (see
    `is_loop_free`).

    >>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[70]")
    >>> print_loops(strip_mine_loop(program.kernels[0].body[-1], fresh_for(program)))
    for i in 0..64 step 32:
        for q in 0..32:
            s[0] += x[i + q]
    for i in 64..70:
        s[0] += x[i]
    """
    count = static_trip_count(loop)
    if (
        count is None
        or count <= thresholds.CYCLIC_STRIP_ITERATIONS
        or loop.step != 1
        or not is_loop_free(loop.body)
    ):
        return (loop,)
    main_count, offset = (
        count // thresholds.CYCLIC_STRIP_ITERATIONS * thresholds.CYCLIC_STRIP_ITERATIONS,
        fresh.symbol("q"),
    )
    body = substitute_symbol(loop.body, loop.symbol, var(loop.symbol) + var(offset))
    inner = For(offset, const(0), const(thresholds.CYCLIC_STRIP_ITERATIONS), 1, body)
    main_loop = replace(
        loop, hi=loop.lo + main_count, step=thresholds.CYCLIC_STRIP_ITERATIONS, body=(inner,)
    )
    return (
        (main_loop, replace(loop, lo=loop.lo + main_count)) if main_count < count else (main_loop,)
    )
