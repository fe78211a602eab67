"""Dense linear algebra of one matrix: solve, inverse, determinant, Cholesky factorization."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain
from ....lowering.ir.indexing import const, var
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, describe
from ...values.broadcasting import broadcast_to
from ...values.builder import error
from ...values.call_site import Site, array_of, static_int
from ...values.values import Array, Group, Scalar, Static, Value
from ..library import definitions
from .contraction import matmul
from .creation import identity
from .elementwise import converted
from .python_reductions import as_number
from .shaping import remap
from .sort_strategy import inlined


def _matrix(site: Site, value: Value, name: str, dtype: DType | None = None) -> Array:
    """Return a copy of a square matrix, in floats. CdTypeError CD0454 for a rank other than 2."""
    array = array_of(site, value)
    if array.rank != 2:
        raise error(
            "CD0454", CdTypeError, f"`{name}` takes one matrix, and is given {describe(array)}",
            site.span, helps=("write a loop over the matrices",),
        )  # fmt: skip
    site.ctx.equal_extents(array.shape[0], array.shape[1], f"`{name}` takes square matrices",
                           site.span)  # fmt: skip
    wanted = dtype or _solver_dtype(site, array.kind.dtype)
    return site.ctx.materialize(array_of(site, converted(site, array, wanted)), "a", site.span)


def _solver_dtype(site: Site, dtype: DType) -> DType:
    """Return the type NumPy solves in: float64 for integers. CdTypeError CD0404 for 16 bits."""
    if dtype.kind in "biu":
        return dtypes.float64
    if dtype.bits == 16:
        text = f"`linalg` does not solve in {dtype}"
        helps = ("convert the matrix: `x.astype(np.float32)`",)
        raise error("CD0404", CdTypeError, text, site.span, helps=helps)
    return dtype


def solve(site: Site, a: Value, b: Value) -> Value:
    """Return `x` with `a @ x == b`; a singular matrix raises at run time."""
    right = array_of(site, b)
    if right.rank not in (1, 2):
        raise error(
            "CD0454", CdTypeError,
            f"`solve` takes one or two axes on the right, given {describe(right)}", site.span,
        )  # fmt: skip
    dtype = dtypes.promote(
        _solver_dtype(site, array_of(site, a).kind.dtype), _solver_dtype(site, right.kind.dtype)
    )
    matrix = _matrix(site, a, "solve", dtype)
    site.ctx.equal_extents(matrix.shape[0], right.shape[0], "`solve`: rows", site.span)
    solution = site.ctx.materialize(
        array_of(site, converted(site, right, dtype)), "solved", site.span
    )
    columns = solution
    if solution.rank == 1:
        axes = (solution.axes[0], site.ctx.symbol("j"))
        columns = remap(solution, axes, (solution.shape[0], const(1)), (var(axes[0]),))
    inlined(site, definitions.SOLVE, matrix, columns)
    return solution


def inverse(site: Site, a: Value) -> Value:
    """Return the inverse of a matrix; a singular one raises at run time."""
    array = array_of(site, a)
    dtype = _solver_dtype(site, array.kind.dtype)
    matrix = _matrix(site, array, "inv", dtype)
    unit = identity(site, as_number(matrix.shape[0]), Static(dtype))
    result = site.ctx.materialize(array_of(site, unit), "inverse", site.span)
    inlined(site, definitions.SOLVE, matrix, result)
    return result


def matrix_power(site: Site, a: Value, n: Value) -> Value:
    """Return integer powers of matrices by squaring; negative ones are those of the inverse.

    A run-time power is a loop over its bits. CdValueError CD0454 for what is no
    square matrix, and at run time for a negative power, whose type could be another one.
    """
    base = array_of(site, a)
    if base.rank < 2:
        text = f"`matrix_power` takes square matrices, and is given {describe(base)}"
        raise error("CD0454", CdValueError, text, site.span, helps=("use `**` for numbers",))
    rows, columns = base.shape[-2:]
    site.ctx.equal_extents(rows, columns, "`matrix_power` takes square matrices", site.span)
    can_loop = not (site.ctx.pointwise or site.ctx.conditions)
    if can_loop and isinstance(n, Scalar) and n.kind.dtype.kind in "iu":
        return _dynamic_power(site, base, n)
    power = static_int(site, n, "the power of a matrix")
    if power == 0:
        return _identities(site, base)
    return _static_power(site, base if power > 0 else inverse(site, base), abs(power))


def _identities(site: Site, base: Array) -> Array:
    """Return an identity matrix for each of some square matrices."""
    unit = array_of(site, identity(site, as_number(base.shape[-1]), Static(base.kind.dtype)))
    return broadcast_to(site.ctx, unit, base.shape, site.span)


def _dynamic_power(site: Site, base: Array, n: Scalar) -> Array:
    """Return a run-time power; a negative one raises."""
    power = as_scalar(converted(site, n, dtypes.int64, weak=True), site.span)
    test = Apply(OPS["ge"], (power.expr, Const(0, dtypes.int64)), dtypes.bool_)
    text = "a run-time power of a matrix is zero or more, and is {0}"
    fault = Fault("CD0454", "CdValueError", text, ("invert it first: `np.linalg.inv`",))
    site.ctx.check(test, fault, (power.expr,), site.span, Domain())
    squares = site.ctx.materialize(base, "squares", site.span)
    result = site.ctx.materialize(_identities(site, base), "power", site.span)
    inlined(site, definitions.MATRIX_POWER, squares, power, result)
    return result


def _static_power(site: Site, square: Value, power: int) -> Value:
    """Return a power of at least 1, by squaring."""
    result: Value | None = None
    while True:
        if power % 2:
            result = square if result is None else matmul(site, result, square)
        power //= 2
        if not power:
            break
        square = matmul(site, square, square)
    assert result is not None, "the highest bit is set"
    return result


def determinant(site: Site, a: Value) -> Value:
    """Return the determinant of a matrix."""
    matrix = _matrix(site, a, "det")
    return converted(site, inlined(site, definitions.DETERMINANT, matrix), matrix.kind.dtype)


SLOGDET: Any = type(np.linalg.slogdet(np.eye(1)))
"""The named tuple that `np.linalg.slogdet` returns."""


def sign_and_logarithm(site: Site, a: Value) -> Value:
    """Return `slogdet`: the sign of a matrix's determinant, and the logarithm of its modulus."""
    matrix = _matrix(site, a, "slogdet")
    is_complex = matrix.kind.dtype.kind == "c"
    text = definitions.COMPLEX_SIGN_AND_LOG if is_complex else definitions.SIGN_AND_LOG
    result = inlined(site, text, matrix)
    assert isinstance(result, Group), "the text returns both"
    dtype = matrix.kind.dtype
    real = dtypes.float32 if dtype is dtypes.complex64 else dtypes.float64
    kinds = (dtype, real if dtype.kind == "c" else dtype)
    parts = (converted(site, item, kind) for item, kind in zip(result.items, kinds, strict=True))
    return Group(tuple(parts), "tuple", SLOGDET._fields, SLOGDET)


def cholesky(site: Site, a: Value) -> Value:
    """Return the lower Cholesky factor; a matrix not positive definite raises at run time."""
    factor = _matrix(site, a, "cholesky")
    inlined(site, definitions.CHOLESKY, factor)
    return factor
