"""Vector stores of a tile's results: contiguous columns of a thread stored by one instruction.

    for r: for s: if j + s < J: c[i + r, j + s] = acc[r, s]
    becomes
    for r: for group:
        if j + 2*group + 1 < J: c[i + r, j + 2*group..+2] = acc[...], acc[...]
        else: for one in 0..2: if j + 2*group + one < J: c[i + r, j + 2*group + one] = acc[...]

A device writes full sectors of memory at its bandwidth, and partial ones at a fraction of it.
Precondition: columns of a thread that are contiguous in memory, aligned to the size of a store from
the start of their array, and an epilogue that is a single store.

>>> from plusequals.lowering.gpu.gemm.contraction import match_contraction
>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> gemm = match_contraction(find_band(program.kernels[0].body[1], facts_of(program)))
>>> columns = Side(gemm.columns, fresh_for(program), "column")
>>> can_vectorize_stores(gemm, columns)
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.parallel_band import contiguous_axis, static_trip_count
from ...ir.expressions import Dynamic, Index
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, var
from ...ir.instructions import StoreVector
from ...ir.loops import Comment, For, If, Stmt, Store
from ...ir.node import Node
from ...ir.rewrite import substitute
from ...transform.remap import Element, remap_accesses
from .contraction import Contraction
from .tile_side import Side

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class ColumnGroups:
    """The columns of a thread, in groups that are contiguous."""

    columns: Side
    broad: int
    """Columns of a tile."""
    column: Callable[[Affine, Affine], Affine]
    """The column of a member of a group, given the numbers of both."""
    used: Callable[[Affine, Affine, Affine], Body]
    """The epilogue of a result, given a column, its distance to that, and its number among the
    thread's."""
    groups: int

    def stored(self, fresh: Fresh) -> Body:
        """Return the stores of the results of a row of a thread."""
        group = fresh.symbol("group")
        last_column = self.column(var(group), const(thresholds.VECTOR_STORE_COLUMNS - 1))
        inner = self.store_vector(group)
        for test in self.columns.tests(last_column, self.broad):
            inner = (If(test, inner, self.store_elements(group, fresh)),)
        return (For(group, const(0), const(self.groups), 1, inner, "unrolled"),)

    def store_elements(self, group: Symbol, fresh: Fresh) -> Body:
        """Return the stores of a group, one by one."""
        member = fresh.symbol("s")
        first = self.column(var(group), const(0))
        body = self.member_epilogue(group, var(member))
        for test in self.columns.tests(first + var(member), self.broad):
            body = (If(test, body),)
        return (For(member, const(0), const(thresholds.VECTOR_STORE_COLUMNS), 1, body, "unrolled"),)

    def store_vector(self, group: Symbol) -> Body:
        """Return the store of a group as one vector store."""
        members = map(const, range(thresholds.VECTOR_STORE_COLUMNS))
        bodies = (self.member_epilogue(group, member) for member in members)
        stores = [stmt for body in bodies for stmt in body if isinstance(stmt, Store)]
        first, second = (stmt.access for stmt in stores)
        (axis,) = (at for at in range(-first.node.rank, 0) if first.index[at] != second.index[at])
        return (StoreVector(first, axis, tuple(stmt.value for stmt in stores), stores[0].span),)

    def member_epilogue(self, group: Symbol, member: Affine) -> Body:
        """Return the epilogue of the result of a member of a group."""
        first = self.column(var(group), const(0))
        return self.used(first, member, var(group) * thresholds.VECTOR_STORE_COLUMNS + member)


def build_result_epilogue(
    gemm: Contraction, values: Mapping[Symbol, Affine], accumulator: Element
) -> Body:
    """Return the epilogue of a result, given the loop variables and its accumulator."""

    def redirect(node: Node, index: tuple[Index, ...]) -> Element:
        return (node, index) if node != gemm.total else accumulator

    return remap_accesses(substitute(gemm.rest, values), redirect)


def can_vectorize_stores(gemm: Contraction, columns: Side) -> bool:
    """Whether two neighbouring columns can be stored by one instruction."""
    (*leading, stmt), last = gemm.rest, columns.loops[-1]
    if not isinstance(stmt, Store) or any(not isinstance(earlier, Comment) for earlier in leading):
        return False
    node, index = stmt.access.node, stmt.access.index
    if node.dtype.kind not in "fiu" or node.dtype.bits < 16 or node.strides is not None:
        return False
    trip_count, first = static_trip_count(last), last.lo.constant
    if first is None or first % thresholds.VECTOR_STORE_COLUMNS:
        return False
    is_aligned = len(columns.loops) == 1 or (
        trip_count is not None and trip_count % thresholds.VECTOR_STORE_COLUMNS == 0
    )
    is_next = contiguous_axis(node, index, last.symbol) is not None
    return (
        is_aligned
        and is_next
        and _alignment(node, index, last.symbol) % thresholds.VECTOR_STORE_COLUMNS == 0
    )


def _alignment(node: Node, index: tuple[Index, ...], last: Symbol) -> int:
    """Return a divisor of an element's flat position where `last` is zero; 1 if dynamic."""
    total = 0
    for subscript, stride in zip(index, node.element_strides, strict=True):
        if isinstance(subscript, Dynamic) or stride.constant is None or node.static_shape is None:
            return 1
        others = (k for atom, k in subscript.terms if atom != last)
        total = gcd(total, *(part * stride.constant for part in (subscript.offset, *others)))
    return total
