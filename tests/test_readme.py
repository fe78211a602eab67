"""README.md and CONTRIBUTING.md show what is: code runs; commands, files, names are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe

from . import page

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = _BLOCK.findall(TEXT)


def blocks(language: str) -> list[str]:
    """The code blocks of a language."""
    return [text for name, text in BLOCKS if name == language]


def _ran(script: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )


def test_the_first_block_runs_as_a_script(tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    more = "assert np.allclose(y.sum(axis=1), 1)\nprint(softmax.explain(y, x))\n"
    script.write_text(blocks("python")[0] + more, encoding="utf-8")
    done = _ran(script)
    assert done.returncode == 0, done.stderr
    assert "assignments" in done.stdout and "void **args" in done.stdout


def test_the_examples_print_what_is_shown(request: pytest.FixtureRequest) -> None:
    found = page.filled(TEXT, kept={})
    if request.config.getoption("--update-golden"):
        PAGE.write_text(found, encoding="utf-8")
        return
    assert found == TEXT


def test_times_are_those_of_the_page_of_performance() -> None:
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    times = re.findall(r"(?<![\d.])[\d.]+ (?:ns|µs|ms)\b", TEXT)
    assert len(times) > 15
    assert [time for time in times if f" {time} " not in measured] == []


@pytest.mark.parametrize("text", re.findall(r"`([a-z]+\[.*?\].*?=.*?)`", TEXT))
def test_notations_compile(text: str) -> None:
    text = text.replace("...", "x")
    names = sorted(set(re.findall(r"\b[a-z]\b(?=\[)", text)))
    f = pe.cd_from_source(f"def f({', '.join(names)}):\n    {text}\n", {})
    shapes = dict.fromkeys(names, (4,) if "1:-1" in text else (4, 4))
    arrays = {name: np.ones(shapes[name]) for name in names}
    assert f.on("numpy")(**arrays) is None


@pytest.mark.parametrize("name", re.findall(r"`pe\.(\w+)", TEXT))
def test_names_are_public(name: str) -> None:
    assert name in pe.__all__


@pytest.mark.parametrize("path", re.findall(r"python3 (\S+\.py)", TEXT + CONTRIBUTING))
def test_scripts_are_there(path: str) -> None:
    assert (ROOT / path).is_file()


def test_python_of_contributing_runs(tmp_path: Path) -> None:
    for number, (language, text) in enumerate(_BLOCK.findall(CONTRIBUTING)):
        assert language, "every block says in what language it is"
        if language == "python":
            script = tmp_path / f"block_{number}.py"
            script.write_text(text, encoding="utf-8")
            assert _ran(script).returncode == 0, text


def test_places_of_contributing_are_there() -> None:
    rooms = re.findall(r"\| `([a-z/]+)/`", CONTRIBUTING)
    assert len(rooms) >= 6
    assert [room for room in rooms if not (ROOT / room).is_dir()] == []


def test_the_calls_of_the_table() -> None:
    f = pe.cd_from_source("def f(x, y):\n    return x + y", {})
    x = np.ones(2)
    assert f(x, x).tolist() == [2.0, 2.0]
    assert "why it was compiled" in str(f.explain(x, x))
    assert pe.tensor("p", (64, 10), fields=("vel",)).fields == ("value", "grad", "vel")
