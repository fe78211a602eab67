"""The worked examples of the language page. They are read by the compiler, never run by Python."""

# ruff: noqa: B007 (the loop variable of a time loop)

from plusequals import cd


@cd
def gemm_ab(c, a, b, alpha, beta):
    c[i, j] = beta * c[i, j] + alpha * sum(a[i, k] * b[k, j])


@cd
def conv2d(y, x, w, bias, stride, p):
    y[n, o, h, v] = bias[o] + sum(
        x[n, c, pad(h * stride + r - p), pad(v * stride + q - p)] * w[o, c, r, q]
    )


@cd
def conv1d_valid(x, w):
    y[i] = sum(x[i + k] * w[k])
    return y


@cd
def softmax(y, x):
    with comment("stable softmax over the last axis"):
        m[i] = max(x[i, j])
        e[i, j] = exp(x[i, j] - m[i])
        y[i, j] = e[i, j] / sum[k](e[i, k])


@cd
def attention(o, q, k, v, scale):
    s[h, i, j] = where(j <= i, scale * sum(q[h, i, d] * k[h, j, d]), -inf)
    m[h, i] = max(s[h, i, j])
    p[h, i, j] = exp(s[h, i, j] - m[h, i])
    z[h, i] = sum(p[h, i, j])
    o[h, i, d] = sum(p[h, i, j] * v[h, j, d]) / z[h, i]


@cd
def jacobi(a, steps):
    for t in range(steps):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


@cd
def cholesky(L, a, n):
    for j in range(n):
        L[j, j] = sqrt(a[j, j] - sum[k < j](L[j, k] * L[j, k]))
        if i > j:
            L[i, j] = (a[i, j] - sum[k < j](L[i, k] * L[j, k])) / L[j, j]


@cd
def lu(a, n):
    for k in range(n):
        if i > k:
            a[i, k] /= a[k, k]
        if i > k and j > k:
            a[i, j] -= a[i, k] * a[k, j]


@cd
def histogram(h, x, w):
    h[x[n]] += w[n]


@cd
def embed(y, table, ids):
    y[b, t, d] = table[ids[b, t], d]


@cd
def maxpool(y, x, k):
    y[c, h, v] = max[r in range(k), q in range(k)](x[c, h * k + r, v * k + q])


@cd
def layernorm(y, x, gamma, beta, eps):
    mu[i] = mean(x[i, j])
    var[i] = mean((x[i, j] - mu[i]) ** 2)
    y[i, j] = (x[i, j] - mu[i]) / sqrt(var[i] + eps) * gamma[j] + beta[j]


@cd
def cumsum(y, x):
    y[i] = sum[k <= i](x[k])


@cd
def assign(label, pts, cen):
    d[n, c] = sum((pts[n, k] - cen[c, k]) ** 2)
    label[n] = argmin[c](d[n, c])


@cd
def advect(u, c, steps):
    for t in range(steps):
        u[i] = u[i] - c * (u[i] - u[wrap(i - 1)])


@cd
def dot_f64(out, a, b):
    out[0] = f32(sum(a[i] * b[i], acc=f64))


@cd
def sgd(p, lr, momentum, decay):
    with comment("sgd update"):
        g = p.grad + decay * p.value
        p.vel = momentum * p.vel + g
        p.value -= lr * p.vel


@cd
def merge_grad(p):
    p.grad += p.grad.merge


@cd
def set_grad(p, g):
    p.grad = g


@cd
def get_grad(g, p):
    g[...] = p.grad


@cd
def set_velocity(p, v):
    p.vel = v


@cd
def get_velocity(v, p):
    v[...] = p.vel
