"""Matrix products and solvers of the PolyBench list, as array code with loops where data flows."""

from __future__ import annotations

import numpy as np

from .kernel import Kernel, inputs


def gemm(alpha, beta, c, a, b):
    """General matrix product, in place."""
    c[:] = alpha * a @ b + beta * c


def two_mm(alpha, beta, a, b, c, d):
    """Two products, the second accumulated into a scaled matrix."""
    d *= beta
    d += alpha * (a @ b) @ c


def three_mm(a, b, c, d):
    """A product of two products."""
    left = a @ b
    right = np.matmul(c, d)
    return np.dot(left, right)


def atax(a, x):
    """Transposed matrix times matrix times vector."""
    return a.T @ (a @ x)


def bicg(a, p, r):
    """The two products of the biconjugate gradient step."""
    return r @ a, a @ p


def doitgen(cube, c4):
    """Each row of the cube times one matrix."""
    nr, nq, np_ = cube.shape
    for r in range(nr):
        for q in range(nq):
            row = cube[r, q] @ c4
            cube[r, q] = row


def gemver(alpha, beta, a, u1, v1, u2, v2, w, x, y, z):
    """Two rank-one updates, then two products with the updated matrix."""
    a += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * (y @ a) + z
    w += alpha * (a @ x)


def gesummv(alpha, beta, a, b, x):
    """The weighted sum of two matrix-vector products."""
    total = alpha * (a @ x)
    total += beta * (b @ x)
    return total


def mvt(x1, x2, y1, y2, a):
    """A matrix and its transpose, each accumulated into a vector."""
    x1 += a @ y1
    x2 += y2 @ a


def symm(alpha, beta, c, a, b):
    """Symmetric product where only the lower triangle of `a` counts."""
    c *= beta
    for i in range(a.shape[0]):
        left = a[i, :i]
        c[:i] += alpha * np.outer(left, b[i])
        c[i] += alpha * (a[i, i] * b[i] + left @ b[:i])


def syr2k(alpha, beta, c, a, b):
    """Symmetric rank-2k update of the lower triangle."""
    n = c.shape[0]
    for i in range(n):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[: i + 1, k] * (alpha * b[i, k]) + b[: i + 1, k] * (alpha * a[i, k])


def syrk(alpha, beta, c, a):
    """Symmetric rank-k update of the lower triangle."""
    product = alpha * (a @ a.T)
    for i in range(c.shape[0]):
        c[i, : i + 1] = beta * c[i, : i + 1] + product[i, : i + 1]


def trmm(alpha, a, b):
    """Triangular product in place: row i needs only the rows below it."""
    rows = b.shape[0]
    for i in range(rows):
        b[i] += a[i + 1 :, i] @ b[i + 1 :]
    b *= alpha


def trisolv(low, x, b):
    """Forward substitution."""
    for i in range(len(b)):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]


def cholesky(a):
    """Cholesky factor in the lower triangle, in place."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.sum(a[i, :i] ** 2))


def lu(a):
    """LU factors in place, outer-product form."""
    n = len(a)
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def _substitute(a, b):
    n = a.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - a[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, y


def ludcmp(a, b):
    """Solve a system by row-wise LU and two substitutions."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[:j, j]) / a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    x, y = _substitute(a, b)
    return x, y


def gramschmidt(a):
    """Modified Gram-Schmidt: an orthonormal basis and its triangular coefficients."""
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        column = a[:, k]
        r[k, k] = np.sqrt(np.sum(column * column))
        q[:, k] = column / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def durbin(r):
    """Solve the Yule-Walker equations."""
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = alpha
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def correlation(data):
    """Correlation matrix of the columns; the data are standardised in place."""
    n, m = data.shape
    spread = np.std(data, axis=0)
    spread[spread <= 0.1] = 1.0
    data -= data.mean(axis=0)
    data /= np.sqrt(n) * spread
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 :, i] = corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return corr


def covariance(data):
    """Covariance matrix of the columns, both triangles filled row by row."""
    n, m = data.shape
    data -= np.mean(data, axis=0)
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i, i:] = data[:, i] @ data[:, i:] / (n - 1.0)
        cov[i:, i] = cov[i, i:]
    return cov


def _definite(rng, n):
    root = rng.random((n, n))
    return root @ root.T + n * np.eye(n)


def _lower(rng, n):
    return np.tril(rng.random((n, n))) + n * np.eye(n)


