"""Lowering of assignments to loop nests, with snapshot semantics made explicit.

An `Assign` reads the state before the statement. Loops run on the current state, so a statement
that reads what it writes becomes one of these, the first that is legal:

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
from ..base.diagnostic import NOWHERE, Span
from ..base.garbage_collector import gc_paused
from .analysis import self_dependence
from .device_branches import select_cpu_branches
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
from .passes.equal_sizes import unify_extents


@gc_paused()
def lower(procedure: Procedure) -> Program:
    """Return the procedure as loops, in one kernel; temporaries are added to its locals.

    Code for devices of many threads only is dropped.
    """
    procedure = select_cpu_branches(procedure)
    fresh = _Fresh(*_highest_ids(procedure))
    body = _statements(procedure.body, fresh)
    temporaries = procedure.locals + tuple(fresh.nodes)
    body, temporaries = unify_extents(body, procedure.parameters, temporaries)
    return Program(
        procedure.name,
        procedure.parameters,
        temporaries,
        procedure.results,
        (loops.Kernel(procedure.name, body),),
        procedure.span,
        last_id=fresh.node,
    )


@dataclass(slots=True)
class _Fresh:
    """Source of fresh nodes and symbols; keeps the nodes that it created."""

    node: int
    serial: int
    nodes: list[Node] = field(default_factory=list)
    positive: set[Symbol] = field(default_factory=set)
    """Index variables of loops that start at 1 or more."""
    enclosing: list[Range] = field(default_factory=list)
    """The ranges of the loops around a statement."""

    def array(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        self.node += 1
        node = Node(self.node, label, shape, dtype)
        self.nodes.append(node)
        return node

    def symbol(self, name: str) -> Symbol:
        self.serial += 1
        return Symbol(name, self.serial)


def _statements(body: tuple[ir1.Statement, ...], fresh: _Fresh) -> tuple[Stmt, ...]:
    return tuple(stmt for statement in body for stmt in _statement(statement, fresh))


def _statement(stmt: ir1.Statement, fresh: _Fresh) -> tuple[Stmt, ...]:
    match stmt:
        case Assign():
            return (*_comment(stmt.span.text, stmt.span), *_assign(stmt, fresh))
        case ir1.For(symbol, lo, hi, step, body, span, counts):
            if step > 0 and (lo.constant or 0) > 0:
                fresh.positive.add(symbol)
            ends = (lo, hi) if step > 0 else (hi + 1, lo + 1)
            fresh.enclosing.append(Range(symbol, *ends))
            inside = _statements(body, fresh)
            fresh.enclosing.pop()
            return (loops.For(symbol, lo, hi, step, inside, "serial", span, counts),)
        case ir1.While(prelude, test, body, span):
            inner = _statements(prelude, fresh), test, _statements(body, fresh)
            return (loops.While(*inner, span),)
        case ir1.Branch(test, then, orelse, span):
            sides = _statements(then, fresh), _statements(orelse, fresh)
            return (loops.If(test, *sides, span),)
        case ir1.Block(text, body):
            end = _comment(f"end {text}" if text else "")
            return (*_comment(text), *_statements(body, fresh), *end)
        case ir1.Check(test, fault, values, over, span):
            return loop_nest(over, (loops.Check(test, fault, values, span),), span)
        case ir1.Let() | ir1.Alloc() | ir1.Permute() | ir1.Print() | ir1.Break() | ir1.Continue():
            return (stmt,)
        case _:
            assert_never(stmt)


def _comment(text: str, span: Span = NOWHERE) -> tuple[Stmt, ...]:
    return (loops.Comment(text, span),) if text else ()


def loop_nest(domain: Domain, body: tuple[Stmt, ...], span: Span) -> tuple[Stmt, ...]:
    """Return the loops of a domain around a body.

    Each conjunct of the predicate is tested in the outermost loop that its symbols and earlier
    conjuncts allow; one that reads arrays not outside of a loop that may have no iterations, since
    where there is no point its reads may be out of bounds.
    """
    symbols = domain.symbols
    tests: list[tuple[int, Expr]] = []
    depth = 0
    last_maybe_empty = max(
        (at for at, r in enumerate(domain.ranges, 1) if not _is_nonempty(r)), default=0
    )
    for part in conjuncts(domain.where):
        used = self_dependence.symbols_of(part)
        reads = any(isinstance(expr, Read) for expr in walk(part))
        depth = max([depth, *(at for at, symbol in enumerate(symbols, 1) if symbol in used)])
        depth = max(depth, last_maybe_empty) if reads else depth
        tests.append((depth, part))
    for level in range(len(symbols), -1, -1):
        for at, test in reversed(tests):
            if at == level:
                body = (loops.If(test, body, (), span),)
        if level:
            r = domain.ranges[level - 1]
            body = (loops.For(r.symbol, r.lo, r.hi, 1, body, "serial", span),)
    return body


def _is_nonempty(r: Range) -> bool:
    """Whether a range surely has a point."""
    trip_count = (r.hi - r.lo).constant
    return trip_count is not None and trip_count > 0


def _assign(stmt: Assign, fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return the nest of an assignment, by the first strategy that keeps its meaning."""
    written = (stmt.target,) if stmt.pair is None else (stmt.target, stmt.pair.access)
    clashes = [
        self_dependence.find_clashes(stmt, access, fresh.positive, fresh.enclosing)
        for access in written
    ]
    if not any(clashes):
        return _nest_of(stmt)
    if len(written) == 1 and clashes[0] <= {"value at the cell"}:
        return _through_scalar(stmt, fresh)
    free = set(stmt.free.symbols)
    rectangular = not any(free & (r.hi - r.lo).symbols() for r in stmt.free.ranges)
    only_values = all(kind.startswith("value") for kinds in clashes for kind in kinds)
    has_one_target = not self_dependence.depends_on(stmt.target, stmt.reduced)
    replaces = stmt.op is None or stmt.initialize
    is_cell_private = replaces or self_dependence.is_injective(stmt.target.index, stmt.free.ranges)
    if is_cell_private and has_one_target and len(written) == 1 and only_values and rectangular:
        return _through_array(stmt, fresh)
    clashing = [access.node for access, kinds in zip(written, clashes, strict=True) if kinds]
    return _from_copy(stmt, clashing, fresh)


