"""Recording as assignments: before and after each statement stand others that write its records.

    y[i] += x[i]    becomes    let row, floats, ints = what is used of the buffers
                               let go = 1 where all of it fits, else 0
                               if go: table[row, :], y and x before it, for i
                               y[i] += x[i]
                               if go: y after it, for i; then count what was used

The statements themselves stay as they are, so that no computed bit changes, and what is added is
ordinary assignments, so that every backend records without knowing of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
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
from ...lowering.ir.walk import binds, statements
from . import sites as s
from .buffers import Buffers
from .columns import reductions
from .library_calls import grouped, nodes_of, written
from .rows import Row
from .sites import Layout, Level, Site, Wanted
from .where import Fits, fitted, parsed


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A procedure that records, and what its records mean.

    Its last four parameters are the table, the floats, the ints and the counters.
    """

    procedure: Procedure
    layout: Layout


def instrument(procedure: Procedure, wanted: Wanted) -> Instrumented:
    """Return the procedure with recording added; raises CdValueError CD0871 for a wrong `where`."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    sizes = [x for node in nodes for extent in node.shape for x in extent.symbols()]
    bound = [x for one in statements(procedure.body) for x in binds(one)]
    buffers = Buffers(
        max((x.serial for x in (*sizes, *bound)), default=0),
        max((one.id for one in nodes), default=0),
    )
    work = _Work(buffers, wanted, parsed(wanted.where) if wanted.where else (), procedure)
    body = work.body(procedure.body, (), ())
    made = replace(
        procedure,
        parameters=(
            *(replace(p, node=_plain(p.node)) for p in procedure.parameters),
            *buffers.parameters,
        ),
        locals=tuple(map(_plain, procedure.locals)),
        results=tuple(map(_plain, procedure.results)),
        body=body,
    )
    return Instrumented(made, work.layout(procedure))


def _plain(node: Node) -> Node:
    """Return a node without what was asked of its memory: a record may need it anywhere."""
    return node if node.request is None else replace(node, request=None)


class _Work:
    """The sites found so far."""

    def __init__(
        self, buffers: Buffers, wanted: Wanted, tests: tuple[ast.expr, ...], procedure: Procedure
    ) -> None:
        self.buffers, self.wanted, self.tests = buffers, wanted, tests
        self.own, self.taken = procedure.own, procedure.taken
        self.nodes = nodes_of(procedure)
        self.sites: list[Site] = []
        self.arrays: set[str] = set()
        self.indices: set[str] = set()
        self.statements: set[int | str] = set()

    def layout(self, procedure: Procedure) -> Layout:
        """Return what was found."""
        found = (frozenset(self.arrays), frozenset(self.indices), frozenset(self.statements))
        return Layout(tuple(self.sites), procedure.names, *found)

    def body(
        self, body: tuple[Statement, ...], path: tuple[Level, ...], symbols: tuple[Symbol, ...]
    ) -> tuple[Statement, ...]:
        """Return a list of statements with recording added, given what stands around it."""
        out: list[Statement] = []
        for call, some in grouped(body):
            if call is not None:
                out += self.called(call, some, path, symbols)
                symbols = (*symbols, *(x.symbol for x in some if isinstance(x, Let)))
                continue
            (one,) = some
            match one:
                case Assign() | Permute():
                    out += self.recorded(one, path, symbols)
                    continue
                case For(symbol=symbol, body=inner):
                    new = self.body(inner, (*path, one), (*symbols, symbol))
                    one = replace(one, body=new)
                case While(prelude, _, inner):
                    inside = (*path, one)
                    lets = tuple(x.symbol for x in prelude if isinstance(x, Let))
                    one = replace(
                        one,
                        prelude=self.body(prelude, inside, symbols),
                        body=self.body(inner, inside, (*symbols, *lets)),
                    )
                case Branch(_, then, other):
                    one = replace(
                        one,
                        then=self.body(then, (*path, s.Side(one, True)), symbols),
                        other=self.body(other, (*path, s.Side(one, False)), symbols),
                    )
                case Block(_, inner):
                    one = replace(one, body=self.body(inner, (*path, one), symbols))
                case Let(symbol=symbol):
                    symbols = (*symbols, symbol)
                case _:
                    pass
            out.append(one)
        return tuple(out)

    def recorded(
        self, one: Assign | Permute, path: tuple[Level, ...], symbols: tuple[Symbol, ...]
    ) -> Iterator[Statement]:
        """Yield a statement with what records it around it, where it is wanted."""
        scratch = isinstance(one, Assign) and self.nodes.is_scratch(one.target.node)
        fits = Fits(()) if isinstance(one, Permute) else self.fits(one, symbols)
        if fits is None or scratch:
            yield one
            return
        if self.wanted.terms and isinstance(one, Assign):
            for reduce, guard in reductions(one):
                row = self.row(self.site(one, path, symbols, reduce), fits, guard)
                yield from (*row.begin(), *row.end(), *self.printed(row))
        row = self.row(self.site(one, path, symbols), fits, None)
        yield from row.begin()
        yield one
        yield from (*row.end(), *self.printed(row))

    def called(
        self,
        call: Span,
        body: tuple[Statement, ...],
        path: tuple[Level, ...],
        symbols: tuple[Symbol, ...],
    ) -> Iterator[Statement]:
        """Yield the statements of a call of the library, what it comes to recorded around them."""
        rows: list[Row] = []
        for one in written(call, body, self.nodes, self.buffers.symbol):
            fits = self.fits(one.statement, symbols)
            if fits is not None:
                site = self.site(one.statement, path, symbols)
                site = replace(site, reads=one.reads, is_part=one.is_part)
                rows.append(self.row(site, fits, None))
        if self.wanted.printed:
            del rows[1:]  # a printed row leaves its place to the next one
        for row in rows:
            yield from (*row.begin(), *(row.reserved("add") if len(rows) > 1 else ()))
        for row in rows if len(rows) > 1 else ():
            yield from row.reserved("sub")
        yield from body
        for row in rows:
            yield from (*row.end(), *self.printed(row))

    def site(
        self,
        one: Assign | Permute,
        path: tuple[Level, ...],
        symbols: tuple[Symbol, ...],
        reduce: Reduce | None = None,
    ) -> Site:
        """Return the site of a statement, which is the next one."""
        indices = [*symbols]
        if isinstance(one, Assign):
            indices += (r.symbol for r in (*one.free.ranges, *one.reduced.ranges))
        if reduce is not None:
            indices += (r.symbol for r in reduce.domain.ranges)
        own = frozenset(x for x in indices if x in self.own)
        hidden = self.hidden(indices, symbols)
        return Site(len(self.sites), one, path, symbols, reduce, own=own, hidden=hidden)

    def hidden(self, indices: Iterable[Symbol], around: Iterable[Symbol]) -> frozenset[Symbol]:
        """Return the indices that have no name: numbers that no text names, and those of array
        notation where their letter is something else in the text."""
        made = [x for x in indices if x not in self.own]
        return frozenset(x for x in made if x.name in self.taken or x in around)

    def printed(self, row: Row) -> Iterator[Statement]:
        """Yield what prints a row, where that is wanted."""
        if self.wanted.printed:
            yield from row.printed()

    def row(self, site: Site, fits: Fits, guard: Expr | None) -> Row:
        """Return how a site is recorded, which joins the others."""
        row = Row(self.buffers, self.wanted, site, fits, guard)
        self.sites.append(row.site)
        return row

    def fits(self, one: Assign, symbols: tuple[Symbol, ...]) -> Fits | None:
        """Return which points of an assignment are wanted, None where none is."""
        wanted = self.wanted
        label = s.called(one.target.node, one.names)
        named = [name for name in wanted.statements if _is_named(one, name)]
        self.arrays.add(label)
        indices = (*symbols, *(r.symbol for r in one.free.ranges))
        hidden = self.hidden(indices, symbols)
        self.indices.update(x.name for x in indices if x not in hidden)
        self.statements.update(named)
        if wanted.arrays and not any(s.means(name, label) for name in wanted.arrays):
            return None
        if wanted.statements and not named:
            return None
        if wanted.first_nan and one.target.node.dtype.kind not in "fc":
            return None
        return fitted(self.tests, symbols, one.free.ranges, hidden)


def _is_named(one: Assign, name: int | str) -> bool:
    if isinstance(name, int):
        return one.span.line <= name <= one.span.end_line
    return name in one.span.text