def _f32(values):
    return values.astype(np.float32)


def _gemver(r, n):
    u1, v1, u2, v2, w, x, y, z = r.random((8, n))
    return 1.5, 1.2, r.random((n, n)), u1, v1, u2, v2, w, x, y, z


KERNELS: tuple[Kernel, ...] = (
    Kernel("gemm", gemm, inputs(
        lambda r, n, m, k: (1.5, 1.2, r.random((n, m)), r.random((n, k)), r.random((k, m))),
        (5, 6, 7), (60, 70, 80)), (2,)),
    Kernel("gemm_f32", gemm, inputs(
        lambda r, n, m, k: (1.5, 1.2, _f32(r.random((n, m))), _f32(r.random((n, k))),
                            _f32(r.random((k, m)))),
        (5, 6, 7), (60, 70, 80)), (2,), 1e-4),
    Kernel("2mm", two_mm, inputs(
        lambda r, n, m, k, l: (1.5, 1.2, r.random((n, m)), r.random((m, k)), r.random((k, l)),
                               r.random((n, l))),
        (4, 5, 6, 7), (40, 45, 50, 55)), (5,)),
    Kernel("3mm", three_mm, inputs(
        lambda r, n, m, k: (r.random((n, m)), r.random((m, k)), r.random((k, m)),
                            r.random((m, n))),
        (4, 5, 6), (40, 45, 50))),
    Kernel("atax", atax, inputs(lambda r, n, m: (r.random((n, m)), r.random(m)),
                                (7, 9), (150, 130))),
    Kernel("bicg", bicg, inputs(lambda r, n, m: (r.random((n, m)), r.random(m), r.random(n)),
                                (7, 9), (150, 130))),
    Kernel("doitgen", doitgen, inputs(lambda r, a, b, c: (r.random((a, b, c)), r.random((c, c))),
                                      (3, 4, 5), (12, 14, 20)), (0,)),
    Kernel("gemver", gemver, inputs(_gemver, (8,), (130,)), (2, 7, 8)),
    Kernel("gesummv", gesummv, inputs(
        lambda r, n: (1.5, 1.2, r.random((n, n)), r.random((n, n)), r.random(n)),
        (8,), (140,))),
    Kernel("mvt", mvt, inputs(
        lambda r, n: (r.random(n), r.random(n), r.random(n), r.random(n), r.random((n, n))),
        (9,), (140,)), (0, 1)),
    Kernel("symm", symm, inputs(
        lambda r, n, m: (1.5, 1.2, r.random((n, m)), r.random((n, n)), r.random((n, m))),
        (6, 5), (45, 50)), (2,)),
    Kernel("syr2k", syr2k, inputs(
        lambda r, n, m: (1.5, 1.2, r.random((n, n)), r.random((n, m)), r.random((n, m))),
        (6, 5), (45, 40)), (2,)),
    Kernel("syrk", syrk, inputs(
        lambda r, n, m: (1.5, 1.2, r.random((n, n)), r.random((n, m))), (6, 5), (60, 50)), (2,)),
    Kernel("trmm", trmm, inputs(
        lambda r, n, m: (1.5, r.random((n, n)), r.random((n, m))), (6, 5), (50, 60)), (2,)),
    Kernel("trisolv", trisolv, inputs(
        lambda r, n: (_lower(r, n), np.zeros(n), r.random(n)), (9,), (120,)), (1,)),
    Kernel("cholesky", cholesky, inputs(lambda r, n: (_definite(r, n),), (8,), (60,)), (0,)),
    Kernel("lu", lu, inputs(lambda r, n: (_definite(r, n),), (8,), (60,)), (0,)),
    Kernel("ludcmp", ludcmp, inputs(lambda r, n: (_definite(r, n), r.random(n)),
                                    (7,), (50,)), (0,)),
    Kernel("gramschmidt", gramschmidt, inputs(
        lambda r, n, m: (r.random((n, m)) + np.eye(n, m),), (7, 5), (50, 40)), (0,), 1e-7),
    Kernel("durbin", durbin, inputs(lambda r, n: (r.random(n) / n,), (10,), (90,))),
    Kernel("correlation", correlation, inputs(lambda r, n, m: (r.random((n, m)),),
                                              (12, 6), (80, 60)), (0,)),
    Kernel("covariance", covariance, inputs(lambda r, n, m: (r.random((n, m)),),
                                            (12, 6), (80, 60)), (0,)),
)  # fmt: skip
