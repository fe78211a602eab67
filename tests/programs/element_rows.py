"""Rows of what is done element by element, and of reductions; `expressions` says what names are."""

from __future__ import annotations

from .rows import each, rows

_UNARY = (
    "negative absolute fabs sign floor ceil trunc rint invert conjugate isnan isinf isfinite "
    "signbit logical_not square reciprocal positive sqrt"
)
_FUNCTIONS = (
    "cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh degrees rad2deg radians deg2rad"
)
_BINARY = (
    "add subtract multiply divide floor_divide remainder fmod copysign heaviside equal "
    "not_equal less less_equal greater greater_equal logical_and "
    "logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift"
)
_EXTREMES = "maximum minimum fmax fmin"
"""Of two zeros the language takes the first; NumPy one or the other, by vector and by type."""
_ROUNDED = "power float_power arctan2 hypot"
_REDUCERS = "add multiply maximum minimum logical_and logical_or bitwise_and bitwise_or bitwise_xor"
_AT = (
    "add subtract multiply divide floor_divide remainder power maximum minimum fmax fmin "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift"
)
_TYPES = (
    "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
)
_WIDE = "i8 u8 f8 c16 i1 u1 f2 f4 c8"
_PAIRS = ("np.@(x, y)", "np.@(x, k)", "np.@(x, v)", "np.@.outer(v, u)")
_WRITTEN = (
    "np.@(x, y, dtype=np.float64)", "np.@(x, y, out=o); o", "np.@(x, y, o); o", "np.@(x, t)",
    "np.@(s, x)", "np.@(s, k)",
)  # fmt: skip

UFUNCS = (
    *each(_UNARY, "np.@(x)", "np.@(x, dtype=np.float32)", "np.@(x, out=o); o", "np.@(s)"),
    *each(_FUNCTIONS, "np.@(x)", "np.@(s)", tolerance="ulps"),
    *each("exp sin", "np.@(x, dtype=np.float64)", "np.@(x, out=o); o", tolerance="ulps"),
    *each(_BINARY, *_PAIRS),
    *each(_EXTREMES, *_PAIRS, tolerance="zeros"),
    *each("add multiply less", *_WRITTEN),
    *each("maximum", *_WRITTEN, tolerance="zeros"),
    *each(_ROUNDED, "np.@(x, y)", "np.@(x, t)", "np.@.outer(v, u)", tolerance="ulps"),
    *each("logaddexp", "np.@(x, y)", "np.@(x, t)", "np.@.outer(v, u)", tolerance="sums"),
    *each(_REDUCERS, "np.@.reduce(x)", "np.@.reduce(x, axis=1)", "np.@.accumulate(x)",
           "np.@.reduce(x, axis=1, keepdims=True)", "np.@.accumulate(x, axis=1)",
           tolerance="sums"),
    *each("add multiply", "np.@.reduce(x, dtype=np.float64)", "np.@.accumulate(v, dtype=np.int64)",
           "np.@.reduce(x, None)", "np.@.accumulate(x, 0, None, o); o", "np.@.reduce(x, out=v); v",
           tolerance="sums"),
    *each(_AT, "np.@.at(x, i, y[0]); x", "np.@.at(v, 2, s); v", tolerance="ulps"),
    *rows("exact", """
        np.sqrt(np.abs(x), where=m)
        np.add(x, y, where=m, out=o); o
        np.add(x, y, casting='no')
        np.add(x, 1, casting='safe')
        np.multiply(x, y, order='F')
        np.add(x, y, subok=False)
    """),
)  # fmt: skip
"""Ufuncs and their methods."""

