"""Discrete convolution and correlation of two vectors, as reductions over a sliding window.

An element is a sum over the window in which both vectors have elements, in the order of the first:

    y[i] = sum[k](a[k] * v[at - k]),    at = i + offset

Where the window holds all of the shorter vector, the trip count of `k` is the same for every
element, so that the loop over `i` can be vectorized. At the ends of the longer vector windows are
truncated, each by one more term; so the iterations of `i` are peeled at both ends: three loops.
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
from ...values.arrays import cheap_or_stored, describe, elementwise
from ...values.builder import compare, error
from ...values.call_site import Site, array_of, text_of
from ...values.range_analysis import Assumptions
from ...values.types import Kind, cast, negate
from ...values.values import Array, Static, Value
from .differences import shifted
from .reductions import require_elements
from .shaping import flip
from .ufuncs import combine_of, resolved

_MODES = ("full", "same", "valid")


def convolve(site: Site, a: Value, v: Value, mode: Value = Static("full")) -> Value:
    """Return the discrete convolution of two vectors.

    CdTypeError CD0452 for another rank than 1, CdValueError CD0459 where one is empty.
    """
    return _convolve(site, a, v, text_of(site, mode, "mode", _MODES), False)


def correlate(site: Site, a: Value, v: Value, mode: Value = Static("valid")) -> Value:
    """Return the correlation of two vectors: the convolution with the second reversed, conjugated.

    CdTypeError CD0452 for another rank than 1, CdValueError CD0459 where one is empty.
    """
    reversed_v = flip(site, v)
    if array_of(site, reversed_v).kind.dtype.kind == "c":  # `conjugate` of a bool would be an int8
        reversed_v = elementwise(site.ctx, combine_of(np.conjugate), [reversed_v], site.span)
    return _convolve(site, a, reversed_v, text_of(site, mode, "mode", _MODES), True)


def _convolve(site: Site, a: Value, v: Value, mode: str, is_reversed: bool) -> Array:
    left, right = array_of(site, a), array_of(site, v)
    name = "correlate" if is_reversed else "convolve"
    if left.rank != 1 or right.rank != 1:
        text = f"`{name}` takes vectors, given {describe(left)} and {describe(right)}"
        raise error("CD0452", CdTypeError, text, site.span)
    for vector in (left, right):
        require_elements(site, vector, (0,), name)
    kind = Kind(resolved(np.multiply, (left.kind, right.kind))[-1])
    if any(vector.shape[0].constant == 0 for vector in (left, right)):
        return site.ctx.whole(site.ctx.node("convolved", (const(0),), kind.dtype), site.span)
    dtype = kind.dtype.compute
    left, right = (
        _prepare_operand(site, left, "a", dtype),
        _prepare_operand(site, right, "v", dtype, is_reversed),
    )
    convolution = _Convolution(site, left, right, kind, mode, is_reversed)
    assumptions = site.ctx.assumptions
    size, longer = convolution.size(assumptions), convolution.is_left_longer(assumptions)
    if site.ctx.pointwise:
        return convolution.virtual_elements(size, convolution.offset(assumptions))
    if longer is not None and mode == "valid":
        return convolution.full_windows(size, longer)
    node = site.ctx.node("convolved", (size,), kind.dtype)
    result = site.ctx.whole(node, site.span)
    if longer is not None:
        convolution.store(result, longer)
        return result
    _store_versioned(convolution, result)
    return result


def _store_versioned(convolution: _Convolution, result: Array) -> None:
    """Emit both versions under a run-time test of which vector is the longer."""
    ctx, span = convolution.site.ctx, convolution.site.span
    test = compare("le", convolution.m, convolution.n)
    ctx.control += 1
    with ctx.block() as then, ctx.knowing(ctx.assumptions.assuming(test)):
        convolution.store(result, True)
    with ctx.block() as orelse, ctx.knowing(ctx.assumptions.assuming(negate(test))):
        convolution.store(result, False)
    ctx.control -= 1
    ctx.emit(Branch(test, tuple(then), tuple(orelse), span))


def _prepare_operand(
    site: Site, vector: Array, label: str, dtype: DType, is_reversed: bool = False
) -> Array:
    """Return a vector whose elements are cheap to read repeatedly, in the accumulator's type.

    A reversed one is materialized, so that its elements are contiguous, whichever is the longer.
    """
    if site.ctx.pointwise or vector.kind.dtype == dtype and not is_reversed:
        return cheap_or_stored(site.ctx, vector, label, site.span)
    return site.ctx.materialize(vector, label, site.span, dtype)


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Two vectors, the mode and the element kind of their convolution."""

    site: Site
    left: Array
    right: Array
    kind: Kind
    mode: str
    is_reversed: bool
    """Whether the right vector was reversed: where it is the longer, NumPy reverses the result."""

    @property
    def n(self) -> Affine:
        return self.left.shape[0]

    @property
    def m(self) -> Affine:
        return self.right.shape[0]

    def is_left_longer(self, assumptions: Assumptions) -> bool | None:
        """Whether the left vector is at least as long as the right; None where that is dynamic."""
        if assumptions.nonnegative(self.n - self.m):
            return True
        return False if assumptions.less(self.n, self.m) else None

    def size(self, assumptions: Assumptions) -> Affine:
        """Return the length of the result."""
        shorter, longer = assumptions.minimum(self.n, self.m), assumptions.maximum(self.n, self.m)
        sizes = {"full": self.n + self.m - 1, "same": longer, "valid": longer - shorter + 1}
        return sizes[self.mode]

    def offset(self, assumptions: Assumptions) -> Affine:
        """Return the position of the first element in the result of mode "full"."""
        shorter = assumptions.minimum(self.n, self.m)
        if self.mode == "full":
            return const(0)
        if self.mode == "valid":
            return shorter - 1
        swapped = assumptions.minimum(const(1), assumptions.maximum(const(0), self.m - self.n))
        return floordiv(shorter - 1 + (swapped if self.is_reversed else 0), const(2))

    def total(self, count: Affine, first: Affine | int, last: Affine) -> Expr:
        """Return the sum of `a[first + k] * v[last - k]` for k from 0 to `count - 1`."""
        k, dtype = self.site.ctx.symbol("k"), self.kind.dtype.compute
        product_op, sum_op = (
            (OPS["and"], OPS["or"]) if dtype.kind == "b" else (OPS["mul"], OPS["add"])
        )
        factors = self.left.at((var(k) + first,)), self.right.at((last - var(k),))
        product = Apply(product_op, (cast(factors[0], dtype), cast(factors[1], dtype)), dtype)
        domain = Domain((Range(k, const(0), count),))
        return Reduce(sum_op, domain, product, dtype, span=self.site.span)

    def virtual_elements(self, size: Affine, offset: Affine) -> Array:
        """Return virtual elements, computed where they are read, each with bounds of its window."""
        out = self.site.ctx.symbol("i")
        at = var(out) + offset
        first = index_max(const(0), at - self.m + 1)
        total = self.total(index_min(self.n, at + 1) - first, first, at - first)
        return Array((out,), (size,), total, self.kind, copied=True)

    def full_windows(self, size: Affine, longer: bool) -> Array:
        """Return the elements whose windows hold all of the shorter vector."""
        out = self.site.ctx.symbol("i")
        at = var(out)
        terms = (self.m, at, self.m - 1) if longer else (self.n, const(0), at + self.n - 1)
        return Array((out,), (size,), self.total(*terms), self.kind, copied=True)

    def store(self, result: Array, longer: bool) -> None:
        """Emit the stores of the elements: the peeled ends and the middle."""
        for start, count, part in self.parts(longer):
            if count.constant is None or count.constant > 0:
                target = shifted(result, 0, start, count)
                value = part.at(tuple(map(var, target.axes)))
                dtype = self.kind.dtype
                self.site.ctx.store(target, cast(value, dtype), self.site.span)

    def parts(self, longer: bool) -> Iterator[tuple[Affine, Affine, Array]]:
        """Yield the start, the length and the elements of each part: head, middle, tail."""
        assumptions = self.site.ctx.assumptions
        shorter, longest = (self.m, self.n) if longer else (self.n, self.m)
        size, offset = self.size(assumptions), self.offset(assumptions)
        head = shorter - 1 - offset
        out = self.site.ctx.symbol("i")
        at = var(out) + offset
        yield const(0), head, self.part(out, head, self.total(at + 1, 0, at))
        middle = longest - shorter + 1
        yield head, middle, self.full_windows(middle, longer)
        out = self.site.ctx.symbol("i")
        left, tail = var(out) + longest - self.m + 1, size - head - middle
        terms = (shorter - 1 - var(out), left, self.m - 1)
        yield head + middle, tail, self.part(out, tail, self.total(*terms))

    def part(self, out: Symbol, size: Affine, total: Expr) -> Array:
        return Array((out,), (size,), total, self.kind, copied=True)
