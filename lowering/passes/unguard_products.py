"""Sums of products under a test are made whether it holds or not, where nobody sees the difference.

Changes: a nest that only adds up products of rows and columns, into a temporary that nothing else
writes, forgets a test which each element asks for itself.

    for i: for j: if m[i, j]: t[i, j] = 0; for k: t[i, j] += a[i, k] * b[k, j]
    becomes
    for i: for j: t[i, j] = 0; for k: t[i, j] += a[i, k] * b[k, j]

A product of matrices that leaves none of its elements out is made in tiles, which takes a fraction
of the time; what is done to its elements, as choosing among them, is done to those of a tile.

Needs: a large product of real numbers, all of whose factors are there without the test too.
Guarantees: elements that were made have the bits they had. The others were nowhere read: they had
none before.

>>> show(regardless, "y[i, j] = where(j <= i, sum(a[i, k] * b[k, j]), 0)",
...      y="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
for i in 0..64:
    for j in 0..64:
        total[i, j] = 0.0
        for k in 0..64:
            total[i, j] += a[i, k] * b[k, j]
for i in 0..64:
    for j in 0..64:
        y[i, j] = total[i, j] if j <= i else 0.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ...base.dataclass import dataclass
from ..analysis.product_loops import tiled
from ..analysis.subscripts import is_in_range, ranges
from ..ir import dtypes
from ..ir.assignments import Alloc
from ..ir.expressions import Expr, reads
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_bodies, over_kernels
from ..ir.walk import expressions_of, free_symbols, own_writes, statements

Body = tuple[Stmt, ...]
_REALS = (dtypes.float32, dtypes.float64)


def regardless(program: Program) -> Program:
    """Return the program in which products of matrices leave no elements out that they need not."""
    every = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    own = {node.id for node in program.locals if node.rank and node.request is None}
    times = Counter(
        node.id for stmt in every if not isinstance(stmt, Alloc) for node in own_writes(stmt)
    )
    writers = {number: count for number, count in times.items() if number in own}
    return over_kernels(program, partial(_body, around=_Around(writers)))


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known where a statement stands."""

    writers: Mapping[int, int]
    """How many statements write each array that the program alone has."""
    loops: tuple[For, ...] = ()
    tests: tuple[Expr, ...] = ()
    """What was checked before."""

    def is_there(self, body: Body) -> bool:
        """Whether all that statements read is surely inside of its array."""
        for stmt in body:
            if isinstance(stmt, For):
                if not replace(self, loops=(*self.loops, stmt)).is_there(stmt.body):
                    return False
                continue
            known = ranges(self.loops)
            found = [read for value in expressions_of(stmt) for read in reads(value)]
            if not all(is_in_range(r.node, r.index, known, self.tests) for r in found):
                return False
        return True


def _body(body: Body, around: _Around) -> Body:
    out: list[Stmt] = []
    for stmt in body:
        out.append(_statement(stmt, around))
        if isinstance(stmt, Check):
            around = replace(around, tests=(*around.tests, stmt.test))
    return tuple(out)


def _statement(stmt: Stmt, around: _Around) -> Stmt:
    if isinstance(stmt, For):
        around = replace(around, loops=(*around.loops, stmt))
        if (made := _bare(stmt, around)) is not None:
            return made
    return map_bodies(stmt, partial(_body, around=around))


def _bare(loop: For, around: _Around) -> For | None:
    """Return an innermost loop over elements without the tests around what it adds up."""
    body = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    tests: list[If] = []
    while len(body) == 1 and isinstance(body[0], If) and not body[0].other:
        tests.append(body[0])
        body = [stmt for stmt in body[0].then if not isinstance(stmt, Comment)]
    if not tests or not all(loop.symbol in free_symbols(one.test) for one in tests):
        return None
    match body:
        case [Store(target) as start, For() as terms] if around.writers.get(target.node.id) == 2:
            made = replace(loop, body=tests[-1].then)
        case _:
            return None
    if not _adds_up(terms, target.node) or not around.is_there((start, terms)):
        return None
    nest = made
    for one in reversed(around.loops[:-1]):
        nest = replace(one, body=(nest,))
    return made if loop.symbol in tiled(nest) else None


def _adds_up(stmt: Stmt, node: Node) -> bool:
    """Whether loops do nothing but add to the elements of an array of real numbers."""
    match stmt:
        case For(body=body):
            return all(_adds_up(inner, node) for inner in body)
        case Update(access):
            return access.node == node and node.dtype in _REALS
        case _:
            return isinstance(stmt, Comment)
