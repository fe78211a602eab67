"""In the language of docs/language.md."""

import numpy as np

from plusequals import cd


@cd
def sum_axis0(y, x):
    y[j] = sum(x[i, j])


@cd
def sum_axis1(y, x):
    y[i] = sum(x[i, j])


@cd
def sum_all(y, x):
    y[0] = sum(x[i, j])


@cd
def mean_axis0(y, x):
    y[j] = mean(x[i, j])


@cd
def mean_axis1(y, x):
    y[i] = mean(x[i, j])


@cd
def mean_all(y, x):
    y[0] = mean(x[i, j])


@cd
def var_axis0(y, x):
    """Two reductions."""
    m[j] = mean(x[i, j])
    y[j] = mean((x[i, j] - m[j]) ** 2)


@cd
def var_axis1(y, x):
    """Two reductions."""
    m[i] = mean(x[i, j])
    y[i] = mean((x[i, j] - m[i]) ** 2)


@cd
def var_all(y, x):
    """Within the rows and between them, so that each row is read once."""
    m[i] = mean(x[i, j])
    v[i] = mean((x[i, j] - m[i]) ** 2)
    y[0] = mean(v[i]) + mean((m[i] - mean[k](m[k])) ** 2)


@cd
def cumsum(y, x):
    """Array notation."""
    np.cumsum(x, out=y)
