"""Loops in time that keep few states: the values that their adjoints read again are computed again.

    forward     for each segment of a loop:    checkpoint[segment] = state;  its iterations
    backward    for each segment in reverse:   copies = checkpoint[segment]
                                               its iterations on the copies, whose values are kept
                                               their adjoints in reverse

The state is what an iteration reads before it writes it, and what the loop writes. The arrays that
keep values have an axis for the iterations of one segment, and are used by all. With several levels
a segment is cut into segments in the same way: `d` levels of `m` states each are enough for `m**d`
iterations, which run `d` times. Only loops without loops around them are cut.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., section 12.2 (multilevel
checkpointing).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
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
from ..ir.expressions import Cast, Const, Expr, Position
from ..ir.indexing import Affine, Symbol, const, evaluate, floordiv, maximum, minimum, multiply, var
from ..ir.node import Node
from ..ir.rewrite import map_statements, rename
from ..ir.walk import bodies, reads, statements
from ..ir.walk import writes as written_nodes
from .kept import Kept, Names, UnknownSize, places, trip_count, writes
from .rules import NotDifferentiable, apply
from .simplify import live_before

Body = tuple[Statement, ...]
Write = Callable[[For, Kept, Mapping[int, Node]], tuple[Body, Body]]
"""Writes a loop that keeps values, and its adjoint, for a loop in which arrays (by id) have others
in their place."""
MOST_LEVELS = 6
RUN_TIME_LEVELS = 3
"""Levels of loops whose number of iterations is a run-time value."""


@dataclass(frozen=True, slots=True)
class Memory:
    """How many states of a loop may be held at once, about; None for twice the root of its
    iterations."""

    states: int | None = None

    def lengths(self, iterations: int) -> tuple[int, ...]:
        """Return the lengths of segments, outer ones first; none where all states may be held."""
        levels = 2
        if self.states is None:
            return () if iterations < 4 else (isqrt(iterations - 1) + 1,)
        if iterations <= self.states:
            return ()
        while levels < MOST_LEVELS and levels * (_root(iterations, levels) - 1) >= self.states:
            levels += 1
        each = _root(iterations, levels)
        powers = [each**level for level in range(levels - 1, 0, -1)]
        return tuple(power for power in powers if power < iterations)


def _root(number: int, degree: int) -> int:
    """Return the least whole number whose power is not below a number."""
    root = max(1, int(float(number) ** (1.0 / degree)) - 1)
    while root**degree < number:
        root += 1
    return root


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
        lengths = self._lengths(most, sizes)
        if not lengths:
            return None
        try:
            made = self._cut(stmt, most, lengths, before, write)
        except UnknownSize:
            raise
        except NotDifferentiable as why:
            self.whole.append((why.reason, stmt.span))
            return None
        self.sizes += sizes if made else []
        return made

    def _lengths(self, most: Affine, sizes: list[Let]) -> tuple[Affine, ...]:
        """Return the lengths of segments; `sizes` receives what binds those of run time."""
        if most.constant is not None:
            return tuple(map(const, self.memory.lengths(most.constant)))
        levels = 2 if self.memory.states is None else RUN_TIME_LEVELS

        def bound(value: Expr) -> Affine:
            sizes.append(Let(self.names.symbol("length"), value))
            return var(sizes[-1].symbol)

        number = Cast(Position(maximum(most, const(1))), dtypes.float64)
        power = Const(1.0 / levels, dtypes.float64)
        root = apply("sqrt", number) if levels == 2 else apply("pow", number, power)
        each = bound(Cast(apply("ceil", root), dtypes.int64))
        if self.memory.states is not None:
            least = -(-self.memory.states // levels)
            each = bound(Position(maximum(each, const(least))))
        found = [each]
        while len(found) < levels - 1:
            found.insert(0, bound(Position(multiply(found[0], each))))
        longest = maximum(most, const(1))
        return tuple(bound(Position(minimum(length, longest))) for length in found)

    def _cut(
        self,
        stmt: For,
        most: Affine,
        lengths: tuple[Affine, ...],
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
        taped = _iterations(again, var(first), var(count))
        at = places((taped,))
        limits = {
            **self.kept.limits,
            count: (const(0), lengths[-1]),
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
        counts = (most, *lengths)
        arrays = tuple(
            {node.id: self._checkpoint(node, _ceiling(counts[level], length)) for node in state}
            for level, length in enumerate(lengths)
        )
        self.kept.allocations += kept.allocations
        region = _Region(
            names, stmt, again, lengths, state, copies, arrays, (first, count),
            (*forward, *backward),
        )  # fmt: skip
        return region.forward(), region.backward()

    def _is_larger(self, most: Affine, state: Sequence[Node], tapes: Sequence[Node]) -> bool:
        """Whether checkpoints are larger than what they save; of run-time sizes by a guess."""
        iterations = _guess(most)
        lengths = self.memory.lengths(iterations) or (iterations,)
        pairs = zip((iterations, *lengths), lengths, strict=False)
        segments = sum(-(-whole // length) for whole, length in pairs)
        each = sum(_bytes(node.shape[1:], node) for node in tapes)
        held = lengths[-1] * each + segments * sum(_bytes(node.shape, node) for node in state)
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


@dataclass(frozen=True, slots=True)
class _Region:
    """A loop that is cut into segments."""

    names: Names
    loop: For
    again: For
    """The loop on copies of what it writes."""
    lengths: tuple[Affine, ...]
    state: Sequence[Node]
    copies: Mapping[int, Node]
    checkpoints: tuple[Mapping[int, Node], ...]
    """The arrays of each level, by the ids of those whose states they hold."""
    last: tuple[Symbol, Symbol]
    """The first iteration of an innermost segment, and how many it has."""
    taped: Body
    """The iterations of an innermost segment that keep values, and their adjoints."""

    def forward(self) -> Body:
        """Return the loop that leaves checkpoints."""
        segment, first, count = map(self.names.symbol, ("segment", "first", "count"))
        whole, length = maximum(trip_count(self.loop), const(0)), self.lengths[0]
        body = (
            *_bounds(first, count, const(0), whole, segment, length),
            *self._saved(0, var(segment), {}),
            _iterations(self.loop, var(first), var(count)),
        )
        return (For(segment, const(0), _ceiling(whole, length), 1, body, self.loop.span),)

    def backward(self) -> Body:
        """Return the adjoint of the loop."""
        inside = {s.node.id for s in statements(self.again.body) if isinstance(s, Alloc)}
        created = [
            Alloc(copy) for copy in self.copies.values()
            if copy.static_shape is None and copy.id not in inside
        ]  # fmt: skip
        whole = maximum(trip_count(self.loop), const(0))
        return (*created, self._reversed(0, const(0), whole))

    def _reversed(self, level: int, origin: Affine, whole: Affine) -> For:
        """Return the adjoints of iterations, segment by segment, whose states are saved."""
        is_last, length = level == len(self.lengths) - 1, self.lengths[level]
        segment = self.names.symbol("segment")
        new = self.names.symbol("first"), self.names.symbol("count")
        first, count = self.last if is_last else new
        body: Body = self.taped
        if not is_last:
            body = (
                *self._run(level + 1, var(first), var(count)),
                self._reversed(level + 1, var(first), var(count)),
            )
        body = (
            *_bounds(first, count, origin, whole, segment, length),
            *self._restored(level, var(segment)),
            *body,
        )
        last = _ceiling(whole, length) - 1
        return For(segment, last, const(-1), -1, body, self.loop.span)

    def _run(self, level: int, origin: Affine, whole: Affine) -> Body:
        """Return iterations on copies up to the last segment, whose states are saved."""
        segment, first = self.names.symbol("segment"), self.names.symbol("first")
        length = self.lengths[level]
        start = origin + multiply(var(segment) - 1, length)
        body = (
            Let(first, Position(start), self.loop.span),
            _iterations(self.again, var(first), length),
            *self._saved(level, var(segment), self.copies),
        )
        later = For(segment, const(1), _ceiling(whole, length), 1, body, self.loop.span)
        return (*self._saved(level, const(0), self.copies), later)

    def _saved(self, level: int, segment: Affine, copies: Mapping[int, Node]) -> list[Statement]:
        """Return what saves the state before a segment."""
        to, span = self.checkpoints[level], self.loop.span
        return [
            self.names.copied(to[node.id], copies.get(node.id, node), at=(segment,), span=span)
            for node in self.state
        ]

    def _restored(self, level: int, segment: Affine) -> list[Statement]:
        """Return what sets the copies to the state before a segment."""
        from_, span = self.checkpoints[level], self.loop.span
        return [
            self.names.copied(self.copies[n.id], from_[n.id], from_=(segment,), span=span)
            for n in self.state
        ]


def _bounds(
    first: Symbol, count: Symbol, origin: Affine, whole: Affine, segment: Symbol, length: Affine
) -> Body:
    """Return what binds the first iteration of a segment, and how many it has."""
    start = multiply(var(segment), length)
    return (
        Let(first, Position(origin + start)),
        Let(count, Position(minimum(length, whole - start))),
    )


def _iterations(loop: For, first: Affine, count: Affine) -> For:
    """Return so many iterations of a loop, from one on: new statements."""
    body = map_statements(loop.body, lambda stmt: (replace(stmt),))
    lo = loop.lo + first * loop.step
    return replace(loop, lo=lo, hi=lo + count * loop.step, body=body)


def _bytes(shape: Sequence[Affine], node: Node) -> int:
    return prod(map(_guess, shape)) * node.dtype.numpy.itemsize


def _guess(size: Affine) -> int:
    """Return a size, for a large value of those that are known at run time."""
    return max(1, evaluate(size, dict.fromkeys(size.symbols(), 1000)))


def _ceiling(number: Affine, by: Affine) -> Affine:
    return floordiv(number + by - 1, by)


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
