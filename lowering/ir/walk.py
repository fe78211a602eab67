"""Going over both IRs: map, fold, substitute, who reads and writes what, alpha-equality.

One function, `rebuild_statement`, knows the fields of every statement; what changes statements is
made from it and from `expressions.rebuild`. What only looks is made from `parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, TypeVar, assert_never, cast

from . import assignments, expressions, indexing, loops
from .assignments import Access, Assign, Pair
from .expressions import Domain, Dynamic, Expr, Index, Position, Read, Reduce
from .indexing import Affine, Range, Symbol
from .loops import AnyStatement, Program, Stmt
from .node import Node

S = TypeVar("S", bound=AnyStatement)
T = TypeVar("T")
Body = tuple[AnyStatement, ...]


_BODIES: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((assignments.For, loops.For, assignments.Block), ("body",)),
    **dict.fromkeys((assignments.While, loops.While), ("prelude", "body")),
    **dict.fromkeys((assignments.Branch, loops.If), ("then", "other")),
}
"""The fields that hold statements, by kind of statement; the others hold none."""


def bodies(statement: S) -> tuple[tuple[S, ...], ...]:
    """Return the statement lists directly inside a statement, of its IR, as they run."""
    names = _BODIES.get(type(statement))
    return () if names is None else tuple(getattr(statement, name) for name in names)


def with_bodies(statement: S, new: tuple[Body, ...]) -> S:
    """Return the statement with the lists that `bodies` gives replaced; itself for the same."""
    old = bodies(statement)
    if all(len(a) == len(b) and all(map(is_, a, b)) for a, b in zip(new, old)):
        return statement
    changed: dict[str, Any] = dict(zip(_BODIES[type(statement)], new, strict=True))
    return replace(statement, **changed)


def map_statements(body: tuple[S, ...], change: Callable[[S], Iterable[S]]) -> tuple[S, ...]:
    """Return the body with each statement replaced by what `change` gives, inner ones first."""
    out: list[S] = []
    for statement in body:
        inner = bodies(statement)
        if inner:
            mapped = tuple(map_statements(one, change) for one in inner)
            statement = with_bodies(statement, mapped)
        out += change(statement)
    return tuple(out)


def statements(body: Iterable[S]) -> Iterator[S]:
    """Yield every statement, those inside others too, parents first, in program order."""
    left = list(body)[::-1]
    while left:
        statement = left.pop()
        yield statement
        for inner in reversed(bodies(statement)):
            left += inner[::-1]


# ------------------------------------------------------------------------------- looking inside


@dataclass(frozen=True, slots=True)
class Parts:
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
                return Parts((access,), (value,))
            return Parts((access, pair.access), (value,), (pair.position,))
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
        case assignments.For() | loops.For():
            return Parts(indices=(statement.lo, statement.hi))
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
        case assignments.Break() | assignments.Continue():
            return Parts()
        case _:
            assert_never(statement)


def expressions_of(statement: AnyStatement) -> tuple[Expr, ...]:
    """Return the outermost expressions of one statement: predicates, subscripts, values."""
    if isinstance(statement, loops.For | loops.Comment):
        return ()
    found = parts(statement)
    if not found.domains and all(isinstance(i, Affine) for a in found.targets for i in a.index):
        return found.values
    predicates = tuple(d.where for d in found.domains if d.where is not None)
    subscripts = tuple(
        i.value for access in found.targets for i in access.index if isinstance(i, Dynamic)
    )
    return predicates + subscripts + found.values


def reads(body: Iterable[AnyStatement]) -> tuple[Node, ...]:
    """Return the nodes that are read, in order of first use; targets that take part are read."""
    return tuple(dict.fromkeys(node for s in statements(body) for node in own_reads(s)))


def writes(body: Iterable[AnyStatement]) -> tuple[Node, ...]:
    """Return the nodes that are written, given storage or permuted, in order of first use."""
    return tuple(dict.fromkeys(node for s in statements(body) for node in own_writes(s)))


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
        case _:
            return _union(free_symbols(child) for child in expressions.children(expr))


def uses(statement: AnyStatement) -> frozenset[Symbol]:
    """Return the symbols that a statement itself uses and does not bind, not those inside it.

    The target of an `Assign` is one cell for all points of `reduced`, so their symbols do not
    count as bound there.
    """
    found = parts(statement)
    targets = _union(_of_subscripts(access.index) for access in found.targets)
    values = _union(map(free_symbols, found.values)) | _union(i.symbols() for i in found.indices)
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
    return _union(free_symbols(i.value) if isinstance(i, Dynamic) else i.symbols() for i in index)


def _union(sets: Iterable[frozenset[Symbol]]) -> frozenset[Symbol]:
    return frozenset[Symbol]().union(*sets)


def own_reads(statement: AnyStatement) -> Iterator[Node]:
    """Yield the nodes that a statement itself reads, not those inside it."""
    for expr in expressions_of(statement):
        yield from (e.node for e in expressions.walk(expr) if isinstance(e, Read))
    match statement:
        case Assign(_, op, initialize) if op is not None and not initialize:
            yield from (access.node for access in parts(statement).targets)
        case loops.Update():
            yield from (access.node for access in parts(statement).targets)
        case assignments.Permute(_, sources):
            yield from sources


def own_writes(statement: AnyStatement) -> Iterator[Node]:
    """Yield the nodes that a statement itself writes, not those inside it."""
    yield from (access.node for access in parts(statement).targets)
    match statement:
        case loops.Fill(node) | assignments.Alloc(node):
            yield node
        case assignments.Permute(nodes):
            yield from nodes
        case _:
            return


# ------------------------------------------------------------------------------------- changing


def _same(x: T) -> T:
    return x


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What to put in the place of each kind of part; whatever is not given stays as it is.

    `expr` receives outermost expressions and looks inside by itself (`expressions.rebuild`);
    `symbol` receives only symbols where they are bound.
    """

    expr: Callable[[Expr], Expr] = _same
    index: Callable[[Affine], Affine] = _same
    node: Callable[[Node], Node] = _same
    symbol: Callable[[Symbol], Symbol] = _same


