"""Work and memory traffic of a program: operations by kind, bytes by array, temporary memory.

An operation is one of the table's on scalars of its type; index arithmetic and loop control are not
counted, an accumulation is one operation each time. Bytes are counted in two ways:

    at least      each element that comes from outside once, each that the caller gets back once:
                  what would move if caches held everything
    as it stands  each load and store of an element of an array, as the loops are written

Registers cause no traffic. The quotients of operations and bytes are arithmetic intensities
(Williams, Waterman and Patterson, Roofline, 2009): the first with ideal caches, the second at the
nearest cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import groupby
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..base.dataclass import dataclass
from ..base.diagnostic import NOWHERE, Span
from .analysis import upward_exposed
from .analysis.accesses import Accesses, Site, collect_accesses
from .analysis.guarded_reads import negate
from .analysis.iteration_domains import (
    Assumption,
    CallValues,
    Points,
    add_let_values,
    domain_points,
    evaluate_index,
)
from .ir.assignments import Alloc, Permute
from .ir.expressions import Apply, Cast, Dynamic, Expr, Index, Read, Select, children
from .ir.indexing import Affine, Symbol
from .ir.loops import Check, Fill, If, Program, Stmt, Store, Update
from .ir.node import Node
from .ir.ops import Op
from .ir.walk import bodies, expressions_of, statements
from .passes.buffer_sharing import MemoryPlan, plan_memory

MAX_TRACKED_ELEMENTS = 1 << 24
"""Larger arrays are not tracked element by element."""
Event = tuple[str, str | int]
"""An operation by name (do), or by node id an element loaded, stored, or all of them filled."""
Context = tuple[tuple[Stmt, ...], tuple[Expr, ...]]
"""The enclosing statements, outermost first, and the tests of the enclosing selects."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes of one array that a call moves."""

    node: Node
    reads: int
    """Bytes whose values from before the call are needed, each element once."""
    writes: int
    """Bytes that are written, each element once."""
    loads: int
    """Bytes that the loops load, each as often as they do."""
    stores: int
    is_temporary: bool


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """The work of one call."""

    operations: Mapping[str, int]
    """How often each operation of the table is executed, most frequent first; `cast` converts."""
    arrays: tuple[Traffic, ...]
    allocated: int
    """Bytes of temporary arrays that a call allocates, at its peak."""
    stack: int
    """Bytes of temporary arrays on the stack."""
    assumed: tuple[Assumption, ...] = ()
    is_sampled: bool = False
    """Whether iteration domains were too large to count all points."""

    @property
    def total(self) -> int:
        """Operations of all kinds."""
        return sum(self.operations.values())

    @property
    def temporary(self) -> int:
        """Bytes of temporary arrays that are live at the same time, at most."""
        return self.allocated + self.stack

    @property
    def least(self) -> int:
        """Bytes that a call has to move at least: in from and out to the caller's arrays."""
        return sum(array.reads + array.writes for array in self.arrays if not array.is_temporary)

    @property
    def moved(self) -> int:
        """Bytes loaded and stored by the loops as written, temporary arrays included."""
        return sum(array.loads + array.stores for array in self.arrays)


def count_operations(
    program: Program, call_values: CallValues | None = None, plan: MemoryPlan | None = None
) -> OperationCounts:
    """Return the operations and bytes of a call with known sizes, exact where nothing is assumed.

    A program without run-time sizes needs none; `plan` is the memory plan of its temporaries.
    """
    plan = plan or plan_memory(program)
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    counting = _Counting(
        program, body, collect_accesses(body), add_let_values(program, call_values or CallValues())
    )
    totals = counting.totals()
    executed = {name: round(n) for (what, name), n in totals.items() if what == "do" and round(n)}
    operations = {
        str(n): executed[n] for n in sorted(executed, key=lambda name: (-executed[name], str(name)))
    }
    arrays = tuple(counting.traffic(node, totals) for node in counting.arrays())
    allocated, stack = counting.peak(plan), sum(node.bytes for node in plan.stack)
    return OperationCounts(
        operations, arrays, allocated, stack, tuple(counting.assumed), counting.is_sampled
    )


