"""Loops whose iterations are known before them: those that have adjoints.

    for t in lo..hi: ... break ...      going = true;  for t in lo..hi: if going: ... going = false
    while test: body                    on copies of what it writes, count its iterations;
                                        for t in 0..count: body

A jump sets a flag, which guards what it skips. Of a statement that contains a `while` a part runs
before, on copies: what decides the largest number of iterations of each `while`, and the limits of
sizes that are bound inside. Only loops that write active arrays are changed. Postcondition: none of
these is a `while` or is left early.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Continue,
    For,
    Let,
    Permute,
    Print,
    Statement,
    While,
)
from ..ir.expressions import Apply, Const, Domain, Expr, Position, Read
from ..ir.indexing import Affine, Symbol, const, substitute, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_statements, rename
from ..ir.walk import binds, bodies, direct_reads, direct_writes, statements, writes
from .kept import Names

Body = tuple[Statement, ...]
_TRUE = Const(True, dtypes.bool_)


@dataclass(frozen=True, slots=True)
class Structured:
    """Statements in which loops that write active arrays have iterations known before them."""

    body: Body
    limits: Mapping[Symbol, tuple[Affine, Affine]]
    """The least and the largest value of integers that are bound inside of statements, or 0."""


def structured(
    body: Body,
    names: Names,
    active: Collection[int],
    stored: Iterable[Node],
    measured: Collection[Symbol] = (),
) -> Structured:
    """Return statements with known iterations, and the limits of `measured` symbols.

    `active` are ids of arrays, `stored` the arrays that have their storage from the start.
    """
    known = {node.id for node in stored}
    wanted = _Wanted(active, measured)
    limits: dict[Symbol, tuple[Affine, Affine]] = {}
    out: list[Statement] = []
    for stmt in _flat(body, wanted):
        found = _Loops(names, active, stmt)
        if wanted.has(stmt):
            out += _counted(stmt, found, known, wanted, limits)
        else:
            out += found.rewritten((stmt,))
        known |= {s.node.id for s in statements((stmt,)) if isinstance(s, Alloc)}
    return Structured(tuple(out), limits)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a first run counts."""

    active: Collection[int]
    measured: Collection[Symbol]

    def loops(self, stmt: Statement) -> list[While]:
        """Return the `while` loops of a statement that write active arrays."""
        inside = statements((stmt,))
        return [s for s in inside if isinstance(s, While) and _is_active(s, self.active)]

    def lets(self, stmt: Statement) -> list[Let]:
        """Return what binds the measured symbols inside of a statement."""
        inside = statements((stmt,))[1:]
        return [s for s in inside if isinstance(s, Let) and s.symbol in self.measured]

    def has(self, stmt: Statement) -> bool:
        """Whether a statement has something to count."""
        return bool(self.loops(stmt) or self.lets(stmt))


def _flat(body: Iterable[Statement], wanted: _Wanted) -> Iterable[Statement]:
    """Yield statements, those of a block with something to count one by one: less runs twice."""
    for stmt in body:
        if isinstance(stmt, Block) and stmt.rule is None and wanted.has(stmt):
            yield from _flat(stmt.body, wanted)
        else:
            yield stmt


def _is_active(loop: Statement, active: Collection[int]) -> bool:
    """Whether a loop writes an active array."""
    return any(n.id in active for s in statements((loop,)) for n in direct_writes(s))


