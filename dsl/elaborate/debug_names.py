"""What arrays are called where a statement stands: the name that people wrote, for the trace.

An array keeps its label wherever it goes. Names do not: `a, b = b, a` gives each the other's array,
and what a function returns gets its name from the caller. Statements carry the names that are not
labels; nothing else depends on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ...lowering.ir.assignments import Assign, Names, Statement
from ...lowering.ir.indexing import var
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import map_statements
from ...lowering.ir.walk import own_reads, own_writes, statements
from ..values.values import Array, Handle, Opaque
from .scope import EXIT, LIBRARY, RESULT, Frame

_CALL = re.compile(r"(?:\w+\.)*(\w+)\(.*\)", re.DOTALL)
_WORD = re.compile(r"\w+")


def _is_library(frame: Frame) -> bool:
    return frame.function.span.source.name == LIBRARY


@contextmanager
def naming(frame: Frame) -> Iterator[None]:
    """Elaborate one statement inside: what it emits carries the names that arrays had before it.

    An array that is new has the first name that the statement gives it, but where the text of a
    statement has another one: that of a local of the function that made it.
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
        known = {*fresh, *_bound(frame)}
        fresh |= {node: name for node, name in _serving(body, serial) if node not in known}
    if fresh:
        names = {node.id: name for node, name in fresh.items()}
        ctx.out[begin:] = map_statements(body, lambda one: (_named(one, names),))


def _serving(body: tuple[Statement, ...], serial: int) -> Iterator[tuple[Node, str]]:
    """Yield the arrays that calls of the library make and the user's statements read, each with a
    name that says of which call it is: `linspace_step`, a number behind where there are several."""
    inside = statements(body)
    read = {
        node for one in inside
        if not isinstance(one, Assign) or (one.call is None and not _is_inner(one))
        for node in own_reads(one) if node.id > serial
    }  # fmt: skip
    if not read:
        return
    calls: dict[int, re.Match[str] | None] = {}
    made: list[tuple[str, list[Node]]] = []
    for one in inside:
        new = [node for node in own_writes(one) if node.id > serial]
        if new and isinstance(one, Assign):
            span = one.call or one.span
            if id(span) not in calls:  # what is inlined several times has one
                calls[id(span)] = _CALL.fullmatch(span.text)
            call = calls[id(span)]
            if call is not None:
                made.append((call[1], new))
    found: dict[Node, str] = {}
    taken: Counter[str] = Counter()
    for function, new in made:
        for node in read.intersection(new):
            if node not in found and not node.label.startswith(function):
                name = f"{function}_{node.label}"
                taken[name] += 1
                found[node] = name if taken[name] == 1 else f"{name}_{taken[name]}"
    yield from found.items()


def _is_inner(one: Assign) -> bool:
    return one.span.source.name == LIBRARY


def _bound(frame: Frame) -> set[Node]:
    """Return the arrays that a function has names for."""
    values = (value for value in frame.names.values() if isinstance(value, Array))
    return {value.base.node for value in values if value.base is not None}


def called(frame: Frame, serial: int = -1) -> Names:
    """Return what whole arrays are called in a function, where that is not their label; of those
    made after a serial number.

    The caller's names come first; those that functions of the library give to arrays are nobody's.
    An array that was given keeps its own, `p_grad`, unless that is another one now.
    """
    frames = [frame]
    while (caller := frames[-1].caller) is not None:
        frames.append(caller[0])
    frames = [one for one in frames if not _is_library(one)]
    given = (*frame.inputs.nodes.values(), *frame.inputs.fleeting.values())
    found: dict[Node, str] = {}
    for one in reversed(frames):
        plain, others = _names(one, serial)
        found |= {node: node.label for node in plain if node not in found}
        for node, name in others.items():
            if node in found or node in given and not _is_taken(frames[-1], node.label):
                continue
            found[node] = name
    return tuple((node, name) for node, name in found.items() if name != node.label)


def _names(frame: Frame, serial: int) -> tuple[set[Node], dict[Node, str]]:
    """Return the arrays of a frame that are called like their label, and first names of others; of
    those made after a serial number."""
    plain: set[Node] = set()
    others: dict[Node, str] = {}
    for name, value in frame.names.items():
        if not isinstance(value, Array) or (place := value.view) is None:
            continue
        if place.node.id <= serial:
            continue
        if place.node.label == name:
            plain.add(place.node)
        elif place.node not in others and name not in (RESULT, EXIT) and name.isidentifier():
            if place.index == tuple(map(var, value.axes)) and value.shape == place.node.shape:
                others[place.node] = name
    return plain, others


def _is_taken(frame: Frame, label: str) -> bool:
    """Whether a name stands for something else than the array that was given by it."""
    return not isinstance(frame.names.get(label), Handle | Opaque | None)


def _named(statement: Statement, fresh: Mapping[int, str]) -> Statement:
    """Return a statement with the names of arrays, by their ids, that it has not named yet."""
    if not isinstance(statement, Assign):
        return statement
    own = (*own_reads(statement), *own_writes(statement))
    new = {node.id: node for node in own if node.id in fresh}
    for node, _ in statement.names if new else ():
        new.pop(node.id, None)
    if not new:
        return statement
    words = _WORD.findall((statement.call or statement.span).text)
    more = tuple(
        (node, fresh[number]) for number, node in sorted(new.items()) if node.label not in words
    )
    return replace(statement, names=(*statement.names, *more)) if more else statement