OPERATORS = (
    *each("+ - * / // % & | ^ << >> == != < <= > >=", "x @ y", "x @ k", "k @ x", "x @ t", "x @ s",
           "s @ t", "x @ i[0]", "x @ 3", "x @ v[:1]", "x[0] @ n"),
    *each(_WIDE, "x + y.astype('@')", "x < y.astype('@')", "x == y.astype('@')",
           "x // y.astype('@')", "x.astype('@')",
           "x.astype('@').astype(x.dtype)", "np.where(m, x, y.astype('@'))"),
    *each(_WIDE, "np.maximum(x, y.astype('@'))", tolerance="zeros"),
    *each("2 3 0 1 1.5 -1 2.0 -0.5 -1.0", "x ** @", "s ** @", tolerance="ulps"),
    *rows("ulps", "x ** 0.5\nnp.nan_to_num(s) ** 0.5"),  # NumPy takes `pow` of numbers
    *rows("ulps", "x ** y\nx ** k\nx ** t\nk ** x\nt ** x\n2 ** x\nx ** s\nx ** np.float16(0.5)"),
    *rows("ulps", "x **= y; x\nx **= k; x"),
    *rows("exact", """
        -x
        +x
        ~x
        abs(x)
        x == 2**63
        x >= 2**63
        x > -1
        x < 2**31
        x != 255
        x <= 1e300
        x == 0xFFFFFFFFFFFFFFFF
        2**63 <= x
        2**64 > x
        x == 2**64
        divmod(x, y)
        divmod(x, 3)
        x += y; x
        x -= k; x
        x *= 2; x
        x //= y; x
        x &= y; x
        x[1] = k; x
        x[:, 1] = t; x
        x /= y; x
        x @= q; x
        x[m] = 0; x
        x[i] = y[0]; x
        round(t, 1)
        round(t * 2.675, 2)
        round(k / 7, 3)
        round(k, -1)
        round(t)
        int(s)
        float(s)
        complex(t, k)
        bool(s)
        abs(s)
    """),
)  # fmt: skip
"""Python's operators and number types, beside every type."""

ELEMENTS = (
    *each(_TYPES, "np.@(x)", "np.@(s)", "np.@(k)"),
    *rows("exact", """
        np.where(m, x, y)
        np.where(m, x, k)
        np.where(m, t, x)
        np.where(x, 1, 0)
        np.where(m, s, k)
        np.clip(x, 1, 3)
        np.clip(x, y, None)
        np.clip(x, None, k)
        np.clip(x, a_min=0, a_max=2)
        np.clip(x, min=0, max=2)
        np.clip(x, 1, 3, o); o
        np.clip(x, v, u)
        np.clip(x, None, None)
        np.clip(x, 0.5, 2.5)
        np.clip(x, -1, 300)
        x.clip(1, 3)
        x.clip(min=1)
        np.select([m, x == y], [x, y])
        np.select([m, x == y], [x, y], default=k)
        np.select([m], [x], t)
        np.isposinf(x)
        np.isneginf(x)
        np.isposinf(x, m); m
        np.round(x)
        np.round(x, 1)
        np.round(x, decimals=2)
        np.round(x, -1)
        np.round(x, out=o); o
        np.around(x, 1)
        np.round(s, 1)
        np.round(t, 1)
        x.round()
        x.round(1)
        np.fix(x)
        np.fix(x, o); o
        np.real(x)
        np.imag(x)
        np.real(s)
        np.imag(s)
        x.real
        x.imag
        x.real[...] = 1; x
        np.imag(x)[...] = 1; x
        np.real(x)[0] = 1; x
        np.divmod(x, y)
        np.modf(x)
        np.isclose(x, y)
        np.isclose(x, y, rtol=0.5)
        np.isclose(x, y, 0, 1)
        np.isclose(x, x, equal_nan=True)
        np.isclose(x, x, equal_nan=False)
        np.isclose(x, y, atol=k)
        np.nan_to_num(x)
        np.nan_to_num(x, copy=True)
        np.nan_to_num(x, copy=False); x
        np.nan_to_num(x, nan=2.0)
        np.nan_to_num(x, posinf=3.0)
        np.nan_to_num(x, nan=k, neginf=-1.0)
        np.nan_to_num(s)
        np.nan_to_num(v)[1:]
        x.conj()
        x.conjugate()
        np.conj(s)
    """),
    *rows("ulps", "np.angle(x)\nnp.angle(x, deg=True)\nnp.angle(s)"),
    *rows("sums", "np.sinc(x)\nnp.sinc(s)"),  # of float16 computed in float32
)  # fmt: skip
"""Functions of elements that are no ufuncs."""

