"""Unification of extents: sizes that an entry check equates get one symbol, which passes compare.

A function of arrays of dynamic shape has a symbol for each extent, and `check x_0 == y_0` where two
have to agree. After that check one of the two stands for both, so that loops over either can be
fused. A check of extents is hoisted as far as that is unobservable: across statements that neither
raise nor print nor jump, and write nothing but temporaries.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from ..ir import indexing
from ..ir.assignments import Alloc, Let, Parameter
from ..ir.expressions import Apply, Position
from ..ir.indexing import Affine, Symbol, var
from ..ir.loops import Check, Comment, Fill, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import rename, substitute
from ..ir.walk import direct_writes, free_symbols, reads, statements, writes


def unify_extents(
    body: tuple[Stmt, ...], parameters: tuple[Parameter, ...], temporaries: tuple[Node, ...]
) -> tuple[tuple[Stmt, ...], tuple[Node, ...]]:
    """Return the body of a program with one symbol for extents of parameters that are equal.

    Also returns the temporaries: those that are only used after a check have their extents renamed,
    too, so that a loop over the one symbol is seen to define all of them. Parameters and results
    keep the symbols of their own extents.
    """
    ranks = _rank_extents(parameters)
    by_id = {node.id: node for node in temporaries}
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
        while position and _is_unobservable(out[position - 1], by_id):
            position -= 1
        renaming = {replaced: var(representative)}
        by_id |= _with_extents(by_id.values(), renaming, out[:position])
        out[position:] = (stmt, *substitute(tuple(out[position:]), renaming))
        remaining = list(substitute(tuple(remaining), renaming))
    renamed = {node.id: by_id[node.id] for node in temporaries if by_id[node.id] is not node}
    return rename(tuple(out), {}, renamed) if renamed else tuple(out), tuple(by_id.values())


def _with_extents(
    nodes: Iterable[Node], renaming: Mapping[Symbol, Affine], before: Iterable[Stmt]
) -> dict[int, Node]:
    """Return the nodes, by id, whose extents are renamed: those that nothing before uses."""
    renamed = [n for n in nodes if any(e.symbols() & renaming.keys() for e in n.shape)]
    if not renamed:
        return {}
    used = {node.id for collect in (reads, writes) for node in collect(before)}
    return {
        node.id: replace(node, shape=tuple(indexing.substitute(e, renaming) for e in node.shape))
        for node in renamed
        if node.id not in used
    }


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
        case Check(Apply(op, (Position(left), Position(right)), _)) if op.name == "eq":
            is_of_extents = all(free_symbols(value) <= ranks.keys() for value in stmt.values)
            if not is_of_extents or reads((stmt,)):
                return None
            return _equated(left, right, ranks)
    return None


def _equated(
    first: Affine, second: Affine, ranks: Mapping[Symbol, tuple[bool, int]]
) -> tuple[Symbol, Symbol] | None:
    """Return the two extents that are equal where two expressions are; None for others."""
    if first == second:
        symbol = next(iter(first.symbols() & ranks.keys()), None)
        return None if symbol is None else (symbol, symbol)
    match first - second:
        case Affine(((Symbol() as left, k), (Symbol() as right, minus_k)), 0) if k == -minus_k:
            return (left, right) if {left, right} <= ranks.keys() else None
    return None


def _is_unobservable(stmt: Stmt, temporary_ids: Container[int]) -> bool:
    """Whether nobody can observe that a call failed after a statement rather than before it."""
    return all(
        isinstance(nested, For | If | Store | Update | Fill | Alloc | Let | Comment)
        and all(node.id in temporary_ids for node in direct_writes(nested))
        for nested in statements((stmt,))
    )
