"""Parallel bands of loop nests: the loops whose iterations may be distributed over threads.

    Band := the loops without loop-carried dependences, outermost first, the serial loops
            inside of them, the body, and the temporaries that are private to each point

An inner loop may be interchanged outwards where its iterations are independent in all those around
it. Also here: trip counts, normalization and collapsing of loops, strides of accesses. Analysis
only, but for the functions that return rewritten loops.

>>> program = lowered('''
... for t in range(1, 8):
...     y[t, i] = y[t - 1, i] * x[t, i]
... ''', y="f32[8, 9]", x="f32[8, 9]")
>>> facts = facts_of(program)
>>> found = find_band(program.kernels[0].body[0], facts)
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
from ..ir.indexing import Affine, Range, Symbol, const, floordiv, mod, recombine_quotients, var
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement, substitute, with_bodies
from ..ir.walk import (
    bodies,
    direct_reads,
    direct_writes,
    expressions_of,
    parts,
    reads,
    statements,
    writes,
)
from .dependence import NO_BOUNDS, find_dependence, find_privatizable, has_break, loop_local_nodes
from .subscripts import ranges

MAX_ORDERED_AXES = 3
"""The axes of a grid; iterations distributed beyond these do not start in program order."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Analysis results about a whole program."""

    only: dict[int, tuple[Stmt, frozenset[int]]]
    """By the `id` of each loop: the loop, and the temporaries that only its body accesses."""
    all_nodes: frozenset[int]
    """The ids of all nodes."""
    exact: bool = False
    """Whether reductions are order-preserving."""
    bounds: Mapping[int, Bounds] = field(default_factory=dict)
    """By the `id` of each loop of the program: the bounds of the values around it."""

    def temporaries_in(self, loop: For) -> frozenset[int]:
        """Return the temporaries that only a loop accesses; none of a loop that is not known."""
        return self.only.get(id(loop), (loop, frozenset[int]()))[1]

    def tell(self, body: Iterable[Stmt], only: frozenset[int]) -> None:
        """Register loops that are new; `only` are temporaries that only these statements access."""
        body = tuple(body)
        total = count_uses(body)
        for stmt in statements(body):
            if isinstance(stmt, For) and id(stmt) not in self.only:
                body_uses = count_uses(stmt.body)
                loop_only = frozenset(
                    n for n in only if n in body_uses and body_uses[n] == total[n]
                )
                self.only[id(stmt)] = stmt, loop_only

    def private(self, loop: For) -> frozenset[int]:
        """Return the privatizable temporaries of a loop."""
        return privatizable_in(loop, self.temporaries_in(loop))

    def is_free(
        self, loop: For, privatized: frozenset[int] = frozenset(), outer: tuple[Range, ...] = (),
        bounds: Bounds = NO_BOUNDS,
    ) -> bool:  # fmt: skip
        """Whether the iterations of a loop are independent.

        `privatized` are the ids of nodes of which each iteration has a private copy; all nodes are
        taken to be unobservable, so that checks refuse nothing: see `has_checks`.
        """
        return find_dependence(loop, privatized, self.all_nodes, outer, bounds) is None

    def bounds_outside(self, loop: For) -> Bounds:
        """Return the bounds of the values around a loop, as far as they are known."""
        return self.bounds.get(id(loop), NO_BOUNDS)


@dataclass(frozen=True, slots=True)
class Band:
    """Loops around one body: those that may be distributed, then the serial ones inside of them."""

    free: tuple[For, ...]
    """The parallel loops, outermost first; their bodies are not to be used."""
    serial: tuple[For, ...]
    body: tuple[Stmt, ...]
    private: frozenset[int]
    """The temporaries that are private to each point."""
    inner: tuple[Stmt, ...]
    """What each point does: the body in the serial loops, as registered with the facts."""


