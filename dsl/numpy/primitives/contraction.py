"""Tensor contractions: `@`, `dot`, `einsum` and others, as sums of products over index variables.

out[i, j] = sum[k](a[i, k] * b[k, j])
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdIndexError, CdShapeError, CdTypeError, CdValueError
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Domain, Expr, Reduce
from ....lowering.ir.indexing import Affine, Range, Symbol, const, var
from ....lowering.ir.ops import OPS
from ...values.arrays import cheap_or_stored, describe, elementwise, strong
from ...values.broadcasting import shape_text
from ...values.builder import error
from ...values.call_site import (
    NONE,
    NOT_CONSTANT,
    ONE,
    ZERO,
    Body,
    Site,
    array_of,
    axes_in_order,
    constant,
    dtype_of,
    items_of,
    multiplied,
    needs,
    static_int,
)
from ...values.memory_order import k_order, normal, strides_of
from ...values.types import Kind, cast, join_all
from ...values.values import Array, Group, Order, Scalar, Static, Value
from .elementwise import arithmetic, converted
from .joining import stacked
from .powers import power
from .reductions import accumulate
from .reshaping import reshaped
from .shaping import diagonal, elements, expand_dims, remap, squeeze
from .ufuncs import combine_of, strong_of


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a contraction: an index letter for each axis; a repeated one is a diagonal."""

    array: Array
    letters: str


def product_sum(site: Site, operands: Sequence[Operand], output: str) -> Value:
    """Return the contraction of the operands over all index letters that are not in `output`.

    Bools are contracted by `or` of `and`. The extents of a letter are equal, or 1 and broadcast;
    CdShapeError CD0301 where they differ. A scalar if `output` is empty.
    """
    letters = "".join(operand.letters for operand in operands)
    summed = [letter for letter in dict.fromkeys(letters) if letter not in output]
    has_reuse = len(operands) > 1 and len(set(letters)) > max(len(o.letters) for o in operands)
    if summed or has_reuse:
        operands = [
            Operand(cheap_or_stored(site.ctx, o.array, "factor", site.span), o.letters)
            for o in operands
        ]
    symbols = {letter: site.ctx.symbol(letter.lower()) for letter in dict.fromkeys(letters)}
    extents = _extents(site, operands)
    expr, kind = _product(operands, symbols)
    if summed:
        ranges = tuple(Range(symbols[x], const(0), extents[x]) for x in summed)
        op = OPS["or"] if kind.dtype.kind == "b" else OPS["add"]
        expr = Reduce(op, Domain(ranges), expr, kind.dtype.compute, span=site.span)
    if not output:
        return Scalar(expr, strong(kind))
    axes = tuple(symbols[letter] for letter in output)
    return Array(axes, tuple(extents[x] for x in output), expr, strong(kind), copied=True)


def _extents(site: Site, operands: Sequence[Operand]) -> dict[str, Affine]:
    extents: dict[str, Affine] = {}
    for operand in operands:
        for letter, size in zip(operand.letters, operand.array.shape, strict=True):
            extent = extents.get(letter, const(1))
            if extent.constant == 1:
                extents[letter] = size
            elif size.constant != 1:
                if site.ctx.assumptions.differ(extent, size):
                    shown = " and ".join(shape_text(o.array.shape) for o in operands)
                    raise error(
                        "CD0301", CdShapeError, f"shapes {shown} do not fit in a product",
                        site.span,
                        label=f"{extent} against {size}",
                    )  # fmt: skip
                site.ctx.equal_extents(extent, size, "the axes of a product differ", site.span)
    return extents


def _product(operands: Sequence[Operand], symbols: dict[str, Symbol]) -> tuple[Expr, Kind]:
    kind = join_all([operand.array.kind for operand in operands])
    dtype = kind.dtype.compute
    op = OPS["and"] if dtype.kind == "b" else OPS["mul"]
    result: Expr | None = None
    for operand in operands:
        index = [
            const(0) if size.constant == 1 else var(symbols[letter])
            for letter, size in zip(operand.letters, operand.array.shape, strict=True)
        ]
        element = cast(operand.array.at(tuple(index)), dtype)
        result = element if result is None else Apply(op, (result, element), dtype)
    assert result is not None, "a product has factors"
    return result, kind


