"""The answers of a trace, one call each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import plusequals as pe

from .functions import CALLS, matrix, softmax


def test_each_question_has_one_call(tmp_path: Path, backend: str) -> None:
    x = matrix()
    x[2, 1] = np.inf
    with pe.trace() as trace:
        softmax.on(backend)(x)
    with pe.trace() as other:
        softmax.on(backend)(matrix())
    wrong = trace.first_nonfinite()
    assert wrong is not None and wrong.index == (2, 1) and "inf" in str(wrong)
    assert "x[2, 1] = inf" in str(trace.why("result", (2, 1)))
    assert trace.diff(other) is not None and trace.diff(trace) is None
    assert trace.to_html(tmp_path / "t.html").startswith("<!doctype html>")
    assert len(trace.records()) == len(trace) == len(list(trace))
    assert str(trace).startswith(f"      softmax on {backend}")


def test_a_number_may_stand_for_an_index_of_one() -> None:
    function, make = CALLS["swapped"]
    with pe.trace() as trace:
        function(*make())
    assert str(trace.why("result", 0)) == str(trace.why("result", (0,)))


def test_what_a_trace_answers_is_short_to_look_at() -> None:
    with pe.trace() as trace:
        softmax.on("numpy")(matrix())
    records = list(trace)
    assert repr(trace) == f"<trace of 1 run of softmax: {len(records)} records>"
    assert "<iframe srcdoc=" in trace._repr_html_() and "&lt;!doctype html" in trace._repr_html_()
    assert repr(records[0]) == f"<record {records[0].order}: {records[0]}>"
    first = records[0].operands[0]
    assert repr(first) == f"<operand {first.text} = {first.value}>"
    why = trace.why("result", (0, 1))
    assert repr(why) == str(why) and why._repr_html_().startswith("<pre>")
    shown = [*records, *trace.runs, *trace.groups, why.causes[0], *trace.terms(records[-1])]
    assert max(len(repr(one)) for one in shown) < 600
    compared = pe.compare(softmax, (matrix(),))
    assert repr(compared) == str(compared)
