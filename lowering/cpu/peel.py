"""Loops without the tests that only their first and last rounds need.

Changes: where tests and bounded subscripts in a loop ask whether its symbol is beyond some place,
the loop is cut there in up to three: first rounds, most rounds, last rounds. `simplify` then finds
out that in most rounds the answers are known, so that they become vectors. Where loops around it or
run-time numbers decide on such a place, ends of loops are computed from it (index set splitting).

    for i in 0..n: f(i > 0, i < n - 1)

    for i in 0..1: f(false, ...)
    for i in 1..n - 1: f(true, true)
    for i in n - 1..n: f(..., false)

Needs: loops that are not left early. Guarantees: not a bit changes: the rounds are the same, in
their order. A loop that counts terms which `lanes` adds up in another order stays whole.

>>> show(lambda program: edges(program, Target(schedule=True)),
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
from ..analysis.cost import is_large
from ..analysis.dependence import confined, private
from ..analysis.effects import bound_in
from ..analysis.self_dependence import extreme
from ..analysis.subscripts import facts, ranges
from ..ir.expressions import Dynamic, Expr, Position, Read, Select, walk
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Quasi, Symbol, maximum, minimum, var
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import over_kernels, rename, with_bodies
from ..ir.walk import bodies, expressions_of, statements, writes
from ..target import Target

Body = tuple[Stmt, ...]
LEAST = 16
"""A loop is cut where at least so many rounds are left in its middle."""
MOST = 4
"""So many places that are not static a loop is cut at."""


def edges(program: Program, target: Target) -> Program:
    """Return the program with loops cut where their tests change."""
    work = _Work(fresh_for(program), cache(partial(confined, program)), target.reorders)
    made = over_kernels(program, work.body)
    return program if made is program else work.fresh.declared(made)


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one program."""

    fresh: Fresh
    only: Callable[[], Mapping[int, frozenset[int]]]
    """By the `id` of each loop what only its body uses; found out when first asked for."""
    reorders: bool

    def body(self, body: Body) -> Body:
        """Return a list of statements with its loops cut."""
        out: list[Stmt] = []
        for stmt in body:
            cuts = self.cuts(stmt) if isinstance(stmt, For) else None
            inner = with_bodies(stmt, tuple(self.body(one) for one in bodies(stmt)))
            if cuts is None or not isinstance(stmt, For) or not isinstance(inner, For):
                out.append(inner)
            else:
                out += self.pieces(stmt, inner, *cuts)
        return tuple(out)

    def cuts(self, loop: For) -> tuple[Affine, Affine] | None:
        """Return where most rounds begin and end, None where the loop stays whole."""
        inside = statements(loop.body)
        if loop.kind != "serial" or loop.step != 1:
            return None
        if not all(isinstance(s, Store | Update | For | If | Check | Comment) for s in inside):
            return None
        summed = (at for s in inside if isinstance(s, Update) and self.reorders for at in s.over)
        if any(loop.symbol in at.symbols() for at in summed):
            return None
        if is_large(loop):
            return None
        first, last = _ends(loop)
        rounds = (loop.hi - loop.lo).constant
        if rounds is not None and rounds - first - last < LEAST:
            return None
        start, end = loop.lo + first, loop.hi - last
        for place in _dynamic_ends(loop, 1):
            start = maximum(start, place)
        for place in _dynamic_ends(loop, -1):
            end = minimum(end, place)
        return None if (start, end) == (loop.lo, loop.hi) else (start, end)

    def pieces(self, loop: For, inner: For, start: Affine, end: Affine) -> Iterator[Stmt]:
        """Yield what takes the place of a loop; `inner` is its middle."""
        if start != loop.lo:
            yield self.copied(loop, loop.lo, minimum(start, loop.hi))
        yield replace(inner, lo=start, hi=end)
        if end != loop.hi:
            yield self.copied(loop, maximum(start, end), loop.hi)

    def copied(self, loop: For, lo: Affine, hi: Affine) -> For:
        """Return some rounds of a loop, with temporaries of their own."""
        mine = private(loop, self.only()[id(loop)])
        return replace(renewed(loop, mine, self.fresh), lo=lo, hi=hi)


def renewed(loop: For, mine: Collection[int], fresh: Fresh) -> For:
    """Return a loop with a variable and temporaries of its own; `mine` are those that each of its
    iterations has for itself, by their ids."""
    nodes = {node.id: _renewed(node, fresh) for node in writes(loop.body) if node.id in mine}
    symbol = fresh.symbol(loop.symbol.name)
    return replace(loop, symbol=symbol, body=rename(loop.body, {loop.symbol: symbol}, nodes))


def _renewed(node: Node, fresh: Fresh) -> Node:
    if node.static_shape is None or node.request is not None:
        return node
    if not node.rank:
        return fresh.scalar(node.label, node.dtype)
    return fresh.array(node.label, node.static_shape, node.dtype, node.purpose)


def _ends(loop: For) -> tuple[int, int]:
    """Return in how many rounds at each end some answer is another than in the middle."""
    first = last = 0
    for place in _places(loop.body, loop.symbol, ()):
        at, left = (place - loop.lo).constant, (loop.hi - place).constant
        if at is not None and (left is None or at <= left):
            first = max(first, at)
        elif left is not None:
            last = max(last, left)
    return first, last


