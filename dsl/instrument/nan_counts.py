"""Whether a run leaves a NaN anywhere: the function itself, which counts those that it writes.

    a = exp(x) / y        becomes    a = exp(x) / y
    b = sqrt(a)                      b = sqrt(a)
                                     count[0] += sum(isnan(a) | isnan(b))

A statement is counted at the end of its list of statements, after that where it can be (see
`sinking`), or before something overwrites what it wrote: then counting joins the loops that are
there anyway. What only moves numbers of arrays that
the function makes itself, of which earlier statements were counted, is left out.

Invariant: where the count is 0, no statement has left a NaN in an element that it wrote.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Continue,
    For,
    Parameter,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Read,
    Reduce,
    walk,
)
from ...lowering.ir.indexing import Affine, Range, Symbol, const, substitute, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import substitute_expr
from ...lowering.ir.walk import binds, direct_writes, statements
from .call_results import is_nan
from .library_calls import NodeClasses, call_writes, classify_nodes, group_by_call
from .sinking import Left, out_of_both_sides, out_of_branch, out_of_loop, passes_on, permuted

_HARMLESS = frozenset(
    ["neg", "abs", "sign", "floor", "ceil", "trunc", "rint", "recip", "exp", "exp2", "expm1",
     "sinh", "cosh", "tanh", "arcsinh", "arctan", "arctan2", "erf", "erfc", "copysign", "max",
     "min", "fmax", "fmin", "relu", "sat01", "relu_gate", "sat01_gate"]
)  # fmt: skip
"""Operations on floats that give a NaN of a NaN only."""

End = tuple[list[Statement], list[Left], list[Node]]
"""A list of statements with counting added but at its end, what is counted there, and the counts
to be added there."""
_NESTS = For, While, Branch, Block, Break, Continue
"""Statements with others in them, and those that leave them: all is counted before."""


def add_nan_counting(procedure: Procedure) -> Procedure | None:
    """Return a procedure that adds how many NaNs it writes to an int64 array of one element, its
    last parameter; None where that is not told by what it leaves.

    It does not tell of what it prints, which nobody is to see twice, nor of elements that are found
    by a subscript which the statement itself changes.
    """
    if any(isinstance(item, Print) for item in statements(procedure.body)):
        return None
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    sizes = [x for node in nodes for extent in node.shape for x in extent.symbols()]
    bound = [x for item in statements(procedure.body) for x in binds(item)]
    serial = max((x.serial for x in (*sizes, *bound)), default=0)
    count = Node(max((n.id for n in nodes), default=0) + 1, "nans", (const(1),), dtypes.int64)
    work = _Work(procedure, count, serial)
    body = work.body(procedure.body)
    if work.is_lost:
        return None
    given = (replace(item, node=_plain(item.node)) for item in procedure.parameters)
    return replace(
        procedure,
        parameters=(*given, Parameter(count, True)),
        locals=(*map(_plain, procedure.locals), *work.locals),
        results=tuple(map(_plain, procedure.results)),
        body=body,
    )


def _plain(node: Node) -> Node:
    """Return a node without what was asked of its memory: it is counted anywhere."""
    return node if node.request is None else replace(node, request=None)


class _Work:
    """What is to be counted while a procedure is walked through."""

    def __init__(self, procedure: Procedure, count: Node, serial: int) -> None:
        self.nodes: NodeClasses = classify_nodes(procedure)
        self.given = _uncounted(procedure)
        self.count, self.serial = count, serial
        self.locals: list[Node] = []
        self.is_lost = False

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Return a list of statements with counting added."""
        out, left, totals = self.until_end(body)
        return self.ended(out, left, totals)

    def ended(
        self, out: Sequence[Statement], left: Sequence[Left], totals: list[Node]
    ) -> tuple[Statement, ...]:
        """Return a list of statements with counting added at its end."""
        return (*out, *self.counted(left, totals), *self.added(totals))

    def until_end(self, body: tuple[Statement, ...]) -> End:
        """Return a list of statements with counting added but at its end, what is left to be
        counted there, and the counts to be added there."""
        out: list[Statement] = []
        left: list[Left] = []
        totals: list[Node] = []
        for call, some in group_by_call(body):
            statement = some[0]
            if call is None and isinstance(statement, Permute):
                left = [permuted(x, statement) for x in left]
                out.append(statement)
                continue
            nests = call is None and isinstance(statement, _NESTS)
            if isinstance(statement, Assign) and call is None and self.counts(statement):
                left = [x for x in left if not passes_on(statement, x)]
            stays = [x for x in left if not nests and self.stays(x, some)]
            out += self.counted([x for x in left if x not in stays], totals)
            out += self.added(totals) if nests else ()
            if call is not None:
                out += some
                left = [*stays, *self.called(call, some)]
            else:
                inner, inner_left = self.inside(statement)
                out.append(inner)
                left = [*stays, *inner_left, *self.of(statement)]
        return out, left, totals

    def stays(self, left: Left, some: tuple[Statement, ...]) -> bool:
        """Whether what a statement left can be counted after the next ones, in one loop with what
        they leave: they write none of it, and read it where they write."""
        changed = {node for statement in statements(some) for node in direct_writes(statement)}
        if not changed:
            return True
        where = () if left.points.where is None else walk(left.points.where)
        reads = {part.node for part in (*walk(left.read), *where) if isinstance(part, Read)}
        if not reads.isdisjoint(changed) or len(some) > 1:
            return False
        (statement,) = some
        if not isinstance(statement, Assign) or statement.reduced.ranges:
            return isinstance(statement, Alloc)
        element, target = self.renamed(left), self.renamed(Left(left.read, statement.free))
        if _sizes(element) != _sizes(target):
            return False
        names = {
            x: var(y) for x, y in zip(statement.free.symbols, element.points.symbols, strict=True)
        }
        read = [
            part for part in walk(substitute_expr(statement.value, names)) if isinstance(part, Read)
        ]
        return all(part.node != element.read.node or part == element.read for part in read)

    def inside(self, statement: Statement) -> tuple[Statement, list[Left]]:
        """Return a statement with counting added to those in it, and what is counted after it."""
        match statement:
            case Block(body=inner):
                out, left, totals = self.until_end(inner)
                return replace(statement, body=(*out, *self.added(totals))), left
            case For(body=inner):
                body, left = self.sunk(
                    self.until_end(inner), lambda left: out_of_loop(statement, left, self.counts)
                )
                return replace(statement, body=body), left
            case While(prelude, _, inner):
                return replace(statement, prelude=self.body(prelude), body=self.body(inner)), []
            case Branch(_, then, orelse):
                (out, yes, counts), (other, no, others) = map(self.until_end, (then, orelse))
                both = list(out_of_both_sides(statement, yes, no))
                yes = [x for x in yes if all(x is not a for a, _ in both)]
                no = [x for x in no if all(x is not b for _, b in both)]
                then, yes = self.sunk(
                    (out, yes, counts), lambda left: out_of_branch(statement, True, left)
                )
                orelse, no = self.sunk(
                    (other, no, others), lambda left: out_of_branch(statement, False, left)
                )
                left = [*(replace(a, by=None) for a, _ in both), *yes, *no]
                return replace(statement, then=then, orelse=orelse), left
            case _:
                return statement, []

    def sunk(
        self, end: End, sink: Callable[[list[Left]], Iterator[Left | None]]
    ) -> tuple[tuple[Statement, ...], list[Left]]:
        """Return a list of statements with counting added, and what is counted after it."""
        out, left, totals = end
        sunk = list(sink(left))
        stays = [element for element, there in zip(left, sunk, strict=True) if there is None]
        return self.ended(out, stays, totals), [there for there in sunk if there is not None]

    def of(self, statement: Statement) -> Iterator[Left]:
        """Yield what a statement leaves that may be NaN."""
        if not isinstance(statement, Assign) or not self.counts(statement):
            return
        read, points = (
            Read(statement.target.node, statement.target.index, statement.span),
            statement.free,
        )
        parts = [x.value for x in read.index if isinstance(x, Dynamic)]
        parts += () if points.where is None else (points.where,)
        self.is_lost |= any(
            isinstance(part, Read) and part.node == read.node for x in parts for part in walk(x)
        )
        yield Left(read, points, statement)

    def counts(self, statement: Assign) -> bool:
        """Whether what a statement leaves is counted."""
        node = statement.target.node
        return (
            node.dtype.kind in "fc" and not self.nodes.is_scratch(node) and self.may_make(statement)
        )

    def called(self, call: Span, some: tuple[Statement, ...]) -> Iterator[Left]:
        """Yield what a call of the library leaves."""
        for write in call_writes(call, some, self.nodes, self.symbol):
            target = write.statement.target
            if target.node.dtype.kind in "fc":
                yield Left(Read(target.node, target.index, call), write.statement.free)

    def may_make(self, statement: Assign) -> bool:
        """Whether a statement may leave a NaN where it reads none of arrays that are counted."""
        harmless = statement.op is None or statement.op.name in _HARMLESS
        return not harmless or any(map(self.may_be, walk(statement.value)))

    def may_be(self, part: Expr) -> bool:
        """Whether a part of an expression may be the first to be NaN."""
        if part.dtype.kind not in "fc":
            return False
        match part:
            case Const(value):
                return not _is_number(value)
            case Read(node):
                return node.id in self.given or self.nodes.is_scratch(node)
            case Apply(op) | Reduce(op):
                return op.name not in _HARMLESS or part.dtype.kind == "c"
            case _:
                return False

    def counted(self, left: Sequence[Left], totals: list[Node]) -> Iterator[Assign]:
        """Yield what counts, and add the counts to some: one for all that has the same ranges."""
        groups: dict[object, tuple[Domain, list[Expr]]] = {}
        for a in map(self.renamed, left):
            key = (*_sizes(a), None if a.points.where is None else id(a))
            points, tests = groups.setdefault(key, (a.points, []))
            same = zip(a.points.symbols, points.symbols, strict=True)
            read = substitute_expr(a.read, {symbol: var(b) for symbol, b in same})
            tests.append(is_nan(read))
        for points, tests in groups.values():
            some = functools.reduce(lambda a, b: Apply(OPS["bitor"], (a, b), dtypes.bool_), tests)
            number: Expr = Cast(some, dtypes.int64)
            if points.ranges or points.where is not None:
                number = Reduce(OPS["add"], points, number, dtypes.int64)
            self.locals.append(Node(self.count.id + 1 + len(self.locals), "nans", (), dtypes.int64))
            totals.append(self.locals[-1])
            yield Assign(Access(totals[-1], ()), None, False, number, Domain())

    def added(self, totals: list[Node]) -> Iterator[Assign]:
        """Yield what adds counts to the one that is told, and take them out."""
        target = Access(self.count, (const(0),))
        for total in totals:
            yield Assign(target, OPS["add"], False, Read(total, ()), Domain())
        totals.clear()

    def renamed(self, left: Left) -> Left:
        """Return the same elements, with indices that nothing else has."""
        names: dict[Symbol, Affine] = {}
        ranges: list[Range] = []
        for r in left.points.ranges:
            lo, hi = substitute(r.lo, names), substitute(r.hi, names)
            ranges.append(Range(self.symbol(r.symbol.name), lo, hi))
            names[r.symbol] = var(ranges[-1].symbol)
        where = left.points.where
        test = None if where is None else substitute_expr(where, names)
        read = substitute_expr(left.read, names)
        assert isinstance(read, Read), "names change nothing else"
        return Left(read, Domain(tuple(ranges), test))


def _sizes(left: Left) -> tuple[tuple[Affine, Affine], ...]:
    """Return ranges without their names: equal for those that are the same."""
    plain = {symbol: var(Symbol("n", -n)) for n, symbol in enumerate(left.points.symbols, 1)}
    return tuple((substitute(r.lo, plain), substitute(r.hi, plain)) for r in left.points.ranges)


def _uncounted(procedure: Procedure) -> frozenset[int]:
    """Return the arrays that may hold a NaN from the start: what is given, and what trades places
    with that."""
    given = {item.node.id for item in procedure.parameters}
    trades = [
        {node.id for node in (*item.nodes, *item.sources)}
        for item in statements(procedure.body)
        if isinstance(item, Permute)
    ]
    while more := [trade for trade in trades if not trade <= given and not trade.isdisjoint(given)]:
        given.update(*more)
    return frozenset(given)


def _is_number(value: object) -> bool:
    return not isinstance(value, float | complex) or not (
        math.isnan(value.real) or math.isnan(value.imag)
    )
