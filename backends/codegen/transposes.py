"""Transposed copies: a loop nest that copies rows into columns as calls of a prelude function.

    for column in 0..16:                         turn_f32x8(&columns[16*k + c], 16, &b[k], 99);
        for k_2 in k..k + 4:
            columns[16*k_2 + column + c] = b[column, k_2]

packs the panels of a matrix product whose factor is transposed. Compilers vectorize such a loop
with strided accesses, or not at all. The functions are in `cc/csrc/turns.h`.
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

STORE_BITS, LOAD_BITS = 256, 128
"""The widths in bits of the vectors that are stored and of those that are loaded."""


class _Strides(NamedTuple):
    """The strides of a copy: of the source in the lane loop, of the target in the inner one."""

    line: int
    gap: int


@dataclass(frozen=True, slots=True)
class TransposedCopy:
    """A transposed copy; a call transposes a tile of `width` lanes by `piece` elements."""

    lanes: For
    near: For
    store: Store
    steps: _Strides
    width: int
    piece: int

    def calls(self, scope: Scope) -> Iterator[str]:
        """Yield the calls that replace the loops."""
        for lane in range(0, _trip_count(self.lanes), self.width):
            for step in range(0, _trip_count(self.near), self.piece):
                substitution = {
                    self.lanes.symbol: self.lanes.lo + lane,
                    self.near.symbol: self.near.lo + step,
                }
                (shifted,) = substitute((self.store,), substitution)
                yield self._call(shifted, scope)

    def _call(self, stmt: Stmt, scope: Scope) -> str:
        assert isinstance(stmt, Store) and isinstance(stmt.value, Read)
        target = scope.element(stmt.access.node, stmt.access.index)
        source = scope.element(stmt.value.node, stmt.value.index)
        name = f"turn_{stmt.value.dtype.short}x{self.width}"
        return f"{name}(&{target}, {self.steps.gap}, &{source}, {self.steps.line});"


def match_transposed_copy(loop: For, bits: int) -> TransposedCopy | None:
    """Return the transposed copy that a loop nest is, for vectors of `bits`; None if it is none."""
    match loop.body:
        case (For(body=(Store(Access(node), Read() as value) as store,)) as near,):
            pass
        case _:
            return None
    if bits < STORE_BITS or value.dtype is not node.dtype or node.purpose != "panel":
        return None
    if value.dtype not in (dtypes.float32, dtypes.float64):
        return None
    width, piece = (size // value.dtype.bits for size in (STORE_BITS, LOAD_BITS))
    if not (_is_divisible(loop, width) and _is_divisible(near, piece)):
        return None
    source_stride = stride(value.node, value.index, loop.symbol)
    target_stride = stride(node, store.access.index, near.symbol)
    is_turned = stride(node, store.access.index, loop.symbol) == 1
    if (
        not is_turned
        or stride(value.node, value.index, near.symbol) != 1
        or not source_stride
        or not target_stride
    ):
        return None
    return TransposedCopy(loop, near, store, _Strides(source_stride, target_stride), width, piece)


def _trip_count(loop: For) -> int:
    return (loop.hi - loop.lo).constant or 0


def _is_divisible(loop: For, unit: int) -> bool:
    """Whether the trip count of a serial loop is a multiple of `unit`."""
    trip_count = _trip_count(loop)
    return loop.kind == "serial" and loop.step == 1 and trip_count > 0 and trip_count % unit == 0
