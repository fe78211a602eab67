"""Loops that are cut into segments, from whose first states the other ones are computed again.

    forward     for each segment of a loop:    checkpoint[segment] = state;  its iterations
    backward    for each segment in reverse:   copies = checkpoint[segment]
                                               its iterations on the copies, whose values are kept
                                               their adjoints in reverse

Where there are fewer checkpoints than segments, they are a stack, of states at places that divide
what is left in the ratio of binomial coefficients: `C(c + r, r)` segments need `c` checkpoints, and
run at most `r` times before the time in which their values are kept. Going backward, the place of a
checkpoint that is not needed any more is taken by one of a later state of the segments before it.

Source: A. Griewank, A. Walther, Algorithm 799: Revolve, ACM Transactions on Mathematical Software
26 (1), 2000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Assign, Branch, For, Let, Statement, While
from ..ir.expressions import Const, Domain, Expr, Position, Read
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, minimum, multiply, var
from ..ir.node import Node
from ..ir.rewrite import map_statements
from ..ir.walk import statements
from .kept import Names, trip_count
from .rules import apply

Body = tuple[Statement, ...]


def sweeps(segments: int, checkpoints: int) -> int:
    """Return how many segments run in all, in the best order, before their values are kept; where
    the loop runs to its end before its adjoint begins, those after its last checkpoint once more.
    """
    times = 0
    while comb(checkpoints + times, times) < segments:
        times += 1
    return times * segments - comb(checkpoints + times, checkpoints + 1)


def ceiling(number: Affine, by: Affine) -> Affine:
    """Return the quotient of whole numbers, rounded up."""
    return floordiv(number + by - 1, by)


def iterations(loop: For, first: Affine, count: Affine) -> For:
    """Return so many iterations of a loop, from one on: new statements."""
    body = map_statements(loop.body, lambda stmt: (replace(stmt),))
    lo = loop.lo + first * loop.step
    return replace(loop, lo=lo, hi=lo + count * loop.step, body=body)


@dataclass(frozen=True, slots=True)
class Region:
    """A loop that is cut into segments."""

    names: Names
    loop: For
    again: For
    """The loop on copies of what it writes."""
    length: Affine
    """The iterations of a segment."""
    copies: Mapping[int, Node]
    checkpoints: Mapping[Node, Node]
    """The arrays that hold states, by those whose states they are."""
    last: tuple[Symbol, Symbol]
    """The first iteration of a segment whose values are kept, and how many it has."""
    taped: Body
    """The iterations of a segment that keep values, and their adjoints."""

    def whole(self) -> Affine:
        """Return the number of iterations."""
        return maximum(trip_count(self.loop), const(0))

    def segments(self) -> Affine:
        """Return the number of segments."""
        return ceiling(self.whole(), self.length)

    def saved(self, at: Affine, copies: Mapping[int, Node]) -> list[Statement]:
        """Return what saves the state."""
        return [
            self.names.copied(to, copies.get(n.id, n), at=(at,), span=self.loop.span)
            for n, to in self.checkpoints.items()
        ]

    def restored(self, at: Affine) -> list[Statement]:
        """Return what sets the copies to a state."""
        return [
            self.names.copied(self.copies[n.id], from_, from_=(at,), span=self.loop.span)
            for n, from_ in self.checkpoints.items()
        ]

    def created(self) -> Body:
        """Return what creates the copies."""
        inside = {s.node.id for s in statements(self.again.body) if isinstance(s, Alloc)}
        return tuple(
            Alloc(copy) for copy in self.copies.values()
            if copy.static_shape is None and copy.id not in inside
        )  # fmt: skip

    def bounds(self, first: Symbol, count: Symbol, segment: Affine) -> Body:
        """Return what binds the first iteration of a segment, and how many it has."""
        start = multiply(segment, self.length)
        left = minimum(self.length, self.whole() - start)
        return Let(first, Position(start)), Let(count, Position(left))


def equidistant(region: Region) -> tuple[Body, Body]:
    """Return a loop that leaves a checkpoint before each segment, and its adjoint."""
    names, loop = region.names, region.loop
    segment, first, count = map(names.symbol, ("segment", "first", "count"))
    body = (
        *region.bounds(first, count, var(segment)),
        *region.saved(var(segment), {}),
        iterations(loop, var(first), var(count)),
    )
    forward = For(segment, const(0), region.segments(), 1, body, loop.span)
    segment = names.symbol("segment")
    body = (
        *region.bounds(*region.last, var(segment)),
        *region.restored(var(segment)),
        *region.taped,
    )
    backward = For(segment, region.segments() - 1, const(-1), -1, body, loop.span)
    return (forward,), (*region.created(), backward)


def binomial(region: Region, slots: Affine, places: Node) -> tuple[Body, Body]:
    """Return a loop that leaves `slots` checkpoints, and its adjoint; `places` are the segments
    before which these are."""
    return _Stack(region, slots, places, *_numbers(region.names)).written()


def _numbers(names: Names) -> tuple[Node, ...]:
    labels = ("top", "segment", "end", "part", "left", "free", "most")
    return tuple(names.array(label, (), dtypes.int64) for label in labels)


@dataclass(frozen=True, slots=True)
class _Stack:
    """A stack of checkpoints, whose places are known when the loop runs."""

    region: Region
    slots: Affine
    places: Node
    top: Node
    """The number of the last checkpoint."""
    segment: Node
    end: Node
    """The segments whose adjoints are left."""
    part: Node
    left: Node
    free: Node
    most: Node

    def written(self) -> tuple[Body, Body]:
        """Return the loop, and its adjoint."""
        region, span = self.region, self.region.loop.span
        units = Position(region.segments())
        segment, part, start, count = self.symbols("segment", "part", "first", "count")
        length = region.length
        steps = minimum(multiply(var(part), length), region.whole() - var(start))
        going = (
            *self.pushed({}),
            _set(self.left, apply("sub", units, _get(self.segment))),
            _set(self.part, _get(self.left)),
            *self.divided(apply("gt", _get(self.left), _number(1))),
            Let(segment, _get(self.segment)),
            Let(part, _get(self.part)),
            Let(start, Position(multiply(var(segment), length))),
            Let(count, Position(steps)),
            iterations(region.loop, var(start), var(count)),
            _add(self.segment, _get(self.part)),
        )
        first = (_set(self.top, _number(-1)), _set(self.segment, _number(0)))
        forward = (*first, While((), apply("lt", _get(self.segment), units), going, span))
        slot, segment, again = self.symbols("slot", "segment", "slot")
        here = Read(self.places, (var(slot),))
        before_end = apply("sub", _get(self.end), _number(1))
        back = (
            Let(slot, _get(self.top)),
            _set(self.segment, here),
            *region.restored(var(slot)),
            While((), apply("lt", _get(self.segment), before_end), self.descended(), span),
            Let(segment, _get(self.segment)),
            *region.bounds(*region.last, var(segment)),
            *region.taped,
            _add(self.end, _number(-1)),
            Let(again, _get(self.top)),
            Branch(
                apply("eq", Read(self.places, (var(again),)), _get(self.end)),
                (_add(self.top, _number(-1)),), (),
            ),
        )  # fmt: skip
        left = While((), apply("gt", _get(self.end), _number(0)), back, span)
        return forward, (*region.created(), _set(self.end, units), left)

    def symbols(self, *names: str) -> list[Symbol]:
        return [self.region.names.symbol(name) for name in names]

    def pushed(self, copies: Mapping[int, Node]) -> Body:
        """Return what saves the state before a segment in the next place."""
        (slot,) = self.symbols("slot")
        return (
            _add(self.top, _number(1)),
            Let(slot, _get(self.top)),
            _set(self.places, _get(self.segment), var(slot)),
            *self.region.saved(var(slot), copies),
        )

    def descended(self) -> Body:
        """Return what runs on copies up to the next checkpoint, or the last segment that is left
        where there is no place for one."""
        segment, part = self.symbols("segment", "part")
        length = self.region.length
        start, steps = multiply(var(segment), length), multiply(var(part), length)
        first, count = self.symbols("first", "count")
        return (
            _set(self.left, apply("sub", _get(self.end), _get(self.segment))),
            _set(self.part, apply("sub", _get(self.left), _number(1))),
            *self.divided(),
            Let(segment, _get(self.segment)),
            Let(part, _get(self.part)),
            Let(first, Position(start)),
            Let(count, Position(steps)),
            iterations(self.region.again, var(first), var(count)),
            _add(self.segment, _get(self.part)),
            Branch(
                apply("gt", _get(self.free), _number(1)), self.pushed(self.region.copies), ()
            ),
        )  # fmt: skip

    def divided(self, test: Expr | None = None) -> Body:
        """Return what sets `part` to the segments before the next checkpoint, of those that are
        left, where there is a place for one, and a test holds.

        With `most = C(free + r, r)` the least that is enough, it is in the middle of what both
        sides may have: C(free + r - 2, free) at least, so that those behind are not too many.
        """
        names = self.region.names
        times, before, earlier = (
            names.array(label, (), dtypes.int64) for label in ("times", "before", "earlier")
        )
        free, most, left = _get(self.free), _get(self.most), _get(self.left)
        next_ = apply("floordiv", apply("mul", most, apply("add", free, _get(times))), _get(times))
        grown = (
            _add(times, _number(1)),
            _set(earlier, _get(before)),
            _set(before, most),
            _set(self.most, next_),
        )
        behind = apply("sub", left, apply("sub", most, _get(before)))
        chosen = apply("max", _number(1), apply("max", _get(earlier), behind))
        body = (
            _set(times, _number(0)),
            _set(earlier, _number(0)),
            _set(before, _number(0)),
            _set(self.most, _number(1)),
            While((), apply("lt", most, left), grown),
            _set(self.part, chosen),
        )
        set_free = _set(self.free, apply("sub", Position(self.slots), _get(self.top)))
        tests = apply("gt", free, _number(1))
        if test is not None:
            tests = apply("and", tests, test)
        return set_free, Branch(tests, body, ())


def _get(node: Node) -> Expr:
    return Read(node, ())


def _number(value: int) -> Const:
    return Const(value, dtypes.int64)


def _set(node: Node, value: Expr, *at: Affine) -> Assign:
    return Assign(Access(node, at), None, False, value, Domain())


def _add(node: Node, value: Expr) -> Assign:
    return _set(node, apply("add", _get(node), value))
