"""NumPy expressions and programs that the table has to understand, by what they are about."""

from __future__ import annotations

ELEMENTWISE = (
    "np.exp(x)",
    "np.sqrt(np.abs(y))",
    "np.sqrt(k)",
    "k / k",
    "x // 0.3",
    "i % 3",
    "i / 2",
    "k * 2",
    "u + u",
    "x ** 2",
    "y ** 3",
    "i ** 2",
    "k ** 3",
    "x ** -1",
    "np.abs(x) ** 0.5",
    "x ** 2.5",
    "np.power(p, 1.7)",
    "h * 2.5",
    "h + y",
    "np.exp(h)",
    "b & b",
    "b | (x > 0)",
    "~b",
    "np.logical_not(x)",
    "np.logical_and(x, i)",
    "np.logical_xor(b, i)",
    "b + b",
    "b * b",
    "x * s",
    "y * s",
    "y * np.sqrt(2.0)",
    "y * math.sqrt(2.0)",
    "i * 2.5",
    "np.add(x, y)",
    "np.maximum(x, 0)",
    "np.minimum(u, 100)",
    "np.fmax(x, y)",
    "np.hypot(x, y)",
    "np.arctan2(x, i)",
    "np.copysign(x, y)",
    "np.degrees(y)",
    "np.radians(x)",
    "np.square(k)",
    "np.cbrt(x)",
    "np.sign(x)",
    "np.sign(i)",
    "np.heaviside(x, 0.5)",
    "np.logaddexp(x, y)",
    "np.isnan(nn)",
    "np.isfinite(i)",
    "np.signbit(x)",
    "np.float_power(k, 2)",
    "np.floor(x)",
    "np.floor(i)",
    "np.rint(y)",
    "np.rint(k)",
    "np.trunc(x)",
    "np.reciprocal(x)",
    "np.positive(i)",
    "np.remainder(x, 0.7)",
    "np.fmod(i, 3)",
    "np.divmod(i, 3)",
    "divmod(x, 0.5)",
    "np.where(x > 0, x, 0)",
    "np.where(b, y, 1.5)",
    "np.where(b, k, i)",
    "np.clip(x, -0.5, 0.5)",
    "np.clip(i, None, 2)",
    "np.clip(u, 10, None)",
    "np.clip(y, a_min=0, a_max=1)",
    "x.clip(0, 1)",
    "np.round(x, 2)",
    "np.round(y)",
    "x.round(1)",
    "np.real(z)",
    "np.imag(z)",
    "np.abs(z)",
    "np.angle(z)",
    "z.real",
    "z.imag",
    "x.imag",
    "np.conj(z)",
    "z * zf",
    "zf ** 2",
    "z ** 2",
    "np.exp(z)",
    "z / z",
    "np.isclose(x, y)",
    "np.allclose(x, x)",
    "np.nan_to_num(nn)",
    "np.sinc(x)",
    "np.invert(u)",
    "u << 1",
    "i >> 1",
    "i ^ 3",
    "np.equal(x, y)",
    "x < y",
    "np.not_equal(i, 2)",
    "np.less(u, -1)",
    "np.float32(x)",
    "np.int32(y * 10)",
    "x.astype(np.float32)",
    "x.astype('f4')",
    "i.astype(float)",
    "x.astype(bool)",
    "b.astype(int)",
    "np.select([x > 1, x > 0], [x, y], 7.0)",
    "abs(x)",
    "-i",
    "np.negative(x)",
)
"""Ufuncs, operators, casts, choices."""

