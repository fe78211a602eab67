"""Library calls in traces: all statements inlined from one are recorded as one assignment.

    s = np.sort(x)    is    s = x, then a function that sorts `s`    and is recorded as
    s[0] = np.sort(x)    3.0 -> 1.0    for each element, before the function and after it

Local variables of such a function, and arrays that only it accesses, are scratch: they are not
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

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
from ...lowering.ir.indexing import Affine, Range, Symbol, const, minimum, var
from ...lowering.ir.node import Node
from ...lowering.ir.walk import binds, direct_effects, statements
from ..values.call_site import LIBRARY

SymbolFactory = Callable[[str], Symbol]
"""A function that returns a new symbol with a name."""


@dataclass(frozen=True, slots=True)
class NodeClasses:
    """The arrays of a procedure: those visible to the user, those that library functions access,
    and the operands from which some were created."""

    seen: frozenset[int]
    inner: frozenset[int]
    created: Mapping[tuple[int, Span], tuple[Node, ...]]
    """Arrays that are assigned at a call, with the arrays read there: a library function that
    writes them writes all of their elements."""
    taken: frozenset[str]

    def is_scratch(self, node: Node) -> bool:
        """Whether an array is accessed by library functions at most, and unnamed in the source."""
        return node.id not in self.seen and (node.id in self.inner or node.label not in self.taken)

    def given(self, node: Node, call: Span) -> tuple[Node, ...]:
        """Return the array, or those from which a scratch array was created for a call."""
        return self.created.get((node.id, call), ()) if self.is_scratch(node) else (node,)


def classify_nodes(procedure: Procedure) -> NodeClasses:
    """Classify the arrays of a procedure as visible or scratch."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.results)
    seen = {node.id for node in (*nodes, *(node for node, _ in procedure.names))}
    inner, created = set[int](), dict[tuple[int, Span], tuple[Node, ...]]()
    for statement in statements(procedure.body):
        if isinstance(statement, Assign) and statement.call is not None:
            inner.update(
                node.id
                for node in (*direct_effects(statement).reads, *direct_effects(statement).writes)
            )
        elif not is_library_text(statement):
            seen.update(node.id for node in direct_effects(statement).reads)
        if isinstance(statement, Assign) and statement.call is None:
            seen.update(node.id for node, _ in statement.names)
            created[statement.target.node.id, statement.span] = direct_effects(statement).reads
    return NodeClasses(frozenset(seen), frozenset(inner), created, procedure.taken)


def is_library_text(statement: Statement) -> bool:
    """Whether a statement comes from library text."""
    span: Span | None = getattr(statement, "span", None)
    return span is not None and span.source.name == LIBRARY


def group_by_call(
    body: tuple[Statement, ...],
) -> Iterator[tuple[Span | None, tuple[Statement, ...]]]:
    """Yield the statements of a block in order: those of one call as a group, others one by one."""
    at = 0
    while at < len(body):
        call, end = _call_of(body[at]), at + 1
        if call is not None:
            for n in range(at + 1, len(body)):
                if _call_of(body[n]) == call:
                    end = n + 1
                elif direct_effects(body[n]).writes and not isinstance(body[n], Alloc):
                    break
        yield call, body[at:end]
        at = end


def _call_of(statement: Statement) -> Span | None:
    """Return the library call that a statement is part of, None for the user's statements."""
    leaves = [x for x in statements((statement,)) if isinstance(x, Assign | Permute)]
    calls = {x.call if isinstance(x, Assign) else None for x in leaves}
    if len(calls) != 1 or (call := calls.pop()) is None:
        return None
    if (
        isinstance(statement, For | While | Branch | Block)
        and statement.span != call
        and not is_library_text(statement)
    ):
        return None  # a loop, branch or comment that encloses the call
    return call


@dataclass(frozen=True, slots=True)
class CallWrite:
    """An array that a call writes, as one assignment, and all reads of the call."""

    statement: Assign
    reads: tuple[tuple[Domain, Read], ...]
    is_part: bool
    """Whether the call may leave elements of the range unchanged."""


def call_writes(
    call: Span, body: tuple[Statement, ...], nodes: NodeClasses, symbol: SymbolFactory
) -> Iterator[CallWrite]:
    """Yield the writes of one call to visible arrays."""
    inlined = statements(body)
    assignments = [statement for statement in inlined if isinstance(statement, Assign)]
    bound = {x for statement in inlined for x in binds(statement)}
    bound |= {
        r.symbol
        for statement in assignments
        for r in (*statement.free.ranges, *statement.reduced.ranges)
    }
    local_nodes = {statement.node for statement in inlined if isinstance(statement, Alloc)}
    reads: dict[Node, list[tuple[Index, ...]]] = {}
    writes: dict[Node, list[tuple[Index, ...]]] = {}
    for statement in assignments:
        writes.setdefault(statement.target.node, []).append(statement.target.index)
        for read in direct_effects(statement).all_reads:
            for node in nodes.given(read.node, call):
                indices = reads.setdefault(node, [])
                indices += [read.index] if node == read.node else []

    def is_visible(node: Node) -> bool:
        is_invariant = not bound & {x for extent in node.shape for x in extent.symbols()}
        return node.id in nodes.seen and node not in local_nodes and is_invariant

    operands = tuple(
        (domain, Read(node, index, call))
        for node in filter(is_visible, reads)
        for domain, index in (footprint(node, reads[node], bound, symbol),)
    )
    for node in filter(is_visible, writes):
        domain, index = footprint(node, writes[node], bound, symbol)
        names = next(statement.names for statement in assignments if statement.target.node == node)
        zero = Const(0, dtypes.int64)
        whole_assignment = Assign(
            Access(node, index), None, False, zero, domain, span=call, names=names, call=call
        )
        yield CallWrite(whole_assignment, operands, (node.id, call) not in nodes.created)


def footprint(
    node: Node, indices: list[tuple[Index, ...]], bound: Iterable[Symbol], symbol: SymbolFactory
) -> tuple[Domain, tuple[Affine, ...]]:
    """Return the domain and index of all elements of an array; an axis where a single
    loop-invariant position is accessed contributes only that, if it has it: no access may run."""
    ranges: list[Range] = []
    index: list[Affine] = []
    for axis, extent in enumerate(node.shape):
        positions = {subscripts[axis] for subscripts in indices}
        position = positions.pop() if len(positions) == 1 else None
        at = Range(symbol("ijklmn"[axis % 6]), const(0), extent)
        if isinstance(position, Affine) and position.symbols().isdisjoint(bound):
            if position.constant is None or position.constant < (extent.constant or 0):
                index.append(position)
                continue
            at = replace(at, lo=position, hi=minimum(position + 1, extent))
        ranges.append(at)
        index.append(var(at.symbol))
    return Domain(tuple(ranges)), tuple(index)
