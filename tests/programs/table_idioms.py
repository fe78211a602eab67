"""Idioms about tables, and vectors beside them; see `pair_idioms`."""

TABLES = """
# sums of rows
r[:] = a.sum(axis=1)
--
for row in range(len(a)):
    r[row] = a[row].sum()
--
for row in range(len(a)):
    for col in range(a.shape[1]):
        r[row] += a[row, col]
# sums of columns
y[:] = np.sum(a, axis=0)
--
for row in range(len(a)):
    y += a[row]
--
for col in range(a.shape[1]):
    y[col] = a[:, col].sum()
# extremes of an axis
y[:] = a.max(axis=0)
--
r[:] = np.min(a, axis=1)
--
for col in range(a.shape[1]):
    y[col] = a[:, col].max() - a[:, col].min()
# positions in an axis
r[:] = np.argmax(a, axis=1)
--
for row in range(len(a)):
    p = np.argmin(a[row])
    r[row] = a[row, p]
--
y[:] = np.argmax(a, axis=0)
# other reductions of an axis
r[:] = np.var(a, axis=1)
--
x[:] = a - a.mean(axis=0)
--
r[:] = np.linalg.norm(a, axis=1)
--
y[:] = np.any(a > 1, axis=0)
--
r[:] = np.prod(a, axis=1)
# reductions of a table
s = a.sum()
--
p = np.argmax(a)
--
g = (a > 1).any()
--
s = np.max(a) - np.mean(a)
# last of each row
for row in range(len(a)):
    for col in range(a.shape[1]):
        s = a[row, col]
    r[row] = s
--
for col in range(a.shape[1]):
    d = 0.0
    for row in range(len(a)):
        d = a[row, col]
    y[col] = a[:, col].max() + d
--
for row in range(len(a)):
    d = -1
    for col in range(a.shape[1]):
        if a[row, col] > 0:
            d = col
    r[row] = d
# sum of each row in a scalar
for row in range(len(a)):
    s = 0.0
    for col in range(a.shape[1]):
        s += a[row, col] * v[col]
    r[row] = s
--
for row in range(len(a)):
    s, t = 0.0, a[row, 0]
    for col in range(a.shape[1]):
        s += a[row, col]
        t = max(t, a[row, col])
    r[row] = s / t if t > 0 else s
# matrix and vector
r[:] = a @ v
--
y[:] = r @ a
--
for row in range(len(a)):
    r[row] = a[row] @ v
# outer product
x[:] = np.outer(r, v)
--
x += np.outer(r, w)
--
for row in range(len(a)):
    for col in range(a.shape[1]):
        x[row, col] -= r[row] * v[col]
# product of matrices, square
x[:] = a @ b
--
for row in range(len(a)):
    for col in range(len(a)):
        s = 0.0
        for pos in range(len(a)):
            s += a[row, pos] * b[pos, col]
        x[row, col] = s
# transpose, square
x[:] = a.T
--
x[:] = a.T + b
--
a[:] = a.T
# triangle, square
for row in range(len(a)):
    for col in range(row):
        s += a[row, col]
--
for row in range(len(a)):
    for col in range(row):
        y[row] -= a[row, col] * y[col]
--
for row in range(len(a)):
    for col in range(row + 1, len(a)):
        x[row, col] = 0
# symmetric update, square
for row in range(len(a)):
    for col in range(row):
        a[row, col] = a[col, row]
--
x[:] = (a + a.T) * 0.5
--
for row in range(len(a)):
    for col in range(row + 1):
        x[row, col] += v[row] * v[col]
        x[col, row] = x[row, col]
# diagonal, square
y[:] = np.diagonal(a)
--
s = np.trace(a)
--
for row in range(len(a)):
    a[row, row] += s
# elimination, square
for pos in range(len(a)):
    for row in range(pos + 1, len(a)):
        if a[pos, pos] != 0:
            a[row] -= a[pos] * (a[row, pos] / a[pos, pos])
    if pos == 2:
        break
# rows in order
x[:] = np.sort(a, axis=1)
--
for row in range(len(a)):
    x[row] = a[row, np.argsort(a[row], kind="stable")]
# scans of an axis
x[:] = np.cumsum(a, axis=1)
--
x[:] = np.cumsum(a, axis=0)
--
for row in range(1, len(a)):
    x[row] = x[row - 1] + a[row]
--
for row in range(len(a)):
    for col in range(1, a.shape[1]):
        x[row, col] = x[row, col - 1] * 0.5 + a[row, col]
# temporary of a row
for row in range(len(a)):
    d = a[row] - a[row].max()
    x[row] = d * d
--
for row in range(len(a)):
    d = np.exp(a[row] - np.max(a[row]))
    x[row] = d / np.sum(d)
--
for row in range(len(a)):
    d = np.zeros(a.shape[1])
    for col in range(a.shape[1]):
        d[col] = a[row, col] + v[col]
    r[row] = d.max()
# stencil of a table
x[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) * 0.25
--
for row in range(1, len(a) - 1):
    for col in range(1, a.shape[1] - 1):
        x[row, col] = a[row - 1, col] + a[row + 1, col] - 2 * a[row, col]
--
for pos in range(2):
    d = x.copy()
    x[1:-1] = 0.5 * (d[:-2] + d[2:])
# search in a table
for row in range(len(a)):
    for col in range(a.shape[1]):
        if a[row, col] > 2:
            p = row * a.shape[1] + col
            break
    r[row] = p
--
for row in range(len(a)):
    if a[row].max() > 2.5:
        p = row
        break
    s += a[row].sum()
--
for row in range(len(a)):
    for col in range(a.shape[1]):
        if a[row, col] < 0:
            continue
        s += a[row, col]
        p += 1
# dynamic programming
for row in range(1, len(a)):
    for col in range(1, a.shape[1]):
        x[row, col] = max(x[row - 1, col], x[row, col - 1]) + a[row, col]
--
for row in range(1, len(a)):
    for col in range(a.shape[1]):
        x[row, col] = a[row, col] + min(x[row - 1, col], x[row - 1, col - 1])
# rows exchanged
d = a[0].copy()
a[0] = a[-1]
a[-1] = d
--
x[:] = a[::-1]
--
x[:] = np.roll(a, 1, axis=0)
--
x[:] = a[:, q]
# broadcast
x[:] = a * v + r[:, None]
--
x[:] = a - a.max(axis=1, keepdims=True)
--
for row in range(len(a)):
    for col in range(a.shape[1]):
        x[row, col] = abs(v[col] - r[row])
# masked table
x[a > b] = 0
--
x[:] = np.where(a > v, a, b)
--
for row in range(len(a)):
    if r[row] > 0:
        x[row] = a[row]
--
s = a[a > 0].sum()
# scatter to a table
for row in range(len(a)):
    for col in range(a.shape[1]):
        x[row, q[col]] += a[row, col]
--
for row in range(len(a)):
    for col in range(a.shape[1]):
        y[q[col]] += a[row, col] * r[row]
# mirrored sums
d = (a * b).sum(axis=1)
r[:] = d[::-1]
--
d = a.max(axis=0)
y[:] = d[::-1] - d
# masked products, square
x[:] = np.tril(a @ b)
--
x[:] = np.where(a > 0, a @ b, 0)
--
for row in range(len(a)):
    for col in range(row + 1):
        s = 0.0
        for pos in range(len(a)):
            s += a[row, pos] * b[pos, col]
        x[row, col] = s
# products with itself, square
x[:] = a @ a.T
--
d = a - a.mean(axis=0)
x[:] = d.T @ d
# flat
d = a.ravel()
s = d[::2].sum()
--
for pos in range(len(a) * a.shape[1]):
    x[pos // a.shape[1], pos % a.shape[1]] = a[pos // a.shape[1], pos % a.shape[1]] + s
--
x[:] = a.reshape(-1)[::-1].reshape(a.shape)
# truth of rows
g = (a > b).all(axis=1).any()
--
for row in range(len(a)):
    g = True
    for col in range(a.shape[1]):
        if a[row, col] > 2:
            g = False
            break
    r[row] = g
# relaxation
for row in range(1, len(a) - 1):
    for col in range(1, a.shape[1] - 1):
        a[row, col] = (a[row - 1, col] + a[row, col + 1]) * 0.5
--
for pos in range(2):
    for row in range(1, len(a)):
        for col in range(a.shape[1] - 1):
            x[row, col] = x[row - 1, col + 1] - a[row, col]
# power iteration, square
for pos in range(2):
    d = a @ y
    y[:] = d * 0.5
# nearest row
t = 1000.0
for row in range(len(a)):
    s = ((a[row] - v) ** 2).sum()
    if s < t:
        t, p = s, row
# first of the greatest
for row in range(len(a)):
    s = a[row].max()
    for col in range(a.shape[1]):
        if a[row, col] == s:
            p = col
            break
    r[row] = p
# softmax of rows
for row in range(len(a)):
    t = a[row, 0]
    for col in range(a.shape[1]):
        t = max(t, a[row, col])
    s = 0.0
    for col in range(a.shape[1]):
        x[row, col] = np.exp(a[row, col] - t)
        s += x[row, col]
    for col in range(a.shape[1]):
        x[row, col] = x[row, col] / s
# one of each row, square
for row in range(len(a)):
    for col in range(a.shape[1]):
        if col == q[row]:
            r[row] += a[row, col]
--
for row in range(len(a)):
    r[row] = a[row, q[row]]
--
for row in range(len(a)):
    x[row, q[row]] = 1
"""
