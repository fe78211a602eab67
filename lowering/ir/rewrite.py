"""Rewriting of both IRs: of expressions, nodes and symbols in statements, and of statement lists.

One function, `rebuild_statement`, knows the fields of every statement; the other rewritings are
built on it and on `expressions.rebuild`. Unchanged values are returned as the same objects, so that
"did anything change?" is a comparison of identities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar, assert_never, cast

from ...base.dataclass import dataclass
from . import assignments, expressions, indexing, loops
from .assignments import Access, Assign, Break, Continue, DerivativeRule, Pair
from .expressions import Domain, Dynamic, Expr, Index, Read, Reduce
from .indexing import Affine, Range, Symbol
from .instructions import AwaitProducts, CopyVector, Instruction, MatMul, StoreVector
from .loops import AnyStatement, Kernel, Program, Stmt
from .node import Node
from .walk import BODIES, Body, binds, bodies, direct_reads, direct_writes, statements

S = TypeVar("S", bound=AnyStatement)
T = TypeVar("T")


def with_bodies(statement: S, new: tuple[Body, ...]) -> S:
    """Return the statement with the lists that `bodies` gives replaced; itself for the same
    lists."""
    return (
        statement
        if all(map(is_same_list, new, bodies(statement)))
        else _replace_bodies(statement, new)
    )


def map_bodies(statement: S, change: Callable[[tuple[S, ...]], Sequence[S]]) -> S:
    """Return the statement with each nested list changed; itself where nothing changes."""
    if type(statement) not in BODIES:
        return statement
    old = bodies(statement)
    new = [change(body) for body in old]
    return (
        statement
        if all(map(is_same_list, new, old))
        else _replace_bodies(statement, tuple(map(tuple, new)))
    )


def is_same_list(new: Sequence[object], old: Sequence[object]) -> bool:
    """Whether two lists hold the same objects."""
    return len(new) == len(old) and all(map(is_, new, old))


def _replace_bodies(statement: S, new: tuple[Body, ...]) -> S:
    changed: dict[str, Any] = dict(zip(BODIES[type(statement)], new, strict=True))
    if isinstance(statement, loops.For):  # frequent, and `replace` is slow
        s, (body,) = statement, changed.values()
        result = loops.For(s.symbol, s.lo, s.hi, s.step, body, s.kind, s.span, s.counts)
        return cast(S, result)
    return replace(statement, **changed)


def map_statements(body: tuple[S, ...], change: Callable[[S], Iterable[S]]) -> tuple[S, ...]:
    """Return the body with each statement replaced by the result of `change`, nested ones first."""
    out: list[S] = []
    for statement in body:
        out += change(map_bodies(statement, lambda inner: map_statements(inner, change)))
    return tuple(out)


def _identity(x: T) -> T:
    return x


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A function for each kind of part; the identity where it is not given.

    `expr` receives outermost expressions and recurses by itself (`expressions.rebuild`); `symbol`
    receives only symbols where they are bound.
    """

    expr: Callable[[Expr], Expr] = _identity
    index: Callable[[Affine], Affine] = _identity
    node: Callable[[Node], Node] = _identity
    symbol: Callable[[Symbol], Symbol] = _identity


def rebuild_statement(statement: S, by: Rewrite) -> S:
    """Return one statement with its own parts rewritten; nested statements stay as they are.

    The most frequent kinds are returned themselves where nothing changes.
    """
    new: AnyStatement = statement
    match new:
        case loops.Comment() | loops.Barrier() | loops.LastBlock() | Break() | Continue():
            pass
        case loops.Store(access, value, span):
            new_access, value = _access(access, by), by.expr(value)
            if new_access is not access or value is not new.value:
                new = loops.Store(new_access, value, span)
        case loops.Update(access, op, value, pair, span, terms, atomic):
            new_access, value, new_pair = _access(access, by), by.expr(value), _pair(pair, by)
            at = tuple([by.index(term) for term in terms])
            stays = new_access is access and value is new.value and new_pair is pair
            if not stays or not all(map(is_, at, terms)):
                new = loops.Update(new_access, op, value, new_pair, span, at, atomic)
        case loops.For(symbol, lo, hi, step, body, kind, span, counts):
            symbol, lo, hi = by.symbol(symbol), by.index(lo), by.index(hi)
            if symbol is not new.symbol or lo is not new.lo or hi is not new.hi:
                new = loops.For(symbol, lo, hi, step, body, kind, span, counts)
        case Assign():
            new = replace(
                new, target=_access(new.target, by), value=by.expr(new.value),
                free=_domain(new.free, by), reduced=_domain(new.reduced, by),
                pair=_pair(new.pair, by),
                names=tuple((by.node(node), name) for node, name in new.names),
            )  # fmt: skip
        case CopyVector() | StoreVector() | MatMul() | AwaitProducts():
            new = _rebuild_instruction(new, by)
        case loops.Fill():
            new = replace(new, node=by.node(new.node), value=by.expr(new.value))
        case assignments.Let():
            new = replace(new, symbol=by.symbol(new.symbol), value=by.expr(new.value))
        case assignments.For():
            lo, hi = by.index(new.lo), by.index(new.hi)
            new = replace(new, symbol=by.symbol(new.symbol), lo=lo, hi=hi)
        case assignments.While() | loops.While() | assignments.Branch() | loops.If():
            test = by.expr(new.test)
            new = new if test is new.test else replace(new, test=test)
        case assignments.Alloc():
            new = replace(new, node=by.node(new.node))
        case assignments.Permute():
            nodes, sources = map(by.node, new.nodes), map(by.node, new.sources)
            new = replace(new, nodes=tuple(nodes), sources=tuple(sources))
        case assignments.Check():
            values, over = tuple(map(by.expr, new.values)), _domain(new.over, by)
            new = replace(new, test=by.expr(new.test), values=values, over=over)
        case loops.Check():
            new = replace(new, test=by.expr(new.test), values=tuple(map(by.expr, new.values)))
        case assignments.Print():
            items = (p if isinstance(p, str) else by.expr(p) for p in new.fragments)
            new = replace(new, fragments=tuple(items))
        case assignments.Block(rule=rule):
            new = new if rule is None else replace(new, rule=_rule(rule, by))
        case _:
            assert_never(new)
    return cast(S, new)


