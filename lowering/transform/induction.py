"""Induction variable substitution, and counted loops from while loops.

    k = 0
    for i in 0..n: y[k] = x[i]; k = k + 2      becomes   for i in 0..n: y[2*i] = x[i]
                                                         k = 2*n

and while loops that count up to a bound become loops over a range:

    while m <= n: y[m] = 0; m = m + p          becomes   if p >= 1: for r in 0..(n - m + p)//p: ...

Precondition: 64-bit integers that nothing else in an iteration changes, loops over all numbers of a
range, without early exits, and loop-invariant steps and bounds. Where a step depends on data, the
loop is versioned: the original stays for steps that are not positive.

>>> program, _ = optimize(lowered('''
... k = 0
... i = 0
... while i < 9:
...     y[k] = x[i]
...     k += 2
...     i += 1
... ''', y="f32[90]", x="f32[9]"), Target("cuda"))
>>> print_loops(substitute_induction(program).kernels[0].body)
# while i < 9
for i in 0..9:
    # y[k] = x[i]
    y[2*i] = x[i]
    # k += 2
    # i += 1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..analysis.dependence import has_early_exit
from ..analysis.parallel_band import static_trip_count, trip_count
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Let
from ..ir.bounds import as_index
from ..ir.expressions import Apply, Const, Expr, Position, Read, reads, rebuild
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, multiply, substitute, var
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import (
    Rewrite,
    map_kernels,
    map_statements,
    rebuild_statement,
    rename,
    with_bodies,
)
from ..ir.walk import binds, bodies, direct_writes, free_symbols, statements, writes
from ..passes.dce import eliminate_dead_code
from ..passes.dead_stores import eliminate_dead_stores
from ..passes.simplify import simplify

Body = tuple[Stmt, ...]
Steps = dict[int, Affine]
"""The increments of scalars, by their ids."""
UPWARD = {"lt": 0, "le": 1}
"""Tests of a variable and its bound, and how many more values pass than for less-than."""
MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}


def substitute_induction(program: Program) -> Program:
    """Return the program with induction variables substituted, and while loops that count as loops
    over ranges."""
    numbers = (n for n in program.locals if not n.rank and n.dtype is dtypes.int64)
    inside = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    sizes = (extent for s in inside if isinstance(s, Alloc) for extent in s.node.shape)
    in_shapes = frozenset(symbol for extent in sizes for symbol in extent.symbols())
    locals_, fresh, substituted = (
        frozenset(node.id for node in numbers),
        fresh_for(program),
        list[int](),
    )
    rewritten = map_kernels(program, _CountedLoops(locals_, fresh, substituted).inside)
    while True:  # increments of inner loops make those of outer loops known next
        more: list[int] = []
        walked = map_kernels(rewritten, _Substitution(locals_, in_shapes, fresh, more).inside)
        if not more:
            return (
                eliminate_dead_code(eliminate_dead_stores(simplify(walked)))
                if substituted
                else program
            )
        rewritten, substituted = simplify(walked), [*substituted, *more]


@dataclass(slots=True)
class _Substitution:
    """The state of induction variable substitution at a statement."""

    private_scalars: frozenset[int]
    """Integer scalars that are not visible outside."""
    stays: frozenset[Symbol]
    """Symbols in shapes, which cannot be substituted."""
    fresh: Fresh
    substituted: list[int]
    """The ids of the variables that were substituted."""
    values: dict[int, Affine] = field(default_factory=dict)
    """Known values of scalars."""
    names: dict[Symbol, Affine] = field(default_factory=dict)
    """Known values of symbols."""

    def inside(self, body: Body) -> Body:
        """Return nested statements rewritten, whose values are not known after them."""
        inner = replace(self, values=dict(self.values), names=dict(self.names))
        return tuple(new for stmt in body for new in inner.statement(stmt))

    def statement(self, stmt: Stmt) -> Body:
        """Return the statements that replace a statement."""
        if isinstance(stmt, While):
            self.forget(writes((stmt,)))
            return (with_bodies(stmt, tuple(map(self.inside, bodies(stmt)))),)
        stmt = rebuild_statement(stmt, Rewrite(self.expr, self.index))
        match stmt:
            case Let(symbol, value):
                index = _as_integer_index(value)
                if index is not None and symbol not in self.stays:
                    self.names[symbol] = index
            case Store(access, value) if access.node.id in self.private_scalars:
                index = _as_integer_index(value)
                self.forget((access.node,))
                if index is not None:
                    self.values[access.node.id] = index
            case Update(access) if access.node.id in self.values:
                increment = _match_increment(stmt)
                index = None if increment is None else _as_integer_index(increment[0])
                if increment is None or index is None:
                    self.forget(direct_writes(stmt))
                else:
                    self.values[access.node.id] += index * increment[1]
            case For():
                return self.loop(stmt)
            case If():
                stmt = with_bodies(stmt, tuple(map(self.inside, bodies(stmt))))
                self.forget(writes((stmt,)))
            case _:
                self.forget(direct_writes(stmt))
        return (stmt,)

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with known values substituted."""
        if isinstance(expr, Read) and not expr.index and expr.node.id in self.values:
            return Position(self.values[expr.node.id])
        new = rebuild(expr, self.expr, self.index)
        index = _as_integer_index(new) if isinstance(new, Apply) else None
        return new if index is None else Position(index)

    def index(self, index: Affine) -> Affine:
        """Return an index with known values substituted."""
        return substitute(index, self.names)

    def forget(self, nodes: Iterable[Node]) -> None:
        """Invalidate the values of scalars."""
        for node in nodes:
            self.values.pop(node.id, None)

    def loop(self, loop: For) -> Body:
        """Return a loop with its induction variables substituted, the statements that it needs
        before, and the stores of their final values."""
        written = {node.id: node for node in writes((loop,))}
        initial = {number: self.values.get(number) for number in written}
        self.forget(written.values())
        steps = self.steps(loop)
        bindings: list[Stmt] = []
        starts: dict[int, Affine] = {}
        for number in steps:
            start = initial[number]
            if start is None:
                symbol = self.fresh.symbol(written[number].label)
                bindings.append(Let(symbol, Read(written[number], ())))
                start = var(symbol)
            starts[number] = start
        iteration = (var(loop.symbol) - loop.lo) * loop.step
        inner = replace(self, values=dict(self.values), names=dict(self.names))
        inner.values |= {n: starts[n] + multiply(by, iteration) for n, by in steps.items()}
        body = tuple(rewritten for stmt in loop.body for rewritten in inner.statement(stmt))
        count = static_trip_count(loop)
        iterations = maximum(const(0), trip_count(loop)) if count is None else const(count)
        ends: list[Stmt] = []
        for number, by in steps.items():
            self.substituted.append(number)
            target, total = Access(written[number], ()), Position(multiply(by, iterations))
            if initial[number] is not None:
                self.values[number] = starts[number] + total.index
                total = Position(self.values[number])
                ends.append(Store(target, total))
            else:
                old = Read(target.node, ())
                ends.append(Store(target, Apply(OPS["add"], (old, total), dtypes.int64)))
        remaining = map_statements(body, lambda s: () if _is_increment(s, steps) else (s,))
        return (*bindings, replace(loop, body=remaining), *ends)

    def steps(self, loop: For) -> Steps:
        """Return the increments of scalars in each iteration of a loop, where they are
        loop-invariant."""
        increments: Steps = {}
        excluded: set[int] = set()
        if has_early_exit(loop.body) or loop.step not in (1, -1):
            return increments
        bound = {symbol for stmt in statements((loop,)) for symbol in binds(stmt)}
        for stmt in loop.body:
            written = {node.id for node in writes((stmt,))} & self.private_scalars
            steps: Steps = {}
            if isinstance(stmt, For):
                count = static_trip_count(stmt)
                steps = (
                    {}
                    if count is None
                    else {n: increment * count for n, increment in self.steps(stmt).items()}
                )
            elif (increment := self.by(stmt)) is not None:
                steps = dict.fromkeys(written, increment)
            for number in written:
                if number not in steps or steps[number].symbols() & bound:
                    excluded.add(number)
                else:
                    increments[number] = increments.get(number, const(0)) + steps[number]
        return {
            number: increment for number, increment in increments.items() if number not in excluded
        }

    def by(self, stmt: Stmt) -> Affine | None:
        """Return the increment of a scalar by a statement, None where it does something else."""
        increment = _match_increment(stmt)
        index = None if increment is None else _as_integer_index(self.expr(increment[0]))
        return None if increment is None or index is None else index * increment[1]


