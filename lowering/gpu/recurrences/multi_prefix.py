"""Rounds that count elements that data picks, and use the counts: each finds its own before.

    for i in 0..n: y[c[k[i]]] = x[i]; c[k[i]] += 1
    becomes
    for g in 0..G: for i of piece g: parts[g, k[i]] += 1
    for e: for g in 0..G: parts[g, e] becomes what c[e] is before piece g; c[e] what it is last
    for g in 0..G: for i of piece g: c_rounds[i] = parts[g, k[i]]; parts[g, k[i]] += 1
    for i in 0..n: y[c_rounds[i]] = x[i]

Needs one statement that accumulates into an array, in any order, what no other statement changes,
wherever data says that; reads of the same element before it in its round; and rounds that are
independent but for that, or only fill elements. Where a check does not hold, nothing is counted:
the rounds themselves fail, the first of them as before. How many pieces there are depends on sizes
only.

>>> program, _ = optimize(lowered('''
... for i in range(len(x)):
...     y[c[k[i]]] = x[i]
...     c[k[i]] += 1
... ''', y="f32[9000]", x="f32[9000]", k="i64[9000]", c="i64[9]"), Target("cuda"))
>>> from plusequals.lowering.transform.recognize_updates import as_updates
>>> program = over_kernels(program, as_updates)
>>> made = ranks(program, facts_of(program), fresh_for(program))
>>> [type(stmt).__name__ for stmt in made.kernels[0].body]
['For', 'For', 'For', 'For', 'For']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ....base.dataclass import dataclass
from ...analysis.accumulators import is_apart, neutral, only_written
from ...analysis.parallel_band import Facts, around, normal, trips, with_value
from ...analysis.subscripts import ranges
from ...ir.assignments import Access, Alloc, Break, Continue, Let, Permute, Print
from ...ir.expressions import Apply, Dynamic, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, var
from ...ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.rewrite import map_statements, over_kernels, rename, with_bodies
from ...ir.walk import (
    binds,
    bodies,
    expressions_of,
    own_reads,
    own_writes,
    statements,
    uses,
    writes,
)
from ...transform.remap import Place, elsewhere
from ...transform.strip_mine import chunk
from ..owner_computes import PARTS_BYTES, PIECES

Body = tuple[Stmt, ...]
ROUNDS = 256
"""A piece has at least so many rounds."""
FEWEST = 4
"""With fewer pieces nothing is gained."""


def ranks(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose rounds find what they have counted before they use it."""

    def body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            found = _counting(stmt, facts)
            made = found.made(facts, fresh, outer) if found is not None else ()
            if made or facts.is_free(stmt, facts.private(stmt), ranges(outer), facts.around(stmt)):
                return made or (stmt,)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(body(part, outer) for part in bodies(stmt))),)

    return over_kernels(program, lambda stmts: body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Counting:
    """A loop that counts from zero, and what it counts."""

    loop: For
    count: Update
    needed: Body
    """What of a round counts, and nothing else."""
    pieces: int

    @property
    def node(self) -> Node:
        """Where it counts."""
        return self.count.access.node

    def made(self, facts: Facts, fresh: Fresh, outer: tuple[For, ...]) -> Body:
        """Return what finds the counts of rounds, and the rounds; nothing where these need each
        other all the same."""
        node, index = self.node, self.count.access.index
        size = trips(self.loop)
        assert size is not None, "the number of rounds is known"
        shape = tuple(extent.constant or 0 for extent in node.shape)
        counts = fresh.array(f"{node.label}_rounds", (size,), node.dtype)
        parts = fresh.array(f"{node.label}_parts", (self.pieces, *shape), node.dtype)
        here = Access(counts, (var(self.loop.symbol),))

        def place(one: Node, at: tuple[Affine | Dynamic, ...]) -> Place:
            return (counts, here.index) if one == node else (one, at)

        rest = map_statements(self.loop.body, lambda s: () if s is self.count else (s,))
        rounds = replace(self.loop, body=elsewhere(rest, place))
        facts.tell((rounds,), facts.only_in(self.loop))
        own = facts.private(rounds)
        filled = frozenset(one.id for one in only_written(rounds, own))
        if not any(facts.is_free(rounds, one, ranges(outer)) for one in (own, own | filled)):
            return ()
        first, second = fresh.symbol("piece"), fresh.symbol("piece")
        update = replace(self.count, access=Access(parts, (var(first), *index)))
        put = Store(here, Read(parts, (var(second), *index)))
        again = replace(self.count, access=Access(parts, (var(second), *index)))
        return (
            *self.starts(parts, fresh),
            *self.each(first, (update,), fresh),
            *self.between(parts, fresh),
            *self.each(second, (put, again), fresh),
            rounds,
        )

    def starts(self, parts: Node, fresh: Fresh) -> Body:
        """Return what begins the counts of pieces."""
        axes = [fresh.symbol("at") for _ in parts.shape]
        start = Store(Access(parts, tuple(map(var, axes))), neutral(self.count.op, self.node.dtype))
        return _over(axes, parts, (start,))

    def each(self, piece: Symbol, stmts: Body, fresh: Fresh) -> Body:
        """Return the rounds of each piece, which count by some statements."""
        body = map_statements(self.needed, lambda s: stmts if s is self.count else (s,))
        part, body = chunk(self.loop, piece, self.pieces, body, fresh)
        used = {self.node.id, *(one.access.node.id for one in _stores(stmts))}
        copies = {n.id: fresh.like(n) for n in writes(body) if n.id not in used}
        names = {s: fresh.symbol(s.name) for one in statements(body) for s in binds(one)}
        outer = For(piece, const(0), const(self.pieces), 1, (), span=self.loop.span)
        return around((outer, part), rename(body, names, copies))

    def between(self, parts: Node, fresh: Fresh) -> Body:
        """Return what makes of the counts of pieces what there was before each."""
        axes, piece = [fresh.symbol("at") for _ in self.node.shape], fresh.symbol("piece")
        index = tuple(map(var, axes))
        run, old = (fresh.scalar(f"{self.node.label}_{s}", self.node.dtype) for s in ("own", "old"))
        own, kept = Access(run, ()), Access(parts, (var(piece), *index))
        total = Apply(self.count.op, (Read(run, ()), Read(old, ())), self.node.dtype)
        through = (
            Store(Access(old, ()), Read(parts, kept.index)),
            Store(kept, Read(run, ())),
            Store(own, total),
        )
        body = (
            Store(own, Read(self.node, index)),
            For(piece, const(0), const(self.pieces), 1, through),
            Store(Access(self.node, index), Read(run, ())),
        )
        return _over(axes, self.node, body)


def _over(axes: Sequence[Symbol], node: Node, body: Body) -> Body:
    """Return the loops over all elements of an array."""
    loops = [For(s, const(0), size, 1, ()) for s, size in zip(axes, node.shape, strict=True)]
    return around(loops, body)


def _stores(body: Body) -> list[Store | Update]:
    return [stmt for stmt in body if isinstance(stmt, Store | Update)]


def _counting(loop: For, facts: Facts) -> _Counting | None:
    """Return what a loop counts and uses, None where it does not, or has few rounds."""
    rounds, own = trips(loop), facts.private(loop)
    halts = Print, Permute, Alloc, Break, Continue, Fill
    if loop.kind != "serial" or rounds is None or rounds < FEWEST * ROUNDS:
        return None
    if any(isinstance(stmt, halts) for stmt in statements(loop.body)):
        return None
    if loop.step != 1 or loop.lo != const(0):
        old, (loop, value) = loop, normal(loop, loop.symbol)
        loop = replace(loop, body=with_value(loop.body, old.symbol, value))
        facts.tell((loop,), facts.only_in(old))
    for count in _counts(loop, own):
        size = count.access.node.bytes
        pieces = min(PIECES, PARTS_BYTES // max(size, 1), rounds // ROUNDS)
        needed = _Needed(own, count).part(loop.body)
        if needed and pieces >= FEWEST:
            return _Counting(loop, count, needed, pieces)
    return None


def _counts(loop: For, own: frozenset[int]) -> list[Update]:
    """Return the statements that accumulate into elements that data picks, and that are read."""
    inside = statements(loop.body)
    out = []
    for stmt in inside:
        if not isinstance(stmt, Update) or stmt.pair is not None or stmt.access.node.id in own:
            continue
        node, index = stmt.access.node, stmt.access.index
        alone = sum(node in own_writes(one) for one in inside) == 1
        static = node.rank > 0 and node.static_shape is not None
        if not static or not alone or not is_apart(stmt.op, node.dtype, exact=True):
            continue
        found = [r for one in inside for value in expressions_of(one) for r in reads(value)]
        asked = [read for read in found if read.node == node]
        if asked and all(read.index == index for read in asked) and _is_behind(loop.body, stmt):
            out.append(stmt)
    return out


def _is_behind(body: Body, count: Update) -> bool:
    """Whether an array is only read before it is counted in, in a round that counts."""
    node = count.access.node
    for at, stmt in enumerate(body):
        if stmt is count:
            behind = (node in own_reads(one) for one in statements(body[at + 1 :]))
            return node not in {r.node for r in reads(count.value)} and not any(behind)
        inside = _has((stmt,), count)
        if inside:
            others = statements((*body[:at], *body[at + 1 :]))
            if not isinstance(stmt, If) or any(node in own_reads(one) for one in others):
                return False
            if any(read.node == node for read in reads(stmt.test)):
                return False
            side = next(s for s in bodies(stmt) if _has(s, count))
            rest = (one for part in bodies(stmt) if part is not side for one in statements(part))
            return _is_behind(side, count) and not any(node in own_reads(one) for one in rest)
    return False


def _has(body: Sequence[Stmt], one: Stmt) -> bool:
    """Whether a statement is among others, or inside of them."""
    return any(stmt is one for stmt in statements(body))


@dataclass(slots=True)
class _Needed:
    """Finds what of a round counts: it needs nothing that rounds change."""

    own: frozenset[int]
    count: Update
    lost: set[int] = field(default_factory=set)
    """Temporaries that are not known where nothing is done but to count."""
    unknown: set[Symbol] = field(default_factory=set)
    changed: frozenset[int] = frozenset()

    def part(self, body: Body) -> Body:
        """Return the statements that count in a round; none where they need more."""
        self.changed = frozenset(node.id for node in writes(body)) - self.own
        return self.inside(body)

    def inside(self, body: Body) -> Body:
        """Return those of a list, up to the one that counts; none where they need more."""
        out: list[Stmt] = []
        for at, stmt in enumerate(body):
            if _has((stmt,), self.count):
                if stmt is self.count:
                    counts = frozenset((self.count.access.node.id,))
                    return (*out, stmt) if self.is_known(stmt, counts) else ()
                if not isinstance(stmt, If) or not self.is_known(replace(stmt, then=(), other=())):
                    return ()
                sides = tuple(
                    self.inside(side) if _has(side, self.count) else () for side in bodies(stmt)
                )
                return (*out, with_bodies(stmt, sides)) if any(sides) else ()
            if isinstance(stmt, Check) and self.is_known(stmt):
                rest = self.inside(body[at + 1 :])
                return (*out, If(stmt.test, rest, span=stmt.span)) if rest else ()
            if self.is_kept(stmt):
                out.append(stmt)
        return ()

    def is_kept(self, stmt: Stmt) -> bool:
        """Whether a statement finds something without needing more; if not, that is lost."""
        if isinstance(stmt, Comment | Check):
            return False
        theirs = {node.id for node in writes((stmt,))}
        inside = statements((stmt,))
        fits = theirs <= self.own and not any(isinstance(s, Check | While) for s in inside)
        if fits and all(self.is_known(one) for one in inside):
            return True
        self.lost |= theirs
        self.unknown |= {one.symbol for one in inside if isinstance(one, Let)}
        return False

    def is_known(self, stmt: Stmt, but: frozenset[int] = frozenset()) -> bool:
        """Whether a statement itself needs nothing that rounds change, but for some."""
        read = {node.id for node in own_reads(stmt)} - but
        return not read & (self.changed | self.lost) and not set(uses(stmt)) & self.unknown
