"""At which of its rounds a loop uses an element that its other rounds use.

    for i in 0..n: d[i] = min(d[i], d[k] + x[i])          at k, where 0 <= k < n

>>> program = lowered('''
... for k in range(9):
...     for i in range(9):
...         d[i] = d[k] * x[k, i]
... ''', d="f32[9]", x="f32[9, 9]")
>>> (outer,) = program.kernels[0].body
>>> (loop,) = outer.body
>>> shared_places(loop, bounds_of(()).inside(outer)), has_places(program)
([k], True)
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.bounds import Bounds, bounds_of
from ..ir.expressions import Index
from ..ir.indexing import Affine, Symbol, var
from ..ir.loops import For, Program, Stmt
from ..ir.walk import binds, bodies, statements
from .accesses import accesses

MOST = 4
"""So many places are looked at."""


def has_places(program: Program) -> bool:
    """Whether some loop of a program has such a place."""
    known = bounds_of(parameter.node for parameter in program.parameters)
    return any(_has_places(kernel.body, known) for kernel in program.kernels)


def _has_places(body: Iterable[Stmt], known: Bounds) -> bool:
    """Whether there is a loop among or inside statements that might be cut at some place."""
    return any(
        (isinstance(stmt, For) and bool(shared_places(stmt, known)))
        or any(
            _has_places(one, known.inside(stmt) if isinstance(stmt, For) else known)
            for one in bodies(stmt)
        )
        for stmt in body
    )


def shared_places(loop: For, known: Bounds) -> list[Affine]:
    """Return the rounds whose element others use, too, by the value of the variable, as far as they
    are sure to be there."""
    return [
        place for place in _places(loop)
        if _is_at_least(known, place - loop.lo, 0) and _is_at_least(known, loop.hi - place, 1)
    ]  # fmt: skip


def _places(loop: For) -> list[Affine]:
    """Return the values of a loop's variable at which it uses an element that other rounds use."""
    if loop.step != 1 or loop.kind != "serial":
        return []
    inside = {symbol for stmt in statements((loop,)) for symbol in binds(stmt)}
    out: list[Affine] = []
    for sites in accesses((loop,)).sites.values():
        if not any(site.writes for site in sites):
            continue
        indices = tuple(dict.fromkeys(site.index or () for site in sites))
        for one in indices:
            for other in indices:
                out += _meetings(one, other, loop.symbol, inside)
    return list(dict.fromkeys(out))[:MOST]


def _is_at_least(known: Bounds, number: Affine, least: int) -> bool:
    found = known.least(number)
    return found is not None and found >= least


def _meetings(
    one: tuple[Index, ...], other: tuple[Index, ...], symbol: Symbol, inside: set[Symbol]
) -> list[Affine]:
    """Return where the index of one site, which follows a loop, is that of another, which does
    not."""
    out: list[Affine] = []
    for left, right in zip(one, other, strict=False):
        if not isinstance(left, Affine) or not isinstance(right, Affine):
            continue
        if left.coefficient(symbol) == 1 and not right.symbols() & inside:
            place = right - (left - var(symbol))
            if not place.symbols() & inside:
                out.append(place)
    return out
