"""What `explain` says: each section is there, is true, and asking changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME

SCALE = "def scale(y, x):\n    y[i] = rate * x[i]\n"
TITLES = (
    "called with", "why it was compiled", "where the code came from", "assignments", "loops",
    "places", "source",
)  # fmt: skip


def fresh(**names: Any) -> Any:
    """A function that has never been called."""
    return pe.cd_from_source(SCALE, {"rate": 2.0, **names})


def test_every_section_is_in_the_text() -> None:
    f = fresh()
    x = np.zeros((3,), "f4")
    f(x, x.copy())
    explained = f.explain(x, x.copy())
    text = str(explained)
    places = [text.index(f"\n{title}\n{'-' * len(title)}\n") for title in TITLES]
    assert places == sorted(places)
    assert explained.called == (
        "y: an array f32[3]\nx: an array f32[3]\nrate: 2.0\non the backend `cc`"
    )
    assert explained.why == "this is the first call of the function"
    assert explained.assignments.splitlines()[0] == (
        "procedure scale(y: f32[3] written, x: f32[3]):"
    )
    assert "kernel scale:" in explained.loops and "for i in 0..3" in explained.loops
    assert explained.places.splitlines()[0] == "y  parameter  the caller provides it"
    assert "void **args" in explained.source
    assert repr(explained) == text


def test_the_backend_that_runs_assignments_has_no_loops() -> None:
    with pe.override("numpy"):
        explained = fresh().explain(np.zeros(2), np.zeros(2))
    assert (explained.loops, explained.places) == ("", "")
    assert explained.origin.startswith("not compiled: the backend runs the assignments")
    assert "\nloops\n" not in str(explained)
    assert explained.source == explained.assignments


def test_where_the_code_came_from(tmp_path: Path) -> None:
    x = np.zeros(7)
    with pe.override(cache_dir=str(tmp_path)):
        f = pe.cd_from_source("def only_here(x):\n    return x * 3.25 + 1.125\n", {})
        f(x)
        again = pe.cd_from_source("def only_here(x):\n    return x * 3.25 + 1.125\n", {})
        again(x)
        first, second = f.explain(x).origin, again.explain(x).origin
    assert first.startswith("compiled in ") and " ms" in first
    assert second.startswith("equal code was loaded already")


def test_explaining_runs_nothing_and_decides_nothing() -> None:
    f = fresh()
    x, y = np.ones(3), np.zeros(3)
    before = f.explain(y, x)
    assert before.why == "this is the first call of the function"
    assert "no such call was made so far" in before.origin
    np.testing.assert_array_equal(y, np.zeros(3))
    f(y, x)
    after = f.explain(y, x)
    assert after.why == before.why
    assert "no such call was made" not in after.origin
    f.explain(np.zeros(5), np.zeros(5))
    f(np.zeros(4), np.zeros(4))
    assert "has shape (4,), and had (3,)" in f.explain(np.zeros(4), np.zeros(4)).why


def test_explaining_does_not_make_a_parameter_static() -> None:
    f = pe.cd_from_source(
        "def f(x, n):\n    if n > 2:\n        return x + n\n    return x[:n]\n", {}
    )
    x = np.zeros(3)
    known = f.specialise(x, 1)
    for n in (1, 2, 5):
        f.explain(x, n)
    assert f.specialise(x, 1) is known


def test_explaining_tells_of_run_time_sizes_before_and_after_the_call() -> None:
    f = fresh()
    calls = [(np.zeros(n), np.ones(n)) for n in range(2, 8)]
    told = []
    for y, x in calls:
        before = f.explain(y, x)
        f(y, x)
        after = f.explain(y, x)
        assert (before.why, before.loops) == (after.why, after.loops)
        np.testing.assert_array_equal(y, 2 * x)
        told.append(after.why)
    assert "any size" in told[3] and told[3] == told[4] == told[5]


def test_explaining_what_is_known_compiles_nothing() -> None:
    f = fresh()
    x = np.zeros(3)
    f(x, x.copy())
    counts = RUNTIME.counts()
    f.explain(x, x.copy())
    f.procedure(np.zeros(9), np.zeros(9))
    assert RUNTIME.counts() == counts


def test_the_procedure_is_what_would_be_compiled() -> None:
    f = fresh()
    procedure = f.procedure(np.zeros((4,), "f4"), np.zeros((4,), "f4"))
    assert procedure.name == "scale"
    assert [p.written for p in procedure.parameters] == [True, False]
    assert procedure.parameters[0].node.static_shape == (4,)


def test_what_cannot_be_compiled_cannot_be_explained() -> None:
    f = fresh()
    for ask in (f.explain, f.procedure):
        with pytest.raises(pe.CdError):
            ask(np.zeros(3), np.zeros(4))
