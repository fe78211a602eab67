"""What is told while working: files of every stage, lines on the error stream."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plusequals.backends import dump
from plusequals.lowering import settings
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from . import procedures


def test_every_stage_is_a_file_where_asked(tmp_path: Path) -> None:
    with settings.override(dump_dir=str(tmp_path / "new")):
        optimize(lower(procedures.scale()), HOST, dump.observer("p.scale/../x"))
        dump.save("p.scale/../x", "source.c", "int f;")
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names[0] == "p_scale_x-00-lower.txt"
    assert names[-1] == "p_scale_x-source.c"
    assert (tmp_path / "new" / names[0]).read_text().startswith("program scale(")


def test_nothing_is_watched_where_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert dump.observer("scale") is None
    dump.tell(1, "text")
    dump.save("scale", "source.c", "int f;")
    assert capsys.readouterr().err == ""


def test_the_ladder_tells_more_with_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for level in (1, 2, 5):
        with settings.override(debug=level):
            optimize(lower(procedures.scale()), HOST, dump.observer("scale"))
            dump.tell(1, "plusequals: a line")
        told.append(capsys.readouterr().err)
    assert told[0] == "plusequals: a line\n"
    assert re.match(r"plusequals: scale: lower: \d+ lines of loops\n", told[1])
    assert "program scale(" in told[2]
    assert "program scale(" not in told[1]
