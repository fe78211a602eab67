"""What is done with the sums of a tile, where it only stores them: neighbours by one instruction.

    for r: for s: if j + s < J: c[i + r, j + s] = acc[r, s]
    becomes
    for r: for group:
        if j + 2*group + 1 < J: for one in 0..2 paired: c[i + r, j + 2*group + one] = acc[...]
        else: for one in 0..2: if j + 2*group + one < J: c[i + r, j + 2*group + one] = acc[...]

A device writes whole sectors of memory at the rate of its bandwidth, parts of them at a part of it.
Needs columns of a thread that are neighbours in memory, at multiples of what one instruction stores
from where their array begins, and a store of nothing else.

>>> from plusequals.lowering.gpu.gemm.contraction import contraction
>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> what = contraction(band(program.kernels[0].body[1], facts_of(program)))
>>> columns = Side(what.columns, fresh_for(program), "column")
>>> together(what, columns)
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from ....base.dataclass import dataclass
from ...analysis.parallel_band import distance_of, trips
from ...ir.expressions import Dynamic, Index
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, var
from ...ir.loops import Comment, For, If, LoopKind, Stmt, Store
from ...ir.node import Node
from ...ir.rewrite import substitute
from ...transform.remap import Place, elsewhere
from .contraction import Contraction
from .tile_side import Side

Body = tuple[Stmt, ...]
SIZE = 2
"""So many are stored at once: with more, a compiler has too few registers for the sums."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The columns of a thread, some of which are side by side."""

    columns: Side
    broad: int
    """Columns of a tile."""
    column: Callable[[Affine, Affine], Affine]
    """Where one of a group is among all columns, given their numbers."""
    used: Callable[[Affine, Affine, Affine], Body]
    """What is done with a sum, given where its column is, how many columns further than that, and
    its number among the thread's."""
    groups: int

    def stored(self, fresh: Fresh) -> Body:
        """Return what stores the sums of a row of a thread."""
        group = fresh.symbol("group")
        last = self.column(var(group), const(SIZE - 1))
        inner = self.each(group, "paired", fresh)
        for test in self.columns.tests(last, self.broad):
            inner = (If(test, inner, self.each(group, "unrolled", fresh)),)
        return (For(group, const(0), const(self.groups), 1, inner, "unrolled"),)

    def each(self, group: Symbol, kind: LoopKind, fresh: Fresh) -> Body:
        """Return what stores those of a group, together or one by one."""
        one = fresh.symbol("s")
        first, number = self.column(var(group), const(0)), var(group) * SIZE + var(one)
        body = self.used(first, var(one), number)
        if kind != "paired":
            for test in self.columns.tests(first + var(one), self.broad):
                body = (If(test, body),)
        return (For(one, const(0), const(SIZE), 1, body, kind),)


def done_with(what: Contraction, here: Mapping[Symbol, Affine], sum_: Place) -> Body:
    """Return what is done with a sum, given what the loops are there, and where the sum is held."""

    def moved(node: Node, index: tuple[Index, ...]) -> Place:
        return (node, index) if node != what.total else sum_

    return elsewhere(substitute(what.rest, here), moved)


def together(what: Contraction, columns: Side) -> bool:
    """Whether two neighbouring columns are stored by one instruction."""
    (*before, stmt), last = what.rest, columns.loops[-1]
    if not isinstance(stmt, Store) or any(not isinstance(one, Comment) for one in before):
        return False
    node, index = stmt.access.node, stmt.access.index
    if node.dtype.kind not in "fiu" or node.dtype.bits < 16 or node.strides is not None:
        return False
    rounds, first = trips(last), last.lo.constant
    if first is None or first % SIZE:
        return False
    fits = len(columns.loops) == 1 or (rounds is not None and rounds % SIZE == 0)
    is_next = distance_of(node, index, last.symbol) == 1
    return fits and is_next and _gap(node, index, last.symbol) % SIZE == 0


def _gap(node: Node, index: tuple[Index, ...], last: Symbol) -> int:
    """Return of what an element's place is a multiple where a variable is; 1 where that varies."""
    total = 0
    for one, stride in zip(index, node.element_strides, strict=True):
        if isinstance(one, Dynamic) or stride.constant is None or node.static_shape is None:
            return 1
        others = (k for atom, k in one.terms if atom != last)
        total = gcd(total, *(part * stride.constant for part in (one.offset, *others)))
    return total
