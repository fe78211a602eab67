"""Every operation of the table, in C, on every type it admits, against its NumPy meaning.

One C text for each family of types computes all operations on all pairs (or triples) of special
values. Exactly rounded operations agree in every bit (any NaN for any NaN); the bounds of the
others stand in `ULPS`, measured against the meaning in the next wider type where there is one.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.expressions import Cast
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS, Op
from plusequals.lowering.ir.scalars import scalar_function

from .codegen.harness import compiled, needs_compiler
from .codegen.programs import apply, assign, at, node, over, procedure, read, symbols

Array = np.ndarray[Any, Any]
FAMILIES = {
    "integers": "bool i8 i16 i32 i64 u8 u16 u32 u64",
    "reals": "f32 f64 f16 bf16",
    "complexes": "c64 c128",
}
ULPS = dict.fromkeys(
    "cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh"
    " arcsinh arccosh arctanh erf erfc pow whole_pow half_pow arctan2 hypot".split(),
    4,
) | {"logaddexp": 32}
"""Largest distance in units in the last place; 0 where an operation is missing here.

logaddexp of two negative numbers may cancel to near zero: NumPy's formula has the same error.
"""
COMPLEX_ULPS = {"mul": 4, "div": 8, "recip": 8, "pow": 64, "tan": 8, "tanh": 8, "sign": 1}
"""For complex operations, as a multiple of the result's absolute value; 4 where missing."""
EXACT_COMPLEX = frozenset("neg add sub conj real imag rint eq ne isnan isinf isfinite".split())


