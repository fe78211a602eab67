"""Any-reductions: flags that iterations set and never read.

    for i: if t(i): ok = False
    becomes
    is_set = False
    for i: if t(i): is_set or= True
    if is_set: ok = False

Precondition: an element that a loop stores under a test, always with the same loop-invariant value,
and that it accesses in no other way.

>>> program, _ = optimize(lowered('''
... ok = True
... for i in range(len(x)):
...     if x[i] < 0:
...         ok = False
... y[0] = ok
... ''', y="b[1]", x="f32[900]"), Target("cuda"))
>>> print_loops(rewrite_any_of(program, fresh_for(program)).kernels[0].body[2:-2])
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

from ...analysis.parallel_band import has_checks
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Const, Read
from ...ir.fresh import Fresh
from ...ir.loops import For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, map_statements, with_bodies
from ...ir.walk import binds, bodies, direct_reads, direct_writes, free_symbols, statements, uses

TRUE, FALSE = Const(True, dtypes.bool_), Const(False, dtypes.bool_)


def rewrite_any_of(program: Program, fresh: Fresh) -> Program:
    """Return the program in which loops that set flags reduce the tests of doing so."""
    temporaries = frozenset(node.id for node in program.locals)

    def rewrite_body(stmts: Iterable[Stmt]) -> tuple[Stmt, ...]:
        return tuple(rewritten for stmt in stmts for rewritten in rewrite_statement(stmt))

    def rewrite_statement(stmt: Stmt) -> tuple[Stmt, ...]:
        stores = _find_flags(stmt, temporaries) if isinstance(stmt, For) else ()
        flag_of = {
            store.access.node: fresh.scalar(f"{store.access.node.label}_is_set", dtypes.bool_)
            for store in stores
        }
        if stores:
            (stmt,) = map_statements((stmt,), lambda inner: (_raise_flag(inner, flag_of),))
        starts = (Store(Access(flag, ()), FALSE) for flag in flag_of.values())
        ends = (If(Read(flag_of[store.access.node], ()), (store,)) for store in stores)
        return (*starts, with_bodies(stmt, tuple(map(rewrite_body, bodies(stmt)))), *ends)

    return map_kernels(program, rewrite_body)


def _raise_flag(stmt: Stmt, flag_of: Mapping[Node, Node]) -> Stmt:
    """Return a statement, with a store that has a flag replaced by an update of the flag."""
    if not isinstance(stmt, Store) or stmt.access.node not in flag_of:
        return stmt
    return Update(Access(flag_of[stmt.access.node], ()), OPS["or"], TRUE, span=stmt.span)


def _find_flags(loop: For, temporaries: frozenset[int]) -> tuple[Store, ...]:
    """Return the flags that a loop sets and never reads: one store for each element."""
    if loop.kind != "serial":
        return ()
    stmts = statements((loop,))
    bound = {symbol for stmt in stmts for symbol in binds(stmt)}
    read = {node for stmt in stmts for node in direct_reads(stmt)}
    written: dict[Node, list[Stmt]] = {}
    for stmt in stmts:
        for node in direct_writes(stmt):
            written.setdefault(node, []).append(stmt)
    conditional = {id(stmt) for stmt in _conditional_stores(loop.body, False)}
    can_fail = has_checks((loop,))
    out: list[Store] = []
    for node, writers in written.items():
        first = writers[0]
        if (
            node in read
            or (can_fail and node.id not in temporaries)
            or not isinstance(first, Store)
        ):
            continue
        is_invariant = not bound & uses(first) and not bound & free_symbols(first.value)
        is_unchanged = not any(source in written for source in direct_reads(first))
        if (
            is_invariant
            and is_unchanged
            and all(writer == first and id(writer) in conditional for writer in writers)
        ):
            out.append(first)
    return tuple(out)


def _conditional_stores(body: Iterable[Stmt], is_conditional: bool) -> Iterator[Stmt]:
    """Yield the stores that are executed under a test."""
    for stmt in body:
        if isinstance(stmt, Store) and is_conditional:
            yield stmt
        for part in bodies(stmt):
            yield from _conditional_stores(part, is_conditional or isinstance(stmt, If))
