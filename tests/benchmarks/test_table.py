"""The tables, the page they go into, the pictures, and a report that is written and read."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import chart, command, results, table
from benchmarks.ceilings import Ceilings
from benchmarks.results import Report, Row, Timing, mean


def _timing(seconds: float) -> Timing:
    return Timing(seconds, 0.9 * seconds, 1.1 * seconds, 5, 1.0)


def _row(name: str, threads: int, times: dict[str, float], roofline: float | None = None) -> Row:
    timings = {peer: _timing(seconds) for peer, seconds in times.items()}
    return Row(name, "rows", name.split(":")[1], threads, timings, {}, "1e-05", roofline)


def _report() -> Report:
    report = Report("python3 -m benchmarks", {"processor": "a processor", "load": ""})
    report.versions = {"numpy": "NumPy 2.4"}
    report.left_out = {"torch": "no wheel"}
    report.rows = [
        _row("softmax:small", 2, {"plusequals": 2e-6, "numpy": 4e-6, "jax": 1e-6}, 1e-6),
        _row("saxpy:large", 2, {"plusequals": 1e-3, "numpy": 2e-3}),
        _row("saxpy:large", 1, {"numpy": 2e-3}),
    ]
    report.rows[2].why["plusequals"] = "wrong: result 0 is off by 1.0e+00 of its scale"
    report.rows[1].why["jax"] = "out of\n  memory"
    report.gradients = [
        replace(_row("softmax:small", 2, {"plusequals": 6e-6, "jax": 3e-6}), forward=_timing(2e-6)),
        replace(_row("saxpy:large", 2, {"plusequals": 4e-3}), forward=_timing(2e-3)),
        _row("saxpy:large", 1, {"jax": 2e-3}),
    ]
    report.gradients[2].why["plusequals"] = "wrong: result 1 is off by 1.0e+00 of its scale"
    report.ceilings = [Ceilings(2, {"f32": 2e11, "f64": 1e11}, {12288: 5e11}, {12288: 4e11}, {})]
    report.calls = {"numpy": {"same": 5e-7, "fresh": 6e-7}, "jax": {"same": 5e-6}}
    report.imports = {"numpy": 0.08}
    report.firsts = {"saxpy:medium": {"plusequals": (1.0, 0.01)}}
    report.memory = {"saxpy:large": {"plusequals": 0, "numpy": 3 << 20}}
    report.problems = ["cumsum:large, 1 threads: the budget was used up"]
    return report


def test_the_whole_page(golden) -> None:
    page = table.markdown(_report())
    golden("report.md")(page)
    assert page.count("\n|") > len(_report().rows), "a line for each row, and heads"


def test_a_report_without_anything_has_no_tables() -> None:
    assert "|" not in table.markdown(Report("python3 -m benchmarks", {}))


def test_rows_know_their_ratios() -> None:
    first, second, third = _report().rows
    assert (first.best, first.ratio, first.over_roofline) == ("jax", 2.0, 2.0)
    assert (second.best, second.ratio, second.over_roofline) == ("numpy", 0.5, None)
    assert (third.ours, third.ratio) == (None, None)


def test_gradients_know_how_long_the_loss_alone_takes() -> None:
    first, second, third = _report().gradients
    assert (first.over_forward, second.over_forward, third.over_forward) == (3.0, 2.0, None)
    assert (first.ratio, second.ratio) == (2.0, None)
    assert table.line(first).endswith("2.00 x JAX    3.00 x forward")


def test_one_line_for_those_who_watch() -> None:
    first, _, third = _report().rows
    said = table.line(first).split()
    assert said == "softmax:small 2 threads 2 µs 2.00 x JAX 2.0 x roofline".split()
    assert "wrong: result 0" in table.line(third)


def test_medians_and_quartiles() -> None:
    timing = Timing.of([5.0, 1.0, 2.0, 3.0, 100.0], 9.0)
    assert (timing.seconds, timing.low, timing.high, timing.rounds) == (3.0, 2.0, 5.0, 5)
    assert Timing.of([4.0], 9.0) == Timing(4.0, 4.0, 4.0, 1, 9.0)


def test_the_geometric_mean() -> None:
    assert mean([]) is None
    assert mean([0.5, 2.0]) == pytest.approx(1.0)
    assert mean([4.0]) == pytest.approx(4.0)


def test_units() -> None:
    assert doctest.testmod(table).failed == 0
    shown = [table.seconds(value) for value in (0.9999, 0.9994, 999.4e-6, 999.6e-6, 4e-10)]
    assert shown == ["1 s", "999 ms", "999 µs", "1 ms", "0.4 ns"]
    assert [table.size(value) for value in (0, 1023, 1 << 30)] == ["0 bytes", "1023 bytes", "1 GiB"]


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = _report()
    report.write(tmp_path / "deep" / "results.json")
    assert results.read(tmp_path / "deep" / "results.json") == report


def test_the_measured_part_of_a_page_is_replaced() -> None:
    page = f"above\n{command.BEGIN}\nold\n{command.END}\nbelow\n"
    new = command.replaced(page, "new\n")
    assert new == f"above\n{command.BEGIN}\n\nnew\n\n{command.END}\nbelow\n"
    assert command.replaced(new, "new\n") == new
    with pytest.raises(ValueError, match="has no lines"):
        command.replaced("a page", "new")


def test_a_picture_for_each_number_of_threads_with_times(tmp_path: Path) -> None:
    paths = chart.draw(_report(), tmp_path)
    assert [path.name for path in paths] == ["cells-2.png"]  # with one, plusequals has no time
    assert paths[0].read_bytes().startswith(b"\x89PNG")