def matmul(site: Site, x1: Value, x2: Value) -> Value:
    """Return `x1 @ x2`: the last axis contracted with the last but one, batch axes broadcast.

    CdTypeError CD0454 for scalars, CdShapeError CD0301 for unequal contracted axes.
    """
    left, right = array_of(site, x1), array_of(site, x2)
    if not left.rank or not right.rank:
        raise error(
            "CD0454", CdTypeError, "`@` needs arrays with at least one axis", site.span,
            label=f"{describe(x1)} and {describe(x2)}", helps=("use `*` for numbers",),
        )  # fmt: skip
    alphabet = string.ascii_uppercase
    rows, columns = "i" * (left.rank > 1), "j" * (right.rank > 1)
    batch_axes = [alphabet[len(alphabet) - max(a.rank - 2, 0) :] for a in (left, right)]
    output = max(batch_axes, key=len) + rows + columns
    _require_contracted(site, left, right)
    return product_sum(
        site,
        [Operand(left, batch_axes[0] + rows + "k"), Operand(right, batch_axes[1] + "k" + columns)],
        output,
    )  # fmt: skip


def _require_contracted(site: Site, left: Array, right: Array) -> None:
    """Require equal sizes of what `@` and `dot` contract: the last axis and the last but one."""
    _require_equal_extents(site, left, right, [(left.rank - 1, max(right.rank - 2, 0))])


def _require_equal_extents(
    site: Site, left: Array, right: Array, pairs: Sequence[tuple[int, int]]
) -> None:
    """Require equal sizes of pairs of contracted axes, which only `einsum` broadcasts."""
    for one, other in pairs:
        inner, outer = left.shape[one], right.shape[other]
        if site.ctx.assumptions.differ(inner, outer):
            shown = f"{shape_text(left.shape)} and {shape_text(right.shape)}"
            raise error(
                "CD0301", CdShapeError, f"shapes {shown} do not fit in a product", site.span,
                label=f"{inner} against {outer}",
            )  # fmt: skip
        site.ctx.equal_extents(inner, outer, "the axes of a product differ", site.span)


def _as_strong_array(site: Site, value: Value) -> Array:
    """Return `np.asarray(value)`: a Python number becomes a 64-bit array that promotes as one."""
    array = array_of(site, value)
    return replace(array, kind=Kind(strong_of(array.kind)))


def _multiply_scalar(site: Site, left: Array, right: Array) -> Value:
    """Return the product of two operands of which at least one has rank 0."""
    sides = [side if side.rank else Scalar(side.body, side.kind) for side in (left, right)]
    return arithmetic(site, "*", *sides)


def dot(site: Site, a: Value, b: Value) -> Value:
    """Return `np.dot`: the last axis contracted with the last but one; scalars multiply."""
    left, right = _as_strong_array(site, a), _as_strong_array(site, b)
    if not left.rank or not right.rank:
        return _multiply_scalar(site, left, right)
    left_axes = string.ascii_lowercase[: left.rank - 1]
    right_axes = string.ascii_uppercase[: right.rank - 1]
    right_letters = right_axes[:-1] + "z" + right_axes[-1:]
    _require_contracted(site, left, right)
    return product_sum(
        site,
        [Operand(left, left_axes + "z"), Operand(right, right_letters)],
        left_axes + right_axes,
    )


def inner(site: Site, a: Value, b: Value) -> Value:
    """Return `np.inner`: the contraction of the last axes; scalars multiply."""
    left, right = _as_strong_array(site, a), _as_strong_array(site, b)
    if not left.rank or not right.rank:
        return _multiply_scalar(site, left, right)
    left_axes = string.ascii_lowercase[: left.rank - 1]
    right_axes = string.ascii_uppercase[: right.rank - 1]
    _require_equal_extents(site, left, right, [(left.rank - 1, right.rank - 1)])
    return product_sum(
        site,
        [Operand(left, left_axes + "z"), Operand(right, right_axes + "z")],
        left_axes + right_axes,
    )


