"""Copies of lines of memory into columns, some of each at once, by a call of the prelude.

    for column in 0..16:                         turn_f32x8(&columns[16*k + c], 16, &b[k], 99);
        for k_2 in k..k + 4:
            columns[16*k_2 + column + c] = b[column, k_2]

is what fills the panels of a product whose factor is transposed. Compilers take such a loop for one
on vectors with gaps, or for single elements. The functions are in `cc/csrc/turns.h`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...lowering.analysis.subscripts import stride
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.expressions import Read
from ...lowering.ir.loops import For, Stmt, Store
from ...lowering.ir.rewrite import substitute
from .c_expression import Scope

WIDTH, PIECE = 256, 128
"""The bits of the vectors that are stored, and of those that are loaded."""


class _Step(NamedTuple):
    """How far the places of a copy move from round to round of both loops."""

    line: int
    gap: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Two loops that copy; `width` lanes and `piece` neighbours of each are copied by a call."""

    lanes: For
    near: For
    store: Store
    steps: _Step
    width: int
    piece: int

    def calls(self, scope: Scope) -> Iterator[str]:
        """Yield the calls that do the same."""
        for lane in range(0, _rounds(self.lanes), self.width):
            for step in range(0, _rounds(self.near), self.piece):
                first = {
                    self.lanes.symbol: self.lanes.lo + lane,
                    self.near.symbol: self.near.lo + step,
                }
                (moved,) = substitute((self.store,), first)
                yield self._call(moved, scope)

    def _call(self, stmt: Stmt, scope: Scope) -> str:
        assert isinstance(stmt, Store) and isinstance(stmt.value, Read)
        to = scope.element(stmt.access.node, stmt.access.index)
        source = scope.element(stmt.value.node, stmt.value.index)
        name = f"turn_{stmt.value.dtype.short}x{self.width}"
        return f"{name}(&{to}, {self.steps.gap}, &{source}, {self.steps.line});"


def turn(loop: For, bits: int) -> Turn | None:
    """Return what two loops copy where vectors have so many bits, None for all other loops."""
    match loop.body:
        case (For(body=(Store(Access(node), Read() as value) as store,)) as near,):
            pass
        case _:
            return None
    if bits < WIDTH or value.dtype is not node.dtype or node.purpose != "panel":
        return None
    if value.dtype not in (dtypes.float32, dtypes.float64):
        return None
    width, piece = (size // value.dtype.bits for size in (WIDTH, PIECE))
    if not (_fits(loop, width) and _fits(near, piece)):
        return None
    line = stride(value.node, value.index, loop.symbol)
    gap = stride(node, store.access.index, near.symbol)
    is_turned = stride(node, store.access.index, loop.symbol) == 1
    if not is_turned or stride(value.node, value.index, near.symbol) != 1 or not line or not gap:
        return None
    return Turn(loop, near, store, _Step(line, gap), width, piece)


def _rounds(loop: For) -> int:
    return (loop.hi - loop.lo).constant or 0


def _fits(loop: For, unit: int) -> bool:
    """Whether a loop does whole units, one round after the other."""
    rounds = _rounds(loop)
    return loop.kind == "serial" and loop.step == 1 and rounds > 0 and rounds % unit == 0
