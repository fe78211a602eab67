"""Kernels in which each thread writes its own elements, wherever data says that they are.

    for i in 0..n: h[k[i]] += w[i]
    becomes
    for p in 0..P:                                        threads
        for i in 0..n: if k[i] % P == p: h[k[i]] += w[i]

Every thread goes through all rounds in their order and does what concerns its elements, so that
results are those of the program, bit by bit. Needs a loop that only writes what it does not read
otherwise.

Where all that is written is accumulated, by what is exact in any order as sums of whole numbers
are, the rounds are taken in pieces, each with elements of its own:

    for g in 0..G: for p in 0..P: parts[g, e] = 0, for e of p                          threads
                                  for i in piece g: if k[i] % P == p: parts[g, k[i]] += w[i]
    for e: for g in 0..G: h[e] += parts[g, e]                                          threads

>>> program = lowered("h[k[i]] += x[i]", h="f32[9]", x="f32[8]", k="i64[8]")
>>> made = owners(program.kernels[0].body[-1], facts_of(program), fresh_for(program), {})
>>> print_loops(made.body)
for tile in 0..1 block:
    for owner in 0..9 thread:
        for i in 0..8:
            if k[i] % 9 == owner:
                h[k[i]] += x[i]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ..analysis.accesses import accesses
from ..analysis.accumulators import accumulates, neutral, only_written
from ..analysis.effects import touched
from ..analysis.parallel_band import Facts, around, trips, within
from ..analysis.self_dependence import symbols_of
from ..ir import dtypes
from ..ir.assignments import Access, Let
from ..ir.expressions import Apply, Dynamic, Expr, Index, Position, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Symbol, const, multiply, var
from ..ir.loops import Check, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_statements, with_bodies
from ..ir.walk import binds, bodies, own_reads, statements, uses, writes
from ..transform.remap import Place, elsewhere
from ..transform.strip_mine import chunk
from .reductions.block_reduction import WARP
from .thread_points import PRIVATE_BYTES, Made, dealt

MOST = 4096
"""So many threads share the elements."""
PIECES = 1024
"""Pieces at most."""
ROUNDS = 256
"""A piece has at least so many rounds, those of loops inside counted."""
UNKNOWN = 64 * ROUNDS
"""What rounds are taken for whose number only the run knows."""
FEWEST = 4
"""With fewer pieces nothing is gained."""
THREADS = 1 << 16
"""So many threads go through all pieces together; there are more elements of a thread instead."""
PARTS_BYTES = 1 << 26
"""The elements of all pieces take so much memory at most."""


def owners(loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]) -> Made | None:
    """Return the kernel of a loop that writes where data says, None where it does more."""
    own = facts.private(loop)
    small = all(
        nodes[n].static_shape is not None and (not nodes[n].rank or nodes[n].bytes <= PRIVATE_BYTES)
        for n in own
    )
    written = only_written(loop, own)
    taken = frozenset(node.id for node in written)
    if not written:
        return _changed(loop, facts, own, fresh) if small else None
    if not small or not facts.is_free(loop, own | taken):
        return None
    sizes = [_elements(node) for node in written]
    most = MOST if None in sizes else min(MOST, max(max(s or 0 for s in sizes), 1))
    pieces = _pieces(loop, written)
    if pieces:
        enough = 1 << max(WARP, THREADS // pieces).bit_length() - 1
        return _apart(loop, written, pieces, min(most, enough), own, fresh)
    whole: tuple[Stmt, ...] = (loop,)
    made = _shared(whole, taken, most, fresh)
    return Made((dealt([made], made.body, fresh),), dict.fromkeys(own, "private"))


def _shared(body: tuple[Stmt, ...], taken: frozenset[int], count: int, fresh: Fresh) -> For:
    """Return the loop over owners, each of which does what writes its elements."""
    owner = fresh.symbol("owner")

    def guarded(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Store | Update) and stmt.access.node.id in taken:
            return (If(_is_owned(stmt.access, owner, count), (stmt,), (), stmt.span),)
        return (stmt,)

    return For(owner, const(0), const(count), 1, map_statements(body, guarded), "serial")


# ---------------------------------------------------------------- elements that are read, too


def _changed(loop: For, facts: Facts, own: frozenset[int], fresh: Fresh) -> Made | None:
    """Return the kernel of a loop of which each round changes one element of an array, which it
    may read, too; None for others. Who owns it does all that has to do with it."""
    written = {n.id: n for n in writes((loop,)) if n.id not in own}
    if len(written) != 1 or fails_with(loop, written):
        return None
    (node,) = written.values()
    indices = {site.index for site in accesses((loop,)).of(node)}
    index = indices.pop() if node.rank else None
    if indices or index is None or not facts.is_free(loop, own | {node.id}):
        return None
    size = _elements(node)
    count = MOST if size is None else min(MOST, max(size, 1))
    owner = fresh.symbol("owner")
    test = _is_owned(Access(node, index), owner, count)
    if symbols_of(test).isdisjoint(s for stmt in statements((loop,)) for s in binds(stmt)):
        return None
    body = _guarded(loop.body, node, test, {loop.symbol})
    if body is None:
        return None
    each = For(owner, const(0), const(count), 1, (replace(loop, body=body),))
    return Made((dealt([each], each.body, fresh),), dict.fromkeys(own, "private"))


def fails_with(loop: For, written: Mapping[int, Node]) -> bool:
    """Whether a check in a loop looks at what it changes: then its owner alone knows."""
    return any(
        isinstance(stmt, Check) and any(node.id in written for node in own_reads(stmt))
        for stmt in statements(loop.body)
    )


def _guarded(
    body: tuple[Stmt, ...], node: Node, test: Expr, bound: set[Symbol]
) -> tuple[Stmt, ...] | None:
    """Return statements of which those that use an array are done under a test, None where what
    they name is used elsewhere, too."""
    needed = symbols_of(test)
    inside = {s for stmt in statements(body) for s in binds(stmt)} | bound
    touching = [at for at, stmt in enumerate(body) if node.id in touched((stmt,))]
    lo, hi = touching[0], touching[-1] + 1
    here = bound | {s for stmt in body[:lo] for s in binds(stmt) if isinstance(stmt, Let)}
    if needed & inside <= here:
        part, rest = body[lo:hi], (*body[:lo], *body[hi:])
        names = {s for stmt in part for s in binds(stmt)}
        used = {s for stmt in statements(rest) for s in uses(stmt)}
        theirs = {n.id for n in writes(part)} - {node.id}
        if names & used or theirs & (touched(rest) | {one.node.id for one in reads(test)}):
            return None
        return (*body[:lo], If(test, part), *body[hi:])
    if hi > lo + 1 or not isinstance(body[lo], For | If):
        return None
    lists = []
    for one in bodies(body[lo]):
        symbols = here | set(binds(body[lo]))
        made = _guarded(one, node, test, symbols) if node.id in touched(one) else one
        if made is None:
            return None
        lists.append(made)
    return (*body[:lo], with_bodies(body[lo], tuple(lists)), *body[hi:])


# ------------------------------------------------------------------------------- in pieces


def _pieces(loop: For, written: Sequence[Node]) -> int:
    """Return into how many pieces rounds are taken, 0 where they stay one."""
    sizes = [_elements(node) for node in written]
    if None in sizes or any(accumulates(loop, node) is None for node in written):
        return 0
    count, elements = trips(loop), max(sum(size or 0 for size in sizes), 1)
    most = min(PIECES, PARTS_BYTES // max(sum(node.bytes for node in written), 1))
    outer = UNKNOWN if count is None else count
    rounds = outer * within(loop.body)
    most = min(most, outer, rounds // ROUNDS, 4 * rounds // elements)
    return most if most >= FEWEST else 0


def _apart(
    loop: For, written: Sequence[Node], pieces: int, count: int, own: frozenset[int], fresh: Fresh
) -> Made:
    """Return the kernel of all pieces, and the loops that put them together behind it."""
    parts = [_Parts(loop, node, pieces, fresh) for node in written]
    piece = fresh.symbol("piece")
    part, body = chunk(loop, piece, pieces, loop.body, fresh)
    each = _shared(around((part,), body), frozenset(node.id for node in written), count, fresh)
    by_id = {one.node.id: one for one in parts}

    def moved(node: Node, index: tuple[Index, ...]) -> Place:
        return by_id[node.id].place(piece, index) if node.id in by_id else (node, index)

    starts = tuple(one.start(piece, each) for one in parts)
    outer = For(piece, const(0), const(pieces), 1, ())
    kernel = dealt([outer, each], (*starts, *elsewhere(each.body, moved)), fresh)
    return Made((kernel, *(one.whole() for one in parts)), dict.fromkeys(own, "private"))


class _Parts:
    """What all pieces accumulate into an array: its elements one after the other, of each."""

    def __init__(self, loop: For, node: Node, pieces: int, fresh: Fresh) -> None:
        op = accumulates(loop, node)
        assert op is not None, "what is not accumulated is not taken apart"
        self.node, self.op, self.fresh, self.pieces = node, op, fresh, pieces
        self.size = _elements(node) or 0
        self.parts = fresh.array(f"{node.label}_parts", (pieces, max(self.size, 1)), node.dtype)

    def place(self, piece: Symbol, index: tuple[Index, ...]) -> Place:
        """Return where a piece has an element."""
        flat = _place(Access(self.node, index))
        at: Index = flat.index if isinstance(flat, Position) else Dynamic(flat)
        return self.parts, (var(piece), at)

    def start(self, piece: Symbol, each: For) -> Stmt:
        """Return what each owner of elements of a piece begins with."""
        at, count = self.fresh.symbol("element"), each.hi.constant
        place = Access(self.parts, (var(piece), var(at)))
        start = Store(place, neutral(self.op, self.node.dtype))
        return For(at, var(each.symbol), const(self.size), count or 1, (start,))

    def whole(self) -> Stmt:
        """Return the loops that add the elements of all pieces to those of the array."""
        piece, axes = self.fresh.symbol("piece"), [self.fresh.symbol("at") for _ in self.node.shape]
        index = tuple(map(var, axes))
        parts = Read(*self.place(piece, index))
        update = Update(Access(self.node, index), self.op, parts, over=(var(piece),))
        extents = [*self.node.shape, const(self.pieces)]
        loops = [
            For(symbol, const(0), extent, 1, ())
            for symbol, extent in zip((*axes, piece), extents, strict=True)
        ]
        (made,) = around(loops, (update,))
        return made


def _elements(node: Node) -> int | None:
    return None if node.static_shape is None else prod(node.static_shape)


def _is_owned(access: Access, owner: Symbol, count: int) -> Expr:
    """Return whether an element is one of a thread's: by its place in the array."""
    rest = Apply(OPS["mod"], (_place(access), Position(const(count))), dtypes.int64)
    return Apply(OPS["eq"], (rest, Position(var(owner))), dtypes.bool_)


def _place(access: Access) -> Expr:
    """Return the number of an element among those of its array."""
    total: Expr | None = None
    for at, stride in zip(access.index, access.node.element_strides, strict=True):
        one: Expr = at.value if isinstance(at, Dynamic) else Position(at)
        if stride != const(1):
            one = _joined("mul", one, Position(stride))
        total = one if total is None else _joined("add", total, one)
    assert total is not None, "scalars are not shared out"
    return total


def _joined(op: str, one: Expr, other: Expr) -> Expr:
    """Return an integer of two; an index expression where both are."""
    if isinstance(one, Position) and isinstance(other, Position):
        both = multiply(one.index, other.index) if op == "mul" else one.index + other.index
        return Position(both)
    return Apply(OPS[op], (one, other), dtypes.int64)