def outer(site: Site, a: Value, b: Value) -> Value:
    """Return `np.outer`: the outer product of two flattened arrays, a matrix."""
    left, right = (_as_strong_array(site, elements(site, side)) for side in (a, b))
    return product_sum(site, [Operand(left, "i"), Operand(right, "j")], "ij")


def vector_outer(site: Site, x1: Value, x2: Value) -> Value:
    """Return `np.linalg.outer`, of vectors only. CdValueError CD0452 for another rank than 1."""
    for side in (x1, x2):
        if (array := array_of(site, side)).rank != 1:
            text = f"`linalg.outer` takes two vectors, and is given {describe(array)}"
            helps = ("`np.outer` flattens its arguments",)
            raise error("CD0452", CdValueError, text, site.span, helps=helps)
    return outer(site, x1, x2)


def vdot(site: Site, a: Value, b: Value) -> Value:
    """Return `np.vdot`: the inner product of two flattened arrays, the first conjugated."""
    return dot(site, _conjugate(site, elements(site, a)), elements(site, b))


def _conjugate(site: Site, value: Value) -> Value:
    """Return the conjugate of complex values, others unchanged: bools stay bools."""
    if array_of(site, value).kind.dtype.kind != "c":
        return value
    return elementwise(site.ctx, combine_of(np.conjugate), [value], site.span)


def vecdot(site: Site, x1: Value, x2: Value) -> Value:
    """Return `np.vecdot`: inner products over the last axis, the first operand conjugated.

    CdValueError CD0454 for scalars.
    """
    left, right = array_of(site, x1), array_of(site, x2)
    if not left.rank or not right.rank:
        text = f"`vecdot` needs arrays with axes, given {describe(x1)} and {describe(x2)}"
        raise error("CD0454", CdValueError, text, site.span, helps=("use `*` for numbers",))
    _require_equal_extents(site, left, right, [(left.rank - 1, right.rank - 1)])
    product = array_of(site, arithmetic(site, "*", _conjugate(site, x1), x2))
    op = OPS["or" if product.kind.dtype.kind == "b" else "add"]
    return accumulate(site, op, product, (product.rank - 1,), product.kind)


def ufunc_outer(ufunc: np.ufunc, site: Site, a: Value, b: Value) -> Value:
    """Return `ufunc.outer(a, b)`: the ufunc of every pair; the axes of `a` come first."""
    left, right = _as_strong_array(site, a), _as_strong_array(site, b)
    axes = (*left.axes, *site.ctx.axes(right.rank))
    shape = (*left.shape, *(const(1) for _ in range(right.rank)))
    expanded = Array(axes, shape, left.body, left.kind, left.copied)
    if ufunc in (np.power, np.float_power):
        return power(site, expanded, right, ufunc, False)
    return elementwise(site.ctx, combine_of(ufunc), [expanded, right], site.span)


def tensordot(site: Site, a: Value, b: Value, axes: Value = Static(2)) -> Value:
    """Return `np.tensordot`: the contraction of `axes`, a number of them or a pair of lists.

    CdShapeError CD0301 where the contracted sizes differ.
    """
    left, right = _as_strong_array(site, a), _as_strong_array(site, b)
    pairs = _contracted_axes(site, left, right, axes)
    _require_equal_extents(site, left, right, pairs)
    left_letters = list(string.ascii_lowercase[: left.rank])
    right_letters = list(string.ascii_uppercase[: right.rank])
    for left_axis, right_axis in pairs:
        right_letters[right_axis] = left_letters[left_axis]
    summed = {left_letters[left_axis] for left_axis, _ in pairs}
    output = "".join(letter for letter in (*left_letters, *right_letters) if letter not in summed)
    result = product_sum(
        site, [Operand(left, "".join(left_letters)), Operand(right, "".join(right_letters))], output
    )
    if isinstance(result, Scalar):  # NumPy returns an array of rank 0
        return Array((), (), result.expr, result.kind, copied=True)
    return result


