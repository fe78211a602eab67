"""What `explain` says: each section is there, is true, and asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME

SCALE = "def scale(y, x):\n    y[i] = rate * x[i]\n"
TITLES = (
    "called with", "why it was compiled", "where the code came from", "arrays", "work of one call",
    "the function", "assignments", "loops, beside them the line of the function",
    "code, beside it the line of the function",
)  # fmt: skip
SOFTMAX = """\
def softmax(y, x):
    m[i] = max(x[i, j])
    e[i, j] = exp(x[i, j] - m[i])
    y[i, j] = e[i, j] / sum[k](e[i, k])
"""
MIXED = """\
def mixed(y, t, p, x):
    unused = np.exp(x)
    half = 0.5 * x
    y[i] = sum[c](where(c == p[i], t[i, c], 0.0))
    total = np.zeros(8)
    total[:] = half * half
    for k in range(3):
        y[i] += total[i] * (np.sqrt(x[0]) + 1)
"""


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
    assert explained.places.splitlines()[1].split(maxsplit=4) == [
        "y", "f32[3]", "2", "hosted,", "written  the caller provides it"
    ]  # fmt: skip
    assert "void **args" in explained.code
    assert explained.generated[0].text.startswith("static int scale_body(")
    assert len(explained.code.splitlines()) == len(explained.prelude) + len(explained.generated)
    assert f"the prelude above it, {len(explained.prelude)} lines; `.code` has all" in text
    assert "peak temporary memory" in explained.work
    assert explained.choices == ""
    assert repr(explained) == text


def test_a_whole_text(golden: Callable[[str], Callable[[str], None]]) -> None:
    f = pe.cd_from_source(SOFTMAX, {})
    explained = f.explain(np.zeros((6, 4), "f4"), np.zeros((6, 4), "f4"))
    settled = replace(
        explained,
        origin="compiled",
        prelude=explained.prelude[:3],
        generated=explained.generated[-4:],
    )
    golden("softmax.txt")(str(settled))
    assert max(map(len, str(settled).splitlines())) <= 100


def test_every_pass_has_its_say_in_the_order_of_the_source(
    golden: Callable[[str], Callable[[str], None]],
) -> None:
    f = pe.cd_from_source(MIXED, {"np": np})
    arguments = np.zeros(8), np.ones((8, 9)), np.zeros(8, "i8"), np.ones(8)
    explained = f.explain(*arguments)
    golden("mixed.txt")(f"{explained.places}\n\n{explained.choices}\n\n{explained.work}")
    lines = [told.span.line for told in explained.decisions]
    assert lines == sorted(lines)
    assert len(set(explained.decisions)) == len(explained.decisions)
    rows = {row.name: row for row in explained.arrays}
    assert rows["half"].mode == "virtual" and rows["half"].span.line == 3
    assert rows["unused"].mode == "not computed"
    assert all(row.why for row in explained.arrays)


def test_the_reason_of_an_array_is_the_one_that_decided_also_where_threads_have_copies() -> None:
    f = pe.cd_from_source(SOFTMAX, {})
    with pe.override(threads=2):
        told = f.explain(np.zeros((4000, 2000), "f4"), np.zeros((4000, 2000), "f4"))
    rows = {row.name: row for row in told.arrays}
    assert rows["e"].mode == "local, f32[2000] of each thread"
    assert rows["e"].why.startswith("each iteration of its loops writes that part before it reads")
    assert "not virtual: " in rows["e"].why
    assert rows["e"].why.endswith("each thread that runs the loop has a copy")


def test_an_array_that_is_gone_keeps_its_name_and_reason() -> None:
    text = """\
def f(y, x, rate):
    z = x * rate
    y[i] = z[i] + exp(rate * 2 + 1)
