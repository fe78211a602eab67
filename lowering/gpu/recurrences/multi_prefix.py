"""Multi-prefix: counters at data-dependent locations that iterations read before they update them.

    for i in 0..n: y[c[k[i]]] = x[i]; c[k[i]] += 1
    becomes
    for g in 0..G: for i of chunk g: parts[g, k[i]] += 1
    for e: for g in 0..G: parts[g, e] becomes what c[e] is before chunk g; c[e] what it is last
    for g in 0..G: for i of chunk g: c_expanded[i] = parts[g, k[i]]; parts[g, k[i]] += 1
    for i in 0..n: y[c_expanded[i]] = x[i]

Precondition: one reassociable update of an array, which no other statement writes, at a
data-dependent location; reads of the same element before it in its iteration; and iterations that
are independent but for that, or only store elements. Where a check fails, nothing is counted: the
iterations themselves fail, the first of them as before. The number of chunks depends on sizes only.

>>> program, _ = optimize(lowered('''
... for i in range(len(x)):
...     y[c[k[i]]] = x[i]
...     c[k[i]] += 1
... ''', y="f32[9000]", x="f32[9000]", k="i64[9000]", c="i64[9]"), Target("cuda"))
>>> from plusequals.lowering.transform.recognize_updates import recognize_updates
>>> program = map_kernels(program, recognize_updates)
>>> rewritten = rewrite_multi_prefix(program, facts_of(program), fresh_for(program))
>>> [type(stmt).__name__ for stmt in rewritten.kernels[0].body]
['For', 'For', 'For', 'For', 'For']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import is_reassociable, neutral_element, write_only_arrays
from ...analysis.parallel_band import (
    Facts,
    nest_loops,
    normalize,
    static_trip_count,
    substitute_symbol,
)
from ...analysis.subscripts import ranges
from ...ir.assignments import Access, Alloc, Break, Continue, Let, Permute, Print
from ...ir.expressions import Apply, Dynamic, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, var
from ...ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.rewrite import map_kernels, map_statements, rename, with_bodies
from ...ir.walk import (
    binds,
    bodies,
    direct_reads,
    direct_writes,
    expressions_of,
    statements,
    uses,
    writes,
)
from ...transform.remap import Element, remap_accesses
from ...transform.strip_mine import chunk

Body = tuple[Stmt, ...]


def rewrite_multi_prefix(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose loops compute the counts of all iterations before they use them."""

    def rewrite_body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(rewritten for stmt in stmts for rewritten in rewrite_statement(stmt, outer))

    def rewrite_statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            counting = _match_counting(stmt, facts)
            rewritten = counting.rewrite(facts, fresh, outer) if counting is not None else ()
            if rewritten or facts.is_free(
                stmt, facts.private(stmt), ranges(outer), facts.bounds_outside(stmt)
            ):
                return rewritten or (stmt,)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(rewrite_body(part, outer) for part in bodies(stmt))),)

    return map_kernels(program, lambda stmts: rewrite_body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _CountingLoop:
    """A loop that counts from zero, and its counter."""

    loop: For
    update: Update
    update_slice: Body
    """The slice of an iteration that updates the counter."""
    chunks: int

    @property
    def node(self) -> Node:
        """The array of counters."""
        return self.update.access.node

    def rewrite(self, facts: Facts, fresh: Fresh, outer: tuple[For, ...]) -> Body:
        """Return the loops that compute the counts of iterations, and the iterations; nothing where
        these have other dependences."""
        node, index = self.node, self.update.access.index
        size = static_trip_count(self.loop)
        assert size is not None, "the trip count is static"
        shape = tuple(extent.constant or 0 for extent in node.shape)
        counts = fresh.array(f"{node.label}_expanded", (size,), node.dtype)
        partials = fresh.array(f"{node.label}_parts", (self.chunks, *shape), node.dtype)
        here = Access(counts, (var(self.loop.symbol),))

        def redirect(target: Node, at: tuple[Affine | Dynamic, ...]) -> Element:
            return (counts, here.index) if target == node else (target, at)

        rest = map_statements(self.loop.body, lambda s: () if s is self.update else (s,))
        main_loop = replace(self.loop, body=remap_accesses(rest, redirect))
        facts.tell((main_loop,), facts.temporaries_in(self.loop))
        private = facts.private(main_loop)
        written = frozenset(array.id for array in write_only_arrays(main_loop, private))
        if not any(
            facts.is_free(main_loop, privatized, ranges(outer))
            for privatized in (private, private | written)
        ):
            return ()
        first_chunk, second_chunk = fresh.symbol("piece"), fresh.symbol("piece")
        partial_update = replace(self.update, access=Access(partials, (var(first_chunk), *index)))
        store_count = Store(here, Read(partials, (var(second_chunk), *index)))
        recount = replace(self.update, access=Access(partials, (var(second_chunk), *index)))
        return (
            *self.initialize(partials, fresh),
            *self.chunk_nest(first_chunk, (partial_update,), fresh),
            *self.scan_chunks(partials, fresh),
            *self.chunk_nest(second_chunk, (store_count, recount), fresh),
            main_loop,
        )

    def initialize(self, partials: Node, fresh: Fresh) -> Body:
        """Return the initialization of the counters of chunks."""
        axes = [fresh.symbol("at") for _ in partials.shape]
        start = Store(
            Access(partials, tuple(map(var, axes))),
            neutral_element(self.update.op, self.node.dtype),
        )
        return _element_loops(axes, partials, (start,))

    def chunk_nest(self, chunk_symbol: Symbol, stmts: Body, fresh: Fresh) -> Body:
        """Return the iterations of each chunk, with the update replaced by some statements."""
        body = map_statements(self.update_slice, lambda s: stmts if s is self.update else (s,))
        chunk_loop, body = chunk(self.loop, chunk_symbol, self.chunks, body, fresh)
        used = {self.node.id, *(update.access.node.id for update in _updates_in(stmts))}
        copies = {n.id: fresh.like(n) for n in writes(body) if n.id not in used}
        names = {s: fresh.symbol(s.name) for stmt in statements(body) for s in binds(stmt)}
        outer = For(chunk_symbol, const(0), const(self.chunks), 1, (), span=self.loop.span)
        return nest_loops((outer, chunk_loop), rename(body, names, copies))

    def scan_chunks(self, partials: Node, fresh: Fresh) -> Body:
        """Return the loops that scan the counters over chunks."""
        axes, chunk_symbol = [fresh.symbol("at") for _ in self.node.shape], fresh.symbol("piece")
        index = tuple(map(var, axes))
        running, old = (
            fresh.scalar(f"{self.node.label}_{s}", self.node.dtype) for s in ("own", "old")
        )
        running_access, partial = Access(running, ()), Access(partials, (var(chunk_symbol), *index))
        total = Apply(self.update.op, (Read(running, ()), Read(old, ())), self.node.dtype)
        step = (
            Store(Access(old, ()), Read(partials, partial.index)),
            Store(partial, Read(running, ())),
            Store(running_access, total),
        )
        body = (
            Store(running_access, Read(self.node, index)),
            For(chunk_symbol, const(0), const(self.chunks), 1, step),
            Store(Access(self.node, index), Read(running, ())),
        )
        return _element_loops(axes, self.node, body)


def _element_loops(axes: Sequence[Symbol], node: Node, body: Body) -> Body:
    """Return the loops over all elements of an array."""
    loops = [For(s, const(0), size, 1, ()) for s, size in zip(axes, node.shape, strict=True)]
    return nest_loops(loops, body)


def _updates_in(body: Body) -> list[Store | Update]:
    return [stmt for stmt in body if isinstance(stmt, Store | Update)]


def _match_counting(loop: For, facts: Facts) -> _CountingLoop | None:
    """Return the counting of a loop, None for other loops and short ones."""
    trip_count, private = static_trip_count(loop), facts.private(loop)
    halts = Print, Permute, Alloc, Break, Continue, Fill
    if (
        loop.kind != "serial"
        or trip_count is None
        or trip_count < thresholds.MIN_PREFIX_CHUNKS * thresholds.MIN_PREFIX_CHUNK_ITERATIONS
    ):
        return None
    if any(isinstance(stmt, halts) for stmt in statements(loop.body)):
        return None
    if loop.step != 1 or loop.lo != const(0):
        old, (loop, value) = loop, normalize(loop, loop.symbol)
        loop = replace(loop, body=substitute_symbol(loop.body, old.symbol, value))
        facts.tell((loop,), facts.temporaries_in(old))
    for update in _find_counters(loop, private):
        size = update.access.node.bytes
        chunks = min(
            thresholds.MAX_OWNED_CHUNKS,
            thresholds.MAX_CHUNK_COPIES_BYTES // max(size, 1),
            trip_count // thresholds.MIN_PREFIX_CHUNK_ITERATIONS,
        )
        sliced = _Slicer(private, update).slice_body(loop.body)
        if sliced and chunks >= thresholds.MIN_PREFIX_CHUNKS:
            return _CountingLoop(loop, update, sliced, chunks)
    return None


def _find_counters(loop: For, private: frozenset[int]) -> list[Update]:
    """Return the updates of elements at data-dependent locations that are read, too."""
    stmts = statements(loop.body)
    out = []
    for stmt in stmts:
        if not isinstance(stmt, Update) or stmt.pair is not None or stmt.access.node.id in private:
            continue
        node, index = stmt.access.node, stmt.access.index
        is_only_write = sum(node in direct_writes(candidate) for candidate in stmts) == 1
        is_static = node.rank > 0 and node.static_shape is not None
        if (
            not is_static
            or not is_only_write
            or not is_reassociable(stmt.op, node.dtype, exact=True)
        ):
            continue
        all_reads = [
            r for candidate in stmts for value in expressions_of(candidate) for r in reads(value)
        ]
        array_reads = [read for read in all_reads if read.node == node]
        if (
            array_reads
            and all(read.index == index for read in array_reads)
            and _is_read_before(loop.body, stmt)
        ):
            out.append(stmt)
    return out


def _is_read_before(body: Body, update: Update) -> bool:
    """Whether an array is only read before its update, in an iteration that updates it."""
    node = update.access.node
    for at, stmt in enumerate(body):
        if stmt is update:
            later_reads = (node in direct_reads(nested) for nested in statements(body[at + 1 :]))
            return node not in {r.node for r in reads(update.value)} and not any(later_reads)
        is_inside = _contains((stmt,), update)
        if is_inside:
            others = statements((*body[:at], *body[at + 1 :]))
            if not isinstance(stmt, If) or any(node in direct_reads(nested) for nested in others):
                return False
            if any(read.node == node for read in reads(stmt.test)):
                return False
            branch = next(s for s in bodies(stmt) if _contains(s, update))
            rest = (
                nested for part in bodies(stmt) if part is not branch for nested in statements(part)
            )
            return _is_read_before(branch, update) and not any(
                node in direct_reads(nested) for nested in rest
            )
    return False


def _contains(body: Sequence[Stmt], wanted: Stmt) -> bool:
    """Whether a statement is among others, or inside them."""
    return any(stmt is wanted for stmt in statements(body))


@dataclass(slots=True)
class _Slicer:
    """Slices the update out of an iteration: the slice depends on nothing that iterations write."""

    private: frozenset[int]
    update: Update
    dropped: set[int] = field(default_factory=set)
    """Temporaries that are not computed in the slice."""
    undefined: set[Symbol] = field(default_factory=set)
    written: frozenset[int] = frozenset()

    def slice_body(self, body: Body) -> Body:
        """Return the slice of an iteration; none where it has other dependences."""
        self.written = frozenset(node.id for node in writes(body)) - self.private
        return self.slice_list(body)

    def slice_list(self, body: Body) -> Body:
        """Return the slice of a list, up to the update; none where it has other dependences."""
        out: list[Stmt] = []
        for at, stmt in enumerate(body):
            if _contains((stmt,), self.update):
                if stmt is self.update:
                    counts = frozenset((self.update.access.node.id,))
                    return (*out, stmt) if self.is_invariant(stmt, counts) else ()
                if not isinstance(stmt, If) or not self.is_invariant(
                    replace(stmt, then=(), orelse=())
                ):
                    return ()
                sides = tuple(
                    self.slice_list(side) if _contains(side, self.update) else ()
                    for side in bodies(stmt)
                )
                return (*out, with_bodies(stmt, sides)) if any(sides) else ()
            if isinstance(stmt, Check) and self.is_invariant(stmt):
                rest = self.slice_list(body[at + 1 :])
                return (*out, If(stmt.test, rest, span=stmt.span)) if rest else ()
            if self.can_keep(stmt):
                out.append(stmt)
        return ()

    def can_keep(self, stmt: Stmt) -> bool:
        """Whether a statement may be in the slice; if not, its results are dropped."""
        if isinstance(stmt, Comment | Check):
            return False
        outputs = {node.id for node in writes((stmt,))}
        stmts = statements((stmt,))
        is_private = outputs <= self.private and not any(
            isinstance(s, Check | While) for s in stmts
        )
        if is_private and all(self.is_invariant(nested) for nested in stmts):
            return True
        self.dropped |= outputs
        self.undefined |= {nested.symbol for nested in stmts if isinstance(nested, Let)}
        return False

    def is_invariant(self, stmt: Stmt, except_ids: frozenset[int] = frozenset()) -> bool:
        """Whether a statement depends on nothing that iterations write, but for some nodes."""
        read = {node.id for node in direct_reads(stmt)} - except_ids
        return not read & (self.written | self.dropped) and not set(uses(stmt)) & self.undefined
