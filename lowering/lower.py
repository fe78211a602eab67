"""From assignments to loops: one nest per statement, and snapshot semantics made explicit.

An `Assign` reads the state before the statement. Loops run on the current state, so a statement
that reads what it writes becomes one of these, the first that is right:

* in place, where each read of the target is of the very cell being written, before it changes, or
  of cells that the statement never writes;
* through a scalar: the cell is computed in a register and stored at the end of its point;
* through an array over the domain: all values are computed before the first is stored;
* from a copy: the target is copied first and its old cells are read there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import assert_never

from ..base.dataclass import dataclass
from ..base.diagnostic import Span
from ..base.garbage_collector import paused
from .analysis import self_dependence
from .device_branches import for_few
from .ir import assignments as ir1
from .ir import dtypes, loops
from .ir.assignments import Access, Assign, Pair, Procedure
from .ir.expressions import (
    Const,
    Domain,
    Dynamic,
    Expr,
    Read,
    conjuncts,
    rebuild,
    walk,
)
from .ir.indexing import Affine, Range, Symbol, const, substitute, var
from .ir.loops import Program, Stmt
from .ir.node import Node
from .ir.ops import neutral_of
from .passes.equal_sizes import unified


@paused()
def lower(procedure: Procedure) -> Program:
    """Return the procedure as loops, in one kernel; temporaries are added to its locals.

    What it does for devices of many threads only is left out.
    """
    procedure = for_few(procedure)
    fresh = _Fresh(*_highest(procedure))
    body = _statements(procedure.body, fresh)
    temporaries = procedure.locals + tuple(fresh.nodes)
    body = unified(body, procedure.parameters, temporaries)
    return Program(
        procedure.name,
        procedure.parameters,
        temporaries,
        procedure.results,
        (loops.Kernel(procedure.name, body),),
        procedure.span,
    )


@dataclass(slots=True)
class _Fresh:
    """Makes nodes and symbols that nothing else has, and keeps the nodes that it made."""

    node: int
    serial: int
    nodes: list[Node] = field(default_factory=list)
    positive: set[Symbol] = field(default_factory=set)
    """Variables of loops that count from 1 or more."""
    around: list[Range] = field(default_factory=list)
    """What the variables of the loops around a statement run through."""

    def array(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        self.node += 1
        made = Node(self.node, label, shape, dtype)
        self.nodes.append(made)
        return made

    def symbol(self, name: str) -> Symbol:
        self.serial += 1
        return Symbol(name, self.serial)


def _statements(body: tuple[ir1.Statement, ...], fresh: _Fresh) -> tuple[Stmt, ...]:
    return tuple(stmt for statement in body for stmt in _statement(statement, fresh))


def _statement(stmt: ir1.Statement, fresh: _Fresh) -> tuple[Stmt, ...]:
    match stmt:
        case Assign():
            return (*_comment(stmt.span.text), *_assign(stmt, fresh))
        case ir1.For(symbol, lo, hi, step, body, span, counts):
            if step > 0 and (lo.constant or 0) > 0:
                fresh.positive.add(symbol)
            ends = (lo, hi) if step > 0 else (hi + 1, lo + 1)
            fresh.around.append(Range(symbol, *ends))
            inside = _statements(body, fresh)
            fresh.around.pop()
            return (loops.For(symbol, lo, hi, step, inside, "serial", span, counts),)
        case ir1.While(prelude, test, body, span):
            inner = _statements(prelude, fresh), test, _statements(body, fresh)
            return (loops.While(*inner, span),)
        case ir1.Branch(test, then, other, span):
            sides = _statements(then, fresh), _statements(other, fresh)
            return (loops.If(test, *sides, span),)
        case ir1.Block(text, body):
            end = _comment(f"end {text}" if text else "")
            return (*_comment(text), *_statements(body, fresh), *end)
        case ir1.Check(test, fault, values, over, span):
            return nest(over, (loops.Check(test, fault, values, span),), span)
        case ir1.Let() | ir1.Alloc() | ir1.Permute() | ir1.Print() | ir1.Break() | ir1.Continue():
            return (stmt,)
        case _:
            assert_never(stmt)


def _comment(text: str) -> tuple[Stmt, ...]:
    return (loops.Comment(text),) if text else ()


def nest(domain: Domain, body: tuple[Stmt, ...], span: Span) -> tuple[Stmt, ...]:
    """Return the loops of a domain around a body.

    Each part of the predicate is tested as far out as its symbols and the parts before it allow;
    one that reads arrays not outside of a loop that may run no round, since where there is no
    point its reads may be out of range.
    """
    symbols = domain.symbols
    tests: list[tuple[int, Expr]] = []
    depth = 0
    unsure = max((at for at, r in enumerate(domain.ranges, 1) if not _runs(r)), default=0)
    for part in conjuncts(domain.where):
        used = self_dependence.symbols_of(part)
        reads = any(isinstance(piece, Read) for piece in walk(part))
        depth = max([depth, *(at for at, symbol in enumerate(symbols, 1) if symbol in used)])
        depth = max(depth, unsure) if reads else depth
        tests.append((depth, part))
    for level in range(len(symbols), -1, -1):
        for at, test in reversed(tests):
            if at == level:
                body = (loops.If(test, body, (), span),)
        if level:
            r = domain.ranges[level - 1]
            body = (loops.For(r.symbol, r.lo, r.hi, 1, body, "serial", span),)
    return body


def _runs(r: Range) -> bool:
    """Whether a range surely has a point."""
    rounds = (r.hi - r.lo).constant
    return rounds is not None and rounds > 0


def _assign(stmt: Assign, fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return the nest of an assignment, by the first way that keeps its meaning."""
    written = (stmt.target,) if stmt.pair is None else (stmt.target, stmt.pair.access)
    clashes = [self_dependence.of(stmt, access, fresh.positive, fresh.around) for access in written]
    if not any(clashes):
        return _nest_of(stmt)
    if len(written) == 1 and clashes[0] <= {"value at the cell"}:
        return _through_scalar(stmt, fresh)
    free = set(stmt.free.symbols)
    rectangular = not any(free & (r.hi - r.lo).symbols() for r in stmt.free.ranges)
    known = all(kind.startswith("value") for found in clashes for kind in found)
    fixed = not self_dependence.uses(stmt.target, stmt.reduced)
    replaces = stmt.op is None or stmt.initialize
    own = replaces or self_dependence.is_injective(stmt.target.index, stmt.free.ranges)
    if own and fixed and len(written) == 1 and known and rectangular:
        return _through_array(stmt, fresh)
    clashing = [access.node for access, found in zip(written, clashes, strict=True) if found]
    return _from_copy(stmt, clashing, fresh)


