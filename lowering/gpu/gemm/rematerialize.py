"""Rematerialization of array elements in the tiles of a contraction that alone reads the array.

    for i: m = ...; for j: p[i, j] = f(s[i, j], m); z[i] = sum(p[i, j])
    for i, d: y[i, d] = sum[j](p[i, j] * v[j, d])
    becomes
    for i: m = ...; for j: row[j] = f(s[i, j], m); kept[i] = m; z[i] = sum(row[j])
    for i, d: y[i, d] = sum[j](f(s[i, j], kept[i]) * v[j, d])

Results are bit-identical. Recomputing an element costs less than to store and load it where few
tiles read it: a softmax then reads its array once, and writes a few scalars for each row.

Precondition: one store fills the array, from values that are available where the contraction runs,
or from scalars of the enclosing iterations, which are expanded; arrays that are private to an
iteration are inlined. Other readers of the array read each element once. Factors of tensor cores
stay arrays.

>>> program = lowered('''
... m[i] = max(s[i, j])
... p[i, j] = exp(s[i, j] - m[i])
... z[i] = sum(p[i, j])
... y[i, d] = sum[j](p[i, j] * v[j, d])
... ''', y="f32[90, 64]", s="f32[90, 80]", v="f32[80, 64]", z="f32[90]")
>>> program = optimize(program, Target("cuda"))[0]
>>> print_loops(rematerialize_elements(program, Target("cuda")).kernels[0].body[-1:])
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

from ... import thresholds
from ...analysis.accesses import Site, collect_accesses, holding_tests
from ...analysis.definitions import Layer, MaybeUnwritten, NotInvertible, find_layer, reaching_value
from ...analysis.effects import has_jumps
from ...analysis.expression_cost import cost, estimate_iterations
from ...analysis.parallel_band import Facts, facts_of, find_band, static_trip_count
from ...analysis.subscripts import ranges
from ...ir.assignments import Access
from ...ir.expressions import Dynamic, Expr, Index, Read, rebuild, walk
from ...ir.expressions import reads as reads_of
from ...ir.fresh import fresh_for
from ...ir.indexing import Affine, Symbol, var
from ...ir.loops import For, Program, Stmt, Store
from ...ir.node import Node
from ...ir.rewrite import Rewrite, map_kernels, rewrite, with_bodies
from ...ir.walk import bodies, direct_writes, free_symbols, statements, writes
from ...passes.dce import eliminate_dead_code
from ...target import Target
from ...transform.remap import Element, remap_accesses
from ..nest_distribution import exceeds_shared_memory, fills_tiles
from .contraction import Contraction, iteration_count, match_contraction
from .shared_tiles import tile_extents
from .tensor_tiles import map_tensor_tiles

Body = tuple[Stmt, ...]


def rematerialize_elements(program: Program, target: Target, exact: bool = False) -> Program:
    """Return the program whose contractions recompute elements instead of loading them."""
    while True:
        search = _Search(program, target, exact)
        rewritten = map_kernels(program, search.rewrite_kernel)
        if rewritten is program:
            return program
        program = eliminate_dead_code(search.fresh.declared(rewritten))


class _NotApplicable(Exception):
    """The rewriting is not legal, or gains nothing."""


class _Search:
    """The search for one array of a program to remove; loops are known by their identity."""

    def __init__(self, program: Program, target: Target, exact: bool) -> None:
        self.program, self.target, self.exact = program, target, exact
        self.fresh = fresh_for(program)
        self.arrays = _find_arrays(program)
        self.is_done = False

    @cached_property
    def facts(self) -> Facts:
        """The facts of the program."""
        return facts_of(self.program, self.exact)

    def rewrite_kernel(self, body: Body) -> Body:
        """Return the statements of a kernel with the first rewriting that applies."""
        return self.rewrite_body(body, ()) if self.arrays else body

    def rewrite_body(self, body: Body, outer: tuple[Stmt, ...]) -> Body:
        """Return a list of statements with the first rewriting that applies in it."""
        sites_of = collect_accesses(body) if len(body) > 1 else None
        for node, count in self.arrays.items() if sites_of is not None and not self.is_done else ():
            sites = sites_of.of(node) if sites_of is not None else ()
            if len(sites) != count:
                continue
            try:
                rewritten = _Pair(body, outer, sites, self).rewrite()
            except (_NotApplicable, NotInvertible, MaybeUnwritten):
                continue
            self.is_done = True
            return rewritten
        return tuple(self.rewrite_inside(stmt, outer) for stmt in body)

    def rewrite_inside(self, stmt: Stmt, outer: tuple[Stmt, ...]) -> Stmt:
        lists = () if self.is_done else bodies(stmt)
        rewritten = tuple(self.rewrite_body(nested, (*outer, stmt)) for nested in lists)
        return with_bodies(stmt, rewritten) if rewritten else stmt


def _find_arrays(program: Program) -> dict[Node, int]:
    """Return the temporaries of static sizes with a single store, and how often each is
    accessed."""
    stmts = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    sites = collect_accesses(stmts)
    temporaries = (
        n for n in program.locals
        if n.rank and n.static_shape is not None and n.request is None and not n.purpose
    )  # fmt: skip
    stored = [s.access.node.id for s in statements(stmts) if isinstance(s, Store)]
    written = [n.id for s in statements(stmts) for n in direct_writes(s)]
    return {
        node: len(sites.of(node)) for node in temporaries
        if stored.count(node.id) == written.count(node.id) == 1 < len(sites.of(node))
    }  # fmt: skip


class _Pair:
    """A statement that fills an array, and the contraction that reads it, of one list."""

    def __init__(
        self, body: Body, outer: tuple[Stmt, ...], sites: Sequence[Site], search: _Search
    ) -> None:
        """Take the list, the statements around it, and all accesses of the array."""
        self.stmts, self.outer, self.search, self.sites = body, outer, search, sites
        (self.write,) = (site for site in sites if site.writes)
        self.node, self.at = self.write.node, self.write.route[0][0]
        self.readers = sorted({site.route[0][0] for site in sites} - {self.at})
        if not self.readers or self.readers[0] < self.at:
            raise _NotApplicable
        nest = self.write.inside
        if not all(isinstance(stmt, For) and stmt.step == 1 for stmt in nest):
            raise _NotApplicable
        if any(map(has_jumps, nest)):
            raise _NotApplicable
        loops = [stmt for stmt in nest if isinstance(stmt, For)]
        depth = next(
            (n for n, loop in enumerate(loops) if find_layer(loop) is not None), len(loops)
        )
        self.outer_loops, self.row_loops = loops[:depth], loops[depth:]
        self.writer_body = loops[depth - 1].body if depth else body
        self.write_at = self.write.route[depth][0]
        self.written = frozenset(node.id for node in writes((body[self.at],)))
        self.saved: dict[Node, None] = {}
        self.sources: dict[Node, None] = {}

    def rewrite(self) -> Body:
        """Return the rewritten list. Raises where that is not legal, or gains nothing."""
        if (
            not self.row_loops
            or (iteration_count(self.row_loops) or 0) < thresholds.MIN_BLOCK_LOOP_ITERATIONS
        ):
            raise _NotApplicable
        contractions = [self.find_contraction(at) for at in self.readers]
        if contractions.count(None) != len(contractions) - 1:
            raise _NotApplicable
        (gemm,) = (candidate for candidate in contractions if candidate is not None)
        stored = find_layer(self.writer_body[self.write_at])
        assert stored is not None and stored.index is not None, "a store in loops"
        value = self.resolve(stored.value, self.write_at)
        written_later = writes(self.stmts[self.at + 1 : self.readers[-1] + 1])
        if (
            any(node in self.sources for node in written_later)
            or len(walk(value)) > thresholds.MAX_REMATERIALIZED_NODES
        ):
            raise _NotApplicable
        self.check_gain(value, gemm)
        arrays = self.save_arrays()
        value = _replace_reads(
            value, {(n, ()): Read(saved, self.position) for n, saved in arrays.items()}
        )
        filled = Layer(self.node, stored.index, value, self.write.inside, ())
        stmts: dict[int, Body] = {at: (self.rewrite_reader(at, filled),) for at in self.readers}
        stmts[self.at] = self.rewrite_writer(filled, arrays)
        return tuple(
            rewritten for at, stmt in enumerate(self.stmts) for rewritten in stmts.get(at, (stmt,))
        )

    def reads_in(self, at: int) -> list[Site]:
        """Return the sites at which a statement of the list reads the array."""
        return [site for site in self.sites if site.reads and site.route[0][0] == at]

    def find_contraction(self, at: int) -> Contraction | None:
        """Return the contraction of a statement, with the array in one factor only; None for other
        statements, which have to read each element once."""
        stmt, facts = self.stmts[at], self.search.facts
        nest = find_band(stmt, facts) if isinstance(stmt, For) else None
        gemm = None if nest is None else match_contraction(nest)
        if nest is None or gemm is None:
            if sum(
                estimate_iterations(site.inside) for site in self.reads_in(at)
            ) > estimate_iterations(self.write.inside):
                raise _NotApplicable
            return None
        reads = [
            [r for r in reads_of(factor) if r.node == self.node] for factor in _factors_of(gemm)
        ]
        if len(self.reads_in(at)) != sum(map(len, reads)) or all(reads):
            raise _NotApplicable
        if self.outer and not (fills_tiles((stmt,), facts) or exceeds_shared_memory([self.node])):
            raise _NotApplicable
        if map_tensor_tiles(nest, facts, self.search.fresh, self.search.target) is not None:
            raise _NotApplicable
        return gemm

    def resolve(self, value: Expr, before: int) -> Expr:
        """Return the value that a statement at a position of the list computes, with private arrays
        inlined; private scalars and all else that is read are recorded."""

        def resolve_expr(expr: Expr) -> Expr:
            expr = rebuild(expr, resolve_expr, lambda index: index)
            return self.resolve_read(expr, before) if isinstance(expr, Read) else expr

        return resolve_expr(value)

    def resolve_read(self, read: Read, before: int) -> Expr:
        """Return the value of a read by a statement at a position of the list."""
        node = read.node
        if any(isinstance(index, Dynamic) for index in read.index):
            raise _NotApplicable
        if node.id not in self.written:
            self.sources[node] = None
            return read
        writers = [n for n, stmt in enumerate(self.writer_body) if node in writes((stmt,))]
        if not self.outer_loops or any(before <= n <= self.write_at for n in writers):
            raise _NotApplicable
        if not node.rank:
            self.saved[node] = None
            return read
        writer = find_layer(self.writer_body[writers[0]]) if len(writers) == 1 else None
        write_count = sum(node in direct_writes(s) for s in statements((self.stmts[self.at],)))
        if writer is None or write_count != 1 or writers[0] > before:
            raise _NotApplicable
        domain = ranges((*self.outer, *self.write.inside))
        return self.resolve(reaching_value((writer,), read.index, domain, (), None), writers[0])

    def check_gain(self, value: Expr, gemm: Contraction) -> None:
        """Raise where an array costs less than the recomputation of its elements for each tile."""
        first, _ = _factors_of(gemm)
        is_first = any(read.node == self.node for read in reads_of(first))
        size = iteration_count(gemm.columns if is_first else gemm.rows)
        if size is None:
            raise _NotApplicable
        times = ceil(size / tile_extents(gemm)[is_first]) + len(self.readers) - 1
        inner = {loop.symbol for loop in self.row_loops}
        read_bytes = sum(
            r.node.dtype.itemsize for r in set(reads_of(value)) if free_symbols(r) & inner
        )
        element_bytes = self.node.dtype.itemsize
        recomputed_bytes = read_bytes * (times + bool(self.outer_loops))
        if (
            recomputed_bytes > read_bytes + element_bytes * (1 + times)
            or cost(value) * times > thresholds.MAX_REMATERIALIZED_COST
        ):
            raise _NotApplicable

    @property
    def position(self) -> tuple[Index, ...]:
        """The position of an iteration of the loops around the writer, among all of them."""
        return tuple(var(loop.symbol) - loop.lo for loop in self.outer_loops)

    def save_arrays(self) -> dict[Node, Node]:
        """Return the expanded arrays of the saved scalars, one element for each iteration."""
        counts = [static_trip_count(loop) for loop in self.outer_loops]
        shape = tuple(count for count in counts if count is not None)
        if len(shape) < len(counts) or (self.saved and 0 in shape):
            raise _NotApplicable
        return {node: self.search.fresh.array(node.label, shape, node.dtype) for node in self.saved}

    def rewrite_reader(self, at: int, filled: Layer) -> Stmt:
        """Return a statement with recomputed values instead of reads."""
        values = {
            (self.node, site.index or ()): self.value_at_site(filled, site)
            for site in self.reads_in(at)
        }

        def expr(value: Expr) -> Expr:
            return _replace_reads(value, values)

        return rewrite((self.stmts[at],), Rewrite(expr=expr))[0]

    def value_at_site(self, filled: Layer, site: Site) -> Expr:
        """Return the value of a read at a site, all of which was certainly written."""
        domain = ranges((*self.outer, *site.inside))
        return reaching_value((filled,), site.index or (), domain, holding_tests(site), None)

    def rewrite_writer(self, filled: Layer, arrays: dict[Node, Node]) -> Body:
        """Return the remaining writer of the array, with the scalars saved: its own reads of the
        array use a row that is private to the iteration."""
        if not self.outer_loops:
            return ()
        local_reads = self.reads_in(self.at)
        saves = tuple(Store(Access(copy, self.position), Read(n, ())) for n, copy in arrays.items())
        stmts = (*self.writer_body[: self.write_at], *saves, *self.writer_body[self.write_at + 1 :])
        if local_reads:
            self.check_local_reads(filled, local_reads)
            stmts = (
                *self.writer_body[: self.write_at + 1],
                *saves,
                *self.writer_body[self.write_at + 1 :],
            )
        loop: Stmt = replace(self.outer_loops[-1], body=stmts)
        for level in range(len(self.outer_loops) - 1, 0, -1):
            body, at = self.outer_loops[level - 1].body, self.write.route[level][0]
            loop = replace(self.outer_loops[level - 1], body=(*body[:at], loop, *body[at + 1 :]))
        return remap_accesses((loop,), self.redirect_to_row()) if local_reads else (loop,)

    def check_local_reads(self, filled: Layer, sites: Sequence[Site]) -> None:
        """Raise where a row is read in another iteration than its writer's, or too early."""
        depth, axes = len(self.outer_loops), self.row_axes()
        for site in sites:
            route = self.write.route[:depth]
            if site.route[:depth] != route or site.route[depth][0] <= self.write_at:
                raise _NotApplicable
            self.value_at_site(filled, site)
            for at, (subscript, stored) in enumerate(
                zip(site.index or (), filled.index or (), strict=True)
            ):
                if at not in axes and subscript != stored:
                    raise _NotApplicable

    def row_axes(self) -> tuple[int, ...]:
        """Return the axes of the array along a row."""
        index = self.write.index or ()
        inner = {loop.symbol for loop in self.row_loops}
        axes = tuple(at for at, subscript in enumerate(index) if _symbols_of(subscript) & inner)
        if any(_symbols_of(index[at]) - inner for at in axes):
            raise _NotApplicable
        return axes

    def redirect_to_row(self) -> Callable[[Node, tuple[Index, ...]], Element]:
        """Return the redirection of accesses to a row that is private to an iteration."""
        axes, shape = self.row_axes(), self.node.static_shape or ()
        row = self.search.fresh.array(
            self.node.label, tuple(shape[at] for at in axes), self.node.dtype
        )
        if row.bytes > thresholds.MAX_BLOCK_SHARED_BYTES:
            raise _NotApplicable

        def redirect(node: Node, index: tuple[Index, ...]) -> Element:
            return (node, index) if node != self.node else (row, tuple(index[at] for at in axes))

        return redirect


def _factors_of(gemm: Contraction) -> tuple[Expr, Expr]:
    return gemm.first, gemm.second


def _symbols_of(index: Index) -> frozenset[Symbol]:
    return index.symbols() if isinstance(index, Affine) else frozenset()


def _replace_reads(value: Expr, values: Mapping[tuple[Node, tuple[Index, ...]], Expr]) -> Expr:
    """Return an expression with values instead of reads."""
    if isinstance(value, Read):
        return values.get((value.node, value.index), value)
    return rebuild(value, lambda child: _replace_reads(child, values), lambda index: index)
