"""Alias analysis: programs are refused where a copy can be told from Python's shared array.

A loop-carried name, or one bound on the sides of a run-time branch, has an array of its own, into
which the array that it is bound to is copied. That is what Python computes as long as neither of
the two is written in place before the other is read. `check_sharing` is a forward data-flow
analysis over the statements, to a fixed point in loops; its facts are the pairs of arrays that
may be one array in Python. Analysis only.
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
from ...lowering.ir.walk import direct_reads, direct_writes, statements
from ..values.builder import error
from ..values.memory_order import bases_of
from ..values.values import Array, Group, Lazy, Masked, Path, Value, identities_of
from .scope import Frame, loads_in

Bindings = Mapping[tuple[Node, Span], frozenset[Node]]
"""Writes that bind a name to an array, by node and statement: the nodes that Python would share."""


@dataclass(frozen=True, slots=True)
class _AliasState:
    """Facts at a program point: may-alias pairs, in both orders, and stale nodes, which miss a
    write to an alias, each with that alias and the location of the write."""

    pairs: frozenset[tuple[Node, Node]] = frozenset()
    stale: Mapping[Node, tuple[Node, Span]] = field(default_factory=dict)

    def without_nodes(self, nodes: Collection[Node]) -> _AliasState:
        """Return the facts after some nodes stand for new arrays."""
        pairs = frozenset(p for p in self.pairs if p[0] not in nodes and p[1] not in nodes)
        return _AliasState(pairs, {n: why for n, why in self.stale.items() if n not in nodes})

    def join(self, other: _AliasState) -> _AliasState:
        """Return the union of two states, at a join of control flow."""
        return _AliasState(self.pairs | other.pairs, {**other.stale, **self.stale})

    def permute(self, now: Mapping[Node, Node]) -> _AliasState:
        """Return the facts after nodes have exchanged their arrays."""
        pairs = frozenset((now.get(a, a), now.get(b, b)) for a, b in self.pairs)
        return _AliasState(pairs, {now.get(n, n): why for n, why in self.stale.items()})

    def after_write(self, node: Node, span: Span) -> _AliasState:
        """Return the facts after a write in place: its aliases are stale."""
        stale_aliases = {b: (node, span) for a, b in self.pairs if a == node}
        return _AliasState(self.pairs, {**stale_aliases, **self.stale})

    def after_binding(self, node: Node, bases: frozenset[Node]) -> _AliasState:
        """Return the facts after a node was bound to a copy of other nodes' contents."""
        if node in bases:
            return self
        others = self.without_nodes({node})
        aliases = set(bases) | {b for a, b in others.pairs if a in bases}
        pairs = frozenset((node, alias) for alias in aliases)
        return _AliasState(others.pairs | pairs | {(b, a) for a, b in pairs}, others.stale)


def check_sharing(
    bindings: Bindings, body: tuple[Statement, ...], seen: tuple[Node, ...], span: Span
) -> None:
    """Refuse (CdTypeError CD0208) to read one of two copies after the other was written.

    `seen` are the nodes that the caller can read afterwards, `span` is that of the function.
    """
    if any(bindings.values()):
        analysis = _AliasAnalysis(bindings, _count_accesses(body) + Counter(seen))
        analysis.check_reads(analysis.run_body(body, _AliasState()), seen, span, "the caller sees")