def facts_of(program: Program, exact: bool = False) -> Facts:
    """Return the analysis results about a program; loops are identified by `id`."""
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    only = loop_local_nodes(program)
    loops = (s for kernel in program.kernels for s in statements(kernel.body))
    registered = {id(s): (s, only[id(s)]) for s in loops if isinstance(s, For)}
    bounds: dict[int, Bounds] = {}
    for kernel in program.kernels:
        _record_bounds(kernel.body, NO_BOUNDS, bounds)
    return Facts(dict(registered), frozenset(node.id for node in nodes), exact, bounds)


def _record_bounds(body: Iterable[Stmt], current: Bounds, bounds: dict[int, Bounds]) -> None:
    """Record the bounds of the values around each loop."""
    for stmt in body:
        inside = current
        if isinstance(stmt, For):
            bounds[id(stmt)] = current
            inside = current.inside(stmt)
        elif isinstance(stmt, Check):
            current = current.where(stmt.test)
        for side, part in enumerate(bodies(stmt)):
            branch = inside.where(stmt.test, not side) if isinstance(stmt, If) else inside
            _record_bounds(part, branch, bounds)


def find_band(loop: For, facts: Facts) -> Band | None:
    """Return the band of a nest, None where no loop of it may be distributed.

    Where checks may fail its loops keep their order: the first failure in program order is
    reported.
    """
    loops, body = perfect_nest(loop)
    only = facts.temporaries_in(loop)
    free: list[For] = []
    private_ids: frozenset[int] = frozenset()
    remaining = list(loops)
    in_order = has_checks(body)
    last = loops[-1] if has_break(body) else None  # whose iterations may end the innermost loop
    while remaining and not (in_order and len(free) == MAX_ORDERED_AXES):
        for at in range(1 if in_order else len(remaining)):
            moved = None if remaining[at] is last else _interchange_to_front(remaining, at)
            if moved is None:
                continue
            (interchanged,) = nest_loops(moved, body)
            assert isinstance(interchanged, For)
            candidate_ids = privatizable_in(interchanged, only)
            if facts.is_free(interchanged, candidate_ids, ranges(free), facts.bounds_outside(loop)):
                free.append(moved[0])
                private_ids, remaining = candidate_ids, moved[1:]
                break
        else:
            break
    if not free:
        return None
    if tuple(loop.symbol for loop in (*free, *remaining)) == tuple(x.symbol for x in loops):
        return Band(tuple(free), tuple(remaining), body, private_ids, loops[len(free) - 1].body)
    inner = nest_loops(remaining, body)
    facts.tell(inner, only)
    return Band(tuple(free), tuple(remaining), body, private_ids, inner)


def count_uses(body: Iterable[Stmt]) -> Counter[int]:
    """Return how often each node is read or written, by its id."""
    return Counter(n.id for s in statements(body) for n in (*direct_reads(s), *direct_writes(s)))


def has_checks(body: Iterable[Stmt]) -> bool:
    """Whether statements contain a check, which may fail."""
    return any(isinstance(stmt, Check) for stmt in statements(tuple(body)))


def privatizable_in(loop: For, only: frozenset[int]) -> frozenset[int]:
    """Return the privatizable temporaries among those `only` the loop accesses.

    The best value of an argmin or argmax is among them where every iteration starts with no
    position.
    """
    privatizable = find_privatizable(loop, only)
    inside = statements(loop.body)
    pairs = [s for s in inside if isinstance(s, Update) and s.pair is not None]
    initialized = {
        s.access.node.id for s in inside
        if isinstance(s, Store) and s.value == Const(-1, dtypes.int64)
    }  # fmt: skip
    best = {
        s.access.node.id for s in pairs
        if s.pair is not None and s.pair.access.node.id in privatizable & initialized
        and s.access.index == s.pair.access.index
    }  # fmt: skip
    otherwise_used = {
        n.id for s in inside for n in (*direct_reads(s), *direct_writes(s)) if s not in pairs
    }
    return privatizable | frozenset(best & only - otherwise_used)