REDUCTIONS = (
    "np.sum(x)",
    "x.sum(axis=0)",
    "x.sum(1, keepdims=True)",
    "k.sum()",
    "b.sum(axis=1)",
    "u.sum()",
    "h.sum()",
    "h.sum(axis=0)",
    "np.sum(t, axis=(0, 2))",
    "np.sum(t, axis=(0, -1), keepdims=True)",
    "np.prod(x, axis=-1)",
    "np.prod(k)",
    "x.max()",
    "np.max(x, axis=0)",
    "np.amin(u)",
    "i.min(axis=1)",
    "b.max()",
    "np.max(nn)",
    "np.nanmax(nn)",
    "np.nansum(nn)",
    "np.nanmean(nn)",
    "np.nanmin(x, axis=0)",
    "np.mean(x)",
    "i.mean(axis=0)",
    "b.mean()",
    "h.mean()",
    "y.mean(axis=(0, 1))",
    "z.mean(axis=0)",
    "np.var(x, axis=0)",
    "np.var(z)",
    "np.std(i)",
    "y.std(axis=1, ddof=1, keepdims=True)",
    "x.std()",
    "np.any(x > 1, axis=0)",
    "np.all(b)",
    "(x > 5).any()",
    "np.argmax(x)",
    "np.argmin(x, axis=0)",
    "x.argmax(axis=1, keepdims=True)",
    "np.argmax(nn)",
    "np.cumsum(x)",
    "np.cumsum(x, axis=1)",
    "k.cumsum(axis=0)",
    "np.cumprod(v)",
    "np.cumsum(h, axis=0)",
    "b.cumsum()",
    "np.ptp(x, axis=0)",
    "np.average(x)",
    "np.average(x, axis=1, weights=v)",
    "np.average(v, weights=v)",
    "np.count_nonzero(i)",
    "np.count_nonzero(b, axis=0)",
    "np.array_equal(x, x)",
    "np.array_equal(x, v)",
    "np.diff(v)",
    "np.diff(x, axis=0)",
    "np.diff(x, n=2)",
    "np.diff(b1)",
    "np.cov(x)",
    "np.cov(x, rowvar=False)",
    "np.cov(v)",
    "np.cov(x, bias=True)",
    "np.corrcoef(x)",
    "np.gradient(v)",
    "np.gradient(x, axis=0)",
    "np.gradient(x)",
    "np.gradient(v, 0.5)",
    "np.convolve(v, w)",
    "np.convolve(w, v, 'same')",
    "np.convolve(w, v, 'valid')",
    "np.convolve(v, w, 'same')",
    "np.trapezoid(x)",
    "np.trapezoid(x, v)",
    "np.trapezoid(v, dx=0.5)",
    "np.add.reduce(x)",
    "np.maximum.reduce(x, axis=1)",
    "np.logical_and.reduce(b)",
    "np.bitwise_or.reduce(i, axis=None)",
    "np.maximum.accumulate(x, axis=1)",
    "np.add.accumulate(k)",
    "np.multiply.accumulate(v)",
    "np.sum(x, dtype=np.float32)",
    "np.mean(i, dtype=np.float32)",
    "np.sum(x, initial=5.0)",
    "np.max(x, initial=1.0)",
    "sum(v)",
    "sum(u)",
    "sum(b1)",
    "max(v)",
    "min(w)",
    "any(b1)",
    "all(b1)",
    "len(x)",
    "abs(v)",
    "max(v[0], v[1])",
    "min(i[0, 0], 2)",
    "round(v[0])",
    "round(v[0], 2)",
    "int(v[1] * 10)",
    "float(i[0, 0])",
    "bool(i[0, 1])",
    "complex(v[0], v[1])",
    "math.floor(v[0])",
    "math.ceil(s)",
    "math.exp(v[0])",
    "math.log(p[0], 2)",
    "math.hypot(v[0], 3.0)",
    "math.erf(s)",
    "math.pow(s, 2)",
    "divmod(n, 3)",
    "pow(n, 2)",
    "x[b].sum()",
    "x[b].mean()",
    "x[b].max()",
    "x[b].std()",
    "len(x[b])",
    "x[x > 0].size",
    "x.shape",
    "x.ndim",
    "x.size",
    "x.nbytes",
)
"""Sums and what else goes over axes."""

