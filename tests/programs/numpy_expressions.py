"""Expressions of every function of NumPy that the language knows, with each of their parameters.

`a`, `b` have two axes of one shape, `v`, `w` one axis of the length of a row, `q` is square, `t`
has three axes: all of one element type. `k` are positions in a row, `m` is a mask of `a`'s shape,
`d` is of float64, `h` of float16, `l` of int64, `u` of uint64 and `r` of rising float64, each of
`v`'s shape; `i` is a number of Python, `x` one of its floats.
"""

from __future__ import annotations

_UNARY = (
    "abs absolute fabs negative positive sign square sqrt cbrt reciprocal floor ceil trunc "
    "rint fix exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh "
    "tanh arcsinh "
    "arccosh arctanh degrees radians deg2rad rad2deg isfinite isinf isnan signbit logical_not "
    "conj conjugate invert bitwise_not spacing sinc real imag angle nan_to_num iscomplexobj "
    "isrealobj isposinf isneginf ndim size bitwise_count"
)
_BINARY = (
    "add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power "
    "maximum minimum fmax fmin hypot arctan2 copysign nextafter logaddexp logaddexp2 heaviside gcd "
    "lcm equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift"
)
_REDUCED = "sum prod max min any all mean var std ptp argmax argmin cumsum cumprod nansum nanprod"
_SKIPPING = "nanmax nanmin nanmean nanvar nanstd count_nonzero median nanmedian average"

_ELEMENTWISE = (
    *(f"np.{name}(a)" for name in _UNARY.split()),
    *(f"np.{name}(a, b)" for name in _BINARY.split()),
    *(f"a {sign} b" for sign in "+ - * / // % ** & | ^ == != < <= > >=".split()),
    *(f"a {sign} 2" for sign in "+ - * / // % ** << >> & | ^ == < >=".split()),
    *(f"2 {sign} a" for sign in "+ - * / // % ** == < >=".split()),
    *(f"a {sign} 0.5" for sign in "+ - * / // % ** == <".split()),
    *(f"a {sign} x" for sign in "+ * / ** <".split()),
    *(f"a {sign} i" for sign in "+ * // % == <".split()),
    *(f"v {sign} {other}" for sign in "+ * / // % ** == < >".split() for other in "dhlu"),
    "-a", "+a", "~a", "np.where(m, a, b)", "np.where(m, a, 0)", "np.where(a, 1, 2.5)",
    "np.clip(a, 1, 3)", "np.clip(a, None, 2)", "np.clip(a, v, 3)", "np.clip(a, min=1)",
    "a.clip(1, 2)",
    "np.select([a > 1, m], [a, b])", "np.select([a > 1], [a], 7)", "np.divmod(a, b)", "np.modf(a)",
    "np.round(a)", "np.round(a, 1)", "np.around(a, 2)", "a.round()", "a.round(1)",
    "np.isclose(a, b)",
    "np.isclose(a, b, rtol=0.5, atol=0.25, equal_nan=True)", "np.allclose(a, a)",
    "np.nan_to_num(a, nan=1)", "np.nan_to_num(a, copy=False)", "np.nan_to_num(a, copy=True)",
    "np.nan_to_num(a, nan=2, posinf=3, neginf=-3)", "np.angle(a, deg=True)", "a.astype(np.int32)",
    "a.astype(np.float32)", "a.astype(np.uint8)", "a.astype(bool)", "a.astype(np.complex128)",
    "a.astype(np.float16)", "a.astype(np.int32).astype(np.float64)",
    "a.astype(np.float64, copy=False)",
    "a.astype(np.int64, casting='unsafe')", "a.astype(np.float64, casting='safe')",
    "a.astype(np.int8, casting='same_kind')", "a.astype(np.float32, casting='equiv')",
    "np.float32(v[0])", "np.int64(v[0])", "np.add(a, b, dtype=np.float64)",
    "np.negative(a, dtype=np.int64)",
    "np.add.outer(v, w)", "np.multiply.outer(v, k)", "np.add.reduce(a, axis=1)",
    "np.maximum.accumulate(v)",
    "np.add.accumulate(a, axis=0)", "np.multiply.reduce(v)", "np.logical_or.reduce(a, axis=0)",
    "a.real", "a.imag", "a.conj()", "a.T", "a.size", "a.copy()", "abs(a)", "divmod(a, 3)",
    "a.item(0)",
    "np.array_equal(a, b)", "np.array_equal(a, a)", "u >= 2**63", "l == u", "l < u", "u > l",
    "l + u", "u - 1",
    "l // 2", "np.maximum(l, u)", "np.less(u, l)", "u == 2**64 - 1", "np.count_nonzero(l <= u)",
    "1 / a.astype(np.int32)",
    "v[0] + w[0]", "v[0] * 2", "v[1] ** 2", "v[0] == w[0]", "v[0] / 2", "round(x, 1)", "round(x)",
    "int(x)", "abs(x)",
    "np.result_type(a, d)", "np.can_cast(np.int8, np.int16)", "np.power(a, 2)",
    "np.power(a, 0.5)", "np.power(2, a)",
    "np.float_power(a, 2)", "np.square(v)[0]", "np.logical_and(a, b, dtype=bool)",
)  # fmt: skip

