"""Linearized iterations of a nest: one number that increases in program order.

    for i in 0..m: for j in 0..n: ...        the iteration (i, j) has the number n*i + j

Loops whose bounds depend on those around them are numbered as if they had their maximal extent.
Analysis only.

>>> program = lowered("s[0] += x[i, j]", s="f32[1]", x="f32[8, 9]")
>>> from plusequals.lowering.ir.printer import print_index
>>> from plusequals.lowering.analysis.parallel_band import perfect_nest
>>> loops, _ = perfect_nest(program.kernels[0].body[-1])
>>> found = linearize(loops)
>>> print_index(found.number), [print_index(at) for at in found.delinearize(var(Symbol("n", -1)))]
('9*i + j', ['n//9', 'n%9'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base.dataclass import dataclass
from ..ir.assignments import Let
from ..ir.bounds import Bounds
from ..ir.expressions import Expr
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, floordiv, mod, multiply, var
from ..ir.loops import For, Stmt


@dataclass(frozen=True, slots=True)
class LinearIterations:
    """Loops, outermost first, and the linear number of an iteration."""

    loops: tuple[For, ...]
    starts: tuple[Affine, ...]
    """The value of each loop's variable where its part of the number is zero."""
    sizes: tuple[Affine, ...]
    """The extent of each loop in the numbering, but for the outermost."""
    number: Affine

    def delinearize(self, number: Affine) -> tuple[Affine, ...]:
        """Return the variables of the loops in the iteration with a number (delinearization)."""
        variables: list[Affine] = []
        rest = number
        sizes = (None, *self.sizes)
        for loop, start, size in reversed(list(zip(self.loops, self.starts, sizes, strict=True))):
            local = rest if size is None else mod(rest, size)
            rest = rest if size is None else floordiv(rest, size)
            variables.insert(0, start + local * _sign(loop))
        return tuple(variables)

    def named(self, number: Expr, fresh: Fresh) -> tuple[tuple[Stmt, ...], Mapping[Symbol, Affine]]:
        """Return statements that bind the number of an iteration, and the variables of the loops
        there."""
        at = fresh.symbol("round" if len(self.loops) > 1 else self.loops[0].symbol.name)
        values = zip(self.loops, self.delinearize(var(at)), strict=True)
        return (Let(at, number),), {loop.symbol: value for loop, value in values}


def linearize(loops: Sequence[For]) -> LinearIterations | None:
    """Return directly nested loops with non-negative numbers of their iterations; None where the
    maximal extent of one of them is not known."""
    starts, sizes = [loops[0].lo], list[Affine]()
    number = (var(loops[0].symbol) - loops[0].lo) * _sign(loops[0])
    bounds, outer_symbols = Bounds().inside(loops[0]), {loops[0].symbol}
    for loop in loops[1:]:
        lo, hi = loop.lo, loop.hi
        if (lo.symbols() | hi.symbols()) & outer_symbols:
            least, most = bounds.least(lo), bounds.most(hi)
            if least is None or most is None or loop.step < 0:
                return None
            lo, hi = const(least), const(most)
        sizes.append((hi - lo) * _sign(loop))
        starts.append(lo)
        number = multiply(number, sizes[-1]) + (var(loop.symbol) - lo) * _sign(loop)
        bounds, outer_symbols = bounds.inside(loop), {*outer_symbols, loop.symbol}
    return LinearIterations(tuple(loops), tuple(starts), tuple(sizes), number)


def _sign(loop: For) -> int:
    return 1 if loop.step > 0 else -1
