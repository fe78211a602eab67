"""Loop peeling and index-set splitting at the ends of a loop.

Changes: where tests and clamped subscripts in a loop compare its symbol with some bound, the loop
is split there into up to three: first iterations, most iterations, last iterations. `simplify` then
finds the tests of most iterations constant, so that these can be vectorized. Where enclosing loops
or run-time values decide on such a bound, the ends of loops are computed from it (index-set
splitting); for run-time values that are so large that sums with them overflow, the original loop
remains as an alternative (versioning).

    for i in 0..n: f(i > 0, i < n - 1)

    for i in 0..1: f(false, ...)
    for i in 1..n - 1: f(true, true)
    for i in n - 1..n: f(..., false)

Precondition: loops that are not left early. Postcondition: bit-identical: the iterations are the
same, in their order. A loop over terms of a reassociable reduction, which `vectorize_reductions`
reorders, stays whole.

>>> show(lambda program: peel_loops(program, Target(schedule=True)),
...      "y[i] = x[i - 1] if i > 0 else 0.0", y="f32[90]", x="f32[90]")
for i in 0..1:
    y[i] = x[i - 1] if i > 0 else 0.0
for i in 1..90:
    y[i] = x[i - 1] if i > 0 else 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.conjunctions import conjunction
from ..analysis.cost import is_large
from ..analysis.dependence import find_privatizable, loop_local_nodes
from ..analysis.effects import bound_symbols
from ..analysis.self_dependence import bound_over
from ..analysis.subscripts import implied_inequalities, ranges
from ..ir.expressions import Dynamic, Expr, Position, Read, Select, walk
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Quasi, Symbol, maximum, minimum, var
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_kernels, rename, with_bodies
from ..ir.walk import bodies, expressions_of, statements, writes
from ..target import Target
from ..transform.overflow import find_unbounded, has_unbounded_products, overflow_tests

Body = tuple[Stmt, ...]


def peel_loops(program: Program, target: Target) -> Program:
    """Return the program with loops split where their tests change."""
    exclusive = cache(partial(loop_local_nodes, program))
    unbounded = cache(partial(find_unbounded, program))
    peeler = _Peeler(fresh_for(program), exclusive, unbounded, target.reorders)
    peeled = map_kernels(program, peeler.body)
    return program if peeled is program else peeler.fresh.declared(peeled)


@dataclass(frozen=True, slots=True)
class _Peeler:
    """The peeling of the loops of one program."""

    fresh: Fresh
    exclusive: Callable[[], Mapping[int, frozenset[int]]]
    """The nodes that only a loop's body uses, by the loop's `id`; computed on first use."""
    unbounded: Callable[[], frozenset[Symbol]]
    """Run-time integers of any magnitude; computed on first use."""
    reorders: bool

    def body(self, body: Body) -> Body:
        """Return a list of statements with its loops peeled."""
        out: list[Stmt] = []
        for stmt in body:
            middle = self.find_middle(stmt) if isinstance(stmt, For) else None
            inner = with_bodies(stmt, tuple(self.body(nested) for nested in bodies(stmt)))
            if middle is None or not isinstance(stmt, For) or not isinstance(inner, For):
                out.append(inner)
            else:
                out += self.split(stmt, inner, *middle)
        return tuple(out)

    def find_middle(self, loop: For) -> tuple[Affine, Affine, list[Expr]] | None:
        """Return where the middle of a loop begins and ends, and the tests under which these sums
        do not overflow; None where the loop stays whole."""
        inside = statements(loop.body)
        if loop.kind != "serial" or loop.step != 1:
            return None
        if not all(isinstance(s, Store | Update | For | If | Check | Comment) for s in inside):
            return None
        term_positions = (
            at for s in inside if isinstance(s, Update) and self.reorders for at in s.over
        )
        if any(loop.symbol in at.symbols() for at in term_positions):
            return None
        if is_large(loop):
            return None
        first, last = _peel_counts(loop)
        trip_count = (loop.hi - loop.lo).constant
        if trip_count is not None and trip_count - first - last < thresholds.MIN_PEELED_ITERATIONS:
            return None
        start, end = loop.lo + first, loop.hi - last
        facts: list[Affine] = []
        for bound, fact in _dynamic_bounds(loop, 1, self.unbounded).items():
            start = maximum(start, bound)
            facts.append(fact)
        for bound, fact in _dynamic_bounds(loop, -1, self.unbounded).items():
            end = minimum(end, bound)
            facts.append(fact)
        if (start, end) == (loop.lo, loop.hi):
            return None
        return start, end, overflow_tests(facts, self.unbounded()) if facts else []

    def split(
        self, loop: For, inner: For, start: Affine, end: Affine, tests: list[Expr]
    ) -> Body:  # fmt: skip
        """Return the statements that replace a loop; `inner` has the body of the middle one."""
        out: list[Stmt] = []
        if start != loop.lo:
            out.append(self.copy_range(loop, loop.lo, minimum(start, loop.hi)))
        out.append(replace(inner, lo=start, hi=end))
        if end != loop.hi:
            out.append(self.copy_range(loop, maximum(start, end), loop.hi))
        if not tests:
            return tuple(out)
        whole = self.copy_range(loop, loop.lo, loop.hi)
        return (If(conjunction(tests), tuple(out), (whole,), loop.span),)

    def copy_range(self, loop: For, lo: Affine, hi: Affine) -> For:
        """Return a copy of a loop over a range of its iterations, with private nodes of its own."""
        privates = find_privatizable(loop, self.exclusive()[id(loop)])
        return replace(clone_loop(loop, privates, self.fresh), lo=lo, hi=hi)


def clone_loop(loop: For, privates: Collection[int], fresh: Fresh) -> For:
    """Return a copy of a loop with a new index variable and new private nodes.

    `privates` are the ids of the nodes that are private to each iteration.
    """
    nodes = {node.id: _clone_node(node, fresh) for node in writes(loop.body) if node.id in privates}
    symbol = fresh.symbol(loop.symbol.name)
    return replace(loop, symbol=symbol, body=rename(loop.body, {loop.symbol: symbol}, nodes))


def _clone_node(node: Node, fresh: Fresh) -> Node:
    if node.static_shape is None or node.request is not None:
        return node
    if not node.rank:
        return fresh.scalar(node.label, node.dtype)
    return fresh.array(node.label, node.static_shape, node.dtype, node.purpose)


def _peel_counts(loop: For) -> tuple[int, int]:
    """Return how many iterations to peel at each end: in these some test differs from the
    middle."""
    first = last = 0
    for point in _breakpoints(loop.body, loop.symbol, ()):
        from_start, from_end = (point - loop.lo).constant, (loop.hi - point).constant
        if from_start is not None and (from_end is None or from_start <= from_end):
            first = max(first, from_start)
        elif from_end is not None:
            last = max(last, from_end)
    return first, last


def _dynamic_bounds(
    loop: For, sign: int, unbounded: Callable[[], frozenset[Symbol]]
) -> dict[Affine, Affine]:
    """Return the run-time bounds from which on (sign 1), or up to which, subscripts are not clamped
    and tests hold, where enclosing loops or data decide on these; each with the index expression
    that is not negative there."""
    bounds = dict[Affine, Affine]()
    inner_symbols = bound_symbols(loop.body)
    for fact, inside in _collect_facts(loop.body, loop.symbol, ()):
        rest = fact - var(loop.symbol) * sign
        if fact.coefficient(loop.symbol) != sign or loop.symbol in rest.symbols():
            continue
        if inside and inside[-1].symbol not in rest.symbols():
            continue  # invariant in the innermost loop, which it does not slow down
        bound = bound_over(rest * -1 if sign > 0 else rest + 1, ranges(inside), sign)
        if bound is None or bound.symbols() & (inner_symbols | {loop.symbol}):
            continue
        if (bound - loop.lo).constant is None and (loop.hi - bound).constant is None:
            if not has_unbounded_products(fact, unbounded()):
                bounds[bound] = fact
    return bounds if len(bounds) <= thresholds.MAX_PEELED_BOUNDS else {}


def _collect_facts(
    body: Body, symbol: Symbol, inside: tuple[For, ...]
) -> Iterator[tuple[Affine, tuple[For, ...]]]:
    """Yield index expressions that are not negative where subscripts are not clamped and tests
    hold, each with the loops around it."""
    for stmt in body:
        deeper = (*inside, stmt) if isinstance(stmt, For) else inside
        targets = stmt.access.index if isinstance(stmt, Store | Update) else ()
        for index in targets:
            if isinstance(index, Affine):
                yield from ((fact, inside) for fact in _unclamped_facts(index, symbol))
        for expr in expressions_of(stmt):
            for part in walk(expr):
                implied: Iterable[Affine] = ()
                match part:
                    case Read(_, subscripts):
                        plain = (at for at in subscripts if isinstance(at, Affine))
                        implied = (fact for at in plain for fact in _unclamped_facts(at, symbol))
                    case Position(at):
                        implied = _unclamped_facts(at, symbol)
                    case Select(test):
                        implied = (
                            fact for operand in walk(test) for fact in implied_inequalities(operand)
                        )
                    case _ if isinstance(stmt, If):
                        implied = implied_inequalities(part)
                    case _:
                        pass
                yield from ((fact, inside) for fact in implied)
        for nested in bodies(stmt):
            yield from _collect_facts(nested, symbol, deeper)


def _unclamped_facts(index: Affine, symbol: Symbol) -> Iterator[Affine]:
    """Yield what is not negative where clamps leave the operand that grows with a symbol."""
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            if atom.op in ("min", "max"):
                for left in _operands(atom.left):
                    for right in _operands(atom.right):
                        inside = symbol in left.symbols(), symbol in right.symbols()
                        if inside in ((True, False), (False, True)):
                            gap = left - right if inside[0] else right - left
                            yield gap if atom.op == "max" else gap * -1
            yield from _unclamped_facts(atom.left, symbol)
            yield from _unclamped_facts(atom.right, symbol)


def _breakpoints(body: Body, symbol: Symbol, inside: tuple[For, ...]) -> Iterator[Affine]:
    """Yield the values of a symbol from which on some test or clamp has another result."""
    for stmt in body:
        for expr in expressions_of(stmt):
            for fact in _deciding_exprs(expr, isinstance(stmt, If)):
                yield from _sign_changes(fact, symbol, inside)
        if isinstance(stmt, Store | Update):
            for at in stmt.access.index:
                for fact in _clamp_decisions(at) if isinstance(at, Affine) else ():
                    yield from _sign_changes(fact, symbol, inside)
        deeper = (*inside, stmt) if isinstance(stmt, For) else inside
        for nested in bodies(stmt):
            yield from _breakpoints(nested, symbol, deeper)


def _sign_changes(fact: Affine, symbol: Symbol, inside: tuple[For, ...]) -> Iterator[Affine]:
    """Yield where an expression that is affine in a symbol changes its sign: the first and the last
    such value, where inner loops contribute."""
    factor = fact.coefficient(symbol)
    rest = fact - var(symbol) * factor
    if factor not in (1, -1) or symbol in rest.symbols():
        return
    zero = rest * -1 if factor == 1 else rest + 1
    for sign in (1, -1):
        root = bound_over(zero, ranges(inside), sign)
        if root is not None and not root.symbols() & {loop.symbol for loop in inside}:
            yield root


def _deciding_exprs(expr: Expr, is_test: bool) -> Iterator[Affine]:
    """Yield the expressions whose sign decides a test or clamp in an expression."""
    for part in walk(expr):
        match part:
            case Read(_, index):
                for at in index:
                    yield from () if isinstance(at, Dynamic) else _clamp_decisions(at)
            case Position(index):
                yield from _clamp_decisions(index)
            case Select(test):
                for operand in walk(test):
                    yield from implied_inequalities(operand)
            case _ if is_test:
                yield from implied_inequalities(part)
            case _:
                pass


def _clamp_decisions(index: Affine) -> Iterator[Affine]:
    """Yield the expressions whose sign decides a clamp, quotient or remainder in an index."""
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            if atom.op in ("min", "max", "mod", "floordiv"):
                yield from (a - b for a in _operands(atom.left) for b in _operands(atom.right))
                yield from (atom.left,) if atom.op in ("mod", "floordiv") else ()
            yield from _clamp_decisions(atom.left)
            yield from _clamp_decisions(atom.right)


def _operands(index: Affine) -> tuple[Affine, ...]:
    """Return the operands of nested minima or maxima, the index itself where it is none."""
    match index:
        case Affine(((Quasi("min" | "max", left, right), 1),), offset):
            return tuple(operand + offset for side in (left, right) for operand in _operands(side))
        case _:
            return (index,)
