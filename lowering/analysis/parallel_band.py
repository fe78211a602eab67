"""Perfect nests of loops: which of them have points that may be dealt out, and in which order.

    Band := the loops whose rounds depend on nothing, outermost first, those that stay in order
            inside of them, the body, and the temporaries of which each point has its own

A loop further in may come to the front where its rounds are independent of all those around it. It
changes nothing by itself.

>>> program = lowered('''
... for t in range(1, 8):
...     y[t, i] = y[t - 1, i] * x[t, i]
... ''', y="f32[8, 9]", x="f32[8, 9]")
>>> facts = facts_of(program)
>>> found = band(program.kernels[0].body[0], facts)
>>> [loop.symbol.name for loop in found.free], [loop.symbol.name for loop in found.serial]
(['i'], ['t'])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.bounds import Bounds
from ..ir.expressions import Const, Dynamic, Index
from ..ir.expressions import reads as reads_of
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Range, Symbol, const, floordiv, mod, recombined, var
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement, substitute, with_bodies
from ..ir.walk import (
    bodies,
    expressions_of,
    own_reads,
    own_writes,
    parts,
    reads,
    statements,
    writes,
)
from .dependence import NOTHING, confined, independent, is_left, private
from .subscripts import ranges

MOST_IN_ORDER = 3
"""A grid has so many axes; what is dealt out beyond that is not done in its order."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a whole program."""

    only: dict[int, tuple[Stmt, frozenset[int]]]
    """By the `id` of each loop: the loop, and the temporaries that only its body uses."""
    everything: frozenset[int]
    """The ids of all nodes."""
    exact: bool = False
    """Whether sums keep the order of the program."""
    bounds: Mapping[int, Bounds] = field(default_factory=dict)
    """By the `id` of each loop of the program: what the numbers around it are between."""

    def only_in(self, loop: For) -> frozenset[int]:
        """Return the temporaries that only a loop uses; none of a loop that is not known."""
        return self.only.get(id(loop), (loop, frozenset[int]()))[1]

    def tell(self, body: Iterable[Stmt], only: frozenset[int]) -> None:
        """Make loops known that are new; `only` are temporaries that only these statements use."""
        body = tuple(body)
        total = uses_of(body)
        for stmt in statements(body):
            if isinstance(stmt, For) and id(stmt) not in self.only:
                here = uses_of(stmt.body)
                theirs = frozenset(n for n in only if n in here and here[n] == total[n])
                self.only[id(stmt)] = stmt, theirs

    def private(self, loop: For) -> frozenset[int]:
        """Return the temporaries of which each round of a loop may have its own."""
        return own_of(loop, self.only_in(loop))

    def is_free(
        self, loop: For, own: frozenset[int] = frozenset(), outer: tuple[Range, ...] = (),
        known: Bounds = NOTHING,
    ) -> bool:  # fmt: skip
        """Whether the rounds of a loop may run in any order, `own` being each round's own."""
        return independent(loop, own, self.everything, outer, known) is None

    def around(self, loop: For) -> Bounds:
        """Return what the numbers around a loop are between, if it is known."""
        return self.bounds.get(id(loop), NOTHING)


@dataclass(frozen=True, slots=True)
class Band:
    """Loops around one body: those that may be dealt out, then those inside of them."""

    free: tuple[For, ...]
    """Outermost first; what is in their bodies is not looked at."""
    serial: tuple[For, ...]
    body: tuple[Stmt, ...]
    private: frozenset[int]
    """The temporaries of which each point has its own."""
    inner: tuple[Stmt, ...]
    """What each point does: the body in the serial loops, as the facts know it."""


def facts_of(program: Program, exact: bool = False) -> Facts:
    """Return what is known of a program; the loops are told apart by their identity."""
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    only = confined(program)
    loops = (s for kernel in program.kernels for s in statements(kernel.body))
    known = {id(s): (s, only[id(s)]) for s in loops if isinstance(s, For)}
    bounds: dict[int, Bounds] = {}
    for kernel in program.kernels:
        _bound(kernel.body, NOTHING, bounds)
    return Facts(dict(known), frozenset(node.id for node in nodes), exact, bounds)


def _bound(body: Iterable[Stmt], known: Bounds, found: dict[int, Bounds]) -> None:
    """Put down what the numbers around each loop are between."""
    for stmt in body:
        inside = known
        if isinstance(stmt, For):
            found[id(stmt)] = known
            inside = known.inside(stmt)
        elif isinstance(stmt, Check):
            known = known.where(stmt.test)
        for side, part in enumerate(bodies(stmt)):
            there = inside.where(stmt.test, not side) if isinstance(stmt, If) else inside
            _bound(part, there, found)