def _rule(rule: DerivativeRule, by: Rewrite) -> DerivativeRule:
    inputs, outputs = tuple(map(by.node, rule.inputs)), tuple(map(by.node, rule.outputs))
    return replace(rule, inputs=inputs, outputs=outputs)


def _rebuild_instruction(statement: Instruction, by: Rewrite) -> Instruction:
    match statement:
        case CopyVector(target):
            source = by.expr(statement.source)
            assert isinstance(source, Read), "a vector is copied from memory"
            return replace(statement, target=_access(target, by), source=source)
        case StoreVector(access, _, values):
            values = tuple(map(by.expr, values))
            return replace(statement, access=_access(access, by), values=values)
        case MatMul(accumulator, first, second, over):
            rows, columns, terms = _domain(Domain(over), by).ranges
            return replace(
                statement, accumulator=_access(accumulator, by), first=by.expr(first),
                second=by.expr(second), over=(rows, columns, terms),
            )  # fmt: skip
        case AwaitProducts(node):
            return AwaitProducts(by.node(node))


def rewrite(body: tuple[S, ...], by: Rewrite) -> tuple[S, ...]:
    """Return the body with the parts of every statement rewritten, nested ones included."""
    return map_statements(body, lambda statement: (rebuild_statement(statement, by),))


def map_kernels(
    program: Program, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
) -> Program:
    """Return the program with the body of each kernel changed; itself where nothing changes."""
    changed = False
    kernels: list[Kernel] = []
    for kernel in program.kernels:
        body = change(kernel.body)
        stays = is_same_list(body, kernel.body)
        kernels.append(kernel if stays else replace(kernel, body=body))
        changed = changed or not stays
    return replace(program, kernels=tuple(kernels)) if changed else program


def substitute_expr(expr: Expr, values: Mapping[Symbol, Affine]) -> Expr:
    """Return the expression with free symbols replaced by index expressions."""
    return expressions.rebuild(
        expr,
        lambda child: substitute_expr(child, values),
        lambda index: indexing.substitute(index, values),
    )


def substitute(body: tuple[S, ...], values: Mapping[Symbol, Affine]) -> tuple[S, ...]:
    """Return the body with free symbols replaced; shapes of nodes stay as they are.

    Statements inside that bind a symbol of the new values get another one for it.
    """
    new = {symbol for value in values.values() if value.terms for symbol in value.symbols()}
    if new:
        captured = new & {symbol for stmt in statements(body) for symbol in binds(stmt)}
        body = rename(body, _unlike(captured, new), {}) if captured else body
    return rewrite(
        body,
        Rewrite(
            lambda expr: substitute_expr(expr, values),
            lambda index: indexing.substitute(index, values),
        ),
    )


def _unlike(symbols: Iterable[Symbol], others: Collection[Symbol]) -> dict[Symbol, Symbol]:
    """Return other symbols for some, which are not among `others` either."""
    names = {}
    for symbol in symbols:
        other = symbol
        while other in others:
            other = Symbol(f"{other.name}_", symbol.serial)
        names[symbol] = other
    return names


def rename(
    body: tuple[S, ...], symbols: Mapping[Symbol, Symbol], nodes: Mapping[int, Node]
) -> tuple[S, ...]:
    """Return the body with symbols (where bound and where used) and nodes (by id) replaced."""
    by = _renaming(symbols, nodes)
    if symbols:
        return rewrite(body, by)

    def change(statement: S) -> tuple[S]:
        touched = any(n.id in nodes for n in (*direct_reads(statement), *direct_writes(statement)))
        return (rebuild_statement(statement, by) if touched else statement,)

    return map_statements(body, change)


def _renaming(symbols: Mapping[Symbol, Symbol], nodes: Mapping[int, Node]) -> Rewrite:
    values = {old: indexing.var(new) for old, new in symbols.items()}

    def on_index(index: Affine) -> Affine:
        return indexing.substitute(index, values)

    def on_expr(expr: Expr) -> Expr:
        new = expressions.rebuild(expr, on_expr, on_index)
        if isinstance(new, Read):
            node = on_node(new.node)
            return new if node is new.node else Read(node, new.index, new.span)
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
    if not isinstance(index, Dynamic):
        return by.index(index)
    value = by.expr(index.value)
    return index if value is index.value else Dynamic(value)


def _access(access: Access, by: Rewrite) -> Access:
    node, index = by.node(access.node), tuple([_index(i, by) for i in access.index])
    if node is access.node and all(map(is_, index, access.index)):
        return access
    return Access(node, index)


def _pair(pair: Pair | None, by: Rewrite) -> Pair | None:
    return None if pair is None else Pair(_access(pair.access, by), by.index(pair.position))


def _domain(domain: Domain, by: Rewrite) -> Domain:
    ranges = (Range(by.symbol(r.symbol), by.index(r.lo), by.index(r.hi)) for r in domain.ranges)
    return Domain(tuple(ranges), None if domain.where is None else by.expr(domain.where))