@dataclass(slots=True)
class _Loops:
    """Rewrites the loops of an outermost statement."""

    names: Names
    active: Collection[int]
    outermost: Statement
    counts: dict[int, Symbol] = field(default_factory=dict)
    """The largest number of iterations of each `while`, by its `id`."""

    def rewritten(self, body: Iterable[Statement]) -> Body:
        """Return statements of which none jumps, with their loops rewritten."""
        return tuple(new for stmt in body for new in self._statement(stmt))

    def _statement(self, stmt: Statement) -> Body:
        match stmt:
            case For() | While() if not _is_active(stmt, self.active):
                return (stmt,)
            case For(body=body) if not _jumps(body):
                return (replace(stmt, body=self.rewritten(body)),)
            case For(body=body):
                return self._guarded(stmt, body)
            case While():
                return self._while(stmt)
            case Branch(_, then, orelse):
                return (replace(stmt, then=self.rewritten(then), orelse=self.rewritten(orelse)),)
            case Block(_, body):
                return (replace(stmt, body=self.rewritten(body)),)
            case _:
                return (stmt,)

    def _while(self, loop: While) -> Body:
        """Return a `while` as a loop over the iterations counted for it."""
        count = var(self.counts[id(loop)])
        symbol = self.names.symbol("turn")
        if loop is self.outermost and not _is_left(loop):
            body = (*self.rewritten(loop.prelude), *self._body(loop.body))
            last = _with_own_symbols(self.rewritten(loop.prelude), self.names)
            return (For(symbol, const(0), count, 1, body, loop.span), *last)
        whole = (*loop.prelude, *loop.body)
        if loop.test != _TRUE:
            whole = (*loop.prelude, Branch(loop.test, loop.body, (Break(),), loop.span))
        return self._guarded(For(symbol, const(0), count, 1, (), loop.span), whole)

    def _guarded(self, loop: For, body: Body) -> Body:
        """Return a loop whose body jumps as one whose iterations are guarded by flags."""
        if Break not in _jumps(body):
            return (replace(loop, body=self._body(body)),)
        going = self.names.array("going", (), dtypes.bool_)
        inside = Branch(Read(going, ()), self._body(body, going), (), loop.span)
        return (_set(going, True), replace(loop, body=(inside,)))

    def _body(self, body: Body, going: Node | None = None) -> Body:
        """Return the body of a loop; a `break` clears `going`."""
        jumps = _jumps(body)
        if Continue not in jumps:
            return self._until_jumps(body, (going,) if going else (), going)
        here = self.names.array("here", (), dtypes.bool_)
        flags = (going, here) if going else (here,)
        return (_set(here, True), *self._until_jumps(body, flags, here))

    def _until_jumps(self, body: Body, flags: Sequence[Node], rest: Node | None) -> Body:
        """Return statements of an iteration; those after one that may jump are guarded by `rest`.

        A jump clears the last of the `flags`, a `break` all of them.
        """
        out: list[Statement] = []
        for at, stmt in enumerate(body):
            if isinstance(stmt, Break | Continue):
                cleared = flags if isinstance(stmt, Break) else flags[-1:]
                return (*out, *(_set(flag, False) for flag in cleared))
            if not _jumps((stmt,)):
                out += self._statement(stmt)
                continue
            assert rest is not None, "a jump has a flag"
            later = body[at + 1 :]
            if isinstance(stmt, Branch):
                then, orelse = stmt.then, stmt.orelse
                if _always_jumps(then) and not _jumps(orelse):
                    orelse, later = (*orelse, *later), ()
                elif _always_jumps(orelse) and not _jumps(then):
                    then, later = (*then, *later), ()
                then, orelse = (self._until_jumps(side, flags, rest) for side in (then, orelse))
                out.append(Branch(stmt.test, then, orelse, stmt.span))
            else:
                assert isinstance(stmt, Block), "loops have their own jumps"
                out.append(replace(stmt, body=self._until_jumps(stmt.body, flags, rest)))
            if later:
                after = self._until_jumps(later, flags, rest)
                out.append(Branch(Read(rest, ()), after, ()))
            break
        return tuple(out)


def _jumps(body: Iterable[Statement]) -> set[type[Statement]]:
    """Return the kinds of jumps that statements make in the loop around them."""
    found: set[type[Statement]] = set()
    for stmt in body:
        if isinstance(stmt, Break | Continue):
            found.add(type(stmt))
        elif not isinstance(stmt, For | While):
            for inner in bodies(stmt):
                found |= _jumps(inner)
    return found


def _is_left(loop: While) -> bool:
    return Break in _jumps((*loop.prelude, *loop.body)) or bool(_jumps(loop.prelude))


def _always_jumps(body: Body) -> bool:
    return bool(body) and isinstance(body[-1], Break | Continue) and not _jumps(body[:-1])


def _set(node: Node, value: bool) -> Assign:
    return _store(node, Const(value, dtypes.bool_))


def _store(node: Node, value: Expr) -> Assign:
    return Assign(Access(node, ()), None, False, value, Domain())


def _with_own_symbols(body: Body, names: Names) -> Body:
    """Return statements that bind symbols of their own."""
    bound = {symbol for stmt in statements(body) for symbol in binds(stmt)}
    return rename(body, {symbol: names.symbol(symbol.name) for symbol in bound}, {})


def _counted(
    stmt: Statement,
    found: _Loops,
    known: Collection[int],
    wanted: _Wanted,
    limits: dict[Symbol, tuple[Affine, Affine]],
) -> Body:
    """Return a statement, after one that counts what is wanted of it."""
    names, loops, sizes = found.names, wanted.loops(stmt), wanted.lets(stmt)
    counts = _Counts(
        names,
        stmt,
        {id(loop): names.array("turns", (), dtypes.int64) for loop in loops},
        {
            let.symbol: (
                names.array("least", (), dtypes.int64),
                names.array("most", (), dtypes.int64),
            )
            for let in sizes
        },
    )
    counters = [*counts.most.values(), *(n for pair in counts.limits.values() for n in pair)]
    start = [_store(node, Const(0, dtypes.int64)) for node in counters]
    own = {node.id for node in counters}
    trial = counts.counted(stmt)
    own |= {node.id for node in counts.turns}
    setup, trial = _on_copies(_deciding(trial, own), names, own, known)
    lets: list[Statement] = []
    bound: list[Symbol] = []
    for node in counters:
        bound.append(names.symbol("count"))
        lets.append(Let(bound[-1], Read(node, ())))
    found.counts |= {id(loop): symbol for loop, symbol in zip(loops, bound, strict=False)}
    ends = iter(bound[len(loops) :])
    for symbol in counts.limits:
        limits[symbol] = var(next(ends)), var(next(ends))
    return (*start, *setup, *trial, *lets, *found.rewritten((stmt,)))