def band(loop: For, facts: Facts) -> Band | None:
    """Return the band of a nest, None where no loop of it may be dealt out.

    Where checks may fail its loops keep their order: of several the first is told.
    """
    loops, body = nest_of(loop)
    only = facts.only_in(loop)
    free: list[For] = []
    own: frozenset[int] = frozenset()
    left = list(loops)
    in_order = fails(body)
    last = loops[-1] if is_left(body) else None  # whose rounds end what is innermost
    while left and not (in_order and len(free) == MOST_IN_ORDER):
        for at in range(1 if in_order else len(left)):
            moved = None if left[at] is last else _moved(left, at)
            if moved is None:
                continue
            (whole,) = around(moved, body)
            assert isinstance(whole, For)
            mine = own_of(whole, only)
            if facts.is_free(whole, mine, ranges(free), facts.around(loop)):
                free.append(moved[0])
                own, left = mine, moved[1:]
                break
        else:
            break
    if not free:
        return None
    if tuple(loop.symbol for loop in (*free, *left)) == tuple(x.symbol for x in loops):
        return Band(tuple(free), tuple(left), body, own, loops[len(free) - 1].body)
    inner = around(left, body)
    facts.tell(inner, only)
    return Band(tuple(free), tuple(left), body, own, inner)


def uses_of(body: Iterable[Stmt]) -> Counter[int]:
    """Return how often each node is read or written."""
    return Counter(n.id for s in statements(body) for n in (*own_reads(s), *own_writes(s)))


def fails(body: Iterable[Stmt]) -> bool:
    """Whether a check in statements may fail."""
    return any(isinstance(stmt, Check) for stmt in statements(tuple(body)))


def own_of(loop: For, only: frozenset[int]) -> frozenset[int]:
    """Return those temporaries, of which `only` the loop uses, that no round has from another.

    The best value of an argmin or argmax is among them where every round starts with no position.
    """
    found = private(loop, only)
    inside = statements(loop.body)
    pairs = [s for s in inside if isinstance(s, Update) and s.pair is not None]
    started = {
        s.access.node.id for s in inside
        if isinstance(s, Store) and s.value == Const(-1, dtypes.int64)
    }  # fmt: skip
    best = {
        s.access.node.id for s in pairs
        if s.pair is not None and s.pair.access.node.id in found & started
        and s.access.index == s.pair.access.index
    }  # fmt: skip
    others = {n.id for s in inside for n in (*own_reads(s), *own_writes(s)) if s not in pairs}
    return found | frozenset(best & only - others)


def _moved(loops: list[For], at: int) -> list[For] | None:
    """Return loops with one of them in front; None where its bounds need those before it."""
    first = loops[at]
    used = first.lo.symbols() | first.hi.symbols()
    if used & {loop.symbol for loop in loops[:at]}:
        return None
    return [first, *loops[:at], *loops[at + 1 :]]


def nest_of(loop: For) -> tuple[tuple[For, ...], tuple[Stmt, ...]]:
    """Return the loops that stand directly in each other, and what the innermost does."""
    loops = [loop]
    while True:
        inside = [stmt for stmt in loops[-1].body if not isinstance(stmt, Comment)]
        if len(inside) != 1 or not isinstance(inside[0], For):
            return tuple(loops), loops[-1].body
        loops.append(inside[0])


