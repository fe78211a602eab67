"""Buffers: scratch arrays that are never needed at the same time share their memory.

An array takes the place of an earlier one of the same type and shape, if the earlier one is last
used in a statement before, and all that is read of the later one was written by then (so it does
not need the zeros that locals start from). What one top-level statement uses is needed throughout
it: arrays of one time loop never share. Exchanged arrays and those of run-time size stay apart.

>>> show(buffers, '''
... t[i] = sum(x[i, j])
... u[i] = max(x[i, j] - t[i])
... v[i] = max(x[i, j] - u[i])
... y[i] = v[i]
... ''', y="f32[8]", x="f32[8, 9]")
for i in 0..8:
    t[i] = 0.0
    for j in 0..9:
        t[i] += x[i, j]
for i in 0..8:
    u[i] = -inf
    for j in 0..9:
        u[i] max= x[i, j] - t[i]
for i in 0..8:
    t[i] = -inf
    for j in 0..9:
        t[i] max= x[i, j] - u[i]
for i in 0..8:
    y[i] = t[i]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..ir.assignments import Permute
from ..ir.loops import Program, Stmt
from ..ir.node import Node
from ..ir.walk import over_kernels, rename, statements
from .access import Accesses, accesses
from .decision import Decided, Decision, Reason


class Sharing(Reason):
    """Why an array has no memory of its own."""

    LATER = "it is needed only after the last use of the array whose memory it takes"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a program's scratch arrays of static shape: together, and at most at one time."""

    allocated: int
    peak: int


@dataclass(frozen=True, slots=True)
class _Life:
    """A scratch array, and the numbers of the top-level statements that use it first and last."""

    node: Node
    first: int
    last: int


def buffers(program: Program) -> Program:
    """Return the program with scratch arrays in the memory of earlier ones."""
    return decide_buffers(program).program


def decide_buffers(program: Program) -> Decided:
    """Return the program with scratch arrays in the memory of earlier ones, and which ones."""
    found = accesses(_body(program))
    lives = _lives(program, found)
    free: list[_Life] = []
    taken: dict[int, Node] = {}
    decisions: list[Decision] = []
    for life in lives:
        fits = [old for old in free if _fits(old, life)]
        if fits and not found.read_before_written(life.node):
            old = max(fits, key=lambda one: one.last)
            free.remove(old)
            taken[life.node.id] = old.node
            decisions.append(Decision("reused", Sharing.LATER, life.node, f"`{old.node.label}`"))
            life = replace(life, node=old.node)
        free.append(life)
    if not taken:
        return Decided(program, ())
    kept = tuple(node for node in program.locals if node.id not in taken)
    new = over_kernels(program, lambda body: rename(body, {}, taken))
    return Decided(replace(new, locals=kept), tuple(decisions))


def memory(program: Program) -> Memory:
    """Return how much scratch memory the program has, and how much it needs at one time."""
    lives = _lives(program, accesses(_body(program)))
    moments = range(max((life.last for life in lives), default=-1) + 1)
    needed = (
        sum(_bytes(life.node) for life in lives if life.first <= now <= life.last)
        for now in moments
    )
    return Memory(sum(_bytes(life.node) for life in lives), max(needed, default=0))


def _body(program: Program) -> tuple[Stmt, ...]:
    return tuple(stmt for kernel in program.kernels for stmt in kernel.body)


def _lives(program: Program, found: Accesses) -> list[_Life]:
    """Return the scratch arrays that may share, in the order of their first use."""
    moving = _moving(statements(_body(program)))
    lives = []
    for node in program.locals:
        sites = found.of(node)
        if sites and node.rank and node.static_shape is not None and node.id not in moving:
            used = [site.route[0][0] for site in sites]
            lives.append(_Life(node, min(used), max(used)))
    return sorted(lives, key=lambda life: life.first)


def _moving(body: Iterable[Stmt]) -> frozenset[int]:
    """Return the ids of the nodes whose arrays are exchanged."""
    found = (stmt.nodes + stmt.sources for stmt in body if isinstance(stmt, Permute))
    return frozenset(node.id for nodes in found for node in nodes)


def _fits(old: _Life, new: _Life) -> bool:
    same = (old.node.dtype, old.node.shape) == (new.node.dtype, new.node.shape)
    return same and old.last < new.first


def _bytes(node: Node) -> int:
    size = node.dtype.itemsize
    for extent in node.static_shape or ():
        size *= extent
    return size
