"""What a run overwrites, kept so that it can be done again: a box of each array, its first step.

    y[:, 3] += x                 becomes       kept[:, 3] = y[:, 3]
                                               y[:, 3] += x

The copy joins the loop that overwrites, so it costs one more write. Where the run may stop in
between at a check it may be half a copy then: such a function has its boxes copied before it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import (
    Access,
    Assign,
    Check,
    For,
    Parameter,
    Procedure,
    Statement,
)
from ...lowering.ir.expressions import Domain, Read
from ...lowering.ir.indexing import (
    Affine,
    Range,
    Symbol,
    const,
    evaluate,
    maximum,
    minimum,
    var,
)
from ...lowering.ir.node import Node
from ...lowering.ir.walk import binds, bodies, direct_writes, statements
from ..values.range_analysis import extreme

Box = tuple[tuple[Affine, Affine], ...]


@dataclass(frozen=True, slots=True)
class SavedBox:
    """A box of an argument, which a function reads and overwrites."""

    at: int
    """The position of the parameter."""
    box: Box

    def part(self, sizes: Mapping[Symbol, int]) -> tuple[slice, ...]:
        """Return the box as subscripts."""
        ends = ((evaluate(lo, sizes), evaluate(hi, sizes)) for lo, hi in self.box)
        return tuple(slice(lo, max(lo, hi)) for lo, hi in ends)


def saved_boxes_of(procedure: Procedure, read: Collection[int]) -> tuple[SavedBox, ...]:
    """Return what a procedure overwrites of its arguments of which some, by position, are read."""
    return tuple(
        SavedBox(at, _box_of(procedure, parameter.node))
        for at, parameter in enumerate(procedure.parameters)
        if parameter.written and at in read
    )


def keeping(procedure: Procedure, saved_boxes: Sequence[SavedBox]) -> Procedure:
    """Return a procedure that copies boxes first, to its last parameters, of their arrays' shapes.

    Precondition: it cannot stop at a check.
    """
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    number = max(node.id for node in nodes) + 1
    bound = [x for item in statements(procedure.body) for x in binds(item)]
    sizes = [x for node in nodes for extent in node.shape for x in extent.symbols()]
    serial = max((x.serial for x in (*sizes, *bound)), default=0)
    copies: list[Assign] = []
    copied: list[Parameter] = []
    for n, item in enumerate(saved_boxes):
        node = procedure.parameters[item.at].node
        copy_node = Node(number + n, f"kept_{node.label}", node.shape, node.dtype)
        copied.append(Parameter(copy_node, True))
        ranges = []
        for lo, hi in item.box:
            serial += 1
            ranges.append(Range(Symbol("i", serial), lo, hi))
        index = tuple(var(r.symbol) for r in ranges)
        points = Domain(tuple(ranges))
        copies.append(Assign(Access(copy_node, index), None, False, Read(node, index), points))
    return replace(
        procedure,
        parameters=(*procedure.parameters, *copied),
        body=(*copies, *procedure.body),
    )


def may_stop(procedure: Procedure) -> bool:
    """Whether a run may end at a check."""
    return any(isinstance(statement, Check) for statement in statements(procedure.body))


def _box_of(procedure: Procedure, node: Node) -> Box:
    """Return a box around all that a procedure writes of an array, within that."""
    sizes = {x for p in procedure.parameters for extent in p.node.shape for x in extent.symbols()}
    whole = tuple((const(0), extent) for extent in node.shape)
    hull: Box | None = None
    for box in _boxes(procedure.body, (), node):
        if box is None:
            return whole
        hull = box if hull is None else _around(hull, box, whole)
    if hull is None:
        return whole
    return tuple(
        (maximum(lo, const(0)), minimum(hi, extent))
        if lo.symbols() | hi.symbols() <= sizes
        else (const(0), extent)
        for (lo, hi), extent in zip(hull, node.shape, strict=True)
    )


def _boxes(
    body: Sequence[Statement], ranges: tuple[Range, ...], node: Node
) -> Iterator[Box | None]:
    """Yield a box around what each statement writes of an array, None where that is not known."""
    for statement in body:
        match statement:
            case Assign(target=target) if target.node == node:
                inner = (*ranges, *statement.free.ranges, *statement.reduced.ranges)
                yield tuple(
                    (extreme(at, inner, False), extreme(at, inner, True) + 1)
                    if isinstance(at, Affine)
                    else (const(0), extent)
                    for at, extent in zip(target.index, node.shape, strict=True)
                )
            case For(symbol, lo, hi, step):
                if step < 0:
                    lo, hi = hi + 1, lo + 1
                yield from _boxes(statement.body, (*ranges, Range(symbol, lo, hi)), node)
            case _:
                if node in direct_writes(statement):
                    yield None
                for inner_body in bodies(statement):
                    yield from _boxes(inner_body, ranges, node)


def _around(first: Box, second: Box, whole: Box) -> Box:
    """Return a box around two; all of an axis where it is not known now which reaches further."""
    return tuple(
        (minimum(a, b), maximum(c, d))
        if (a - b).constant is not None and (c - d).constant is not None
        else all_of_it
        for (a, c), (b, d), all_of_it in zip(first, second, whole, strict=True)
    )
