"""In the language of docs/language.md."""

import numpy as np

from plusequals import cd, f64


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
    """Two reductions; one of many positive terms is summed in float64."""
    m = mean(x[i, j])
    y[0] = mean((x[i, j] - m) ** 2, acc=f64)


@cd
def cumsum(y, x):
    """Array notation."""
    np.cumsum(x, out=y)
