"""Instrumentation for traces: assignments around each statement that write its records.

    y[i] += x[i]    becomes    let row, floats, ints = what is used of the buffers
                               let go = 1 where all of it fits, else 0
                               if go: table[row, :], y and x before it, for i
                               y[i] += x[i]
                               if go: y after it, for i; then count what was used

The statements themselves are unchanged, so that results are bit-identical; the added statements
are ordinary assignments, so that every backend records without support for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.accuracy import epsilon, relative_error
from ...lowering.ir.assignments import (
    Assign,
    Block,
    Branch,
    For,
    Let,
    Permute,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.expressions import Expr, Reduce
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.node import Node
from ...lowering.ir.walk import binds, bodies, statements
from . import sites as s
from .buffers import Buffers
from .columns import find_reductions
from .library_calls import call_writes, classify_nodes, group_by_call
from .rows import Row
from .sites import Layout, Level, Site, TraceFilter
from .where import FilteredDomain, apply_filter, parse_filter


@dataclass(frozen=True, slots=True)
class Instrumented:
    """An instrumented procedure, and the layout of its records.

    Its last four parameters are the table, the floats, the ints and the counters.
    """

    procedure: Procedure
    layout: Layout


def instrument(procedure: Procedure, wanted: TraceFilter) -> Instrumented:
    """Return the procedure with recording added; raises CdValueError CD0871 for a wrong `where`."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    sizes = [x for node in nodes for extent in node.shape for x in extent.symbols()]
    bound = [x for item in statements(procedure.body) for x in binds(item)]
    buffers = Buffers(
        max((x.serial for x in (*sizes, *bound)), default=0),
        max((item.id for item in nodes), default=0),
    )
    instrumenter = _Instrumenter(
        buffers, wanted, parse_filter(wanted.where) if wanted.where else (), procedure
    )
    body = instrumenter.instrument_block(procedure.body, (), ())
    instrumented = replace(
        procedure,
        parameters=(
            *(replace(p, node=_without_request(p.node)) for p in procedure.parameters),
            *buffers.parameters,
        ),
        locals=tuple(map(_without_request, procedure.locals)),
        results=tuple(map(_without_request, procedure.results)),
        body=body,
    )
    return Instrumented(instrumented, instrumenter.layout(procedure))


def _without_request(node: Node) -> Node:
    """Return a node without its memory request: records may need it stored."""
    return node if node.request is None else replace(node, request=None)


