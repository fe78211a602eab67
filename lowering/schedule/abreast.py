"""Neighbouring rounds of an outer loop abreast: each is done in a lane of its own.

Changes: a loop whose rounds need nothing of each other, and have loops inside, becomes one over
strips of rounds. Each statement of a strip is done for all of its rounds before the next one: loops
over lanes are innermost, so that they become vectors and memory is read in its order. What a round
keeps for itself has an element for each lane; what lies further apart from round to round is put
side by side before a loop in which it stays the same. What is left of the rounds runs as before.

    for j: s = 0; for k: s = s + term(j, k); y[j] = rest(s)
    for j: s[c] = 0; for k: s[c] = s[c] + term(j + c, k); y[j + c] = rest(s[c])       0 <= c < C

Needs: rounds that may run in any order, and neighbours in memory where the innermost loops are.
Guarantees: not a bit changes: each round does what it did, in its order.

>>> from plusequals.lowering.passes.shrink import shrink
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
from dataclasses import dataclass, field, replace

from ..ir.assignments import Access
from ..ir.bounds import Bounds, bounds_of
from ..ir.expressions import (
    Expr,
    Index,
    Read,
    reads,
    rebuild,
)
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, var
from ..ir.loops import Comment, For, LoopKind, Program, Stmt, Store, Update
from ..ir.node import Node, Purpose
from ..ir.rewrite import substitute, with_bodies
from ..ir.walk import bodies, expressions_of, statements, writes
from ..passes.cells import is_in_range, ranges
from ..passes.decision import Decided, Decision, Reason
from ..target import Target
from .legal import confined, independent, private
from .outer import Outer, places, step_of, symbols_in

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
    own = frozenset(node.id for node in program.locals)
    known = bounds_of(parameter.node for parameter in program.parameters)
    work = _Work(fresh_for(program), target, own, confined(program), known)
    kernels = tuple(replace(k, body=work.body(k.body, ())) for k in program.kernels)
    if not work.decisions:
        return Decided(program, ())
    return Decided(work.fresh.declared(replace(program, kernels=kernels)), tuple(work.decisions))


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one program."""

    fresh: Fresh
    target: Target
    own: frozenset[int]
    only: Mapping[int, frozenset[int]]
    """By the `id` of each loop what only its body uses."""
    known: Bounds
    decisions: list[Decision] = field(default_factory=list)

    def body(self, body: Body, outer: tuple[For, ...]) -> Body:
        """Return a list of statements, of whose loops the outermost that can be are in strips."""
        out: list[Stmt] = []
        for stmt in body:
            made = self.nest(stmt, outer) if isinstance(stmt, For) else None
            if made is not None:
                out += made
                continue
            inner = (*outer, stmt) if isinstance(stmt, For) else outer
            out.append(with_bodies(stmt, tuple(self.body(one, inner) for one in bodies(stmt))))
        return tuple(out)

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in strips, None where it has to stay as it is."""
        shape = Outer(loop, self.target.reorders, outer)
        rounds = (loop.hi - loop.lo).constant
        if not shape.is_plain():
            return None
        lanes = self.target.lanes(max(node.dtype.bits for node in shape.nodes()))
        if lanes < 2 or (rounds is not None and rounds < lanes):
            return None
        mine = private(loop, self.only[id(loop)])
        room = shape.room(mine)
        if room is None or room * lanes > self.target.l2_bytes or not shape.is_near(mine):
            return None
        if independent(loop, mine, self.own, ranges(outer)) is not None:
            return None
        changed = writes(loop.body)
        node = next((node for node in changed if node.id not in mine), changed[0])
        self.decisions.append(Decision("abreast", Abreast.APART, node, span=loop.span))
        return self.strips(shape, mine, self.widths(shape, mine, lanes))

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

    def end(self, loop: For, outer: tuple[For, ...]) -> Affine:
        """Return where a loop ends; where it begins, if it has no rounds."""
        known = self.known
        for one in outer:
            known = known.inside(one)
        least = known.least(loop.hi - loop.lo)
        return loop.hi if least is not None and least >= 0 else maximum(loop.hi, loop.lo)

    def strips(self, shape: Outer, mine: frozenset[int], widths: tuple[int, ...]) -> Body:
        """Return the loops over strips of these widths, and over what is left."""
        out: list[Stmt] = []
        loop, end = shape.loop, self.end(shape.loop, shape.outer)
        start = loop.lo
        for width in widths:
            whole = start + floordiv(end - start, const(width)) * width
            if (whole - start).constant != 0:
                at = self.fresh.symbol(loop.symbol.name)
                long = width > 4 * widths[-1]
                body = _Strip(self.fresh, shape, mine, width, at, long).made()
                out.append(For(at, start, whole, width, body, span=loop.span))
            start = whole
        rest = replace(loop, lo=start, hi=end)
        return (*out, *((rest,) if (end - start).constant != 0 else ()))


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
        return step_of(read.node, read.index, self.loop.symbol)

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
