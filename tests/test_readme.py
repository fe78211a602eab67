"""What README.md shows is true: its Python runs, its commands, files and names are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The code blocks of a language."""
    return [text for name, text in BLOCKS if name == language]


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_blocks_run(number: int, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    check = "\nassert np.allclose(y.sum(axis=1), 1)\n" if number == 0 else ""
    script.write_text(blocks("python")[number] + check, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "assignments" in done.stdout and "void **args" in done.stdout


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


@pytest.mark.parametrize("path", re.findall(r"python3 (\S+\.py)", TEXT))
def test_scripts_are_there(path: str) -> None:
    assert (ROOT / path).is_file()


def test_the_calls_of_the_table() -> None:
    f = pe.cd_from_source("def f(x, y):\n    return x + y", {})
    x = np.ones(2)
    assert f(x, x).tolist() == [2.0, 2.0]
    assert "why it was compiled" in str(f.explain(x, x))
    assert pe.tensor("p", (64, 10), fields=("vel",)).fields == ("value", "grad", "vel")
