"""Outer-loop vectorization: adjacent iterations of an outer loop in SIMD lanes.

Changes: a loop with independent iterations and inner loops is strip-mined. Each statement of a
strip is executed for all of its iterations before the next one: loops over lanes are innermost, so
that they are vectorized and memory is read in its order. Private scalars and arrays get an element
for each lane (expansion); loop-invariant elements with a large stride from lane to lane are
gathered before the inner loop. The remaining iterations run as before.

    for j: s = 0; for k: s = s + term(j, k); y[j] = rest(s)
    for j: s[c] = 0; for k: s[c] = s[c] + term(j + c, k); y[j + c] = rest(s[c])       0 <= c < C

Loops of a few iterations in a strip are unrolled and jammed first (`unroll_and_jam`).

Precondition: iterations that may run in any order, with unit stride in the innermost loops.
Postcondition: bit-identical: each iteration does what it did, in its order.

>>> from plusequals.lowering.passes.contract_arrays import contract_arrays
>>> show(lambda program: vectorize_outer(contract_arrays(program).program, Target(schedule=True)),
...      "y[j] = sum(x[i, j])", y="f32[70]", x="f32[9, 70]")
for j in 0..64 step 32:
    for lane in 0..32 vector:
        y_acc_lanes[lane] = 0.0
    for i in 0..9:
        for lane in 0..32 vector:
            y_acc_lanes[lane] += x[i, j + lane]
    for lane in 0..32 vector:
        y[j + lane] = y_acc_lanes[lane]
for j in 64..70:
    y_acc = 0.0
    for i in 0..9:
        y_acc += x[i, j]
    y[j] = y_acc
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple

from ...base.dataclass import dataclass
from ...base.lazy_import import LazyModule
from ..analysis.dependence import find_dependence, find_privatizable
from ..analysis.subscripts import is_in_range, ranges, stride
from ..analysis.vectorizable import OuterLoop, statement_accesses, subscript_symbols
from ..ir.assignments import Access
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import (
    Expr,
    Index,
    Read,
    reads,
    rebuild,
)
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import Comment, For, LoopKind, Program, Stmt, Store, Update
from ..ir.node import Node, Purpose
from ..ir.rewrite import substitute
from ..ir.walk import expressions_of, statements, writes
from ..target import Target
from ..transform.outermost import OutermostRewriter

if TYPE_CHECKING:
    from . import unroll_and_jam
else:  # what few programs need
    unroll_and_jam = LazyModule(".unroll_and_jam", __package__)

Body = tuple[Stmt, ...]
Element = tuple[int, tuple[Index, ...]]
"""A node, by its id, and the subscripts of an element."""


class OuterLoopReason(Reason):
    """Why an outer loop is vectorized."""

    INDEPENDENT = "its iterations are independent, and the inner loops stay in order"


def vectorize_outer(program: Program, target: Target) -> Decided:
    """Return the program with outer loops vectorized, and the decisions."""
    return _OuterVectorizer.on(program, target)


class FoundLanes(NamedTuple):
    """An outer loop that can be vectorized."""

    shape: OuterLoop
    privates: frozenset[int]
    """The ids of the private nodes of each iteration."""
    lanes: int
    """How many of its widest elements a vector has."""


def find_lanes(
    loop: For, outer: tuple[For, ...], target: Target, only: frozenset[int],
    temporaries: frozenset[int],
) -> FoundLanes | None:  # fmt: skip
    """Return a loop that can be vectorized, with what that needs; None for others.

    `outer` are the loops around it, `only` the nodes that nothing else accesses, and `temporaries`
    those of the program, all by their ids.
    """
    shape = OuterLoop(loop, target.reorders, outer)
    trip_count = (loop.hi - loop.lo).constant
    if not shape.is_plain():
        return None
    lanes = target.lanes(max(node.dtype.bits for node in shape.nodes()))
    if lanes < 2 or (trip_count is not None and trip_count < lanes):
        return None
    privates = find_privatizable(loop, only)
    footprint = shape.private_bytes(privates)
    if footprint is None or footprint * lanes > target.l2_bytes or not shape.is_near(privates):
        return None
    if find_dependence(loop, privates, temporaries, ranges(outer)) is not None:
        return None
    return FoundLanes(shape, privates, lanes)


class _OuterVectorizer(OutermostRewriter):
    """The vectorization of the outer loops of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in strips; None where it stays as it is."""
        found = find_lanes(loop, outer, self.target, self.only()[id(loop)], self.temporaries)
        if found is None:
            return None
        shape, privates, lanes = found
        written = writes(loop.body)
        node = next((node for node in written if node.id not in privates), written[0])
        self.decisions.append(
            Decision("vectorized", OuterLoopReason.INDEPENDENT, node, span=loop.span)
        )
        widths = self.widths(shape, privates, lanes)
        jammed, privates = unroll_and_jam.unroll_and_jam(
            loop, self.fresh, privates, self.only(), self.temporaries, outer
        )
        shape = replace(shape, loop=jammed)

        def strip(width: int, first: Affine, last: Affine) -> Stmt:
            symbol, is_long = self.fresh.symbol(loop.symbol.name), width > 4 * lanes
            body = _Strip(self.fresh, shape, privates, width, symbol, is_long).build()
            return For(symbol, first, last, width, body, span=loop.span)

        return self.strip_mine(loop, self.end(loop, outer), widths, strip)

    def widths(self, shape: OuterLoop, privates: frozenset[int], lanes: int) -> tuple[int, ...]:
        """Return the widths of strips: some registers or, where much memory is touched, long
        rows."""
        expanded_bytes, lane_bytes = shape.private_bytes(privates) or 0, shape.lane_bytes(privates)
        wide = (4 * lanes,) if expanded_bytes * 4 * lanes <= self.target.l1_bytes else ()
        trip_count, touched = (shape.loop.hi - shape.loop.lo).constant, shape.touched()
        if trip_count is None or touched <= self.target.l2_bytes:
            return (*wide, lanes)
        most = min(self.target.l1_bytes // (2 * lane_bytes), trip_count // self.target.threads)
        longest = 1 << max(most, 1).bit_length() - 1
        return (*((longest,) if longest > 4 * lanes else ()), *wide, lanes)


@dataclass(slots=True)
class _Strip:
    """A strip of iterations, one in each lane."""

    fresh: Fresh
    shape: OuterLoop
    privates: frozenset[int]
    """The ids of the private nodes of each iteration."""
    width: int
    start: Symbol
    """The first iteration of the strip."""
    is_long: bool
    """Whether it has more lanes than the registers hold."""
    expanded: dict[int, Node] = field(default_factory=dict)
    """The expanded nodes, with an element for each lane, by the id of the private node."""

    @property
    def loop(self) -> For:
        return self.shape.loop

    def build(self) -> Body:
        """Return the statements of a strip."""
        groups_of: dict[int, set[int]] = {}
        for number, group in enumerate(_split_at_loops(self.loop.body)):
            for stmt in group:
                for node, _ in statement_accesses(stmt):
                    if node.id in self.privates:
                        groups_of.setdefault(node.id, set()).add(number)
                        is_expanded = node.rank or len(groups_of[node.id]) > 1
                        if is_expanded and node.id not in self.expanded:
                            self.expanded[node.id] = self.expand(node)
        return self.body(self.loop.body, {}, (*self.shape.outer, self.loop))

    def expand(self, node: Node) -> Node:
        """Return an array with an element of a node for each lane."""
        shape = (*(node.static_shape or ()), self.width)
        purpose: Purpose = "panel" if node.rank or self.is_long else "tile"
        return self.fresh.array(f"{node.label}_lanes", shape, node.dtype, purpose)

    def body(self, body: Body, near: Mapping[Element, Node], outer: tuple[For, ...]) -> Body:
        """Return statements for all lanes; `near` are the elements that were gathered before."""
        out: list[Stmt] = []
        group: list[Stmt] = []
        near = dict(near)
        for stmt in body:
            if not isinstance(stmt, For):
                group.append(stmt)
                continue
            gathered = self.find_gathers(stmt, near, outer)
            out += self.lanes([*group, *(store for _, store in gathered.values())], near)
            near |= {element: node for element, (node, _) in gathered.items()}
            out.append(replace(stmt, body=self.body(stmt.body, near, (*outer, stmt))))
            group = []
        return (*out, *self.lanes(group, near))

    def find_gathers(
        self, loop: For, near: Mapping[Element, Node], outer: tuple[For, ...]
    ) -> dict[Element, tuple[Node, Store]]:
        """Return the invariant elements that a loop reads with a large stride from lane to lane,
        each with its array and the store that gathers it.

        Their subscripts are in bounds even where the loop has no iterations.
        """
        inside = statements((loop,))
        inner_symbols = {stmt.symbol for stmt in inside if isinstance(stmt, For)}
        written = {node.id for node in writes(self.loop.body)}
        gathers: dict[Element, tuple[Node, Store]] = {}
        for read in (r for stmt in inside for e in expressions_of(stmt) for r in reads(e)):
            element = read.node.id, read.index
            if element in near or element in gathers or read.node.id in written:
                continue
            if subscript_symbols(read.index) & inner_symbols or self.step(read) in (0, 1):
                continue
            if not is_in_range(read.node, read.index, ranges(outer)):
                continue
            scalar = Node(-1, read.node.label, (), read.dtype)
            node = self.expand(scalar)
            gathers[element] = node, Store(Access(node, ()), read, loop.span)
        return gathers

    def step(self, read: Read) -> int | None:
        return stride(read.node, read.index, self.loop.symbol)

    def lanes(self, group: list[Stmt], near: Mapping[Element, Node]) -> Body:
        """Return the loop over lanes that executes some statements."""
        out: list[Stmt] = []
        while group and isinstance(group[0], Comment):
            out.append(group.pop(0))
        if not group:
            return tuple(out)
        lane = self.fresh.symbol("lane")

        def expand_access(access: Access) -> Access:
            node = self.expanded.get(access.node.id)
            if node is not None:
                return Access(node, (*access.index, var(lane)))
            is_near = access.node.rank and not access.index
            return Access(access.node, (var(lane),)) if is_near else access

        def value(expr: Expr) -> Expr:
            if isinstance(expr, Read):
                gathered = near.get((expr.node.id, expr.index))
                if gathered is not None:
                    return Read(gathered, (var(lane),), expr.span)
                if expr.node.id in self.expanded:
                    return Read(self.expanded[expr.node.id], (*expr.index, var(lane)), expr.span)
            return rebuild(expr, value, lambda index: index)

        body: list[Stmt] = []
        for stmt in group:
            if isinstance(stmt, Store | Update):
                stmt = replace(stmt, access=expand_access(stmt.access), value=value(stmt.value))
            body.append(stmt)
        lane_body = substitute(tuple(body), {self.loop.symbol: var(self.start) + var(lane)})
        kind: LoopKind = "serial" if self.is_long else "vector"
        return (*out, For(lane, const(0), const(self.width), 1, lane_body, kind, self.loop.span))


def _split_at_loops(body: Body) -> Iterator[list[Stmt]]:
    """Yield the runs of statements without a loop between them."""
    group: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            yield group
            yield from _split_at_loops(stmt.body)
            group = []
        else:
            group.append(stmt)
    yield group