def _nest_of(stmt: Assign) -> tuple[Stmt, ...]:
    """Return the plain nest: initialize each cell, then store or update it."""
    access, op, span = stmt.target, stmt.op, stmt.span
    step: Stmt
    if op is None:
        step = loops.Store(access, stmt.value, span)
    else:
        step = loops.Update(access, op, stmt.value, stmt.pair, span, _term_positions(stmt))
    inner = loop_nest(stmt.reduced, (step,), span)
    return loop_nest(stmt.free, (*_initialization(stmt), *inner), span)


def _term_positions(stmt: Assign) -> tuple[Affine, ...]:
    """Return the position of a term in each reduced range; nothing where terms go to several
    cells."""
    if self_dependence.depends_on(stmt.target, stmt.reduced):
        return ()
    return tuple(var(r.symbol) - r.lo for r in stmt.reduced.ranges)


def _initialization(stmt: Assign) -> tuple[Stmt, ...]:
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
    return loop_nest(stmt.free, (*_retargeted_nest(stmt, cell), last), span)


def _retargeted_nest(stmt: Assign, cell: Access) -> tuple[Stmt, ...]:
    """Return the computation of a point of the statement, with another cell as its target."""
    inside = _nest_of(replace(stmt, target=cell, free=Domain()))
    if stmt.initialize or stmt.op is None:
        return inside
    old = Read(stmt.target.node, stmt.target.index)
    return (loops.Store(cell, old, stmt.span), *inside)


