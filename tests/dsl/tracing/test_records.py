"""One assignment in the user's own source form, filled in."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

X = np.array([1.0, 2.0, 3.0])
WHOLE = np.array([1, 2, 3])
FORMS = [
    ("y[i] += x[i] * 2", "y[0] += x[0]{=1.0} * 2    0.0 -> 2.0"),
    ("y[:] = y + np.sqrt(x)", "y[0] = y[0]{=0.0} + np.sqrt(x[0]{=1.0})    0.0 -> 1.0"),
    ("y[:2] = x[1:]", "y[0] = x[1]{=2.0}    0.0 -> 2.0"),
    ("y[i] = x[2 - i] - i", "y[0] = x[2]{=3.0} - 0    0.0 -> 3.0"),
    ("y[n[i] - 1] = x[i]", "y[0] = x[0]{=1.0}    with n[0]=1    0.0 -> 1.0"),
    ("y[i] = x[n[i] - 1]", "y[0] = x[0]{=1.0}    0.0 -> 1.0"),
    ("y[i] = sum[j](x[j]) * x[i]", "y[0] = sum[j](x[j]){=6.0} * x[0]{=1.0}    0.0 -> 6.0"),
    ("y[i] = max(x[i], 1.5)", "y[0] = max(x[0]{=1.0}, 1.5)    0.0 -> 1.5"),
    ("y[i] = where(x[i] > 1, x[i], 0.5)",
     "y[0] = where(x[0]{=1.0} > 1, x[0]{=1.0}, 0.5)    0.0 -> 0.5"),
    ("y[i] = x[i]*x[i] + x[2-i]/x[2 - i]",
     "y[0] = x[0]{=1.0}*x[0]{=1.0} + x[2]{=3.0}/x[2]{=3.0}    0.0 -> 2.0"),
    ("y[i] = y[i] + y[i]", "y[0] = y[0]{=0.0} + y[0]{=0.0}    0.0 -> 0.0"),
    ("y[0] = sum(x[j]) * sum(x[j])", "y[0] = sum(x[j]){=6.0} * sum(x[j]){=6.0}    0.0 -> 36.0"),
    ("y[0] = x.sum()", "y[0] = x.sum()    0.0 -> 6.0"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "told"), FORMS)
def test_a_statement_filled_in(statement: str, told: str, backend: str) -> None:
    f = pe.cd_from_source(f"def f(x, y, n):\n    {statement}\n", {"np": np}, backend=backend)
    with pe.trace() as trace:
        f(X, np.zeros(3), WHOLE)
    assert str(trace[0]) == told
    assert trace[0].line == 2


def test_what_a_record_knows(backend: str) -> None:
    f = pe.cd_from_source(
        "def f(x, y):\n    for t in range(2):\n        y[i] -= x[i] + t\n", backend=backend
    )
    with pe.trace() as trace:
        f(X, np.zeros(3))
    last = trace[-1]
    assert (last.array, last.index, last.element, last.line) == ("y", (2,), "y[2]", 3)
    assert (last.before, last.after) == (-3.0, -7.0)
    assert last.at == {"t": 1, "i": 2}
    (operand,) = last.operands
    assert (operand.text, operand.value, operand.index) == ("x[2]", 3.0, (2,))
    assert last.order == (0, 1, 2) and trace[3].order == (0, 1, 0)


def test_a_sum_into_an_element_tells_what_it_added(backend: str) -> None:
    f = pe.cd_from_source("def f(a, y):\n    y[i] += a[i, j]\n", backend=backend)
    with pe.trace() as trace:
        f(np.arange(6.0).reshape(2, 3), np.ones(2))
    assert [(r.before, r.contribution, r.after) for r in trace] == [(1, 3, 4), (1, 12, 13)]


def test_what_is_not_evaluated_is_not_told(backend: str) -> None:
    text = "def f(x, y):\n    y[i] = x[i] if i < 1 else x[i - 1] * 2\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(X, np.zeros(3))
    assert [[o.text for o in r.operands] for r in trace] == [["x[0]"], ["x[0]"], ["x[1]"]]


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "i1", "u8", "?"])
def test_values_come_in_their_own_type(dtype: str, backend: str) -> None:
    f = pe.cd_from_source("def f(x):\n    return x.copy()\n", backend=backend)
    x = np.array([1, 0, 3]).astype(dtype)
    if dtype == "u8":
        x[0] = 2**64 - 1
    with pe.trace() as trace:
        f(x)
    assert trace[0].after.dtype == x.dtype and trace[0].after == x[0]


def test_of_two_indices_of_one_name_the_loop_is_told(backend: str) -> None:
    text = "def f(x, y):\n    for i in range(2):\n        y += x * (i + 1)\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(X, np.zeros(3))
    assert str(trace[4]) == "y[1] += x[1]{=2.0} * (1 + 1)    2.0 -> 6.0"
    assert len(trace.where("i == 0")) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("    y[i] = (x[i] + 1)\n", "y[0] = (x[0]{=1.0} + 1)"),
        ("    return (x + y)\n", "result[0] = (x[0]{=1.0} + y[0]{=0.0})"),
        ("    y[i] = (x[i] +\n            x[i])\n", "y[0] = x[0]{=1.0} + x[0]{=1.0}"),
    ],
)
def test_brackets_and_several_lines(text: str, told: str) -> None:
    f = pe.cd_from_source(f"def f(x, y):\n{text}")
    with pe.trace() as trace:
        f(X, np.zeros(3))
    assert trace[0].text == told


def test_letters_in_texts_and_keywords_stay() -> None:
    text = """def f(a, b):
    c = np.einsum("ij,jk", a, b)
    y[i, j] = c[i, j] + where(i == j, 1.0, 0.0)
    return y
"""
    f = pe.cd_from_source(text, {"np": np})
    with pe.trace() as trace:
        f(np.eye(2), np.eye(2))
    assert trace[0].text.startswith('c[0, 0] = np.einsum("ij,jk", a, b)')
    assert trace[4].text == "y[0, 0] = c[0, 0]{=1.0} + where(0 == 0, 1.0, 0.0)"


def test_parts_and_things_read_together_are_told_apart() -> None:
    swap, add = "x[0], x[1] = x[1], x[0]", "y[0] += np.median(x)"
    text = f"def f(x, y):\n    {swap}\n    {add}\n    y[i] -= x[j]\n"
    f = pe.cd_from_source(text, {"np": np})
    with pe.trace() as trace:
        f(np.array([1.0, 3.0]), np.zeros(1))
    assert [r.text for r in trace.where(array="x")] == ["x[0] = part{=3.0}", "x[1] = part{=1.0}"]
    *_, median, total = [r.text for r in trace]
    assert median.startswith("y[0] += np.median(x){") and "=3.0" in median and "=1.0" in median
    assert total == "y[0] -= x[j]{sum=4.0}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x[x > 0.5].mean()", "x[x > 0.5].mean(){sum=3.0, count=2}"),
        ("np.ptp(x)", "np.ptp(x){max=2.0, min=0.0}"),
        ("x.mean()", "x.mean(){sum=3.0}"),
    ],
)
def test_reductions_at_one_place_have_their_own_names(text: str, shown: str, backend: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    m = {text}\n    return m", {"np": np}, backend=backend)
    with pe.trace() as trace:
        f(np.arange(3.0))
    assert trace[0].text == f"m = {shown}"
