"""What functions of the library do inside: one assignment of the user's line for all of it.

    s = np.sort(x)    is    s = x, then a function that sorts `s`    and is recorded as
    s[0] = np.sort(x)    3.0 -> 1.0    for each element, before the function and after it

The variables of such a function, and arrays that only it looks at, are nobody's: they are not
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    For,
    Permute,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.expressions import Const, Domain, Index, Read
from ...lowering.ir.indexing import Affine, Range, Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.walk import binds, own_effects, statements
from ..elaborate.scope import LIBRARY

Numbers = Callable[[str], Symbol]
"""Makes a new symbol."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The arrays of a procedure: those that the user sees, those that functions of the library
    look at, and the calls that made some of them."""

    seen: frozenset[int]
    inner: frozenset[int]
    made: Mapping[tuple[int, Span], tuple[Node, ...]]
    """Arrays that are assigned where a function is called, with what is read there: what the
    function writes of them, it writes whole."""
    taken: frozenset[str]

    def is_scratch(self, node: Node) -> bool:
        """Whether only functions of the library look at an array, or nobody, and no text has it."""
        return node.id not in self.seen and (node.id in self.inner or node.label not in self.taken)

    def given(self, node: Node, call: Span) -> tuple[Node, ...]:
        """Return the array, or those from which it was made for a call where only that has it."""
        return self.made.get((node.id, call), ()) if self.is_scratch(node) else (node,)


def nodes_of(procedure: Procedure) -> Nodes:
    """Return which arrays of a procedure are the user's."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.results)
    seen = {node.id for node in (*nodes, *(node for node, _ in procedure.names))}
    inner, made = set[int](), dict[tuple[int, Span], tuple[Node, ...]]()
    for one in statements(procedure.body):
        if isinstance(one, Assign) and one.call is not None:
            inner.update(node.id for node in (*own_effects(one).reads, *own_effects(one).writes))
        elif not _is_inner(one):
            seen.update(node.id for node in own_effects(one).reads)
        if isinstance(one, Assign) and one.call is None:
            seen.update(node.id for node, _ in one.names)
            made[one.target.node.id, one.span] = own_effects(one).reads
    return Nodes(frozenset(seen), frozenset(inner), made, procedure.taken)


def _is_inner(one: Statement) -> bool:
    """Whether the text of a statement is of the library."""
    span: Span | None = getattr(one, "span", None)
    return span is not None and span.source.name == LIBRARY


def grouped(body: tuple[Statement, ...]) -> Iterator[tuple[Span | None, tuple[Statement, ...]]]:
    """Yield the statements of a list in order: those of one call together, each other one alone."""
    at = 0
    while at < len(body):
        call, end = _call_of(body[at]), at + 1
        if call is not None:
            for n in range(at + 1, len(body)):
                if _call_of(body[n]) == call:
                    end = n + 1
                elif own_effects(body[n]).writes and not isinstance(body[n], Alloc):
                    break
        yield call, body[at:end]
        at = end


def _call_of(one: Statement) -> Span | None:
    """Return the call that a statement is a part of, None where it is of the user's text."""
    leaves = [x for x in statements((one,)) if isinstance(x, Assign | Permute)]
    calls = {x.call if isinstance(x, Assign) else None for x in leaves}
    if len(calls) != 1 or (call := calls.pop()) is None:
        return None
    if isinstance(one, For | While | Branch | Block) and one.span != call and not _is_inner(one):
        return None  # a loop around the call, a branch, a comment
    return call


@dataclass(frozen=True, slots=True)
class Written:
    """An array that a call writes, as one assignment, and all that it reads."""

    statement: Assign
    reads: tuple[tuple[Domain, Read], ...]
    is_part: bool
    """Whether it may leave elements of the range as they are."""


def written(
    call: Span, body: tuple[Statement, ...], nodes: Nodes, symbol: Numbers
) -> Iterator[Written]:
    """Yield what the statements of one call write of the user's arrays."""
    inside = statements(body)
    parts = [one for one in inside if isinstance(one, Assign)]
    bound = {x for one in inside for x in binds(one)}
    bound |= {r.symbol for one in parts for r in (*one.free.ranges, *one.reduced.ranges)}
    within = {one.node for one in inside if isinstance(one, Alloc)}
    reads: dict[Node, list[tuple[Index, ...]]] = {}
    writes: dict[Node, list[tuple[Index, ...]]] = {}
    for one in parts:
        writes.setdefault(one.target.node, []).append(one.target.index)
        for read in own_effects(one).found:
            for node in nodes.given(read.node, call):
                places = reads.setdefault(node, [])
                places += [read.index] if node == read.node else []

    def is_ours(node: Node) -> bool:
        known = not bound & {x for extent in node.shape for x in extent.symbols()}
        return node.id in nodes.seen and node not in within and known

    given = tuple(
        (domain, Read(node, index, call))
        for node in filter(is_ours, reads)
        for domain, index in (_footprint(node, reads[node], bound, symbol),)
    )
    for node in filter(is_ours, writes):
        domain, index = _footprint(node, writes[node], bound, symbol)
        names = next(one.names for one in parts if one.target.node == node)
        zero = Const(0, dtypes.int64)
        all_of_it = Assign(
            Access(node, index), None, False, zero, domain, span=call, names=names, call=call
        )
        yield Written(all_of_it, given, (node.id, call) not in nodes.made)


def _footprint(
    node: Node, places: list[tuple[Index, ...]], bound: Iterable[Symbol], symbol: Numbers
) -> tuple[Domain, tuple[Affine, ...]]:
    """Return all of an array, but one position of an axis where that is the only one used."""
    ranges: list[Range] = []
    index: list[Affine] = []
    for axis, extent in enumerate(node.shape):
        used = {place[axis] for place in places}
        one = used.pop() if len(used) == 1 else None
        if isinstance(one, Affine) and one.symbols().isdisjoint(bound):
            index.append(one)
            continue
        ranges.append(Range(symbol("ijklmn"[axis % 6]), const(0), extent))
        index.append(var(ranges[-1].symbol))
    return Domain(tuple(ranges)), tuple(index)