def _dynamic_ends(loop: For, sign: int) -> tuple[Affine, ...]:
    """Return from where on (sign 1), or up to where, bounds and tests in a loop say that what is
    used is not cut off, where loops around it or data decide that."""
    found = dict[Affine, None]()
    bound = bound_in(loop.body)
    for fact, inside in _facts_in(loop.body, loop.symbol, ()):
        rest = fact - var(loop.symbol) * sign
        if fact.coefficient(loop.symbol) != sign or loop.symbol in rest.symbols():
            continue
        if inside and inside[-1].symbol not in rest.symbols():
            continue  # the same in all rounds of the innermost loop: it keeps none from being fast
        place = extreme(rest * -1 if sign > 0 else rest + 1, ranges(inside), sign)
        if place is None or place.symbols() & (bound | {loop.symbol}):
            continue
        if (place - loop.lo).constant is None and (loop.hi - place).constant is None:
            found[place] = None
    return tuple(found) if len(found) <= MOST else ()


def _facts_in(
    body: Body, symbol: Symbol, inside: tuple[For, ...]
) -> Iterator[tuple[Affine, tuple[For, ...]]]:
    """Yield what is not negative where bounds in statements leave subscripts as they are, and tests
    hold; and the loops around these."""
    for stmt in body:
        deeper = (*inside, stmt) if isinstance(stmt, For) else inside
        targets = stmt.access.index if isinstance(stmt, Store | Update) else ()
        for index in targets:
            if isinstance(index, Affine):
                yield from ((fact, inside) for fact in _uncut(index, symbol))
        for expr in expressions_of(stmt):
            for part in walk(expr):
                said: Iterable[Affine] = ()
                match part:
                    case Read(_, places):
                        plain = (at for at in places if isinstance(at, Affine))
                        said = (fact for at in plain for fact in _uncut(at, symbol))
                    case Position(at):
                        said = _uncut(at, symbol)
                    case Select(test):
                        said = (fact for one in walk(test) for fact in facts(one))
                    case _ if isinstance(stmt, If):
                        said = facts(part)
                    case _:
                        pass
                yield from ((fact, inside) for fact in said)
        for one in bodies(stmt):
            yield from _facts_in(one, symbol, deeper)


def _uncut(index: Affine, symbol: Symbol) -> Iterator[Affine]:
    """Yield what is not negative where the bounds in an index leave what grows with a symbol."""
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            if atom.op in ("min", "max"):
                for one in _sides(atom.left):
                    for other in _sides(atom.right):
                        inside = symbol in one.symbols(), symbol in other.symbols()
                        if inside in ((True, False), (False, True)):
                            gap = one - other if inside[0] else other - one
                            yield gap if atom.op == "max" else gap * -1
            yield from _uncut(atom.left, symbol)
            yield from _uncut(atom.right, symbol)


def _places(body: Body, symbol: Symbol, inside: tuple[For, ...]) -> Iterator[Affine]:
    """Yield the places from which on, as a symbol grows, the answer to some question changes."""
    for stmt in body:
        for expr in expressions_of(stmt):
            for fact in _asked(expr, isinstance(stmt, If)):
                yield from _changes(fact, symbol, inside)
        if isinstance(stmt, Store | Update):
            for at in stmt.access.index:
                for fact in _bounded(at) if isinstance(at, Affine) else ():
                    yield from _changes(fact, symbol, inside)
        deeper = (*inside, stmt) if isinstance(stmt, For) else inside
        for one in bodies(stmt):
            yield from _places(one, symbol, deeper)


def _changes(fact: Affine, symbol: Symbol, inside: tuple[For, ...]) -> Iterator[Affine]:
    """Yield where a number that grows or shrinks with a symbol gets from one side of zero to the
    other: the first and the last such place, where loops inside have a part in it."""
    factor = fact.coefficient(symbol)
    rest = fact - var(symbol) * factor
    if factor not in (1, -1) or symbol in rest.symbols():
        return
    place = rest * -1 if factor == 1 else rest + 1
    for sign in (1, -1):
        end = extreme(place, ranges(inside), sign)
        if end is not None and not end.symbols() & {one.symbol for one in inside}:
            yield end


def _asked(expr: Expr, is_test: bool) -> Iterator[Affine]:
    """Yield numbers of which it matters in an expression whether they are negative."""
    for part in walk(expr):
        match part:
            case Read(_, index):
                for at in index:
                    yield from () if isinstance(at, Dynamic) else _bounded(at)
            case Position(index):
                yield from _bounded(index)
            case Select(test):
                for one in walk(test):
                    yield from facts(one)
            case _ if is_test:
                yield from facts(part)
            case _:
                pass


def _bounded(index: Affine) -> Iterator[Affine]:
    """Yield the same of an index."""
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            if atom.op in ("min", "max", "mod", "floordiv"):
                yield from (a - b for a in _sides(atom.left) for b in _sides(atom.right))
                yield from (atom.left,) if atom.op in ("mod", "floordiv") else ()
            yield from _bounded(atom.left)
            yield from _bounded(atom.right)


def _sides(index: Affine) -> tuple[Affine, ...]:
    """Return what an index may be where it is the smaller or the larger one of some."""
    match index:
        case Affine(((Quasi("min" | "max", left, right), 1),), offset):
            return tuple(one + offset for side in (left, right) for one in _sides(side))
        case _:
            return (index,)