"""
    told = pe.cd_from_source(text, {}).explain(np.zeros(9), np.ones(9), 0.5)
    rows = {row.name: row for row in told.arrays}
    assert rows["z"].mode == "virtual" and "z" not in told.loops.split("kernel")[0]
    assert any("before the loop" in one.sentence for one in told.decisions)


def test_numbers_are_those_of_the_call() -> None:
    text = "def f(y, x, n):\n    for t in range(n):\n        y[i] += x[i] * 0.5\n"
    f = pe.cd_from_source(text, {})
    for size in range(3, 8):
        f(np.zeros(size), np.ones(size), 2)
    for size, times in ((40, 3), (50, 7)):
        counts = f.explain(np.zeros(size), np.ones(size), times).counts
        assert counts is not None
        assert counts.operations["mul"] == size * times
        assert counts.least == 3 * 8 * size
        assert counts.assumed == ()


def test_what_was_inlined_is_shown_with_its_own_lines() -> None:
    helper = pe.cd_from_source("def half(x):\n    return 0.5 * x\n", {}, "helper.py")
    f = pe.cd_from_source("def f(y, x):\n    y[:] = half(x) + 1\n", {"half": helper})
    explained = f.explain(np.zeros(3), np.ones(3))
    texts = [line.text for line in explained.written]
    assert texts[:2] == ["def f(y, x):", "    y[:] = half(x) + 1"]
    if len(texts) > 2:  # nothing of the helper may be left as a statement of its own
        assert "# helper.py" in texts and "    return 0.5 * x" in texts


def test_a_page_is_returned_written_and_shown_in_notebooks(tmp_path: Path) -> None:
    explained = fresh().explain(np.zeros(3), np.zeros(3))
    path = tmp_path / "page.html"
    page = explained.to_html(path)
    assert page == path.read_text(encoding="utf-8") == explained.to_html()
    frame = explained._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and "&lt;!doctype html&gt;" in frame
    with pytest.raises(OSError):
        explained.to_html(tmp_path / "nowhere" / "page.html")


def test_the_backend_that_runs_assignments_has_no_loops() -> None:
    with pe.override("numpy"):
        explained = fresh().explain(np.zeros(2), np.zeros(2))
    empty = (explained.loops, explained.places, explained.choices, explained.work)
    assert empty == ("", "", "", "")
    assert explained.origin.startswith("not compiled: the backend runs the assignments")
    assert "\nloops" not in str(explained)
    assert explained.code == explained.assignments
    assert [line.span for line in explained.generated] == [line.span for line in explained.meaning]


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


def test_explaining_tells_which_integers_are_static_and_why() -> None:
    text = "def f(x, n, m):\n    y = x.reshape(n, -1) * m\n    return y\n"
    f = pe.cd_from_source(text, {}, backend="numpy")
    called = f.explain(np.zeros(6), 2, 5).called
    assert "n: 2, static: line 2 needs its value, `y = x.reshape(n, -1) * m`" in called
    assert "m: a Python int\n" in called
    g = pe.cd_from_source("def f(n):\n    return np.zeros(n)\n", {"np": np}, backend="numpy")
    for n in (2, 3, 4, 5):
        g(n)
    assert "n: a Python int of any value\n" in g.explain(6).called


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


def test_a_request_that_leaves_the_mode_open_does_not_rename_it() -> None:
    text = "def f(y, x):\n    {}\n    y[i] = x[i] * 2\n"
    plain = pe.cd_from_source(text.format("pass")).explain(np.zeros(4), np.zeros(4)).arrays
    for name in "yx":
        asked = pe.cd_from_source(text.format(f'memory({name}, "never virtual")'))
        rows = asked.explain(np.zeros(4), np.zeros(4)).arrays
        assert [row.mode for row in rows] == [row.mode for row in plain]
        assert any("asks for never virtual" in row.why for row in rows)


def test_what_nobody_reads_is_not_computed_whatever_was_asked() -> None:
    text = "def f(y, x):\n    t[i] = x[i] * 2\n    memory(t, 'local')\n    y[i] = x[i]\n"
    rows = pe.cd_from_source(text).explain(np.zeros(4), np.zeros(4)).arrays
    assert {row.name: row.mode for row in rows}["t"] == "not computed"


def test_of_library_functions_only_arrays_are_shown_and_rounds_are_not_made_up() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[:] = np.sort(x)\n", {"np": np})
    told = function.explain(np.zeros(64), np.zeros(64))
    assert {row.name for row in told.arrays if "[" not in row.type} == set()
    assert {"y", "x", "sorted", "others"} <= {row.name for row in told.arrays}
    work = " ".join(told.work.split())
    assert "with one iteration of each loop whose length is known only at run time" in work
    assert "line <library>:15 " in told.work and "line  " not in told.work
