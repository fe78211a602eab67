"""Functions of NumPy inside whole programs: views, growing slices, masks, places of results."""

from __future__ import annotations

import pytest

from ..elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy

PROGRAMS = (
    """\
y = np.zeros((2, 4))
y[0] = x[None, 0]
y[1:] = x[None, 1:2]
z = np.zeros(2)
z[...] = x[:1, :2]
np.copyto(z[:1], x[None, None, 0, :1])
return y, z
""",
    """\
return x[[]], x[:, []], x[[], 1:], x[[], []], v[np.array([], int)]
""",
    """\
a = np.zeros((3, 4))
r = a.reshape(-1)
r[5] = 2.0
r[:] += x.reshape(-1)
return a, r
""",
    """\
y2 = x.T
y2[0, 1] = 100.0
y2 += 1
return x
""",
    """\
f = np.flip(v)
f[0] = 9.0
return v
""",
    """\
d = np.diagonal(m).copy()
m[0, 0] = 77.0
return d, m
""",
    """\
s2 = x.reshape(3, 2, 2)
s2[:, 0, 1] = -1
return x
""",
    """\
for r in range(n):
    z2 = np.zeros(r + 1)
    z2[r] = r
    v[0] += z2.sum()
return v
""",
    """\
out = np.zeros(4)
for r in range(4):
    out[r] = np.sum(m[r, :r]) + np.dot(m[r, :r], v[:r]) + np.linalg.norm(m[:r + 1, r])
return out
""",
    """\
out = np.zeros(4)
for r in range(1, 5):
    out[r - 1] = np.max(v[:r]) + np.mean(v[:r]) + np.argmin(v[:r])
return out
""",
    """\
total = 0.0
for row in x:
    total += np.cumsum(row)[-1]
return total
""",
    """\
acc = np.zeros(3)
for r in range(3):
    acc[r] = np.sum(np.where(b[r], x[r], 0.0)) / np.sum(b[r])
return acc
""",
    """\
p2 = np.empty(4, dtype=np.float32)
p2[:] = v
return p2.astype(np.float64) + 1
""",
    """\
g = np.zeros_like(x)
np.maximum(x, 0.25, out=g)
np.add(g[0], 1, out=g[1])
np.sum(x, axis=0, out=g[2])
return g
""",
    """\
h1, e1 = np.histogram(x, 6)
return h1.sum(), e1[0], e1[-1]
""",
    """\
k1 = np.argsort(v)
return v[k1], v[k1[0]]
""",
    """\
w1 = x.copy()
w1[0] = np.sort(w1[0])
w1[1].sort()
w1[:, 2].sort()
return w1
""",
    """\
a = v * 2
b2 = a
b2[0] = 5
a += 1
return a, b2
""",
    """\
A, B = np.meshgrid(v, w)
return A @ B.T
""",
    """\
rows, cols = x.shape
o = np.ones((cols, rows))
return o * x.T, rows * cols, o.shape[0]
""",
    """\
q1, r1 = np.divmod(i, 3)
q1 = q1 + r1
return q1
""",
    """\
yy, xx = np.mgrid[-1:2, -1:2]
return np.exp(-(yy**2 + xx**2) / (2 * s**2))
""",
    """\
return np.exp(-1j * np.pi * np.arange(n) / n)
""",
    """\
out = np.zeros(4, dtype=bool)
out[:] = np.isnan(nn[:4]) | (v > 0)
return out, np.any(out), out.sum()
""",
    """\
x[b] = 0.0
return x
""",
    """\
x[b] = x[b] ** 2
return x
""",
    """\
return x[0].sum() + x.sum(axis=0)[0] + len(x) * x.shape[1]
""",
    """\
e = np.einsum('ij,jk->ik', x, m)
e -= x @ m
return np.abs(e).max() < 1e-12
""",
    """\
for t2 in range(3):
    v[1:-1] = 0.5 * (v[:-2] + v[2:])
return v
""",
    """\
a = np.arange(12).reshape(3, 4)
return a.T.reshape(2, 6), a.reshape(2, -1).T, a[::2].reshape(-1), a[:, ::-1].reshape(4, 3)
""",
    """\
m[:] = np.triu(m) + np.tril(m, -1) * 2
return m
""",
    """\
s1 = 0
for c in range(n):
    s1 += c ** 2
return s1, 2 ** n, n ** 2, n ** -1
""",
    """\
return np.sum(k, axis=1) * 1000, np.prod(k, axis=0), k @ k.T, np.trace(k[:, :3])
""",
    """\
u2 = u * 2
u2 += 10
return u2, u - u, -u, u // 3, u % 7
""",
)


@pytest.mark.parametrize("body", PROGRAMS)
def test_a_program_does_what_numpy_does(body: str) -> None:
    assert_same_as_numpy(body)


OF_A_NUMBER = (
    "np.squeeze({})", "np.ravel({})", "np.repeat({}, 4)", "np.tile({}, 4)", "np.expand_dims({}, 0)",
    "np.broadcast_to({}, (4,))", "np.atleast_1d({})", "np.atleast_2d({})", "np.atleast_3d({})",
    "np.transpose({})", "np.reshape({}, (1,))", "np.roll({}, 1)", "np.meshgrid({}, 1)[0]",
    "np.power({}, 2)", "np.power(2, {})", "np.divmod({}, 2)[0]", "np.divmod({}, 2)[1]",
    "np.angle({})", "np.modf({})[0]", "np.round({})", "np.fix({})", "np.real({})", "np.imag({})",
    "np.clip({}, 0, 3)", "np.nan_to_num({})", "np.flip({})", "np.take({}, 0)", "np.asarray({})",
    "np.dot({}, 1)", "np.kron({}, 2)", "np.einsum('->', {})", "np.einsum(',->', {}, 2)",
    "np.sum({})", "np.ptp({})", "np.shape({})", "np.size({})", "np.append({}, 1)[:1]",
    "np.cumsum({})", "np.array_equal({}, 2)",
)  # fmt: skip


@pytest.mark.parametrize("call", OF_A_NUMBER)
def test_a_function_of_a_number_of_python_gives_one_of_numpy(call: str) -> None:
    for number in ("n", "s", "3", "2.5"):
        result = call.format(number)
        product = "" if "shape" in call else f", ({result}) * k[0], ({result}) * w[:4]"
        assert_same_as_numpy(f"{result}{product}")


NUMBERS = (
    "np.power(n, 2) * k, np.power(3, 2) * k", "~np.isposinf(2.5), ~np.isneginf(s), ~np.isinf(n)",
    "np.angle(2j) * y, np.angle(1j * s) * y",
    "np.einsum('i,->i', k[0], 2), np.einsum('i,->i', w, s)",
    "s.real * y, np.real(s) * y, math.pow(s, 2) * y, divmod(n, 2)[0] * k, n**2 * k",
)  # fmt: skip


@pytest.mark.parametrize("body", NUMBERS)
def test_numbers_of_numpy_do_not_adapt(body: str) -> None:
    assert_same_as_numpy(body)


def test_a_negative_power_of_integers_is_refused() -> None:
    assert_refused_as_by_numpy("np.power(3, -1)", "CD0442", "negative integer powers")
    assert_refused_as_by_numpy("np.power(n, -1)", "CD0450", "negative integer powers")
