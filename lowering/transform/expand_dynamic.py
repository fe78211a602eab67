"""Arrays of sizes of the run that each round of a loop fills for itself: each round has its own.

    alloc t[n]; for k in 0..s: t[0] = ...; for i in 1..n: t[i] = f(t[i - 1]); y[k] = t[n - 1]
    becomes
    alloc t[n]; if n*s is not too much: alloc t_rounds[n, s]
                                        for k in 0..s: t_rounds[0, k] = ...
                else: as before

Needs a loop that no other statement shares such arrays with, that reads of them only what the same
round has filled, and whose rounds are independent but for that.

>>> program, _ = optimize(lowered("y[i] = x[i]", y="f32[90]", x="f32[90]"), Target("cuda"))
>>> rooms(program, facts_of(program), fresh_for(program)) is program  # there are no such arrays
True
"""

from __future__ import annotations

from functools import reduce

from ..analysis.accesses import accesses
from ..analysis.parallel_band import Facts, rounds_of, uses_of, with_loops
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Alloc
from ..ir.expressions import Apply, Const, Index, Position
from ..ir.fresh import Fresh
from ..ir.indexing import const, multiply, var
from ..ir.loops import For, If, Program, Stmt
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import over_kernels, rename
from ..ir.walk import binds, statements, writes
from ..thresholds import EXPANDED_BYTES
from .remap import Place, elsewhere

Body = tuple[Stmt, ...]


def rooms(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose rounds have arrays of sizes of the run for themselves."""
    given = {
        stmt.node.id: stmt.node for kernel in program.kernels for stmt in statements(kernel.body)
        if isinstance(stmt, Alloc) and fresh.fits(stmt.node.shape)
    }  # fmt: skip
    results = {node.id for node in program.results}
    locals_ = {n: node for n, node in given.items() if n not in results}
    if not locals_:
        return program
    whole = uses_of(stmt for kernel in program.kernels for stmt in kernel.body)

    def made(loop: For, outer: tuple[For, ...]) -> Body:
        here = uses_of((loop,))
        mine = [node for n, node in locals_.items() if n in here and here[n] + 1 == whole[n]]
        if not mine or loop.kind != "serial" or loop.step not in (1, -1):
            return ()
        found, own = accesses((loop,)), frozenset(node.id for node in mine)
        inside = any(isinstance(stmt, Alloc) for stmt in statements((loop,)))
        if inside or any(found.read_before_written(node) for node in mine):
            return ()
        private, known = facts.private(loop), ranges(outer)
        if not fresh.fits((rounds_of(loop),)) or facts.is_free(loop, private, known):
            return ()
        is_own = facts.is_free(loop, private | own, known)
        return _apart(loop, mine, private, fresh) if is_own else ()

    return over_kernels(program, lambda body: with_loops(body, facts, made))


def _apart(loop: For, mine: list[Node], private: frozenset[int], fresh: Fresh) -> Body:
    """Return a loop whose rounds have their own of some arrays, where there is room for that."""
    count, here = rounds_of(loop), (var(loop.symbol) - loop.lo) * loop.step
    own = {
        node.id: fresh.array(f"{node.label}_rounds", (*node.shape, count), node.dtype)
        for node in mine
    }

    def place(node: Node, index: tuple[Index, ...]) -> Place:
        return (own[node.id], (*index, here)) if node.id in own else (node, index)

    sizes = (reduce(multiply, node.shape) * node.dtype.itemsize for node in own.values())
    most = Const(EXPANDED_BYTES, dtypes.int64)
    fits = Apply(OPS["le"], (Position(sum(sizes, start=const(0))), most), dtypes.bool_)
    copies = {n.id: fresh.like(n) for n in writes((loop,)) if n.id in private}
    names = {s: fresh.symbol(s.name) for one in statements((loop,)) for s in binds(one)}
    made = rename(elsewhere((loop,), place), names, copies)
    return (If(fits, (*map(Alloc, own.values()), *made), (loop,), loop.span),)
