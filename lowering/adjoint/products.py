"""Products of factors: cotangents as they pass through an expression, and how they are written.

A cotangent is multiplied by one derivative after another. Kept apart, its factors can be written so
that loops compute little: those that a sum does not run over stand outside of it, and a divisor
that the innermost loop does not change is divided by once.

    sum[j](d_y[i, j] * g[j] / r[i] / r[i])      sum[j](d_y[i, j] * g[j]) / r[i] / r[i]
    d_y[i, j] * g[j] / r[i]                     d_y[i, j] * g[j] * (1.0 / r[i])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Const, Expr, Read, Select, reads
from ..ir.indexing import Symbol
from ..ir.ops import OPS
from ..ir.walk import free_symbols
from .complex_rules import as_type
from .kept import index_symbols
from .rules import apply, number


@dataclass(frozen=True, slots=True)
class Product:
    """`factor * over[0] * ... / under[0] / ...` where all gates are open, else zero."""

    dtype: DType
    factor: float = 1.0
    over: tuple[Expr, ...] = ()
    under: tuple[Expr, ...] = ()
    gates: tuple[tuple[Expr, bool], ...] = ()
    """Tests, each with the outcome that opens it."""

    def times(self, expr: Expr) -> Product:
        """Return the product with an expression, taken apart into its factors."""
        match expr:
            case Const(value) if isinstance(value, int | float):
                return replace(self, factor=self.factor * value)
            case Apply(op, (one,)) if op.name == "neg":
                return replace(self.times(one), factor=-self.times(one).factor)
            case Apply(op, (left, right)) if op.name == "mul":
                return self.times(left).times(right)
            case Apply(op, (left, right)) if op.name == "div":
                return self.times(left).divided(right)
            case Select(test, Const(yes), Const(no)) if (yes, no) in ((1.0, 0.0), (0.0, 1.0)):
                return replace(self, gates=(*self.gates, (test, yes == 1.0)))
            case _:
                return replace(self, over=(*self.over, expr))

    def divided(self, expr: Expr) -> Product:
        """Return the quotient by an expression."""
        match expr:
            case Const(value) if isinstance(value, int | float) and value:
                return replace(self, factor=self.factor / value)
            case Apply(op, (one,)) if op.name == "neg":
                return replace(self.divided(one), factor=-self.divided(one).factor)
            case _:
                return replace(self, under=(*self.under, expr))

    def cast(self, dtype: DType) -> Product:
        """Return the product in another type, as one factor; of a real type the real part."""
        if dtype == self.dtype:
            return self
        whole = replace(self, gates=())
        return Product(dtype, 1.0, (as_type(whole.expr(), dtype),), (), self.gates)

    def split(self, inner: Collection[Symbol]) -> tuple[Product, Product]:
        """Return the product of the factors that depend on symbols, and that of the others with
        the constant."""

        def depends(expr: Expr) -> bool:
            return not free_symbols(expr).isdisjoint(inner)

        parts = []
        for wanted in (True, False):
            over = tuple(e for e in self.over if depends(e) is wanted)
            under = tuple(e for e in self.under if depends(e) is wanted)
            gates = tuple(gate for gate in self.gates if depends(gate[0]) is wanted)
            factor = 1.0 if wanted else self.factor
            parts.append(Product(self.dtype, factor, over, under, gates))
        return parts[0], parts[1]

    def expr(self, inner: Symbol | None = None) -> Expr:
        """Return the product as an expression; the innermost loop over it has the symbol."""
        if inner is not None and self.under:
            varying, steady = self.split((inner,))
            if steady.under and (varying.over or varying.under):
                first, *others = steady.under
                coefficient = replace(steady, factor=abs(self.factor), under=(first,), gates=())
                signed = replace(varying, gates=self.gates, factor=1.0 if self.factor > 0 else -1.0)
                return signed.times_whole((coefficient.expr(), *map(self._over, others)))
        return self.times_whole(())

    def times_whole(self, coefficients: Sequence[Expr]) -> Expr:
        """Return the product, times expressions one after another, as an expression.

        These are not multiplied with each other: their product may overflow, and be no factor of
        zero.
        """
        size = abs(self.factor)
        factors: list[Expr] = [] if size == 1.0 else [number(size, self.dtype)]
        factors += self.over
        whole: Expr = factors[0] if factors else number(1.0, self.dtype)
        for factor in factors[1:]:
            whole = apply("mul", whole, factor)
        for divisor in self.under:
            whole = apply("div", whole, divisor) if factors else self._over(divisor)
            factors = factors or [whole]
        for coefficient in coefficients:
            whole = Apply(OPS["mul"], (whole, coefficient), self.dtype) if factors else coefficient
            factors = factors or [whole]
        if self.factor < 0:
            whole = apply("neg", whole)
        for test, opens in self.gates:
            zero = number(0.0, self.dtype)
            whole = Select(test, whole, zero) if opens else Select(test, zero, whole)
        return whole

    def _over(self, divisor: Expr) -> Expr:
        return apply("div", number(1.0, self.dtype), divisor)

    @property
    def is_number(self) -> bool:
        """Whether it is a constant."""
        return not (self.over or self.under or self.gates)


def combined(products: Sequence[Product]) -> list[Product]:
    """Return products with the same sum, of which none differ by a constant alone."""
    factors: dict[Product, float] = {}
    for product in products:
        one = replace(product, factor=1.0)
        factors[one] = factors.get(one, 0.0) + product.factor
    return [replace(one, factor=factor) for one, factor in factors.items()]


def total(products: Sequence[Product], inner: Symbol | None) -> Expr:
    """Return the sum of products as an expression, where the innermost loop has a symbol."""
    terms = [product.expr(inner) for product in products]
    whole = terms[0]
    for term in terms[1:]:
        whole = apply("add", whole, term)
    return whole


def innermost(exprs: Iterable[Expr], among: Collection[Symbol]) -> Symbol | None:
    """Return the symbol of which most reads of expressions subscript their last axis."""
    found = Counter(
        symbol
        for expr in exprs
        for read in reads(expr)
        if isinstance(read, Read) and read.index
        for symbol in index_symbols(read.index[-1])
        if symbol in among
    )
    return found.most_common(1)[0][0] if found else None
