"""Array notation, one statement at a time: every function, method and view rule of the language.

Each line is an expression to return, or after `!` statements split at `;`. The names are the
inputs of `array_case`. What plain NumPy makes of the same text is the expected result.
"""

from __future__ import annotations

from .array_case import Case, table

CASES: tuple[Case, ...] = table({
    "operators": """
        a + b
        a - b * 2 + 1
        -a / b
        +a
        a // b
        a % b
        i // j
        i % j
        -i // j
        i / j
        a ** 2
        a ** 3
        p ** 0.5
        p ** b
        i ** 2
        2 ** j
        ~m
        ~i
        i << 2
        i >> 1
        i & j
        i | j
        i ^ j
        m & m2
        m | m2
        m ^ m2
        a < b
        a >= 0
        i == j
        i != 3
        (a > 0) & (a < 1)
        1 - a
        1 / p
        2.0 / j
        7 // j
        7 % j
        abs(v)
        """,
    "ufuncs": """
        np.add(a, b)
        np.subtract(a, b)
        np.multiply(a, b)
        np.divide(a, b)
        np.true_divide(i, j)
        np.floor_divide(i, j)
        np.power(p, 1.5)
        np.mod(i, j)
        np.remainder(a, b)
        np.fmod(a, b)
        np.negative(a)
        np.positive(a)
        np.abs(a)
        np.absolute(i)
        np.fabs(a)
        np.sign(a)
        np.floor(a)
        np.ceil(a)
        np.trunc(a)
        np.rint(a)
        np.round(a)
        np.round(a, 1)
        np.sqrt(p)
        np.square(a)
        np.cbrt(a)
        np.reciprocal(p)
        np.exp(a)
        np.exp2(a)
        np.expm1(a)
        np.log(p)
        np.log2(p)
        np.log10(p)
        np.log1p(p)
        np.sin(a)
        np.cos(a)
        np.tan(a)
        np.arcsin(p)
        np.arccos(p)
        np.arctan(a)
        np.arctan2(a, b)
        np.hypot(a, b)
        np.sinh(a)
        np.cosh(a)
        np.tanh(a)
        np.arcsinh(a)
        np.arccosh(1 + p)
        np.arctanh(p)
        np.deg2rad(a)
        np.rad2deg(a)
        np.maximum(a, b)
        np.minimum(a, 0)
        np.fmax(a, b)
        np.fmin(a, b)
        np.copysign(a, b)
        np.heaviside(a, 0.5)
        np.logaddexp(a, b)
        np.isnan(nans)
        np.isinf(nans)
        np.isfinite(nans)
        np.signbit(nans)
        np.logical_and(m, m2)
        np.logical_or(m, a > 0)
        np.logical_not(m)
        np.logical_xor(m, m2)
        np.bitwise_and(i, j)
        np.bitwise_or(i, j)
        np.bitwise_xor(i, j)
        np.invert(i)
        np.left_shift(j, 2)
        np.right_shift(i, 1)
        np.equal(i, j)
        np.not_equal(i, j)
        np.less(a, b)
        np.less_equal(a, b)
        np.greater(a, b)
        np.greater_equal(a, b)
        np.clip(a, -1, 1)
        np.clip(i, 0, 3)
        a.clip(-0.5, 0.5)
        np.where(a > 0, a, b)
        np.where(m, 1, 0)
        np.where(v > 0, a, 0.0)
        np.add.outer(u, v)
        np.subtract.outer(v, u)
        np.minimum.outer(u, v)
        ! np.add(a, b, out=a)
        ! np.exp(a, out=b)
        ! np.maximum(a, 0, out=a)
        np.maximum(nans, 0)
        np.minimum(nans, 0)
        np.sqrt(zero_d)
        """,
    "complex": """
        z + 1
        z * zv
        z / zv
        z ** 2
        np.conj(z)
        z.conj()
        z.real
        z.imag
        np.real(z)
        np.imag(z)
        np.abs(z)
        np.angle(z)
        np.exp(z)
        np.sqrt(z)
        np.sum(z)
        z @ zv
        z8 * 2
        z8 + v
        a + 1j * b
        a * 1j
        a + cz
        z == z
        np.real(a)
        """,
    "promotion": """
        f + 1
        f * 0.5
        f * g
        f + n
        f * a
        f * fv
        i + 0.5
        i * n
        i / 2
        i4 + i
        i4 + 1
        i4 * 2.0
        f + i4
        fv + i2
        fv + i1
        i1 + 1
        i1 + i1
        u1 + 1
        u1 + i1
        u1 * u1
        u4 + i2
        u8 + i2
        u8 + 1
        mv + 1
        mv * v
        mv * 1.5
        mv + mv
        half + 1
        half * fv
        half * half
        f * strong
        f * strong32
        i * strong32
        i1 / i1
        np.sqrt(j)
        np.sqrt(i1 * i1)
        a * flag
        f.astype(np.float64) * 2
        a.astype(np.float32)
        a.astype("int32")
        i.astype(np.float32) / 3
        i.astype(bool)
        mv.astype(np.int64)
        u1.astype(np.int8)
        np.float32(a)
        a.astype(int) + 1
        """,
    "reductions": """
        np.sum(a)
        a.sum(axis=0)
        np.sum(a, axis=1, keepdims=True)
        np.sum(c, axis=(0, 2))
        c.sum(axis=(-1, 0), keepdims=True)
        np.sum(c, axis=-1)
        np.sum(i)
        np.sum(i1)
        np.sum(u1)
        np.sum(mv)
        np.sum(m, axis=0)
        np.sum(f)
        np.sum(f, dtype=np.float64)
        np.sum(half)
        np.sum(a > 0)
        a.prod()
        np.prod(i1)
        np.prod(a, axis=0)
        np.min(a)
        a.max(axis=1)
        np.max(a, axis=0, keepdims=True)
        np.amax(i)
        np.amin(i1)
        np.max(nans)
        np.mean(a)
        a.mean(axis=0)
        np.mean(i)
        np.mean(i, axis=1)
        np.mean(f, axis=(0, 1))
        np.mean(m)
        np.std(a)
        a.std(axis=0)
        np.std(a, axis=1, ddof=1)
        np.var(a, axis=0)
        a.var(axis=1, keepdims=True)
        np.any(m)
        m.all(axis=0)
        np.all(a > -5, axis=1)
        np.any(a, axis=0)
        np.argmin(a)
        a.argmax(axis=1)
        np.argmax(i, axis=0)
        np.argmin(words)
        np.cumsum(x)
        np.cumsum(a, axis=1)
        np.cumsum(a)
        i1.cumsum()
        np.cumprod(x)
        np.cumprod(a, axis=0)
        np.sum(long_x)
        np.mean(a * b, axis=0)
        np.sum(np.abs(a - b)) / a.size
        """,
    "products": """
        a @ v
        u @ a
        v @ v
        a @ b.T
        c @ d
        a @ d
        c @ v
        np.dot(a, v)
        np.dot(v, v)
        a.dot(v)
        np.dot(sq, sq)
        np.matmul(c, d)
        i @ j.T
        i4 @ i2
        f @ fv
        np.outer(u, v)
        np.inner(v, v)
        np.inner(a, b)
        np.tensordot(a, b, 2)
        np.tensordot(c, a, axes=([1, 2], [0, 1]))
        np.tensordot(a, sq, 1)
        np.einsum("ij,kj->ik", a, b)
        np.einsum("ij,ij->", a, b)
        np.einsum("ii->i", sq)
        np.einsum("ijk,k", c, v)
        np.einsum("bij,bjk->bik", c, d)
        np.trace(sq)
        sq.trace()
        np.linalg.solve(sq, v)
        np.linalg.solve(sq, sq.T)
        np.linalg.inv(sq)
        np.linalg.cholesky(spd)
        np.linalg.norm(v)
        np.linalg.norm(a)
        np.linalg.norm(a, axis=1)
        np.linalg.det(sq)
        np.cov(a)
        """,
})  # fmt: skip
