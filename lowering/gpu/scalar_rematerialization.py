"""Scalars that each kernel computes for itself, so that none has to find them for the others.

    s = a * 2; for i: y[i] = x[i] * s; for i: z[i] = x[i] + s
    becomes
    for i: s = a * 2; y[i] = x[i] * s                          kernels
    for i: s = a * 2; z[i] = x[i] + s

A kernel of one thread takes longer than all threads need for a few operations on numbers that no
kernel changes. Only what statements of kernels read is copied: not what the host decides by.

>>> program = lowered("y[i] = x[i] * (s * 2 + 1)", y="f64[8]", x="f64[8]", s="f64")
>>> program = optimize(program, Target("cuda"))[0]
>>> found = scalars(program.kernels[0].body, program.locals)
>>> print_loops(with_copies([in_kind(program.kernels[0].body[-1], "block")], found))
for i in 0..8 block:
    total = s * 2.0 + 1.0
    y[i] = x[i] * total
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..analysis.accesses import accesses
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select
from ..ir.loops import For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, own_reads, own_writes, reads, statements

MOST = 8
"""So many operations are less than what a kernel more takes."""
CHEAP = frozenset("add sub mul neg abs max min lt le gt ge eq ne and or logical_not".split())
"""Operations of few instructions, whatever their type."""


def scalars(body: Sequence[Stmt], temporaries: Iterable[Node]) -> Mapping[int, Store]:
    """Return the statements that find such scalars, by the id of these, in their order."""
    inside = statements(body)
    locals_ = {node.id for node in temporaries}
    written = Counter(node.id for stmt in inside for node in own_writes(stmt))
    asked = {
        node.id for stmt in inside if not isinstance(stmt, Store | Update)
        for node in own_reads(stmt)
    }  # fmt: skip
    found: dict[int, Store] = {}
    for stmt in body:
        if not isinstance(stmt, Store) or stmt.access.node.rank:
            continue
        number = stmt.access.node.id
        inputs = {node.id for node in own_reads(stmt)}
        known = all(not written[one] or one in found for one in inputs)
        cost = _operations(stmt.value)
        if number in locals_ - asked and written[number] == 1 and known and cost in range(MOST + 1):
            found[number] = stmt
    sites = accesses(body) if found else None
    return {
        number: stmt for number, stmt in found.items()
        if sites is not None and not sites.read_before_written(stmt.access.node)
    }  # fmt: skip


def _operations(value: Expr) -> int:
    """Return how many operations a value takes, more than are copied where one is not cheap."""
    match value:
        case Const() | Position():
            return 0
        case Read(node):
            return MOST + 1 if node.rank else 0
        case Cast(inner):
            return 1 + _operations(inner)
        case Select(test, yes, no):
            return 1 + _operations(test) + _operations(yes) + _operations(no)
        case Apply(op, args) if op.name in CHEAP:
            return 1 + sum(_operations(arg) for arg in args)
        case _:
            return MOST + 1


def with_copies(body: Iterable[Stmt], found: Mapping[int, Store]) -> tuple[Stmt, ...]:
    """Return kernels, and what the host does around them, each with the scalars that it reads."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind == "block":
            out.append(replace(stmt, body=(*_needed(stmt, found), *stmt.body)))
        else:
            inner = tuple(with_copies(part, found) for part in bodies(stmt))
            out.append(with_bodies(stmt, inner) if inner else stmt)
    return tuple(out)


def _needed(kernel: For, found: Mapping[int, Store]) -> list[Store]:
    """Return the statements that a kernel needs, in their order."""
    wanted = {node.id for node in reads((kernel,))}
    out: list[Store] = []
    for number, stmt in reversed([*found.items()]):
        if number in wanted:
            wanted |= {node.id for node in own_reads(stmt)}
            out.insert(0, stmt)
    return out
