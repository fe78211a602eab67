"""Width of index arithmetic: which index expressions fit into 32 bits in any evaluation order.

32-bit operations take one instruction of a device where 64-bit ones take several. A loop variable
is narrow where its values, including the one after the last iteration, fit; an index expression
where the sum of its terms' greatest magnitudes does, so that no partial sum overflows.

>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> magnitude(var(i) * 1000 + var(j), {i: 2**20, j: 5}), magnitude(var(i) * 4000 + 1, {i: 2**20})
(1048576005, None)
>>> magnitude(var(i) + var(j), {i: 7}) is None
True
"""

from __future__ import annotations

from collections.abc import Mapping

from ...lowering.ir.bounds import Bounds
from ...lowering.ir.indexing import Affine, Atom, Quasi, Symbol, var
from ...lowering.ir.loops import For
from .quirks.counter_overflow import LEAST, MOST

NARROW_LIMIT = 2**31
"""The magnitude of narrow values is less than this."""
MAX_THREADS = 1024
"""The maximum of threads in a block, and of blocks in a launch of estimated size."""
Narrow = Mapping[Symbol, int]
"""Narrow symbols, with the greatest magnitude of each."""


def fits(index: Affine, bounds: Bounds) -> bool:
    """Whether no partial sum of an index expression, in the order of its text, overflows 64 bits.

    >>> n, i = Symbol("n", 0), Symbol("i", 1)
    >>> below = Bounds({n: (LEAST, MOST), i: (0, MOST - 1)})
    >>> fits(var(i) + 1, below), fits(var(i) + 2, below), fits(var(n), below), fits(-var(n), below)
    (True, False, True, False)
    """
    low, high = 0, 0
    for atom, k in text_order(index):
        if isinstance(atom, Quasi) and not (fits(atom.left, bounds) and fits(atom.right, bounds)):
            return False
        atom_low, atom_high = bounds.interval(Affine(((atom, 1),)))
        if isinstance(atom, Quasi) and atom.op == "mul" and (atom_low is None or atom_high is None):
            return False
        below = (LEAST if atom_low is None else atom_low) * abs(k)
        above = (MOST if atom_high is None else atom_high) * abs(k)
        low, high = (low + below, high + above) if k > 0 else (low - above, high - below)
        if min(low, below) < LEAST or max(high, above) > MOST:
            return False
    return LEAST <= low + index.offset and high + index.offset <= MOST


def text_order(index: Affine) -> list[tuple[Atom, int]]:
    """Return the terms in the order of their text: positive ones, then negative ones."""
    return sorted(index.terms, key=lambda term: term[1] < 0)


def magnitude(index: Affine, narrow: Narrow) -> int | None:
    """Return a bound of the magnitude of all partial sums of an index expression, None where it may
    not fit into 32 bits."""
    bound = abs(index.offset)
    for atom, k in index.terms:
        term = atom_magnitude(atom, narrow)
        if term is None:
            return None
        bound += abs(k) * term
    return bound if bound < NARROW_LIMIT else None


def atom_magnitude(atom: Atom, narrow: Narrow) -> int | None:
    """Return a bound of the magnitude of an atom and its operands, None where it is wide."""
    if isinstance(atom, Symbol):
        return narrow.get(atom)
    left, right = magnitude(atom.left, narrow), magnitude(atom.right, narrow)
    if left is None or right is None:
        return None
    match atom:
        case Quasi("mul"):
            return left * right if left * right < NARROW_LIMIT else None
        case Quasi("min" | "max"):
            return max(left, right)
        case Quasi("mod"):
            return right
        case Quasi("floordiv", _, Affine((), by)) if by > 0:
            return -(-left // by)
        case _:
            return left


def loop_magnitude(loop: For, bounds: Bounds) -> int | None:
    """Return a bound of the magnitude of a loop's variable, None where it is not narrow.

    `bounds` are the bounds outside the loop, which may have no iterations. A cyclically distributed
    loop advances by the number of blocks or threads, at most by its whole range.
    """
    limits = (*bounds.interval(loop.lo), *bounds.interval(loop.hi))
    numbers = [limit for limit in limits if limit is not None]
    if len(numbers) < len(limits):
        return None
    greatest = max(map(abs, numbers))
    overshoot = max(max(numbers) - min(numbers), MAX_THREADS * abs(loop.step))
    return greatest if greatest + overshoot < NARROW_LIMIT else None


def symbol_magnitude(symbol: Symbol, bounds: Bounds) -> int | None:
    """Return a bound of the magnitude of a symbol of the host, None where it is wide."""
    low, high = bounds.interval(var(symbol))
    if low is None or high is None:
        return None
    greatest = max(abs(low), abs(high))
    return greatest if greatest < NARROW_LIMIT else None
