"""Neighbouring rounds of an outer loop abreast: each is done in a lane of its own.

Changes: a loop whose rounds need nothing of each other, and have loops inside, becomes one over
strips of rounds. Each statement of a strip is done for all of its rounds before the next one: loops
over lanes are innermost, so that they become vectors and memory is read in its order. What a round
keeps for itself has an element for each lane; what lies further apart from round to round is put
side by side before a loop in which it stays the same. What is left of the rounds runs as before.

    for j: s = 0; for k: s = s + term(j, k); y[j] = rest(s)
    for j: s[c] = 0; for k: s[c] = s[c] + term(j + c, k); y[j + c] = rest(s[c])       0 <= c < C

Loops of a few rounds in a strip are unrolled into those inside of them first (`jam`).

Needs: rounds that may run in any order, and neighbours in memory where the innermost loops are.
Guarantees: not a bit changes: each round does what it did, in its order.

>>> from plusequals.lowering.passes.contract_arrays import shrink
>>> show(lambda program: abreast(shrink(program), Target(schedule=True)),
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
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import Later
from ..analysis.dependence import independent, private
from ..analysis.subscripts import is_in_range, ranges, stride
from ..analysis.vectorizable import Outer, places, symbols_in
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
from ..transform.outermost import Outermost

if TYPE_CHECKING:
    from . import unroll_and_jam
else:  # what few programs need
    unroll_and_jam = Later(".unroll_and_jam", __package__)

Body = tuple[Stmt, ...]
Place = tuple[int, tuple[Index, ...]]
"""A node by its id, and an index."""


class Abreast(Reason):
    """Why rounds are done side by side."""

    APART = "the rounds of a loop inside wait for each other, those of this one do not"


def abreast(program: Program, target: Target) -> Program:
    """Return the program with neighbouring rounds of outer loops side by side."""
    return rounds_abreast(program, target).program


def rounds_abreast(program: Program, target: Target) -> Decided:
    """Return the program with neighbouring rounds of outer loops side by side, and which."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in strips, None where it has to stay as it is."""
        shape = Outer(loop, self.target.reorders, outer)
        rounds = (loop.hi - loop.lo).constant
        if not shape.is_plain():
            return None
        lanes = self.target.lanes(max(node.dtype.bits for node in shape.nodes()))
        if lanes < 2 or (rounds is not None and rounds < lanes):
            return None
        mine = private(loop, self.only()[id(loop)])
        room = shape.room(mine)
        if room is None or room * lanes > self.target.l2_bytes or not shape.is_near(mine):
            return None
        if independent(loop, mine, self.own, ranges(outer)) is not None:
            return None
        changed = writes(loop.body)
        node = next((node for node in changed if node.id not in mine), changed[0])
        self.decisions.append(Decision("abreast", Abreast.APART, node, span=loop.span))
        widths = self.widths(shape, mine, lanes)
        whole, mine = unroll_and_jam.jammed(loop, self.fresh, mine, self.only(), self.own, outer)
        shape = replace(shape, loop=whole)

        def strip(width: int, first: Affine, last: Affine) -> Stmt:
            at, long = self.fresh.symbol(loop.symbol.name), width > 4 * lanes
            body = _Strip(self.fresh, shape, mine, width, at, long).made()
            return For(at, first, last, width, body, span=loop.span)

        return self.cut(loop, self.end(loop, outer), widths, strip)

    def widths(self, shape: Outer, mine: frozenset[int], lanes: int) -> tuple[int, ...]:
        """Return how many rounds the strips have: some registers, or of much memory, long rows."""
        room, kept = shape.room(mine) or 0, shape.kept(mine)
        wide = (4 * lanes,) if room * 4 * lanes <= self.target.l1_bytes else ()
        rounds, touched = (shape.loop.hi - shape.loop.lo).constant, shape.touched()
        if rounds is None or touched <= self.target.l2_bytes:
            return (*wide, lanes)
        most = min(self.target.l1_bytes // (2 * kept), rounds // self.target.threads)
        longest = 1 << max(most, 1).bit_length() - 1
        return (*((longest,) if longest > 4 * lanes else ()), *wide, lanes)


@dataclass(slots=True)
class _Strip:
    """Some rounds of a loop, one in each lane."""

    fresh: Fresh
    shape: Outer
    mine: frozenset[int]
    """What each round has for itself."""
    width: int
    at: Symbol
    """The first round of the strip."""
    long: bool
    """Whether it has more lanes than registers have."""
    own: dict[int, Node] = field(default_factory=dict)
    """What has an element for each lane, by the id of what has one."""

    @property
    def loop(self) -> For:
        return self.shape.loop

    def made(self) -> Body:
        """Return what is done for a strip."""
        found: dict[int, set[int]] = {}
        for number, group in enumerate(_groups(self.loop.body)):
            for stmt in group:
                for node, _ in places(stmt):
                    if node.id in self.mine:
                        found.setdefault(node.id, set()).add(number)
                        shared = node.rank or len(found[node.id]) > 1
                        if shared and node.id not in self.own:
                            self.own[node.id] = self.spread(node)
        return self.body(self.loop.body, {}, (*self.shape.outer, self.loop))

    def spread(self, node: Node) -> Node:
        """Return an array with an element of a node for each lane."""
        shape = (*(node.static_shape or ()), self.width)
        purpose: Purpose = "panel" if node.rank or self.long else "tile"
        return self.fresh.array(f"{node.label}_lanes", shape, node.dtype, purpose)

    def body(self, body: Body, near: Mapping[Place, Node], around: tuple[For, ...]) -> Body:
        """Return statements for all lanes; `near` has been put side by side before."""
        out: list[Stmt] = []
        group: list[Stmt] = []
        near = dict(near)
        for stmt in body:
            if not isinstance(stmt, For):
                group.append(stmt)
                continue
            moved = self.far(stmt, near, around)
            out += self.lanes([*group, *(store for _, store in moved.values())], near)
            near |= {place: node for place, (node, _) in moved.items()}
            out.append(replace(stmt, body=self.body(stmt.body, near, (*around, stmt))))
            group = []
        return (*out, *self.lanes(group, near))

    def far(
        self, loop: For, near: Mapping[Place, Node], around: tuple[For, ...]
    ) -> dict[Place, tuple[Node, Store]]:
        """Return what a loop reads that stays the same in it and is apart from lane to lane.

        It is there even where the loop has no rounds.
        """
        inside = statements((loop,))
        bound = {stmt.symbol for stmt in inside if isinstance(stmt, For)}
        changed = {node.id for node in writes(self.loop.body)}
        found: dict[Place, tuple[Node, Store]] = {}
        for read in (r for stmt in inside for e in expressions_of(stmt) for r in reads(e)):
            place = read.node.id, read.index
            if place in near or place in found or read.node.id in changed:
                continue
            if symbols_in(read.index) & bound or self.step(read) in (0, 1):
                continue
            if not is_in_range(read.node, read.index, ranges(around)):
                continue
            scalar = Node(-1, read.node.label, (), read.dtype)
            node = self.spread(scalar)
            found[place] = node, Store(Access(node, ()), read, loop.span)
        return found

    def step(self, read: Read) -> int | None:
        return stride(read.node, read.index, self.loop.symbol)

    def lanes(self, group: list[Stmt], near: Mapping[Place, Node]) -> Body:
        """Return the loop over lanes that does some statements."""
        out: list[Stmt] = []
        while group and isinstance(group[0], Comment):
            out.append(group.pop(0))
        if not group:
            return tuple(out)
        lane = self.fresh.symbol("lane")

        def place(access: Access) -> Access:
            node = self.own.get(access.node.id)
            if node is not None:
                return Access(node, (*access.index, var(lane)))
            is_near = access.node.rank and not access.index
            return Access(access.node, (var(lane),)) if is_near else access

        def value(expr: Expr) -> Expr:
            if isinstance(expr, Read):
                aside = near.get((expr.node.id, expr.index))
                if aside is not None:
                    return Read(aside, (var(lane),), expr.span)
                if expr.node.id in self.own:
                    return Read(self.own[expr.node.id], (*expr.index, var(lane)), expr.span)
            return rebuild(expr, value, lambda index: index)

        body: list[Stmt] = []
        for stmt in group:
            if isinstance(stmt, Store | Update):
                stmt = replace(stmt, access=place(stmt.access), value=value(stmt.value))
            body.append(stmt)
        made = substitute(tuple(body), {self.loop.symbol: var(self.at) + var(lane)})
        kind: LoopKind = "serial" if self.long else "vector"
        return (*out, For(lane, const(0), const(self.width), 1, made, kind, self.loop.span))


def _groups(body: Body) -> Iterator[list[Stmt]]:
    """Yield the statements that stand together without a loop between them."""
    group: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            yield group
            yield from _groups(stmt.body)
            group = []
        else:
            group.append(stmt)
    yield group
