"""Sizes that an entry check says are equal, under one name: the passes compare them by name.

A function of arrays of any size has a symbol for each extent, and `check x_0 == y_0` where two
have to agree. Behind that check one of the two stands for both, so that loops over either can be
joined. A check of extents is made as early as nobody can tell: it moves in front of statements
that neither raise nor print nor jump, and write nothing but temporaries.
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


def unified(
    body: tuple[Stmt, ...], parameters: tuple[Parameter, ...], temporaries: Iterable[Node]
) -> tuple[Stmt, ...]:
    """Return the body of a program with one name for extents of parameters that are equal.

    Nodes keep their shapes: what is an extent of which array stays as it was given.
    """
    ranks = _ranks(parameters)
    hidden = frozenset(node.id for node in temporaries)
    rest, out = list(body), list[Stmt]()
    while rest:
        stmt = rest.pop(0)
        pair = _equal(stmt, ranks)
        if pair is None:
            out.append(stmt)
            continue
        kept, gone = sorted(pair, key=lambda symbol: ranks[symbol])
        if kept == gone:
            continue  # it was checked before
        behind = len(out)
        while behind and _is_unseen(out[behind - 1], hidden):
            behind -= 1
        one_name = {gone: var(kept)}
        out[behind:] = (stmt, *substitute(tuple(out[behind:]), one_name))
        rest = list(substitute(tuple(rest), one_name))
    return tuple(out)


def _ranks(parameters: tuple[Parameter, ...]) -> Mapping[Symbol, tuple[bool, int]]:
    """Return the symbols that are extents, those of written arrays ranked first.

    Stores through the name of their own array's extent are seen to be in range.
    """
    ranks: dict[Symbol, tuple[bool, int]] = {}
    for written in (True, False):
        for parameter in parameters:
            for extent in parameter.node.shape if parameter.written is written else ():
                if extent.symbol is not None:
                    ranks.setdefault(extent.symbol, (not written, len(ranks)))
    return ranks


def _equal(stmt: Stmt, ranks: Mapping[Symbol, tuple[bool, int]]) -> tuple[Symbol, Symbol] | None:
    """Return the two extents that a check says are equal; None for any other statement."""
    match stmt:
        case Check(Apply(op, (Position(one), Position(other)), _)) if op.name == "eq":
            known = all(free_symbols(value) <= ranks.keys() for value in stmt.values)
            early = known and not reads((stmt,))
            left, right = one.symbol, other.symbol
            if early and left is not None and right is not None and {left, right} <= ranks.keys():
                return left, right
    return None


def _is_unseen(stmt: Stmt, hidden: frozenset[int]) -> bool:
    """Whether nobody could tell a call that failed before a statement from one that did after."""
    return all(
        isinstance(one, For | If | Store | Update | Fill | Alloc | Let | Comment)
        and all(node.id in hidden for node in own_writes(one))
        for one in statements((stmt,))
    )
