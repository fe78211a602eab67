"""Plans as tables and graphs."""

from __future__ import annotations

import re

import pytest

import plusequals as pe

from .scenes import Scene, add, count_up, double


def _plan() -> pe.Plan:
    scene = Scene()
    up, twice = scene.link(count_up, scene.a), scene.link(double, scene.b, scene.a)
    other, both = scene.link(double, scene.c, scene.a), scene.link(add, scene.d, scene.b, scene.c)
    with pe.plan(name="net") as plan:
        up()
        twice()
        with plan.while_(lambda count: count < 3):
            other()
        both()
    return plan


def test_a_table_says_why_each_node_waits() -> None:
    text = re.sub(r"test_report.py:\d+", "LINE", str(_plan()))
    assert text.splitlines() == [
        "net: 4 nodes, 2 streams, 2 events, 2 waits",
        "   node      rank  stream  signals  waits for   why it is after others  line",
        "0  count_up  2     cc:0/0  yes                                          LINE",
        "1  double    1     cc:0/0                       0: RAW a                LINE",
        "2  while     1     cc:0/1  yes      0 count_up  0: RAW a                LINE",
        "3  add       0     cc:0/0           2 while     1: RAW b; 2: RAW c      LINE",
        "",
        "    while, after the predicate: 1 nodes, 1 streams, 0 events, 0 waits",
        "       node    rank  stream  signals  waits for  why it is after others  line",
        "    0  double  0     cc:0/0                                              LINE",
    ]


def test_what_a_step_waits_for_is_explained() -> None:
    plan = _plan()
    lines = re.sub(r"test_report.py:\d+", "LINE", plan.explain("double")).splitlines()
    assert lines == [
        "1 `double`, recorded at LINE: on stream cc:0/0",
        "    comes after 0 `count_up`: RAW a",
        "0 `double` in `while`, recorded at LINE: on stream cc:0/0",
        "    depends on nothing before it",
    ]
    assert "waits for 2 `while`: RAW c" in plan.explain("add")
    with pytest.raises(pe.CdError, match="CD0869.*\n.*\n.*did you mean `double`"):
        plan.explain("duoble")


def test_a_graph_has_every_node_and_edge() -> None:
    text = _plan().to_dot()
    assert text.count(" -> ") == 4
    assert 'n0 -> n2 [label="RAW a", style=bold]' in text
    assert "subgraph cluster_n2_1" in text
    assert text.count("{") == text.count("}")


def test_a_picture_is_a_file(tmp_path) -> None:
    path = _plan().save_picture(tmp_path / "plan.png")
    assert path.read_bytes()[:4] == b"\x89PNG"
