"""Strip-mining: a loop as chunks of iterations, one chunk for each value of an outer variable.

    for i in 0..n: f(i)    is, for all g in 0..G,    for i in g*C..min(n, (g+1)*C): f(i)

where C = ceil(n / G): the iterations of all chunks are those of the loop, in its order.

>>> program = lowered("y[i] = x[i]", y="f32[10]", x="f32[10]")
>>> loop, fresh = program.kernels[0].body[-1], fresh_for(program)
>>> part, body = chunk(loop, fresh.symbol("g"), 4, loop.body, fresh)
>>> print_loops((replace(part, body=body),))
for i in 3*g..min(10, 3*g + 3):
    y[i] = x[i]
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.parallel_band import normalize, static_trip_count, substitute_symbol
from ..ir.fresh import Fresh
from ..ir.indexing import Symbol, const, floordiv, minimum, multiply, var
from ..ir.loops import For, Stmt


def chunk(
    loop: For, group: Symbol, count: int, body: tuple[Stmt, ...], fresh: Fresh
) -> tuple[For, tuple[Stmt, ...]]:
    """Return the loop over one chunk of iterations of a normalized loop, and the body with its
    variable."""
    plain, value = normalize(loop, fresh.symbol(loop.symbol.name))
    size = floordiv(plain.hi + (count - 1), const(count))
    start = multiply(var(group), size)
    chunk = replace(plain, lo=start, hi=minimum(plain.hi, start + size))
    return chunk, substitute_symbol(body, loop.symbol, value)


def with_static_end(chunk_loop: For, loop: For, count: int) -> For:
    """Return one of `count` chunks of a loop with a simpler end where all have the same size:
    compilers then see its trip count."""
    trip_count = static_trip_count(loop)
    return (
        chunk_loop
        if trip_count is None or trip_count % count
        else replace(chunk_loop, hi=chunk_loop.lo + trip_count // count)
    )