_SUMS = "sum prod nansum nanprod"
_ENDS = "max min amax amin nanmax nanmin ptp"
_MEANS = "mean var std nanmean nanvar nanstd"

REDUCTIONS = (
    *each(_SUMS, "np.@(x)", "np.@(x, axis=0)", "np.@(x, 1, keepdims=True)", "np.@(v)",
           "np.@(x, axis=(0, 1))", "np.@(x, dtype=np.float64)", "np.@(z, axis=(0, 2))",
           "np.@(x, axis=0, dtype=np.int32)", "np.@(x, initial=2)", "np.@(x, axis=1, initial=k)",
           "np.@(x, where=m)", "np.@(x, axis=0, out=v); v", "np.@(x[:0], axis=0)", "np.@(s)",
           "np.@(x, axis=1, where=m, initial=3)", "np.@(x, axis=())", tolerance="sums"),
    *each("sum prod", "x.@()", "x.@(axis=1)", "x.@(0, np.float64)", "x.@(keepdims=True)",
           "x.@(axis=-1, initial=2)", "x.@(where=m)", "x.@(dtype=np.float32)", tolerance="sums"),
    *each(_ENDS, "np.@(x)", "np.@(x, axis=1)", "np.@(x, axis=0, keepdims=True)", "np.@(v)",
           "np.@(z, axis=(0, 1))", "np.@(x, axis=0, out=v); v", "np.@(s)", "np.@(x[:0], axis=1)",
           "np.@(x, axis=())", "np.@(x[:0])"),
    *each("max min amax amin nanmax nanmin", "np.@(x, initial=2)", "np.@(x, axis=1, initial=k)",
           "np.@(x, where=m, initial=1)", "np.@(x, axis=0, initial=s)", "np.@(x, initial=1.5)"),
    *each("max min ptp", "x.@()", "x.@(axis=0)", "x.@(axis=1, keepdims=True)"),
    *each("max min", "x.@(initial=2)"),
    *each("any all", "np.@(x)", "np.@(x, axis=1)", "np.@(x, axis=0, keepdims=True)", "x.@()",
           "x.@(axis=0)", "np.@(x, where=m)", "np.@(x, axis=(0, 1))", "np.@(x > 1)", "np.@(s)",
           "np.@(x[:0], axis=0)", "x.@(1, keepdims=True)", "np.@(x, axis=0, out=m[0]); m"),
    *each("argmax argmin", "np.@(x)", "np.@(x, axis=1)", "np.@(x, axis=0, keepdims=True)", "x.@()",
           "x.@(axis=0)", "np.@(v)", "x.@(1, keepdims=True)", "np.@(x, keepdims=True)",
           "np.@(x, axis=0, out=n); n", "np.@(s)"),
    *each(_MEANS, "np.@(x)", "np.@(x, axis=0)", "np.@(x, axis=1, keepdims=True)", "np.@(v)",
           "np.@(x, dtype=np.float64)", "np.@(x, dtype=np.float32)", "np.@(z, axis=(0, 2))",
           "np.@(x, axis=0, out=v); v", "np.@(s)", "np.@(x, where=m)", tolerance="loose"),
    *each("var std nanvar nanstd", "np.@(x, ddof=1)", "np.@(x, axis=0, correction=1)",
           "np.@(x, axis=1, ddof=2)", "np.@(x, mean=np.mean(x))", tolerance="loose"),
    *each("mean var std", "x.@()", "x.@(axis=1)", "x.@(axis=0, keepdims=True)", tolerance="loose"),
    *each("var std", "x.@(ddof=1)", "x.@(axis=0, correction=1)", tolerance="loose"),
    *rows("loose", """
        np.mean(x, None, np.float32)
        x.mean(dtype=np.complex128)
        x.var(dtype=np.float64)
        x.std(dtype=np.float64)
        np.average(x)
        np.average(x, axis=0)
        np.average(x, weights=y)
        np.average(x, axis=1, weights=v)
        np.average(v, weights=n)
        np.average(v, weights=h)
        np.average(x, axis=0, keepdims=True)
        np.average(x, axis=1, weights=v, keepdims=True)
        np.average(x, returned=True)
        np.average(x, axis=1, weights=v, returned=True)
        np.average(x, axis=0, returned=True)
        np.cov(x[:4])
        np.cov(v, u)
        np.cov(x[:3], rowvar=False)
        np.cov(x[:3], bias=True)
        np.cov(x[:3], ddof=0)
        np.cov(x[:3], y[:3])
        np.cov(v, bias=True)
        np.cov(x[:3], aweights=n)
        np.cov(x[:3], dtype=np.float32)
        np.corrcoef(x[:4])
        np.corrcoef(v, u)
        np.corrcoef(x[:3], rowvar=False)
        np.gradient(v)
        np.gradient(x)
        np.gradient(x, axis=0)
        np.gradient(v, 2.0)
        np.gradient(v, k)
        np.gradient(x, 2.0, 0.5)
        np.gradient(v, np.arange(len(v)) * 1.5)
        np.gradient(v, edge_order=2)
        np.gradient(x, axis=(0, 1))
        np.convolve(v, u[:3])
        np.convolve(v, u[:3], 'same')
        np.convolve(v, u[:4], mode='valid')
        np.convolve(v, u)
        np.correlate(v, u[:3])
        np.correlate(v, u[:3], 'full')
        np.correlate(v, u[:4], mode='same')
        np.polyval(v[:3], u)
        np.polyval([2, k, 1], v)
        np.polyval(v[:3], t)
        np.trapezoid(v)
        np.trapezoid(x, dx=2.0)
        np.trapezoid(x, axis=0)
        np.trapezoid(v, u)
        np.trapezoid(x, x=v)
        np.trapezoid(x, dx=k, axis=-1)
        np.allclose(x, y)
        np.allclose(x, x, equal_nan=True)
        np.allclose(x, y, rtol=1.0)
        np.allclose(x, y, 0, 1000)
        np.allclose(x, y, atol=t)
    """),
    *each("cumsum cumprod", "np.@(x)", "np.@(x, axis=0)", "np.@(x, 1)", "np.@(s)",
           "np.@(v, dtype=np.float64)", "np.@(x, axis=1, dtype=np.int32)", "x.@()", "x.@(axis=1)",
           "np.@(x, axis=0, out=o); o", "x.@(0, np.float32)", "np.nan@(x)", "np.nan@(x, axis=0)",
           "np.nan@(x, dtype=np.float64)", tolerance="sums"),
    *rows("sums", """
        np.cumulative_sum(v)
        np.cumulative_sum(x, axis=1)
        np.cumulative_sum(v, include_initial=True)
        np.cumulative_sum(x, axis=0, dtype=np.float64)
        np.cumulative_sum(x)
        np.ediff1d(v)
        np.ediff1d(x, to_end=v[0], to_begin=v[:2])
        np.ediff1d(v, k)
        np.ediff1d(v, to_begin=t)
        np.unwrap(v)
        np.unwrap(x, axis=0)
        np.unwrap(v, discont=4)
        np.unwrap(v, period=3)
        np.unwrap(x, 2.5, 1, period=4)
        sum(v)
        max(n)
        min(n)
    """),
    *rows("exact", """
        np.count_nonzero(x)
        np.count_nonzero(x, axis=1)
        np.count_nonzero(x, axis=0, keepdims=True)
        np.count_nonzero(x == k)
        np.count_nonzero(s)
        np.array_equal(x, y)
        np.array_equal(x, x)
        np.array_equal(x, v)
        np.array_equal(x, x, equal_nan=True)
        np.diff(x)
        np.diff(x, 2)
        np.diff(x, axis=0)
        np.diff(v, n=1, axis=-1)
        np.diff(v, n=0)
        np.diff(v, prepend=0)
        np.diff(x, append=x[:, :1])
    """),
)  # fmt: skip
"""Reductions, means, running sums."""