def rebuild_statement(statement: S, by: Rewrite) -> S:
    """Return one statement with its own parts rewritten; statements inside it stay as they are."""
    new: AnyStatement = statement
    match new:
        case Assign():
            new = replace(
                new, target=_access(new.target, by), value=by.expr(new.value),
                free=_domain(new.free, by), reduced=_domain(new.reduced, by),
                pair=_pair(new.pair, by),
            )  # fmt: skip
        case loops.Update():
            value, pair = by.expr(new.value), _pair(new.pair, by)
            new = replace(new, access=_access(new.access, by), value=value, pair=pair)
        case loops.Store():
            new = replace(new, access=_access(new.access, by), value=by.expr(new.value))
        case loops.Fill():
            new = replace(new, node=by.node(new.node), value=by.expr(new.value))
        case assignments.Let():
            new = replace(new, symbol=by.symbol(new.symbol), value=by.expr(new.value))
        case assignments.For() | loops.For():
            lo, hi = by.index(new.lo), by.index(new.hi)
            new = replace(new, symbol=by.symbol(new.symbol), lo=lo, hi=hi)
        case assignments.While() | loops.While() | assignments.Branch() | loops.If():
            new = replace(new, test=by.expr(new.test))
        case assignments.Alloc():
            new = replace(new, node=by.node(new.node))
        case assignments.Permute():
            nodes, sources = map(by.node, new.nodes), map(by.node, new.sources)
            new = replace(new, nodes=tuple(nodes), sources=tuple(sources))
        case assignments.Check():
            values, over = tuple(map(by.expr, new.values)), _domain(new.over, by)
            new = replace(new, test=by.expr(new.test), values=values, over=over)
        case loops.Check():
            values = tuple(map(by.expr, new.values))
            new = replace(new, test=by.expr(new.test), values=values)
        case assignments.Print():
            pieces = (p if isinstance(p, str) else by.expr(p) for p in new.pieces)
            new = replace(new, pieces=tuple(pieces))
        case assignments.Block() | assignments.Break() | assignments.Continue() | loops.Comment():
            pass
        case _:
            assert_never(new)
    return cast(S, new)


def rewrite(body: tuple[S, ...], by: Rewrite) -> tuple[S, ...]:
    """Return the body with the parts of every statement rewritten, those inside others too."""
    return map_statements(body, lambda statement: (rebuild_statement(statement, by),))


def over_kernels(
    program: Program, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
) -> Program:
    """Return the program with the body of each kernel changed."""
    kernels = (replace(kernel, body=change(kernel.body)) for kernel in program.kernels)
    return replace(program, kernels=tuple(kernels))


def substitute_expr(expr: Expr, values: Mapping[Symbol, Affine]) -> Expr:
    """Return the expression with free symbols replaced by index expressions."""
    return expressions.rebuild(
        expr,
        lambda child: substitute_expr(child, values),
        lambda index: indexing.substitute(index, values),
    )


def substitute(body: tuple[S, ...], values: Mapping[Symbol, Affine]) -> tuple[S, ...]:
    """Return the body with free symbols replaced; shapes of nodes stay as they are."""
    return rewrite(
        body,
        Rewrite(
            lambda expr: substitute_expr(expr, values),
            lambda index: indexing.substitute(index, values),
        ),
    )


def rename(
    body: tuple[S, ...], symbols: Mapping[Symbol, Symbol], nodes: Mapping[int, Node]
) -> tuple[S, ...]:
    """Return the body with symbols (where bound and where used) and nodes (by id) exchanged."""
    return rewrite(body, _renaming(symbols, nodes))


def _renaming(symbols: Mapping[Symbol, Symbol], nodes: Mapping[int, Node]) -> Rewrite:
    values = {old: indexing.var(new) for old, new in symbols.items()}

    def on_index(index: Affine) -> Affine:
        return indexing.substitute(index, values)

    def on_expr(expr: Expr) -> Expr:
        new = expressions.rebuild(expr, on_expr, on_index)
        if isinstance(new, Read):
            return replace(new, node=on_node(new.node))
        if isinstance(new, Reduce):
            ranges = (replace(r, symbol=on_symbol(r.symbol)) for r in new.domain.ranges)
            return replace(new, domain=replace(new.domain, ranges=tuple(ranges)))
        return new

    def on_node(node: Node) -> Node:
        return nodes.get(node.id, node)

    def on_symbol(symbol: Symbol) -> Symbol:
        return symbols.get(symbol, symbol)

    return Rewrite(on_expr, on_index, on_node, on_symbol)


def _index(index: Index, by: Rewrite) -> Index:
    return Dynamic(by.expr(index.value)) if isinstance(index, Dynamic) else by.index(index)


def _access(access: Access, by: Rewrite) -> Access:
    return Access(by.node(access.node), tuple(_index(i, by) for i in access.index))


def _pair(pair: Pair | None, by: Rewrite) -> Pair | None:
    return None if pair is None else Pair(_access(pair.access, by), by.index(pair.position))


def _domain(domain: Domain, by: Rewrite) -> Domain:
    ranges = (Range(by.symbol(r.symbol), by.index(r.lo), by.index(r.hi)) for r in domain.ranges)
    return Domain(tuple(ranges), None if domain.where is None else by.expr(domain.where))
