"""In the language of docs/language.md: what the formula says."""

from plusequals import cd


@cd
def gemm_f32(c, a, b):
    c[i, j] = sum(a[i, k] * b[k, j])


@cd
def gemm_f64(c, a, b):
    c[i, j] = sum(a[i, k] * b[k, j])


@cd
def gemv(y, a, x):
    y[i] = sum(a[i, k] * x[k])


@cd
def mttkrp(y, x, b, c):
    """The first product is shared by all that the second makes of it."""
    t[i, j, r] = sum(x[i, j, k] * c[k, r])
    y[i, r] = sum(t[i, j, r] * b[j, r])


@cd
def contraction(c, a, b):
    c[i, j, k, l] = sum(a[e, i, f, k] * b[j, f, l, e])


@cd
def syrk(c, a):
    """The upper half is written once and never computed."""
    c[:] = 0
    if j <= i:
        c[i, j] = sum(a[i, k] * a[j, k])


@cd
def carried(m, a):
    """Each product is carried to the next one."""
    m[i, j] = 1.0 if i == j else 0.0
    for t in range(len(a)):
        m[:] = m @ a[t]
