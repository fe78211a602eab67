"""Elements that only a contraction reads, computed where its tiles are filled, with no array.

    for i: m = ...; for j: p[i, j] = f(s[i, j], m); z[i] = sum(p[i, j])
    for i, d: y[i, d] = sum[j](p[i, j] * v[j, d])
    becomes
    for i: m = ...; for j: row[j] = f(s[i, j], m); kept[i] = m; z[i] = sum(row[j])
    for i, d: y[i, d] = sum[j](f(s[i, j], kept[i]) * v[j, d])

Not a bit changes. A device computes more in the time that it takes to write an element than this
costs, where few tiles read each: then all of a softmax reads its array once, and writes a few
numbers for each row.

Needs an array that one store fills, of what is there when the contraction runs, or of scalars of
the rounds around it, which are kept for each of these; arrays that a round has for itself are
inlined. What else reads the array reads each element once. Factors of tensor cores stay arrays.

>>> program = lowered('''
... m[i] = max(s[i, j])
... p[i, j] = exp(s[i, j] - m[i])
... z[i] = sum(p[i, j])
... y[i, d] = sum[j](p[i, j] * v[j, d])
... ''', y="f32[90, 64]", s="f32[90, 80]", v="f32[80, 64]", z="f32[90]")
>>> program = optimize(program, Target("cuda"))[0]
>>> print_loops(anew(program, Target("cuda")).kernels[0].body[-1:])
for i in 0..90:
    for d in 0..64:
        y_acc = 0.0
        for j in 0..80:
            y_acc += exp(s[i, j] - m[i]) * v[j, d]
        y[i, d] = y_acc
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil

from ...analysis.accesses import Site, accesses, has_jumps
from ...analysis.definitions import Layer, Unplaced, Unwritten, layer, value_at
from ...analysis.expression_cost import cost, rounds
from ...analysis.parallel_band import Facts, band, facts_of, trips
from ...analysis.subscripts import ranges
from ...ir.assignments import Access
from ...ir.expressions import Dynamic, Expr, Index, Read, rebuild, walk
from ...ir.expressions import reads as reads_of
from ...ir.fresh import fresh_for
from ...ir.indexing import Affine, Symbol, var
from ...ir.loops import For, Program, Stmt, Store
from ...ir.node import Node
from ...ir.rewrite import Rewrite, over_kernels, rewrite, with_bodies
from ...ir.walk import bodies, free_symbols, own_writes, statements, writes
from ...passes.dce import dead
from ...target import Target
from ...transform.remap import Place, elsewhere
from ..nest_distribution import fills_tiles, is_large
from ..thread_block import LONG, SHARED_BYTES
from .contraction import Contraction, contraction, points_of
from .shared_tiles import extents
from .tensor_tiles import tensor_tiles

Body = tuple[Stmt, ...]
WRITTEN = 64
"""To write an element takes as long as about so many additions, see `cost`."""
MOST_PARTS = 64
"""How many parts an expression may have that takes the place of an element."""


def anew(program: Program, target: Target, exact: bool = False) -> Program:
    """Return the program whose contractions compute elements that nothing else needs in memory."""
    while True:
        work = _Work(program, target, exact)
        made = over_kernels(program, work.outermost)
        if made is program:
            return program
        program = dead(work.fresh.declared(made))


class _Unfit(Exception):
    """An element cannot be computed later, or should not be."""


class _Work:
    """The search for one array of a program, whose loops are known by their identity."""

    def __init__(self, program: Program, target: Target, exact: bool) -> None:
        self.program, self.target, self.exact = program, target, exact
        self.fresh = fresh_for(program)
        self.arrays = _arrays(program)
        self.done = False

    @cached_property
    def facts(self) -> Facts:
        """What is known of the program."""
        return facts_of(self.program, self.exact)

    def outermost(self, body: Body) -> Body:
        """Return the statements of a kernel with the first change that is found."""
        return self.body(body, ()) if self.arrays else body

    def body(self, body: Body, outer: tuple[Stmt, ...]) -> Body:
        """Return a list of statements with the first change, if there is one in it."""
        found = accesses(body) if len(body) > 1 else None
        for node, count in self.arrays.items() if found is not None and not self.done else ():
            sites = found.of(node) if found is not None else ()
            if len(sites) != count:
                continue
            try:
                made = _Pair(body, outer, sites, self).made()
            except (_Unfit, Unplaced, Unwritten):
                continue
            self.done = True
            return made
        return tuple(self.inside(stmt, outer) for stmt in body)

    def inside(self, stmt: Stmt, outer: tuple[Stmt, ...]) -> Stmt:
        lists = () if self.done else bodies(stmt)
        made = tuple(self.body(one, (*outer, stmt)) for one in lists)
        return with_bodies(stmt, made) if made else stmt


def _arrays(program: Program) -> dict[Node, int]:
    """Return temporaries of fixed sizes that one store fills, and how often each is used."""
    every = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    found = accesses(every)
    plain = (
        n for n in program.locals
        if n.rank and n.static_shape is not None and n.request is None and not n.purpose
    )  # fmt: skip
    stored = [s.access.node.id for s in statements(every) if isinstance(s, Store)]
    written = [n.id for s in statements(every) for n in own_writes(s)]
    return {
        node: len(found.of(node)) for node in plain
        if stored.count(node.id) == written.count(node.id) == 1 < len(found.of(node))
    }  # fmt: skip


class _Pair:
    """A statement that fills an array, and the contraction that reads it, of one list."""

    def __init__(
        self, body: Body, outer: tuple[Stmt, ...], sites: Sequence[Site], work: _Work
    ) -> None:
        """Take the list, what is around it, and all uses of the array."""
        self.stmts, self.outer, self.work, self.sites = body, outer, work, sites
        (self.write,) = (site for site in sites if site.writes)
        self.node, self.at = self.write.node, self.write.route[0][0]
        self.readers = sorted({site.route[0][0] for site in sites} - {self.at})
        if not self.readers or self.readers[0] < self.at:
            raise _Unfit
        inside = self.write.inside
        if not all(isinstance(stmt, For) and stmt.step == 1 for stmt in inside):
            raise _Unfit
        if any(map(has_jumps, inside)):
            raise _Unfit
        loops = [stmt for stmt in inside if isinstance(stmt, For)]
        depth = next((n for n, loop in enumerate(loops) if layer(loop) is not None), len(loops))
        self.around, self.within = loops[:depth], loops[depth:]
        self.list = loops[depth - 1].body if depth else body
        self.place = self.write.route[depth][0]
        self.changed = frozenset(node.id for node in writes((body[self.at],)))
        self.kept: dict[Node, None] = {}
        self.sources: dict[Node, None] = {}

    def made(self) -> Body:
        """Return the list after the change. Raises where it cannot be made, or is no gain."""
        if not self.within or (points_of(self.within) or 0) < LONG:
            raise _Unfit
        found = [self.contraction(at) for at in self.readers]
        if found.count(None) != len(found) - 1:
            raise _Unfit
        (what,) = (one for one in found if one is not None)
        stored = layer(self.list[self.place])
        assert stored is not None and stored.index is not None, "a store in loops"
        value = self.resolved(stored.value, self.place)
        behind = writes(self.stmts[self.at + 1 : self.readers[-1] + 1])
        if any(node in self.sources for node in behind) or len(walk(value)) > MOST_PARTS:
            raise _Unfit
        self.weigh(value, what)
        arrays = self.arrays()
        value = _with(value, {(n, ()): Read(made, self.points) for n, made in arrays.items()})
        whole = Layer(self.node, stored.index, value, self.write.inside, ())
        stmts: dict[int, Body] = {at: (self.reader(at, whole),) for at in self.readers}
        stmts[self.at] = self.filler(whole, arrays)
        return tuple(one for at, stmt in enumerate(self.stmts) for one in stmts.get(at, (stmt,)))

    def of(self, at: int) -> list[Site]:
        """Return where a statement of the list reads the array."""
        return [site for site in self.sites if site.reads and site.route[0][0] == at]

    def contraction(self, at: int) -> Contraction | None:
        """Return what a statement contracts, with the array in one factor only; None where it is
        another one, which reads each element once."""
        stmt, facts = self.stmts[at], self.work.facts
        found = band(stmt, facts) if isinstance(stmt, For) else None
        what = None if found is None else contraction(found)
        if found is None or what is None:
            if sum(rounds(site.inside) for site in self.of(at)) > rounds(self.write.inside):
                raise _Unfit
            return None
        reads = [[r for r in reads_of(one) if r.node == self.node] for one in _factors(what)]
        if len(self.of(at)) != sum(map(len, reads)) or all(reads):
            raise _Unfit
        if self.outer and not (fills_tiles((stmt,), facts) or is_large([self.node])):
            raise _Unfit
        if tensor_tiles(found, facts, self.work.fresh, self.work.target) is not None:
            raise _Unfit
        return what

    def resolved(self, value: Expr, before: int) -> Expr:
        """Return what a statement at a place of the list has computed, without what each round has
        of its own but for scalars; these, and all else that is read, are noted."""

        def of(expr: Expr) -> Expr:
            expr = rebuild(expr, of, lambda index: index)
            return self.read(expr, before) if isinstance(expr, Read) else expr

        return of(value)

    def read(self, read: Read, before: int) -> Expr:
        """Return what is read where a statement at a place of the list computes something."""
        node = read.node
        if any(isinstance(index, Dynamic) for index in read.index):
            raise _Unfit
        if node.id not in self.changed:
            self.sources[node] = None
            return read
        makers = [n for n, stmt in enumerate(self.list) if node in writes((stmt,))]
        if not self.around or any(before <= n <= self.place for n in makers):
            raise _Unfit
        if not node.rank:
            self.kept[node] = None
            return read
        maker = layer(self.list[makers[0]]) if len(makers) == 1 else None
        elsewhere = sum(node in own_writes(s) for s in statements((self.stmts[self.at],)))
        if maker is None or elsewhere != 1 or makers[0] > before:
            raise _Unfit
        known = ranges((*self.outer, *self.write.inside))
        return self.resolved(value_at((maker,), read.index, known, (), None), makers[0])

    def weigh(self, value: Expr, what: Contraction) -> None:
        """Raise where an array costs less than to compute its elements for each tile."""
        first, _ = _factors(what)
        is_first = any(read.node == self.node for read in reads_of(first))
        size = points_of(what.columns if is_first else what.rows)
        if size is None:
            raise _Unfit
        times = ceil(size / extents(what)[is_first]) + len(self.readers) - 1
        inner = {loop.symbol for loop in self.within}
        read = sum(r.node.dtype.itemsize for r in set(reads_of(value)) if free_symbols(r) & inner)
        own = self.node.dtype.itemsize
        after = read * (times + bool(self.around))
        if after > read + own * (1 + times) or cost(value) * times > WRITTEN:
            raise _Unfit

    @property
    def points(self) -> tuple[Index, ...]:
        """Where a round of the loops around what fills the array is among all."""
        return tuple(var(loop.symbol) - loop.lo for loop in self.around)

    def arrays(self) -> dict[Node, Node]:
        """Return arrays for the scalars that are kept, one element for each round."""
        counts = [trips(loop) for loop in self.around]
        shape = tuple(count for count in counts if count is not None)
        if len(shape) < len(counts) or (self.kept and 0 in shape):
            raise _Unfit
        return {node: self.work.fresh.array(node.label, shape, node.dtype) for node in self.kept}

    def reader(self, at: int, whole: Layer) -> Stmt:
        """Return a statement with values in the place of elements."""
        values = {(self.node, one.index or ()): self.value(whole, one) for one in self.of(at)}

        def expr(value: Expr) -> Expr:
            return _with(value, values)

        return rewrite((self.stmts[at],), Rewrite(expr=expr))[0]

    def value(self, whole: Layer, site: Site) -> Expr:
        """Return what is read at a site, all of which was surely written."""
        known = ranges((*self.outer, *site.inside))
        return value_at((whole,), site.index or (), known, site.tests, None)

    def filler(self, whole: Layer, arrays: dict[Node, Node]) -> Body:
        """Return what is left of the statement that filled the array: what else reads it there has
        the row of its round."""
        if not self.around:
            return ()
        local = self.of(self.at)
        keeps = tuple(Store(Access(made, self.points), Read(n, ())) for n, made in arrays.items())
        stmts = (*self.list[: self.place], *keeps, *self.list[self.place + 1 :])
        if local:
            self.check(whole, local)
            stmts = (*self.list[: self.place + 1], *keeps, *self.list[self.place + 1 :])
        made: Stmt = replace(self.around[-1], body=stmts)
        for level in range(len(self.around) - 1, 0, -1):
            body, at = self.around[level - 1].body, self.write.route[level][0]
            made = replace(self.around[level - 1], body=(*body[:at], made, *body[at + 1 :]))
        return elsewhere((made,), self.row()) if local else (made,)

    def check(self, whole: Layer, local: Sequence[Site]) -> None:
        """Raise where another round than its own reads a row, or the row is read before."""
        depth, axes = len(self.around), self.axes()
        for site in local:
            route = self.write.route[:depth]
            if site.route[:depth] != route or site.route[depth][0] <= self.place:
                raise _Unfit
            self.value(whole, site)
            for at, (one, other) in enumerate(
                zip(site.index or (), whole.index or (), strict=True)
            ):
                if at not in axes and one != other:
                    raise _Unfit

    def axes(self) -> tuple[int, ...]:
        """Return along which axes a row goes."""
        index = self.write.index or ()
        inner = {loop.symbol for loop in self.within}
        found = tuple(at for at, one in enumerate(index) if _symbols(one) & inner)
        if any(_symbols(index[at]) - inner for at in found):
            raise _Unfit
        return found

    def row(self) -> Callable[[Node, tuple[Index, ...]], Place]:
        """Return where elements are of a row that each round has for itself."""
        axes, shape = self.axes(), self.node.static_shape or ()
        made = self.work.fresh.array(
            self.node.label, tuple(shape[at] for at in axes), self.node.dtype
        )
        if made.bytes > SHARED_BYTES:
            raise _Unfit

        def moved(node: Node, index: tuple[Index, ...]) -> Place:
            return (node, index) if node != self.node else (made, tuple(index[at] for at in axes))

        return moved


def _factors(what: Contraction) -> tuple[Expr, Expr]:
    return what.first, what.second


def _symbols(index: Index) -> frozenset[Symbol]:
    return index.symbols() if isinstance(index, Affine) else frozenset()


def _with(value: Expr, values: Mapping[tuple[Node, tuple[Index, ...]], Expr]) -> Expr:
    """Return an expression with others in the place of what is read."""
    if isinstance(value, Read):
        return values.get((value.node, value.index), value)
    return rebuild(value, lambda child: _with(child, values), lambda index: index)
