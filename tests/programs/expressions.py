"""Expressions of NumPy as data: every function of the table of the language, every parameter.

A row is a text, or several separated by `;` of which the last is the result. The names in it:

x, y    two arrays of one shape and element type; z has three axes, and 0 to 3 as its last extent
v, u    lines as long as the last axis of `x`; e is a line in rising order, d one in falling order
q, p    a square matrix with an inverse, and a positive definite one
m       bools of the shape of `x`
i, j    positions: a line of rows of `x`, an array of the shape of `x` of places in its last axis
n, h    whole numbers that are not negative, and float16, both as long as `v`
s, o    numbers of NumPy: one of the element type, and an array to be written of the type of `x`
k, t    an integer and a float of Python
"""

from __future__ import annotations

Row = tuple[str, str]
"""The tolerance (see `TOLERANCES`) and the text."""

TOLERANCES = {
    "exact": 0.0,
    "zeros": 0.0,
    "ulps": 8.0,
    "sums": 512.0,
    "loose": 65536.0,
}
"""How far a float may be from NumPy's, in units of the precision of its type: relative to the
number itself for `ulps`, to the largest of the result for the others. Of `zeros` the sign does not
count: where equal numbers are sorted, the language says which comes first, and NumPy does not."""

_UNARY = "negative absolute fabs sign floor ceil trunc rint invert conjugate isnan isinf isfinite signbit logical_not square reciprocal positive sqrt"  # noqa: E501
_FUNCTIONS = "cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees rad2deg radians deg2rad"  # noqa: E501
_BINARY = "add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin copysign heaviside equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift"  # noqa: E501
_ROUNDED = "power float_power arctan2 hypot logaddexp"
_REDUCERS = "add multiply maximum minimum logical_and logical_or bitwise_and bitwise_or bitwise_xor"
_AT = "add subtract multiply divide floor_divide remainder power maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor left_shift right_shift"  # noqa: E501
_TYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"  # noqa: E501
_WIDE = "i8 u8 f8 c16 i1 u1 f2 f4 c8"


def _each(words: str, *templates: str, tolerance: str = "exact") -> tuple[Row, ...]:
    """Return each template with each word in the place of `@`."""
    return tuple((tolerance, t.replace("@", word)) for word in words.split() for t in templates)


def _rows(tolerance: str, text: str) -> tuple[Row, ...]:
    """Return the lines of a text as rows."""
    lines = (line.strip() for line in text.strip().splitlines())
    return tuple((tolerance, line) for line in lines if line)


