"""What a trace is asked to record, and where it records."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i

from .functions import CALLS, matrix, steps


def arguments() -> tuple[np.ndarray, ...]:
    return CALLS["steps"][1]()


def test_arrays_by_name(backend: str) -> None:
    with pe.trace(arrays="k") as trace:
        steps.on(backend)(*arguments())
    assert {r.array for r in trace} == {"k"}
    with pe.trace(arrays=("k", "y")) as trace:
        steps.on(backend)(*arguments())
    assert {r.array for r in trace} == {"k", "y"}


def test_statements_by_text_and_by_line() -> None:
    with pe.trace(statements="*= 2") as trace:
        steps(*arguments())
    line = trace[0].line
    assert {r.site.statement.span.text for r in trace} == {"y[0, k] *= 2"}
    with pe.trace(statements=(line, "y[0, k]")) as again:
        steps(*arguments())
    assert [str(r) for r in again] == [str(r) for r in trace]


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("i == 1", lambda i, j, t: i == 1),
        ("t < 2 and j != 0", lambda i, j, t: t < 2 and j != 0),
        ("0 < i < 2 or not t == 1", lambda i, j, t: 0 < i < 2 or t != 1),
        ("(i + j) % 2 == t // 2", lambda i, j, t: (i + j) % 2 == t // 2),
        ("3 >= j + 1", lambda i, j, t: 3 >= j + 1),
    ],
)
def test_where(where: str, holds: object, backend: str) -> None:
    with pe.trace(statements="x[i, j] * t") as whole:
        steps.on(backend)(*arguments())
    with pe.trace(statements="x[i, j] * t", where=where) as trace:
        steps.on(backend)(*arguments())
    assert callable(holds)
    kept = [r for r in whole if holds(**{"i": 0, "j": 0, "t": 0, **r.at})]
    wanted = [str(r) for r in kept]
    assert [str(r) for r in trace] == wanted == [str(r) for r in whole.where(where)]
    assert trace.dropped == 0


def test_where_says_what_it_does_not_understand() -> None:
    with pytest.raises(ValueError, match="CD0871"), pe.trace(where="x[i] > 0"):
        pass
    with pytest.raises(ValueError, match="CD0871"), pe.trace(where="i ="):
        pass


def test_the_first_nan(backend: str) -> None:
    x = matrix()
    x[1, 2] = np.nan
    with pe.trace(first_nan=True) as trace:
        CALLS["softmax"][0].on(backend)(x)
    assert {(r.line, r.index[0]) for r in trace} == {(trace[0].line, 1)}
    assert all(np.isnan(r.after) for r in trace) and len(trace) == 4
    with pe.trace(first_nan=True) as trace:
        CALLS["softmax"][0].on(backend)(matrix())
    assert len(trace) == 0 and str(trace)


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8"])
def test_the_first_nan_of_every_type(dtype: str, backend: str) -> None:
    f = pe.cd_from_source("def f(x):\n    return x * 2\n", backend=backend)
    with pe.trace(first_nan=True) as trace:
        f(np.array([1, np.nan, np.nan], dtype))
    assert [r.index for r in trace] == [(1,), (2,)]


@pytest.mark.parametrize("limit", [0, 1, 5, 12, 40, 1000])
def test_a_limit_keeps_the_first_and_counts_the_rest(limit: int, backend: str) -> None:
    with pe.trace() as whole:
        steps.on(backend)(*arguments())
    with pe.trace(limit=limit) as trace:
        steps.on(backend)(*arguments())
    assert [str(r) for r in trace] == [str(r) for r in whole][:limit]
    assert trace.dropped == max(len(whole) - limit, 0)


def test_every_nth_element(backend: str) -> None:
    with pe.trace(sample=5, statements="x[i, j] * t") as trace:
        steps.on(backend)(*arguments())
    assert [r.index for r in trace][:3] == [(0, 0), (1, 1), (2, 2)]


def test_traces_inside_of_each_other() -> None:
    with pe.trace() as outer:
        with pe.trace() as inner:
            steps(*arguments())
        assert len(inner) and not len(outer)
        steps(*arguments())
    assert len(outer) == len(inner)
    steps(*arguments())
    assert len(outer.runs) == 1


@cd
def add(p, x):
    p[i] += x[i]


def test_routines_on_streams_in_the_order_of_their_calls(backend: str) -> None:
    p = pe.tensor("p", 2, dtype="float64")
    streams = [pe.device(backend).stream(threaded=flag) for flag in (True, False)]
    routines = [add.compile(p, np.ones(2)).link(s.context()) for s in streams]
    with pe.trace() as trace:
        for at, routine in enumerate(routines):
            routine(np.full(2, at + 1.0))
    assert p.numpy().tolist() == [1.0, 1.0] or p.numpy().tolist() == [2.0, 2.0]
    assert [run.stream for run in trace.runs] == [s.name for s in streams]
    assert [r.operands[-1].value for r in trace] == [1.0, 1.0, 2.0, 2.0]


def test_a_routine_without_arguments_is_recorded_and_again_quick_afterwards() -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    double = pe.cd_from_source("def double(p):\n    p[i] *= 2\n")
    routine = double.compile(p).link(pe.device("cc").stream().context())
    with pe.trace() as trace:
        routine()
        routine()
    routine()
    assert [r.after for r in trace] == [2.0, 2.0, 4.0, 4.0]
    assert routine.context.numpy(p).tolist() == [8.0, 8.0]


def test_calls_of_many_threads_are_all_kept() -> None:
    with pe.trace() as trace:
        threads = [threading.Thread(target=steps, args=arguments()) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({run.points for run in trace.runs}) == 1 and len(trace.runs) == 4


def test_rows_without_a_nan_leave_nothing_behind(backend: str) -> None:
    text = """def f(x, y, n, z, w, m, b):
    y[i] = x[i] * n[i]
    if x[i] > 0:
        z[i] = x[i]
    if b[i] > 0:
        w[m[i]] = x[i]