_REDUCTIONS = (
    *(f"np.{name}(a)" for name in f"{_REDUCED} {_SKIPPING}".split()),
    *(f"np.{name}(a, axis=0)" for name in f"{_REDUCED} {_SKIPPING}".split()),
    *(f"np.{name}(a, axis=-1)" for name in f"{_REDUCED} {_SKIPPING}".split()),

    *(f"np.{n}(t, axis=(0, 2))" for n in "sum prod max min any all mean var std ptp".split()),
    *(f"np.{n}(a, axis=1, keepdims=True)" for n in

    "sum prod max min any all mean var std ptp argmax argmin median nanmax".split()),
    *(f"a.{n}()" for n in "sum prod max min any all mean var std argmax argmin cumsum".split()),
    *(f"a.{n}(1)" for n in "sum prod max min any all mean var std argmax argmin cumsum".split()),
    *(f"np.{n}(a, dtype=np.float32)" for n in "sum prod mean var std cumsum".split()),
    *(f"np.{n}(a, dtype=np.int64)" for n in "sum prod cumprod".split()),
    *(f"np.{n}(a, initial=5)" for n in "sum prod max min".split()),
    *(f"np.{n}(a, where=m)" for n in "sum prod any all mean".split()),
    *(f"np.{n}(a, where=m, initial=1)" for n in "sum max min".split()),
    "np.var(a, ddof=1)", "np.std(a, axis=0, ddof=1)", "np.var(a, correction=1)",
    "np.nanvar(a, ddof=1)",
    "np.average(a, weights=b)", "np.average(a, axis=1, weights=v)", "np.average(v, weights=h)",
    "np.average(a, axis=0, keepdims=True)", "np.average(v, weights=l)", "np.quantile(a, 0.3)",
    "np.quantile(a, 0.25, axis=0)", "np.percentile(a, 30, axis=1)", "np.percentile(v, [10, 90])",
    "np.quantile(v, 0.5, method='lower')", "np.median(a, axis=0, keepdims=True)",
    "np.diff(v)", "np.diff(a, axis=0)", "np.diff(a, n=2)", "np.diff(v, prepend=0)",
    "np.diff(v, append=1)",
    "np.diff(v, n=0)", "np.cov(v, w)", "np.cov(a)", "np.cov(a, rowvar=False)", "np.cov(a, ddof=0)",
    "np.cov(a, bias=True)", "np.corrcoef(a)", "np.corrcoef(v, w)", "np.gradient(v)",
    "np.gradient(a, axis=0)",
    "np.gradient(v, 0.5)", "np.convolve(v, w)", "np.convolve(v, w, 'same')",
    "np.convolve(v, w, 'valid')",
    "np.correlate(v, w)", "np.correlate(v, w, 'full')", "np.polyval(v, 2)",
    "np.polyval([1, 2, 3], v)",
    "np.trapezoid(v)", "np.trapezoid(v, dx=0.5)", "np.trapezoid(v, d)", "np.cumulative_sum(v)",
    "np.cumsum(a, axis=1, dtype=np.float64)", "sum(v)", "max(v)", "min(v)", "any(v)", "all(v)",
    "np.sum(a, axis=())", "np.mean(t, axis=1)", "np.ptp(v)", "np.count_nonzero(a, axis=1)",
)  # fmt: skip