SHAPES = (
    "x.T",
    "x.dtype == np.float64",
    "x / x.sum(axis=1, keepdims=True)",
    "np.exp(x - x.max(axis=1)[:, None])",
    "(x - x.mean(0)) / x.std(0)",
    "np.transpose(t)",
    "t.transpose(1, 0, 2)",
    "np.transpose(t, (2, 0, 1))",
    "t.swapaxes(0, -1)",
    "np.moveaxis(t, 0, -1)",
    "np.moveaxis(t, [0, 1], [2, 0])",
    "x.reshape(4, 3)",
    "x.reshape((2, -1))",
    "x.reshape(-1)",
    "t.reshape(6, 4)",
    "t.T.reshape(6, 4)",
    "t.reshape(2, 2, 6)",
    "t.reshape(-1, 3, order='F')",
    "(x + 1).reshape(2, 6)",
    "(x + 1).reshape(2, 2, 3)",
    "(t + 1).reshape(-1)",
    "x.ravel()",
    "x.T.ravel()",
    "x.flatten()",
    "np.ravel(t, order='F')",
    "np.expand_dims(x, 1)",
    "np.expand_dims(x, (0, -1))",
    "np.squeeze(x[:1])",
    "x[:, :1].squeeze(1)",
    "np.atleast_2d(v)",
    "np.atleast_3d(x)",
    "np.atleast_1d(s)",
    "np.broadcast_to(v, (3, 4))",
    "np.flip(x)",
    "np.flip(x, 0)",
    "np.fliplr(x)",
    "np.flipud(x)",
    "np.rot90(x)",
    "np.rot90(x, 2)",
    "np.rot90(x, -1)",
    "np.roll(v, 1)",
    "np.roll(x, -2, axis=1)",
    "np.roll(x, 5)",
    "np.roll(np.roll(x, 1, 0), -1, 1)",
    "np.roll(x, (1, 2), axis=(0, 1))",
    "np.repeat(v, 2)",
    "np.repeat(x, 2, axis=0)",
    "x.repeat(3, axis=1)",
    "np.tile(v, 2)",
    "np.tile(x, (2, 1))",
    "np.tile(v, (2, 2))",
    "np.stack([v, v * 2])",
    "np.stack((x, y), axis=-1)",
    "np.concatenate([v, w])",
    "np.concatenate((x, y), axis=1)",
    "np.concatenate([x, x[:1]])",
    "np.concatenate([x, y], axis=None)",
    "np.hstack((v, w))",
    "np.hstack((x, y))",
    "np.vstack((v, v))",
    "np.vstack((x, v))",
    "np.dstack((x, y))",
    "np.column_stack((v, v))",
    "np.append(v, 3.0)",
    "np.append(x, x, axis=0)",
    "np.triu(x)",
    "np.tril(m, -1)",
    "np.triu(m, 1)",
    "np.diag(v)",
    "np.diag(m)",
    "np.diag(v, 1)",
    "np.diag(v, -2)",
    "np.diag(x, 1)",
    "m.diagonal(-1)",
    "np.diagonal(t, axis1=1, axis2=2)",
    "np.eye(3)",
    "np.eye(n, 4, 1)",
    "np.identity(4, dtype=np.float32)",
    "np.tri(3, 4)",
    "np.split(v, 2)",
    "np.array_split(v, 3)",
    "np.split(x, [1], axis=0)",
    "np.pad(v, 2)",
    "np.pad(x, ((1, 0), (2, 1)))",
    "np.pad(v, (1, 2), mode='edge')",
    "np.pad(v, 3, 'wrap')",
    "np.pad(v, 3, 'reflect')",
    "np.pad(v, 1, constant_values=7)",
    "np.take(v, idx)",
    "np.take(x, [0, 2], axis=0)",
    "np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), 1)",
)
"""The same elements under other axes, joined, repeated, picked."""

CREATION = (
    "np.zeros(3)",
    "np.zeros((n, 2), dtype=int)",
    "np.ones((2, 3), np.float32)",
    "np.zeros_like(x)",
    "np.ones_like(i)",
    "np.full((2, 2), 7)",
    "np.full(3, s)",
    "np.full(3, 2.5, dtype=np.float32)",
    "np.full_like(i, 2.7)",
    "np.array([1, 2, 3])",
    "np.array([[1, 2.5], [3, 4]])",
    "np.array(x)",
    "np.array([s, 2.0], dtype=np.float32)",
    "np.array([v[0], w[0]])",
    "np.asarray(x)",
    "np.asarray(x, dtype=np.float32)",
    "x.copy()",
    "np.arange(5)",
    "np.arange(1, 10, 2)",
    "np.arange(10, 0, -3)",
    "np.arange(n)",
    "np.arange(0, 1, 0.1)",
    "np.arange(3.0)",
    "np.arange(4, dtype=np.float32)",
    "np.linspace(0, 1, 5)",
    "np.linspace(0, s, n)",
    "np.linspace(1, 2, 4, endpoint=False)",
    "np.linspace(0, 1, 1)",
    "np.linspace(0, 1, 4, retstep=True)",
    "np.linspace(0, 10, 5, dtype=int)",
    "np.mgrid[0:3, 0:4]",
    "np.mgrid[-2:3, 0:1:0.25]",
    "np.mgrid[0:5]",
    "np.mgrid[0:1:5j]",
    "np.ogrid[0:3, 0:4]",
    "np.meshgrid(v, w)",
    "np.meshgrid(v, w, indexing='ij')",
    "np.meshgrid(v, w, sparse=True)",
    "np.indices((2, 3))",
    "np.r_[v, w]",
    "np.c_[v, v]",
    "np.finfo(np.float32).eps",
    "np.finfo(x.dtype).max",
    "np.sum(np.sum(v[:, None] * x.T**2))",
    "v.item(1)",
    "v.fill(3.0) or v",
    "np.copyto(v, 1.0) or v",
    "np.fill_diagonal(m, 0) or m",
    "np.add(x, y, out=x)",
    "np.exp(v, out=v)",
    "np.maximum(x, 0, x)",
)
"""Arrays out of nothing, copies, and writing in place."""

