"""Flags that rounds set and do not look at: whether any of them does, as a reduction.

    for i: if t(i): ok = False
    becomes
    is_set = False
    for i: if t(i): is_set or= True
    if is_set: ok = False

Needs an element that a loop sets under a test, always to one value that it does not change, and
that it uses in no other way.

>>> program, _ = optimize(lowered('''
... ok = True
... for i in range(len(x)):
...     if x[i] < 0:
...         ok = False
... y[0] = ok
... ''', y="b[1]", x="f32[900]"), Target("cuda"))
>>> print_loops(flags(program, fresh_for(program)).kernels[0].body[2:-2])
ok_is_set = False
for i in 0..900:
    if x[i] < 0.0:
        # ok = False
        ok_is_set or= True
if ok_is_set:
    ok = False
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...analysis.parallel_band import fails
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Const, Read, reads
from ...ir.fresh import Fresh
from ...ir.loops import For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_statements, over_kernels, with_bodies
from ...ir.walk import binds, bodies, free_symbols, own_reads, own_writes, statements, uses

TRUE, FALSE = Const(True, dtypes.bool_), Const(False, dtypes.bool_)


def flags(program: Program, fresh: Fresh) -> Program:
    """Return the program in which loops that set flags find out whether they do."""
    own = frozenset(node.id for node in program.locals)

    def body(stmts: Iterable[Stmt]) -> tuple[Stmt, ...]:
        return tuple(made for stmt in stmts for made in statement(stmt))

    def statement(stmt: Stmt) -> tuple[Stmt, ...]:
        found = _flags_of(stmt, own) if isinstance(stmt, For) else ()
        named = {
            one.access.node: fresh.scalar(f"{one.access.node.label}_is_set", dtypes.bool_)
            for one in found
        }
        if found:
            (stmt,) = map_statements((stmt,), lambda one: (_set(one, named),))
        starts = (Store(Access(flag, ()), FALSE) for flag in named.values())
        ends = (If(Read(named[one.access.node], ()), (one,)) for one in found)
        return (*starts, with_bodies(stmt, tuple(map(body, bodies(stmt)))), *ends)

    return over_kernels(program, body)


def _set(stmt: Stmt, named: Mapping[Node, Node]) -> Stmt:
    """Return a statement, which raises a flag instead if it sets what has one."""
    if not isinstance(stmt, Store) or stmt.access.node not in named:
        return stmt
    return Update(Access(named[stmt.access.node], ()), OPS["or"], TRUE, span=stmt.span)


def _flags_of(loop: For, own: frozenset[int]) -> tuple[Store, ...]:
    """Return what a loop sets, and does not look at: one store for each element."""
    if loop.kind != "serial":
        return ()
    inside = statements((loop,))
    bound = {symbol for stmt in inside for symbol in binds(stmt)}
    read = {node for stmt in inside for node in own_reads(stmt)}
    written: dict[Node, list[Stmt]] = {}
    for stmt in inside:
        for node in own_writes(stmt):
            written.setdefault(node, []).append(stmt)
    tested = {id(stmt) for stmt in _tested(loop.body, False)}
    seen = fails((loop,))
    out: list[Store] = []
    for node, stmts in written.items():
        first = stmts[0]
        if node in read or (seen and node.id not in own) or not isinstance(first, Store):
            continue
        plain = not bound & uses(first) and not bound & free_symbols(first.value)
        stays = not any(one.node in written for one in reads(first.value))
        if plain and stays and all(one == first and id(one) in tested for one in stmts):
            out.append(first)
    return tuple(out)


def _tested(body: Iterable[Stmt], is_tested: bool) -> Iterator[Stmt]:
    """Yield the stores that are done under a test."""
    for stmt in body:
        if isinstance(stmt, Store) and is_tested:
            yield stmt
        for part in bodies(stmt):
            yield from _tested(part, is_tested or isinstance(stmt, If))
