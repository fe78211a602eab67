"""Narrow accumulators: sums of small integers in 32 bits, widened before they overflow.

Changes: a loop that adds integers of at most 16 bits to an accumulator of 64 adds them to one of 32
instead, which is added to the other as often as it must. A vector holds twice as many of those, and
a small integer is converted in fewer steps:

    for j: total += i64(x[j])
    becomes
    for b in 0..n step B:
        part = 0; for j in b..min(n, b + B): part += i32(x[j])
        total += i64(part)

Precondition: terms that are conversions of such integers, and iterations that only compute, and do
not use the accumulator otherwise. Postcondition: bit-identical: B terms never overflow 32 bits, and
integer addition is associative.

>>> from plusequals.lowering.target import Target
>>> from plusequals.lowering.passes.contract_arrays import contract_arrays
>>> target = Target(schedule=True)
>>> show(lambda program: narrow_accumulators(contract_arrays(program).program, target),
...      "y[i] = sum(x[i, j], acc=i64)", y="i64[8]", x="u8[8, 90]")
for i in 0..8:
    y_acc = 0
    y_acc_part = 0
    for j in 0..90:
        y_acc_part += i32(x[i, j])
    y_acc += i64(y_acc_part)
    y[i] = y_acc
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ... import thresholds
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Cast, Const, Read, reads
from ...ir.indexing import Affine, minimum, var
from ...ir.loops import Comment, For, Program, Store, Update
from ...ir.node import Node
from ...ir.walk import direct_reads, direct_writes
from ...target import Target
from ...transform.outermost import Body, OutermostRewriter

if TYPE_CHECKING:
    from ...ir.dtypes import DType


class NarrowReason(Reason):
    """Why a sum is accumulated in fewer bits."""

    SMALL = "its terms are so small that 32 bits hold the sum of many"


def narrow_accumulators(program: Program, target: Target) -> Decided:
    """Return the program with sums of small integers in 32 bits, and the decisions."""
    return _Narrowing.on(program, target)


class _Narrowing(OutermostRewriter):
    """The narrowing of the accumulators of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return the loops that replace one that adds small integers; None for others."""
        count = (loop.hi - loop.lo).constant
        is_candidate = (
            count is None or count > thresholds.MAX_WIDE_ACCUMULATOR_ITERATIONS
        ) and self.target.lanes(64) > 1
        updates = _find_small_sums(loop) if is_candidate else {}
        if not updates:
            return None
        for update in updates.values():
            node, span = update.access.node, update.span
            self.decisions.append(Decision("lanes", NarrowReason.SMALL, node, span=span))
        parts = {
            number: self.fresh.scalar(f"{update.access.node.label}_part", dtypes.int32)
            for number, update in updates.items()
        }
        most = min(_safe_count(update) for update in updates.values())
        if count is not None and count <= most:
            return self.narrow_loop(loop, updates, parts)
        block = self.fresh.symbol(loop.symbol.name)
        end = minimum(loop.hi, var(block) + most)
        inner = self.narrow_loop(replace(loop, lo=var(block), hi=end), updates, parts)
        return (replace(loop, symbol=block, step=most, body=inner),)

    def narrow_loop(self, loop: For, updates: dict[int, Update], parts: dict[int, Node]) -> Body:
        """Return the loop over narrow accumulators, their initialization, and their widening."""
        zeros = (Store(Access(part, ()), Const(0, part.dtype)) for part in parts.values())
        body = tuple(
            stmt if id(stmt) not in parts else _narrow_update(updates[id(stmt)], parts[id(stmt)])
            for stmt in loop.body
        )
        sums = (
            replace(update, value=Cast(Read(parts[number], ()), update.value.dtype), over=())
            for number, update in updates.items()
        )
        return (*zeros, replace(loop, body=body), *sums)


def _narrow_update(update: Update, part: Node) -> Update:
    assert isinstance(update.value, Cast), "only conversions are found"
    value = Cast(update.value.value, part.dtype)
    return replace(update, access=Access(part, ()), value=value, over=())


def _find_small_sums(loop: For) -> dict[int, Update]:
    """Return the sums of small integers in a loop, by the `id` of the update."""
    is_plain = all(isinstance(stmt, Update | Store | Comment) for stmt in loop.body)
    if not is_plain or loop.step != 1 or loop.kind != "serial":
        return {}
    touched = [node.id for s in loop.body for node in (*direct_reads(s), *direct_writes(s))]
    return {
        id(stmt): stmt for stmt in loop.body
        if isinstance(stmt, Update) and _is_small(stmt)
        and touched.count(stmt.access.node.id) == [*_used_ids(stmt)].count(stmt.access.node.id)
        and all(isinstance(i, Affine) and loop.symbol not in i.symbols() for i in stmt.access.index)
    }  # fmt: skip


def _used_ids(update: Update) -> tuple[int, ...]:
    return tuple(node.id for node in (*direct_reads(update), *direct_writes(update)))


def _is_small(update: Update) -> bool:
    """Whether an update adds small integers to a 64-bit one."""
    node, value = update.access.node, update.value
    is_wide = node.dtype.kind in "iu" and node.dtype.bits == 64 and value.dtype is node.dtype
    if not is_wide or update.op.name != "add" or update.pair is not None:
        return False
    if any(read.node == node for read in reads(value)):
        return False  # a term that depends on the sum so far
    return isinstance(value, Cast) and _bits(value.value.dtype) <= 16


def _bits(dtype: DType) -> int:
    """Return the number of bits of a type without the sign."""
    if dtype.kind == "b":
        return 1
    return dtype.bits if dtype.kind in "iu" else 64


def _safe_count(update: Update) -> int:
    """Return how many terms 32 bits hold without overflow."""
    assert isinstance(update.value, Cast), "only conversions are found"
    return 1 << 31 - max(_bits(update.value.value.dtype), 8)
