"""Dead code elimination: unread stores, empty loops and branches, unused symbols and locals.

Removes stores to locals that nothing reads, then what only they needed, integers without a use,
loops and branches that are left empty, and locals without a use. Stores to parameters and results,
checks and prints stay, each in its place.

>>> show(eliminate_dead_code, '''
... t[i] = x[i] * 2
... y[i] = x[i] + 1
... ''', y="f32[8]", x="f32[8]")
for i in 0..8:
    y[i] = x[i] + 1.0
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from ..ir.assignments import Alloc, Let, Permute
from ..ir.comments import drop_removed
from ..ir.dtypes import bool_
from ..ir.expressions import Apply
from ..ir.indexing import Symbol
from ..ir.loops import Comment, Fill, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_kernels, with_bodies
from ..ir.walk import bodies, direct_effects, direct_writes, statements, uses


def eliminate_dead_code(program: Program) -> Program:
    """Return the program without what no result, fault or print depends on."""
    while True:
        body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
        read = [_nodes_read(stmt) for stmt in body]
        smaller = _eliminate_once(program, body, read)
        if smaller == program:
            used = {node.id for stmt in body for node in direct_writes(stmt)}.union(*read)
            live_locals = tuple([node for node in program.locals if node.id in used])
            return (
                program
                if len(live_locals) == len(program.locals)
                else replace(program, locals=live_locals)
            )
        program = smaller


def _eliminate_once(program: Program, body: list[Stmt], read: list[list[int]]) -> Program:
    """Return the program without statements that no other needs; `read` are the nodes each
    reads."""
    visible = (*(p.node for p in program.parameters), *program.results)
    needed = _find_needed(zip(body, read, strict=True), visible)
    lets = any(isinstance(stmt, Let) for stmt in body)
    symbols = frozenset(symbol for stmt in body if lets for symbol in uses(stmt))
    return map_kernels(program, lambda body: _live_statements(body, needed, symbols))


def _find_needed(body: Iterable[tuple[Stmt, list[int]]], visible: Iterable[Node]) -> frozenset[int]:
    """Return the ids of the nodes that something observable depends on.

    What a store reads is needed only where its own node is: a sum that nobody reads is dead.
    """
    sources: dict[int, set[int]] = {}
    worklist: list[int] = [node.id for node in visible]
    for stmt, read in body:
        if isinstance(stmt, Store | Update):
            targets = [node.id for node in direct_writes(stmt)]
            for target in targets:  # the best value and its position need each other
                sources.setdefault(target, set()).update(read, targets)
        else:
            worklist += read
    needed: set[int] = set()
    while worklist:
        node_id = worklist.pop()
        if node_id not in needed:
            needed.add(node_id)
            worklist += sources.get(node_id, ())
    return frozenset(needed)


def _nodes_read(stmt: Stmt) -> list[int]:
    if isinstance(stmt, Permute):
        return [node.id for node in stmt.sources]
    return [read.node.id for read in direct_effects(stmt).all_reads]


def _live_statements(
    body: tuple[Stmt, ...], needed: frozenset[int], symbols: frozenset[Symbol]
) -> tuple[Stmt, ...]:
    """Return the live statements."""
    return drop_removed([
        stmt if isinstance(stmt, Comment) else _live_or_none(stmt, needed, symbols) for stmt in body
    ])  # fmt: skip


def _live_or_none(stmt: Stmt, needed: frozenset[int], symbols: frozenset[Symbol]) -> Stmt | None:
    match stmt:
        case Store() | Update():
            return stmt if any(node.id in needed for node in direct_writes(stmt)) else None
        case Fill(node) | Alloc(node):
            return stmt if node.id in needed else None
        case Let(symbol):
            return stmt if symbol in symbols else None
        case _:
            pass
    lists = cast(tuple[tuple[Stmt, ...], ...], bodies(stmt))
    inner = tuple([_live_statements(nested, needed, symbols) for nested in lists])
    if isinstance(stmt, For) and not _has_effect(inner[0]):
        return None
    if isinstance(stmt, If):
        return _simplify_branch(stmt, inner[0], inner[1])
    return with_bodies(stmt, inner) if inner else stmt


def _simplify_branch(branch: If, then: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> If | None:
    if _has_effect(then):
        return with_bodies(branch, (then, orelse if _has_effect(orelse) else ()))
    if not _has_effect(orelse):
        return None
    test = branch.test
    match test:
        case Apply(op, (inner,), _) if op.name == "logical_not":
            test = inner
        case _:
            test = Apply(OPS["logical_not"], (test,), bool_)
    return replace(branch, test=test, then=orelse, orelse=())


def _has_effect(body: tuple[Stmt, ...]) -> bool:
    return any(not isinstance(stmt, Comment) for stmt in body)