@dataclass(slots=True)
class _Counting:
    """Counting in one program; collects the assumptions made."""

    program: Program
    body: tuple[Stmt, ...]
    """The statements of all kernels, in order."""
    accesses: Accesses
    call_values: CallValues
    assumed: dict[Assumption, None] = field(default_factory=dict)
    is_sampled: bool = False
    _times: dict[tuple[int, ...], tuple[Context, float]] = field(default_factory=dict)
    """Keyed by identity; the values keep the contexts alive, which are large to compare."""

    def totals(self) -> dict[Event, float]:
        """Return how often each operation, load and store is executed."""
        totals: dict[Event, float] = {}
        for event, inside, tests in _events(self.body, (), ()):
            totals[event] = totals.get(event, 0) + self.times(inside, tests)
        return totals

    def times(self, inside: tuple[Stmt, ...], tests: tuple[Expr, ...]) -> float:
        """Return how often a program point is reached."""
        key = (*map(id, inside), -1, *map(id, tests))
        if key not in self._times:
            domain = self.noted(domain_points(inside, tests, frozenset(), self.call_values))
            self._times[key] = (inside, tests), domain.times
        return self._times[key][1]

    def noted(self, points: Points) -> Points:
        """Return the points after recording their assumptions."""
        self.assumed |= dict.fromkeys(points.assumed)
        self.is_sampled |= points.is_sampled
        return points

    def arrays(self) -> Iterator[Node]:
        """Yield the nodes in memory: all but scalars that are passed by value or local."""
        moving = {n.id for s in statements(self.body) if isinstance(s, Permute) for n in s.nodes}
        for parameter in self.program.parameters:
            if parameter.node.rank or parameter.written:
                yield parameter.node
        yield from self.program.results
        yield from (n for n in self.program.locals if n.rank or n.id in moving)

    def traffic(self, node: Node, totals: Mapping[Event, float]) -> Traffic:
        """Return the traffic of one array."""
        loads, stores, fills = (totals.get((w, node.id), 0) for w in ("load", "store", "fill"))
        temporary = node in self.program.locals
        reads, writes = (0, 0) if temporary else self.once(node)
        if node in self.program.results:
            reads = 0  # they start as zeros
        each, stores = node.dtype.itemsize, stores + fills * self.size(node)
        return Traffic(
            node, reads * each, writes * each, round(loads) * each, round(stores) * each, temporary
        )

    def size(self, node: Node) -> int:
        """Return how many elements an array has; 0 where that is unknown."""
        return prod(self.shape(node))

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the extents of an array, 0 for an unknown one."""
        extents = (evaluate_index(extent, {}, self.call_values) for extent in node.shape)
        return tuple(0 if extent is None else max(0, int(extent)) for extent in extents)

    def once(self, node: Node) -> tuple[int, int]:
        """Return how many elements are upward exposed, and how many are written; upper bounds."""
        size, sites = self.size(node), self.accesses.of(node)
        if size > MAX_TRACKED_ELEMENTS:
            read = [
                site for site in sites if upward_exposed.may_read_entry_value(self.accesses, site)
            ]
            written = [site for site in sites if site.writes]
            self.is_sampled |= any(s and not any(map(self.is_whole, s)) for s in (read, written))
            return size * bool(read), size * bool(written)
        needed, new, surely_written = (np.zeros(self.shape(node), bool) for _ in range(3))
        for _, of_statement in groupby(sites, lambda site: site.route[0]):
            group = tuple(of_statement)
            readers = [
                site for site in group if upward_exposed.may_read_entry_value(self.accesses, site)
            ]
            writers = [site for site in group if site.writes]
            needed |= self.before(
                readers, writers, self.accessed_by(readers, node) & ~surely_written
            )
            new |= self.accessed_by(writers, node)
            surely_written |= self.accessed_by(filter(self.is_sure, writers), node)
        return int(needed.sum()), int(new.sum())

    def before(
        self,
        readers: list[Site],
        writers: list[Site],
        touched: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Return which of the elements that some sites access they read before others write
        them."""
        if upward_exposed.are_in_place_updates(readers, writers) or not touched.any():
            return touched
        node = readers[0].node
        if not (touched & self.accessed_by(writers, node)).any():
            return touched
        certain = filter(self.is_sure, writers)
        needed = upward_exposed.upward_exposed(
            readers, certain, touched.shape, self.call_values, self.noted
        )
        if needed is not None:
            return touched & needed
        text = f"this may read what it wrote to `{node.label}` itself: all of that is counted"
        self.assumed[Assumption(text, _span_of(_statement_at(self.body, readers[0])))] = None
        return touched

    def accessed_by(self, sites: Iterable[Site], node: Node) -> NDArray[np.bool_]:
        """Return which elements any of some sites accesses."""
        accessed = np.zeros(self.shape(node), bool)
        for site in sites:
            accessed |= self.marked(site)
        return accessed

    def is_sure(self, site: Site) -> bool:
        """Whether a site accesses all elements that are marked for it, whatever the data."""
        if site.index is None:
            kind = isinstance(_statement_at(self.body, site), Fill)
        else:
            kind = not any(isinstance(index, Dynamic) for index in site.index)
        at = domain_points(site.inside, site.tests, frozenset(), self.call_values)
        return kind and not at.assumed and not at.is_sampled

    def marked(self, site: Site) -> NDArray[np.bool_]:
        """Return which elements a site accesses; all of them where that is unknown."""
        accessed = np.zeros(self.shape(site.node), bool)
        if not self.mark(accessed, site):
            accessed[...] = True
        return accessed

    def is_whole(self, site: Site) -> bool:
        """Whether a site surely accesses every element."""
        box = self.box(site)
        return box is not None and prod(map(len, box)) == self.size(site.node)

    def box(self, site: Site) -> list[NDArray[np.int64]] | None:
        """Return the values of each subscript of a site, where it accesses their Cartesian
        product."""
        if not upward_exposed.is_box(site):
            return None
        axes = [self.axis(index, self.reached(site, (index,))) for index in site.index or ()]
        if not all(isinstance(axis, np.ndarray) for axis in axes):
            return None
        pairs = zip(axes, self.shape(site.node), strict=True)
        return [np.unique(_in_range(numbers, size)) for numbers, size in pairs]

    def mark(self, accessed: NDArray[np.bool_], site: Site) -> bool:
        """Mark the elements that a site accesses; False where it may be any of them."""
        if site.index is None:
            accessed[...] = True
            return True
        box = self.box(site)
        if box is not None:
            accessed[np.ix_(*box)] = True
            return True
        if any(isinstance(index, Dynamic) for index in site.index):
            text = f"data decides which elements of `{site.node.label}` are used: all are counted"
            self.assumed[Assumption(text, _span_of(_statement_at(self.body, site)))] = None
        at = self.reached(site, site.index)
        subscripts = tuple(self.axis(index, at) for index in site.index)
        if at.is_sampled or any(subscript is None for subscript in subscripts):
            return False
        in_bounds = np.ones(np.count_nonzero(at.weight), bool)
        for subscript, size in zip(subscripts, accessed.shape, strict=True):
            if isinstance(subscript, np.ndarray):
                in_bounds &= (subscript >= 0) & (subscript < size)
        if in_bounds.any():
            accessed[
                tuple(
                    subscript[in_bounds] if isinstance(subscript, np.ndarray) else subscript
                    for subscript in subscripts
                )
            ] = True
        return True

    def reached(self, site: Site, index: tuple[Index, ...]) -> Points:
        """Return the points of a site, with columns for the symbols of some of its subscripts."""
        wanted = (subscript.symbols() for subscript in index if isinstance(subscript, Affine))
        return self.noted(
            domain_points(
                site.inside, site.tests, frozenset[Symbol]().union(*wanted), self.call_values
            )
        )

    def axis(self, index: Index, at: Points) -> NDArray[np.int64] | slice | None:
        """Return the values of a subscript at points; all of its axis where it depends on data."""
        if isinstance(index, Dynamic):
            return slice(None)
        number = evaluate_index(index, at.columns, self.call_values)
        return None if number is None else np.broadcast_to(number, at.weight.shape)[at.weight > 0]

    def peak(self, plan: MemoryPlan) -> int:
        """Return the bytes that a call allocates: the arena, and arrays that grow while it runs."""
        sizes = {size.symbol for size in plan.sizes}
        if plan.arena and not sizes <= self.call_values.symbols.keys():
            self.assumed[Assumption("sizes are not known: the temporaries are left out")] = None
            return 0
        block = plan.layout(self.call_values.symbols).total if plan.arena else 0
        return block + sum(self.largest(node) for node in plan.growing)

    def largest(self, node: Node) -> int:
        """Return the bytes of an array at its largest; 0 where its size depends on data."""
        most = 0
        for inside, stmt in _find_allocations(self.body, node, ()):
            wanted = (extent.symbols() for extent in node.shape)
            at = self.noted(
                domain_points(inside, (), frozenset[Symbol]().union(*wanted), self.call_values)
            )
            size = np.ones(at.weight.shape)
            for extent in node.shape:
                number = evaluate_index(extent, at.columns, self.call_values)
                if number is None:
                    text = f"the size of `{node.label}` is not known before: it is left out"
                    self.assumed[Assumption(text, stmt.span)] = None
                    return 0
                size = size * np.maximum(0, number)
            most = max(most, int(size.max(initial=0)))
        return most * node.dtype.itemsize