def _contracted_axes(site: Site, left: Array, right: Array, axes: Value) -> list[tuple[int, int]]:
    """Return the pairs of axes that `tensordot` contracts.

    CdIndexError CD0446 for a number above a rank, CdValueError CD0311 for lists that are no pairs.
    """
    items = items_of(axes)
    if items is None:
        number = static_int(site, axes, "the number of axes")
        if number > min(left.rank, right.rank):
            text = f"`tensordot` contracts {number} axes of {describe(left)} and {describe(right)}"
            helps = ("contract no more axes than both have: `axes=1`",)
            raise error("CD0446", CdIndexError, text, site.span, helps=helps)
        return [(left.rank - number + n, n) for n in range(number)]
    helps = ("give one list of axes for each array, of one length: `axes=([1], [0])`",)
    if len(items) != 2:
        text = f"`axes` of `tensordot` is a number or two lists, and has {len(items)} items"
        raise error("CD0311", CdValueError, text, site.span, helps=helps)
    one, other = (
        axes_in_order(site, item, array.rank)
        for item, array in zip(items, (left, right), strict=True)
    )
    if len(one) != len(other):
        text = f"`tensordot` contracts axes in pairs, and is given {len(one)} and {len(other)}"
        raise error("CD0311", CdValueError, text, site.span, helps=helps)
    return list(zip(one, other, strict=True))


def einsum(site: Site, subscripts: Value, *operands: Value, optimize: Value = NONE) -> Value:
    """Return `np.einsum` of a static subscripts string; a transpose or diagonal is a view.

    CdValueError CD0455 where the string does not fit the operands.
    """
    text = constant(subscripts)
    if text is NOT_CONSTANT or not isinstance(text, str):
        raise needs(
            site,
            "the specification of `einsum`",
            subscripts,
            "write it first, as a text: `np.einsum('ij,jk->ik', a, b)`",
        )
    arrays = [_as_strong_array(site, operand) for operand in operands]
    inputs, arrow, output = text.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(arrays):
        raise _subscripts_error(site, text, f"it names {len(terms)} operands, given {len(arrays)}")
    rank = max((a.rank - len(t) + 3 for t, a in zip(terms, arrays, strict=True) if "..." in t),
               default=0)  # fmt: skip
    unused = [letter for letter in string.ascii_uppercase if letter not in text][:rank]
    ellipsis_letters = "".join(unused)
    expanded = [
        _expand_ellipsis(term, array.rank, ellipsis_letters)
        for term, array in zip(terms, arrays, strict=True)
    ]
    for term, array in zip(expanded, arrays, strict=True):
        if len(term) != array.rank:
            raise _subscripts_error(site, text, f"`{term}` stands for {describe(array)}")
        _require_letters(site, text, term)
        for letter in {x for x in term if term.count(x) > 1}:
            first, *others = (n for x, n in zip(term, array.shape, strict=True) if x == letter)
            for size in others:  # not broadcast, as sizes of several operands are
                what = f"the axes {letter!r} of one operand of `einsum`"
                site.ctx.equal_extents(first, size, what, site.span)
    if arrow and ellipsis_letters and "..." not in output:
        raise _subscripts_error(site, text, "its output has no `...` for the axes of its inputs'")
    if arrow:
        output = output.replace("...", ellipsis_letters)
        _require_letters(site, text, output)
    else:
        joined = "".join(expanded)
        output = ellipsis_letters + "".join(
            x for x in sorted(set(joined)) if joined.count(x) == 1 and x not in ellipsis_letters
        )
    if len(set(output)) < len(output) or set(output) - set("".join(expanded)):
        raise _subscripts_error(site, text, f"its output `{output}`")
    if len(arrays) == 1 and set(output) == set(expanded[0]):
        return _einsum_view(site, arrays[0], expanded[0], output)
    factors = [Operand(a, t) for a, t in zip(arrays, expanded, strict=True)]
    result = product_sum(site, factors, output)
    order = _einsum_order(site, factors, output)
    return replace(result, order=order) if isinstance(result, Array) else result