def _interchange_to_front(loops: list[For], at: int) -> list[For] | None:
    """Return loops with one of them interchanged to the front; None where its bounds depend on
    those before it."""
    first = loops[at]
    bound_symbols = first.lo.symbols() | first.hi.symbols()
    if bound_symbols & {loop.symbol for loop in loops[:at]}:
        return None
    return [first, *loops[:at], *loops[at + 1 :]]


def perfect_nest(loop: For) -> tuple[tuple[For, ...], tuple[Stmt, ...]]:
    """Return the loops of a perfect nest, outermost first, and the body of the innermost."""
    loops = [loop]
    while True:
        inside = [stmt for stmt in loops[-1].body if not isinstance(stmt, Comment)]
        if len(inside) != 1 or not isinstance(inside[0], For):
            return tuple(loops), loops[-1].body
        loops.append(inside[0])


def nest_loops(loops: Iterable[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return loops nested around a body."""
    for loop in reversed([*loops]):
        body = (replace(loop, body=body),)
    return body


def replace_loops(
    body: Iterable[Stmt], facts: Facts,
    rewrite_loop: Callable[[For, tuple[For, ...]], tuple[Stmt, ...]], outer: tuple[For, ...] = (),
) -> tuple[Stmt, ...]:  # fmt: skip
    """Return statements with each loop replaced by what `rewrite_loop` returns, given the loops
    around it; where that is empty, the loops inside are asked. The facts are updated."""
    out: list[Stmt] = []
    for stmt in body:
        replaced = rewrite_loop(stmt, outer) if isinstance(stmt, For) else ()
        if not replaced:
            inner = (*outer, stmt) if isinstance(stmt, For) else outer
            lists = tuple(
                replace_loops(nested, facts, rewrite_loop, inner) for nested in bodies(stmt)
            )
            replaced = (stmt,)
            if lists != bodies(stmt):
                replaced = (with_bodies(stmt, lists),)
                if isinstance(stmt, For):
                    facts.tell(replaced, facts.temporaries_in(stmt))
        out += replaced
    return tuple(out)


def static_trip_count(loop: For) -> int | None:
    """Return the static trip count of a loop, None where it depends on run-time values."""
    count = trip_count(loop).constant
    return None if count is None else max(0, count)


def trip_count(loop: For) -> Affine:
    """Return the trip count of a loop; zero or less where it has no iteration."""
    by = abs(loop.step)
    gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    return floordiv(gap + (by - 1), const(by))


def normalize(loop: For, symbol: Symbol) -> tuple[For, Affine]:
    """Return the normalized loop (from 0, in steps of one), and the value of its old variable
    there."""
    value = loop.lo + var(symbol) * loop.step
    return replace(loop, symbol=symbol, lo=const(0), hi=trip_count(loop), step=1), value


def substitute_symbol(body: tuple[Stmt, ...], symbol: Symbol, value: Affine) -> tuple[Stmt, ...]:
    """Return statements with an index expression substituted for a symbol."""
    return substitute(body, {symbol: value})


def collapse_static(
    loops: Sequence[For], body: tuple[Stmt, ...], fresh: Fresh
) -> tuple[list[For], tuple[Stmt, ...]]:
    """Return loops with those of static trip count collapsed into one, in program order.

    Linear combinations of their variables that increase by one from iteration to iteration are
    simplified to the variable of the collapsed loop.
    """
    static = [loop for loop in loops if is_static(loop)]
    others = [loop for loop in loops if loop not in static]
    total = prod(static_trip_count(loop) or 0 for loop in static)
    symbol = fresh.symbol("point")
    inner = 1
    for loop in reversed(static):
        count = static_trip_count(loop) or 0
        part = floordiv(var(symbol), const(inner))
        if loop is not static[0]:
            part = mod(part, const(max(count, 1)))
        body = substitute_symbol(body, loop.symbol, loop.lo + part)
        inner *= max(count, 1)
    recombine = Rewrite(index=recombine_quotients)
    body = map_statements(body, lambda stmt: (rebuild_statement(stmt, recombine),))
    return [*others, replace(static[0], symbol=symbol, lo=const(0), hi=const(total))], body


def is_static(loop: For) -> bool:
    """Whether the trip count and the start of a loop are static."""
    return static_trip_count(loop) is not None and loop.lo.constant is not None


def collapse(
    loops: Sequence[For], body: tuple[Stmt, ...], fresh: Fresh, in_order: bool
) -> tuple[For, tuple[Stmt, ...]] | None:
    """Return a perfect nest collapsed into one loop; None where not all trip counts are static.

    Unless they have to stay `in_order`, the loop along which accesses are contiguous comes last.
    """
    if len(loops) < 2 or not all(is_static(loop) and loop.step == 1 for loop in loops):
        return None
    ordered = list(loops)
    if not in_order:
        at = max(range(len(loops)), key=lambda k: (contiguity_score(body, loops[k].symbol), k))
        ordered.append(ordered.pop(at))
    (loop,), collapsed = collapse_static(ordered, body, fresh)
    return loop, collapsed


def producer_loops(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the loops in an iteration's body that produce what the rest of it reads: all of them
    where there is no rest."""
    rest = [stmt for stmt in body if not isinstance(stmt, For)]
    used = {node.id for node in reads(rest)}
    loops = tuple(stmt for stmt in body if isinstance(stmt, For))
    if all(isinstance(stmt, Comment) for stmt in rest):
        return loops
    return tuple(loop for loop in loops if used & {node.id for node in writes((loop,))})


def largest_trip_count(body: Iterable[Stmt], bounds: Bounds | None = None) -> int:
    """Return the greatest trip count of a nest in statements, as far as it is bounded by what is
    the `bounds`; 1 where there is none."""
    bounds, most = Bounds() if bounds is None else bounds, 1
    for stmt in body:
        inside = bounds.inside(stmt) if isinstance(stmt, For) else bounds
        count = max(bounds.most(trip_count(stmt)) or 0, 0) if isinstance(stmt, For) else 1
        most = max(most, *(count * largest_trip_count(part, inside) for part in bodies(stmt)), 1)
    return most


def contiguity_score(body: Iterable[Stmt], symbol: Symbol) -> int:
    """Return a score of running neighbouring iterations of a symbol at once.

    Contiguous accesses count for it, strided ones against it.
    """
    score = 0
    for node, index in array_accesses(body):
        distance = iteration_stride(node, index, symbol)
        if distance is None or abs(distance) > 1:
            score -= 1
        elif distance:
            score += 1
    return score


def array_accesses(body: Iterable[Stmt]) -> Iterator[tuple[Node, tuple[Index, ...]]]:
    """Yield every array access of statements, with the index."""
    for stmt in statements(body):
        yield from ((a.node, a.index) for a in parts(stmt).targets if a.node.rank)
        for expr in expressions_of(stmt):
            yield from ((r.node, r.index) for r in reads_of(expr) if r.node.rank)


def iteration_stride(node: Node, index: tuple[Index, ...], symbol: Symbol) -> int | None:
    """Return the stride of an access, in elements, from one iteration to the next; None where it
    varies."""
    total = 0
    for subscript, stride in zip(index, node.element_strides, strict=True):
        if isinstance(subscript, Dynamic):
            return None
        factor = subscript.coefficient(symbol)
        rest = subscript - var(symbol) * factor
        if symbol in rest.symbols():
            return None
        if factor:
            if stride.constant is None:
                return None
            total += factor * stride.constant
    return total


def contiguous_axis(node: Node, index: tuple[Index, ...], symbol: Symbol) -> int | None:
    """Return the axis, counted from the last one, along which iterations access neighbours in
    memory; None where they do not, or move along several axes."""
    if iteration_stride(node, index, symbol) != 1:
        return None
    axes = [
        axis - node.rank for axis, one in enumerate(index)
        if isinstance(one, Affine) and symbol in one.symbols()
    ]  # fmt: skip
    return axes[0] if len(axes) == 1 else None
