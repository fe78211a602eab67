"""Partial results of a reduction in SIMD lanes: arrays, initialization, combination.

The functions build statements and change no program.

>>> from plusequals.lowering.ir.printer import print_statement
>>> program = lowered("y[i] = sum(x[i, j])", y="f32[8]", x="f32[8, 9]")
>>> (loop,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> update = loop.body[1].body[0]
>>> lanes = Partials(fresh_for(program))
>>> (node,) = lanes.arrays(update, 1, 4)
>>> for stmt in (lanes.initialize(update, node), *lanes.fold_lanes(update, node)):
...     print(print_statement(stmt))
for lane in 0..4 vector:
    y_lanes[lane] = -0.0
for lane in 0..2 vector:
    y_lanes[lane] += y_lanes[lane + 2]
y_lanes[0] += y_lanes[1]
y[i] += y_lanes[0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ....base.dataclass import dataclass
from ...analysis.reductions import initial_value, upper_half
from ...ir.assignments import Access
from ...ir.expressions import Const, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, const, var
from ...ir.loops import For, Stmt, Store, Update
from ...ir.node import Node
from .lane_statements import add_lane, fold_lane, lane_count

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Partials:
    """Builds arrays of partial results of a reduction, and loops over them."""

    fresh: Fresh

    def arrays(self, update: Update, count: int, width: int) -> list[Node]:
        """Return `count` arrays of `width` partial results: of a block, of blocks of blocks, of all
        terms."""
        node = update.access.node
        names = ("lanes", "blocks", "total")[:count]
        return [self.fresh.array(f"{node.label}_{n}", (width,), node.dtype, "lanes") for n in names]

    def each(self, width: int, update: Update, build: Callable[[Affine], Stmt]) -> Stmt:
        """Return a vector loop over so many lanes, or a single lane's statement."""
        if width == 1:
            return build(const(0))
        lane = self.fresh.symbol("lane")
        body = (build(var(lane)),)
        return For(lane, const(0), const(width), 1, body, "vector", update.span)

    def initialize(self, update: Update, node: Node) -> Stmt:
        """Return the loop that sets the lanes to the neutral element."""
        start = Const(initial_value(update.op, node), node.dtype)

        def store(lane: Affine) -> Stmt:
            return Store(Access(node, (lane,)), start, update.span)

        return self.each(lane_count(node), update, store)

    def add_arrays(self, update: Update, node: Node, source: Node) -> Stmt:
        """Return the loop that adds the lanes of another array to the lanes."""
        return self.each(
            lane_count(node), update, lambda lane: add_lane(update, node, lane, source, lane)
        )

    def fold_lanes(self, update: Update, node: Node) -> Body:
        """Return the loops that fold the lanes by halves, and the update of the accumulator."""
        out: list[Stmt] = []
        width = lane_count(node)
        while width > 1:
            half = upper_half(width)
            fold = partial(fold_lane, update, node, half)
            out.append(self.each(width - half, update, fold))
            width = half
        return (*out, replace(update, value=Read(node, (const(0),)), over=()))