_SHAPES = (
    "a.T", "np.transpose(a)", "np.transpose(t, (1, 0, 2))", "t.transpose(2, 0, 1)",
    "np.swapaxes(t, 0, 2)",
    "np.moveaxis(t, 0, -1)", "np.matrix_transpose(t)", "a.reshape(-1)", "np.reshape(a, (-1, 1))",
    "np.ravel(a)",
    "a.ravel()", "a.flatten()", "np.expand_dims(v, 0)", "np.expand_dims(a, (0, 2))",
    "np.squeeze(a[:1])",
    "np.squeeze(a[:1], axis=0)", "np.atleast_1d(v)", "np.atleast_2d(v)", "np.atleast_3d(a)",
    "v[:, None]", "v[None]",
    "np.broadcast_to(v, (3, len(v)))", "np.lib.stride_tricks.sliding_window_view(v, 2)",
    "np.flip(a)",
    "np.flip(a, axis=0)", "np.flip(a, (0, 1))", "np.fliplr(a)", "np.flipud(a)", "np.rot90(a)",
    "np.rot90(a, 2)",
    "np.rot90(a, k=-1)", "np.diagonal(q)", "np.diagonal(q, 1)", "np.diagonal(a, offset=-1)",
    "np.split(q, [1])",
    "np.array_split(v, 2)", "np.hsplit(q, [1])", "np.vsplit(a, [1])", "np.roll(v, 1)",
    "np.roll(a, -2)",
    "np.roll(a, 1, axis=1)", "np.roll(a, (1, 2), (0, 1))", "np.repeat(v, 2)",
    "np.repeat(a, 3, axis=1)",
    "np.tile(v, 2)", "np.tile(a, (2, 1))", "np.tile(v, 1)", "np.stack([a, b])",
    "np.stack([v, w], axis=1)",
    "np.concatenate([a, b])", "np.concatenate([a, b], axis=1)", "np.concatenate([a, b], axis=None)",
    "np.concatenate([v, d])", "np.concatenate([v], dtype=np.float64)", "np.hstack([a, b])",
    "np.hstack([v, w])",
    "np.vstack([v, w])", "np.vstack([a, b])", "np.dstack([a, b])", "np.column_stack([v, w])",
    "np.append(v, w)",
    "np.append(v, 1)", "np.append(a, b, axis=0)", "np.triu(a)", "np.tril(a)", "np.triu(q, 1)",
    "np.tril(q, -1)",
    "np.triu(q, k=-1)", "np.diag(v)", "np.diag(q)", "np.diag(v, 1)", "np.diag(q, -1)",
    "np.pad(v, 1)", "np.pad(v, (1, 2))",
    "np.pad(a, ((1, 0), (0, 2)))", "np.pad(v, 2, constant_values=3)",
    "np.pad(v, (1, 2), constant_values=(4, 6))",
    "np.pad(a, 1, constant_values=((1, 2), (3, 4)))", "np.pad(v, 1, mode='edge')",
    "np.pad(v, 1, mode='reflect')",
    "np.pad(v, 1, mode='wrap')", "np.pad(v, 1, mode='symmetric')", "np.take(v, k)",
    "np.take(a, k, axis=1)",
    "np.take(a, 0)", "np.take(v, -1)", "np.take(a, 1, axis=1)", "np.take(v, [[0, 1], [1, 0]])",
    "v.take(k)",
    "np.take(v, k, mode='clip')", "np.take(v, k + 1, mode='wrap')",
    "np.take_along_axis(a, np.argsort(a, axis=1), axis=1)",
    "np.zeros_like(a)", "np.ones_like(a)", "np.full_like(a, 2)", "np.zeros_like(a, dtype=np.int8)",
    "np.ones_like(a, shape=(2, 3))", "np.full_like(a, 1.5, dtype=np.float64)",
    "np.zeros(a.shape)", "np.ones(3, dtype=a.dtype)",
    "np.full((2, 2), v[0])", "np.full(3, 2)", "np.array(v)", "np.array([v, w])",
    "np.array([1, 2.5])", "np.array([v[0], w[0]])",
    "np.array(a, dtype=np.float32)", "np.array(v, copy=True)", "np.asarray(a)",
    "np.asarray(a, dtype=np.float64)",
    "np.ascontiguousarray(a)", "np.copy(a)", "np.arange(5)", "np.arange(1, 7, 2)",
    "np.arange(0.5, 3.1, 0.3)",
    "np.arange(x, 3.0, 0.3)", "np.arange(i)", "np.arange(5, 0, -1)",
    "np.arange(3, dtype=np.float32)", "np.linspace(0, 1, 5)",
    "np.linspace(x, 2, 4)", "np.linspace(0, 1, 5, endpoint=False)",
    "np.linspace(0, 10, 5, dtype=np.int64)",
    "np.logspace(0, 2, 4)", "np.eye(3)", "np.eye(3, 4, 1)", "np.eye(2, dtype=np.int32)",
    "np.identity(3)", "np.tri(3)",
    "np.tri(3, 4, k=1)", "np.indices((2, 3))", "np.meshgrid(v, w)",
    "np.meshgrid(v, w, indexing='ij')", "np.meshgrid(v, w, sparse=True)",
    "np.mgrid[0:3, 0:2]", "np.ogrid[0:3, 0:2]", "np.mgrid[0:1:5j]", "np.r_[v, w]", "np.r_[v, 1]",
    "np.r_[v, 1.5]",
    "np.r_[0:3, v]", "np.c_[v, w]", "a[0]", "a[:, 1]", "a[1:]", "a[::-1]", "a[:, ::2]",
    "a[..., 0]", "v[k]", "a[:, k]", "a[k % 2, 0]",
    "v[-1]", "v[1:-1]", "np.where(m, a, b)[0]", "np.shape(a)", "np.ndim(a)", "len(a)", "a.ndim",
    "a.dtype", "a.nbytes", "a.itemsize",
)  # fmt: skip

