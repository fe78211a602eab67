"""Register promotion of lane arrays: which arrays of lanes become variables of vector types.

    for lane in 0..16 vector:           f32x8 sum_lanes_0, sum_lanes_1;
        sum_lanes[lane] = 0.0

Temporaries that only vectorized loops access, by whole vectors at static subscripts, are promoted:
`Plan.held` says which, and `Plan.homes` in which list of statements they are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from math import prod

from ...base.dataclass import dataclass
from ...lowering.ir.expressions import Index, reads
from ...lowering.ir.indexing import Affine, const, var
from ...lowering.ir.loops import Comment, For, Program, Stmt, While
from ...lowering.ir.node import Node
from ...lowering.ir.walk import bodies, direct_writes, expressions_of, parts
from .vectorizable import VectorBody

MAX_TRIP_COUNT = 32
"""The greatest trip count of a loop that is unrolled."""


def vector_width(loop: For, bits: int, data: AbstractSet[int] = frozenset()) -> int:
    """Return the vector width of a loop in lanes, 0 where it is not vectorized.

    It is a power of two that divides the trip count, for the widest type in the loop. `data` are
    the ids of arrays whose elements carry no facts about indices.
    """
    trip_count = loop.hi.constant
    if loop.kind != "vector" or loop.lo != const(0) or loop.step != 1 or trip_count is None:
        return 0
    shape = VectorBody(loop.symbol, data)
    if not all(shape.fits(stmt) for stmt in loop.body):
        return 0
    lanes = min(bits // max(shape.bits, default=bits), trip_count)
    return lanes if lanes > 1 and not lanes & (lanes - 1) and not trip_count % lanes else 0


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """The arrays that are promoted to variables, and where these are declared."""

    bits: int
    """The width of vectors in bits, 0 where there are none."""
    held: Mapping[int, int] = field(default_factory=dict)
    """The lanes of each variable, by node id."""
    homes: Mapping[int, tuple[Node, ...]] = field(default_factory=dict)
    """The variables that a list of statements declares, by the list's `id`, which is stable for the
    lifetime of the program."""
    data: AbstractSet[int] = frozenset()
    """The ids of arrays whose elements carry no facts about indices."""


Lists = tuple[tuple[Stmt, ...], ...]


@dataclass(slots=True)
class _Search:
    """The search for arrays that can be promoted."""

    bits: int
    data: AbstractSet[int]
    widths: dict[int, set[int]] = field(default_factory=dict)
    """The vector widths of each node over its uses, 0 where it has to be an array."""
    lists: dict[int, Lists] = field(default_factory=dict)
    """The statement lists that enclose all uses of a node so far, outermost first."""
    nodes: dict[int, Node] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...], enclosing: Lists, loops: tuple[For, ...]) -> None:
        """Visit a list of statements, and those nested in it."""
        for stmt in body:
            if not isinstance(stmt, Comment):
                self.statement(stmt, enclosing, loops)
            nest = (*loops, stmt) if isinstance(stmt, For) else loops
            lists = enclosing
            if isinstance(stmt, For) and stmt.kind == "parallel":
                lists = ()  # it is outlined into a function
            can_declare = not isinstance(stmt, While)  # its lists are printed as one block
            can_declare = can_declare and not any(loop.kind == "unrolled" for loop in nest)
            for inner in bodies(stmt):
                self.body(inner, (*lists, inner) if can_declare else lists, nest)

    def statement(self, stmt: Stmt, around: Lists, loops: tuple[For, ...]) -> None:
        """Record the accesses of a statement itself."""
        accesses = [(target.node, target.index) for target in parts(stmt).targets]
        accesses += [(r.node, r.index) for e in expressions_of(stmt) for r in reads(e)]
        accesses += [(node, ()) for node in direct_writes(stmt)] if not accesses else []
        for node, index in accesses:
            if node.purpose in ("lanes", "tile"):
                self.widths.setdefault(node.id, set()).add(self.width(node, index, loops))
                enclosing = self.lists.get(node.id, around)
                common = [a for a, b in zip(enclosing, around, strict=False) if a is b]
                self.lists[node.id] = tuple(common)
                self.nodes[node.id] = node

    def width(self, node: Node, index: tuple[Index, ...], loops: tuple[For, ...]) -> int:
        """Return the lanes of the variable that an access denotes, 0 where it denotes none."""
        if not loops or not index or index[-1] != var(loops[-1].symbol):
            return 0
        if loops[-1].hi != node.shape[-1]:
            return 0
        unrolled_symbols = {loop.symbol for loop in loops if is_unrolled(loop)}
        if not all(
            isinstance(subscript, Affine) and subscript.symbols() <= unrolled_symbols
            for subscript in index[:-1]
        ):
            return 0
        return vector_width(loops[-1], self.bits, self.data)


def is_unrolled(loop: For) -> bool:
    """Whether a loop is unrolled completely."""
    if loop.kind != "unrolled" or loop.step != 1 or loop.lo.constant is None:
        return False
    trip_count = (loop.hi - loop.lo).constant
    return trip_count is not None and trip_count <= MAX_TRIP_COUNT


def plan_vectors(program: Program, bits: int, data: AbstractSet[int] = frozenset()) -> VectorPlan:
    """Return the promoted arrays of a program, for vectors of so many bits.

    `data` are the ids of arrays whose elements carry no facts about indices.
    """
    if not bits:
        return VectorPlan(0)
    search = _Search(bits, data)
    for kernel in program.kernels:
        search.body(kernel.body, (kernel.body,), ())
    promoted: dict[int, int] = {}
    homes: dict[int, list[Node]] = {}
    for node_id, widths in search.widths.items():
        lists = search.lists[node_id]
        if len(widths) == 1 and 0 not in widths and lists:
            promoted[node_id] = min(widths)
            homes.setdefault(id(lists[-1]), []).append(search.nodes[node_id])
    return VectorPlan(bits, promoted, {at: tuple(nodes) for at, nodes in homes.items()}, data)


def variable_count(node: Node, width: int) -> int:
    """Return the number of variables that an array is promoted to."""
    return prod(node.static_shape or ()) // width