def _through_array(stmt: Assign, fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return two nests: all values into an array over the domain, then from there to the target."""
    ranges, span = stmt.free.ranges, stmt.span
    sizes = (r.hi - r.lo for r in ranges)
    shape = tuple(const(0) if (n.constant or 0) < 0 else n for n in sizes)  # a range may be empty
    new = fresh.array(f"{stmt.target.node.label}_new", shape, stmt.target.node.dtype)
    cell = Access(new, tuple(var(r.symbol) - r.lo for r in ranges))
    first = loop_nest(stmt.free, _retargeted_nest(stmt, cell), span)
    copy = with_fresh_symbols(replace(_copy(stmt.target, cell), free=stmt.free, span=span), fresh)
    return (*_allocation(new), *first, *_nest_of(copy))


def _from_copy(stmt: Assign, nodes: list[Node], fresh: _Fresh) -> tuple[Stmt, ...]:
    """Return the nest that reads old cells from copies of the nodes, after the nests that copy."""
    out: list[Stmt] = []
    for node in nodes:
        old = fresh.array(f"{node.label}_old", node.shape, node.dtype)
        names = (fresh.symbol("ijklmn"[axis % 6]) for axis in range(node.rank))
        ranges = tuple(Range(name, const(0), n) for name, n in zip(names, node.shape, strict=True))
        index = tuple(var(r.symbol) for r in ranges)
        copy = replace(_copy(Access(old, index), Access(node, index)), free=Domain(ranges))
        out += (*_allocation(old), *_nest_of(replace(copy, span=stmt.span)))
        stmt = _redirect_reads(stmt, node, old)
    return (*out, *_nest_of(stmt))


def _copy(target: Access, source: Access) -> Assign:
    return Assign(target, None, False, Read(source.node, source.index), Domain())


def _allocation(node: Node) -> tuple[Stmt, ...]:
    return (ir1.Alloc(node),) if node.static_shape is None else ()


def _redirect_reads(stmt: Assign, node: Node, old: Node) -> Assign:
    """Return the statement with reads of the node redirected to another; writes are unchanged."""

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        return replace(value, node=old) if isinstance(value, Read) and value.node == node else value

    return _map_parts(stmt, expr, lambda index: index)


def with_fresh_symbols(stmt: Assign, fresh: _Fresh) -> Assign:
    """Return the statement with fresh symbols for its domains: no symbol is bound in two nests."""
    ranges = stmt.free.ranges + stmt.reduced.ranges
    names = {r.symbol: fresh.symbol(r.symbol.name) for r in ranges}
    values = {symbol: var(name) for symbol, name in names.items()}

    def index(at: Affine) -> Affine:
        return substitute(at, values)

    def expr(value: Expr) -> Expr:
        return rebuild(value, expr, index)

    def domain(original: Domain) -> Domain:
        return Domain(
            tuple(replace(r, symbol=names[r.symbol]) for r in original.ranges), original.where
        )

    mapped = _map_parts(stmt, expr, index)
    return replace(mapped, free=domain(mapped.free), reduced=domain(mapped.reduced))


def _map_parts(
    stmt: Assign, expr: self_dependence.OnExpr, index: self_dependence.OnIndex
) -> Assign:
    """Return the statement with its expressions and index expressions replaced."""

    def access(old: Access) -> Access:
        return Access(old.node, tuple(
            Dynamic(expr(at.value)) if isinstance(at, Dynamic) else index(at) for at in old.index
        ))  # fmt: skip

    def domain(original: Domain) -> Domain:
        ranges = tuple(Range(r.symbol, index(r.lo), index(r.hi)) for r in original.ranges)
        return Domain(ranges, None if original.where is None else expr(original.where))

    pair = stmt.pair
    return replace(
        stmt,
        target=access(stmt.target),
        value=expr(stmt.value),
        free=domain(stmt.free),
        reduced=domain(stmt.reduced),
        pair=None if pair is None else Pair(access(pair.access), index(pair.position)),
    )


def _highest_ids(procedure: Procedure) -> tuple[int, int]:
    """Return the highest node id and the highest symbol serial of a procedure."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    extents = (symbol for node in nodes for extent in node.shape for symbol in extent.symbols())
    symbols = (*extents, *_bound_symbols(procedure.body))
    return max((n.id for n in nodes), default=-1), max((s.serial for s in symbols), default=-1)


def _bound_symbols(body: tuple[ir1.Statement, ...]) -> Iterator[Symbol]:
    for stmt in body:
        match stmt:
            case Assign(free=free, reduced=reduced):
                yield from free.symbols + reduced.symbols
            case ir1.For(symbol=symbol, body=inner):
                yield symbol
                yield from _bound_symbols(inner)
            case ir1.While(prelude, _, inner):
                yield from _bound_symbols(prelude + inner)
            case ir1.Branch(_, then, orelse):
                yield from _bound_symbols(then + orelse)
            case ir1.Block(_, inner):
                yield from _bound_symbols(inner)
            case ir1.Let(symbol=symbol):
                yield symbol
            case ir1.Check(over=over):
                yield from over.symbols
            case _:
                pass