class _Instrumenter:
    """The traversal that adds recording, and the sites so far."""

    def __init__(
        self,
        buffers: Buffers,
        wanted: TraceFilter,
        tests: tuple[ast.expr, ...],
        procedure: Procedure,
    ) -> None:
        self.buffers, self.wanted, self.tests = buffers, wanted, tests
        self.source_symbols, self.used_names = procedure.source_symbols, procedure.taken
        self.nodes = classify_nodes(procedure)
        self.sites: list[Site] = []
        self.unrecorded: list[s.Unrecorded] = []
        self.arrays: set[str] = set()
        self.indices: set[str] = set()
        self.statements: set[int | str] = set()

    def layout(self, procedure: Procedure) -> Layout:
        """Return the layout of all sites."""
        names = (frozenset(self.arrays), frozenset(self.indices), frozenset(self.statements))
        return Layout(tuple(self.sites), procedure.names, *names)

    def instrument_block(
        self, body: tuple[Statement, ...], path: tuple[Level, ...], symbols: tuple[Symbol, ...]
    ) -> tuple[Statement, ...]:
        """Return a block with recording added, given the enclosing levels and symbols."""
        out: list[Statement] = []
        for call, group in group_by_call(body):
            if call is not None:
                out += self.record_call(call, group, path, symbols)
                symbols = (*symbols, *(x.symbol for x in group if isinstance(x, Let)))
                continue
            (statement,) = group
            match statement:
                case Assign() | Permute():
                    out += self.record_statement(statement, path, symbols)
                    continue
                case For(symbol=symbol, body=inner):
                    begin = len(self.sites), len(self.unrecorded)
                    new = self.instrument_block(inner, (*path, statement), (*symbols, symbol))
                    self.close_loop(statement, *begin)
                    statement = replace(statement, body=new)
                case While(prelude, _, inner):
                    inner_path = (*path, statement)
                    lets = tuple(x.symbol for x in prelude if isinstance(x, Let))
                    begin = len(self.sites), len(self.unrecorded)
                    new_prelude = self.instrument_block(prelude, inner_path, symbols)
                    new = self.instrument_block(inner, inner_path, (*symbols, *lets))
                    self.close_loop(statement, *begin)
                    statement = replace(statement, prelude=new_prelude, body=new)
                case Branch(_, then, orelse):
                    statement = replace(
                        statement,
                        then=self.instrument_block(
                            then, (*path, s.BranchSide(statement, True)), symbols
                        ),
                        orelse=self.instrument_block(
                            orelse, (*path, s.BranchSide(statement, False)), symbols
                        ),
                    )
                case Block(_, inner):
                    statement = replace(
                        statement, body=self.instrument_block(inner, (*path, statement), symbols)
                    )
                case Let(symbol=symbol):
                    symbols = (*symbols, symbol)
                case _:
                    pass
            out.append(statement)
        return tuple(out)

    def record_statement(
        self, statement: Assign | Permute, path: tuple[Level, ...], symbols: tuple[Symbol, ...]
    ) -> Iterator[Statement]:
        """Yield a statement, with its recording around it where that is requested."""
        scratch = isinstance(statement, Assign) and self.nodes.is_scratch(statement.target.node)
        fits = (
            FilteredDomain(())
            if isinstance(statement, Permute)
            else self.requested_points(statement, symbols)
        )
        if fits is None or scratch:
            self.skip((statement,))
            yield statement
            return
        if self.wanted.terms and isinstance(statement, Assign):
            for reduce, guard in find_reductions(statement):
                row = self.add_row(self.next_site(statement, path, symbols, reduce), fits, guard)
                yield from (*row.begin(), *row.end(), *self.print_row(row))
        row = self.add_row(self.next_site(statement, path, symbols), fits, None)
        yield from row.begin()
        yield statement
        yield from (*row.end(), *self.print_row(row))

    def record_call(
        self,
        call: Span,
        body: tuple[Statement, ...],
        path: tuple[Level, ...],
        symbols: tuple[Symbol, ...],
    ) -> Iterator[Statement]:
        """Yield the statements of a library call, with the recording of its effect around them."""
        rows: list[Row] = []
        self.skip(body)
        for write in call_writes(call, body, self.nodes, self.buffers.symbol):
            fits = self.requested_points(write.statement, symbols)
            if fits is not None:
                site = self.next_site(write.statement, path, symbols)
                site = replace(site, reads=write.reads, is_part=write.is_part)
                rows.append(self.add_row(site, fits, None))
        if self.wanted.printed:
            del rows[1:]  # a printed row is overwritten by the next one
        for row in rows:
            yield from (*row.begin(), *(row.reserved("add") if len(rows) > 1 else ()))
        for row in rows if len(rows) > 1 else ():
            yield from row.reserved("sub")
        yield from body
        for row in rows:
            yield from (*row.end(), *self.print_row(row))

    def skip(self, body: Iterable[Statement], loops: tuple[For, ...] = ()) -> None:
        """Note statements that are executed without a row of their own, in loops without sites."""
        for statement in body:
            if isinstance(statement, Assign):
                ranges = tuple((loop.lo, loop.hi, loop.step) for loop in loops)
                error, step = relative_error(statement.value), epsilon(statement.target.node.dtype)
                self.unrecorded.append(s.Unrecorded(error, step, ranges))
            inner = (*loops, statement) if isinstance(statement, For) else loops
            for block in bodies(statement):
                self.skip(block, inner)

    def close_loop(self, loop: For | While, sites: int, unrecorded: int) -> None:
        """Assign what a loop does without a row, given the lengths of the lists at its start: after
        its last site it is done before the first one of the next iteration."""
        inside = self.unrecorded[unrecorded:]
        if len(self.sites) > sites:
            first = self.sites[sites]
            self.sites[sites] = replace(first, unrecorded=(*first.unrecorded, *self.unrecorded))
        elif isinstance(loop, For):
            bounds = (loop.lo, loop.hi, loop.step)
            self.unrecorded[unrecorded:] = [
                replace(item, loops=(bounds, *item.loops)) for item in inside
            ]

    def next_site(
        self,
        statement: Assign | Permute,
        path: tuple[Level, ...],
        symbols: tuple[Symbol, ...],
        reduce: Reduce | None = None,
    ) -> Site:
        """Return a new site, with the next number, for a statement."""
        indices = [*symbols]
        if isinstance(statement, Assign):
            indices += (r.symbol for r in (*statement.free.ranges, *statement.reduced.ranges))
        if reduce is not None:
            indices += (r.symbol for r in reduce.domain.ranges)
        named = frozenset(x for x in indices if x in self.source_symbols)
        unnamed = self.hidden_symbols(indices, symbols)
        return Site(
            len(self.sites), statement, path, symbols, reduce, named_symbols=named, hidden=unnamed
        )

    def hidden_symbols(
        self, indices: Iterable[Symbol], around: Iterable[Symbol]
    ) -> frozenset[Symbol]:
        """Return the indices without a name of their own: those of array notation whose name is
        used for something else in the source."""
        unnamed = [x for x in indices if x not in self.source_symbols]
        return frozenset(x for x in unnamed if x.name in self.used_names or x in around)

    def print_row(self, row: Row) -> Iterator[Statement]:
        """Yield the statements that print a row, where that is requested."""
        if self.wanted.printed:
            yield from row.printed()

    def add_row(self, site: Site, fits: FilteredDomain, guard: Expr | None) -> Row:
        """Return the row of a site, which is added to the sites."""
        site = replace(site, unrecorded=tuple(self.unrecorded))
        self.unrecorded.clear()
        row = Row(self.buffers, self.wanted, site, fits, guard)
        self.sites.append(row.site)
        return row

    def requested_points(
        self, statement: Assign, symbols: tuple[Symbol, ...]
    ) -> FilteredDomain | None:
        """Return the requested points of an assignment, None where there are none."""
        wanted = self.wanted
        label = s.array_name(statement.target.node, statement.names)
        matched = [name for name in wanted.statements if _is_named(statement, name)]
        self.arrays.add(label)
        indices = (*symbols, *(r.symbol for r in statement.free.ranges))
        unnamed = self.hidden_symbols(indices, symbols)
        self.indices.update(x.name for x in indices if x not in unnamed)
        self.statements.update(matched)
        if wanted.arrays and not any(s.matches_label(name, label) for name in wanted.arrays):
            return None
        if wanted.statements and not matched:
            return None
        if wanted.first_nan and statement.target.node.dtype.kind not in "fc":
            return None
        return apply_filter(self.tests, symbols, statement.free.ranges, unnamed)


def _is_named(statement: Assign, name: int | str) -> bool:
    if isinstance(name, int):
        return statement.span.line <= name <= statement.span.end_line
    return name in statement.span.text
