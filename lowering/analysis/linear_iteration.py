"""The rounds of loops in each other as one number, which grows in the order of the program.

    for i in 0..m: for j in 0..n: ...        the round (i, j) has the number n*i + j

Loops whose ends need those around them count as if they were as long as they may be. It changes
nothing.

>>> program = lowered("s[0] += x[i, j]", s="f32[1]", x="f32[8, 9]")
>>> from plusequals.lowering.ir.printer import print_index
>>> from plusequals.lowering.analysis.parallel_band import nest_of
>>> loops, _ = nest_of(program.kernels[0].body[-1])
>>> found = numbered(loops)
>>> print_index(found.number), [print_index(at) for at in found.rounds(var(Symbol("n", -1)))]
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
class Numbered:
    """Loops, outermost first, and the number of each of their rounds."""

    loops: tuple[For, ...]
    starts: tuple[Affine, ...]
    """What the variable of each loop is where its part of the number is zero."""
    sizes: tuple[Affine, ...]
    """How many numbers each loop has, but for the outermost."""
    number: Affine

    def rounds(self, number: Affine) -> tuple[Affine, ...]:
        """Return what the variables of the loops are in the round that has a number."""
        out: list[Affine] = []
        rest = number
        sizes = (None, *self.sizes)
        for loop, start, size in reversed(list(zip(self.loops, self.starts, sizes, strict=True))):
            part = rest if size is None else mod(rest, size)
            rest = rest if size is None else floordiv(rest, size)
            out.insert(0, start + part * _sign(loop))
        return tuple(out)

    def named(self, number: Expr, fresh: Fresh) -> tuple[tuple[Stmt, ...], Mapping[Symbol, Affine]]:
        """Return what names the round that has a number, and what the variables are there."""
        at = fresh.symbol("round" if len(self.loops) > 1 else self.loops[0].symbol.name)
        values = zip(self.loops, self.rounds(var(at)), strict=True)
        return (Let(at, number),), {loop.symbol: value for loop, value in values}


def numbered(loops: Sequence[For]) -> Numbered | None:
    """Return loops that stand directly in each other with the numbers of their rounds, which are
    not negative; None where it is not known how long one of them may be."""
    starts, sizes = [loops[0].lo], list[Affine]()
    number = (var(loops[0].symbol) - loops[0].lo) * _sign(loops[0])
    known, around = Bounds().inside(loops[0]), {loops[0].symbol}
    for loop in loops[1:]:
        lo, hi = loop.lo, loop.hi
        if (lo.symbols() | hi.symbols()) & around:
            least, most = known.least(lo), known.most(hi)
            if least is None or most is None or loop.step < 0:
                return None
            lo, hi = const(least), const(most)
        sizes.append((hi - lo) * _sign(loop))
        starts.append(lo)
        number = multiply(number, sizes[-1]) + (var(loop.symbol) - lo) * _sign(loop)
        known, around = known.inside(loop), {*around, loop.symbol}
    return Numbered(tuple(loops), tuple(starts), tuple(sizes), number)


def _sign(loop: For) -> int:
    return 1 if loop.step > 0 else -1
