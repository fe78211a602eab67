"""What arrays are called where a statement stands."""

from __future__ import annotations

import numpy as np

import plusequals as pe

SWAPPED = """def f(x):
    a = x * 2
    b = x + 1
    a, b = b, a
    a[0] = 100.0
    return a - b
"""


def traced(text: str, *arguments: object, **wanted: object) -> pe.Trace:
    scope = {
        "twice": pe.cd_from_source("def twice(v):\n    return v * 2\n"),
        "local": pe.cd_from_source("def local(v):\n    w = v + 1\n    return w\n"),
    }
    f = pe.cd_from_source(text, scope, backend="numpy")
    with pe.trace(**wanted) as trace:  # type: ignore[arg-type]
        f(*arguments)
    return trace


def lines(text: str, *arguments: object, **wanted: object) -> list[str]:
    return [record.text for record in traced(text, *arguments, **wanted)]


def test_names_that_were_exchanged() -> None:
    trace = traced(SWAPPED, np.array([1.0]))
    assert [record.text for record in trace] == [
        "a[0] = x[0]{=1.0} * 2", "b[0] = x[0]{=1.0} + 1", "a[0] = 100.0",
        "result[0] = a[0]{=100.0} - b[0]{=2.0}",
    ]  # fmt: skip
    assert trace[-1].after == 98.0
    assert trace.why("a", 0).record.text == "a[0] = 100.0"
    assert trace.why("b", 0).record.text == "a[0] = x[0]{=1.0} * 2"
    assert {r.text for r in trace.where(array="a")} == {"a[0] = x[0]{=1.0} * 2", "a[0] = 100.0"}
    assert trace.records()["array"].tolist() == ["a", "b", "a", "result"]
    only = traced(SWAPPED, np.array([1.0]), arrays="a")
    assert [record.text for record in only] == ["a[0] = x[0]{=1.0} * 2", "a[0] = 100.0"]


def test_names_in_loops_and_of_arguments() -> None:
    text = """def f(x, y, n):
    a = x * 1
    b = x * 2
    for k in range(n):
        a, b = b, a
        a[0] = k
    x, y = y, x
    x[0] = 7.0
    z = y
    z[0] = 8.0
    return a + b
"""
    found = lines(text, np.array([1.0]), np.array([2.0]), 2)
    assert found[2:-1] == ["a[0] = 0", "a[0] = 1", "x[0] = 7.0", "y[0] = 8.0"]
    assert "a[0]{=1.0} + b[0]{=0.0}" in found[-1]


def test_what_a_function_returned_is_called_as_it_is_bound() -> None:
    text = "def f(x):\n    a = twice(x)\n    a[0] += 5\n    return a\n"
    trace = traced(text, np.array([1.0]), arrays="a")
    assert [r.text for r in trace] == ["a[0] = v * 2    with x[0]=1.0", "a[0] += 5"]
    assert trace.why("a", 0).record.after == 7.0 == trace.why("result", 0).record.after
    text = "def f(x):\n    c = local(x)\n    c[0] = 3.0\n    c = c * 2\n    return c\n"
    found = lines(text, np.array([1.0]))
    assert found[0].startswith("w[0] = ") and found[1] == "c[0] = 3.0"
    assert found[2] == "c[0] = c[0]{=3.0} * 2"


def test_another_name_of_the_same_array_changes_nothing() -> None:
    text = "def f(x):\n    y = x\n    y[0] = 1.0\n    v = x[1:]\n    v[0] = 2.0\n"
    assert lines(text, np.zeros(2)) == ["x[0] = 1.0", "x[1] = 2.0"]
    text = "def f(x):\n    y = x\n    x = y + 1\n    y[0] = 1.0\n    return x\n"
    assert lines(text, np.zeros(1))[1:] == ["y[0] = 1.0"]


def test_arrays_that_calls_make_are_called_after_them() -> None:
    text = (
        "def f(x):\n    return np.linspace(0, x[0], 3) + np.linspace(0, x[1], 3)"
        " + np.cumsum(x) + np.sort(x)\n"
    )
    with pe.override("numpy"), pe.trace() as trace:
        pe.cd_from_source(text, {"np": np})(np.arange(1.0, 4.0))
    told = str(trace)
    for name in ("linspace_step = ", "linspace_step_2 = ", "cumsum_running[0] = ", "sorted[0] = "):
        assert name in told
    assert "others" not in told  # what only the function of the library looks at