UFUNCS = (
    *_each(_UNARY, "np.@(x)", "np.@(x, dtype=np.float32)", "np.@(x, out=o); o", "np.@(s)"),
    *_each(_FUNCTIONS, "np.@(x)", "np.@(s)", tolerance="ulps"),
    *_each("exp sin", "np.@(x, dtype=np.float64)", "np.@(x, out=o); o", tolerance="ulps"),
    *_each(_BINARY, "np.@(x, y)", "np.@(x, k)", "np.@(x, v)", "np.@.outer(v, u)"),
    *_each("add multiply less maximum", "np.@(x, y, dtype=np.float64)", "np.@(x, y, out=o); o",
           "np.@(x, y, o); o", "np.@(x, t)", "np.@(s, x)", "np.@(s, k)"),
    *_each(_ROUNDED, "np.@(x, y)", "np.@(x, t)", "np.@.outer(v, u)", tolerance="ulps"),
    *_each(_REDUCERS, "np.@.reduce(x)", "np.@.reduce(x, axis=1)", "np.@.accumulate(x)",
           "np.@.reduce(x, axis=1, keepdims=True)", "np.@.accumulate(x, axis=1)",
           tolerance="sums"),
    *_each("add multiply", "np.@.reduce(x, dtype=np.float64)", "np.@.accumulate(v, dtype=np.int64)",
           "np.@.reduce(x, None)", "np.@.accumulate(x, 0, None, o); o", "np.@.reduce(x, out=v); v",
           tolerance="sums"),
    *_each(_AT, "np.@.at(x, i, y[0]); x", "np.@.at(v, 2, s); v", tolerance="ulps"),
    *_rows("exact", """
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
    *_each("+ - * / // % & | ^ << >> == != < <= > >=", "x @ y", "x @ k", "k @ x", "x @ t", "x @ s",
           "s @ t", "x @ i[0]", "x @ 3", "x @ v[:1]", "x[0] @ n"),
    *_each(_WIDE, "x + y.astype('@')", "x < y.astype('@')", "x == y.astype('@')",
           "np.maximum(x, y.astype('@'))", "x // y.astype('@')", "x.astype('@')",
           "x.astype('@').astype(x.dtype)", "np.where(m, x, y.astype('@'))"),
    *_each("2 3 0 1 0.5 1.5 -1 2.0 -0.5 -1.0", "x ** @", "s ** @", tolerance="ulps"),
    *_rows("ulps", "x ** y\nx ** k\nx ** t\nk ** x\nt ** x\n2 ** x\nx ** s\nx ** np.float16(0.5)"),
    *_rows("exact", """
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
        x **= y; x
        x **= k; x
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
    *_each(_TYPES, "np.@(x)", "np.@(s)", "np.@(k)"),
    *_rows("exact", """
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
    *_rows("ulps", "np.angle(x)\nnp.angle(x, deg=True)\nnp.angle(s)\nnp.sinc(x)\nnp.sinc(s)"),
)  # fmt: skip
"""Functions of elements that are no ufuncs."""

_SUMS = "sum prod nansum nanprod"
_ENDS = "max min amax amin nanmax nanmin ptp"
_MEANS = "mean var std nanmean nanvar nanstd"

REDUCTIONS = (
    *_each(_SUMS, "np.@(x)", "np.@(x, axis=0)", "np.@(x, 1, keepdims=True)", "np.@(v)",
           "np.@(x, axis=(0, 1))", "np.@(x, dtype=np.float64)", "np.@(z, axis=(0, 2))",
           "np.@(x, axis=0, dtype=np.int32)", "np.@(x, initial=2)", "np.@(x, axis=1, initial=k)",
           "np.@(x, where=m)", "np.@(x, axis=0, out=v); v", "np.@(x[:0], axis=0)", "np.@(s)",
           "np.@(x, axis=1, where=m, initial=3)", "np.@(x, axis=())", tolerance="sums"),
    *_each("sum prod", "x.@()", "x.@(axis=1)", "x.@(0, np.float64)", "x.@(keepdims=True)",
           "x.@(axis=-1, initial=2)", "x.@(where=m)", "x.@(dtype=np.float32)", tolerance="sums"),
    *_each(_ENDS, "np.@(x)", "np.@(x, axis=1)", "np.@(x, axis=0, keepdims=True)", "np.@(v)",
           "np.@(z, axis=(0, 1))", "np.@(x, axis=0, out=v); v", "np.@(s)", "np.@(x[:0], axis=1)",
           "np.@(x, axis=())", "np.@(x[:0])"),
    *_each("max min amax amin nanmax nanmin", "np.@(x, initial=2)", "np.@(x, axis=1, initial=k)",
           "np.@(x, where=m, initial=1)", "np.@(x, axis=0, initial=s)", "np.@(x, initial=1.5)"),
    *_each("max min ptp", "x.@()", "x.@(axis=0)", "x.@(axis=1, keepdims=True)"),
    *_each("max min", "x.@(initial=2)"),
    *_each("any all", "np.@(x)", "np.@(x, axis=1)", "np.@(x, axis=0, keepdims=True)", "x.@()",
           "x.@(axis=0)", "np.@(x, where=m)", "np.@(x, axis=(0, 1))", "np.@(x > 1)", "np.@(s)",
           "np.@(x[:0], axis=0)", "x.@(1, keepdims=True)", "np.@(x, axis=0, out=m[0]); m"),
    *_each("argmax argmin", "np.@(x)", "np.@(x, axis=1)", "np.@(x, axis=0, keepdims=True)", "x.@()",
           "x.@(axis=0)", "np.@(v)", "x.@(1, keepdims=True)", "np.@(x, keepdims=True)",
           "np.@(x, axis=0, out=n); n", "np.@(s)"),
    *_each(_MEANS, "np.@(x)", "np.@(x, axis=0)", "np.@(x, axis=1, keepdims=True)", "np.@(v)",
           "np.@(x, dtype=np.float64)", "np.@(x, dtype=np.float32)", "np.@(z, axis=(0, 2))",
           "np.@(x, axis=0, out=v); v", "np.@(s)", "np.@(x, where=m)", tolerance="loose"),
    *_each("var std nanvar nanstd", "np.@(x, ddof=1)", "np.@(x, axis=0, correction=1)",
           "np.@(x, axis=1, ddof=2)", "np.@(x, mean=np.mean(x))", tolerance="loose"),
    *_each("mean var std", "x.@()", "x.@(axis=1)", "x.@(axis=0, keepdims=True)", tolerance="loose"),
    *_each("var std", "x.@(ddof=1)", "x.@(axis=0, correction=1)", tolerance="loose"),
    *_rows("loose", """
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
    *_each("cumsum cumprod", "np.@(x)", "np.@(x, axis=0)", "np.@(x, 1)", "np.@(s)",
           "np.@(v, dtype=np.float64)", "np.@(x, axis=1, dtype=np.int32)", "x.@()", "x.@(axis=1)",
           "np.@(x, axis=0, out=o); o", "x.@(0, np.float32)", "np.nan@(x)", "np.nan@(x, axis=0)",
           "np.nan@(x, dtype=np.float64)", tolerance="sums"),
    *_rows("sums", """
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
        max(v)
        min(v)
    """),
    *_rows("exact", """
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

SHAPES = _rows(
    "exact",
    """
    np.transpose(x)
    np.transpose(z, (2, 0, 1))
    np.transpose(z, axes=(-1, 0, 1))
    np.transpose(v)
    x.transpose()
    z.transpose(1, 0, 2)
    z.transpose((2, 1, 0))
    x.T
    z.mT
    np.matrix_transpose(z)
    np.swapaxes(z, 0, 2)
    np.swapaxes(x, axis1=0, axis2=-1)
    z.swapaxes(1, 2)
    np.moveaxis(z, 0, -1)
    np.moveaxis(z, (0, 1), (1, 2))
    np.moveaxis(z, source=2, destination=0)
    np.reshape(x, (-1,))
    np.reshape(x, (x.shape[1], -1))
    np.reshape(x, -1, order='F')
    np.reshape(x, (x.shape[1], x.shape[0]), order='F')
    np.reshape(x, (-1, 1), copy=True)
    np.reshape(x, (-1,), order='A')
    x.reshape(-1)
    x.reshape(x.size, 1)
    x.reshape((1, -1), order='F')
    x.reshape(-1, order='C')
    x.reshape(x.shape)[0]
    np.ravel(x)
    np.ravel(x, order='F')
    np.ravel(x, 'K')
    x.ravel()
    x.ravel('F')
    x.flatten()
    x.flatten('F')
    v.flatten()
    v.ravel()
    v.reshape(-1)
    x.T.ravel()
    x.T.reshape(-1)
    x.T.flatten('K')
    np.ravel(x.T, 'A')
    np.expand_dims(x, 0)
    np.expand_dims(x, axis=(0, 2))
    np.squeeze(x[:1])
    np.squeeze(x[:1], axis=0)
    np.squeeze(x[:, :1], 1)
    x[:1].squeeze()
    x[:1].squeeze(axis=0)
    np.atleast_1d(x)
    np.atleast_1d(s)
    np.atleast_1d(k)
    np.atleast_2d(v)
    np.atleast_2d(x, v)
    np.atleast_3d(x)
    np.atleast_3d(v)
    np.atleast_3d(z)
    np.broadcast_to(v, x.shape)
    np.broadcast_to(s, (2, 3))
    np.broadcast_to(x, shape=(2, *x.shape))
    np.broadcast_to(v, x.shape)[0] = 1; v
    np.lib.stride_tricks.sliding_window_view(v, 3)
    np.lib.stride_tricks.sliding_window_view(x, (2, 2))
    np.lib.stride_tricks.sliding_window_view(x, 2, axis=0)
    np.lib.stride_tricks.sliding_window_view(v, window_shape=3)[0] = 1; v
    np.lib.stride_tricks.sliding_window_view(x, 2, axis=1).sum(axis=-1)
    np.flip(x)
    np.flip(x, 0)
    np.flip(x, axis=(0, 1))
    np.fliplr(x)
    np.flipud(x)
    np.flip(v)[0] = 1; v
    np.rot90(x)
    np.rot90(x, 2)
    np.rot90(x, k=-1)
    np.rot90(z, 1, axes=(1, 2))
    np.rot90(x, 0)
    np.diagonal(x)
    np.diagonal(x, 1)
    np.diagonal(x, offset=-1)
    np.diagonal(z, 0, 1, 2)
    np.diagonal(z, axis1=0, axis2=2)
    np.diagonal(x)[0] = 1; x
    np.linalg.diagonal(x)
    np.linalg.diagonal(z, offset=1)
    x.diagonal()
    x.diagonal(1)
    x.diagonal(offset=0, axis1=1, axis2=0)
    np.split(v, [2, 4])
    np.split(x, x.shape[0])
    np.split(x, [1], axis=1)
    np.split(x, [1, 3], 1)[1]
    np.array_split(v, 3)
    np.array_split(x, 2, axis=1)
    np.array_split(x, [1, 2])[1]
    np.hsplit(x, [2])
    np.vsplit(x, [1])
    np.split(v, [2])[0][0] = 1; v
    np.roll(v, 2)
    np.roll(x, 1)
    np.roll(x, 1, axis=0)
    np.roll(x, (1, -1), (0, 1))
    np.roll(v, -k)
    np.roll(x, shift=k, axis=1)
    np.roll(v, 0)
    np.repeat(v, 2)
    np.repeat(x, 2, axis=0)
    np.repeat(x, repeats=3)
    np.repeat(v, k)
    np.repeat(v, 1)
    np.repeat(s, 3)
    v.repeat(2)
    x.repeat(2, axis=1)
    np.repeat(v[:3], [1, 0, 2])
    np.tile(v, 2)
    np.tile(x, (2, 1))
    np.tile(v, reps=(2, 2))
    np.tile(v, 1)
    np.tile(x, 1)
    np.tile(s, 3)
    np.stack((x, y))
    np.stack([x, y], axis=1)
    np.stack((v, u), -1)
    np.stack((x, y), dtype=np.float64)
    np.stack((x, y), out=np.zeros((2, *x.shape), x.dtype))
    np.concatenate((x, y))
    np.concatenate([x, y], axis=1)
    np.concatenate((x, y), axis=None)
    np.concatenate((v, n))
    np.concatenate((v, u), dtype=np.float64)
    np.concatenate((v, u), dtype=np.int32, casting='unsafe')
    np.concatenate((v,))
    np.concatenate((v, h))
    np.hstack((v, u))
    np.hstack([x, y])
    np.hstack((v, k))
    np.vstack((v, u))
    np.vstack((x, v))
    np.vstack([x])
    np.dstack((x, y))
    np.dstack((v, u))
    np.column_stack((v, u))
    np.column_stack((x, x[:, 0]))
    np.hstack((x, y), dtype=np.complex128)
    np.append(v, u)
    np.append(x, y, axis=0)
    np.append(v, k)
    np.append(v, t)
    np.append(x, values=3)
    np.triu(x)
    np.triu(x, 1)
    np.tril(x, k=-1)
    np.tril(x)
    np.triu(x, -k)
    np.triu(v)
    np.diag(v)
    np.diag(x)
    np.diag(x, 1)
    np.diag(v, k=-1)
    np.diag(x, k)
    np.diag(v)[0] = 1; v
    np.diag(x)[0] = 1; x
    np.diag(x, 1)[0] = 1; x
    np.fill_diagonal(x, 3); x
    np.fill_diagonal(x, s); x
    np.fill_diagonal(x, t); x
    np.fill_diagonal(q, v[:2]); q
    np.fill_diagonal(x, 3, wrap=True); x
    np.pad(v, 2)
    np.pad(x, 1)
    np.pad(v, (1, 2), constant_values=(4, 6))
    np.pad(x, ((1, 0), (0, 2)), constant_values=k)
    np.pad(v, (1, 2), mode='edge')
    np.pad(x, 1, 'wrap')
    np.pad(x, ((1, 2), (0, 1)), mode='reflect')
    np.pad(x, 1, constant_values=((1, 2), (3, 4)))
    np.pad(v, 2, constant_values=t)
    np.pad(v, (1, 1), mode='constant', constant_values=(s, s))
    np.pad(v, 0)
    np.pad(v, 2, mode='symmetric')
    np.pad(v, 2, mode='linear_ramp', end_values=3)
    np.pad(v, (2, 1), mode='maximum')
    np.pad(v, 2, mode='mean')
    np.pad(v, 2, mode='reflect', reflect_type='odd')
    np.take(v, i)
    np.take(x, i, axis=0)
    np.take(x, -1)
    np.take(x, 1, axis=1)
    np.take(x[0], 0, axis=0)
    np.take(x, [0, 1], axis=1)
    np.take(v, k)
    np.take(x, j)
    np.take(v, indices=i[0])
    np.take(v, 1, mode='wrap')
    np.take(v, 100)
    np.take(v, 100, mode='clip')
    v.take(i)
    x.take(1)
    x.take([0, 1], axis=0)
    np.take(v, [[0, 1], [2, 3]])
    np.take(v, [])
    np.take_along_axis(x, j, axis=1)
    np.take_along_axis(x, j, 1)
    np.take_along_axis(x, np.argsort(x, axis=0), 0)
    np.take_along_axis(v, i, axis=0)
    np.take_along_axis(x, j, axis=-1)
    np.copyto(x, y); x
    np.copyto(x, v); x
    np.copyto(x, k); x
    np.copyto(x, t); x
    np.copyto(x, h); x
    np.copyto(x, y, where=m); x
    np.copyto(x, h, casting='unsafe'); x
    np.copyto(x, y, casting='no'); x
    np.copyto(dst=x, src=0); x
    np.block([[x, y], [y, x]])
    np.block([v, u])
    np.block([[q, q], [q, q]])
    np.r_[v, u]
    np.r_[v, 1]
    np.r_[v, 1.5]
    np.r_[v, k]
    np.r_[v, t]
    np.r_[v, True]
    np.r_[1, v, 2.5, u]
    np.r_[0:4, v]
    np.r_[0:1:3j, v]
    np.c_[v, u]
    np.c_[x, x[:, 0]]
    x[None]
    x[..., 0]
    x[::-1]
    x[:, ::2]
    x[1:-1, 1]
    x[i]
    x[:, i[:2]]
    x[k]
    x[-1, -1]
    x[i, 0]
    x[m].sum()
    x[i][0]
    v[:k]
    v[-k:]
""",
)
"""What moves elements: views, joined arrays, pads, gathers."""

NEW = _rows("exact", """
    np.zeros(x.shape, x.dtype)
    np.zeros(k)
    np.zeros((2, 3), dtype=np.int16)
    np.zeros((2, 3), order='F')
    np.ones(3, x.dtype)
    np.ones(shape=(2, k), dtype=float, order='C')
    np.empty((0, 3), x.dtype)
    np.empty(0, dtype=x.dtype, order='F')
    np.zeros_like(x)
    np.zeros_like(x, dtype=np.float32)
    np.zeros_like(x, shape=(2, 2))
    np.zeros_like(x, order='F', subok=False)
    np.zeros_like(s)
    np.zeros_like(k)
    np.ones_like(x)
    np.ones_like(x, dtype=bool, shape=3)
    np.ones_like(x, order='C', subok=False)
    np.empty_like(x[:0])
    np.empty_like(x[:0], dtype=int, order='K', subok=True, shape=(0, 2))
    np.full((2, 3), s)
    np.full(3, k)
    np.full((2, 2), t, dtype=np.float32)
    np.full(3, 1.5, x.dtype)
    np.full(v.shape, fill_value=v)
    np.full((2, 2), 1, order='F')
    np.full_like(x, 2)
    np.full_like(x, t)
    np.full_like(x, s, dtype=np.float64)
    np.full_like(x, fill_value=1, shape=(2,))
    np.full_like(x, v)
    np.full_like(x, 300)
    np.array(x)
    np.array(x, dtype=np.float64)
    np.array(x, copy=False)
    np.array(x, copy=True)
    np.array(x, copy=None)
    np.array(x, ndmin=3)
    np.array(v, ndmin=2, copy=False)
    np.array([k, t])
    np.array([v, u])
    np.array([s, s])
    np.array([s, k])
    np.array([s, t])
    np.array([v[0], 1, 2.5])
    np.array([1, 2, 3], x.dtype)
    np.array([1, 300], x.dtype)
    np.array([1, -1], x.dtype)
    np.full(3, 300, x.dtype)
    np.full_like(x, -1)
    np.ones_like(x) * 300
    np.array([[k, 1], [2, 3]], dtype='f4')
    np.array(s)
    np.array(k)
    np.array(object=t)
    np.array(x, order='F')
    np.array(x, subok=True)
    np.asarray(x)
    np.asarray(x, dtype=np.float64)
    np.asarray(x, x.dtype)
    np.asarray(k)
    np.asarray(s)
    np.asarray([k, t])
    np.asarray(x, order='C')
    np.asarray(x, order='F')
    np.asarray(x, copy=True)
    np.ascontiguousarray(x)
    np.ascontiguousarray(x.T)
    np.ascontiguousarray(x, dtype=np.float64)
    np.ascontiguousarray(s)
    np.copy(x)
    np.copy(x, order='F')
    np.copy(v, 'K')
    x.copy()
    x.copy('F')
    x.copy(order='C')
    np.copy(s)
    np.ndarray((0, 2), x.dtype)
    np.ndarray(shape=0, dtype=float, order='C')
    np.ndarray(0, float, None)
    np.arange(5)
    np.arange(k)
    np.arange(1, k)
    np.arange(1, 10, 3)
    np.arange(10, 1, -2)
    np.arange(0.5, 3.1, 0.3)
    np.arange(t)
    np.arange(t, 3.1)
    np.arange(t, 5.0, 0.3)
    np.arange(0.0, 7.0, t)
    np.arange(t, 20, k)
    np.arange(k, dtype=x.dtype)
    np.arange(3, dtype=np.float32)
    np.arange(0, 1, 0.25, np.float32)
    np.arange(start=t, stop=4.5, step=0.7, dtype=np.float64)
    np.arange(s)
    np.arange(5, k)
    np.arange(4.0, t, -0.3)
    np.arange(t, 2 * t, t / 7)
    np.arange(2**40, 2**40 + 3)
    np.linspace(0, 1, 5)
    np.linspace(t, 4.0)
    np.linspace(1, k, 7, endpoint=False)
    np.linspace(0, t, num=k)
    np.linspace(0, 1, 5, retstep=True)
    np.linspace(0, 10, 5, dtype=np.int32)
    np.linspace(0, 10, 5, dtype=x.dtype)
    np.linspace(s, s, 3)
    np.linspace(0, 1, 1)
    np.linspace(0, 1, 0)
    np.linspace(t, 7.7, 11, endpoint=True, retstep=False)
    np.linspace(-t, t, 4, axis=0)
    np.linspace(v, u, 3)
    np.linspace(0, 9, 7, dtype=int)
    np.linspace(0, -9.5, 7, dtype=int)
    np.eye(3)
    np.eye(3, 4, 1)
    np.eye(k, dtype=x.dtype)
    np.eye(3, k=-1)
    np.eye(N=3, M=5, dtype=int)
    np.eye(2, order='F')
    np.identity(3)
    np.identity(k, dtype=np.float32)
    np.tri(3)
    np.tri(3, 4, 1)
    np.tri(3, k=-1, dtype=x.dtype)
    np.tri(N=k, M=3)
    np.indices((2, 3))
    np.indices((2, k), dtype=np.float64)
    np.indices(dimensions=(2, 3), sparse=True)
    np.indices(x.shape)
    np.meshgrid(v, u)
    np.meshgrid(v, u, indexing='ij')
    np.meshgrid(v, u, sparse=True)
    np.meshgrid(v, u[:3], copy=False)
    np.meshgrid(v)
    np.mgrid[0:3, 0:4]
    np.mgrid[0:1:5j]
    np.mgrid[0:k]
    np.mgrid[0:2.0:0.5, 0:2]
    np.ogrid[0:3, 0:4]
    np.ogrid[0:1:3j, 0:2]
    np.shape(x)
    np.shape(k)
    np.ndim(x)
    np.ndim(s)
    np.size(x)
    np.size(x, 0)
    np.size(t)
    np.iscomplexobj(x)
    np.isrealobj(x)
    np.isscalar(s)
    np.isscalar(k)
    np.isscalar(x)
    np.zeros(2, np.result_type(x, np.int8))
    np.zeros(2, np.result_type(x, 1.5))
    np.zeros(2, np.result_type(x, y, np.float32))
    np.zeros(2, np.dtype('f4'))
    np.zeros(2, x.dtype)
    np.finfo(np.float32).max
    np.iinfo(np.int16).min
    x.astype(np.float64)
    x.astype(np.float32, copy=False)
    x.astype(x.dtype)
    x.astype(x.dtype, copy=False)
    x.astype(np.int32, casting='safe')
    x.astype(np.float64, casting='safe')
    x.astype(np.float64, casting='same_kind')
    x.astype(np.int16, casting='same_kind')
    x.astype(np.uint8, casting='equiv')
    x.astype(np.float32, casting='no')
    x.astype(np.float16, 'K', 'unsafe')
    x.astype(np.float64, order='F')
    x.astype(bool)
    x.astype(dtype=complex)
    x.astype(np.float64, subok=False)
    x.fill(3); x
    x.fill(s); x
    x.fill(t); x
    x.fill(300); x
    x.item(0)
    x.item(1, 2)
    v[:1].item()
    x.item((0, 1))
    s.item()
    x.shape
    x.ndim
    x.size
    len(x)
    x.itemsize
    x.nbytes
    x.tolist()
    np.hanning(5)
    np.hanning(k)
    np.hamming(M=5)
    np.blackman(6)
    np.bartlett(k)
    np.hamming(1)
""") + _rows("ulps", """
    np.logspace(0, 2, 5)
    np.logspace(0, t, num=4, endpoint=False)
    np.logspace(0, 3, 4, base=2.0)
    np.logspace(0, 3, k, base=t)
    np.logspace(0, 3, 4, dtype=np.int64)
""")  # fmt: skip
"""Arrays out of nothing, casts and copies."""

LINEAR = _rows(
    "loose",
    """
    x @ y.T
    v @ u
    x @ v
    u @ x.T
    z @ z.swapaxes(1, 2)
    q @ q @ q
    np.matmul(x, v)
    np.matmul(q, q, out=np.zeros(q.shape, q.dtype))
    np.matmul(q, q, dtype=np.float64)
    np.linalg.matmul(x, v)
    np.dot(x, v)
    np.dot(v, u)
    np.dot(x, y.T)
    np.dot(x, k)
    np.dot(s, v)
    np.dot(z, v[:z.shape[2]])
    x.dot(v)
    v.dot(u)
    np.dot(q, q, np.zeros(q.shape, q.dtype))
    np.inner(v, u)
    np.inner(x, y)
    np.inner(x, v)
    np.inner(v, k)
    np.outer(v, u)
    np.outer(x, v)
    np.outer(v, k)
    np.outer(v[:3], u[:3], np.zeros((3, 3), v.dtype))
    np.linalg.outer(v, u)
    np.vdot(v, u)
    np.vdot(x, y)
    np.vdot(s, s)
    np.vecdot(v, u)
    np.vecdot(x, y)
    np.vecdot(x, v)
    np.vecdot(x, y, dtype=np.float64)
    np.vecdot(x, y, axis=0)
    np.linalg.vecdot(x, y)
    np.tensordot(x, y, 2)
    np.tensordot(x, y, axes=([1], [1]))
    np.tensordot(v, u, 1)
    np.tensordot(z, z, axes=((0, 1), (0, 1)))
    np.tensordot(v, u, 0)
    np.linalg.tensordot(x, y, axes=2)
    np.einsum('ij,kj->ik', x, y)
    np.einsum('ij->ji', x)
    np.einsum('ii', q)
    np.einsum('ii->i', q)
    np.einsum('ij,j', x, v)
    np.einsum('ij,ij->', x, y)
    np.einsum('...j,j->...', z, v[:z.shape[2]])
    np.einsum('ij->j', x)
    np.einsum('i,j', v, u, optimize=True)
    np.einsum('ij,jk,kl->il', q, q, q, optimize='greedy')
    np.einsum('ij->', x)
    np.einsum('ij,j->i', x, v, dtype=np.float64)
    np.einsum('i,j->ij', v, u, out=np.zeros((len(v), len(u)), v.dtype))
    np.kron(v, u)
    np.kron(x[:2, :2], y[:2, :3])
    np.kron(x[:2, :2], v)
    np.kron(v, k)
    np.trace(x)
    np.trace(x, 1)
    np.trace(z, offset=0, axis1=1, axis2=2)
    np.trace(x, dtype=np.float64)
    np.trace(z, 0, 0, 1)
    x.trace()
    x.trace(offset=1)
    x.trace(0, 0, 1, np.int64)
    np.linalg.trace(x)
    np.linalg.trace(z, offset=1, dtype=np.float64)
    np.linalg.trace(z)
    np.cross(v[:3], u[:3])
    np.cross(x[:, :3], y[:, :3])
    np.cross(x[:, :3], v[:3])
    np.linalg.cross(v[:3], u[:3])
    np.cross(x[:3].T, y[:3].T, axis=-1)
    np.cross(x[:3], y[:3], axis=0)
    np.linalg.matrix_power(q, 3)
    np.linalg.matrix_power(q, 1)
    np.linalg.matrix_power(q, 0)
    np.linalg.matrix_power(q, n=2)
    np.linalg.matrix_power(q, -1)
    np.linalg.multi_dot([q, q, q])
    np.linalg.multi_dot((q, q))
    np.linalg.multi_dot([v, x.T])
    np.linalg.norm(v)
    np.linalg.norm(x)
    np.linalg.norm(x, axis=0)
    np.linalg.norm(x, 1)
    np.linalg.norm(x, np.inf)
    np.linalg.norm(v, 3)
    np.linalg.norm(v, 0)
    np.linalg.norm(v, -np.inf)
    np.linalg.norm(x, axis=1, keepdims=True)
    np.linalg.norm(x, 'fro')
    np.linalg.norm(x, ord=1, axis=1)
    np.linalg.norm(x, -1, keepdims=True)
    np.linalg.norm(x, 'nuc')
    np.linalg.norm(v, 0.5)
    np.linalg.norm(v, -1)
    np.linalg.norm(z, axis=(0, 1))
    np.linalg.norm(z)
    np.linalg.norm(z, 1, axis=(0, 2))
    np.linalg.norm(v, 2)
    np.linalg.norm(x, 2)
    np.linalg.vector_norm(x)
    np.linalg.vector_norm(x, axis=1, keepdims=True, ord=3)
    np.linalg.vector_norm(v, ord=1)
    np.linalg.vector_norm(x, keepdims=True)
    np.linalg.matrix_norm(x)
    np.linalg.matrix_norm(x, ord=1)
    np.linalg.matrix_norm(z)
    np.linalg.matrix_norm(x, keepdims=True, ord='fro')
    np.matvec(x, v)
    np.matvec(q, x[:, :q.shape[0]])
    np.linalg.solve(p, p[0])
    np.linalg.solve(p, p)
    np.linalg.inv(p)
    np.linalg.det(p)
    np.linalg.cholesky(p)
    np.linalg.cholesky(p, upper=True)
    np.linalg.slogdet(p)
    np.linalg.solve(a=p, b=p[0])
    np.vander(v[:4])
    np.vander(v[:4], 3)
    np.vander(v[:4], N=3, increasing=True)
""",
)
"""Products with sums, norms, matrices."""

ORDER = (
    *_rows("zeros", """
        np.sort(x)
        np.sort(x, axis=0)
        np.sort(x, axis=None)
        np.sort(v, kind='quicksort')
        np.sort(z, 1)
        x.sort(); x
        x.sort(axis=0); x
        v[::-1].sort(); v
        np.partition(v, 2)[2]
        np.partition(x, 2, axis=0)[2]
        np.partition(x, (1, 3), axis=-1)[:, 1]
        np.partition(v, kth=-1)[-1]
        np.partition(v, 2, kind='introselect')[2]
        np.partition(x, 3, axis=None)[3]
        w = v.copy(); w.partition(2); w[2]
        w = x.copy(); w.partition(1, axis=0); w[1]
        v[np.argpartition(v, 2)[2]]
        np.take_along_axis(x, np.argpartition(x, 2, axis=1), 1)[:, 2]
        v[v.argpartition(2)[2]]
        np.ravel(x)[np.argpartition(x, kth=1, axis=None)[1]]
    """),
    *_rows("exact", """
        np.sort(v, kind='stable')
        np.sort(v, stable=True)
        v.sort(kind='stable'); v
        np.argsort(x, kind='stable')
        np.argsort(x, axis=0, stable=True)
        np.argsort(v, None, 'stable')
        x.argsort(axis=0, kind='stable')
        v.argsort(stable=True)
        np.searchsorted(e, v)
        np.searchsorted(e, v, side='right')
        np.searchsorted(e, x, 'left')
        np.searchsorted(e, s)
        np.searchsorted(e, k)
        np.searchsorted(e, t)
        np.searchsorted(e, n)
        np.searchsorted(e, h)
        np.searchsorted(v, u, sorter=np.argsort(v))
        e.searchsorted(v)
        e.searchsorted(v, 'right')
        np.digitize(v, e)
        np.digitize(x, e, right=True)
        np.digitize(v, d)
        np.digitize(v, d, right=True)
        np.digitize(v, bins=e, right=False)
        np.digitize(s, e)
        np.digitize(t, e)
        np.digitize(k, e)
        np.digitize(v, u)
        np.digitize(n, e)
        np.digitize(h, e)
        np.digitize(v, [1, 2, 3])
        np.digitize(v, [3, 2, 1])
        np.digitize(v, [1.5])
        np.bincount(n)
        np.bincount(n, minlength=10)
        np.bincount(n, v)
        np.bincount(n, weights=h)
        np.bincount(v)
        np.bincount(n, minlength=1)
        np.bincount(n, None, k)
        np.lexsort((v, u))
        np.lexsort((n, v))
        np.lexsort([v])
        np.isin(x, v)
        np.isin(x, v[:3])
        np.isin(x, [1, 2])
        np.isin(x, v, invert=True)
        np.isin(v, u, assume_unique=False)
        np.isin(x, v, kind='sort')
        np.isin(element=x, test_elements=n)
        np.isin(x, 1)
        np.isin(x, h)
        np.isin(x, v, kind='table')
        np.unravel_index(i, (4, 9))
        np.unravel_index(3, x.shape)
        np.unravel_index(indices=k, shape=(3, 4))
        np.unravel_index(i, (4, 9), order='F')
        np.unravel_index(np.argmax(x), x.shape)
        x[np.ix_(i[:2], i[:2])]
        np.ix_([0, 1], [1, 2])
        np.ix_(v > 1)
        np.diag_indices(3)
        np.diag_indices(3, ndim=3)
        np.diag_indices(n=k)
        np.triu_indices(3)
        np.triu_indices(3, 1)
        np.triu_indices(n=3, k=-1, m=4)
        np.tril_indices(3)
        np.tril_indices(3, k=1, m=2)
        np.tril_indices(n=k)
    """),
    *_each("median nanmax", "np.@(x)", tolerance="ulps"),
    *_rows("loose", """
        np.median(v)
        np.median(x, axis=0)
        np.median(x, axis=1, keepdims=True)
        np.median(z, axis=(0, 1))
        np.median(x, overwrite_input=False)
        np.quantile(x, 0.3)
        np.quantile(x, 0.3, axis=0)
        np.quantile(v, [0.25, 0.5])
        np.quantile(x, q=0.5, axis=1, keepdims=True)
        np.quantile(v, t)
        np.quantile(v, 0.3, method='lower')
        np.quantile(v, 1)
        np.quantile(v, 0)
        np.quantile(v, np.float32(0.3))
        np.quantile(v, 0.5, weights=n)
        np.quantile(z, 0.4, axis=(0, 2))
        np.percentile(x, 30)
        np.percentile(x, 30, axis=0)
        np.percentile(v, [25, 50.5])
        np.percentile(v, 30.5)
        np.percentile(v, k)
        np.percentile(x, q=75, axis=1, keepdims=True)
        np.histogram(v)
        np.histogram(v, 5)
        np.histogram(v, e)
        np.histogram(x, bins=4, range=(0, 5))
        np.histogram(v, 5, (0.0, 9.0), True)
        np.histogram(v, e, density=True)
        np.histogram(v, 4, weights=u)
        np.histogram(v, d)
        np.histogram(v, u)
        np.histogram(v, [0, 1, 3])
        np.histogram(v, [3, 1, 0])
        np.histogram(v, 4, weights=n)
        np.histogram(v, 4, weights=h)
        np.histogram(v, 4, range=(2, 1))
        np.histogram(v, 4, range=(1, 1))
        np.histogram(v, k)
        np.histogram(v, 'auto')
        np.histogram(v, 3, range=(0, 4), weights=u, density=True)
        np.interp(v, e, u[:len(e)])
        np.interp(x, e, u[:len(e)])
        np.interp(v, e, u[:len(e)], left=-1)
        np.interp(v, e, u[:len(e)], 0, right=t)
        np.interp(s, e, u[:len(e)])
        np.interp(t, e, u[:len(e)])
        np.interp(k, e, u[:len(e)])
        np.interp(v, np.sort(n), u)
        np.interp(v, e, u[:len(e)], period=5)
        np.interp(h, e, n[:len(e)])
        np.interp(v, e, u[:len(e)] * 1j)
        np.interp(v, e[:1], u[:1])
        np.interp(v, [0, 1, 2], [3, 1, 2])
    """),
)  # fmt: skip
"""Order, counts, quantiles."""

GROUPS: dict[str, tuple[Row, ...]] = {
    "ufuncs": UFUNCS, "operators": OPERATORS, "elements": ELEMENTS, "reductions": REDUCTIONS,
    "shapes": SHAPES, "new": NEW, "linear": LINEAR, "order": ORDER,
}  # fmt: skip
"""All rows by subject."""

BEYOND = {"out", "where", "casting", "subok"}
"""Parameters that every function of a kind takes in one way; some functions stand for all."""
