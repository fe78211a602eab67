"""The program of docs/runtime.md prints what the page says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "runtime.md"


def test_the_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = PAGE.read_text("utf-8").split("```python\n")[1].split("```")[0]
    path = tmp_path / "page.py"
    path.write_text(program, "utf-8")
    runpy.run_path(str(path))
    assert capsys.readouterr().out == "[11. 22. 33.]\n"
    assert "computes it: [11. 22. 33.]" in program