def einsum_into(body: Body, out: DType) -> Body:
    """Return the body of `np.einsum` that computes in the type of `out`.

    CdTypeError CD0405 where NumPy does not safely cast the common type of operands to it.
    """

    @wraps(body)
    def typed(site: Site, subscripts: Value, *operands: Value, optimize: Value = NONE) -> Value:
        arrays = [_as_strong_array(site, operand) for operand in operands]
        common = join_all([*(array.kind for array in arrays), Kind(out)]).dtype
        if common is not out:
            text = f"`einsum` of these operands gives {common}, and is not stored in {out}"
            helps = (f"give an `out` of that type: `np.empty(..., np.{common})`",)
            raise error("CD0405", CdTypeError, text, site.span, helps=helps)
        return body(site, subscripts, *(converted(site, array, out) for array in arrays))

    return typed


def _einsum_order(site: Site, operands: Sequence[Operand], output: str) -> Order:
    """Return the memory order of the result of `einsum`; None where it is unknown.

    NumPy chooses it as for a ufunc whose axes are all the index letters.
    """
    all_letters = "".join(operand.letters for operand in operands)
    letters = output + "".join(x for x in dict.fromkeys(all_letters) if x not in output)
    if not site.ctx.orders or any(
        len(set(factor.letters)) < len(factor.letters) for factor in operands
    ):
        return None if site.ctx.orders and len(output) > 1 else ()
    extents = _extents(site, operands)
    rows = []
    for operand in operands:
        strides = strides_of(site.ctx, operand.array)
        if strides is None:
            return None
        stride_of = dict(zip(operand.letters, strides, strict=True))
        rows.append(tuple(stride_of.get(letter, const(0)) for letter in letters))
    order = k_order(site.ctx, rows, tuple(extents[letter] for letter in letters))
    sizes = tuple(extents[letter] for letter in output)
    return order and normal(tuple(n for n in order if n < len(output)), sizes)


def _einsum_view(site: Site, array: Array, letters: str, output: str) -> Value:
    """Return `einsum` of one operand without a sum, as a view: a transpose or diagonals."""
    axis_of_letter = {letter: letters.index(letter) for letter in output}
    pairs = [
        (array.shape[axis_of_letter[x]], size) for x, size in zip(letters, array.shape, strict=True)
    ]
    if not output or any(site.ctx.assumptions.differ(*pair) for pair in pairs):
        return product_sum(site, [Operand(array, letters)], output)
    for extent, other_extent in pairs:
        site.ctx.equal_extents(extent, other_extent, "the axes of a product differ", site.span)
    axes = [array.axes[axis_of_letter[letter]] for letter in output]
    index = [var(array.axes[axis_of_letter[letter]]) for letter in letters]
    return remap(array, axes, [array.shape[axis_of_letter[letter]] for letter in output], index)


def _expand_ellipsis(term: str, rank: int, letters: str) -> str:
    if "..." not in term:
        return term
    count = rank - len(term) + 3
    return term.replace("...", letters[len(letters) - count :] if count else "")


def _require_letters(site: Site, text: str, term: str) -> None:
    """Refuse (CdValueError CD0455) subscripts of a term other than the ASCII letters."""
    wrong = next((x for x in term if x not in string.ascii_letters), None)
    if wrong is not None:
        raise _subscripts_error(site, text, f"{wrong!r} is no letter")


def _subscripts_error(site: Site, text: str, why: str) -> Exception:
    return error(
        "CD0455", CdValueError, f"the einsum specification {text!r} does not fit: {why}", site.span
    )


def matvec(site: Site, x1: Value, x2: Value) -> Value:
    """Return `np.matvec`: matrix-vector products, batch axes broadcast.

    CdValueError CD0452 where the first operand is no matrix.
    """
    if array_of(site, x1).rank < 2:
        text = f"`matvec` takes matrices first, and is given {describe(x1)}"
        helps = ("for vectors there is `np.vecdot(x, y)`",)
        raise error("CD0452", CdValueError, text, site.span, helps=helps)
    column = expand_dims(site, x2, Static(-1))
    return squeeze(site, matmul(site, x1, column), Static(-1))