def _events(
    body: Iterable[Stmt], inside: tuple[Stmt, ...], tests: tuple[Expr, ...]
) -> Iterator[tuple[Event, tuple[Stmt, ...], tuple[Expr, ...]]]:
    """Yield each operation, load and store of the text with its context."""
    for stmt in body:
        # the values of a check are computed only where it fails
        exprs = (stmt.test,) if isinstance(stmt, Check) else expressions_of(stmt)
        for expr in exprs:
            yield from (
                (event, inside, holding) for event, holding in _expression_events(expr, tests)
            )
        yield from ((event, inside, tests) for event in _direct_events(stmt))
        for number, inner in enumerate(bodies(stmt)):
            holding = tests
            if isinstance(stmt, If):
                holding = (*tests, negate(stmt.test) if number else stmt.test)
            yield from _events(inner, (*inside, stmt), holding)


def _direct_events(stmt: Stmt) -> Iterator[Event]:
    """Yield the effects of a statement beyond evaluating its expressions."""
    match stmt:
        case Store(access):
            yield "store", access.node.id
        case Fill(node):
            yield "fill", node.id
        case Update(access, op, _, pair):
            yield "do", op.name
            for target in (access,) if pair is None else (access, pair.access):
                yield "load", target.node.id
                yield "store", target.node.id
        case _:
            pass


