"""What arrays are called where a statement stands: the name that people wrote, for the trace.

An array keeps its label wherever it goes. Names do not: `a, b = b, a` gives each the other's array,
and what a function returns gets its name from the caller. Statements carry the names that are not
labels; nothing else depends on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...lowering.ir.assignments import Assign, Names, Statement
from ...lowering.ir.indexing import var
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import map_statements
from ...lowering.ir.walk import own_reads, own_writes, statements
from .frame import EXIT, LIBRARY, RESULT, Frame
from .values import Array, Handle, Opaque

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
    fresh = {node: name for node, name in called(frame) if node.id > serial}
    body = tuple(ctx.out[begin:])
    if not _is_library(frame):
        known = {*fresh, *_bound(frame)}
        fresh |= {node: name for node, name in _serving(body, serial) if node not in known}
    if fresh:
        ctx.out[begin:] = map_statements(body, lambda one: (_named(one, fresh),))


def _serving(body: tuple[Statement, ...], serial: int) -> Iterator[tuple[Node, str]]:
    """Yield the arrays that calls of the library make and the user's statements read, each with a
    name that says of which call it is: `linspace_step`, a number behind where there are several."""
    made: list[tuple[str, list[Node]]] = []
    for one in statements(body):
        new = [node for node in own_writes(one) if node.id > serial]
        if new and isinstance(one, Assign):
            call = _CALL.fullmatch((one.call or one.span).text)
            if call is not None:
                made.append((call[1], new))
    if not made:
        return
    read = {
        node for one in statements(body)
        if not isinstance(one, Assign) or (one.call is None and not _is_inner(one))
        for node in own_reads(one)
    }  # fmt: skip
    found: dict[Node, str] = {}
    taken: Counter[str] = Counter()
    for function, new in made:
        for node in read.intersection(new) - found.keys():
            if not node.label.startswith(function):
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


def called(frame: Frame) -> Names:
    """Return what whole arrays are called in a function, where that is not their label.

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
        plain, others = _names(one)
        found |= {node: node.label for node in plain if node not in found}
        for node, name in others.items():
            if node in found or node in given and not _is_taken(frames[-1], node.label):
                continue
            found[node] = name
    return tuple((node, name) for node, name in found.items() if name != node.label)


def _names(frame: Frame) -> tuple[set[Node], dict[Node, str]]:
    """Return the arrays of a frame that are called like their label, and first names of others."""
    plain: set[Node] = set()
    others: dict[Node, str] = {}
    for name, value in frame.names.items():
        if not isinstance(value, Array) or (place := value.view) is None:
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


def _named(statement: Statement, fresh: dict[Node, str]) -> Statement:
    if not isinstance(statement, Assign):
        return statement
    known = {node for node, _ in statement.names}
    own = dict.fromkeys((*own_reads(statement), *own_writes(statement)))
    new = [node for node in own if node in fresh and node not in known]
    if not new:
        return statement
    words = _WORD.findall((statement.call or statement.span).text)
    more = tuple(
        (node, fresh[node]) for node in sorted(new, key=lambda node: node.id)
        if node.label not in words
    )  # fmt: skip
    return replace(statement, names=(*statement.names, *more)) if more else statement
