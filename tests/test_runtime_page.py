"""The programs of docs/runtime.md, one behind another, print what the page says."""

from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "runtime.md"


def test_the_programs_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = [part.split("```")[0] for part in PAGE.read_text("utf-8").split("```python\n")[1:]]
    if importlib.util.find_spec("matplotlib") is None:
        programs = [text.replace("timeline.save_picture", "# ") for text in programs]
    path = tmp_path / "page.py"
    path.write_text("\n\n".join(programs), "utf-8")  # one module: functions see names before them
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    printed = capsys.readouterr().out
    said = re.findall(r"# (?:.*: )?(\[[\d. ]+\])$", "\n".join(programs), re.MULTILINE)
    assert said == re.findall(r"^\[[\d. ]+\]$", printed, re.MULTILINE) and len(said) == 5
    assert "grad_step" in printed and (tmp_path / "trace.json").exists()
