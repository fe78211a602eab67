"""The assignments that made an element, from the last one back to what was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.dsl.instrument import recording
from plusequals.dsl.tracing import producers, why
from plusequals.dsl.tracing.why import Source, Why

from .functions import CALLS, matrix, softmax, swapped


def test_the_chain_of_a_softmax(golden: Callable[[str], Callable[[str], None]]) -> None:
    with pe.trace() as trace:
        softmax.on("numpy")(np.round(matrix() / 4))
    made = trace.why("result", (0, 1))
    assert made.record.element == "result[0, 1]"
    golden("softmax.txt")(f"{made}\n")


def test_the_root_is_where_a_nan_came_in(backend: str) -> None:
    x = np.random.default_rng(1).normal(size=(40, 50))
    x[7, 11] = np.nan
    with pe.trace() as trace:
        softmax.on(backend)(x)
    root = trace.why("result", (7, 3)).root
    assert isinstance(root, Source) and root.text == "x[7, 11]" and np.isnan(root.value)


def test_arrays_that_trade_places_are_followed() -> None:
    with pe.trace() as trace:
        swapped(np.ones(3))
    made = trace.why("result", 0)
    assert isinstance(made.causes[0], Why)
    text = str(made)
    assert "x[0]{=1.0} * 1" in text and "x[0]{=1.0} * 2" in text


def test_terms_and_levels_that_are_left_out_are_counted() -> None:
    with pe.trace() as trace:
        softmax(np.ones((2, 30)))
    assert "... 26 more" in str(trace.why("result", (0, 1)))
    shallow = trace.why("result", (0, 1), depth=1)
    assert all(not cause.causes for cause in shallow.causes if isinstance(cause, Why))


@pytest.mark.parametrize("value", ["np.cumsum(x)", "running(x)", "np.sort(x)", "np.diff(x)"])
def test_what_is_returned_without_a_name_is_called_result(value: str, backend: str) -> None:
    inner = pe.cd_from_source("def running(x):\n    t = np.cumsum(x)\n    return t\n", {"np": np})
    text = f"def f(x):\n    return {value}\n"
    f = pe.cd_from_source(text, {"np": np, "running": inner}, backend=backend)
    with pe.trace() as trace:
        result = f(np.array([1.0, 2.0, 4.0]))
    assert trace.why("result", -1).record.after == result[-1]


def test_a_view_that_is_returned_has_no_other_name_than_its_array() -> None:
    text = "def f(x):\n    {}np.cumsum(x)\n    return {}\n"
    for form in (("y = ", "y"), ("y = ", "y[1:]"), ("", "np.cumsum(x)[1:]")):
        f = pe.cd_from_source(text.format(*form), {"np": np})
        with pe.trace() as trace:
            f(np.array([1.0, 2.0, 4.0]))
        with pytest.raises(LookupError, match="no record writes `result"):
            trace.why("result", 0)


def test_an_element_that_nothing_wrote() -> None:
    function, make = CALLS["steps"]
    with pe.trace() as trace:
        function(*make())
    for array, index in (("x", (0, 0)), ("y", (9, 9))):
        with pytest.raises(LookupError, match="no record writes"):
            trace.why(array, index)


def test_everything_that_is_added_at_once_is_a_cause(backend: str) -> None:
    f = pe.cd_from_source("def f(h, x, w):\n    h[x[n]] += w[n]\n", backend=backend)
    w = np.arange(1.0, 7.0)
    w[1] = np.nan
    with pe.trace() as trace:
        f(np.ones(3), np.array([2, 2, 0, 2, 1, 2]), w)
    assert str(trace[0]).endswith("1.0 -> nan (with 3 more)") and "more" not in str(trace[2])
    made = trace.why("h", 2)
    text = str(made)
    assert all(f"w[{n}] = " in text for n in (0, 1, 3, 5)) and "w[2]" not in text
    assert isinstance(made.root, Source) and made.root.text == "w[1]"
    assert "... 2 more" in str(trace.why("h", 2, terms=2))


def test_indices_are_those_of_python_and_of_all_axes() -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[i, j] = x[i, j]\n")
    with pe.trace() as trace:
        f(np.zeros((2, 3)), np.ones((2, 3)))
    assert trace.why("y", (-1, -3)).record.index == (1, 0)
    with pytest.raises(IndexError, match=r"CD0873.*shape \(2, 3\), and 1 index is given"):
        trace.why("y", 1)


def test_of_several_runs_one_is_asked() -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] += 1\n")
    x = np.zeros(2)
    with pe.trace() as trace:
        f(x)
        f(x)
    assert trace.why("x", 0).record.after == 2.0
    assert trace.why("x", 0, run=0).record.after == 1.0


def test_reductions_in_reductions_and_beyond_the_edge(backend: str) -> None:
    text = """def f(x, w):
    v = ((x - x.mean()) ** 2).mean()
    y[i] = sum[k](w[k] * x[pad(i + k - 1)]) + 0 * x[i]
    return v + y