def _nest_of(stmt: Assign) -> tuple[Stmt, ...]:
    """Return the plain nest: initialise each cell, then store or update it."""
    access, op, span = stmt.target, stmt.op, stmt.span
    step: Stmt
    if op is None:
        step = loops.Store(access, stmt.value, span)
    else:
        step = loops.Update(access, op, stmt.value, stmt.pair, span, _over(stmt))
    inner = nest(stmt.reduced, (step,), span)
    return nest(stmt.free, (*_start(stmt), *inner), span)


def _over(stmt: Assign) -> tuple[Affine, ...]:
    """Return where a term stands in each reduced range; nothing where terms go to several cells."""
    if self_dependence.uses(stmt.target, stmt.reduced):
        return ()
    return tuple(var(r.symbol) - r.lo for r in stmt.reduced.ranges)


def _start(stmt: Assign) -> tuple[Stmt, ...]:
    if not stmt.initialize or stmt.op is None:
        return ()
    if stmt.pair is not None:
        nothing = Const(-1, stmt.pair.access.node.dtype)
        return (loops.Store(stmt.pair.access, nothing, stmt.span),)
    dtype = stmt.target.node.dtype
    neutral = Const(neutral_of(stmt.op, dtype.kind, dtype.bits), dtype)
    return (loops.Store(stmt.target, neutral, stmt.span),)


