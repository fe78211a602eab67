"""Numbers that are sorted as integers, by where they come from: as gathers, which have adjoints.

    r[i] = rank(x[i])                       v[i] = x[i];  o[i] = i;  r[i] = rank(x[i])
    r[k] = r[j]                             o[k] = o[j];  r[k] = r[j]
    y[i] = of_rank(r[i])                    y[i] = o[i] >= 0 ? v[o[i]] : of_rank(r[i])

A sort moves the ranks of numbers, integers of the same order, and maps them back. Beside each array
of ranks, one of positions is moved by the same statements: the origins, -1 for what is no rank of a
number that depends on the inputs. What is computed from ranks and mapped back is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from itertools import product

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Assign, Block, Branch, For, Permute, Statement, While
from ..ir.expressions import (
    Apply,
    Cast,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    rebuild,
    walk,
)
from ..ir.indexing import Affine, const, multiply, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_statements
from ..ir.walk import bodies, direct_reads, expressions_of, statements
from .activity import closure
from .derivative_rules import outside_rules
from .kept import Names
from .rules import NotDifferentiable

Body = tuple[Statement, ...]
_NONE = Const(-1, dtypes.int64)


def with_origins(body: Body, names: Names, inputs: Sequence[Node]) -> Body:
    """Return statements in which ranks that depend on the inputs are mapped back by gathers.

    Those for devices of many threads are left out. Raises NotDifferentiable.
    """
    return outside_rules(body, lambda outside: _with_origins(outside, names, inputs))


def _with_origins(body: Body, names: Names, inputs: Sequence[Node]) -> Body:
    body = map_statements(body, lambda s: s.orelse if isinstance(s, Branch) and s.many else (s,))
    if not any(_is_op(part, "of_rank") for stmt in statements(body) for part in _parts(stmt)):
        return body
    flows = [flow for stmt in statements(body) for flow in _flows(stmt)]
    varied = closure({n.id for n in inputs}, [(s.id, t.id) for s, t in flows])
    ranks = _Ranks(names, varied)
    ranks.find(body)
    new = map_statements(body, ranks.statement)
    _refuse_mixed_iterations(new, ranks)
    static = [node for node in ranks.origins.values() if node.static_shape is not None]
    return (*(ranks.nowhere(node) for node in static if not _is_set(new, {node.id}, set())), *new)


def _parts(stmt: Statement) -> Iterator[Expr]:
    return (part for expr in expressions_of(stmt) for part in walk(expr))


def _is_op(expr: Expr, name: str) -> bool:
    return isinstance(expr, Apply) and expr.op.name == name


def _flows(stmt: Statement) -> Iterator[tuple[Node, Node]]:
    """Yield from which arrays to which a statement carries values, those of bits included."""
    match stmt:
        case Assign(target, _, _, value):
            yield from ((node, target.node) for node in _values(value))
        case Permute(nodes, sources):
            yield from zip(sources, nodes, strict=True)
        case Block(rule=rule) if rule is not None:
            yield from product(rule.inputs, rule.outputs)
        case _:
            pass


def _values(expr: Expr) -> Iterator[Node]:
    """Yield the arrays of whose elements a value is computed; not of subscripts and tests."""
    match expr:
        case Read(node):
            yield node
        case Apply(op, args) if op.result != "bool":
            for arg in args:
                yield from _values(arg)
        case Cast(value):
            yield from _values(value)
        case Select(_, yes, no):
            yield from _values(yes)
            yield from _values(no)
        case _:
            pass


def _leaves(expr: Expr) -> Iterator[Expr]:
    """Yield the values of which an expression returns one as it is."""
    match expr:
        case Select(_, yes, no):
            yield from _leaves(yes)
            yield from _leaves(no)
        case Apply(op, args) if op.name in ("min", "max"):
            for arg in args:
                yield from _leaves(arg)
        case _:
            yield expr


def _is_rank(expr: Expr, varied: Collection[int]) -> bool:
    return _is_op(expr, "rank") and any(node.id in varied for node in _values(expr))


@dataclass(slots=True)
class _Ranks:
    """Rewrites statements so that origins are moved beside ranks."""

    names: Names
    varied: Collection[int]
    carriers: dict[int, Node] = field(default_factory=dict)
    """The numbers of whose ranks an array of integers consists, by the id of this."""
    made: dict[int, Node] = field(default_factory=dict)
    """The numbers of which a statement makes ranks, by its `id`."""
    origins: dict[int, Node] = field(default_factory=dict)
    """The arrays of origins, by the id of the array of ranks."""

    def find(self, body: Body) -> None:
        """Find the arrays of integers to which ranks are moved, and from which they are mapped."""
        mapped: set[int] = set()
        moves: list[tuple[int, int]] = []
        makers: list[Assign] = []
        for stmt in statements(body):
            if isinstance(stmt, Permute):
                moves += [(s.id, n.id) for n, s in zip(stmt.nodes, stmt.sources, strict=True)]
            if isinstance(stmt, Assign) and stmt.target.node.dtype.kind in "iu":
                leaves = list(_leaves(stmt.value))
                makers += [stmt for leaf in leaves if _is_rank(leaf, self.varied)]
                moves += [(e.node.id, stmt.target.node.id) for e in leaves if isinstance(e, Read)]
            for part in _parts(stmt):
                if isinstance(part, Apply) and part.op.name == "of_rank":
                    mapped |= {e.node.id for e in _leaves(part.args[0]) if isinstance(e, Read)}
        useful = closure(mapped, [(target, source) for source, target in moves])
        for stmt in makers:
            reached = closure({stmt.target.node.id}, moves) & useful
            if reached & self.carriers.keys():
                raise NotDifferentiable("a sort of numbers of several statements", stmt.span)
            if reached:
                numbers = self._numbers_of(stmt)
                self.made[id(stmt)] = numbers
                self.carriers |= dict.fromkeys(reached, numbers)

    def _numbers_of(self, stmt: Assign) -> Node:
        """Return a new array for the numbers of which a statement makes ranks."""
        ranges, bound = stmt.free.ranges, set(stmt.free.symbols)
        if any((r.lo.symbols() | r.hi.symbols()) & bound for r in ranges):
            raise NotDifferentiable("a sort over ranges that depend on others", stmt.span)
        dtype = next(e.args[0].dtype for e in _leaves(stmt.value) if isinstance(e, Apply))
        return self.names.array("numbers", tuple(r.hi - r.lo for r in ranges), dtype)

    def statement(self, stmt: Statement) -> Body:
        """Return a statement with those that move origins before it."""
        match stmt:
            case Alloc(node) if node.id in self.carriers:
                origin = self.origin(node)
                return (stmt, Alloc(origin), self.nowhere(origin))
            case Permute(nodes, sources) if any(n.id in self.carriers for n in nodes):
                if not all(n.id in self.carriers for n in nodes):
                    raise NotDifferentiable("a sort of arrays that change places", stmt.span)
                to, from_ = (tuple(map(self.origin, some)) for some in (nodes, sources))
                return (stmt, Permute(to, from_, stmt.span))
            case Assign(target) if target.node.id in self.carriers:
                return (*self._moved(stmt), stmt)
            case Assign():
                return (replace(stmt, value=self._mapped(stmt.value, stmt)),)
            case _:
                return (stmt,)  # tests are constants of a derivative

    def origin(self, node: Node) -> Node:
        """Return the array of the origins of ranks."""
        if node.id not in self.origins:
            made = self.names.array(f"{node.label}_from", node.shape, dtypes.int64)
            self.origins[node.id] = made
        return self.origins[node.id]

    def nowhere(self, origin: Node) -> Assign:
        """Return the statement by which origins are those of no number."""
        return self.names.filled(origin, _NONE)

    def _moved(self, stmt: Assign) -> Body:
        """Return the statements that move the origins of an assignment of ranks."""
        value = stmt.value
        if stmt.op is not None and stmt.op.name in ("min", "max") and not stmt.initialize:
            value = Apply(stmt.op, (Read(stmt.target.node, stmt.target.index), value), value.dtype)
        elif stmt.op is not None:
            raise NotDifferentiable("a sort of numbers that are computed with", stmt.span)
        if stmt.reduced.ranges or stmt.reduced.where is not None:
            raise NotDifferentiable("a sort of numbers that are reduced", stmt.span)
        before: list[Statement] = []
        origin = self._origin_of(value, stmt, before)
        target = Access(self.origin(stmt.target.node), stmt.target.index)
        return (*before, replace(stmt, target=target, op=None, value=origin))

    def _origin_of(self, expr: Expr, stmt: Assign, before: list[Statement]) -> Expr:
        """Return the origin of a rank."""
        match expr:
            case Read(node, index) if node.id in self.carriers:
                return Read(self.origin(node), index)
            case Select(test, yes, no):
                sides = (self._origin_of(side, stmt, before) for side in (yes, no))
                return Select(test, *sides)
            case Apply(op, (left, right)) if op.name in ("min", "max"):
                first, second = (self._origin_of(e, stmt, before) for e in (left, right))
                if op.name == "min":
                    return Select(_test("le", left, right), first, second)
                return Select(_test("ge", right, left), second, first)
            case Apply(op, (number,)) if _is_rank(expr, self.varied):
                return self._new(number, stmt, before)
            case _:
                self._require_constant(expr, stmt.span)
                return _NONE

    def _require_constant(self, expr: Expr, span: Span) -> None:
        if any(node.id in self.varied for node in _values(expr)):
            raise NotDifferentiable("a sort of numbers that are computed with", span)

    def _new(self, number: Expr, stmt: Assign, before: list[Statement]) -> Expr:
        """Return the origins of ranks that are made of numbers; `before` keeps these."""
        numbers = self.made[id(stmt)]
        index = tuple(var(r.symbol) - r.lo for r in stmt.free.ranges)
        if numbers.static_shape is None:
            before.append(Alloc(numbers))
        target = Access(numbers, index)
        before.append(Assign(target, None, False, number, stmt.free, span=stmt.span))
        flat = const(0)
        for at, extent in zip(index, numbers.shape, strict=True):
            flat = multiply(flat, extent) + at
        return Position(flat)

    def _mapped(self, expr: Expr, stmt: Assign) -> Expr:
        """Return an expression that takes numbers from where their ranks come from."""
        if not _is_op(expr, "of_rank"):
            return rebuild(expr, lambda part: self._mapped(part, stmt), lambda index: index)
        assert isinstance(expr, Apply), "it is an operation"
        return self._number(expr.args[0], stmt)

    def _number(self, rank: Expr, stmt: Assign) -> Expr:
        """Return the number of a rank."""
        back = Apply(OPS["of_rank"], (rank,), _float_of(rank))
        match rank:
            case Read(node, index) if node.id in self.carriers:
                origin = Read(self.origin(node), index)
                found = _test("ge", origin, Const(0, dtypes.int64))
                return Select(found, _element(self.carriers[node.id], origin), back)
            case Select(test, yes, no):
                return Select(test, self._number(yes, stmt), self._number(no, stmt))
            case Apply(op, (left, right)) if op.name in ("min", "max"):
                first, second = self._number(left, stmt), self._number(right, stmt)
                if op.name == "min":
                    return Select(_test("le", left, right), first, second)
                return Select(_test("ge", right, left), second, first)
            case Apply(op, (number,)) if op.name == "rank":
                return number
            case _:
                self._require_constant(rank, stmt.span)
                return back


def _element(numbers: Node, at: Expr) -> Read:
    """Return the element at a row-major position."""
    index: list[Index] = []
    for extent in reversed(numbers.shape[1:]):
        size = Position(extent)
        index.insert(0, Dynamic(Apply(OPS["mod"], (at, size), dtypes.int64)))
        at = Apply(OPS["floordiv"], (at, size), dtypes.int64)
    return Read(numbers, (Dynamic(at), *index) if numbers.shape else ())


def _test(name: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[name], (left, right), dtypes.bool_)


def _refuse_mixed_iterations(body: Body, ranks: _Ranks) -> None:
    """Refuse origins that are read in another iteration than that which they are from.

    In loops the numbers of an iteration replace those of the one before. So within the innermost
    loop that makes ranks, reads of origins have to follow a statement that sets the array whole.
    """
    numbers = {node.id for node in ranks.made.values()}
    of = {
        ranks.origins[rank].id: node
        for rank, node in ranks.carriers.items()
        if rank in ranks.origins
    }

    everything = statements(body)

    def visit(stmts: Body, loop: Statement | None) -> None:
        for stmt in stmts:
            inner = stmt if isinstance(stmt, For | While) else loop
            if isinstance(stmt, Assign) and stmt.target.node.id in numbers and loop is not None:
                own = {id for id, node in of.items() if node == stmt.target.node}
                inside = {id(s) for s in statements((loop,))}
                for other in everything:
                    if id(other) not in inside and own & {n.id for n in direct_reads(other)}:
                        raise NotDifferentiable("a sort of numbers of other iterations", stmt.span)
                if not all(_is_set(inner, own, set()) for inner in bodies(loop)):
                    raise NotDifferentiable("a sort of numbers of other iterations", stmt.span)
            for nested in bodies(stmt):
                visit(nested, inner)

    visit(body, None)


def _is_set(body: Body, origins: Collection[int], before: set[int]) -> bool:
    """Whether each read of origins follows a statement that sets these whole."""
    known = set(before)
    for stmt in body:
        if any(n.id in origins and n.id not in known for n in direct_reads(stmt)):
            return False
        if not all(_is_set(nested, origins, known) for nested in bodies(stmt)):
            return False
        if isinstance(stmt, Assign) and _sets_all(stmt):
            known.add(stmt.target.node.id)
    return True


def _sets_all(stmt: Assign) -> bool:
    """Whether a statement sets all elements of its target."""
    ranges = {r.symbol: r for r in stmt.free.ranges}
    plain = [at.symbol if isinstance(at, Affine) else None for at in stmt.target.index]
    if stmt.op is not None or stmt.free.where is not None or len(set(plain)) < len(plain):
        return False
    return len(ranges) == len(plain) and all(
        symbol in ranges and ranges[symbol].lo == const(0) and ranges[symbol].hi == extent
        for symbol, extent in zip(plain, stmt.target.node.shape, strict=True)
    )


def _float_of(rank: Expr) -> dtypes.DType:
    return dtypes.BY_SHORT[f"f{rank.dtype.bits}"]
