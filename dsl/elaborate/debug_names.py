"""Debug names: what the source calls an array at each statement, for traces.

An array's label is fixed. Its names are not: `a, b = b, a` exchanges the arrays of two names, and
the result of a function is named by the caller. Statements carry the names that differ from labels;
nothing else depends on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ...lowering.ir.assignments import Assign, Names, Statement
from ...lowering.ir.expressions import Read
from ...lowering.ir.indexing import var
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import map_statements
from ...lowering.ir.walk import direct_reads, direct_writes, statements
from ..values.call_site import LIBRARY
from ..values.values import Array, Handle, Opaque, Value
from .scope import EXIT, RESULT, Frame

_CALL = re.compile(r"(?:\w+\.)*(\w+)\(.*\)", re.DOTALL)
_WORD = re.compile(r"\w+")


def _is_library(frame: Frame) -> bool:
    """Whether a frame is that of a library function."""
    return frame.function.span.source.name == LIBRARY


@contextmanager
def naming(frame: Frame) -> Iterator[None]:
    """Elaborate one statement inside: what it emits carries the names of arrays before it.

    A new array has the first name that the statement binds to it, unless its label stands in the
    text of an emitted statement: that is its name as a local of an inlined function.
    """
    ctx = frame.ctx
    outer, ctx.called = ctx.called, called(frame)
    begin, serial = len(ctx.out), ctx.serial
    try:
        yield
    finally:
        ctx.called = outer
        if not _is_library(frame):
            ctx.said.update(frame.names)
    if ctx.serial == serial:
        return
    fresh = dict(called(frame, serial))
    body = tuple(ctx.out[begin:])
    if not _is_library(frame):
        named_nodes = {*fresh, *_bound_arrays(frame)}
        fresh |= {
            node: name for node, name in _library_results(body, serial) if node not in named_nodes
        }
    if fresh:
        names = {node.id: name for node, name in fresh.items()}
        ctx.out[begin:] = map_statements(body, lambda statement: (_with_names(statement, names),))


def _library_results(body: tuple[Statement, ...], serial: int) -> Iterator[tuple[Node, str]]:
    """Yield the arrays that library calls define and the user's statements read, each with a name
    that contains the function's: `linspace_step`, numbered where there are several."""
    nested = statements(body)
    read = {
        node for inner in nested
        if not isinstance(inner, Assign) or (inner.call is None and not _is_in_library(inner))
        for node in direct_reads(inner) if node.id > serial
    }  # fmt: skip
    if not read:
        return
    calls: dict[int, re.Match[str] | None] = {}
    definitions: list[tuple[str, list[Node]]] = []
    for inner in nested:
        defined = [node for node in direct_writes(inner) if node.id > serial]
        if defined and isinstance(inner, Assign):
            span = inner.call or inner.span
            if id(span) not in calls:  # copies of an inlined statement share one
                calls[id(span)] = _CALL.fullmatch(span.text)
            call = calls[id(span)]
            if call is not None:
                definitions.append((call[1], defined))
    names: dict[Node, str] = {}
    counts: Counter[str] = Counter()
    for function, defined in definitions:
        for node in read.intersection(defined):
            if node not in names and not node.label.startswith(function):
                name = f"{function}_{node.label}"
                counts[name] += 1
                names[node] = name if counts[name] == 1 else f"{name}_{counts[name]}"
    yield from names.items()


def _is_in_library(assignment: Assign) -> bool:
    """Whether an assignment stands in a library function."""
    return assignment.span.source.name == LIBRARY


def _bound_arrays(frame: Frame) -> set[Node]:
    """Return the arrays that are bound to names of a function."""
    values = (value for value in frame.names.values() if isinstance(value, Array))
    return {value.base.node for value in values if value.base is not None}


def called(frame: Frame, serial: int = -1) -> Names:
    """Return the names of whole arrays in a function that differ from their labels, for arrays
    created after a serial number.

    Names of callers have precedence; names in library functions do not count. An input array keeps
    its label, `p_grad`, unless the caller's name of that spelling is bound to another value.
    """
    frames = [frame]
    while (caller := frames[-1].caller) is not None:
        frames.append(caller[0])
    frames = [open_frame for open_frame in frames if not _is_library(open_frame)]
    inputs = (*frame.inputs.nodes.values(), *frame.inputs.fleeting.values())
    names: dict[Node, str] = {}
    for open_frame in reversed(frames):
        labelled, named = _frame_names(open_frame, serial)
        names |= {node: node.label for node in labelled if node not in names}
        for node, name in named.items():
            if node in names or node in inputs and not _is_taken(frames[-1], node.label):
                continue
            names[node] = name
    return tuple((node, name) for node, name in names.items() if name != node.label)


def returned(frame: Frame, value: Value, results: list[Node]) -> Names:
    """Return the name `result` for a new array that a function returns whole and does not name, as
    in `return np.cumsum(x)`."""
    if not isinstance(value, Array) or (view := value.view) is None:
        return ()
    if view.node not in results or not _is_whole(value, view):
        return ()
    named = {
        other.base.node for name, other in frame.names.items()
        if name not in (RESULT, EXIT) and isinstance(other, Array) and other.base is not None
    }  # fmt: skip
    return () if view.node in named or view.node.label == "result" else ((view.node, "result"),)


def _frame_names(frame: Frame, serial: int) -> tuple[set[Node], dict[Node, str]]:
    """Return the arrays of a frame that have their label as a name, and the first names of others,
    for arrays created after a serial number."""
    labelled: set[Node] = set()
    named: dict[Node, str] = {}
    for name, value in frame.names.items():
        if not isinstance(value, Array) or (view := value.view) is None:
            continue
        if view.node.id <= serial:
            continue
        if view.node.label == name:
            labelled.add(view.node)
        elif view.node not in named and name not in (RESULT, EXIT) and name.isidentifier():
            if _is_whole(value, view):
                named[view.node] = name
    return labelled, named


def _is_whole(value: Array, view: Read) -> bool:
    """Whether a view is of all elements of its array, in order."""
    return view.index == tuple(map(var, value.axes)) and value.shape == view.node.shape


def _is_taken(frame: Frame, label: str) -> bool:
    """Whether an input array's label is bound to another value now."""
    return not isinstance(frame.names.get(label), Handle | Opaque | None)


def _with_names(statement: Statement, fresh: Mapping[int, str]) -> Statement:
    """Return a statement with the names of arrays, by node id, that it does not carry yet."""
    if not isinstance(statement, Assign):
        return statement
    accessed = (*direct_reads(statement), *direct_writes(statement))
    unnamed = {node.id: node for node in accessed if node.id in fresh}
    for node, _ in statement.names if unnamed else ():
        unnamed.pop(node.id, None)
    if not unnamed:
        return statement
    words = _WORD.findall((statement.call or statement.span).text)
    added = tuple(
        (node, fresh[number]) for number, node in sorted(unnamed.items()) if node.label not in words
    )
    return replace(statement, names=(*statement.names, *added)) if added else statement
