"""Unification of extents: sizes that an entry check equates get one symbol, which passes compare.

A function of arrays of dynamic shape has a symbol for each extent, and `check x_0 == y_0` where two
have to agree. After that check one of the two stands for both, so that loops over either can be
fused. A check of extents is hoisted as far as that is unobservable: across statements that neither
raise nor print nor jump, and write nothing but temporaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir.assignments import Alloc, Let, Parameter
from ..ir.expressions import Apply, Position
from ..ir.indexing import Symbol, var
from ..ir.loops import Check, Comment, Fill, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import substitute
from ..ir.walk import free_symbols, own_writes, reads, statements


def unify_extents(
    body: tuple[Stmt, ...], parameters: tuple[Parameter, ...], temporaries: Iterable[Node]
) -> tuple[Stmt, ...]:
    """Return the body of a program with one symbol for extents of parameters that are equal.

    Nodes keep their shapes: each array keeps the symbols of its own extents.
    """
    ranks = _rank_extents(parameters)
    temporary_ids = frozenset(node.id for node in temporaries)
    remaining, out = list(body), list[Stmt]()
    while remaining:
        stmt = remaining.pop(0)
        pair = _equated_extents(stmt, ranks)
        if pair is None:
            out.append(stmt)
            continue
        representative, replaced = sorted(pair, key=lambda symbol: ranks[symbol])
        if representative == replaced:
            continue  # already checked
        position = len(out)
        while position and _is_unobservable(out[position - 1], temporary_ids):
            position -= 1
        renaming = {replaced: var(representative)}
        out[position:] = (stmt, *substitute(tuple(out[position:]), renaming))
        remaining = list(substitute(tuple(remaining), renaming))
    return tuple(out)


def _rank_extents(parameters: tuple[Parameter, ...]) -> Mapping[Symbol, tuple[bool, int]]:
    """Return the symbols that are extents, with their ranks: those of written arrays first.

    Stores subscripted by the extent of their own array are then seen to be in range.
    """
    ranks: dict[Symbol, tuple[bool, int]] = {}
    for written in (True, False):
        for parameter in parameters:
            for extent in parameter.node.shape if parameter.written is written else ():
                if extent.symbol is not None:
                    ranks.setdefault(extent.symbol, (not written, len(ranks)))
    return ranks


def _equated_extents(
    stmt: Stmt, ranks: Mapping[Symbol, tuple[bool, int]]
) -> tuple[Symbol, Symbol] | None:
    """Return the two extents that a check equates; None for any other statement."""
    match stmt:
        case Check(Apply(op, (Position(one), Position(other)), _)) if op.name == "eq":
            is_of_extents = all(free_symbols(value) <= ranks.keys() for value in stmt.values)
            can_hoist = is_of_extents and not reads((stmt,))
            left, right = one.symbol, other.symbol
            if (
                can_hoist
                and left is not None
                and right is not None
                and {left, right} <= ranks.keys()
            ):
                return left, right
    return None


def _is_unobservable(stmt: Stmt, temporary_ids: frozenset[int]) -> bool:
    """Whether nobody can observe that a call failed after a statement rather than before it."""
    return all(
        isinstance(one, For | If | Store | Update | Fill | Alloc | Let | Comment)
        and all(node.id in temporary_ids for node in own_writes(one))
        for one in statements((stmt,))
    )
