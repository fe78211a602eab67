"""Expansion of arrays of run-time sizes, so that iterations of a loop become independent.

    alloc t[n]; for k in 0..s: t[0] = ...; for i in 1..n: t[i] = f(t[i - 1]); y[k] = t[n - 1]
    becomes
    alloc t[n]; if n*s is not too much: alloc t_expanded[n, s]
                                        for k in 0..s: t_expanded[0, k] = ...
                else: as before

Precondition: a loop that accesses such arrays alone, that reads of them only what the same
iteration has written, and whose iterations are independent but for that.

>>> program, _ = optimize(lowered("y[i] = x[i]", y="f32[90]", x="f32[90]"), Target("cuda"))
>>> expand_dynamic(program, facts_of(program), fresh_for(program)) is program  # no such arrays
True
"""

from __future__ import annotations

from functools import reduce

from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.parallel_band import Facts, count_uses, replace_loops, trip_count
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Alloc
from ..ir.expressions import Apply, Const, Index, Position
from ..ir.fresh import Fresh
from ..ir.indexing import const, multiply, var
from ..ir.loops import For, If, Program, Stmt
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_kernels, rename
from ..ir.walk import binds, statements, writes
from .remap import Element, remap_accesses

Body = tuple[Stmt, ...]


def expand_dynamic(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program with arrays of run-time sizes expanded by an axis for iterations."""
    allocated = {
        stmt.node.id: stmt.node for kernel in program.kernels for stmt in statements(kernel.body)
        if isinstance(stmt, Alloc) and fresh.fits(stmt.node.shape)
    }  # fmt: skip
    results = {node.id for node in program.results}
    locals_ = {n: node for n, node in allocated.items() if n not in results}
    if not locals_:
        return program
    all_uses = count_uses(stmt for kernel in program.kernels for stmt in kernel.body)

    def expand_loop(loop: For, outer: tuple[For, ...]) -> Body:
        loop_uses = count_uses((loop,))
        candidates = [
            node
            for n, node in locals_.items()
            if n in loop_uses and loop_uses[n] + 1 == all_uses[n]
        ]
        if not candidates or loop.kind != "serial" or loop.step not in (1, -1):
            return ()
        touched, ids = collect_accesses((loop,)), frozenset(node.id for node in candidates)
        has_alloc = any(isinstance(stmt, Alloc) for stmt in statements((loop,)))
        if has_alloc or any(touched.is_read_before_written(node, 1) for node in candidates):
            return ()
        private, domain = facts.private(loop), ranges(outer)
        if not fresh.fits((trip_count(loop),)) or facts.is_free(loop, private, domain):
            return ()
        is_expandable = facts.is_free(loop, private | ids, domain)
        return _expand(loop, candidates, private, fresh) if is_expandable else ()

    return map_kernels(program, lambda body: replace_loops(body, facts, expand_loop))


def _expand(loop: For, arrays: list[Node], private: frozenset[int], fresh: Fresh) -> Body:
    """Return a loop with some arrays expanded, guarded by a test that they are not too large; else
    the loop as it is."""
    count, here = trip_count(loop), (var(loop.symbol) - loop.lo) * loop.step
    expanded = {
        node.id: fresh.array(f"{node.label}_expanded", (*node.shape, count), node.dtype)
        for node in arrays
    }

    def expand(node: Node, index: tuple[Index, ...]) -> Element:
        return (expanded[node.id], (*index, here)) if node.id in expanded else (node, index)

    sizes = (reduce(multiply, node.shape) * node.dtype.itemsize for node in expanded.values())
    limit = Const(thresholds.MAX_EXPANDED_BYTES, dtypes.int64)
    fits = Apply(OPS["le"], (Position(sum(sizes, start=const(0))), limit), dtypes.bool_)
    copies = {n.id: fresh.like(n) for n in writes((loop,)) if n.id in private}
    names = {s: fresh.symbol(s.name) for stmt in statements((loop,)) for s in binds(stmt)}
    copy = rename(remap_accesses((loop,), expand), names, copies)
    return (If(fits, (*map(Alloc, expanded.values()), *copy), (loop,), loop.span),)