@dataclass(slots=True)
class _AliasAnalysis:
    """Forward data-flow analysis over statements, in execution order."""

    bindings: Bindings
    mentions: Counter[Node]
    """How many statements read or write each node."""
    jump_states: list[_AliasState] = field(default_factory=list)
    """The state at each `break` and `continue` of the innermost loop."""

    def run_body(self, body: tuple[Statement, ...], state: _AliasState) -> _AliasState:
        """Return the state after some statements."""
        for statement in body:
            state = self.transfer(statement, state)
        return state

    def transfer(self, statement: Statement, state: _AliasState) -> _AliasState:
        """Return the state after a statement: the transfer function."""
        match statement:
            case For() | While():
                return self.transfer_loop(statement, state)
            case Branch(_, then, orelse, span):
                self.check_reads(state, direct_reads(statement), span)
                return self.run_body(then, state).join(self.run_body(orelse, state))
            case Block(_, inner):
                return self.run_body(inner, state)
            case Permute(nodes, sources):
                return state.permute(dict(zip(sources, nodes, strict=True)))
            case Break() | Continue():
                self.jump_states.append(state)
                return _AliasState()
            case Alloc(node):
                return state.without_nodes({node})
            case _:
                self.check_reads(state, direct_reads(statement), statement.span)
                for node in direct_writes(statement):
                    bases = self.bindings.get((node, statement.span))
                    written = state.after_write(node, statement.span)
                    state = written if bases is None else state.after_binding(node, bases)
                return state

    def transfer_loop(self, loop: For | While, state: _AliasState) -> _AliasState:
        """Return the state after any number of iterations: the fixed point."""
        accesses = _count_accesses((loop,))
        local_nodes = {node for node, count in accesses.items() if count == self.mentions[node]}
        outer, previous = self.jump_states, None
        while state != previous:
            previous, self.jump_states = state, []
            entry = self.run_body(loop.prelude, state) if isinstance(loop, While) else state
            self.check_reads(entry, direct_reads(loop), loop.span)
            ends = [self.run_body(loop.body, entry), *self.jump_states]
            for end in (entry, *ends):
                state = state.join(end.without_nodes(local_nodes))
        self.jump_states = outer
        return reduce(_AliasState.join, ends) if _has_iteration(loop) else state

    def check_reads(
        self, state: _AliasState, nodes: Iterable[Node], span: Span, who: str = ""
    ) -> None:
        """Refuse to read stale nodes."""
        for node in nodes if state.stale else ():
            if node in state.stale:
                written, write_span = state.stale[node]
                read_is_copy = any(
                    n == node and written in bases for (n, _), bases in self.bindings.items()
                )
                raise _stale_read_error(written, write_span, node, Label(span, who), read_is_copy)


def _has_iteration(loop: For | While) -> bool:
    """Whether a loop provably has at least one iteration."""
    if isinstance(loop, While):
        return False
    count = (loop.hi - loop.lo) * loop.step
    return count.constant is not None and count.constant > 0


def _count_accesses(body: tuple[Statement, ...]) -> Counter[Node]:
    """Return how many statements access each node."""
    return Counter(
        node
        for statement in statements(body)
        for node in {*direct_reads(statement), *direct_writes(statement)}
    )


def _stale_read_error(
    written: Node, write_span: Span, read: Node, read_label: Label, read_is_copy: bool
) -> CdError:
    """Return the error of reading a node after its alias was written.

    `read_is_copy`: the node read is the one that was bound to the other's array.
    """
    reader, writer = f"`{read.label}`", f"`{written.label}`"
    name, source = (read.label, written.label) if read_is_copy else (written.label, read.label)
    if reader == writer:
        reader, writer = f"the array that {reader} was", f"the one that {reader} is now"
        reader, writer = (writer, reader) if read_is_copy else (reader, writer)
    text = f"{writer} and {reader} are one array on some paths through the function, two on others"
    helps = [f"copy where one name gets the other's array: `{name} = {source}.copy()`"]
    notes = []
    if written.shape != read.shape:
        text = (
            f"`{name}` is a part of `{source}` in Python, and here an array of its own, since an "
            "`if` or a loop decides which part"
        )
        helps = [f"decide its position, a number, and use the part itself: `{source}[k : k + 2]`"]
    if written.shape == read.shape and written.strides != read.strides:
        strided = [node for node in (written, read) if node.strides is not None][0].label
        notes = [
            "they lie in memory in different orders: such arrays do not trade places in a loop"
        ]
        helps = [f"pass one that lies in C order: `np.ascontiguousarray({strided})`"]
    return error(
        "CD0208",
        CdTypeError,
        text,
        write_span,
        replace(
            read_label,
            text=f"{read_label.text} {reader}" if read_label.text else f"then {reader} is read",
        ),
        label=f"{writer} is written in place",
        notes=tuple(notes),
        helps=tuple(helps),
    )