def _expression_events(
    expr: Expr, tests: tuple[Expr, ...]
) -> Iterator[tuple[Event, tuple[Expr, ...]]]:
    """Yield the events of evaluating an expression, with the tests under which they happen."""
    match expr:
        case Select(test, yes, no):
            yield from _expression_events(test, tests)
            yield from _expression_events(yes, (*tests, test))
            yield from _expression_events(no, (*tests, negate(test)))
            return
        case Apply(
            Op(name="and" | "or" as word), (first, second), _
        ):  # short-circuit: branches, like a select
            yield from _expression_events(first, tests)
            yield from _expression_events(
                second, (*tests, first if word == "and" else negate(first))
            )
            return
        case Apply(op, _, _):
            yield ("do", op.name), tests
        case Cast():
            yield ("do", "cast"), tests
        case Read(node):
            yield ("load", node.id), tests
        case _:
            pass
    for child in children(expr):
        yield from _expression_events(child, tests)


def _span_of(stmt: Stmt) -> Span:
    return getattr(stmt, "span", NOWHERE)


def _in_range(numbers: object, size: int) -> NDArray[np.int64]:
    """Return the numbers in range: an assumption about a test may lead outside."""
    values = np.asarray(numbers, np.int64)
    return values[(values >= 0) & (values < size)]


def _statement_at(body: tuple[Stmt, ...], site: Site) -> Stmt:
    """Return the statement of a site."""
    for at, number in site.route[:-1]:
        body = bodies(body[at])[number]
    return body[site.route[-1][0]]


def _find_allocations(
    body: tuple[Stmt, ...], node: Node, inside: tuple[Stmt, ...]
) -> Iterator[tuple[tuple[Stmt, ...], Alloc]]:
    for stmt in body:
        if isinstance(stmt, Alloc) and stmt.node.id == node.id:
            yield inside, stmt
        for inner in bodies(stmt):
            yield from _find_allocations(inner, node, (*inside, stmt))