def _through_scalar(stmt: Assign, fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return the nest that computes each cell in a register: its old value stays until the end."""
    node, span = stmt.target.node, stmt.span
    cell = Access(fresh.array(f"{node.label}_new", (), node.dtype), ())
    last = loops.Store(stmt.target, Read(cell.node, ()), span)
    return nest(stmt.free, (*_beside(stmt, cell), last), span)


def _beside(stmt: Assign, cell: Access) -> tuple[Stmt, ...]:
    """Return what computes in another cell what a point of the statement makes of its own."""
    inside = _nest_of(replace(stmt, target=cell, free=Domain()))
    if stmt.initialize or stmt.op is None:
        return inside
    old = Read(stmt.target.node, stmt.target.index)
    return (loops.Store(cell, old, stmt.span), *inside)


def _through_array(stmt: Assign, fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return two nests: all values into an array over the domain, then from there to the target."""
    ranges, span = stmt.free.ranges, stmt.span
    sizes = (r.hi - r.lo for r in ranges)
    shape = tuple(const(0) if (n.constant or 0) < 0 else n for n in sizes)  # the ends may cross
    new = fresh.array(f"{stmt.target.node.label}_new", shape, stmt.target.node.dtype)
    cell = Access(new, tuple(var(r.symbol) - r.lo for r in ranges))
    first = nest(stmt.free, _beside(stmt, cell), span)
    copy = renamed(replace(_copy(stmt.target, cell), free=stmt.free, span=span), fresh)
    return (*_storage(new), *first, *_nest_of(copy))


def _from_copy(stmt: Assign, nodes: list[Node], fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return the nest that reads old cells from copies of the nodes, after the nests that copy."""
    out: list[Stmt] = []
    for node in nodes:
        old = fresh.array(f"{node.label}_old", node.shape, node.dtype)
        names = (fresh.symbol("ijklmn"[axis % 6]) for axis in range(node.rank))
        ranges = tuple(Range(name, const(0), n) for name, n in zip(names, node.shape, strict=True))
        index = tuple(var(r.symbol) for r in ranges)
        copy = replace(_copy(Access(old, index), Access(node, index)), free=Domain(ranges))
        out += (*_storage(old), *_nest_of(replace(copy, span=stmt.span)))
        stmt = _redirected(stmt, node, old)
    return (*out, *_nest_of(stmt))


def _copy(target: Access, source: Access) -> Assign:
    return Assign(target, None, False, Read(source.node, source.index), Domain())


def _storage(node: Node) -> tuple[Stmt, ...]:
    return (ir1.Alloc(node),) if node.static_shape is None else ()


def _redirected(stmt: Assign, node: Node, old: Node) -> Assign:
    """Return the statement with every read of the node made from another; its writes stay."""

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        return replace(value, node=old) if isinstance(value, Read) and value.node == node else value

    return _mapped(stmt, expr, lambda index: index)


def renamed(stmt: Assign, fresh: _Fresh) -> Assign:
    """Return the statement with new symbols for its domains: no symbol is bound in two nests."""
    ranges = stmt.free.ranges + stmt.reduced.ranges
    names = {r.symbol: fresh.symbol(r.symbol.name) for r in ranges}
    values = {symbol: var(name) for symbol, name in names.items()}

    def index(at: Affine) -> Affine:
        return substitute(at, values)

    def expr(value: Expr) -> Expr:
        return rebuild(value, expr, index)

    def domain(found: Domain) -> Domain:
        return Domain(tuple(replace(r, symbol=names[r.symbol]) for r in found.ranges), found.where)

    mapped = _mapped(stmt, expr, index)
    return replace(mapped, free=domain(mapped.free), reduced=domain(mapped.reduced))


def _mapped(stmt: Assign, expr: self_dependence.OnExpr, index: self_dependence.OnIndex) -> Assign:
    """Return the statement with its expressions and index expressions replaced."""

    def access(place: Access) -> Access:
        return Access(place.node, tuple(
            Dynamic(expr(at.value)) if isinstance(at, Dynamic) else index(at) for at in place.index
        ))  # fmt: skip

    def domain(found: Domain) -> Domain:
        ranges = tuple(Range(r.symbol, index(r.lo), index(r.hi)) for r in found.ranges)
        return Domain(ranges, None if found.where is None else expr(found.where))

    pair = stmt.pair
    return replace(
        stmt,
        target=access(stmt.target),
        value=expr(stmt.value),
        free=domain(stmt.free),
        reduced=domain(stmt.reduced),
        pair=None if pair is None else Pair(access(pair.access), index(pair.position)),
    )


def _highest(procedure: Procedure) -> tuple[int, int]:
    """Return the highest node id and the highest symbol serial of a procedure."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    extents = (symbol for node in nodes for extent in node.shape for symbol in extent.symbols())
    symbols = (*extents, *_bound(procedure.body))
    return max((n.id for n in nodes), default=-1), max((s.serial for s in symbols), default=-1)


def _bound(body: tuple[ir1.Statement, ...]) -> Iterator[Symbol]:
    for stmt in body:
        match stmt:
            case Assign(free=free, reduced=reduced):
                yield from free.symbols + reduced.symbols
            case ir1.For(symbol=symbol, body=inner):
                yield symbol
                yield from _bound(inner)
            case ir1.While(prelude, _, inner):
                yield from _bound(prelude + inner)
            case ir1.Branch(_, then, other):
                yield from _bound(then + other)
            case ir1.Block(_, inner):
                yield from _bound(inner)
            case ir1.Let(symbol=symbol):
                yield symbol
            case ir1.Check(over=over):
                yield from over.symbols
            case _:
                pass
