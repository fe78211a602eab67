"""Rematerialization of scalars in the kernels that read them, without a kernel that computes them.

    s = a * 2; for i: y[i] = x[i] * s; for i: z[i] = x[i] + s
    becomes
    for i: s = a * 2; y[i] = x[i] * s                          kernels
    for i: s = a * 2; z[i] = x[i] + s

A kernel of one thread takes longer than it takes all threads to execute a few operations on values
that no kernel changes. Only scalars that kernels read are rematerialized, not those that host code
branches on.

>>> program = lowered("y[i] = x[i] * (s * 2 + 1)", y="f64[8]", x="f64[8]", s="f64")
>>> program = optimize(program, Target("cuda"))[0]
>>> definitions = find_cheap_scalars(program.kernels[0].body, program.locals)
>>> print_loops(rematerialize_scalars([in_kind(program.kernels[0].body[-1], "block")], definitions))
for i in 0..8 block:
    total = s * 2.0 + 1.0
    y[i] = x[i] * total
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select
from ..ir.loops import For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, direct_reads, direct_writes, reads, statements

CHEAP = frozenset("add sub mul neg abs max min lt le gt ge eq ne and or logical_not".split())
"""Operations of few instructions in every type."""


def find_cheap_scalars(body: Sequence[Stmt], temporaries: Iterable[Node]) -> Mapping[int, Store]:
    """Return the definitions of the scalars to rematerialize, by node id, in program order."""
    stmts = statements(body)
    locals_ = {node.id for node in temporaries}
    written = Counter(node.id for stmt in stmts for node in direct_writes(stmt))
    host_reads = {
        node.id for stmt in stmts if not isinstance(stmt, Store | Update)
        for node in direct_reads(stmt)
    }  # fmt: skip
    definitions: dict[int, Store] = {}
    for stmt in body:
        if not isinstance(stmt, Store) or stmt.access.node.rank:
            continue
        number = stmt.access.node.id
        inputs = {node.id for node in direct_reads(stmt)}
        has_constant_inputs = all(not written[source] or source in definitions for source in inputs)
        cost = _count_operations(stmt.value)
        if (
            number in locals_ - host_reads
            and written[number] == 1
            and has_constant_inputs
            and cost in range(thresholds.MAX_REMATERIALIZED_OPERATIONS + 1)
        ):
            definitions[number] = stmt
    sites = collect_accesses(body) if definitions else None
    return {
        number: stmt for number, stmt in definitions.items()
        if sites is not None and not sites.is_read_before_written(stmt.access.node)
    }  # fmt: skip


def _count_operations(value: Expr) -> int:
    """Return the number of operations of an expression, more than MOST where one is not cheap."""
    match value:
        case Const() | Position():
            return 0
        case Read(node):
            return thresholds.MAX_REMATERIALIZED_OPERATIONS + 1 if node.rank else 0
        case Cast(inner):
            return 1 + _count_operations(inner)
        case Select(test, yes, no):
            return 1 + _count_operations(test) + _count_operations(yes) + _count_operations(no)
        case Apply(op, args) if op.name in CHEAP:
            return 1 + sum(_count_operations(arg) for arg in args)
        case _:
            return thresholds.MAX_REMATERIALIZED_OPERATIONS + 1


def rematerialize_scalars(
    body: Iterable[Stmt], definitions: Mapping[int, Store]
) -> tuple[Stmt, ...]:
    """Return kernels, and host code around them, each kernel with the definitions it needs."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind == "block":
            out.append(replace(stmt, body=(*_select_needed(stmt, definitions), *stmt.body)))
        else:
            inner = tuple(rematerialize_scalars(part, definitions) for part in bodies(stmt))
            out.append(with_bodies(stmt, inner) if inner else stmt)
    return tuple(out)


def _select_needed(kernel: For, definitions: Mapping[int, Store]) -> list[Store]:
    """Return the definitions that a kernel needs, transitively, in program order."""
    wanted = {node.id for node in reads((kernel,))}
    out: list[Store] = []
    for number, stmt in reversed([*definitions.items()]):
        if number in wanted:
            wanted |= {node.id for node in direct_reads(stmt)}
            out.insert(0, stmt)
    return out
