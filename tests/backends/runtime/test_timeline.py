"""A timeline tells what ran, where, how long, and what it waited for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from plusequals.backends.runtime.timeline import Timeline, Work
from plusequals.base.diagnostic import CdError


def made() -> Timeline:
    timeline = Timeline()
    timeline._works += [
        Work("step", "routine", "cc:0 stream 1", 0, 2_000_000, 5_000_000),
        Work("step", "routine", "cc:0 stream 2", 0, 1_000_000, 4_000_000),
        Work("copy w", "copy", "cc:0 stream 1", 5_000_000, 5_500_000, 6_000_000),
    ]
    return timeline


def test_the_table_is_by_name_and_by_place() -> None:
    assert str(made()).splitlines() == [
        "name    kind     times  total ms  mean us  longest wait us",
        "step    routine      2     6.000   3000.0           2000.0",
        "copy w  copy         1     0.500    500.0            500.0",
        "",
        "where          works  busy ms  busy %",
        "cc:0 stream 2      1    3.000    50.0",
        "cc:0 stream 1      2    3.500    58.3",
    ]


def test_a_timeline_may_be_empty(tmp_path: Path) -> None:
    empty = Timeline()
    assert "name" in str(empty) and empty.works == ()
    assert json.loads(empty.save_trace(tmp_path / "t.json").read_text())["traceEvents"] == []


def test_a_step_is_noted_also_where_it_fails() -> None:
    timeline = Timeline()
    timeline.timed("good", "routine", "here", lambda: None)()
    with pytest.raises(ZeroDivisionError):
        timeline.timed("bad", "routine", "here", lambda: 1 // 0)()
    with pytest.raises(ValueError, match="x"), timeline.here("worse", "call"):
        raise ValueError("x")
    assert [work.name for work in timeline.works] == ["good", "bad", "worse"]
    assert all(0 <= w.queued <= w.started <= w.ended for w in timeline.works)


def test_what_runs_inside_of_something_else_counts_once() -> None:
    timeline = Timeline()
    timeline._works += [Work("call", "call", "t", 0, 0, 10_000_000),
                        Work("compile", "compile", "t", 0, 1_000_000, 9_000_000)]  # fmt: skip
    assert str(timeline).splitlines()[-1].split() == ["t", "2", "10.000", "100.0"]


def test_the_trace_has_a_lane_for_each_place(tmp_path: Path) -> None:
    events = json.loads(made().save_trace(tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert sorted(names.values()) == ["cc:0 stream 1", "cc:0 stream 2"]
    works = [(names[e["tid"]], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert works == [
        ("cc:0 stream 2", "step", 1000.0, 3000.0),
        ("cc:0 stream 1", "step", 2000.0, 3000.0),
        ("cc:0 stream 1", "copy w", 5500.0, 500.0),
    ]


def test_the_picture_is_one(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib draws the picture")
    path = made().save_picture(tmp_path / "timeline.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_way_out_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CdError, match="save_trace") as caught:
        made().save_picture(tmp_path / "timeline.png")
    assert caught.value.code == "CD0848"


def test_it_is_short_to_look_at_and_whole_in_a_notebook() -> None:
    timeline = made()
    assert repr(timeline) == "<timeline: 3 works in 6.000 ms>"
    assert repr(timeline.works[-1]) == "<copy copy w on cc:0 stream 1: 500.0 us>"
    assert timeline._repr_html_() == f"<pre>{timeline}</pre>"
    assert repr(Timeline()) == "<timeline: 0 works in 0.000 ms>"
