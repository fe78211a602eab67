"""Programs in which a copy could be told from the one array that Python has there are refused.

A name that lives across rounds of a loop, or that a test decides, has an array of its own, which
copies what it is bound to. That is no different from Python as long as nobody writes one of the
two in place and then looks at the other. `check_sharing` follows the statements in the order they
run, with the pairs of arrays that would be one array in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import reduce

from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdTypeError, Label, Span
from ...lowering.ir.assignments import (
    Alloc,
    Block,
    Branch,
    Break,
    Continue,
    For,
    Permute,
    Statement,
    While,
)
from ...lowering.ir.node import Node
from ...lowering.ir.walk import own_reads, own_writes, statements
from ..values.builder import error
from ..values.values import Array, Group, Lazy, Masked, Value
from .scope import Frame, loads_in

Bindings = Mapping[tuple[Node, Span], frozenset[Node]]
"""Which writes of arrays, by statement, give a name something new: to what Python would share."""


@dataclass(frozen=True, slots=True)
class _State:
    """What holds at a place: pairs that are one array in Python, both ways round, and nodes that
    miss what was written to another, with that node and the place."""

    pairs: frozenset[tuple[Node, Node]] = frozenset()
    stale: Mapping[Node, tuple[Node, Span]] = field(default_factory=dict)

    def without(self, nodes: Collection[Node]) -> _State:
        """Return what holds when some nodes are other arrays."""
        pairs = frozenset(p for p in self.pairs if p[0] not in nodes and p[1] not in nodes)
        return _State(pairs, {n: why for n, why in self.stale.items() if n not in nodes})

    def joined(self, other: _State) -> _State:
        """Return what may hold after either."""
        return _State(self.pairs | other.pairs, {**other.stale, **self.stale})

    def renamed(self, now: Mapping[Node, Node]) -> _State:
        """Return what holds after nodes have exchanged their arrays."""
        pairs = frozenset((now.get(a, a), now.get(b, b)) for a, b in self.pairs)
        return _State(pairs, {now.get(n, n): why for n, why in self.stale.items()})

    def written(self, node: Node, span: Span) -> _State:
        """Return what holds after a write in place."""
        behind = {b: (node, span) for a, b in self.pairs if a == node}
        return _State(self.pairs, {**behind, **self.stale})

    def bound(self, node: Node, bases: frozenset[Node]) -> _State:
        """Return what holds when a node is a copy of what lies in other nodes."""
        if node in bases:
            return self
        rest = self.without({node})
        more = set(bases) | {b for a, b in rest.pairs if a in bases}
        both = frozenset((node, other) for other in more)
        return _State(rest.pairs | both | {(b, a) for a, b in both}, rest.stale)


def check_sharing(
    bindings: Bindings, body: tuple[Statement, ...], seen: tuple[Node, ...], span: Span
) -> None:
    """Refuse (CdTypeError CD0208) to look at one of two copies after the other was written.

    `seen` are the nodes that the caller looks at afterwards, `span` the function.
    """
    if any(bindings.values()):
        walker = _Walker(bindings, _mentions(body) + Counter(seen))
        walker.look(walker.run(body, _State()), seen, span, "the caller sees")


@dataclass(slots=True)
class _Walker:
    """Goes over statements as they run."""

    bindings: Bindings
    mentions: Counter[Node]
    """How many statements read or write each node."""
    jumps: list[_State] = field(default_factory=list)
    """What holds at each `break` and `continue` of the innermost loop."""

    def run(self, body: tuple[Statement, ...], state: _State) -> _State:
        """Return what holds after some statements."""
        for statement in body:
            state = self.step(statement, state)
        return state

    def step(self, statement: Statement, state: _State) -> _State:
        """Return what holds after a statement."""
        match statement:
            case For() | While():
                return self.loop(statement, state)
            case Branch(_, then, other, span):
                self.look(state, own_reads(statement), span)
                return self.run(then, state).joined(self.run(other, state))
            case Block(_, inner):
                return self.run(inner, state)
            case Permute(nodes, sources):
                return state.renamed(dict(zip(sources, nodes, strict=True)))
            case Break() | Continue():
                self.jumps.append(state)
                return _State()
            case Alloc(node):
                return state.without({node})
            case _:
                self.look(state, own_reads(statement), statement.span)
                for node in own_writes(statement):
                    bases = self.bindings.get((node, statement.span))
                    written = state.written(node, statement.span)
                    state = written if bases is None else state.bound(node, bases)
                return state

    def loop(self, loop: For | While, state: _State) -> _State:
        """Return what holds after any number of rounds: goes on until another adds nothing."""
        inside = _mentions((loop,))
        fresh = {node for node, count in inside.items() if count == self.mentions[node]}
        outer, before = self.jumps, None
        while state != before:
            before, self.jumps = state, []
            start = self.run(loop.prelude, state) if isinstance(loop, While) else state
            self.look(start, own_reads(loop), loop.span)
            ends = [self.run(loop.body, start), *self.jumps]
            for ended in (start, *ends):
                state = state.joined(ended.without(fresh))
        self.jumps = outer
        return reduce(_State.joined, ends) if _surely_runs(loop) else state

    def look(self, state: _State, nodes: Iterable[Node], span: Span, who: str = "") -> None:
        """Refuse to read nodes that miss what was written."""
        for node in nodes if state.stale else ():
            if node in state.stale:
                written, at = state.stale[node]
                gets = any(n == node and written in of for (n, _), of in self.bindings.items())
                raise _refusal(written, at, node, Label(span, who), gets)


def _surely_runs(loop: For | While) -> bool:
    """Whether there is one round at least."""
    if isinstance(loop, While):
        return False
    rounds = (loop.hi - loop.lo) * loop.step
    return rounds.constant is not None and rounds.constant > 0


def _mentions(body: tuple[Statement, ...]) -> Counter[Node]:
    return Counter(node for one in statements(body) for node in {*own_reads(one), *own_writes(one)})


def _refusal(written: Node, at: Span, read: Node, where: Label, gets: bool) -> CdError:
    """Return the error of reading a node after another was written; `gets`: it got its array."""
    one, other = f"`{read.label}`", f"`{written.label}`"
    name, source = (read.label, written.label) if gets else (written.label, read.label)
    if one == other:
        one, other = f"the array that {one} was", f"the one that {one} is now"
        one, other = (other, one) if gets else (one, other)
    helps = [f"copy where one name gets the other's array: `{name} = {source}.copy()`"]
    notes = []
    if written.shape == read.shape and written.strides != read.strides:
        strided = [node for node in (written, read) if node.strides is not None][0].label
        notes = [
            "they lie in memory in different orders: such arrays do not trade places in a loop"
        ]
        helps = [f"pass one that lies in C order: `np.ascontiguousarray({strided})`"]
    return error(
        "CD0208",
        CdTypeError,
        f"{other} and {one} are one array on some paths through the function, two on others",
        at,
        replace(where, text=f"{where.text} {one}" if where.text else f"then {one} is read"),
        label=f"{other} is written in place",
        notes=tuple(notes),
        helps=tuple(helps),
    )


def seeing(names: Mapping[str, Value], nodes: Iterable[Node]) -> list[str]:
    """Return the names whose values lie in the memory of some nodes, in order."""
    wanted = set(nodes)
    return [name for name, value in names.items() if wanted & _nodes(value)]


def holding(frame: Frame, one: object) -> Iterator[tuple[Frame, str]]:
    """Yield the names, here, around, in closures and of callers, that have or hold a list."""
    return _with_part(frame, lambda part: isinstance(part, Group) and part.one == one)


def looking_at(frame: Frame, node: Node) -> Iterator[tuple[Frame, str]]:
    """Yield the names, here, around, in closures and of callers, whose arrays lie in a node."""
    return _with_part(frame, lambda part: node in _nodes(part))


def _with_part(frame: Frame, test: Callable[[Value], bool]) -> Iterator[tuple[Frame, str]]:
    seen: list[Frame] = []
    frames = [frame]
    while frames:
        here = frames.pop()
        if here in seen:
            continue
        seen.append(here)
        for name, value in here.names.items():
            parts = list(_parts(value))
            if any(map(test, parts)):
                yield here, name
            frames += [x.scope for x in parts if isinstance(x, Lazy) and isinstance(x.scope, Frame)]
        around = (here.parent, here.closure, None if here.caller is None else here.caller[0])
        frames += [other for other in around if other is not None]


def _parts(value: Value) -> Iterator[Value]:
    """Yield a value, and what tuples, lists and the defaults of functions in it hold."""
    yield value
    items = value.items if isinstance(value, Group) else ()
    defaults = value.defaults if isinstance(value, Lazy) else ()
    for part in (*items, *(default for _, default in defaults)):
        yield from _parts(part)


def _nodes(value: Value) -> set[Node]:
    match value:
        case Array():
            return set() if value.base is None else {value.base.node}
        case Group(items, _):
            return {node for item in items for node in _nodes(item)}
        case Masked(array):
            return _nodes(array)
        case _:
            return set()


def seen_by_callers(frame: Frame, nodes: Iterable[Node]) -> bool:
    """Whether a function that led to this call may look at some nodes during it or after it."""
    wanted = set(nodes)
    while frame.caller is not None:
        frame, call = frame.caller
        if any(_used_beside(frame, name, call) for name in seeing(frame.names, wanted)):
            return True
    return False


def _used_beside(frame: Frame, name: str, call: Span) -> bool:
    """Whether a function may look at a name after a call, or before it in the same statement."""
    if frame.in_loop or frame.unrolling:
        return True
    first, last = (call.line, call.column), (call.end_line, call.end_column)
    body = frame.function.body
    begun = sum(statement.span.line <= call.line for statement in body)
    return any(
        n.id == name and not first <= (n.span.line, n.span.column) <= last
        for statement in body[max(begun - 1, 0) :] for n in loads_in(statement)
    )  # fmt: skip
