"""Which index expressions fit into 32 bits, whatever order they are computed in.

Numbers of 32 bits take one instruction of a device where those of 64 take several. A loop variable
is narrow where its values, and that behind the last one, surely fit; an index expression where the
sum of the greatest absolute values of its terms does, so that no part of it overflows.

>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> size(var(i) * 1000 + var(j), {i: 2**20, j: 5}), size(var(i) * 4000 + 1, {i: 2**20})
(1048576005, None)
>>> size(var(i) + var(j), {i: 7}) is None
True
"""

from __future__ import annotations

from collections.abc import Mapping

from ...lowering.ir.bounds import Bounds
from ...lowering.ir.indexing import Affine, Atom, Quasi, Symbol, var
from ...lowering.ir.loops import For
from .quirks.counter_overflow import LEAST, MOST

LIMIT = 2**31
"""Narrow numbers are less than that, and greater than its negative."""
MOST_THREADS = 1024
"""Threads of a block, and blocks of a launch whose number is a guess: at most so many."""
Narrow = Mapping[Symbol, int]
"""Narrow symbols, with the greatest absolute value of each."""


def fits(index: Affine, known: Bounds) -> bool:
    """Whether no part of an index expression leaves 64 bits, added in the order of its text.

    >>> n, i = Symbol("n", 0), Symbol("i", 1)
    >>> below = Bounds({n: (LEAST, MOST), i: (0, MOST - 1)})
    >>> fits(var(i) + 1, below), fits(var(i) + 2, below), fits(var(n), below), fits(-var(n), below)
    (True, False, True, False)
    """
    low, high = 0, 0
    for atom, k in in_order(index):
        if isinstance(atom, Quasi) and not (fits(atom.left, known) and fits(atom.right, known)):
            return False
        least, most = known.interval(Affine(((atom, 1),)))
        if isinstance(atom, Quasi) and atom.op == "mul" and (least is None or most is None):
            return False
        below = (LEAST if least is None else least) * abs(k)
        above = (MOST if most is None else most) * abs(k)
        low, high = (low + below, high + above) if k > 0 else (low - above, high - below)
        if min(low, below) < LEAST or max(high, above) > MOST:
            return False
    return LEAST <= low + index.offset and high + index.offset <= MOST


def in_order(index: Affine) -> list[tuple[Atom, int]]:
    """Return the terms in the order of their text: what is added, then what is taken away."""
    return sorted(index.terms, key=lambda term: term[1] < 0)


def size(index: Affine, narrow: Narrow) -> int | None:
    """Return the greatest absolute value that a part of an index expression may have, None where
    that may not fit."""
    total = abs(index.offset)
    for atom, k in index.terms:
        part = of_atom(atom, narrow)
        if part is None:
            return None
        total += abs(k) * part
    return total if total < LIMIT else None


def of_atom(atom: Atom, narrow: Narrow) -> int | None:
    """Return the greatest absolute value that a part of an atom may have, None for wide ones."""
    if isinstance(atom, Symbol):
        return narrow.get(atom)
    left, right = size(atom.left, narrow), size(atom.right, narrow)
    if left is None or right is None:
        return None
    match atom:
        case Quasi("mul"):
            return left * right if left * right < LIMIT else None
        case Quasi("min" | "max"):
            return max(left, right)
        case Quasi("mod"):
            return right
        case Quasi("floordiv", _, Affine((), by)) if by > 0:
            return -(-left // by)
        case _:
            return left


def of_loop(loop: For, known: Bounds) -> int | None:
    """Return the greatest absolute value of a loop's variable, None where it is not narrow.

    `known` are the bounds around the loop: it may have no round. Rounds that are dealt out go on by
    as many as there are blocks or threads, at most by what all rounds are.
    """
    ends = (*known.interval(loop.lo), *known.interval(loop.hi))
    numbers = [end for end in ends if end is not None]
    if len(numbers) < len(ends):
        return None
    most = max(map(abs, numbers))
    beyond = max(max(numbers) - min(numbers), MOST_THREADS * abs(loop.step))
    return most if most + beyond < LIMIT else None


def of_symbol(symbol: Symbol, known: Bounds) -> int | None:
    """Return the greatest absolute value of a number that the host knows, None for a wide one."""
    low, high = known.interval(var(symbol))
    if low is None or high is None:
        return None
    most = max(abs(low), abs(high))
    return most if most < LIMIT else None
