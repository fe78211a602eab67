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
