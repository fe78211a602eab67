"""Looking at both IRs: what is inside of a statement, and who reads, writes, binds and uses what.

`parts` knows the fields of every statement; all else is made from it. `rewrite` changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, assert_never

from . import assignments, expressions, loops
from .assignments import Access, Assign, Permute
from .expressions import Cast, Const, Domain, Dynamic, Expr, Index, Position, Read, Reduce, Select
from .indexing import Affine, Symbol
from .loops import AnyStatement, Program
from .memo import keep
from .node import Node

S = TypeVar("S", bound=AnyStatement)
Body = tuple[AnyStatement, ...]


BODIES: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((assignments.For, loops.For, assignments.Block), ("body",)),
    **dict.fromkeys((assignments.While, loops.While), ("prelude", "body")),
    **dict.fromkeys((assignments.Branch, loops.If), ("then", "other")),
}
"""The fields that hold statements, by kind of statement; the others hold none."""
_BODIES: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    kind: attrgetter(*names) if len(names) > 1 else lambda statement: (statement.body,)
    for kind, names in BODIES.items()
}


def bodies(statement: S) -> tuple[tuple[S, ...], ...]:
    """Return the statement lists directly inside a statement, of its IR, as they run."""
    get = _BODIES.get(type(statement))
    return () if get is None else get(statement)


def statements(body: Iterable[S]) -> list[S]:
    """Return every statement, those inside others too, parents first, in program order."""
    found: list[S] = []
    for statement in body:
        found.append(statement)
        if type(statement) in BODIES:
            found += inside(statement)
    return found


def parallel_loops(body: Iterable[S]) -> tuple[loops.For, ...]:
    """Return the parallel loops of a body, those inside others too, outer ones first."""
    return tuple(s for s in statements(body) if isinstance(s, loops.For) and s.kind == "parallel")


def inside(statement: S) -> tuple[S, ...]:
    """Return every statement inside of one, at any depth, parents first, in program order."""
    try:
        known: tuple[S, ...] = statement.inside
    except AttributeError:
        inner = [one for body in bodies(statement) for one in statements(body)]
        known = keep(statement, "inside", tuple(inner))
    return known


class Parts(NamedTuple):
    """What a statement holds itself, without the statements inside of it."""

    targets: tuple[Access, ...] = ()
    values: tuple[Expr, ...] = ()
    indices: tuple[Affine, ...] = ()
    """Index expressions outside of `targets` and `values`: bounds, positions, sizes."""
    domains: tuple[Domain, ...] = ()


def parts(statement: AnyStatement) -> Parts:
    """Return the accesses, expressions, index expressions and domains of one statement."""
    match statement:
        case loops.Store(access, value):
            return Parts((access,), (value,))
        case loops.Update(access, _, value, pair):
            if pair is None:
                return Parts((access,), (value,), statement.over)
            return Parts((access, pair.access), (value,), (pair.position, *statement.over))
        case assignments.For() | loops.For():
            return Parts(indices=(statement.lo, statement.hi))
        case loops.Comment():
            return Parts()
        case Assign(target, _, _, value, free, reduced, pair):
            return (
                Parts((target,), (value,), (), (free, reduced))
                if pair is None
                else Parts((target, pair.access), (value,), (pair.position,), (free, reduced))
            )
        case loops.Fill(_, value) | assignments.Let(_, value):
            return Parts(values=(value,))
        case assignments.While() | loops.While() | assignments.Branch() | loops.If():
            return Parts(values=(statement.test,))
        case assignments.Alloc(node):
            return Parts(indices=node.shape)
        case assignments.Check(test, _, values, over):
            return Parts(values=(test, *values), domains=(over,))
        case loops.Check(test, _, values):
            return Parts(values=(test, *values))
        case assignments.Print(pieces):
            return Parts(values=tuple(p for p in pieces if not isinstance(p, str)))
        case assignments.Block() | assignments.Permute():
            return Parts()
        case assignments.Break() | assignments.Continue() | loops.Barrier():
            return Parts()
        case _:
            assert_never(statement)


class Own(NamedTuple):
    """What a statement itself evaluates, reads and writes, without the statements inside of it."""

    expressions: tuple[Expr, ...] = ()
    """The outermost ones: predicates, subscripts, values."""
    found: tuple[Read, ...] = ()
    """Every read in them."""
    reads: tuple[Node, ...] = ()
    """The nodes of these, and targets that take part."""
    writes: tuple[Node, ...] = ()
    """Written, given storage or permuted."""
    chooses: bool = False
    """Whether some of the reads may not be done: whether there is a choice in the expressions."""


def own(statement: AnyStatement) -> Own:
    """Return what a statement itself evaluates, reads and writes."""
    try:
        known: Own = statement.own
    except AttributeError:
        known = keep(statement, "own", _own(statement))
    return known


def _own(statement: AnyStatement) -> Own:
    if isinstance(statement, assignments.For | loops.For | loops.Comment):
        return _NOTHING
    expressions_ = _expressions_of(statement)
    pieces = [one for expr in expressions_ for one in expressions.walk(expr)]
    found = tuple([one for one in pieces if isinstance(one, Read)])
    nodes = tuple([read.node for read in found])
    chooses = Select in map(type, pieces)
    written: tuple[Node, ...] = ()
    match statement:
        case loops.Store(access):
            written = (access.node,)
        case loops.Update() | Assign():
            written = tuple([access.node for access in parts(statement).targets])
            is_read = isinstance(statement, loops.Update) or _accumulates(statement)
            nodes += written if is_read else ()
        case loops.Fill(node) | assignments.Alloc(node):
            written = (node,)
        case assignments.Permute(written, sources):
            nodes += sources
        case _:
            pass
    return Own(expressions_, found, nodes, written, chooses)


_NOTHING = Own()


def _accumulates(statement: Assign) -> bool:
    return statement.op is not None and not statement.initialize


def _expressions_of(statement: AnyStatement) -> tuple[Expr, ...]:
    found = parts(statement)
    if not found.domains and all(isinstance(i, Affine) for a in found.targets for i in a.index):
        return found.values
    predicates = tuple(d.where for d in found.domains if d.where is not None)
    subscripts = tuple(
        i.value for access in found.targets for i in access.index if isinstance(i, Dynamic)
    )
    return predicates + subscripts + found.values


def expressions_of(statement: AnyStatement) -> tuple[Expr, ...]:
    """Return the outermost expressions of one statement: predicates, subscripts, values."""
    return own(statement).expressions


def own_reads(statement: AnyStatement) -> tuple[Node, ...]:
    """Return the nodes that a statement itself reads, not those inside it."""
    try:
        reads_: tuple[Node, ...] = statement.own.reads
    except AttributeError:
        reads_ = own(statement).reads
    return reads_


def own_writes(statement: AnyStatement) -> tuple[Node, ...]:
    """Return the nodes that a statement itself writes, not those inside it."""
    try:
        writes_: tuple[Node, ...] = statement.own.writes
    except AttributeError:
        writes_ = own(statement).writes
    return writes_


def reads(body: Iterable[AnyStatement]) -> tuple[Node, ...]:
    """Return the nodes that are read, in order of first use; targets that take part are read."""
    return tuple(dict.fromkeys([node for s in statements(body) for node in own_reads(s)]))


def writes(body: Iterable[AnyStatement]) -> tuple[Node, ...]:
    """Return the nodes that are written, given storage or permuted, in order of first use."""
    return tuple(dict.fromkeys([node for s in statements(body) for node in own_writes(s)]))


def binds(statement: AnyStatement) -> tuple[Symbol, ...]:
    """Return the symbols that the statement itself binds, those of its reductions included."""
    own: tuple[Symbol, ...] = ()
    match statement:
        case loops.For():
            return (statement.symbol,)
        case loops.Store() | loops.Update() | loops.Comment() | loops.If() | loops.Check():
            return ()  # `Reduce` is gone
        case assignments.For() | assignments.Let():
            own = (statement.symbol,)
        case _:
            own = tuple(x for domain in parts(statement).domains for x in domain.symbols)
    inner = (e for expr in expressions_of(statement) for e in expressions.walk(expr))
    return own + tuple(x for e in inner if isinstance(e, Reduce) for x in e.domain.symbols)


def free_symbols(expr: Expr) -> frozenset[Symbol]:
    """Return the symbols that an expression uses and does not bind."""
    match expr:
        case Position(index):
            return index.symbols()
        case Reduce(_, domain, value, _, position):
            outer, bound = _through(domain, frozenset())
            last = frozenset() if position is None else position.symbols()
            return outer | ((free_symbols(value) | last) - bound)
        case Read(_, index):
            return _of_subscripts(index)
        case Const():
            return _NO_SYMBOLS
        case Cast(value):
            return free_symbols(value)
        case _:
            return _NO_SYMBOLS.union(*map(free_symbols, expressions.children(expr)))


def uses(statement: AnyStatement) -> frozenset[Symbol]:
    """Return the symbols that a statement itself uses and does not bind, not those inside it.

    The target of an `Assign` is one cell for all points of `reduced`, so their symbols do not
    count as bound there.
    """
    try:
        known: frozenset[Symbol] = statement.uses
    except AttributeError:
        known = keep(statement, "uses", _uses(statement))
    return known


def _uses(statement: AnyStatement) -> frozenset[Symbol]:
    found = parts(statement)
    targets = _union([_of_subscripts(access.index) for access in found.targets])
    values = _NO_SYMBOLS.union(*map(free_symbols, found.values))
    if found.indices:
        values |= _union([i.symbols() for i in found.indices])
    match statement:
        case Assign():
            outer, free = _through(statement.free, frozenset())
            inner, both = _through(statement.reduced, free)
            return outer | inner | (targets - free) | (values - both)
        case assignments.Check():
            outer, bound = _through(statement.over, frozenset())
            return outer | (values - bound)
        case _:
            return targets | values


def _through(
    domain: Domain, bound: frozenset[Symbol]
) -> tuple[frozenset[Symbol], frozenset[Symbol]]:
    """The symbols that a domain uses and does not find bound, and those bound behind it."""
    used: frozenset[Symbol] = frozenset()
    for r in domain.ranges:
        used |= (r.lo.symbols() | r.hi.symbols()) - bound
        bound |= {r.symbol}
    if domain.where is not None:
        used |= free_symbols(domain.where) - bound
    return used, bound


def _of_subscripts(index: tuple[Index, ...]) -> frozenset[Symbol]:
    if len(index) == 1 and isinstance(index[0], Affine):
        return index[0].symbols()
    return _NO_SYMBOLS.union(
        *[free_symbols(i.value) if isinstance(i, Dynamic) else i.symbols() for i in index]
    )


def _union(sets: Iterable[frozenset[Symbol]]) -> frozenset[Symbol]:
    return _NO_SYMBOLS.union(*sets)


_NO_SYMBOLS: frozenset[Symbol] = frozenset()


def exchanged(program: Program) -> frozenset[int]:
    """Return the ids of the nodes whose arrays some `Permute` moves."""
    return frozenset(
        node.id
        for kernel in program.kernels
        for stmt in statements(kernel.body)
        if isinstance(stmt, Permute)
        for node in (*stmt.nodes, *stmt.sources)
    )
