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
    text = PAGE.read_text("utf-8")
    programs = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    if importlib.util.find_spec("matplotlib") is None:
        programs = [text.replace("timeline.save_picture", "# ") for text in programs]
    path = tmp_path / "page.py"
    path.write_text("\n\n".join(programs), "utf-8")  # one module: functions see names before them
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    printed = capsys.readouterr().out
    said = re.findall(r"# (?:.*: )?(\[[\d. ]+\])$", "\n".join(programs), re.MULTILINE)
    assert said == re.findall(r"^\[[\d. ]+\]$", printed, re.MULTILINE) and len(said) == 5
    shown = [part.split("```")[0] for part in text.split("```text\n")[1:]]
    assert len(shown) == 1 and all(map(_unnumbered(printed).__contains__, map(_unnumbered, shown)))
    assert "grad_step" in printed and (tmp_path / "trace.json").exists()


def _unnumbered(text: str) -> str:
    """Return a text without the numbers of streams and the widths that follow from them."""
    return re.sub(" +", " ", re.sub(r"/s\d+", "/s", text))
