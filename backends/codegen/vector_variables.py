"""Which loops over lanes are vectors, and which arrays of lanes are variables of vectors.

    for lane in 0..16 vector:           f32x8 sum_lanes_0, sum_lanes_1;
        sum_lanes[lane] = 0.0

Arrays that a schedule made and that only such loops touch, whole and at fixed places, are
variables: `Plan.held` says which, and `Plan.homes` in which list of statements they are declared.
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
from ...lowering.ir.walk import bodies, expressions_of, own_writes, parts
from .vectorizable import Shape

MOST_UNROLLED = 32
"""How many rounds of a loop are written out, at most."""


def width_of(loop: For, bits: int, data: AbstractSet[int] = frozenset()) -> int:
    """Return how many lanes a vector has in a loop, 0 where it stays a loop.

    It is a power of two that divides the number of rounds, for the widest type in the loop. `data`
    are the arrays that say nothing of indices.
    """
    rounds = loop.hi.constant
    if loop.kind != "vector" or loop.lo != const(0) or loop.step != 1 or rounds is None:
        return 0
    found = Shape(loop.symbol, data)
    if not all(found.fits(stmt) for stmt in loop.body):
        return 0
    lanes = min(bits // max(found.bits, default=bits), rounds)
    return lanes if lanes > 1 and not lanes & (lanes - 1) and not rounds % lanes else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Which arrays are variables, and where these are declared."""

    bits: int
    """How wide vectors are, 0 where there are none."""
    held: Mapping[int, int] = field(default_factory=dict)
    """How many lanes each variable has, by node id."""
    homes: Mapping[int, tuple[Node, ...]] = field(default_factory=dict)
    """By the `id` of a list of statements, which lives as long as the program."""
    data: AbstractSet[int] = frozenset()
    """The arrays whose elements say nothing of indices, by their ids."""


Lists = tuple[tuple[Stmt, ...], ...]


@dataclass(slots=True)
class _Search:
    """The search for arrays that may be variables."""

    bits: int
    data: AbstractSet[int]
    widths: dict[int, set[int]] = field(default_factory=dict)
    """The lanes of each node in each of its uses, 0 where it has to be an array."""
    lists: dict[int, Lists] = field(default_factory=dict)
    """The lists around all uses of a node so far, outermost first."""
    nodes: dict[int, Node] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...], around: Lists, loops: tuple[For, ...]) -> None:
        """Look at a list of statements, and at those inside."""
        for stmt in body:
            if not isinstance(stmt, Comment):
                self.statement(stmt, around, loops)
            inside = (*loops, stmt) if isinstance(stmt, For) else loops
            lists = around
            if isinstance(stmt, For) and stmt.kind == "parallel":
                lists = ()  # it becomes a function, which has variables of its own
            named = not isinstance(stmt, While)  # its lists are written as one
            named = named and not any(loop.kind == "unrolled" for loop in inside)
            for inner in bodies(stmt):
                self.body(inner, (*lists, inner) if named else lists, inside)

    def statement(self, stmt: Stmt, around: Lists, loops: tuple[For, ...]) -> None:
        """Note what a statement itself uses."""
        places = [(one.node, one.index) for one in parts(stmt).targets]
        places += [(r.node, r.index) for e in expressions_of(stmt) for r in reads(e)]
        places += [(node, ()) for node in own_writes(stmt)] if not places else []
        for node, index in places:
            if node.purpose in ("lanes", "tile"):
                self.widths.setdefault(node.id, set()).add(self.width(node, index, loops))
                known = self.lists.get(node.id, around)
                shared = [a for a, b in zip(known, around, strict=False) if a is b]
                self.lists[node.id] = tuple(shared)
                self.nodes[node.id] = node

    def width(self, node: Node, index: tuple[Index, ...], loops: tuple[For, ...]) -> int:
        """Return how many lanes the variable has that is this place, 0 where none is."""
        if not loops or not index or index[-1] != var(loops[-1].symbol):
            return 0
        if loops[-1].hi != node.shape[-1]:
            return 0
        fixed = {loop.symbol for loop in loops if is_unrolled(loop)}
        if not all(isinstance(at, Affine) and at.symbols() <= fixed for at in index[:-1]):
            return 0
        return width_of(loops[-1], self.bits, self.data)


def is_unrolled(loop: For) -> bool:
    """Whether the rounds of a loop are written out."""
    if loop.kind != "unrolled" or loop.step != 1 or loop.lo.constant is None:
        return False
    rounds = (loop.hi - loop.lo).constant
    return rounds is not None and rounds <= MOST_UNROLLED


def plan_of(program: Program, bits: int, data: AbstractSet[int] = frozenset()) -> Plan:
    """Return which arrays of a program are variables, for vectors of that many bits.

    `data` are the arrays whose elements say nothing of indices.
    """
    if not bits:
        return Plan(0)
    search = _Search(bits, data)
    for kernel in program.kernels:
        search.body(kernel.body, (kernel.body,), ())
    held: dict[int, int] = {}
    homes: dict[int, list[Node]] = {}
    for number, widths in search.widths.items():
        lists = search.lists[number]
        if len(widths) == 1 and 0 not in widths and lists:
            held[number] = min(widths)
            homes.setdefault(id(lists[-1]), []).append(search.nodes[number])
    return Plan(bits, held, {at: tuple(nodes) for at, nodes in homes.items()}, data)


def count(node: Node, width: int) -> int:
    """Return how many variables an array is."""
    return prod(node.static_shape or ()) // width
