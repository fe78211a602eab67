"""What is told while working: files of every stage, lines on the error stream."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plusequals.backends import dump
from plusequals.backends.cc.backend import translate
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from ..lowering.shown import lowered
from . import procedures


def test_every_stage_is_a_file_where_asked(tmp_path: Path) -> None:
    with settings.override(dump_dir=str(tmp_path / "new")):
        optimize(lower(procedures.scale()), HOST, dump.stage_observer("p.scale/../x"))
        dump.save("p.scale/../x", "source.c", "int f;")
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names[0] == "p_scale_x-00-lower.txt"
    assert names[-1] == "p_scale_x-source.c"
    assert (tmp_path / "new" / names[0]).read_text().startswith("program scale(")


def test_nothing_is_watched_where_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert dump.stage_observer("scale") is None
    dump.debug_print(1, "text")
    dump.save("scale", "source.c", "int f;")
    assert capsys.readouterr().err == ""


def _told(level: int, capsys: pytest.CaptureFixture[str], folder: str = "") -> str:
    with settings.override(debug=level, dump_dir=folder):
        translate(procedures.scale())
        dump.debug_print(1, "plusequals: a line")
    return capsys.readouterr().err


def test_the_ladder_tells_more_with_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    told = [_told(level, capsys) for level in range(6)]
    assert told[:2] == ["", "plusequals: a line\n"]
    assert re.match(r"plusequals: scale: lower: \d+\.\d ms, \d+ statements\n", told[2])
    step = r"plusequals: scale: eliminate_dead_code: \d+\.\d ms, \d+ -> \d+ statements\n"
    assert re.search(step, told[2])
    assert " is a parameter: the caller provides it" in told[3]
    assert " is a parameter: " not in told[2]
    assert "program scale(" in told[4] and "#include" in told[4]
    assert "program scale(" not in told[3] and "changed nothing" not in told[4]
    assert "eliminate_dead_code changed nothing" in told[5]


def test_the_last_step_says_where_the_source_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = _told(4, capsys, str(tmp_path))
    path = told.split("the source is in ")[1].split("\n")[0]
    assert "#include" in Path(path).read_text()


def test_a_pass_is_shown_by_what_it_changed(capsys: pytest.CaptureFixture[str]) -> None:
    f = lowered("y[i] = x[i] * 1.0", y="f32[4]", x="f32[4]")
    with settings.override(debug=5):
        optimize(f, HOST, dump.stage_observer("f"))
    told = capsys.readouterr().err
    assert "-            y[i] = x[i] * 1.0\n+            y[i] = x[i]\n" in told


def test_a_folder_that_takes_no_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    inside = tmp_path / "file" / "inside"
    with settings.override(dump_dir=str(inside)):
        with pytest.raises(CdBackendError, match=r"CD0814.*file.inside(.|\n)*`dump_dir`"):
            dump.save("scale", "source.c", "int f;")
        with pytest.raises(CdBackendError, match="CD0814"):
            translate(procedures.scale())
