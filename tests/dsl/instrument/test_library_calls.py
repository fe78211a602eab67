"""What functions of the library do inside is one assignment of the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdIndexError

TEXT = """def f(x, y):
    p = x[0] * 2
    q = p + 1
    s = np.sort(x)
    y[0] = s[0] + q
    return s
"""


def traced(text: str, backend: str, *args: Any, **wanted: Any) -> pe.Trace:
    f = pe.cd_from_source(text, {"np": np}, backend=backend)
    with pe.trace(**wanted) as trace:
        f(*args)
    return trace


def given() -> tuple[np.ndarray, np.ndarray]:
    return np.array([3.0, 1.0, 2.0]), np.zeros(1)


def test_names_of_the_library_do_not_answer_for_the_users(backend: str) -> None:
    trace = traced(TEXT, backend, *given())
    assert str(trace.why("p")) == ("p = x[0]{=3.0} * 2    0.0 -> 6.0    line 2\n└─ x[0] = 3.0")
    assert str(trace.why("q").record) == "q = p{=6.0} + 1    0.0 -> 7.0"
    assert [str(r) for r in trace.where(array="p")] == ["p = x[0]{=3.0} * 2    0.0 -> 6.0"]
    assert {record.array for record in trace} == {"p", "q", "s", "y"}
    assert {record.line for record in trace} == {2, 3, 4, 5}
    few = traced(TEXT, backend, *given(), arrays="p")
    assert [str(r) for r in few] == ["p = x[0]{=3.0} * 2    0.0 -> 6.0"]


def test_a_call_is_told_by_what_it_comes_to(backend: str) -> None:
    trace = traced(TEXT, backend, *given())
    assert [str(r) for r in trace.where(array="s")[3:]] == [
        "s[0] = np.sort(x)    3.0 -> 1.0",
        "s[1] = np.sort(x)    1.0 -> 2.0",
        "s[2] = np.sort(x)    2.0 -> 3.0",
    ]
    assert str(trace.why("s", 0)) == (
        "s[0] = np.sort(x)    3.0 -> 1.0    line 4, i = 0\n"
        "├─ s[0] = x[0]{=3.0}    0.0 -> 3.0    line 4, i = 0\n"
        "│  └─ x[0] = 3.0\n"
        "├─ s[2] = x[2]{=2.0}    0.0 -> 2.0    line 4, i = 2\n"
        "│  └─ x[2] = 2.0\n"
        "├─ s[1] = x[1]{=1.0}    0.0 -> 1.0    line 4, i = 1\n"
        "│  └─ x[1] = 1.0\n"
        "└─ (all that the call reads: which of it this element takes is not recorded)"
    )


def test_what_is_sorted_in_place_is_what_changed(backend: str) -> None:
    text = "def f(x):\n    for k in range(2):\n        x[k].sort()\n"
    trace = traced(text, backend, np.array([[3.0, 1.0, 2.0], [9.0, 7.0, 5.0]]))
    assert [str(r) for r in trace] == [
        "x[0, 0] = x[k].sort()    3.0 -> 1.0",
        "x[0, 1] = x[k].sort()    1.0 -> 2.0",
        "x[0, 2] = x[k].sort()    2.0 -> 3.0",
        "x[1, 0] = x[k].sort()    9.0 -> 5.0",
        "x[1, 2] = x[k].sort()    5.0 -> 9.0",
    ]


@pytest.mark.parametrize("wanted", [{}, {"limit": 1000}, {"first_nan": True}], ids=str)
def test_a_call_with_two_results(wanted: dict[str, Any], backend: str) -> None:
    text = "def f(a):\n    s, l = np.linalg.slogdet(a)\n    return s * l\n"
    trace = traced(text, backend, np.array([[2.0, 1.0], [1.0, 3.0]]), **wanted)
    told = [(r.before, round(r.after, 3)) for r in trace if r.text.endswith("slogdet(a)")]
    assert told[:2] == ([] if "first_nan" in wanted else [(0.0, 1.0), (0.0, 1.609)])


def test_what_a_call_reads_stands_behind_it(backend: str) -> None:
    text = "def f(a, b):\n    b = b * 2\n    z = np.linalg.solve(a, b)\n    return z\n"
    trace = traced(text, backend, np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 6.0]))
    why = str(trace.why("z", 1))
    assert why.startswith("z[1] = np.linalg.solve(a, b)    12.0 -> 3.0    line 3")
    assert "├─ a[1, 1] = 4.0" in why and "b[1] = b[1]{=6.0} * 2    0.0 -> 12.0    line 2" in why
    with pytest.raises(CdIndexError):
        trace.why("p")


def test_a_call_that_fails_leaves_no_record(backend: str) -> None:
    f = pe.cd_from_source("def f(a):\n    return np.linalg.inv(a)\n", {"np": np}, backend=backend)
    with pytest.raises(pe.CdError, match="singular"), pe.trace() as trace:
        f(np.ones((2, 2)))
    assert trace.runs[0].error and not [r for r in trace if r.site.reads is not None]