"""
    f = pe.cd_from_source(text, backend=backend)
    x, n = np.array([1.0, -2.0, 3.0]), np.array([1, 1, 10**6])
    z = np.array([0.0, np.nan, 0.0])
    with pe.trace(first_nan=True) as trace:
        f(x, np.zeros(3), n, z, np.zeros(3), np.array([2, 1, 0]), np.array([0, 0, 1]))
    assert list(trace) == []


def test_a_routine_that_is_linked_meanwhile_records_only_meanwhile() -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    double = pe.cd_from_source("def double(p):\n    p[i] *= 2\n")
    with pe.trace() as trace:
        routine = double.compile(p).link(pe.device("cc").stream(threaded=False).context())
        routine()
    routine()
    routine()
    assert len(trace.runs) == 1 and len(trace) == 2
    assert routine.context.numpy(p).tolist() == [8.0, 8.0]


def test_traces_that_end_in_the_order_in_which_they_began() -> None:
    first, second = pe.trace(), pe.trace()
    one, two = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    steps(*arguments())
    second.__exit__(None, None, None)
    steps(*arguments())
    assert (len(one.runs), len(two.runs)) == (0, 1)


def test_what_is_recorded_is_not_checked(backend: str) -> None:
    f = pe.cd_from_source("def f(x):\n    return x.copy()\n", backend=backend)
    with pe.checked(overflow=True), pe.trace() as trace:
        assert f(np.array([2**63], np.uint64)).tolist() == [2**63]
    assert trace[0].after == 2**63


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"sample": 0}, ValueError), ({"sample": -2}, ValueError), ({"sample": 1.5}, TypeError),
        ({"limit": -1}, ValueError), ({"limit": "a"}, TypeError), ({"arrays": 3}, TypeError),
        ({"arrays": [3]}, TypeError), ({"statements": 2.5}, TypeError), ({"where": 3}, TypeError),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_a_trace(options: dict[str, Any], kind: type) -> None:
    (name,) = options
    with pytest.raises(kind, match=f"CD0875.: `{name}` of a trace cannot be"):
        with pe.trace(**options):
            raise AssertionError("this is not reached")


def test_a_trace_of_nothing_and_numbers_of_numpy(backend: str) -> None:
    f = pe.cd_from_source("def f(x):\n    return x + 1\n", backend=backend)
    with pe.trace(limit=0) as none, pe.trace(sample=np.int64(2), limit=np.int8(9)) as some:
        f(np.zeros(4))
    assert (len(none), len(some)) == (0, 2)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"arrays": ("k", "kk")}, "no statement that ran assigns an array `kk`"),
        ({"where": "i == 1 and q < 2"}, "no statement that ran has an index or is in a loop `q`"),
        ({"statements": "y[0, q]"}, r"no assignment that ran is with the text `y\[0, q\]`"),
        ({"statements": (1 << 20,)}, "no assignment that ran is on line 1048576"),
    ],
)
def test_what_nothing_has_is_said_at_the_end(asked: dict[str, Any], message: str) -> None:
    ran, taken = [], partial(pe.trace, **asked)
    with pytest.raises(ValueError, match=f"CD0875.: {message}"), taken():
        ran.append(steps(*arguments()))
    assert ran, "the calls themselves were made"
    with taken() as trace:
        pass
    assert len(trace) == 0, "where nothing ran nothing lacks"
    with pytest.raises(ZeroDivisionError), taken():
        steps(*arguments())
        raise ZeroDivisionError


def test_one_function_of_several_may_lack_it() -> None:
    other = pe.cd_from_source("def f(x):\n    z[i] = x[i] * 2\n    return z\n")
    with pe.trace(arrays=("k", "z"), where="i == 1") as trace:
        steps(*arguments())
        other(np.ones(3))
    assert {r.array for r in trace} <= {"k", "z"} and trace.runs[1].name == "f"
