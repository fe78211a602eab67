"""Loops that carry totals from round to round and use them: each piece finds what it starts from.

    for r in 0..n: if f(r): y[count] = x[r]; count += 1
    becomes
    for g in 0..G: part = 0; for r of piece g: if f(r): part += 1; parts[g] = part        threads
    for g in 0..G: own = count; for p in 0..g: own += parts[p]                            threads
                   for r of piece g: if f(r): y[own] = x[r]; own += 1
    for g in 0..G: count += parts[g]

Needs totals that are exact in any order, as those of whole numbers, maxima and minima, of terms
that need no total; rounds that need nothing else of each other. An element whose index is a total
is that of one round alone where the total grows behind it, by one or more. How many pieces there
are depends on the number of rounds only; with more than 1,024 the parts become running totals
between the two, see `scan`.

>>> program = lowered('''
... n = 0
... for i in range(len(x)):
...     n ^= x[i]
...     y[i] = n
... ''', y="i64[900]", x="i64[900]")
>>> totals_of(program.kernels[0].body[-1], frozenset())
{}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from ....base.dataclass import dataclass
from ...analysis.accesses import accesses
from ...analysis.accumulators import is_apart, neutral
from ...analysis.parallel_band import Facts, around, trips
from ...ir import dtypes
from ...ir.assignments import Access, Break, Continue, Let
from ...ir.expressions import Const, Expr, Index, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, maximum, var
from ...ir.loops import For, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.ops import Op
from ...ir.rewrite import with_bodies
from ...ir.walk import bodies, expressions_of, own_writes, statements, uses, writes
from ...transform.remap import Place, elsewhere
from ...transform.strip_mine import chunk
from ..thread_points import PRIVATE_BYTES, Made, dealt
from .scan import MOST, ROUNDS, totalled


@dataclass(frozen=True, slots=True)
class _Total:
    """A scalar that rounds accumulate into, and where pieces have theirs."""

    node: Node
    op: Op
    part: Node
    parts: Node
    own: Node

    @classmethod
    def of(cls, node: Node, op: Op, pieces: int, fresh: Fresh) -> _Total:
        """Return a total with what pieces need."""
        part, own = (fresh.scalar(f"{node.label}_{name}", node.dtype) for name in ("part", "own"))
        return cls(node, op, part, fresh.array(f"{node.label}_parts", (pieces,), node.dtype), own)


def prefix(loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]) -> Made | None:
    """Return the kernels of a loop that carries totals, and what is left of them behind."""
    count, own = trips(loop), facts.private(loop)
    found = totals_of(loop, own)
    if not found or (count is not None and count < 2 * ROUNDS):
        return None
    if any(nodes[n].static_shape is None or nodes[n].bytes > PRIVATE_BYTES for n in own):
        return None
    carried = frozenset(node.id for node in found)
    only = sliced(loop.body, carried, own)
    if only is None or not facts.is_free(loop, own | carried | filled(loop, carried)):
        return None
    pieces = MOST if count is None else ceil(count / ROUNDS)
    totals = tuple(_Total.of(node, op, pieces, fresh) for node, op in found.items())
    work = _Pieces(loop, pieces, totals, fresh)
    private = own | {one.id for total in totals for one in (total.part, total.own)}
    body = (work.first(only), *work.between(), work.second(), *work.whole())
    return Made(body, dict.fromkeys(private, "private"))


def totals_of(loop: For, own: frozenset[int]) -> dict[Node, Op]:
    """Return the scalars that rounds do nothing to but accumulate, in an order that is open."""
    inside = statements(loop.body)
    found: dict[Node, Op] = {}
    for node in writes(loop.body):
        if node.rank or node.id in own:
            continue
        stmts = [stmt for stmt in inside if node in own_writes(stmt)]
        ops = {stmt.op if isinstance(stmt, Update) and not stmt.pair else None for stmt in stmts}
        op = ops.pop()
        if ops or op is None or not is_apart(op, node.dtype, exact=True):
            return {}
        found[node] = op
    return found


def sliced(
    body: Sequence[Stmt], carried: frozenset[int], own: frozenset[int]
) -> tuple[Stmt, ...] | None:
    """Return what of the statements of a round accumulates; None where that needs anything that
    others change, or check."""
    needed = carried
    while True:
        made = _part(body, needed)
        read = {read.node.id for stmt in statements(made) for read in _reads(stmt)}
        if read & own <= needed:
            break
        needed |= read & own
    changed = {n.id for n in writes(body)} - own
    checked = {stmt.symbol for stmt in statements(body) if isinstance(stmt, Let)}
    symbols = {symbol for stmt in statements(made) for symbol in uses(stmt)}
    order = any(isinstance(stmt, While) for stmt in statements(made))
    return None if order or read & (changed | carried) or symbols & checked else made


def _reads(stmt: Stmt) -> list[Read]:
    """Return the reads in what a statement computes: not of what it accumulates into."""
    return [read for expr in expressions_of(stmt) for read in reads(expr)]


def _part(body: Sequence[Stmt], needed: frozenset[int]) -> tuple[Stmt, ...]:
    """Return the statements that write nodes, with the loops and branches around them."""
    out: list[Stmt] = []
    for stmt in body:
        lists = tuple(_part(one, needed) for one in bodies(stmt))
        if isinstance(stmt, Store | Update) and stmt.access.node.id in needed:
            out.append(stmt)
        elif any(lists):
            out.append(with_bodies(stmt, lists))
    return tuple(out)


def filled(loop: For, carried: frozenset[int]) -> frozenset[int]:
    """Return the arrays of which each round has elements of its own: a total that is their index
    grows behind them, by one or more."""
    inside = statements(loop.body)
    if any(isinstance(stmt, Break | Continue) for stmt in inside):
        return frozenset()
    lists = [loop.body, *(one for stmt in inside for one in bodies(stmt))]
    growing = [number for number in carried if _grows(inside, number)]
    names = {symbol for n in growing for body in lists for symbol in _own_values(body, n)}
    values: list[Index] = [var(name) for name in names]
    return frozenset(
        number for number, sites in accesses((loop,)).sites.items()
        if sites[0].node.rank and any(
            all(site.index is not None and site.index[axis] in values for site in sites)
            for axis in range(sites[0].node.rank)
        )
    )  # fmt: skip


def _grows(inside: Sequence[Stmt], number: int) -> bool:
    """Whether a total never gets less, and cannot wrap around."""
    updates = [s for s in inside if isinstance(s, Update) and s.access.node.id == number]
    return all(
        s.op.name == "add" and s.access.node.dtype is dtypes.int64 and _least(s.value) >= 0
        for s in updates
    )


def _least(value: Expr) -> int:
    """Return a small whole number that is written there, -1 for others."""
    match value:
        case Const(int() as number) if number < 2**16:
            return number
        case _:
            return -1


def _own_values(body: Sequence[Stmt], number: int) -> set[Symbol]:
    """Return the names in a list of statements of a total that grows in it before it is named
    again."""
    out: set[Symbol] = set()
    held: set[Symbol] = set()
    for stmt in body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Read) and stmt.value.node.id == number:
            held.add(stmt.symbol)
        elif isinstance(stmt, Update) and stmt.access.node.id == number:
            out |= held if _least(stmt.value) > 0 else set()
        elif number in {node.id for node in writes((stmt,))}:
            held = set()
    return out


# -------------------------------------------------------------------------------- the kernels


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Makes the kernels of a loop in pieces."""

    loop: For
    count: int
    totals: tuple[_Total, ...]
    fresh: Fresh

    def first(self, body: tuple[Stmt, ...]) -> For:
        """Return the kernel that finds what each piece adds."""
        piece = self.fresh.symbol("piece")
        starts = [Store(Access(t.part, ()), neutral(t.op, t.node.dtype)) for t in self.totals]
        ends = [Store(Access(t.parts, (var(piece),)), Read(t.part, ())) for t in self.totals]
        return self.each(piece, starts, body, {t.node.id: t.part for t in self.totals}, ends)

    def between(self) -> tuple[For, ...]:
        """Return the nests that make running totals of what pieces add, none of few."""
        if self.count <= MOST:
            return ()
        return tuple(nest for t in self.totals for nest in totalled(t.parts, t.op, self.fresh))

    def second(self) -> For:
        """Return the kernel that does the rounds, each piece from its own totals."""
        piece, before = self.fresh.symbol("piece"), self.fresh.symbol("before")
        starts = [Store(Access(t.own, ()), Read(t.node, ())) for t in self.totals]
        adding = tuple(
            Update(Access(t.own, ()), t.op, Read(t.parts, (var(before),))) for t in self.totals
        )
        since = const(0) if self.count <= MOST else maximum(var(piece) - 1, const(0))
        up = For(before, since, var(piece), 1, adding)
        moved = {t.node.id: t.own for t in self.totals}
        return self.each(piece, [*starts, up], self.loop.body, moved, ())

    def each(
        self, piece: Symbol, starts: Sequence[Stmt], body: tuple[Stmt, ...],
        moved: Mapping[int, Node], ends: Sequence[Stmt],
    ) -> For:  # fmt: skip
        """Return the kernel in which each thread has a piece."""

        def place(node: Node, index: tuple[Index, ...]) -> Place:
            return moved.get(node.id, node), index

        part, inner = chunk(self.loop, piece, self.count, body, self.fresh)
        rounds = around((part,), elsewhere(inner, place))
        outer = For(piece, const(0), const(self.count), 1, (), "serial", self.loop.span)
        return dealt([outer], (*starts, *rounds, *ends), self.fresh)

    def whole(self) -> tuple[For, ...]:
        """Return the loops that add up what all pieces add."""
        out = []
        for total in self.totals:
            piece = self.fresh.symbol("piece")
            one = Update(Access(total.node, ()), total.op, Read(total.parts, (var(piece),)))
            first = 0 if self.count <= MOST else self.count - 1
            out.append(For(piece, const(first), const(self.count), 1, (one,)))
        return tuple(out)