# ----------------------------------------------------------------------- loops until a bound


@dataclass(frozen=True, slots=True)
class _CountedLoops:
    """Rewrites while loops that count up to a bound as loops over ranges."""

    private_scalars: frozenset[int]
    fresh: Fresh
    substituted: list[int]

    def inside(self, body: Body) -> Body:
        """Return statements with such loops rewritten, which still increment their variable."""
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: Stmt) -> Body:
        """Return the statements that replace a statement."""
        stmt = with_bodies(stmt, tuple(map(self.inside, bodies(stmt))))
        counting = _match_counting(stmt, self.private_scalars) if isinstance(stmt, While) else None
        return (stmt,) if counting is None else self.counted(counting)

    def counted(self, counting: _CountingLoop) -> Body:
        """Return a loop that counts as a loop over a range; itself where it may not end so."""
        match counting.by:
            case Const(int() as number):
                return self.by_number(counting, number * counting.sign)
            case _:
                return self.by_data(counting)

    def by_number(self, counting: _CountingLoop, by: int) -> Body:
        """Return the loop over a range for a constant step."""
        if not by or (by > 0) != (counting.name in UPWARD):
            return (counting.loop,)
        bindings, start, stop = self.ends(counting)
        gap, name = (
            (stop - start, counting.name) if by > 0 else (start - stop, MIRRORED[counting.name])
        )
        iterations = floordiv(gap + (UPWARD[name] + abs(by) - 1), const(abs(by)))
        return (*bindings, self.over(counting, iterations, counting.loop.body))

    def by_data(self, counting: _CountingLoop) -> Body:
        """Return the loop over a range for a step that depends on data, versioned with the
        original."""
        bindings, start, stop = self.ends(counting)
        step = self.named(counting.by, "step", bindings)
        iterations = floordiv(stop - start + UPWARD[counting.name] + step - 1, step)
        incremented = Apply(OPS["add"], (Read(counting.node, ()), Position(step)), dtypes.int64)
        increment = Store(Access(counting.node, ()), incremented, counting.loop.span)
        body = tuple(increment if stmt is counting.last else stmt for stmt in counting.loop.body)
        counted = self.over(counting, iterations, body)
        names = {s: self.fresh.symbol(s.name) for stmt in statements(body) for s in binds(stmt)}
        is_up = Apply(OPS["ge"], (Position(step), Position(const(1))), dtypes.bool_)
        return (
            *bindings,
            If(is_up, rename((counted,), names, {}), (counting.loop,), counting.loop.span),
        )

    def ends(self, counting: _CountingLoop) -> tuple[list[Stmt], Affine, Affine]:
        """Return the statements that bind the start and the bound of a loop, and these."""
        self.substituted.append(counting.node.id)
        bindings: list[Stmt] = []
        start = self.named(Read(counting.node, ()), counting.node.label, bindings)
        return bindings, start, self.named(counting.bound, "stop", bindings)

    def named(self, value: Expr, label: str, bindings: list[Stmt]) -> Affine:
        """Return a symbol bound to a value."""
        symbol = self.fresh.symbol(label)
        bindings.append(Let(symbol, value))
        return var(symbol)

    def over(self, counting: _CountingLoop, iterations: Affine, body: Body) -> For:
        """Return the loop over so many iterations."""
        symbol = self.fresh.symbol(counting.node.label)
        return For(symbol, const(0), iterations, 1, body, span=counting.loop.span)