"""
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(np.arange(4.0), np.ones(3))
    assert "x[3]" in str(trace.why("v")) and trace.why("result", 2).record.after == 7.25
    edge = str(trace.why("y", 0, terms=9))
    assert "x[1] = 1.0" in edge and "x[-1]" not in edge


def test_sums_of_what_has_no_sign() -> None:
    f = pe.cd_from_source("def f(b, u):\n    n = b.sum()\n    m = u.sum()\n    return n, m\n")
    with pe.trace() as trace:
        f(np.array([False, True]), np.array([0, 5, 200], np.uint8))
    assert "b[1] = True" in str(trace.why("n", terms=1))
    assert "u[2] = 200" in str(trace.why("m", terms=1))


def test_an_argument_that_was_too_large_to_be_kept() -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[0] = sum(x[i])\n    y[1] = x[7] * 2\n")
    x = np.ones(50)
    x[30] = x[7] = np.nan
    with mock.patch.object(recording, "MAX_ARGUMENT_BYTES", 100):
        with pe.trace() as trace:
            f(np.zeros(2), x)
        with pe.trace(terms=True) as each:
            f(np.zeros(2), x)
    text = str(trace.why("y", 0))
    assert "(no copy was kept of `x`, more than 8 MiB: `pe.trace(terms=True)` records" in text
    assert "└─ x[7] = nan" in str(trace.why("y", 1)) and "no copy" not in str(trace.why("y", 1))
    text = str(each.why("y", 0, terms=3))
    assert "sum[i = 7]: x[7]{=nan}" in text and "sum[i = 30]: x[30]{=nan}" in text
    assert "... 47 more" in text and "no copy" not in text


def test_arguments_are_kept_where_the_length_of_a_loop_is_an_argument(backend: str) -> None:
    text = "def f(y, x, n):\n    for t in range(n):\n        y[0] = x.sum()\n"
    f = pe.cd_from_source(text, backend=backend)
    for memory in (None, 1 << 20):
        with pe.trace(memory=memory) as trace:
            f(np.zeros(1), np.array([1.0, 3.0]), 2)
        assert [str(x) for x in trace.why("y", 0).causes] == ["x[1] = 3.0", "x[0] = 1.0"]


def test_an_argument_for_which_no_memory_was_left() -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[0] = sum(x[i])\n")
    with pe.trace(memory=1000) as trace:
        f(np.zeros(1), np.ones(200))
    assert "(no copy was kept of `x`, for which no memory was left: `" in str(trace.why("y", 0))


def test_a_sum_of_more_terms_than_are_looked_at() -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[0] = sum(x[i])\n")
    with pe.trace() as trace, mock.patch.object(why, "_MAX_READS", 10):
        f(np.zeros(1), np.ones(20))
        text = str(trace.why("y", 0))
    assert "(these are of the first 10 elements: `pe.trace(terms=True)` records" in text


def test_an_array_whose_size_is_a_loop_variable_has_the_shape_of_the_last_round() -> None:
    text = """def f(y, x):
    n = len(x)
    for k in range(n):
        u = np.zeros(n - k)
        u[i] = 2 * x[k + i]
        y[k] = u.sum()
"""
    f = pe.cd_from_source(text, {"np": np})
    with pe.trace() as trace:
        f(np.zeros(4), np.arange(4.0))
    last = trace.why("u", -1).record
    assert (last.index, last.at["k"], last.after) == ((0,), 3, 6.0)
    assert trace.why("u", 3).record.at["k"] == 0, "what an earlier round wrote"
    with pytest.raises(IndexError, match=r"CD0873.*shape \(1,\), and 2 indices are given"):
        trace.why("u", (0, 0))


@cd
def accumulated(a):
    c = np.zeros(a.shape[0])
    for k in range(a.shape[1]):
        c[:] += a[:, k]
    return (c * c).sum()


def test_a_record_and_an_element_at_a_record_are_asked_for() -> None:
    a = np.arange(12.0).reshape(3, 4)
    a[1, 2] = np.inf
    with pe.trace() as trace:
        accumulated.on("numpy")(a)
    wrong = trace.first_nonfinite()
    assert wrong is not None
    made = trace.why(wrong)
    assert made.record.element == "c[1]" and "a[1, 2] = inf" in str(made)
    earlier = trace.why("c", np.int64(1), at=wrong)
    assert earlier.record.after == a[1, :2].sum() and "inf" not in str(earlier)
    with pe.trace() as other:
        accumulated.on("numpy")(np.ones((3, 4)))
    for one in (None, 3):
        with pytest.raises(LookupError, match="is no record"):
            other.why(one)
    with pytest.raises(LookupError, match="of another one"):
        trace.why(replace(wrong, run=7))


def test_an_array_is_sorted_once_for_all_terms_of_a_chain() -> None:
    with pe.trace() as trace:
        accumulated.on("numpy")(np.ones((40, 3)))
    with mock.patch.object(producers, "_SortedGroup", wraps=producers._SortedGroup) as written:
        text = str(trace.why("result"))
    assert "... 36 more" in text and written.call_count == 3


MASKED = """def f(x, lab):
    y = np.zeros(6)
    y[0] = x[lab == 1].mean()
    y[1] = np.where(lab == 1, x, 0.0).sum()
    y[2] = sum(np.where(lab[i] == 1, x[i], 0.0))
    y[3] = np.max(x[lab == 1])
    y[4] = x[(lab == 1) & (x > 0)].sum()
    keep = lab == 1
    y[5] = x[keep].sum()
    return y
