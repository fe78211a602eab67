"""Loops in time that keep few states: the values that their adjoints read again are computed again.

The state is what an iteration reads before it writes it, and what the loop writes. A loop is cut
into segments (see `segments`): the arrays that keep values have an axis for the iterations of one
segment, and are used by all. Only loops without loops around them are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from math import isqrt, prod

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ..ir import dtypes
from ..ir.assignments import (
    Alloc,
    Block,
    Branch,
    Check,
    For,
    Let,
    Print,
    Statement,
)
from ..ir.expressions import Cast, Expr, Position
from ..ir.indexing import Affine, const, evaluate, maximum, minimum, var
from ..ir.node import Node
from ..ir.rewrite import map_statements, rename
from ..ir.walk import bodies, reads, statements
from ..ir.walk import writes as written_nodes
from .kept import Kept, Names, UnknownSize, places, trip_count, writes
from .rules import NotDifferentiable, apply
from .segments import Region, binomial, ceiling, equidistant, iterations, sweeps
from .simplify import live_before

Body = tuple[Statement, ...]
Write = Callable[[For, Kept, Mapping[int, Node]], tuple[Body, Body]]
"""Writes a loop that keeps values, and its adjoint, for a loop in which arrays (by id) have others
in their place."""


MOST_CHOICES = 256
"""How many lengths of segments are compared."""


@dataclass(frozen=True, slots=True)
class Segments:
    """How a loop is cut: how many checkpoints it has at once, and the iterations of a segment."""

    checkpoints: int
    length: int


@dataclass(frozen=True, slots=True)
class Memory:
    """How many states of a loop may be held at once; None for twice the root of its iterations."""

    states: int | None = None

    def segments(self, iterations: int) -> Segments | None:
        """Return how a loop is cut; None where all states may be held.

        One state is held for each checkpoint, and for each iteration of a segment. Where the root
        of the iterations is too much of both, there are fewer checkpoints than segments.
        """
        root = isqrt(max(iterations, 1) - 1) + 1
        whole = Segments(-(-iterations // root), root)
        if self.states is None:
            return None if iterations < 4 else whole
        if iterations <= self.states:
            return None
        if whole.checkpoints + root <= self.states:
            return whole
        return min(self._choices(iterations), key=lambda one: _cost(iterations, one))

    def _choices(self, iterations: int) -> Iterator[Segments]:
        """Yield ways to hold the states that may be held."""
        states = max(2, self.states or 0)
        for length in range(1, states, max(1, states // MOST_CHOICES)):
            yield Segments(min(states - length, -(-iterations // length)), length)

    def of_run_time(self) -> Segments:
        """Return how a loop is cut whose number of iterations is known when it runs."""
        states = max(2, self.states or 0)
        return Segments(states - states // 2, states // 2)


def _cost(iterations: int, one: Segments) -> tuple[int, int]:
    """Return how many iterations run in all before their values are kept, and then how many states
    are saved, about."""
    segments = -(-iterations // one.length)
    return sweeps(segments, one.checkpoints) * one.length, segments


@dataclass(slots=True)
class Checkpoints:
    """Cuts outermost loops into segments."""

    names: Names
    kept: Kept
    memory: Memory
    unsure: Collection[int]
    """Arrays that may have no storage: they are created on one side of a test."""
    sizes: list[Let] = field(default_factory=list)
    """The lengths of segments that are known at run time, to be bound before."""
    whole: list[tuple[str, Span]] = field(default_factory=list)
    """The loops that keep all states, with the reasons."""

    def loop(self, stmt: For, before: list[Statement], write: Write) -> tuple[Body, Body] | None:
        """Return a loop with checkpoints, and its adjoint; None where it keeps no value or may keep
        all. `before` receives what keeps values at its begin."""
        if self.kept.places[id(stmt)].loops:
            return None
        most = maximum(self.kept.bounded(trip_count(stmt), ()), const(0))
        sizes: list[Let] = []
        cut = self._sizes(most, sizes)
        if cut is None:
            return None
        try:
            made = self._cut(stmt, most, *cut, before, write)
        except UnknownSize:
            raise
        except NotDifferentiable as why:
            self.whole.append((why.reason, stmt.span))
            return None
        self.sizes += sizes if made else []
        return made

    def _sizes(self, most: Affine, sizes: list[Let]) -> tuple[Affine, Affine] | None:
        """Return how many checkpoints a loop has, and the length of segments; `sizes` receives what
        binds those of run time."""
        if most.constant is not None:
            cut = self.memory.segments(most.constant)
            return None if cut is None else (const(cut.checkpoints), const(cut.length))

        def bound(name: str, value: Expr) -> Affine:
            sizes.append(Let(self.names.symbol(name), value))
            return var(sizes[-1].symbol)

        longest = maximum(most, const(1))
        root = apply("sqrt", Cast(Position(longest), dtypes.float64))
        length = bound("length", Cast(apply("ceil", root), dtypes.int64))
        if self.memory.states is None:
            return ceiling(longest, length), length
        cut = self.memory.of_run_time()
        length = bound("length", Position(minimum(const(cut.length), length)))
        fewest = minimum(const(cut.checkpoints), ceiling(longest, length))
        return bound("slots", Position(fewest)), length

    def _cut(
        self,
        stmt: For,
        most: Affine,
        slots: Affine,
        length: Affine,
        before: list[Statement],
        write: Write,
    ) -> tuple[Body, Body] | None:
        names, place = self.names, self.kept.places[id(stmt)]
        (quiet,) = _quiet((stmt,)) or (stmt,)
        copies = {
            node.id: names.array(f"{node.label}_again", node.shape, node.dtype)
            for node in written_nodes((quiet,))
        }
        entered = {
            node.id: self.kept.array(node, place, before)[0]
            for node in reads((quiet,))
            if node.id not in copies and not self.kept.is_stable(node, place)
        }
        instead = {**copies, **entered}
        (again,) = rename((quiet,), {}, instead)
        assert isinstance(again, For), "it is the same loop"
        first, count = names.symbol("first"), names.symbol("count")
        taped = iterations(again, var(first), var(count))
        at = places((taped,))
        limits = {
            **self.kept.limits,
            count: (const(0), length),
            first: (const(0), maximum(most - 1, const(0))),
        }
        kept = Kept(names, at, writes((taped,), at), limits)
        forward, backward = write(taped, kept, instead)
        if not backward or not (kept.arrays or kept.values):
            return None
        live = live_before(forward, [copy.id for copy in copies.values()])
        state = [n for n in written_nodes((quiet,)) if copies[n.id].id in live]
        self._require_storage(stmt, state)
        tapes = [*kept.arrays.values(), *kept.values.values()]
        if self._is_larger(most, state, tapes):
            text = "its state is larger than what its iterations keep"
            raise NotDifferentiable(text, stmt.span)
        checkpoints = {node: self._checkpoint(node, slots) for node in state}
        self.kept.allocations += kept.allocations
        region = Region(
            names, stmt, again, length, copies, checkpoints, (first, count), (*forward, *backward)
        )
        if self._has_all(most, slots, length):
            return equidistant(region)
        held = names.array("places", (slots,), dtypes.int64)
        self.kept.allocations += [Alloc(held)] if held.static_shape is None else []
        return binomial(region, slots, held)

    def _has_all(self, most: Affine, slots: Affine, length: Affine) -> bool:
        """Whether each segment has a checkpoint of its own."""
        if self.memory.states is None:
            return True
        segments = ceiling(most, length).constant
        return segments is not None and segments <= (slots.constant or 0)

    def _is_larger(self, most: Affine, state: Sequence[Node], tapes: Sequence[Node]) -> bool:
        """Whether checkpoints are larger than what they save; of run-time sizes by a guess."""
        iterations = _guess(most)
        cut = self.memory.segments(iterations) or Segments(1, iterations)
        each = sum(_bytes(node.shape[1:], node) for node in tapes)
        held = cut.length * each + cut.checkpoints * sum(_bytes(n.shape, n) for n in state)
        return held > iterations * each

    def _require_storage(self, stmt: For, state: Sequence[Node]) -> None:
        """Refuse a state that may have no storage where the loop begins."""
        inside = {s.node.id for s in statements(stmt.body) if isinstance(s, Alloc)}
        for node in state:
            if node.id in inside or node.id in self.unsure:
                text = f"`{node.label}` may not have been created where the loop begins"
                raise NotDifferentiable(text, stmt.span)

    def _checkpoint(self, node: Node, count: Affine) -> Node:
        """Return an array for so many states of another one."""
        shape = (count, *(self.kept.bounded(extent, ()) for extent in node.shape))
        new = self.names.array(f"{node.label}_checkpoint", shape, node.dtype)
        if new.static_shape is None:
            self.kept.allocations.append(Alloc(new))
        return new


def _bytes(shape: Sequence[Affine], node: Node) -> int:
    return prod(map(_guess, shape)) * node.dtype.numpy.itemsize


def _guess(size: Affine) -> int:
    """Return a size, for a large value of those that are known at run time."""
    return max(1, evaluate(size, dict.fromkeys(size.symbols(), 1000)))


def _quiet(body: Body) -> Body:
    """Return statements that say and check nothing: they ran before."""

    def change(stmt: Statement) -> Body:
        match stmt:
            case Print() | Check():
                return ()
            case For() | Branch() | Block() if not any(bodies(stmt)):
                return ()
            case _:
                return (stmt,)

    return map_statements(body, change)
