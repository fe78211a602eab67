"""Items of loops: values that a body does not change, although it writes what they were read from.

Python evaluates an item before the body runs with it. Here an item is an expression, evaluated
where the body reads it, as long as that gives the same: a loop whose body writes what its items
are read from is elaborated again, with its items stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, Span
from ...lowering.ir.assignments import Statement
from ...lowering.ir.expressions import Expr, Read, walk
from ...lowering.ir.node import Node
from ...lowering.ir.walk import writes
from ..source import surface as s
from ..values.builder import Context, error
from ..values.evaluation_order import Writes, rebound_by, saved
from ..values.values import Array, Group, Masked, Scalar, Static, Value
from .names import resolve
from .scope import Frame

_ITERATORS = (zip, enumerate, reversed, map)
_EACH = "an item"
"""The name of an item that a call of those gives; no Python name equals it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Which items of a loop are stored: `values`, those that are no views of arrays; and copies of
    what the loop goes over: `arrays`, which the body rebinds or exchanges, and of the local arrays
    those from number `since` on, which the iterable makes."""

    values: bool = False
    arrays: frozenset[Node] = frozenset()
    since: int | None = None

    def iterable(self, ctx: Context, value: Value, span: Span) -> Value:
        """Return what a loop goes over, or one of the items of a tuple or list, before the loop."""
        new = frozenset() if self.since is None else frozenset(ctx.locals[self.since :])
        return saved(ctx, value, Writes(self._nodes_of(ctx, value), self.arrays | new), span)

    def item(self, ctx: Context, value: Value, label: str, span: Span) -> Value:
        """Return the item of an iteration."""
        return saved(ctx, value, Writes(self._nodes_of(ctx, value)), span, label)

    def _nodes_of(self, ctx: Context, value: Value) -> frozenset[Node]:
        nodes = frozenset(_nodes_by_value(value)) if self.values else frozenset()
        return nodes - ctx.tables.keys()

    def with_writes(
        self, ctx: Context, items: Writes, start: int, header: list[Statement],
        body: list[Statement],
    ) -> Stored:  # fmt: skip
        """Return what is to be stored where the evaluation of an iterable and a body emit these
        statements; `items` are the nodes that the items are read from, or views of, and `start` is
        the number of local arrays before."""
        if items.rebound.isdisjoint(writes((*header, *body))):
            return self
        new = frozenset(ctx.locals[start:])
        views = items.rebound & (rebound_by(ctx, header) - new | rebound_by(ctx, body))
        return Stored(
            self.values or not items.nodes.isdisjoint(writes(body)),
            self.arrays | views - new,
            start if views & new else self.since,
        )


def read_by(items: Iterable[tuple[s.Expr, Value]]) -> Writes:
    """Return the nodes that items are read from, each given with its target, as far as they are
    values; as `rebound`, all of them."""
    nodes, every = set[Node](), set[Node]()
    for target, item in items:
        for value in _bound_by(target, item):
            nodes.update(_nodes_by_value(value))
            every.update(_nodes(value))
    return Writes(frozenset(nodes), frozenset(every))


def _bound_by(target: s.Expr, value: Value) -> Iterator[Value]:
    """Yield what the names of a target are bound to, as far as it tells what they are read from."""
    match target, value:
        case s.Sequence(targets, _), Group(items) if len(targets) == len(items):
            for inner, item in zip(targets, items, strict=True):
                yield from _bound_by(inner, item)
        case s.Sequence(targets, _), Array(axes, shape) if shape:
            part: Value = replace(value, axes=axes[1:], shape=shape[1:])
            if value.rank == 1:
                part = Scalar(value.body, value.kind)
            for inner in targets:
                yield from _bound_by(inner, part)
        case _:
            yield value


def _nodes_by_value(value: Value) -> Iterator[Node]:
    """Yield the nodes that the numbers and the new arrays in a value are read from."""
    match value:
        case Scalar(expr, _):
            yield from _read_nodes(expr)
        case Array() if value.aliased is None:
            yield from _read_nodes(value.body)
        case Masked(array, mask):
            yield from _read_nodes(array.body)
            yield from _read_nodes(mask.body)
        case Group(items):
            for item in items:
                yield from _nodes_by_value(item)
        case _:
            pass


def _nodes(value: Value) -> Iterator[Node]:
    """Yield the nodes that a value is read from, or a view of."""
    match value:
        case Array():
            yield from _read_nodes(value.body)
        case Group(items):
            for item in items:
                yield from _nodes(item)
        case _:
            yield from _nodes_by_value(value)


def _read_nodes(expr: Expr) -> Iterator[Node]:
    return (part.node for part in walk(expr) if isinstance(part, Read))


def _require_named(called: s.Expr) -> None:
    """Require (CdTypeError CD0427) that it is the same whether the function of a `map` is evaluated
    once or for each item."""
    match called:
        case s.Name() | s.Literal():
            return
        case s.Attribute(value, _):
            _require_named(value)
        case s.Subscript(value, items):
            for part in (value, *items):
                _require_named(part)
        case s.Lambda(params, _) if all(param.default is None for param in params):
            return
        case _:
            raise error(
                "CD0427", CdTypeError, "the function that `map` calls is made here", called.span,
                helps=(f"name it before: `f = {called.span.text}`, `map(f, ...)`",),
            )  # fmt: skip


def taken_at_once(frame: Frame, e: s.Expr) -> s.Expr:
    """Return a call of `zip`, `enumerate`, `reversed` or `map`, whose items are all taken at once,
    as a comprehension; any other expression as it is."""
    if not isinstance(e, s.Call) or not isinstance(e.function, s.Name):
        return e
    function, span = resolve(frame, e.function), e.span
    if not isinstance(function, Static) or all(function.value is not x for x in _ITERATORS):
        return e
    each = s.Name(_EACH, span)
    if function.value is not map:
        return s.Comprehension(each, each, e, (), span)
    called, *iterables = e.args or (e,)
    if not iterables or e.keywords or any(isinstance(arg, s.Starred) for arg in e.args):
        return e
    _require_named(called)
    if len(iterables) == 1:
        return s.Comprehension(s.Call(called, (each,), (), span), each, iterables[0], (), span)
    items = tuple(s.Name(f"{_EACH} {n}", span) for n in range(len(iterables)))
    together = s.Call(s.Literal(zip, span), tuple(iterables), (), span)
    target = s.Sequence(items, "tuple", span)
    return s.Comprehension(s.Call(called, items, (), span), target, together, (), span)
