"""Convolutions and correlations of two lines.

An element is a sum over the window in which both lines have elements, in the order of the first:

    y[i] = sum[k](a[k] * v[at - k]),    at = i + offset

Where all of the shorter line is in the window, its terms are counted from 0 to the same number for
every element: neighbouring elements are then added up side by side. At the ends of the longer line
windows are shorter, each by one term; so the elements are written in three parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdTypeError
from ....lowering.ir.assignments import Branch
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Domain, Expr, Reduce
from ....lowering.ir.indexing import Affine, Range, Symbol, const, floordiv, var
from ....lowering.ir.indexing import maximum as index_max
from ....lowering.ir.indexing import minimum as index_min
from ....lowering.ir.ops import OPS
from ...values.arrays import elementwise, settled
from ...values.builder import compare, error
from ...values.call_site import Site, array_of, text_of
from ...values.range_analysis import Known
from ...values.types import Kind, cast, negate
from ...values.values import Array, Static, Value
from .cumulative import shifted
from .reductions import require_elements
from .shaping import flip
from .ufuncs import combine_of, resolved

_MODES = ("full", "same", "valid")


def convolve(site: Site, a: Value, v: Value, mode: Value = Static("full")) -> Value:
    """Return the discrete convolution of two lines; CdValueError CD0459 where one is empty."""
    return _convolved(site, a, v, text_of(site, mode, "mode", _MODES), False)


def correlate(site: Site, a: Value, v: Value, mode: Value = Static("valid")) -> Value:
    """Return the correlation of two lines: the convolution with the other turned around."""
    turned = flip(site, v)
    if array_of(site, turned).kind.dtype.kind == "c":  # of a bool `conjugate` would be an int8
        turned = elementwise(site.ctx, combine_of(np.conjugate), [turned], site.span)
    return _convolved(site, a, turned, text_of(site, mode, "mode", _MODES), True)


def _convolved(site: Site, a: Value, v: Value, mode: str, turned: bool) -> Array:
    left, right = array_of(site, a), array_of(site, v)
    if left.rank != 1 or right.rank != 1:
        raise error("CD0452", CdTypeError, "`convolve` takes arrays of one axis", site.span)
    for line in (left, right):
        require_elements(site, line, (0,), "convolve")
    kind = Kind(resolved(np.multiply, (left.kind, right.kind))[-1])
    dtype = kind.dtype.compute
    left, right = _line(site, left, "a", dtype), _line(site, right, "v", dtype, turned)
    pair = _Pair(site, left, right, kind, mode, turned)
    known = site.ctx.known
    size, longer = pair.size(known), pair.is_longer(known)
    if site.ctx.pointwise:
        return pair.anywhere(size, pair.offset(known))
    if longer is not None and mode == "valid":
        return pair.whole(size, longer)
    node = site.ctx.node("convolved", (size,), kind.dtype)
    result = site.ctx.whole(node, site.span)
    if longer is not None:
        pair.store(result, longer)
        return result
    _as_the_run_says(pair, result)
    return result


def _as_the_run_says(pair: _Pair, result: Array) -> None:
    """Store the elements in one of two ways: which line is the longer is known in the run."""
    ctx, span = pair.site.ctx, pair.site.span
    test = compare("le", pair.m, pair.n)
    ctx.control += 1
    with ctx.block() as then, ctx.knowing(ctx.known.assuming(test)):
        pair.store(result, True)
    with ctx.block() as other, ctx.knowing(ctx.known.assuming(negate(test))):
        pair.store(result, False)
    ctx.control -= 1
    ctx.emit(Branch(test, tuple(then), tuple(other), span))


def _line(site: Site, line: Array, label: str, dtype: DType, turned: bool = False) -> Array:
    """Return a line whose elements are cheap to read, many times, as what they are added up as.

    One that was turned is stored so: neighbours are side by side in memory, whichever is longer.
    """
    if site.ctx.pointwise or line.kind.dtype == dtype and not turned:
        return settled(site.ctx, line, label, site.span)
    return site.ctx.materialize(line, label, site.span, dtype)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two lines and what is wanted of them."""

    site: Site
    left: Array
    right: Array
    kind: Kind
    mode: str
    turned: bool
    """Whether the right one was turned around: where it is the longer, NumPy turns the result."""

    @property
    def n(self) -> Affine:
        return self.left.shape[0]

    @property
    def m(self) -> Affine:
        return self.right.shape[0]

    def is_longer(self, known: Known) -> bool | None:
        """Whether the left line is at least as long as the other; None where the run decides."""
        if known.nonnegative(self.n - self.m):
            return True
        return False if known.less(self.n, self.m) else None

    def size(self, known: Known) -> Affine:
        """Return how many elements there are."""
        shorter, longer = known.minimum(self.n, self.m), known.maximum(self.n, self.m)
        sizes = {"full": self.n + self.m - 1, "same": longer, "valid": longer - shorter + 1}
        return sizes[self.mode]

    def offset(self, known: Known) -> Affine:
        """Return where the first element is among those of "full"."""
        shorter = known.minimum(self.n, self.m)
        if self.mode == "full":
            return const(0)
        if self.mode == "valid":
            return shorter - 1
        swapped = known.minimum(const(1), known.maximum(const(0), self.m - self.n))
        return floordiv(shorter - 1 + (swapped if self.turned else 0), const(2))

    def total(self, count: Affine, first: Affine | int, last: Affine) -> Expr:
        """Return the sum of `a[first + k] * v[last - k]` for so many k."""
        k, dtype = self.site.ctx.symbol("k"), self.kind.dtype.compute
        both, some = (OPS["and"], OPS["or"]) if dtype.kind == "b" else (OPS["mul"], OPS["add"])
        factors = self.left.at((var(k) + first,)), self.right.at((last - var(k),))
        product = Apply(both, (cast(factors[0], dtype), cast(factors[1], dtype)), dtype)
        domain = Domain((Range(k, const(0), count),))
        return Reduce(some, domain, product, dtype, span=self.site.span)

    def anywhere(self, size: Affine, offset: Affine) -> Array:
        """Return elements that are computed where they are read, each with its own window."""
        out = self.site.ctx.symbol("i")
        at = var(out) + offset
        first = index_max(const(0), at - self.m + 1)
        total = self.total(index_min(self.n, at + 1) - first, first, at - first)
        return Array((out,), (size,), total, self.kind, copied=True)

    def whole(self, size: Affine, longer: bool) -> Array:
        """Return elements whose windows have all of the shorter line."""
        out = self.site.ctx.symbol("i")
        at = var(out)
        terms = (self.m, at, self.m - 1) if longer else (self.n, const(0), at + self.n - 1)
        return Array((out,), (size,), self.total(*terms), self.kind, copied=True)

    def store(self, result: Array, longer: bool) -> None:
        """Store the elements in three parts."""
        for start, count, part in self.parts(longer):
            if count.constant is None or count.constant > 0:
                target = shifted(result, 0, start, count)
                value = part.at(tuple(map(var, target.axes)))
                dtype = self.kind.dtype
                self.site.ctx.store(target, cast(value, dtype), self.site.span)

    def parts(self, longer: bool) -> Iterator[tuple[Affine, Affine, Array]]:
        """Yield where each part starts, how many elements it has, and these."""
        known = self.site.ctx.known
        shorter, longest = (self.m, self.n) if longer else (self.n, self.m)
        size, offset = self.size(known), self.offset(known)
        before = shorter - 1 - offset
        out = self.site.ctx.symbol("i")
        at = var(out) + offset
        yield const(0), before, self.part(out, before, self.total(at + 1, 0, at))
        middle = longest - shorter + 1
        yield before, middle, self.whole(middle, longer)
        out = self.site.ctx.symbol("i")
        left, after = var(out) + longest - self.m + 1, size - before - middle
        terms = (shorter - 1 - var(out), left, self.m - 1)
        yield before + middle, after, self.part(out, after, self.total(*terms))

    def part(self, out: Symbol, size: Affine, total: Expr) -> Array:
        return Array((out,), (size,), total, self.kind, copied=True)
