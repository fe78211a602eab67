"""In the language of docs/language.md."""

from plusequals import cd


@cd
def conv_nhwc(y, x, w):
    y[n, h, v, o] = sum(x[n, h + r, v + q, c] * w[r, q, c, o])


@cd
def conv_nhwc_bias_relu(y, x, w, bias):
    y[n, h, v, o] = max(0, bias[o] + sum(x[n, h + r, v + q, c] * w[r, q, c, o]))


@cd
def conv_nchw(y, x, w):
    y[n, o, h, v] = sum(x[n, c, h + r, v + q] * w[o, c, r, q])


@cd
def conv_nchw_bias_relu(y, x, w, bias):
    y[n, o, h, v] = max(0, bias[o] + sum(x[n, c, h + r, v + q] * w[o, c, r, q]))


@cd
def max_pool(y, x):
    y[n, h, v, c] = max[r in range(2), q in range(2)](x[n, 2 * h + r, 2 * v + q, c])


@cd
def mlp_step(v1, c1, v2, c2, x, target, w1, b1, w2, b2, rate):
    """Forward, backward, and the update, fused where they meet."""
    h[n, i] = max(0, b1[i] + sum(x[n, k] * w1[k, i]))
    z[n, o] = b2[o] + sum(h[n, i] * w2[i, o])
    m[n] = max(z[n, o])
    e[n, o] = exp(z[n, o] - m[n])
    t[n] = 1 / sum(e[n, o])
    d[n, o] = (e[n, o] * t[n] - target[n, o]) * (1 / len(x))
    back[n, i] = sum(d[n, o] * w2[i, o]) if h[n, i] > 0 else 0
    v1[k, i] = w1[k, i] - rate * sum(x[n, k] * back[n, i])
    c1[i] = b1[i] - rate * sum(back[n, i])
    v2[i, o] = w2[i, o] - rate * sum(h[n, i] * d[n, o])
    c2[o] = b2[o] - rate * sum(d[n, o])


@cd
def attention(y, q, k, v, scale):
    """Scores, a softmax, and the mean under it, divided by at the end."""
    s[b, h, i, j] = scale * sum(q[b, h, i, d] * k[b, h, j, d])
    m[b, h, i] = max(s[b, h, i, j])
    p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
    z[b, h, i] = 1 / sum(p[b, h, i, j])
    y[b, h, i, d] = z[b, h, i] * sum(p[b, h, i, j] * v[b, h, j, d])