PRODUCTS = (
    "x @ v",
    "x @ x.T",
    "np.dot(x, v)",
    "np.dot(v, v)",
    "v @ v",
    "t @ q",
    "t @ v",
    "np.matmul(t, q)",
    "np.inner(x, x)",
    "np.outer(v, w)",
    "np.tensordot(t, q, axes=([2], [1]))",
    "np.einsum('ij,j->i', x, v)",
    "np.einsum('ij,kj', x, y)",
    "np.einsum('ii->i', m)",
    "np.einsum('ii', m)",
    "np.einsum('ijk,ikl->ijl', t, q)",
    "np.einsum('...j,j->...', t, v)",
    "np.einsum('ij->ji', x)",
    "np.einsum('i,j,k->ijk', v, w, v)",
    "np.vdot(z, z)",
    "np.kron(x, m)",
    "np.kron(v, w)",
    "np.cross(x[:, :3], x[:, 1:])",
    "np.trace(m)",
    "np.trace(k)",
    "m.trace(1)",
    "k @ k.T",
    "b @ b.T",
    "h @ h.T",
    "i @ x.T",
    "np.linalg.norm(x)",
    "np.linalg.norm(v)",
    "np.linalg.norm(x, axis=1)",
    "np.linalg.norm(x, 1)",
    "np.linalg.norm(v, 1)",
    "np.linalg.norm(x, np.inf)",
    "np.linalg.norm(x, 1, axis=0)",
    "np.linalg.norm(x, axis=0, keepdims=True)",
    "np.linalg.matrix_power(m, 5)",
    "np.linalg.multi_dot([x, m, v])",
    "np.add.outer(v, w)",
    "np.subtract.outer(v, x)",
    "np.maximum.outer(v, v)",
    "np.tensordot(x, m, 1)",
    "np.linalg.solve(m.astype(np.float32), v.astype(np.float32))",
)
"""Products with sums, norms."""

ORDER = (
    "np.sort(v)",
    "np.sort(x)",
    "np.sort(x, axis=0)",
    "np.sort(t, axis=1)",
    "np.sort(t)",
    "np.sort(nn)",
    "np.sort(i, axis=None)",
    "np.sort(u)",
    "np.argsort(v)",
    "np.argsort(x, axis=0)",
    "np.argsort(i, kind='stable')",
    "np.argsort(nn)",
    "v.sort() or v",
    "x.sort() or x",
    "t.sort(axis=0) or t",
    "x.sort(axis=0) or x",
    "v.argsort()",
    "np.searchsorted(np.sort(p), v)",
    "np.searchsorted(np.sort(p), x, side='right')",
    "np.searchsorted(np.sort(v), 0.3)",
    "np.searchsorted(np.arange(5), i, 'right')",
    "np.digitize(x, np.array([-1.0, 0.0, 1.0]))",
    "np.median(v)",
    "np.median(w)",
    "np.median(x, axis=0)",
    "np.median(x)",
    "np.median(nn)",
    "np.median(x, axis=1, keepdims=True)",
    "np.quantile(p, 0.3)",
    "np.percentile(x, 80, axis=0)",
    "np.quantile(p, [0.25, 0.5])",
    "np.histogram(x)",
    "np.histogram(y, 5)",
    "np.histogram(x, bins=4, range=(-1, 1))",
    "np.histogram(x, 3, weights=x)",
    "np.histogram(i, 4)",
    "np.histogram(x, bins=np.array([-2.0, -1.0, 0.5, 3.0]))",
    "np.histogram(x, 4, density=True)",
    "np.histogram(x, n)[0]",
    "np.bincount(idx, minlength=6)",
    "np.bincount(idx, minlength=4, weights=v)",
    "np.sum(np.bincount(idx))",
    "np.interp(x, np.sort(v), v)",
    "np.interp(0.2, np.sort(v), v)",
    "np.interp(w, np.sort(v), v, left=-9.0)",
    "np.linalg.solve(m, v)",
    "np.linalg.solve(m, m.T)",
    "np.linalg.solve(m + 1j * spd, v)",
    "np.linalg.inv(m)",
    "np.linalg.det(m)",
    "np.linalg.det(k[:, :3])",
    "np.linalg.cholesky(spd)",
    "np.linalg.inv(np.eye(3)[::-1])",
    "np.finfo(x.dtype).max",
    "np.zeros(3, dtype=x.dtype) + np.ones(3, dtype=v.dtype)",
    "np.sum(x, dtype=x.dtype)",
)
"""Sorting, counting, solving."""