def specials(dtype: DType) -> Array:
    """Return the values of a type at which operations go wrong, and some ordinary ones."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        lo, hi = np.iinfo(dtype.name).min, np.iinfo(dtype.name).max
        wanted = [lo, lo + 1, -8, -7, -3, -2, -1, 0, 1, 2, 3, 7, 8, dtype.bits - 1, dtype.bits,
                  dtype.bits + 1, hi // 3, hi - 1, hi]  # fmt: skip
        return np.array(sorted({v for v in wanted if lo <= v <= hi}), dtype.numpy)
    if dtype.kind == "c":
        parts = [0.0, -0.0, 1.0, -1.5, 2.0, 3.0, 0.1, -40.0, np.inf, -np.inf, np.nan]
        pairs = itertools.product(parts, parts)
        return np.array([complex(re, im) for re, im in pairs], dtype.numpy)
    info = np.finfo(np.float32 if dtype.name == "bfloat16" else dtype.name)
    positive = [0.0, info.smallest_subnormal, info.tiny, 1e-6, 0.1, 0.3, 0.5, 1 - info.epsneg, 1.0,
                1 + info.eps, 1.5, 2.0, 2.5, 3.0, 7.0, 10.5, 40.0, 90.0, 1000.0, 65504.0, 8388609.0,
                info.max / 2, info.max, np.inf, np.nan]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.array([s * float(v) for v in positive for s in (1, -1)]).astype(dtype.numpy)


def operands(op: Op, dtype: DType) -> list[Array]:
    """Return arrays of all combinations of the special values that an operation may meet."""
    values = [specials(dtype)] * op.arity
    if op.arity == 3 or (op.arity == 2 and dtype.kind == "c"):
        values = [some[::3] for some in values]
    if op.name in ("round_to", "round_decimal"):  # the number of digits is a small whole number
        values[1] = np.arange(-4, 6).astype(dtype.numpy)
    if op.name == "whole_pow":
        values[1] = np.array([*range(9, 65, 5), -2, -3, -7, -64]).astype(dtype.numpy)
    if op.name == "half_pow":
        values[1] = np.array([-0.5, 1.5, -1.5, 2.5, -8.5, 31.5, 63.5, -63.5]).astype(dtype.numpy)
    grids = np.meshgrid(*values, indexing="ij")
    return [np.ascontiguousarray(grid.reshape(-1)) for grid in grids]


def cases(family: str) -> list[tuple[Op, DType]]:
    """Return each operation with each type of a family that it admits."""
    types = [dtypes.BY_SHORT[short] for short in FAMILIES[family].split()]
    pairs = [(op, dtype) for op in OPS.values() for dtype in types if dtype.kind in op.admits]
    own = [(op, dtype) for op, dtype in pairs if op.result != "float" or dtype.bits >= 32]
    return [(op, dtype) for op, dtype in own if dtype is dtype.compute or op.name not in _OF_BITS]


_OF_BITS = ("ordinal", "rank")
_LETTERS = {"unsigned": "u", "signed": "i", "float": "f"}


_SECOND = {
    "round_to": "digits",
    "round_decimal": "digits",
    "whole_pow": "exponents",
    "half_pow": "halves",
}
"""What the second operand is, of operations that do not take all numbers there."""


def shared(op: Op, dtype: DType) -> str:
    """Return the name of the inputs that an operation has in common with others."""
    return f"in_{dtype.short}_{_SECOND.get(op.name, op.arity)}"


def everything(family: str) -> tuple[Procedure, list[Array], list[Array]]:
    """Return a procedure that computes all cases of a family, its inputs and its empty outputs."""
    inputs: dict[str, list[Node]] = {}
    arrays: list[Array] = []
    body, outs, results = [], [], []
    for op, dtype in cases(family):
        key = shared(op, dtype)
        if key not in inputs:
            data = operands(op, dtype)
            inputs[key] = [node(len(arrays) + k, f"{key}_{k}", a.shape, dtype)
                           for k, a in enumerate(data)]  # fmt: skip
            arrays += data
    for serial, (op, dtype) in enumerate(cases(family)):
        (i,) = symbols("i")
        i = type(i)("i", serial)
        taken = inputs[shared(op, dtype)]
        value = apply(op.name, *(read(array, i) for array in taken))
        out = node(len(arrays) + serial, f"{op.name}_{dtype.short}", taken[0].shape, value.dtype)
        size = taken[0].static_shape
        assert size is not None
        body.append(assign(out.label, out, at(i), value, over((i, 0, size[0]))))
        outs.append(out)
        results.append(np.zeros(size, value.dtype.numpy))
    given = [(array, False) for group in inputs.values() for array in group]
    return procedure(family, given, body, results=outs), arrays, results


def wanted(op: Op, dtype: DType, arrays: list[Array]) -> Array:
    """Return what an operation means on arrays, rounded from a wider type where it is inexact."""
    meaning = scalar_function(op, dtype)
    result = OPS[op.name].result
    out = (
        np.dtype(bool)
        if result == "bool"
        else dtype.real.numpy
        if result == "real"
        else np.dtype(f"{_LETTERS[result]}{dtype.numpy.itemsize}")
        if result in _LETTERS
        else dtype.numpy
    )
    if op.name == "fma":
        meaning = exact_fma
    compute: Any = dtype.compute.numpy
    if op.name in ULPS and dtype.kind == "f":
        compute = np.float64 if dtype.bits <= 32 else np.longdouble
    wide = [array.astype(compute) for array in arrays]
    if op.name == "complex":
        out = np.result_type(compute, np.complex64)
        meaning = complex_of
    values: Any = [meaning(*point) for point in zip(*wide)]
    if op.name in ("pow", "whole_pow", "half_pow") and dtype.kind == "f":
        values = np.power(
            *wide
        )  # one scalar exponent 0.5 would be a square root: not pow(-inf, 0.5)
    if op.name not in ULPS and dtype.kind == "f" and dtype.bits == 16:
        values = [np.float32(value) for value in values] if out.kind not in "bc" else values
    return np.array(values).astype(out)


def complex_of(re: Any, im: Any) -> complex:
    return complex(re, im)


def exact_fma(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c with one rounding."""
    if not all(map(math.isfinite, (a, b, c))):
        return type(a)(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))
    total = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if total == 0:
        return a * b + c if float(a) * float(b) == 0 else type(a)(0)
    try:
        near = float(total)
    except OverflowError:
        return type(a)(math.inf if total > 0 else -math.inf)
    if isinstance(a, np.float64):
        return np.float64(near)
    sides = sorted({np.nextafter(np.float32(near), s) for s in np.float32([-np.inf, np.inf])})
    best = [np.float32(near), *(side for side in sides if math.isfinite(side))]
    if not math.isfinite(best[0]):
        return best[0]
    return min(best, key=lambda v: (abs(Fraction(float(v)) - total), int(v.view(np.uint32)) & 1))


