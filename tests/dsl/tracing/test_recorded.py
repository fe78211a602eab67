"""All records in program order: as a sequence, as an array, and by what holds for them."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.instrument import work_estimate

from .functions import CALLS, steps


def traced(name: str, backend: str = "cc") -> pe.Trace:
    function, make = CALLS[name]
    with pe.trace() as trace:
        function.on(backend)(*make())
    return trace


def test_a_trace_is_a_sequence() -> None:
    trace = traced("steps")
    records = list(trace)
    assert len(records) == len(trace)
    assert [str(r) for r in trace[2:7]] == [str(r) for r in records[2:7]]
    assert str(trace[-1]) == str(records[-1])
    with pytest.raises(IndexError):
        trace[len(trace)]
    orders = [r.order for r in records]
    assert orders == sorted(orders)


@pytest.mark.parametrize("few", [-1, work_estimate.MAX_QUICK_POINTS], ids=["whole", "short"])
@pytest.mark.parametrize("name", CALLS)
def test_records_are_the_same_whatever_threads_do(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", few)
    with pe.override(schedule=True, threads=1, parallel_from=0):
        alone = [str(record) for record in traced(name)]
    with pe.override(schedule=True, threads=7, parallel_from=0):
        assert [str(record) for record in traced(name)] == alone
    assert alone


def test_as_an_array(backend: str) -> None:
    trace = traced("steps", backend)
    table = trace.records()
    assert len(table) == len(trace)
    for row, record in zip(table, trace, strict=True):
        assert row["array"] == record.array and row["line"] == record.line
        assert tuple(row["index"][: len(record.index)]) == record.index
        assert (row["index"][len(record.index) :] == -1).all()
        assert row["after"] == record.after and row["before"] == record.before
    counts = table[table["array"] == "k"]
    assert counts["after_int"].tolist() == [0, 0, 1, 2, 3]


def test_complex_numbers_make_the_fields_complex() -> None:
    assert traced("kinds").records()["after"].dtype == np.complex128


def test_long_names_and_large_numbers_are_whole() -> None:
    name = "a_name_of_more_than_twenty_four_letters"
    f = pe.cd_from_source(f"def f({name}, n):\n    {name}[i] += 1\n    n[i] -= 1\n")
    with pe.trace() as trace:
        f(np.array([2**63], np.uint64), np.array([0], np.int8))
    table = trace.records()
    assert table["array"].tolist() == [name, "n"]
    assert table["after_int"].tolist() == [2**63 + 1, -1]


def test_tensors_are_found_by_the_name_that_people_write() -> None:
    p = pe.tensor("p", 2, dtype="float64")
    f = pe.cd_from_source("def f(p):\n    p.grad[i] = 1\n    p.value -= p.grad\n")
    with pe.trace(arrays="p.grad") as trace:
        f(p)
    assert len(trace) == len(trace.where(array="p.grad")) == 2
    with pe.trace(arrays="p.value") as trace:
        f(p)
    assert {r.array for r in trace} == {"p"} and trace.why("p.value", 1).record.after == -2.0


def test_where_takes_tests_arrays_and_lines() -> None:
    trace = traced("steps")
    some = trace.where("t == 1 and i > 1", array="y")
    assert [r.index for r in some] == [(2, j) for j in range(4)]
    assert {r.array for r in trace.where(line=some[0].line)} == {"y"}
    assert len(trace.where()) == len(trace) and trace.where("no_such_name > 1") == []


def test_the_first_nonfinite(backend: str) -> None:
    assert traced("softmax", backend).first_nonfinite() is None
    text = "def f(x, y):\n    y[i] = x[i] - 1\n    y[i] = 1 / y[i]\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(np.array([3.0, 1.0, 1.0]), np.zeros(3))
    found = trace.first_nonfinite()
    assert found is not None and found.index == (1,) and found.after == np.inf


def test_a_trace_can_be_read_while_it_is_taken() -> None:
    _, make = CALLS["steps"]
    with pe.trace() as trace:
        steps(*make())
        first = len(list(trace))
        steps(*make())
        assert len(list(trace)) == 2 * first == len(trace.order)


def test_a_million_elements_one_of_them_nan() -> None:
    x = np.ones((1000, 1000))
    x[617, 333] = np.nan
    f = pe.cd_from_source("def f(x):\n    return x * 2 + 1\n")
    with pe.trace() as trace:
        f(x)
    found = trace.first_nonfinite()
    assert len(trace) == 1_000_000 and found is not None and found.index == (617, 333)
    assert sum(r.floats.nbytes + r.ints.nbytes + r.table.nbytes for r in trace.runs) < 100e6
