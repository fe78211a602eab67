"""Iterations of a loop that access an element which other iterations access too.

    for i in 0..n: d[i] = min(d[i], d[k] + x[i])          at k, where 0 <= k < n

Such an iteration is a point at which the loop's index set may be split. Analysis only.

>>> program = lowered('''
... for k in range(9):
...     for i in range(9):
...         d[i] = d[k] * x[k, i]
... ''', d="f32[9]", x="f32[9, 9]")
>>> (outer,) = program.kernels[0].body
>>> (loop,) = outer.body
>>> conflicting_iterations(loop, bounds_of(()).inside(outer)), has_conflicting_iterations(program)
([k], True)
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import thresholds
from ..ir.bounds import Bounds, bounds_of
from ..ir.expressions import Index
from ..ir.indexing import Affine, Symbol, var
from ..ir.loops import For, Program, Stmt
from ..ir.walk import binds, bodies, statements
from .accesses import collect_accesses


def has_conflicting_iterations(program: Program) -> bool:
    """Whether some loop of a program has such an iteration."""
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    return any(_has_conflicts(kernel.body, bounds) for kernel in program.kernels)


def _has_conflicts(body: Iterable[Stmt], bounds: Bounds) -> bool:
    """Whether a loop among or inside statements might be split at some iteration."""
    return any(
        (isinstance(stmt, For) and bool(conflicting_iterations(stmt, bounds)))
        or any(
            _has_conflicts(nested, bounds.inside(stmt) if isinstance(stmt, For) else bounds)
            for nested in bodies(stmt)
        )
        for stmt in body
    )


def conflicting_iterations(loop: For, bounds: Bounds) -> list[Affine]:
    """Return the conflicting iterations, as values of the loop's variable, as far as they are
    surely in its range."""
    return [
        point for point in _find_conflicts(loop)
        if _is_at_least(bounds, point - loop.lo, 0) and _is_at_least(bounds, loop.hi - point, 1)
    ]  # fmt: skip


def _find_conflicts(loop: For) -> list[Affine]:
    """Return the values of a loop's variable at which it accesses an element that other iterations
    access."""
    if loop.step != 1 or loop.kind != "serial":
        return []
    inside = {symbol for stmt in statements((loop,)) for symbol in binds(stmt)}
    points: list[Affine] = []
    for sites in collect_accesses((loop,)).sites.values():
        if not any(site.writes for site in sites):
            continue
        indices = tuple(dict.fromkeys(site.index or () for site in sites))
        for first in indices:
            for second in indices:
                points += _intersections(first, second, loop.symbol, inside)
    return list(dict.fromkeys(points))[: thresholds.MAX_CONFLICTING_ITERATIONS]


def _is_at_least(bounds: Bounds, number: Affine, least: int) -> bool:
    bound = bounds.least(number)
    return bound is not None and bound >= least


def _intersections(
    first: tuple[Index, ...], second: tuple[Index, ...], symbol: Symbol, inside: set[Symbol]
) -> list[Affine]:
    """Return where the subscripts of one access, which follow the loop, equal those of another,
    which do not."""
    points: list[Affine] = []
    for left, right in zip(first, second, strict=False):
        if not isinstance(left, Affine) or not isinstance(right, Affine):
            continue
        if left.coefficient(symbol) == 1 and not right.symbols() & inside:
            point = right - (left - var(symbol))
            if not point.symbols() & inside:
                points.append(point)
    return points
