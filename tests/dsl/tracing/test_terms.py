"""Each term of a reduction, where a trace is asked for them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.tracing.why import Part

from .functions import CALLS, matrix

TEXT = """def f(y, a, x):
    y[i] += a[i, j] * x[j]
    s[i] = sum[k <= i](a[i, k]) / max[k](a[i, k]) if x[0] > 0 else 0.0
    return s
"""


def traced(backend: str, **wanted: object) -> pe.Trace:
    f = pe.cd_from_source(TEXT, backend=backend)
    with pe.trace(terms=True, **wanted) as trace:
        f(np.ones(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 100.0]))
    return trace


def test_every_term_of_every_record(backend: str) -> None:
    trace = traced(backend)
    assert [[str(term) for term in trace.terms(record)] for record in trace] == [
        ["sum[j = 0]: a[0, 0]{=1.0} * x[0]{=10.0} = 10.0",
         "sum[j = 1]: a[0, 1]{=2.0} * x[1]{=100.0} = 200.0"],
        ["sum[j = 0]: a[1, 0]{=3.0} * x[0]{=10.0} = 30.0",
         "sum[j = 1]: a[1, 1]{=4.0} * x[1]{=100.0} = 400.0"],
        ["sum[k = 0]: a[0, 0]{=1.0}", "max[k = 0]: a[0, 0]{=1.0}", "max[k = 1]: a[0, 1]{=2.0}"],
        ["sum[k = 0]: a[1, 0]{=3.0}", "sum[k = 1]: a[1, 1]{=4.0}",
         "max[k = 0]: a[1, 0]{=3.0}", "max[k = 1]: a[1, 1]{=4.0}"],
    ]  # fmt: skip
    assert len(trace) == 4 and trace.dropped == 0


def test_terms_stand_below_their_record() -> None:
    trace = traced("cc")
    assert "    sum[j = 0]: a[0, 0]{=1.0} * x[0]{=10.0} = 10.0" in str(trace)
    page = trace.to_html()
    assert '<details class="record"><summary>' in page and '<div class="term">sum[j = 0]' in page
    told = json.loads(trace.to_json())["records"]
    assert told[0]["contribution"] == 210.0
    assert [term["value"] for term in told[0]["terms"]] == [10.0, 200.0]
    assert [term["at"] for term in told[0]["terms"]] == [{"j": 0}, {"j": 1}]


def test_why_names_the_terms() -> None:
    made = traced("cc").why("y", 1)
    assert str(made).splitlines()[1:5] == [
        "├─ y[1] = 1.0",
        "├─ sum[j = 1]: a[1, 1]{=4.0} * x[1]{=100.0} = 400.0",
        "│  ├─ a[1, 1] = 4.0",
        "│  └─ x[1] = 100.0",
    ]
    assert isinstance(made.causes[1], Part) and made.causes[1].term.value == 400.0
    x = matrix()
    x[1, 2] = np.nan
    with pe.trace(terms=True) as trace:
        CALLS["softmax"][0](x)
    assert "sum[j = 2]" in str(trace.why("result", (1, 0))) or "{=nan}" in str(trace)


@pytest.mark.parametrize("name", CALLS)
def test_terms_add_up_in_order(name: str, backend: str) -> None:
    function, make = CALLS[name]
    with pe.override(profile="strict"), pe.trace() as plain:
        function.on(backend)(*make())
    with pe.trace(terms=True) as trace:
        function.on(backend)(*make())
    assert [str(r) for r in trace] == [str(r) for r in plain] and trace.diff(trace) is None
    for record in trace:
        terms = trace.terms(record)
        if terms and record.contribution is not None:
            assert sum(term.value for term in terms) == record.contribution


def test_of_what_is_left_out_there_are_no_terms(backend: str) -> None:
    trace = traced(backend, arrays="y", where="i == 1")
    assert [[str(term)[:10] for term in trace.terms(r)] for r in trace] == [
        ["sum[j = 0]", "sum[j = 1]"]
    ]
    assert trace.why("y", 1).causes[1] == traced(backend).why("y", 1).causes[1] or len(trace) == 1
