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

from .array_rows import NEW, SHAPES
from .element_rows import ELEMENTS, OPERATORS, REDUCTIONS, UFUNCS
from .rows import Row, each, rows

LINEAR = rows(
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
    *rows("zeros", """
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
    *rows("exact", """
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
        np.bincount(np.minimum(v, 99))
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
        np.isin(x % 64, h)
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
    *each("median nanmax", "np.@(x)", tolerance="ulps"),
    *rows("loose", """
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
        np.quantile(np.nan_to_num(v), np.float32(0.3))
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
"""Order, counts, quantiles.

What NumPy leaves to other elements is not asked: among floats `isin` finds integers beyond 2**53
beside another one, a NaN changes the type of a quantile, and `bincount` takes any memory.
"""

GROUPS: dict[str, tuple[Row, ...]] = {
    "ufuncs": UFUNCS, "operators": OPERATORS, "elements": ELEMENTS, "reductions": REDUCTIONS,
    "shapes": SHAPES, "new": NEW, "linear": LINEAR, "order": ORDER,
}  # fmt: skip
"""All rows by subject."""
