"""Ordered sums of several terms: loops whose vectors add the wrong elements.

gcc 12 vectorizes a sum whose terms are added in order, and keeps that order. Where an iteration,
with short loops inside unrolled, adds several terms to one float, it loads them as a group, and
loses their permutation: of

    for i: s += x[2*i + 1]; s += x[2*i]

it adds other elements. Sums whose terms are loaded in order are right, but gain nothing from
vectors either, as each addition waits for the one before it: vectorization is prevented for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ....lowering.ir.assignments import Access
from ....lowering.ir.expressions import Apply, Dynamic, Expr, Index, Read
from ....lowering.ir.indexing import Affine, Symbol
from ....lowering.ir.loops import For, If, Stmt, Store, Update
from .vectorizer_dependence import UNROLL_LIMIT

_Place = tuple[int, tuple[Index, ...]]
"""A node, by its id, and the subscripts of an element."""


def sums_in_order(loop: For) -> bool:
    """Whether an iteration adds several terms to one float, and may be vectorized."""
    terms: Counter[_Place] = Counter()
    if not _count(loop.body, loop.symbol, (), terms):
        return False
    return any(count > 1 for count in terms.values())


def _count(
    body: Sequence[Stmt], symbol: Symbol, inner: tuple[For, ...], terms: Counter[_Place]
) -> bool:
    """Count the terms that are added to each element that is the same in all iterations; return
    whether the body, inside of some short loops, has no loops but short ones."""
    for stmt in body:
        match stmt:
            case Store(access, value) if _is_sum(access, symbol):
                terms[access.node.id, access.index] += _added(value, access) * _times(access, inner)
            case Update(access, op, value) if _is_sum(access, symbol):
                added = (1 if op.name in ("add", "sub") else 0) + _added(value, access)
                terms[access.node.id, access.index] += added * _times(access, inner)
            case If(_, then, orelse):
                if not all(_count(side, symbol, inner, terms) for side in (then, orelse)):
                    return False
            case For():
                trip_count = (stmt.hi - stmt.lo).constant
                if trip_count is None or trip_count >= UNROLL_LIMIT or stmt.kind == "vector":
                    return False
                if not _count(stmt.body, symbol, (*inner, stmt), terms):
                    return False
            case _:
                pass
    return True


def _times(access: Access, inner: tuple[For, ...]) -> int:
    """Return how often short loops access the same element."""
    times = 1
    for loop in inner:
        if not any(loop.symbol in at.symbols() for at in access.index if isinstance(at, Affine)):
            times *= max((loop.hi - loop.lo).constant or 0, 0)
    return times


def _is_sum(access: Access, symbol: Symbol) -> bool:
    """Whether an element is a float that every iteration of a loop accesses."""
    if access.node.dtype.kind not in "fc":
        return False
    return not any(isinstance(at, Dynamic) or symbol in at.symbols() for at in access.index)


def _added(value: Expr, access: Access) -> int:
    """Return how many terms a value adds to the element that it is stored to."""
    match value:
        case Apply(op, (left, right)) if op.name in ("add", "sub"):
            return max(
                1 + _added(side, access) if _reads(side, access) else 0 for side in (left, right)
            )
        case _:
            return 0


def _reads(value: Expr, access: Access) -> bool:
    match value:
        case Read(node, index):
            return node.id == access.node.id and index == access.index
        case Apply(op, args) if op.name in ("add", "sub"):
            return any(_reads(side, access) for side in args)
        case _:
            return False
