"""Traversal of both IRs: nested statements; nodes read and written; symbols bound and used.

`parts` knows the fields of every statement; all else is built on it. `rewrite` changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, assert_never

from . import assignments, expressions, loops
from .assignments import Access, Assign, Permute
from .expressions import Cast, Const, Domain, Dynamic, Expr, Index, Position, Read, Reduce, Select
from .indexing import Affine, Symbol
from .instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from .loops import AnyStatement, Program
from .memo import memoize
from .node import Node

S = TypeVar("S", bound=AnyStatement)
Body = tuple[AnyStatement, ...]


BODIES: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((assignments.For, loops.For, assignments.Block, loops.LastBlock), ("body",)),
    **dict.fromkeys((assignments.While, loops.While), ("prelude", "body")),
    **dict.fromkeys((assignments.Branch, loops.If), ("then", "orelse")),
}
"""The fields that hold statements, by kind of statement; the other kinds hold none."""
_BODIES: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    kind: attrgetter(*names) if len(names) > 1 else lambda statement: (statement.body,)
    for kind, names in BODIES.items()
}


def bodies(statement: S) -> tuple[tuple[S, ...], ...]:
    """Return the statement lists directly nested in a statement, of its IR, in execution order."""
    get = _BODIES.get(type(statement))
    return () if get is None else get(statement)


def statements(body: Iterable[S]) -> list[S]:
    """Return every statement, nested ones included, parents first, in program order."""
    result: list[S] = []
    for statement in body:
        result.append(statement)
        if type(statement) in BODIES:
            result += inside(statement)
    return result


def parallel_loops(body: Iterable[S]) -> tuple[loops.For, ...]:
    """Return the parallel loops of a body, nested ones included, outer ones first."""
    return tuple(s for s in statements(body) if isinstance(s, loops.For) and s.kind == "parallel")


def inside(statement: S) -> tuple[S, ...]:
    """Return every statement nested in one, at any depth, parents first, in program order;
    memoized."""
    try:
        memo: tuple[S, ...] = statement.inside
    except AttributeError:
        inner = [nested for body in bodies(statement) for nested in statements(body)]
        memo = memoize(statement, "inside", tuple(inner))
    return memo


class Parts(NamedTuple):
    """The fields of a statement itself, without nested statements."""

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
        case assignments.Print(items):
            return Parts(values=tuple(p for p in items if not isinstance(p, str)))
        case assignments.Block() | assignments.Permute():
            return Parts()
        case assignments.Break() | assignments.Continue():
            return Parts()
        case CopyVector(target, source):
            return Parts((target,), (source,))
        case StoreVector(access, _, values):
            return Parts((access,), values)
        case MatMul(accumulator, first, second, over):
            return Parts((accumulator,), (first, second), (), (Domain(over),))
        case loops.Barrier() | loops.LastBlock() | AwaitProducts():
            return Parts()
        case _:
            assert_never(statement)


class DirectEffects(NamedTuple):
    """What a statement itself evaluates, reads and writes, without nested statements."""

    expressions: tuple[Expr, ...] = ()
    """The outermost ones: predicates, subscripts, values."""
    all_reads: tuple[Read, ...] = ()
    """Every read in them."""
    reads: tuple[Node, ...] = ()
    """The nodes of these, and targets whose old value is used."""
    writes: tuple[Node, ...] = ()
    """Written, allocated or permuted."""
    has_select: bool = False
    """Whether some reads are conditional: whether the expressions have a select."""


def direct_effects(statement: AnyStatement) -> DirectEffects:
    """Return what a statement itself evaluates, reads and writes; memoized."""
    try:
        memo: DirectEffects = statement.direct_effects
    except AttributeError:
        memo = memoize(statement, "direct_effects", _direct_effects(statement))
    return memo


def _direct_effects(statement: AnyStatement) -> DirectEffects:
    if isinstance(statement, assignments.For | loops.For | loops.Comment):
        return _NOTHING
    expressions_ = _expressions_of(statement)
    subexpressions = [part for expr in expressions_ for part in expressions.walk(expr)]
    read_exprs = tuple([part for part in subexpressions if isinstance(part, Read)])
    nodes = tuple([read.node for read in read_exprs])
    has_select = Select in map(type, subexpressions)
    written: tuple[Node, ...] = ()
    match statement:
        case loops.Store(access) | CopyVector(access) | StoreVector(access):
            written = (access.node,)
        case loops.Update() | MatMul() | Assign():
            written = tuple([access.node for access in parts(statement).targets])
            uses_old_value = not isinstance(statement, Assign) or _uses_target(statement)
            nodes += written if uses_old_value else ()
        case loops.Fill(node) | assignments.Alloc(node):
            written = (node,)
        case assignments.Permute(written, sources):
            nodes += sources
        case AwaitProducts(node):
            nodes += (node,)
            written = (node,)
        case assignments.Block(rule=rule) if rule is not None:
            nodes = (*rule.inputs, *rule.outputs)  # its derivatives read them
        case _:
            pass
    return DirectEffects(expressions_, read_exprs, nodes, written, has_select)


_NOTHING = DirectEffects()


def _uses_target(statement: Assign) -> bool:
    return statement.op is not None and not statement.initialize


def _expressions_of(statement: AnyStatement) -> tuple[Expr, ...]:
    fields = parts(statement)
    if not fields.domains and all(isinstance(i, Affine) for a in fields.targets for i in a.index):
        return fields.values
    predicates = tuple(d.where for d in fields.domains if d.where is not None)
    subscripts = tuple(
        i.value for access in fields.targets for i in access.index if isinstance(i, Dynamic)
    )
    return predicates + subscripts + fields.values


def expressions_of(statement: AnyStatement) -> tuple[Expr, ...]:
    """Return the outermost expressions of one statement: predicates, subscripts, values."""
    return direct_effects(statement).expressions


def direct_reads(statement: AnyStatement) -> tuple[Node, ...]:
    """Return the nodes that a statement itself reads, without nested statements."""
    try:
        reads_: tuple[Node, ...] = statement.direct_effects.reads
    except AttributeError:
        reads_ = direct_effects(statement).reads
    return reads_


def direct_writes(statement: AnyStatement) -> tuple[Node, ...]:
    """Return the nodes that a statement itself writes, without nested statements."""
    try:
        writes_: tuple[Node, ...] = statement.direct_effects.writes
    except AttributeError:
        writes_ = direct_effects(statement).writes
    return writes_


def reads(body: Iterable[AnyStatement]) -> tuple[Node, ...]:
    """Return the nodes that are read, in order of first use; targets whose old value is used are
    read."""
    return tuple(dict.fromkeys([node for s in statements(body) for node in direct_reads(s)]))


def writes(body: Iterable[AnyStatement]) -> tuple[Node, ...]:
    """Return the nodes that are written, allocated or permuted, in order of first use."""
    return tuple(dict.fromkeys([node for s in statements(body) for node in direct_writes(s)]))


def binds(statement: AnyStatement) -> tuple[Symbol, ...]:
    """Return the symbols that the statement itself binds, those of its reductions included."""
    bound: tuple[Symbol, ...] = ()
    match statement:
        case loops.For():
            return (statement.symbol,)
        case loops.Store() | loops.Update() | loops.Comment() | loops.If() | loops.Check():
            return ()  # no `Reduce` in IR 2
        case assignments.For() | assignments.Let():
            bound = (statement.symbol,)
        case _:
            bound = tuple(x for domain in parts(statement).domains for x in domain.symbols)
    inner = (e for expr in expressions_of(statement) for e in expressions.walk(expr))
    return bound + tuple(x for e in inner if isinstance(e, Reduce) for x in e.domain.symbols)


def free_symbols(expr: Expr) -> frozenset[Symbol]:
    """Return the free symbols of an expression."""
    match expr:
        case Position(index):
            return index.symbols()
        case Reduce(_, domain, value, _, position):
            outer, bound = _domain_symbols(domain, frozenset())
            last = frozenset() if position is None else position.symbols()
            return outer | ((free_symbols(value) | last) - bound)
        case Read(_, index):
            return _subscript_symbols(index)
        case Const():
            return _NO_SYMBOLS
        case Cast(value):
            return free_symbols(value)
        case _:
            return _NO_SYMBOLS.union(*map(free_symbols, expressions.children(expr)))


def uses(statement: AnyStatement) -> frozenset[Symbol]:
    """Return the free symbols of a statement itself, without nested statements; memoized.

    The target of an `Assign` is one cell for all points of `reduced`, so their symbols do not count
    as bound there.
    """
    try:
        memo: frozenset[Symbol] = statement.uses
    except AttributeError:
        memo = memoize(statement, "uses", _uses(statement))
    return memo


def _uses(statement: AnyStatement) -> frozenset[Symbol]:
    fields = parts(statement)
    targets = _union([_subscript_symbols(access.index) for access in fields.targets])
    values = _NO_SYMBOLS.union(*map(free_symbols, fields.values))
    if fields.indices:
        values |= _union([i.symbols() for i in fields.indices])
    match statement:
        case Assign():
            outer, free = _domain_symbols(statement.free, frozenset())
            inner, both = _domain_symbols(statement.reduced, free)
            return outer | inner | (targets - free) | (values - both)
        case assignments.Check():
            outer, bound = _domain_symbols(statement.over, frozenset())
            return outer | (values - bound)
        case MatMul():
            outer, bound = _domain_symbols(Domain(statement.over), frozenset())
            return outer | ((targets | values) - bound)
        case _:
            return targets | values


def _domain_symbols(
    domain: Domain, bound: frozenset[Symbol]
) -> tuple[frozenset[Symbol], frozenset[Symbol]]:
    """The free symbols of a domain, and those bound after it."""
    used: frozenset[Symbol] = frozenset()
    for r in domain.ranges:
        used |= (r.lo.symbols() | r.hi.symbols()) - bound
        bound |= {r.symbol}
    if domain.where is not None:
        used |= free_symbols(domain.where) - bound
    return used, bound


def _subscript_symbols(index: tuple[Index, ...]) -> frozenset[Symbol]:
    if len(index) == 1 and isinstance(index[0], Affine):
        return index[0].symbols()
    return _NO_SYMBOLS.union(
        *[free_symbols(i.value) if isinstance(i, Dynamic) else i.symbols() for i in index]
    )


def _union(sets: Iterable[frozenset[Symbol]]) -> frozenset[Symbol]:
    return _NO_SYMBOLS.union(*sets)


_NO_SYMBOLS: frozenset[Symbol] = frozenset()


def permuted_nodes(program: Program) -> frozenset[int]:
    """Return the ids of the nodes that some `Permute` permutes."""
    return frozenset(
        node.id
        for kernel in program.kernels
        for stmt in statements(kernel.body)
        if isinstance(stmt, Permute)
        for node in (*stmt.nodes, *stmt.sources)
    )
