"""Idioms about vectors, which may be rows or columns of tables; see `pair_idioms`."""

VECTORS = """
# elementwise
y[:] = v * 2 + w
--
for pos in range(len(v)):
    y[pos] = v[pos] - w[pos] * 0.5
--
y[:] = v
y[:] = y * y - w
# temporaries
d = v + w
y[:] = d * d - d
--
d = v * 0.5
e = d + w
s = (d * e).sum()
# sum
s = np.sum(v)
--
s = (v * w).sum()
--
s = np.sum(np.abs(v)) + t
--
s = sum(v[pos] * w[pos] for pos in range(len(v)))
# product
s = np.prod(v)
--
t = 1.0
for pos in range(len(v)):
    t *= v[pos]
# maximum
s = v.max()
--
s = np.min(v) + np.max(w)
--
t = np.max(np.abs(v - w))
--
s = max(v[pos] for pos in range(len(v)))
# position of the maximum
p = np.argmax(v)
--
p = np.argmin(v)
s = v[p]
--
p = int(np.argmax(np.abs(v)))
y[p] = s
# any and all
g = (v > 1).any()
--
g = np.all(v > -2)
--
g = bool(np.any(v > w))
# mean
s = np.mean(v)
--
y[:] = v - v.mean()
# variance
s = np.var(v)
--
t = np.std(v)
--
d = v - np.mean(v)
s = np.sqrt(np.mean(d * d))
# inner product
s = v @ w
--
s = np.dot(v, v)
--
for pos in range(len(v)):
    s += v[pos] * w[pos]
# norm
s = np.linalg.norm(v)
--
t = np.sqrt(np.sum(v * v))
# count
p = np.count_nonzero(v > 0.5)
--
p = (v > w).sum()
--
for pos in range(len(v)):
    if v[pos] > 0.5:
        p += 1
# normalise
y[:] = v / (np.sum(np.abs(v)) + 1)
--
d = np.exp(v - v.max())
y[:] = d / d.sum()
# accumulate
for pos in range(len(v)):
    s += v[pos]
--
for d in v:
    s = s + d
--
for pos in range(len(v)):
    s += v[pos]
    t = max(t, w[pos])
# accumulate under a guard
for pos in range(len(v)):
    if v[pos] > 0:
        s += w[pos]
--
for pos in range(len(v)):
    if v[pos] > w[pos]:
        s += v[pos]
    else:
        t -= w[pos]
# guarded product
for pos in range(len(v)):
    if w[pos] != 0:
        t *= v[pos]
--
t = 1.0
for pos in range(len(v)):
    if mask[pos]:
        t *= v[pos]
y[:] = t
# last value
for pos in range(len(v)):
    s = v[pos]
--
for d in v:
    s = d * 2
--
for pos in range(len(v)):
    p = pos
    s = v[pos] + w[pos]
# last value under a test
for pos in range(len(v)):
    if v[pos] > 0:
        s = v[pos]
--
for pos in range(len(v)):
    if v[pos] > 0.5:
        p = pos
--
for pos in range(len(v)):
    if mask[pos]:
        s, p = w[pos], pos
# own scalar of a loop
d = 0.0
for pos in range(len(v)):
    d = v[pos]
s = v.max() + d
--
d = 0
for pos in range(len(v)):
    d = pos
y[:] = v + d
# linear recurrence
for pos in range(len(v)):
    s = s * 0.5 + v[pos]
--
for pos in range(len(v)):
    s = s * 0.5 + v[pos]
    y[pos] = s
--
for pos in range(1, len(v)):
    y[pos] = y[pos - 1] * 0.5 + v[pos]
# scan
for pos in range(1, len(v)):
    y[pos] = y[pos - 1] + v[pos]
--
y[:] = np.cumsum(v)
--
for pos in range(len(v)):
    y[pos] = s
    s += v[pos]
--
for pos in range(len(v) - 1, -1, -1):
    t += v[pos]
    y[pos] = t
--
d = np.cumprod(v[:5])
s = d.sum()
# running maximum
for pos in range(len(v)):
    if v[pos] > s:
        s = v[pos]
        p = pos
--
for pos in range(1, len(v)):
    y[pos] = max(y[pos - 1], v[pos])
--
y[:] = np.maximum.accumulate(v)
--
for pos in range(len(v)):
    s = max(s, abs(v[pos]))
    y[pos] = s
# search
for pos in range(len(v)):
    if v[pos] > 1:
        p = pos
        break
--
for pos in range(len(v)):
    if v[pos] < s:
        t = v[pos]
        break
else:
    t = -1.0
--
p = -1
for pos in range(len(v)):
    if v[pos] == w[pos]:
        p = pos
        break
# until a break
for pos in range(len(v)):
    s += v[pos]
    if s > 3:
        break
--
for pos in range(len(v)):
    if w[pos] > 2:
        break
    y[pos] = v[pos]
    p = pos
# continue
for pos in range(len(v)):
    if v[pos] < 0:
        continue
    s += v[pos]
--
for pos in range(len(v)):
    if mask[pos]:
        continue
    y[pos] = s
    s = v[pos]
# while
p = 0
while p < len(v) and v[p] <= 1:
    p += 1
--
while s > 1 and p < 9:
    s *= 0.5
    p += 1
--
p = len(v) - 1
while p > 0 and v[p] < v[p - 1]:
    y[p] = v[p]
    p -= 1
# gather
y[:] = v[q]
--
for pos in range(len(v)):
    s += v[q[pos]]
--
for pos in range(len(v)):
    y[pos] = w[q[pos]] - v[pos]
# scatter
for pos in range(len(v)):
    y[q[pos]] += v[pos]
--
np.add.at(y, q, v)
--
for pos in range(len(v)):
    y[q[pos]] = v[pos]
# histogram
h = np.zeros(len(v), dtype=np.int64)
for pos in range(len(v)):
    h[q[pos]] += 1
p = h.max()
--
h = np.bincount(q, minlength=len(v))
y[:] = h
# shift in place
y[1:] = y[:-1] + w[1:]
--
y[:-1] = y[1:] * 0.5
--
y[1:] += y[:-1]
--
for pos in range(len(v) - 1):
    y[pos] = y[pos + 1]
# stencil
y[1:-1] = (v[:-2] + v[1:-1] + v[2:]) * 0.25
--
for pos in range(1, len(v) - 1):
    y[pos] = v[pos - 1] - 2 * v[pos] + v[pos + 1]
# time steps
d = v.copy()
e = v.copy()
for pos in range(3):
    e[1:-1] = 0.5 * (d[:-2] + d[2:])
    d, e = e, d
y[:] = d
--
for pos in range(3):
    d = y.copy()
    y[1:-1] = d[1:-1] + 0.25 * (d[:-2] - d[2:])
# swap
d, e = v.copy(), w.copy()
d, e = e, d
y[:] = d - e
--
s, t = t, s
--
for pos in range(len(v)):
    s, t = t, s + v[pos]
--
for pos in range(len(v) // 2):
    y[pos], y[len(v) - 1 - pos] = y[len(v) - 1 - pos], y[pos]
# reverse
y[:] = v[::-1]
--
y[:] = y[::-1]
--
for pos in range(len(v)):
    y[pos] = v[len(v) - 1 - pos]
# sort
y[:] = np.sort(v)
--
d = np.sort(v)
s = d[len(v) // 2]
--
for pos in range(1, len(v)):
    u = pos
    while u > 0 and y[u - 1] > y[u]:
        y[u - 1], y[u] = y[u], y[u - 1]
        u -= 1
# choice
y[:] = np.where(v > w, v, -w)
--
y[:] = np.clip(v, -1, 1)
--
s = np.where(v > 0, v, w).sum()
--
for pos in range(len(v)):
    y[pos] = v[pos] if v[pos] > s else w[pos]
# roll and pad
y[:] = np.roll(v, 1)
--
d = np.pad(v, 1)
y[:] = d[2:] - d[:-2]
--
y[:] = np.concatenate((v[1:], v[:1]))
# order
d = np.argsort(v, kind="stable")
y[:] = w[d]
--
d = np.argsort(v, kind="stable")
p = d[0]
# masked assignment
y[v < 0] = 0
--
y[mask] = v[mask]
--
y[v > w] = w[v > w]
--
y[mask] += 1
# masked reduction
s = v[mask].sum()
--
s = np.sum(v, where=mask)
--
t = np.max(v, where=mask, initial=-3)
# narrow integers
d = (v * 3).astype(np.int8)
d += 100
s = d.sum()
--
h = np.zeros(1, dtype=np.int16)
for pos in range(len(q)):
    h[0] = h[0] * 31 + q[pos]
p = h[0]
--
d = q.astype(np.uint8) * np.uint8(37)
y[:] = d
p = d.max()
# mixed types
d = v.astype(np.float32)
y[:] = d * 2 + q
--
y[:] = v + mask
p = q.sum() + mask.sum()
--
for pos in range(len(v)):
    y[pos] = q[pos] * 0.5 + v[pos]
    p += mask[pos]
# complex
d = v + 1j * w
y[:] = (d * d).real
--
d = (v - 0.5j) * (w + 2j)
s = d.sum().imag
# helper
def half(u):
    return u * 0.5 + 1
y[:] = half(v)
--
def final(u):
    out = 0.0
    for pos in range(len(u)):
        out = u[pos]
    return out
s = final(v) + t
--
def extent(u):
    return u.max() - u.min(), np.sum(u)
s, t = extent(v)
# flag
for pos in range(len(v)):
    if g:
        s += v[pos]
    g = v[pos] > 0
--
g = False
for pos in range(len(v)):
    g = g or v[pos] > 2
--
for pos in range(len(v)):
    g = v[pos] > w[pos]
    p += g
# scalar that a test sets
if s > t:
    t = s
else:
    t = t - 1
--
if len(v) > 0:
    s = v[0]
--
for pos in range(len(v)):
    if pos == 3:
        t = v[pos]
# scratch
for pos in range(len(v)):
    d = np.zeros(3)
    d[0] = v[pos]
    d[1] = d[0] * 2
    y[pos] = d.sum()
--
for pos in range(len(v)):
    d = np.empty(2)
    d[:] = w[pos]
    d[pos % 2] += v[pos]
    s = d[0]
--
d = np.zeros(len(v))
for pos in range(len(v)):
    d[pos] = v[pos] * 2
y[:] = d + w
# differences
s = np.abs(np.diff(v)).sum()
--
for pos in range(len(v)):
    y[pos] = v[pos] - s
    s = v[pos]
--
for pos in range(1, len(v)):
    y[pos] = v[pos] - v[pos - 1]
# compaction
p = 0
for pos in range(len(v)):
    if v[pos] > 0.5:
        y[p] = v[pos]
        p += 1
--
d = v[v > 0]
p = len(d)
s = d.sum()
# fill
y[:] = s
--
y[...] = 0
--
y.fill(1)
--
for pos in range(len(v)):
    y[pos] = p
# early return
if len(v) > 5 and v[5] > 2:
    return RETURNED
--
if not np.any(v > 0):
    return RETURNED
--
for pos in range(len(v)):
    if v[pos] > 2.5:
        return RETURNED
    s += v[pos]
# zip and enumerate
for d, e in zip(v, w):
    s += d * e
--
for pos, d in enumerate(v):
    s += pos * d
    p = pos
# neighbours around the end
for pos in range(len(v)):
    y[pos] = v[(pos + 1) % len(v)] - v[pos]
--
for pos in range(len(v)):
    y[pos] = v[pos - 1] + w[pos]
# ends of a loop
for pos in range(len(v)):
    if pos == 0:
        y[pos] = w[pos]
    else:
        y[pos] = y[pos - 1] + v[pos]
--
for pos in range(len(v)):
    if pos > 0 and pos < len(v) - 1:
        y[pos] = (v[pos - 1] + v[pos + 1]) * 0.5
    else:
        y[pos] = v[pos]
--
for pos in range(len(v)):
    y[pos] = v[pos] if pos % 2 == 0 else -w[pos]
# look-up
for pos in range(len(v)):
    if pos == p:
        s = v[pos]
--
s = 0.0
for pos in range(len(v)):
    s += v[pos] if pos == q[0] else 0.0
# functions
y[:] = np.sin(v) * w
--
for pos in range(len(v)):
    y[pos] = np.exp(-abs(v[pos])) + s
--
for pos in range(len(v)):
    t += np.tanh(v[pos])
    y[pos] = t
# convolution
y[:] = np.convolve(v, np.array([0.25, 0.5, 0.25]), mode="same")
--
for pos in range(len(v) - 2):
    y[pos] = 0.0
    for tap in range(3):
        y[pos] += v[pos + tap] * w[tap]
# each beside each
for pos in range(len(v)):
    for other in range(len(v)):
        s += abs(v[pos] - w[other])
--
for pos in range(len(v)):
    t = 0.0
    for other in range(len(v)):
        t = max(t, v[pos] * v[other])
    y[pos] = t
# strides
y[::2] = v[::2]
y[1::2] = w[1::2] * 2
--
for pos in range(0, len(v), 2):
    s += v[pos]
    y[pos] = s
# bisection
low, high = 0, len(v)
while low < high:
    mid = (low + high) // 2
    if v[mid] < s:
        low = mid + 1
    else:
        high = mid
p = low
# window
for pos in range(3, len(v)):
    s += v[pos] - v[pos - 3]
    y[pos] = s
--
for pos in range(len(v)):
    t = max(0, t + v[pos])
    s = max(s, t)
# generators
g = any(v[pos] > 1 for pos in range(len(v)))
--
g = all(d > -2 for d in v)
p = sum(1 for d in w if d > 0)
--
d = [v[pos] * 2 for pos in range(len(v))]
y[:] = d
"""
