"""Programs as kernels for a device of many threads.

What has to be decided between kernels - storage, prints, who trades places - stays outside of
them, for the host; all else goes into loops of the kind `block`, each of which is a kernel.

>>> from plusequals.lowering.target import HOST
>>> show(lambda program: grid(program, HOST).program, '''
... y[i] = x[i]
... print(y[0])
... ''', y="f32[8]", x="f32[8]")
for block in 0..1 block:
    for thread in 0..1 thread:
        for i in 0..8:
            y[i] = x[i]
print(y[0])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.indexing import Symbol, const
from ..ir.loops import Comment, For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.walk import reads, statements, writes
from ..passes.access import accesses
from ..target import Target

Space = Literal["device", "shared", "private"]
"""Who has an array: the device, each block of threads, each thread."""
PRIVATE_BYTES = 256
"""Arrays up to this size may be each thread's own."""
MOST_NODES = 64
"""Statements that have nothing to do with each other share a kernel up to so many arrays."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A program whose outermost loops of the kind `block` are kernels."""

    program: Program
    spaces: Mapping[int, Space]
    """Of temporaries that are not the device's, who has them, by node id."""


def grid(program: Program, target: Target) -> Grid:
    """Return the program as kernels, and who has each temporary."""
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    made = _placed(body)
    first = program.kernels[0]
    scheduled = replace(program, kernels=(replace(first, body=made),))
    return Grid(scheduled, _spaces(scheduled, made))


def _placed(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """Return statements with all that the host does not have to do inside of kernels."""
    out: list[Stmt] = []
    run: list[Stmt] = []
    for stmt in body:
        if not _is_hosts(stmt):
            run.append(stmt)
            continue
        out += _kernels(run)
        run = []
        match stmt:
            case For():
                stmt = replace(stmt, body=_placed(stmt.body))
            case While():
                stmt = replace(stmt, prelude=_placed(stmt.prelude), body=_placed(stmt.body))
            case If():
                stmt = replace(stmt, then=_placed(stmt.then), other=_placed(stmt.other))
            case _:
                pass
        out.append(stmt)
    return (*out, *_kernels(run))


def _kernels(run: list[Stmt]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    parts: list[Stmt] = []
    used: set[Node] = set()
    for stmt in run:
        nodes = {*reads((stmt,)), *writes((stmt,))}
        if len(used | nodes) > MOST_NODES and used:
            out.append(alone(tuple(parts)))
            parts, used = [], set()
        parts.append(stmt)
        used |= nodes
    if all(isinstance(stmt, Comment) for stmt in parts):
        return (*out, *parts)
    return (*out, alone(tuple(parts)))


def _is_hosts(stmt: Stmt) -> bool:
    """Whether the host has to do a statement, or part of it."""
    if isinstance(stmt, Let | Break | Continue):
        return True
    return any(isinstance(inner, Alloc | Permute | Print) for inner in statements((stmt,)))


def alone(body: tuple[Stmt, ...]) -> For:
    """Return statements as a kernel of one thread."""
    thread = For(Symbol("thread", -(2**20)), const(0), const(1), 1, body, "thread")
    return For(Symbol("block", -(2**20) - 1), const(0), const(1), 1, (thread,), "block")


def _spaces(program: Program, body: tuple[Stmt, ...]) -> dict[int, Space]:
    """Return which temporaries each thread has: those that one kernel uses, and fills first."""
    users: dict[int, list[Stmt]] = {}
    for stmt in statements(body):
        if isinstance(stmt, For) and stmt.kind == "block":
            for node in dict.fromkeys((*reads((stmt,)), *writes((stmt,)))):
                users.setdefault(node.id, []).append(stmt)
    outside = set(_outside(body))
    found: dict[int, Space] = {}
    for node in program.locals:
        kernels = users.get(node.id, [])
        if len(kernels) != 1 or node in outside or not _is_small(node):
            continue
        if not accesses(kernels).read_before_written(node):
            found[node.id] = "private"
    return found


def _outside(body: Iterable[Stmt]) -> Iterable[Node]:
    """Yield the nodes that the host asks for, or whose storage it gives or exchanges."""
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind == "block":
            continue
        if isinstance(stmt, For):
            yield from _outside(stmt.body)
        elif isinstance(stmt, If):
            yield from (*reads((replace(stmt, then=(), other=()),)),)
            yield from _outside((*stmt.then, *stmt.other))
        elif isinstance(stmt, While):
            yield from reads((replace(stmt, prelude=(), body=()),))
            yield from _outside((*stmt.prelude, *stmt.body))
        else:
            yield from (*reads((stmt,)), *writes((stmt,)))


def _is_small(node: Node) -> bool:
    return node.static_shape is not None and (not node.rank or node.bytes <= PRIVATE_BYTES)