def around(loops: Iterable[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return loops in each other around a body."""
    for loop in reversed([*loops]):
        body = (replace(loop, body=body),)
    return body


def with_loops(
    body: Iterable[Stmt], facts: Facts,
    made: Callable[[For, tuple[For, ...]], tuple[Stmt, ...]], outer: tuple[For, ...] = (),
) -> tuple[Stmt, ...]:  # fmt: skip
    """Return statements with what is made of each loop in its place, of those inside where nothing
    is; it is given the loops around it, too, and the facts hold afterwards."""
    out: list[Stmt] = []
    for stmt in body:
        turned = made(stmt, outer) if isinstance(stmt, For) else ()
        if not turned:
            inner = (*outer, stmt) if isinstance(stmt, For) else outer
            lists = tuple(with_loops(one, facts, made, inner) for one in bodies(stmt))
            turned = (stmt,)
            if lists != bodies(stmt):
                turned = (with_bodies(stmt, lists),)
                if isinstance(stmt, For):
                    facts.tell(turned, facts.only_in(stmt))
        out += turned
    return tuple(out)


def trips(loop: For) -> int | None:
    """Return how many rounds a loop has, None where that is only known in the run."""
    count = rounds_of(loop).constant
    return None if count is None else max(0, count)


def rounds_of(loop: For) -> Affine:
    """Return how many rounds a loop has; zero or less where it has none."""
    by = abs(loop.step)
    gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    return floordiv(gap + (by - 1), const(by))


def normal(loop: For, symbol: Symbol) -> tuple[For, Affine]:
    """Return a loop that counts from 0 in steps of one, and what its old variable is there."""
    value = loop.lo + var(symbol) * loop.step
    return replace(loop, symbol=symbol, lo=const(0), hi=rounds_of(loop), step=1), value


def with_value(body: tuple[Stmt, ...], symbol: Symbol, value: Affine) -> tuple[Stmt, ...]:
    """Return statements in which a symbol is an index expression."""
    return substitute(body, {symbol: value})


def counted(
    loops: Sequence[For], body: tuple[Stmt, ...], fresh: Fresh
) -> tuple[list[For], tuple[Stmt, ...]]:
    """Return loops in which all whose rounds are known are one, in the order of the program.

    Positions of theirs that count on from round to round are those of the one loop.
    """
    known = [loop for loop in loops if is_known(loop)]
    others = [loop for loop in loops if loop not in known]
    total = prod(trips(loop) or 0 for loop in known)
    symbol = fresh.symbol("point")
    inner = 1
    for loop in reversed(known):
        count = trips(loop) or 0
        part = floordiv(var(symbol), const(inner))
        if loop is not known[0]:
            part = mod(part, const(max(count, 1)))
        body = with_value(body, loop.symbol, loop.lo + part)
        inner *= max(count, 1)
    simple = Rewrite(index=recombined)
    body = map_statements(body, lambda stmt: (rebuild_statement(stmt, simple),))
    return [*others, replace(known[0], symbol=symbol, lo=const(0), hi=const(total))], body


def is_known(loop: For) -> bool:
    """Whether the rounds of a loop are known, and the first of them."""
    return trips(loop) is not None and loop.lo.constant is not None


def as_one(
    loops: Sequence[For], body: tuple[Stmt, ...], fresh: Fresh, in_order: bool
) -> tuple[For, tuple[Stmt, ...]] | None:
    """Return loops that stand directly in each other as one; None where not all are known.

    Unless they have to stay `in_order`, that of them whose neighbours are neighbours in memory
    comes last.
    """
    if len(loops) < 2 or not all(is_known(loop) and loop.step == 1 for loop in loops):
        return None
    ordered = list(loops)
    if not in_order:
        at = max(range(len(loops)), key=lambda k: (favours(body, loops[k].symbol), k))
        ordered.append(ordered.pop(at))
    (one,), made = counted(ordered, body, fresh)
    return one, made


def found_in(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the loops of a round that find what is added in it, of those that stand in it: all of
    them where it adds nothing but in them."""
    plain = [stmt for stmt in body if not isinstance(stmt, For)]
    used = {node.id for node in reads(plain)}
    loops = tuple(stmt for stmt in body if isinstance(stmt, For))
    if all(isinstance(stmt, Comment) for stmt in plain):
        return loops
    return tuple(loop for loop in loops if used & {node.id for node in writes((loop,))})


def within(body: Iterable[Stmt], known: Bounds | None = None) -> int:
    """Return how many rounds the largest nest in statements has at most, as far as that is `known`
    of the numbers in it; 1 where there is none."""
    known, most = Bounds() if known is None else known, 1
    for stmt in body:
        inside = known.inside(stmt) if isinstance(stmt, For) else known
        rounds = max(known.most(rounds_of(stmt)) or 0, 0) if isinstance(stmt, For) else 1
        most = max(most, *(rounds * within(part, inside) for part in bodies(stmt)), 1)
    return most


def favours(body: Iterable[Stmt], symbol: Symbol) -> int:
    """Return how much it is worth that neighbours of a symbol are done at once.

    Accesses whose neighbours are neighbours in memory count for it, those far apart against it.
    """
    score = 0
    for node, index in accesses_of(body):
        distance = distance_of(node, index, symbol)
        if distance is None or abs(distance) > 1:
            score -= 1
        elif distance:
            score += 1
    return score


def accesses_of(body: Iterable[Stmt]) -> Iterator[tuple[Node, tuple[Index, ...]]]:
    """Yield every array that statements read or write, with the index."""
    for stmt in statements(body):
        yield from ((a.node, a.index) for a in parts(stmt).targets if a.node.rank)
        for expr in expressions_of(stmt):
            yield from ((r.node, r.index) for r in reads_of(expr) if r.node.rank)


def distance_of(node: Node, index: tuple[Index, ...], symbol: Symbol) -> int | None:
    """Return how many elements apart an access is in neighbouring rounds; None: that varies."""
    total = 0
    for one, stride in zip(index, node.element_strides, strict=True):
        if isinstance(one, Dynamic):
            return None
        factor = one.coefficient(symbol)
        rest = one - var(symbol) * factor
        if symbol in rest.symbols():
            return None
        if factor:
            if stride.constant is None:
                return None
            total += factor * stride.constant
    return total