def kron(site: Site, a: Value, b: Value) -> Value:
    """Return `np.kron`: the Kronecker product, a reshaped outer product of interleaved axes."""
    left, right = _as_strong_array(site, a), _as_strong_array(site, b)
    if not left.rank or not right.rank:
        return _multiply_scalar(site, left, right)
    rank = max(left.rank, right.rank)
    sides = []
    for array, parity in ((left, 1), (right, 0)):
        axes, shape = list(array.axes), list(array.shape)
        while len(axes) < rank:
            axes.insert(0, site.ctx.symbol("i"))
            shape.insert(0, const(1))
        padded: Value = Array(tuple(axes), tuple(shape), array.body, array.kind, array.copied)
        new_axes = Group(tuple(Static(2 * n + parity) for n in range(rank)))
        sides.append((array_of(site, expand_dims(site, padded, new_axes)), shape))
    product = arithmetic(site, "*", sides[0][0], sides[1][0])
    sizes = [multiplied(site, *pair) for pair in zip(sides[0][1], sides[1][1], strict=True)]
    return reshaped(site, array_of(site, product), sizes)


def trace(
    site: Site,
    a: Value,
    offset: Value = ZERO,
    axis1: Value = ZERO,
    axis2: Value = ONE,
    dtype: Value = NONE,
) -> Value:
    """Return `np.trace`: the sum along a diagonal of two axes."""
    diagonal_array = array_of(site, diagonal(site, a, offset, axis1, axis2))
    kind = Kind(dtype_of(site, dtype) or diagonal_array.kind.dtype.summed)
    return accumulate(site, OPS["add"], diagonal_array, (diagonal_array.rank - 1,), kind)


def matrix_trace(site: Site, x: Value, *, offset: Value = ZERO, dtype: Value = NONE) -> Value:
    """Return `np.linalg.trace`: the traces of matrices in the last two axes."""
    return trace(site, x, offset, Static(-2), Static(-1), dtype)


def multi_dot(site: Site, arrays: Value) -> Value:
    """Return `np.linalg.multi_dot`: the product of matrices, associated from the left.

    CdValueError CD0453 for fewer than two arrays, CD0452 for one that is no matrix.
    """
    items = items_of(arrays) or ()
    if len(items) < 2:
        text = f"`multi_dot` multiplies at least two arrays, and is given {len(items)}"
        helps = ("give a list of them: `np.linalg.multi_dot([a, b, c])`",)
        raise error("CD0453", CdValueError, text, site.span, helps=helps)
    for n, item in enumerate(items if len(items) > 2 else ()):  # of two it is `dot`
        array = array_of(site, item)
        if array.rank != 2 and not (array.rank == 1 and n in (0, len(items) - 1)):
            text = "`multi_dot` takes matrices, and vectors only as the first and the last array"
            raise error("CD0452", CdValueError, text, site.span, label=f"this is {describe(array)}")
    result = items[0]
    for item in items[1:]:
        result = dot(site, result, item)
    return result


def cross(site: Site, a: Value, b: Value) -> Value:
    """Return `np.cross` of 3-vectors along the last axis. CdTypeError CD0454 for others."""
    left, right = array_of(site, a), array_of(site, b)
    for array in (left, right):
        if not array.rank or array.shape[-1].constant != 3:
            raise error(
                "CD0454", CdTypeError, "`cross` takes vectors of three along the last axis",
                site.span,
                label=f"this is {describe(array)}",
            )  # fmt: skip

    def component(array: Array, n: int) -> Value:
        index = (*(var(axis) for axis in array.axes[:-1]), const(n))
        return Array(array.axes[:-1], array.shape[:-1], array.at(index), array.kind, copied=True)

    columns = []
    for first, second in ((1, 2), (2, 0), (0, 1)):
        plus = arithmetic(site, "*", component(left, first), component(right, second))
        minus = arithmetic(site, "*", component(left, second), component(right, first))
        columns.append(arithmetic(site, "-", plus, minus))
    return stacked(site, Group(tuple(columns)), Static(-1))