PROGRAMS = (
    """
a = np.zeros((3, 4))
r = a.reshape(-1)
r[5] = 2.0
r[:] += x.reshape(-1)
return a, r
""",
    """
y2 = x.T
y2[0, 1] = 100.0
y2 += 1
return x
""",
    """
f = np.flip(v)
f[0] = 9.0
return v
""",
    """
d = np.diagonal(m).copy()
m[0, 0] = 77.0
return d, m
""",
    """
s2 = x.reshape(3, 2, 2)
s2[:, 0, 1] = -1
return x
""",
    """
for r in range(n):
    z2 = np.zeros(r + 1)
    z2[r] = r
    v[0] += z2.sum()
return v
""",
    """
out = np.zeros(4)
for r in range(4):
    out[r] = np.sum(m[r, :r]) + np.dot(m[r, :r], v[:r]) + np.linalg.norm(m[:r + 1, r])
return out
""",
    """
out = np.zeros(4)
for r in range(1, 5):
    out[r - 1] = np.max(v[:r]) + np.mean(v[:r]) + np.argmin(v[:r])
return out
""",
    """
total = 0.0
for row in x:
    total += np.cumsum(row)[-1]
return total
""",
    """
acc = np.zeros(3)
for r in range(3):
    acc[r] = np.sum(np.where(b[r], x[r], 0.0)) / np.sum(b[r])
return acc
""",
    """
p2 = np.empty(4, dtype=np.float32)
p2[:] = v
return p2.astype(np.float64) + 1
""",
    """
g = np.zeros_like(x)
np.maximum(x, 0.25, out=g)
np.add(g[0], 1, out=g[1])
np.sum(x, axis=0, out=g[2])
return g
""",
    """
h1, e1 = np.histogram(x, 6)
return h1.sum(), e1[0], e1[-1]
""",
    """
k1 = np.argsort(v)
return v[k1], v[k1[0]]
""",
    """
w1 = x.copy()
w1[0] = np.sort(w1[0])
w1[1].sort()
w1[:, 2].sort()
return w1
""",
    """
a = v * 2
b2 = a
b2[0] = 5
a += 1
return a, b2
""",
    """
A, B = np.meshgrid(v, w)
return A @ B.T
""",
    """
rows, cols = x.shape
o = np.ones((cols, rows))
return o * x.T, rows * cols, o.shape[0]
""",
    """
q1, r1 = np.divmod(i, 3)
q1 = q1 + r1
return q1
""",
    """
yy, xx = np.mgrid[-1:2, -1:2]
return np.exp(-(yy**2 + xx**2) / (2 * s**2))
""",
    """
return np.exp(-1j * np.pi * np.arange(n) / n)
""",
    """
out = np.zeros(4, dtype=bool)
out[:] = np.isnan(nn[:4]) | (v > 0)
return out, np.any(out), out.sum()
""",
    """
x[b] = 0.0
return x
""",
    """
x[b] = x[b] ** 2
return x
""",
    """
return x[0].sum() + x.sum(axis=0)[0] + len(x) * x.shape[1]
""",
    """
e = np.einsum('ij,jk->ik', x, m)
e -= x @ m
return np.abs(e).max() < 1e-12
""",
    """
for t2 in range(3):
    v[1:-1] = 0.5 * (v[:-2] + v[2:])
return v
""",
    """
a = np.arange(12).reshape(3, 4)
return a.T.reshape(2, 6), a.reshape(2, -1).T, a[::2].reshape(-1), a[:, ::-1].reshape(4, 3)
""",
    """
m[:] = np.triu(m) + np.tril(m, -1) * 2
return m
""",
    """
s1 = 0
for c in range(n):
    s1 += c ** 2
return s1, 2 ** n, n ** 2, n ** -1
""",
    """
return np.sum(k, axis=1) * 1000, np.prod(k, axis=0), k @ k.T, np.trace(k[:, :3])
""",
    """
u2 = u * 2
u2 += 10
return u2, u - u, -u, u // 3, u % 7
""",
)
"""Bodies of functions: views, loops with growing slices, masks."""