"""


def test_what_a_mask_excludes_is_no_cause(backend: str) -> None:
    f = pe.cd_from_source(MASKED, {"np": np}, backend=backend)
    with pe.trace() as trace:
        f(np.array([1.0, 2.0, np.nan]), np.array([1, 1, 0]))
    for element in range(6):
        made = trace.why("y", element, terms=9)
        text = str(made)
        assert "x[2]" not in text and "more" not in text
        assert "x[0] = 1.0" in text and "x[1] = 2.0" in text
        assert all(f"lab[{n}] = {value}" in text for n, value in enumerate((1, 1, 0)))
        assert isinstance(made.root, Source) and made.root.text == "x[1]"


def test_an_element_that_only_decides_is_the_last_cause() -> None:
    f = pe.cd_from_source("def f(x):\n    return x[x > 0].sum()\n")
    with pe.trace() as trace:
        f(np.array([1.0, np.nan, 3.0]))
    made = trace.why("result")
    assert [str(cause) for cause in made.causes] == ["x[2] = 3.0", "x[0] = 1.0", "x[1] = nan"]
    assert isinstance(made.root, Source) and made.root.text == "x[2]"
    with pe.trace() as trace:
        f(np.array([-1.0]))
    assert isinstance(made := trace.why("result").root, Source) and made.text == "x[0]"


def test_of_a_mask_without_a_copy_both_sides_are_causes() -> None:
    f = pe.cd_from_source("def f(x, lab):\n    return x[lab == 1].sum()\n")
    x, lab = np.array([1, 2, np.nan], np.float32), np.array([1, 1, 0])
    with mock.patch.object(recording, "MAX_ARGUMENT_BYTES", 12), pe.trace() as trace:
        f(x, lab)
    text = str(trace.why("result", terms=9))
    assert "x[2] = nan" in text and "no copy was kept of `lab`" in text


@pytest.mark.parametrize("depth", [150, 900, 10**6])
def test_a_long_chain_is_followed_as_far_as_the_stack_allows(depth: int) -> None:
    with pe.trace() as trace:
        pe.cd_from_source(
            "def f(x):\n    for t in range(1000):\n        x[0] = x[0] + 1.0\n", backend="numpy"
        )(np.zeros(1))
    found = trace.why("x", 0, depth=depth)
    length = 0
    while found.causes and isinstance(found.causes[0], Why):
        found, length = found.causes[0], length + 1
    assert length == min(depth, 200)


def test_a_number_that_a_library_function_reads_is_a_cause() -> None:
    f = pe.cd_from_source("def f(t, x, dt):\n    return np.interp(t / dt, t, x)\n", {"np": np})
    with pe.trace() as trace:
        f(np.array([0.0, 1.0]), np.array([3.0, 5.0]), 2.0)
    found = trace.why("result", 1)
    assert found.record.after == 4.0
    assert "dt = 2.0" in str(found) and "x[1] = 5.0" in str(found)


def test_a_library_call_says_that_its_reads_are_those_of_all_elements() -> None:
    @pe.cd
    def ordered(x):
        low = np.sort(x)
        total = np.cumsum(x)
        return low, total

    with pe.trace() as trace:
        ordered.on("numpy")(np.array([3.0, 1.0, 2.0]))
    whole = trace.why("low", 1)
    assert "all that the call reads" in whole.note and whole.note in str(whole)
    assert len(whole.causes) == 3
    exact = trace.why("total", 1)
    assert not exact.note and len(exact.causes) == 2