@dataclass(frozen=True, slots=True)
class _CountingLoop:
    """A while loop that counts up to a bound."""

    loop: While
    node: Node
    name: str
    """The comparison of the variable with the bound."""
    bound: Expr
    last: Stmt
    by: Expr
    sign: int


def _match_counting(loop: While, private: frozenset[int]) -> _CountingLoop | None:
    """Return how a while loop counts, None where it does more, or ends in another way."""
    code = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    only_comments = all(isinstance(stmt, Comment) for stmt in loop.prelude)
    if (
        not only_comments
        or not code
        or has_early_exit(loop.body)
        or not isinstance(loop.test, Apply)
    ):
        return None
    last, name = code[-1], loop.test.op.name
    written = {node.id: node for node in writes(loop.body)}
    write_ids = [node.id for stmt in statements(loop.body) for node in direct_writes(stmt)]
    increment = _match_increment(last)
    if name not in MIRRORED or increment is None or not isinstance(last, Store | Update):
        return None
    (by, sign), node, (left, right) = increment, last.access.node, loop.test.args
    if right == Read(node, ()):
        left, right, name = right, left, MIRRORED[name]
    bound = {symbol for stmt in statements(loop.body) for symbol in binds(stmt)}
    for value in (by, right):
        if free_symbols(value) & bound or any(read.node.id in written for read in reads(value)):
            return None
    counts = left == Read(node, ()) and node.id in private and write_ids.count(node.id) == 1
    if not counts or right.dtype is not dtypes.int64 or by.dtype is not dtypes.int64:
        return None
    if not isinstance(by, Const):
        scalars = {number for number, target in written.items() if not target.rank}
        if sign < 0 or name not in UPWARD or scalars != {node.id}:
            return None
    return _CountingLoop(loop, node, name, right, last, by, sign)


def _match_increment(stmt: Stmt) -> tuple[Expr, int] | None:
    """Return the term that a statement adds to a scalar, and its sign, None where it does something
    else."""
    match stmt:
        case Store(Access(node, ()), Apply(op, (Read() as old, value))) if (
            op.name in ("add", "sub") and old.node == node
        ):
            return value, 1 if op.name == "add" else -1
        case Update(Access(_, ()), op, value, None) if op.name == "add":
            return value, 1
        case _:
            return None


def _is_increment(stmt: Stmt, steps: Steps) -> bool:
    """Whether a statement only changes a substituted induction variable."""
    return isinstance(stmt, Store | Update) and stmt.access.node.id in steps


def _as_integer_index(value: Expr) -> Affine | None:
    """Return a 64-bit integer as an index expression, None where it reads anything."""
    match value:
        case Apply(op, (first, second), dtype) if dtype is dtypes.int64 and op.name in (
            "add",
            "sub",
        ):
            left, right = _as_integer_index(first), _as_integer_index(second)
            if left is None or right is None:
                return None
            return left + right if op.name == "add" else left - right
        case _:
            return as_index(value)
