"""Kernels in which each thread writes its own elements, wherever data says that they are.

    for i in 0..n: h[k[i]] += w[i]
    becomes
    for p in 0..P:                                        threads
        for i in 0..n: if k[i] % P == p: h[k[i]] += w[i]

Every thread goes through all rounds in their order and does what concerns its elements, so that
results are those of the program, bit by bit. Needs a loop that only writes what it does not read
otherwise.

>>> program = lowered("h[k[i]] += x[i]", h="f32[9]", x="f32[8]", k="i64[8]")
>>> made = owners(program.kernels[0].body[-1], facts_of(program), fresh_for(program), {})
>>> print_loops(made.body)
for tile in 0..1 block:
    for owner in 0..9 thread:
        for i in 0..8:
            if k[i] % 9 == owner:
                h[k[i]] += x[i]
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.expressions import Apply, Dynamic, Expr, Position
from ..ir.fresh import Fresh
from ..ir.indexing import Symbol, const, var
from ..ir.loops import For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_statements
from ..ir.walk import statements
from ..passes.access import accesses
from .nests import Facts
from .points import PRIVATE_BYTES, Made, dealt

MOST = 4096
"""So many threads share the elements."""


def owners(loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]) -> Made | None:
    """Return the kernel of a loop that writes where data says, None where it does more."""
    own = facts.private(loop)
    small = all(
        nodes[n].static_shape is not None and (not nodes[n].rank or nodes[n].bytes <= PRIVATE_BYTES)
        for n in own
    )
    written = _only_written(loop, own)
    taken = frozenset(node.id for node in written)
    if not small or not written or not facts.is_free(loop, own | taken):
        return None
    sizes = [_elements(node) for node in written]
    count = MOST if None in sizes else min(MOST, max(max(s or 0 for s in sizes), 1))
    owner = fresh.symbol("owner")

    def guarded(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Store | Update) and stmt.access.node.id in taken:
            return (If(_is_owned(stmt.access, owner, count), (stmt,), (), stmt.span),)
        return (stmt,)

    whole: tuple[Stmt, ...] = (loop,)
    body = map_statements(whole, guarded)
    each = For(owner, const(0), const(count), 1, (), "serial", loop.span)
    return Made((dealt([each], body, fresh),), dict.fromkeys(own, "private"))


def _only_written(loop: For, own: frozenset[int]) -> list[Node]:
    """Return the arrays that a loop writes and does not read; none where it reads one of them."""
    found: list[Node] = []
    for sites in accesses((loop,)).sites.values():
        node = sites[0].node
        if node.id in own or not any(site.writes for site in sites):
            continue
        if not node.rank or any(site.kind == "read" or site.index is None for site in sites):
            return []
        found.append(node)
    paired = any(isinstance(s, Update) and s.pair is not None for s in statements(loop.body))
    return [] if paired else found


def _elements(node: Node) -> int | None:
    return None if node.static_shape is None else prod(node.static_shape)


def _is_owned(access: Access, owner: Symbol, count: int) -> Expr:
    """Return whether an element is one of a thread's: by its place in the array."""
    total: Expr | None = None
    for at, stride in zip(access.index, access.node.element_strides, strict=True):
        one: Expr = at.value if isinstance(at, Dynamic) else Position(at)
        if stride != const(1):
            one = Apply(OPS["mul"], (one, Position(stride)), dtypes.int64)
        total = one if total is None else Apply(OPS["add"], (total, one), dtypes.int64)
    assert total is not None, "scalars are not shared out"
    rest = Apply(OPS["mod"], (total, Position(const(count))), dtypes.int64)
    return Apply(OPS["eq"], (rest, Position(var(owner))), dtypes.bool_)