@dataclass(slots=True)
class _Counts:
    """Makes of an outermost statement one that keeps the largest number of iterations of loops, and
    the limits of symbols."""

    names: Names
    outermost: Statement
    most: dict[int, Node]
    limits: dict[Symbol, tuple[Node, Node]]
    turns: list[Node] = field(default_factory=list)
    """The counters of running loops."""

    def counted(self, stmt: Statement) -> Body:
        """Return a statement that counts."""
        match stmt:
            case While():
                return self._while(stmt)
            case For(body=body) | Block(body=body):
                return (replace(stmt, body=self._inner(body)),)
            case Branch(_, then, orelse):
                return (replace(stmt, then=self._inner(then), orelse=self._inner(orelse)),)
            case Print():
                return ()
            case Let(symbol) if symbol in self.limits:
                here = Position(var(symbol))
                ends = zip(("min", "max"), self.limits[symbol], strict=True)
                return (stmt, *(_update(node, name, here) for name, node in ends))
            case _:
                return (stmt,)

    def _inner(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.counted(stmt))

    def _while(self, loop: While) -> Body:
        """Return a loop that counts its iterations: before its test, but in the outermost loop
        where only the test ends it."""
        new = replace(loop, prelude=self._inner(loop.prelude), body=self._inner(loop.body))
        if id(loop) not in self.most:
            return (new,)
        number = self.names.array("turn", (), dtypes.int64)
        self.turns.append(number)
        each = (
            _update(number, "add", Const(1, dtypes.int64)),
            _update(self.most[id(loop)], "max", Read(number, ())),
        )
        if loop is self.outermost and not _is_left(loop):
            new = replace(new, body=(*each, *new.body))
        else:
            new = replace(new, prelude=(*each, *new.prelude))
        return (_store(number, Const(0, dtypes.int64)), new)


def _deciding(body: Body, counters: Collection[int]) -> Body:
    """Return the statements of a body that decide which ones run, and the values of counters."""
    inside = statements(body)
    needed = set(counters)
    for stmt in inside:
        if not isinstance(stmt, Assign | Permute):
            needed |= {node.id for node in direct_reads(stmt)}
    size = -1
    while len(needed) != size:
        size = len(needed)
        for stmt in inside:
            if isinstance(stmt, Assign | Permute) and _writes_any(stmt, needed):
                needed |= {node.id for node in (*direct_reads(stmt), *direct_writes(stmt))}

    def change(stmt: Statement) -> Body:
        match stmt:
            case Assign() | Permute() | Alloc() if not _writes_any(stmt, needed):
                return ()
            case For() | Block() | Branch() if not any(bodies(stmt)):
                return ()
            case _:
                return (stmt,)

    return map_statements(body, change)


def _writes_any(stmt: Statement, nodes: Collection[int]) -> bool:
    return any(node.id in nodes for node in direct_writes(stmt))


def _update(node: Node, op: str, value: Expr) -> Assign:
    old = Read(node, ())
    return _store(node, Apply(OPS[op], (old, value), node.dtype))


def _on_copies(
    body: Body, names: Names, own: Collection[int], known: Collection[int]
) -> tuple[Body, Body]:
    """Return statements that copy what a body writes, and the body on these copies."""
    bound = {symbol for stmt in statements(body) for symbol in binds(stmt)}
    symbols = {symbol: names.symbol(symbol.name) for symbol in bound}
    values = {symbol: var(new) for symbol, new in symbols.items()}
    copies: dict[int, Node] = {}
    setup: list[Statement] = []
    created = {s.node.id for s in statements(body) if isinstance(s, Alloc)}
    for node in writes(body):
        if node.id in own or node.id in copies:
            continue
        shape = tuple(substitute(extent, values) for extent in node.shape)
        copies[node.id] = copy = names.array(f"{node.label}_trial", shape, node.dtype)
        if node.id in created and (node.id not in known or shape != node.shape):
            continue
        if copy.static_shape is None:
            setup.append(Alloc(copy))
        setup.append(names.copied(copy, node))
    return tuple(setup), rename(body, symbols, copies)