_LINEAR = (
    "a @ b.T", "v @ w", "q @ v", "v @ q", "t @ t[0].T", "np.matmul(q, q)", "np.dot(v, w)",
    "np.dot(q, q)", "np.dot(q, v)", "np.dot(2, v)",
    "np.inner(v, w)", "np.inner(a, b)", "np.outer(v, w)", "np.vdot(v, w)", "np.vdot(a, b)",
    "np.vecdot(v, w)", "np.vecdot(a, b)",
    "np.vecdot(a, b, axis=0)", "np.tensordot(a, b, axes=2)", "np.tensordot(q, q, axes=1)",
    "np.tensordot(a, b, axes=([0], [0]))",
    "np.einsum('ij,ij->i', a, b)", "np.einsum('ij,kj->ik', a, b)", "np.einsum('ij->ji', a)",
    "np.einsum('ii', q)", "np.einsum('i,i', v, w)",
    "np.einsum('ii->i', q)", "np.kron(v, w)", "np.kron(a, v)", "np.trace(q)", "np.trace(q, 1)",
    "np.trace(q, offset=-1)", "np.cross(v[:3], w[:3])",
    "np.linalg.matrix_power(q, 3)", "np.linalg.matrix_power(q, 1)",
    "np.linalg.matrix_power(q, 0)", "np.linalg.multi_dot([q, q, v])",
    "np.linalg.norm(v)", "np.linalg.norm(a)", "np.linalg.norm(a, axis=1)", "np.linalg.norm(v, 1)",
    "np.linalg.norm(v, np.inf)",
    "np.linalg.norm(a, axis=0, keepdims=True)", "np.dot(v, d)", "q @ d", "np.outer(v, d)",
    "v.dot(w)", "q.trace()", "q.diagonal()",
)  # fmt: skip

_ORDER = (
    "np.sort(v)", "np.sort(a)", "np.sort(a, axis=0)", "np.sort(a, axis=None)",
    "np.sort(v, kind='stable')", "np.argsort(v)", "np.argsort(a, axis=0)",
    "np.argsort(v, kind='stable')", "np.partition(v, 1)", "np.argmax(v)",
    "np.searchsorted(np.sort(v), w)",
    "np.searchsorted(np.sort(v), w, side='right')", "np.searchsorted(r, v)", "np.digitize(v, r)",
    "np.digitize(v, r, right=True)",
    "np.digitize(v, r[::-1])", "np.digitize(v, r[::-1], right=True)", "np.digitize(d, r)",
    "np.digitize(d, w)", "np.histogram(v, 4)",
    "np.histogram(v, bins=3, range=(0, 5))", "np.histogram(v, r)",
    "np.histogram(v, 4, density=True)", "np.histogram(v, 4, weights=d)",
    "np.histogram(v, r[::-1])", "np.histogram(d, [3, 1, 2])", "np.bincount(k)",
    "np.bincount(k, minlength=9)", "np.bincount(k, weights=d)",
    "np.interp(d, r, v)", "np.interp(d, r, d)", "np.interp(v, r, d)",
    "np.interp(d, r, d, left=-1, right=9)", "np.interp(x, r, d)",
    "np.isin(v, w)", "np.isin(k, [1, 2])", "np.isin(v, w, invert=True)", "np.unique(v)",
    "np.trim_zeros(v)", "np.flatnonzero(v)",
    "np.nonzero(v)", "np.argwhere(m)", "np.intersect1d(v, w)", "np.lexsort((v, w))", "sorted(v)",
    "np.nanargmax(v)", "np.nanargmin(v)",
    "np.nanpercentile(v, 30)", "np.nanquantile(v, 0.4)", "np.nancumsum(v)", "np.ediff1d(v)",
    "np.unwrap(d)", "np.resize(v, 5)", "np.array_equiv(v, w)",
    "np.linalg.det(q)", "np.linalg.inv(q + 9 * np.eye(len(q)))",
    "np.linalg.solve(q + 9 * np.eye(len(q)), v)", "np.linalg.slogdet(q)",
    "np.linalg.cholesky(np.eye(3))", "np.put(v, 0, 1)", "np.vander(v, 3)", "np.block([[a, b]])",
    "np.extract(m, a)", "np.compress([True, False], v)",
)  # fmt: skip

EXPRESSIONS: tuple[str, ...] = tuple(
    dict.fromkeys((*_ELEMENTWISE, *_REDUCTIONS, *_SHAPES, *_LINEAR, *_ORDER))
)
"""Each once, in a fixed order."""
