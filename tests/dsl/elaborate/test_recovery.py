"""All independent errors of a function are told at once, consequences of others are not."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd


def told(caught: pytest.ExceptionInfo[pe.CdError]) -> list[tuple[str, str]]:
    return [(one.code, one.labels[0].span.text) for one in caught.value.diagnostics]


def test_independent_errors_are_told_at_once() -> None:
    @cd(backend="numpy")
    def f(x):
        y = x + first * second
        z = np.nothing(x)
        w = y + third
        v = y + 1.0
        u = np.zeros(3) + np.zeros(4)
        return z + w + v + u + fourth

    with pytest.raises(pe.CdError) as caught:
        f(np.ones(3))
    assert told(caught) == [
        ("CD0201", "first"),
        ("CD0201", "second"),
        ("CD0414", "np.nothing"),
        ("CD0201", "third"),
        ("CD0302", "np.zeros(3) + np.zeros(4)"),
        ("CD0201", "fourth"),
    ]


def test_both_sides_of_branches_bodies_of_loops_and_functions() -> None:
    def helper(v):
        a = v + inside
        return a

    @cd(backend="numpy")
    def f(x, n):
        s = 0
        for q in range(n):
            s += x[q]
            s += body
        if x[0] > 1.0:
            x[1] = one
        else:
            x[1] = other
        p, q = helper(x), helper(x)
        if x[0] > 2.0:
            return x[:n]
        x[0] = last
        return p + q + s

    with pytest.raises(pe.CdError) as caught:
        f(np.ones(3), 2)
    assert [text for _, text in told(caught)] == ["body", "one", "other", "inside", "last"]


def test_a_loop_that_fails_leaves_later_loops_over_its_names_alone() -> None:
    @cd(backend="numpy")
    def f(y, x):
        for t in range(3):
            s = 0.0
            for k in range(t, 5):
                s += x[k] * y[x]
            y[t] = s
        for t in range(3):
            s = 0.0
            for k in range(t, 5):
                s += x[k] * y[t]
            y[t] = s
        s += x[k] * y[t] + unknown
        return s

    with pytest.raises(pe.CdError) as caught:
        f(np.ones(5), np.ones(5))
    assert told(caught) == [("CD0501", "y[x]"), ("CD0201", "unknown")]


def test_nothing_is_told_after_a_failed_assertion_and_of_names_that_are_letters() -> None:
    @cd(backend="numpy")
    def f(x, y):
        y[i] = x[i] + missing
        assert x.shape == unknown
        y[i] = more

    with pytest.raises(pe.CdError) as caught:
        f(np.ones(3), np.ones(3))
    assert [text for _, text in told(caught)] == ["missing", "unknown"]
