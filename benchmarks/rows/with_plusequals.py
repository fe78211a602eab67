"""In the language of docs/language.md."""

from plusequals import cd


@cd
def softmax(y, x):
    """Three statements that become one pass over each row."""
    m[i] = max(x[i, j])
    e[i, j] = exp(x[i, j] - m[i])
    y[i, j] = e[i, j] / sum[k](e[i, k])


@cd
def layer_norm(y, x, gain, shift, epsilon):
    """Mean and variance as reductions."""
    m[i] = mean(x[i, j])
    v[i] = mean((x[i, j] - m[i]) ** 2)
    s[i] = 1 / sqrt(v[i] + epsilon)
    y[i, j] = (x[i, j] - m[i]) * s[i] * gain[j] + shift[j]