def viewed_repeatedly(values: Iterable[Value | None]) -> frozenset[Node]:
    """Return the nodes that several of the arrays in `values` are views of."""
    counts = Counter(node for value in values for node in _viewed(value))
    return frozenset(node for node, count in counts.items() if count > 1)


def _viewed(value: Value | None) -> Iterator[Node]:
    """Yield the node of each array in a value, as often as it occurs."""
    match value:
        case Group(items):
            for item in items:
                yield from _viewed(item)
        case Array():
            yield from bases_of(value)


def seeing(names: Mapping[str, Value], nodes: Iterable[Node]) -> list[str]:
    """Return the names whose values are stored in some nodes, in order."""
    wanted = set(nodes)
    return [name for name, value in names.items() if wanted & _storage_nodes(value)]


def holding(frame: Frame, group: Group) -> Iterator[tuple[Frame, str]]:
    """Yield the names that are, or may be, bound to a list, or to a group that contains it, in all
    reachable frames."""
    objects = set(identities_of(group))
    return _find_names(
        frame, lambda part: isinstance(part, Group) and not objects.isdisjoint(identities_of(part))
    )


def is_from_outside(group: Group) -> bool:
    """Whether a tuple or list is, or may be, an input."""
    return any(isinstance(identity, Path) for identity in identities_of(group))


def looking_at(frame: Frame, node: Node) -> Iterator[tuple[Frame, str]]:
    """Yield the names whose arrays are stored in a node, in all reachable frames."""
    return _find_names(frame, lambda part: node in _storage_nodes(part))


def _find_names(frame: Frame, test: Callable[[Value], bool]) -> Iterator[tuple[Frame, str]]:
    """Yield the names with a part that passes a test: in this frame, enclosing frames, closures and
    callers."""
    seen: list[Frame] = []
    frames = [frame]
    while frames:
        current = frames.pop()
        if current in seen:
            continue
        seen.append(current)
        for name, value in current.names.items():
            values = list(_nested_values(value))
            if any(map(test, values)):
                yield current, name
            frames += [
                x.scope for x in values if isinstance(x, Lazy) and isinstance(x.scope, Frame)
            ]
        linked = (
            current.parent,
            current.closure,
            None if current.caller is None else current.caller[0],
        )
        frames += [linked_frame for linked_frame in linked if linked_frame is not None]


def _nested_values(value: Value) -> Iterator[Value]:
    """Yield a value and its nested values: items of groups, defaults of functions."""
    yield value
    items = value.items if isinstance(value, Group) else ()
    defaults = value.defaults if isinstance(value, Lazy) else ()
    for part in (*items, *(default for _, default in defaults)):
        yield from _nested_values(part)


def _storage_nodes(value: Value) -> set[Node]:
    """Return the nodes in which a value's arrays are stored."""
    match value:
        case Array():
            return set() if value.base is None else {value.base.node}
        case Group(items, _):
            return {node for item in items for node in _storage_nodes(item)}
        case Masked(array):
            return _storage_nodes(array)
        case _:
            return set()


def seen_by_callers(frame: Frame, nodes: Iterable[Node]) -> bool:
    """Whether a caller, direct or indirect, may read some nodes during this call or after it."""
    shared = set(nodes)
    while frame.caller is not None:
        frame, call = frame.caller
        if any(_is_read_around_call(frame, name, call) for name in seeing(frame.names, shared)):
            return True
    return False


def _is_read_around_call(frame: Frame, name: str, call: Span) -> bool:
    """Whether a function may read a name after a call, or before it in the same statement."""
    if frame.in_loop or frame.unrolling:
        return True
    first, last = (call.line, call.column), (call.end_line, call.end_column)
    body = frame.function.body
    started = sum(statement.span.line <= call.line for statement in body)
    return any(
        n.id == name and not first <= (n.span.line, n.span.column) <= last
        for statement in body[max(started - 1, 0) :] for n in loads_in(statement)
    )  # fmt: skip
