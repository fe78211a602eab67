"""Array notation that moves, selects, builds and overwrites: shapes, indexing, views, aliasing."""

from __future__ import annotations

from .array_case import Case, table

CASES: tuple[Case, ...] = table({
    "shapes": """
        a.T
        a.T.copy()
        c.T
        c.transpose(2, 0, 1)
        np.transpose(c, (1, 0, 2))
        np.transpose(a)
        np.swapaxes(c, 0, 2)
        c.swapaxes(1, 2)
        np.moveaxis(c, 0, -1)
        a.reshape(4, 3)
        a.reshape(2, -1)
        a.reshape((12,))
        np.reshape(c, (6, 4))
        a.T.reshape(12)
        a.ravel()
        np.ravel(c)
        v[:, np.newaxis]
        v[None, :] - u[:, None]
        c[..., 0]
        c[0, ...]
        c[..., None, :]
        np.flip(v)
        np.flip(a, axis=1)
        np.flip(a)
        np.roll(x, 2)
        np.roll(a, -1, axis=1)
        np.roll(a, 5, axis=0)
        np.roll(a, 1)
        np.repeat(v, 2)
        np.repeat(a, 3, axis=1)
        np.tile(v, 3)
        np.tile(a, (2, 1))
        np.stack((u, u * 2))
        np.stack([v, v], axis=1)
        np.concatenate((x, y))
        np.concatenate([a, row])
        np.concatenate((a, col), axis=1)
        np.hstack((u, v))
        np.hstack((a, col))
        np.vstack((a, row))
        np.vstack((v, v))
        np.triu(sq)
        np.tril(a)
        np.triu(sq, 1)
        np.tril(sq, -1)
        np.diag(sq)
        np.diag(v)
        np.diag(a, 1)
        np.diff(x)
        np.diff(a, axis=0)
        np.diff(x, 2)
        np.broadcast_to(v, (3, 4))
        np.broadcast_to(v, (3, 4)) + a
        """,
    "making": """
        np.zeros(4)
        np.zeros((2, 3), dtype=np.int32)
        np.ones(a.shape)
        np.ones(len(v), bool)
        np.full((2, 2), 7)
        np.full(3, g)
        np.full(a.shape, 1, dtype=np.float32)
        np.zeros_like(a)
        np.ones_like(i)
        np.full_like(v, 3)
        np.zeros_like(a, dtype=np.int8)
        ! t = np.empty(4); t[:] = v; return t
        ! t = np.empty_like(a); t[...] = 2; return t
        ! t = np.ndarray((2, 2)); t[:] = 1; return t
        ! t = np.ndarray(shape=(3,), dtype=np.float32); t[:] = 0.5; return t
        np.arange(5)
        np.arange(2, 9, 3)
        np.arange(5, 0, -1)
        np.arange(0.0, 1.0, 0.25)
        np.arange(n) * g
        np.arange(4, dtype=np.float32)
        np.linspace(0, 1, 5)
        np.linspace(-1, 1, 4, endpoint=False)
        np.linspace(g, 2.0, n)
        np.eye(3)
        np.eye(3, dtype=np.int64)
        np.eye(2, 4)
        np.eye(3, k=1)
        np.mgrid[0:3, 0:2]
        np.meshgrid(u, v)
        np.meshgrid(u, v, indexing="ij")
        np.array([1.0, 2.0, 3.0])
        np.array([[1, 2], [3, n]])
        np.array([v[0], v[1] + 1])
        np.array(v)
        a.shape
        a.shape[0] * 2
        a.ndim
        a.size
        len(a)
        np.zeros(1, dtype=f.dtype)
        v.copy()
        np.pi * v
        np.where(v > 0, v, np.inf)
        """,
    "sorting": """
        np.sort(x)
        np.sort(a)
        np.sort(a, axis=0)
        np.argsort(x)
        np.argsort(words, kind="stable")
        np.bincount(words)
        np.bincount(words, minlength=9)
        np.bincount(idx, weights=idx * 0.5)
        np.searchsorted(sorted_x, x)
        np.searchsorted(sorted_x, 0.25)
        np.searchsorted(sorted_x, sorted_x, side="right")
        np.histogram(long_x, 6)
        np.histogram(long_x, bins=5, range=(-1.0, 1.0))
        np.histogram(long_x, 4, weights=np.abs(long_x))[0]
        """,
    "slices": """
        x[2:5]
        x[:3]
        x[-3:]
        x[::2]
        x[::-1]
        x[7:2:-2]
        x[-2::-3]
        x[5:100]
        x[-100:3]
        x[5:2]
        x[n:]
        x[:-n]
        x[n::n]
        a[1]
        a[-1]
        a[:, 1]
        a[1:, ::2]
        a[::-1, ::-1]
        a[1, 2]
        a[-1, -1]
        c[:, 1]
        c[1, :, -1]
        c[::-1, ..., ::2]
        x[2:7][1:3]
        a[1][2]
        a.T[1]
        x[1:-1] + x[2:] - x[:-2]
        x[:n] * y[-n:]
        """,
    "gathers": """
        v[idx]
        a[:, idx]
        a[[0, 2]]
        a[[0, 2], [1, 3]]
        v[idx2]
        v[neg]
        v[perm] - v
        a[1, idx]
        a[np.arange(3), [0, 2, 1]]
        v[idx] * 2 + idx
        v[i1 * 0]
        x[np.argsort(x)]
        np.sum(a[:, idx], axis=1)
        """,
    "masks": """
        ! a[a > 0] = 0
        ! a[m] = -1.5
        ! a[m] += 1
        ! a[m] = b[m]
        ! a[m] = a[m] ** 2
        ! a[~m] *= b[~m]
        ! v[mv] = 7
        ! a[:, mv] = 0
        ! a[a < 0] *= -1
        np.sum(a[m])
        a[m].mean()
        np.max(a[a > -10])
        np.sum(a[m] * b[m])
        len(v[mv])
        np.sum(np.where(m, a, 0))
        """,
    "stores": """
        ! a[...] = b
        ! a[:] = v
        ! a[1] = v
        ! a[:, 0] = u
        ! a[0, 0] = 9
        ! a[-1] = a[0]
        ! a[1:] = a[:-1]
        ! a[:-1] = a[1:]
        ! x[1:] = x[:-1]
        ! x[:-1] = x[1:]
        ! x[:] = x[::-1]
        ! x[::2] = 0
        ! x[::-1] = y
        ! x[1:-1] = 0.5 * (x[:-2] + x[2:])
        ! x[1:] += x[:-1]
        ! x[5:2] = 3
        ! a += b
        ! a -= v
        ! a *= 2
        ! a /= p
        ! a //= p
        ! a %= p
        ! p **= 2
        ! i &= j
        ! i |= j
        ! i ^= j
        ! i <<= 1
        ! i >>= 1
        ! i //= j
        ! f += a
        ! f[:] = a
        ! f[0] = 1
        ! a[:] = i
        ! i4[:] = i
        ! z[:] = a
        ! m[:] = a > 0
        ! m &= m2
        ! v[idx] = idx * 1.0
        ! v[perm] = v
        ! a[[0, 2]] = 5
        ! sq[:] = sq.T
        ! sq += sq.T
        ! a[:, 1] = a[:, 0] = 3
        ! x[0], x[1] = x[1], x[0]
        ! x[2:4] = x[4:6] = y[:2]
        ! v[0] += 1; v[0] *= v[1]
        ! zero_d[...] = 4
        ! zero_d += 1
        """,
    "views": """
        ! t = a[1]; t[:] = 0
        ! t = a[1]; t += 1; return t
        ! t = a[:, 1]; a[0, 1] = 9; return t + 0
        ! t = a.T; t[0] = 1
        ! t = a; t += b
        ! t = a; t = t + b; return t
        ! t = x[2:8:2]; t *= 2; return x[3:] + 0
        ! t = np.flip(x); t[0] = 5
        ! t = v[:, None]; t += 1
        ! t = a.reshape(2, 6); t[0] = 0
        ! t = a.ravel(); t[3] = 7
        ! t = z.real; t[:] = 0
        ! z.imag = a
        ! z.imag[:] = 1
        ! t = x[2]; x[2] = 7.0; return t
        ! t = a[1, 1]; t += 1; return t
        ! t = v[idx]; t[:] = 0; return t
        ! t = v.copy(); t[:] = 0; return t
        ! t = np.array(v); t += 1; return t
        ! t = a.astype(np.float64); t[:] = 0; return t
        ! t = a[m]; v[0] = 0; return np.sum(t)
        ! t = x[1:]; t = t[1:]; t[0] = 3
        ! t = a[0]; t[1:] = t[:-1]
        ! s, t = a, b; s, t = t, s; s[:] = 0
        ! s = t = np.zeros(3); s += 1; return t
        ! t = a; a = b; a += t; return a
        ! t = x[::-1]; x[:] = t
        ! t = a.swapaxes(0, 1); t[1] = 2; return t[0] + 0
        ! t = np.moveaxis(c, 0, 2); t[0, 0] = 1
        ! t = a[:, 1:]; return t
        """,
    "sizes": """
        one + v
        row + col
        v + row
        one * one
        np.sum(one)
        empty + 1
        empty * empty
        np.sum(empty)
        np.prod(empty)
        empty2.sum(axis=0)
        empty2 @ v
        np.all(empty > 0)
        np.any(empty > 0)
        empty[:3]
        np.concatenate((empty, v))
        empty2.T @ empty2
        np.zeros((0, 3)) + u
        ! empty[:] = 3
        ! empty += 1
        x[3:3]
        np.cumsum(empty)
        zero_d + v
        zero_d * 2
        zero_d[()]
        zero_d + zero_d
        np.exp(zero_d)
        np.sum(zero_d)
        v.sum() + v
        np.sqrt(v[0] * v[0])
        float(v[0])
        int(i1[1]) + 1
        max(v[0], v[1])
        min(v[0], 0.0, v[1])
        sum(v)
        max(v)
        n + g
        n / 2
        n // 2
        v[0] if v[0] > v[1] else v[1]
        v[0], v[1:], n
        """,
    "scalars": """
        ! t = 0.0; t += v[0]; return t
        ! t = n; t = t * 2; return t
        ! t = n; t /= 2; return t
        ! s = t = 1; s += 1; return s, t
        ! s, t = v[0], v[1]; s, t = t, s; return s - t
        ! (s, t), w = (v[0], 2), 3; return s * t + w
        ! h, w = a.shape; return h * w
        round(g)
        not flag
        0 < n < 5
        n > 0 and g < 1
        -n % 2
        -7 // n
        n ** 2
        n ** 0.5
        2.0 ** n
        abs(-n)
        v.min() * v.max()
        """,
    "beyond the page": """
        np.expand_dims(v, 0)
        np.squeeze(row)
        np.column_stack((v, v))
        np.pad(v, 1)
        np.atleast_2d(v)
        np.copy(a)
        np.asarray(v) + 1
        np.identity(3)
        np.take(v, idx)
        np.take(a, idx, axis=1)
        np.count_nonzero(m)
        a.flatten()
        np.vdot(v, v)
        """,
})  # fmt: skip
