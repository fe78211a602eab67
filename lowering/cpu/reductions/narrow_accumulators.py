"""Sums of small whole numbers: added up in 32 bits, as long as those hold them.

Changes: a loop that adds numbers of at most 16 bits to one of 64 adds them to one of 32 instead,
which goes to the other as often as it must. A vector holds twice as many of those, and a small
number takes fewer steps to become one:

    for j: total += i64(x[j])
    becomes
    for b in 0..n step B:
        part = 0; for j in b..min(n, b + B): part += i32(x[j])
        total += i64(part)

Needs: terms that are conversions of such numbers, and rounds that do nothing but compute, and do
not touch the sum otherwise. Guarantees: not a bit changes: B terms never leave 32 bits, and whole
numbers add in any order.

>>> from plusequals.lowering.target import Target
>>> from plusequals.lowering.passes.contract_arrays import shrink
>>> show(lambda program: narrow(shrink(program), Target(schedule=True)),
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

from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Cast, Const, Read
from ...ir.indexing import Affine, minimum, var
from ...ir.loops import Comment, For, Program, Store, Update
from ...ir.node import Node
from ...ir.walk import own_reads, own_writes
from ...target import Target
from ...transform.outermost import Body, Outermost

if TYPE_CHECKING:
    from ...ir.dtypes import DType

FEW = 16
"""A loop of so few rounds is not worth it."""


class Narrow(Reason):
    """Why a sum is added up in fewer bits."""

    SMALL = "its terms are so small that 32 bits hold the sum of many"


def narrow(program: Program, target: Target) -> Program:
    """Return the program with sums of small whole numbers in 32 bits."""
    return in_narrow(program, target).program


def in_narrow(program: Program, target: Target) -> Decided:
    """Return the program with sums of small whole numbers in 32 bits, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return what takes the place of a loop that adds small numbers, None for others."""
        count = (loop.hi - loop.lo).constant
        worth = (count is None or count > FEW) and self.target.lanes(64) > 1
        found = _small(loop) if worth else {}
        if not found:
            return None
        for update in found.values():
            node, span = update.access.node, update.span
            self.decisions.append(Decision("lanes", Narrow.SMALL, node, span=span))
        parts = {
            number: self.fresh.scalar(f"{update.access.node.label}_part", dtypes.int32)
            for number, update in found.items()
        }
        most = min(_most(update) for update in found.values())
        if count is not None and count <= most:
            return self.within(loop, found, parts)
        block = self.fresh.symbol(loop.symbol.name)
        end = minimum(loop.hi, var(block) + most)
        inner = self.within(replace(loop, lo=var(block), hi=end), found, parts)
        return (replace(loop, symbol=block, step=most, body=inner),)

    def within(self, loop: For, found: dict[int, Update], parts: dict[int, Node]) -> Body:
        """Return the loop that adds to the parts, what starts them, and what adds them."""
        zeros = (Store(Access(part, ()), Const(0, part.dtype)) for part in parts.values())
        body = tuple(
            stmt if id(stmt) not in parts else _to_part(found[id(stmt)], parts[id(stmt)])
            for stmt in loop.body
        )
        sums = (
            replace(update, value=Cast(Read(parts[number], ()), update.value.dtype), over=())
            for number, update in found.items()
        )
        return (*zeros, replace(loop, body=body), *sums)


def _to_part(update: Update, part: Node) -> Update:
    assert isinstance(update.value, Cast), "only conversions are found"
    value = Cast(update.value.value, part.dtype)
    return replace(update, access=Access(part, ()), value=value, over=())


def _small(loop: For) -> dict[int, Update]:
    """Return the sums of small numbers of a loop, by the `id` of the statement."""
    plain = all(isinstance(stmt, Update | Store | Comment) for stmt in loop.body)
    if not plain or loop.step != 1 or loop.kind != "serial":
        return {}
    touched = [node.id for s in loop.body for node in (*own_reads(s), *own_writes(s))]
    return {
        id(stmt): stmt for stmt in loop.body
        if isinstance(stmt, Update) and _is_small(stmt)
        and touched.count(stmt.access.node.id) == [*_uses(stmt)].count(stmt.access.node.id)
        and all(isinstance(i, Affine) and loop.symbol not in i.symbols() for i in stmt.access.index)
    }  # fmt: skip


def _uses(update: Update) -> tuple[int, ...]:
    return tuple(node.id for node in (*own_reads(update), *own_writes(update)))


def _is_small(update: Update) -> bool:
    """Whether an accumulation adds small whole numbers to one of 64 bits."""
    node, value = update.access.node, update.value
    wide = node.dtype.kind in "iu" and node.dtype.bits == 64 and value.dtype is node.dtype
    if not wide or update.op.name != "add" or update.pair is not None:
        return False
    return isinstance(value, Cast) and _bits(value.value.dtype) <= 16


def _bits(dtype: DType) -> int:
    """Return how many bits the values of a type have besides a sign."""
    if dtype.kind == "b":
        return 1
    return dtype.bits if dtype.kind in "iu" else 64


def _most(update: Update) -> int:
    """Return how many terms 32 bits surely hold."""
    assert isinstance(update.value, Cast), "only conversions are found"
    return 1 << 31 - max(_bits(update.value.value.dtype), 8)
