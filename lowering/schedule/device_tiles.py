"""Contractions by tiles in shared memory, with a block of registers in each thread.

    for i, j: total = 0; for k: total += a[i, k] * b[k, j]; rest
    becomes
    for im, jn:                                           blocks, each a tile of 64 by 64
        acc[y, x, r, s] = 0                               threads, each 4 by 4 of them
        for kt in 0..K/16:
            a_tile[k, i] = a[...]; b_tile[k, j] = b[...]  threads, and a barrier
            acc[y, x, r, s] += a_tile[k, r] * b_tile[k, s]
        rest, where i and j are in range                  threads

Any number of loops may stand for each of `i`, `j` and `k`, as in a convolution, and one more for
what both factors depend on. Every element is summed in the order of `k`, so with `exact` results
are those of the program, bit by bit; otherwise products and sums are fused, if no loop was written
for the terms. Needs a band whose
points start a scalar from zero, sum products of a factor of each side, and go on without loops.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> made = tiles(band(program.kernels[0].body[1], facts), facts, fresh_for(program))
>>> [space for space in made.spaces.values()]
['rows', 'shared', 'shared']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ..dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Read, Select
from ..ir.expressions import reads as reads_of
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, floordiv, mod, var
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import substitute, substitute_expr
from ..ir.walk import free_symbols, reads, statements, writes
from .elsewhere import Place, elsewhere
from .meet import met
from .nests import Band, Facts, around, fails, favours, nest_of, trips
from .points import Made, Space
from .tree import is_counted, zero_of

SIDE = 64
"""Rows and columns of a tile."""
DEPTH = 16
"""Terms that are staged at once."""
BLOCK = 4
"""Rows and columns of a thread."""
ACROSS = SIDE // BLOCK
"""Threads along each side of a tile."""
LEAST = 16 * 16 * 16
"""A contraction with fewer products is left to other kernels."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """What a band contracts."""

    rows: tuple[For, ...]
    """The loops on which only the first factor depends, of those that may be dealt out."""
    columns: tuple[For, ...]
    both: tuple[For, ...]
    terms: tuple[For, ...]
    """The loops of the sum."""
    total: Node
    """The scalar that is summed."""
    first: Expr
    second: Expr
    rest: tuple[Stmt, ...]
    """What is done with the sum."""
    own: frozenset[int]
    """The temporaries that each point has of its own."""
    counted: bool
    """Whether the terms are only counted: then it is left open how they are rounded."""


def contraction(found: Band) -> Contraction | None:
    """Return what a band contracts, None where it does something else."""
    body = [stmt for stmt in found.inner if not isinstance(stmt, Comment)]
    if found.serial or len(body) < 2 or fails(body):
        return None
    start, loop, *rest = body
    if not isinstance(start, Store) or not isinstance(loop, For) or start.access.node.rank:
        return None
    total = start.access.node
    terms, inner = nest_of(loop)
    inside = [stmt for stmt in inner if not isinstance(stmt, Comment)]
    if len(inside) != 1 or not isinstance(inside[0], Update) or not _is_zero(start.value):
        return None
    update = inside[0]
    factors = _factors(update, total)
    if factors is None or any(isinstance(s, For) for stmt in rest for s in statements((stmt,))):
        return None
    used = [node for node in (*reads(rest), *writes(rest)) if node.id in found.private]
    if total.id not in found.private or any(node.rank for node in used):
        return None
    counted = is_counted(update, frozenset(one.symbol for one in terms))
    made = _sided(found, terms, total, factors, tuple(rest))
    return None if made is None else replace(made, counted=counted)


def _factors(update: Update, total: Node) -> tuple[Expr, Expr] | None:
    if update.access.node != total or update.op.name != "add" or update.pair is not None:
        return None
    match update.value:
        case Apply(op, (first, second), _) if op.name == "mul":
            return first, second
        case _:
            return None


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 0


def _sided(
    found: Band, terms: tuple[For, ...], total: Node, factors: tuple[Expr, Expr],
    rest: tuple[Stmt, ...],
) -> Contraction | None:  # fmt: skip
    """Return a contraction with each loop where it belongs, None where that is not clear."""
    first, second = factors
    loops = (*found.free, *terms)
    symbols = {loop.symbol for loop in loops}
    bounds = {s for loop in loops for s in (loop.lo - loop.hi).symbols()}
    if bounds & symbols or any(loop.step != 1 for loop in loops):
        return None
    sides = [free_symbols(one) & symbols for one in factors]
    own = found.private
    if any(r.node.id in own or _is_dynamic(r) for one in factors for r in reads_of(one)):
        return None
    rows = tuple(x for x in found.free if x.symbol in sides[0] and x.symbol not in sides[1])
    columns = tuple(x for x in found.free if x.symbol in sides[1] and x.symbol not in sides[0])
    both = tuple(x for x in found.free if x not in rows and x not in columns)
    if rows and columns and found.free.index(rows[-1]) > found.free.index(columns[-1]):
        rows, columns, first, second = columns, rows, second, first
    if not rows or not columns or len(both) > 1:
        return None
    made = Contraction(rows, columns, both, terms, total, first, second, rest, own, False)
    groups = (rows, columns, terms)
    flat = all(len(g) == 1 or all(trips(x) is not None for x in g) for g in groups)
    return made if flat and _is_large(made) else None


def _is_dynamic(read: Read) -> bool:
    return any(isinstance(index, Dynamic) for index in read.index)


def _is_large(made: Contraction) -> bool:
    sizes = [_count(group) for group in (made.rows, made.columns, made.terms)]
    known = [SIDE if size is None else size for size in sizes]
    return min(known) >= DEPTH // 2 and prod(known) >= LEAST


def _count(loops: Sequence[For]) -> int | None:
    counts = [trips(loop) for loop in loops]
    return None if None in counts else prod(count or 0 for count in counts)


def tiles(found: Band, facts: Facts, fresh: Fresh) -> Made | None:
    """Return the kernel of a band that is a contraction, None where it is none."""
    made = contraction(found)
    return None if made is None else _Tiling(made, facts.exact, fresh).made()


class _Side:
    """Loops counted as one: its variable, and what theirs are for a value of it."""

    def __init__(self, loops: Sequence[For], fresh: Fresh, name: str) -> None:
        self.loops = loops
        self.size = _size(loops)
        self.tile = fresh.symbol(name)

    def values(self, at: Affine) -> dict[Symbol, Affine]:
        """Return the variables of the loops where the count is an index expression."""
        if len(self.loops) == 1:
            return {self.loops[0].symbol: self.loops[0].lo + at}
        out: dict[Symbol, Affine] = {}
        inner = 1
        for loop in reversed(self.loops):
            count = trips(loop) or 0
            part = floordiv(at, const(inner))
            if loop is not self.loops[0]:
                part = mod(part, const(max(count, 1)))
            out[loop.symbol] = loop.lo + part
            inner *= max(count, 1)
        return out

    def tests(self, at: Affine, by: int) -> list[Expr]:
        """Return what says that a count is in range; nothing where tiles fit."""
        size = self.size.constant
        if size is not None and size % by == 0:
            return []
        return [Apply(OPS["lt"], (Position(at), Position(self.size)), dtypes.bool_)]


def _size(loops: Sequence[For]) -> Affine:
    count = _count(loops)
    return const(count) if count is not None else loops[0].hi - loops[0].lo


class _Tiling:
    """Makes the kernel of a contraction."""

    def __init__(self, what: Contraction, exact: bool, fresh: Fresh) -> None:
        self.what, self.fresh = what, fresh
        dtype = what.total.dtype
        self.fused = what.counted and not exact and dtype.kind == "f"
        self.rows = _Side(what.rows, fresh, "row")
        self.columns = _Side(what.columns, fresh, "column")
        self.terms = _Side(what.terms, fresh, "term")
        self.y, self.x = fresh.symbol("y"), fresh.symbol("x")
        self.r, self.s = fresh.symbol("r"), fresh.symbol("s")
        shape = (ACROSS, ACROSS, BLOCK, BLOCK)
        self.total = fresh.array(f"{what.total.label}_block", shape, dtype)
        staged = DEPTH, SIDE + 1
        self.first = fresh.array("first_tile", staged, dtype)
        self.second = fresh.array("second_tile", staged, dtype)

    def made(self) -> Made:
        """Return the kernel."""
        depth = floordiv(self.terms.size + (DEPTH - 1), const(DEPTH))
        inner = (
            self.staged(self.first, self.what.first, self.rows),
            self.staged(self.second, self.what.second, self.columns),
            self.multiplied(),
        )
        loop = For(self.terms.tile, const(0), depth, 1, inner)
        used = {n.id for n in (*reads(self.what.rest), *writes(self.what.rest))}
        own = used & self.what.own - {self.total.id, self.what.total.id}
        body = met((self.cleared(), loop, self.rest()), frozenset((self.total.id, *own)), True)
        blocks = [replace(loop, kind="block", body=()) for loop in self.what.both]
        for side in (self.rows, self.columns):
            count = floordiv(side.size + (SIDE - 1), const(SIDE))
            blocks.append(For(side.tile, const(0), count, 1, (), "block"))
        spaces: dict[int, Space] = {self.total.id: "rows"}
        spaces |= dict.fromkeys((self.first.id, self.second.id), "shared")
        return Made(around(blocks, body), spaces | dict.fromkeys(own, "private"))

    def threads(self, body: tuple[Stmt, ...]) -> Stmt:
        """Return what each thread does."""
        inner = For(self.x, const(0), const(ACROSS), 1, body, "thread")
        return For(self.y, const(0), const(ACROSS), 1, (inner,), "thread")

    def each(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return what a thread does for each of its rows and columns."""
        inner = For(self.s, const(0), const(BLOCK), 1, body, "unrolled")
        return (For(self.r, const(0), const(BLOCK), 1, (inner,), "unrolled"),)

    @property
    def place(self) -> Access:
        """The sum that a thread has for a row and a column."""
        return Access(self.total, (var(self.y), var(self.x), var(self.r), var(self.s)))

    def cleared(self) -> Stmt:
        """Return what starts all sums."""
        return self.threads(self.each((Store(self.place, self.zero()),)))

    def zero(self) -> Const:
        """Return what sums start from."""
        return Const(zero_of(self.total.dtype), self.total.dtype)

    def staged(self, tile: Node, value: Expr, side: _Side) -> Stmt:
        """Return what fills a tile with a factor, and with zeros where there is none of it.

        Neighbouring threads read neighbours in memory.
        """
        along = var(self.fresh.symbol("m"))
        (symbol,) = along.symbols()
        flat = (Store(Access(self.what.total, ()), value),)
        if favours(flat, self.what.terms[-1].symbol) > favours(flat, side.loops[-1].symbol):
            at, deep = var(self.y) + along * ACROSS, var(self.x)
        else:
            at, deep = var(self.x) + along * ACROSS, var(self.y)
        here = var(side.tile) * SIDE + at
        term = var(self.terms.tile) * DEPTH + deep
        found = substitute_expr(value, side.values(here) | self.terms.values(term))
        tests = [*side.tests(here, SIDE), *self.terms.tests(term, DEPTH)]
        for test in tests:
            found = Select(test, found, self.zero())
        store = Store(Access(tile, (deep, at)), found)
        loop = For(symbol, const(0), const(SIDE // ACROSS), 1, (store,), "unrolled")
        return self.threads((loop,))

    def multiplied(self) -> Stmt:
        """Return what adds the products of two tiles to the sums."""
        deep = self.fresh.symbol("k")
        row, column = var(self.y) + var(self.r) * ACROSS, var(self.x) + var(self.s) * ACROSS
        first = Read(self.first, (var(deep), row))
        second = Read(self.second, (var(deep), column))
        dtype = self.total.dtype
        one: Stmt
        if self.fused:
            total = Read(self.total, self.place.index)
            one = Store(self.place, Apply(OPS["fma"], (first, second, total), dtype))
        else:
            one = Update(self.place, OPS["add"], Apply(OPS["mul"], (first, second), dtype))
        loop = For(deep, const(0), const(DEPTH), 1, self.each((one,)))
        return self.threads((loop,))

    def rest(self) -> Stmt:
        """Return what is done with the sums, where they are in range."""
        row = var(self.rows.tile) * SIDE + var(self.y) + var(self.r) * ACROSS
        column = var(self.columns.tile) * SIDE + var(self.x) + var(self.s) * ACROSS
        values = self.rows.values(row) | self.columns.values(column)
        body = elsewhere(substitute(self.what.rest, values), self.moved)
        for test in (*self.rows.tests(row, SIDE), *self.columns.tests(column, SIDE)):
            body = (If(test, body),)
        return self.threads(self.each(body))

    def moved(self, node: Node, index: tuple[Index, ...]) -> Place:
        """Return where what was accumulated is."""
        return (node, index) if node != self.what.total else (self.total, self.place.index)