def steps(array: Array) -> Array:
    """Return floats as integers that differ by one between neighbours; both zeros are zero."""
    bits = array.view(f"i{array.itemsize}").astype(object)
    flip = 1 << (8 * array.itemsize - 1)
    return np.where(bits < 0, -(bits + flip), bits)


def differences(op: Op, dtype: DType, got: Array, want: Array) -> Array:
    """Return which elements of a result are wrong."""
    if got.dtype.kind not in "fcV" and got.dtype.name != "bfloat16":
        return np.flatnonzero(got != want)
    if got.dtype.kind == "c":
        return complex_differences(op, got, want)
    got_nan, want_nan = np.isnan(got), np.isnan(want)
    limit = 4 if dtype.kind == "c" and op.name not in EXACT_COMPLEX else ULPS.get(op.name, 0)
    far = np.abs(steps(got) - steps(want)) > limit
    signs = np.signbit(got) != np.signbit(want)
    free_sign = op.name in ("max", "min", "fmax", "fmin", "relu")
    wrong = (far | (signs & (got == 0) & (not free_sign))) & ~(got_nan & want_nan)
    return np.flatnonzero(wrong | (got_nan != want_nan))


def complex_differences(op: Op, got: Array, want: Array) -> Array:
    """Return which complex elements are wrong: parts, or beyond the bound on the distance."""
    same = np.ones(got.shape, bool)
    for left, right in ((got.real, want.real), (got.imag, want.imag)):
        same &= (left == right) | (np.isnan(left) & np.isnan(right))
    if op.name in EXACT_COMPLEX or op.name == "complex":
        return np.flatnonzero(~same)
    with np.errstate(all="ignore"):
        bound = COMPLEX_ULPS.get(op.name, 4) * np.finfo(got.dtype).eps * np.abs(want)
        close = np.isfinite(want) & (np.abs(got - want) <= bound)
    return np.flatnonzero(~same & ~close)


@needs_compiler
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_operation_has_its_numpy_meaning_in_c(family: str) -> None:
    whole, arrays, results = everything(family)
    assert compiled(whole)(*arrays, *results).status == 0
    wrong = []
    for (op, dtype), got in zip(cases(family), results):
        points = operands(op, dtype)
        want = wanted(op, dtype, points)
        for k in differences(op, dtype, got, want)[:3]:
            args = ", ".join(repr(point[k]) for point in points)
            wrong.append(f"{op.name}_{dtype.short}({args}) = {got[k]!r}, not {want[k]!r}")
    assert not wrong, "\n".join(wrong)


@needs_compiler
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_cast_agrees_with_the_interpreter() -> None:
    sources = [(node(k, f"from_{d.short}", specials(d).shape, d), False)
               for k, d in enumerate(dtypes.ALL)]  # fmt: skip
    inputs = [specials(dtype) for dtype in dtypes.ALL]
    body, outs = [], []
    for number, ((source, _), to) in enumerate(itertools.product(sources, dtypes.ALL)):
        i = type(symbols("i")[0])("i", number)
        assert source.static_shape is not None
        out = node(100 + number, f"{to.short}_of_{source.dtype.short}", source.shape, to)
        value = read(source, i) if to is source.dtype else Cast(read(source, i), to)
        body.append(assign(out.label, out, at(i), value, over((i, 0, source.static_shape[0]))))
        outs.append(out)
    whole = procedure("casts", sources, body, results=outs)
    got, want = ([np.zeros(o.static_shape or (), o.dtype.numpy) for o in outs] for _ in range(2))
    assert compiled(whole)(*inputs, *got).status == 0
    run_procedure(whole, [*inputs, *want], print)
    wrong = []
    for out, mine, oracle in zip(outs, got, want):
        same = (mine == oracle) | ((mine != mine) & (oracle != oracle))
        wrong += [f"{out.label}[{k}] = {mine[k]!r}, not {oracle[k]!r}"
                  for k in np.flatnonzero(~same)[:3]]  # fmt: skip
    assert not wrong, "\n".join(wrong)
