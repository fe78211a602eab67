"""Every tutorial runs from its file, as a reader runs it, and prints and writes what it says."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe

from .backends.cuda.on_cpu import CpuDriver, backend, installed, needs_gxx
from .lowering.passes import digits as written_out

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "tutorials").glob("[0-9]*.py"))
PICTURES = {1: ["01_learning.png", "01_misread.png"], 2: ["02_heat.png"]}


def run(script: Path, out: Path) -> str:
    """Return what the script printed; fails with its complaint where it ended badly."""
    command = [sys.executable, str(script), "--quick", "--out", str(out)]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_they_are_numbered_without_gaps() -> None:
    assert [int(script.name[:2]) for script in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_is_a_third_prose(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    written = [line.strip() for line in text.splitlines() if line.strip()]
    docstrings = (ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if _has(node))
    prose = sum(len(docstring.splitlines()) for docstring in docstrings)
    prose += sum(line.startswith("#") for line in written)
    assert 3 * prose >= len(written), f"{prose} of {len(written)} lines are prose"


def _has(node: ast.AST) -> bool:
    return isinstance(node, ast.Module | ast.FunctionDef)


@pytest.mark.slow
def test_digits_are_read(tmp_path: Path) -> None:
    printed = run(SCRIPTS[0], tmp_path)
    mean = re.search(r"mean over 1: ([\d.]+)%", printed)
    assert mean is not None and float(mean[1]) >= 90
    assert [(tmp_path / name).read_bytes()[:4] for name in PICTURES[1]] == [b"\x89PNG"] * 2


def test_the_derived_gradients_of_the_digits_are_those_written_out() -> None:
    tutorial = runpy.run_path(str(SCRIPTS[0]), run_name="tutorial")
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((32, 64), np.float32), rng.integers(0, 10, 32)
    losses, networks = [], []
    for train in (tutorial["train"], written_out.train):
        networks.append(tutorial["new_network"](np.random.default_rng(6)))
        losses.append([train(*networks[-1], x, y, 0.1, 0.9, 1e-4) for _ in range(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[0][0] > losses[0][2]
    for derived, written in zip(*networks, strict=True):
        np.testing.assert_allclose(derived.grad[...], written.grad[...], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(derived[...], written[...], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_heat_spreads(tmp_path: Path) -> None:
    printed = run(SCRIPTS[1], tmp_path)
    means = [float(mean) for mean in re.findall(r"mean temperature is ([\d.]+)", printed)]
    assert len(means) == 3 and means == sorted(means)
    assert (tmp_path / PICTURES[2][0]).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_every_stage_is_shown_and_means_the_same(tmp_path: Path) -> None:
    printed = run(SCRIPTS[2], tmp_path)
    stages = re.findall(r"^--- (.+?) -+$", printed, re.MULTILINE)
    assert stages == [
        "source", "surface", "assignments", "loops", "passes", "optimized loops", "places", "C",
    ]  # fmt: skip
    assert len(re.findall(r"largest difference from NumPy: \d", printed)) == 3


@pytest.mark.slow
def test_two_streams_agree_with_one(tmp_path: Path) -> None:
    printed = run(SCRIPTS[3], tmp_path)
    assert "two runs on two streams are equal bit by bit: True" in printed
    difference = re.search(r"one stream and two differ by at most (\S+)", printed)
    assert difference is not None and float(difference[1]) < 1e-5


@pytest.mark.slow
def test_the_first_wrong_number_is_found(tmp_path: Path) -> None:
    printed = run(SCRIPTS[4], tmp_path)
    assert re.search(r"line \d+: e\[\d+, \d+\] = exp\(z.*\)    0.0 -> inf", printed)
    assert "error[CD0765]: a NaN is made of numbers" in printed
    assert "numpy and cc agree in all of" in printed
    assert "a stage that changed a result: None" in printed
    losses = re.search(r"the loss goes from ([\d.]+) to ([\d.]+)", printed)
    assert losses is not None and float(losses[1]) > 2 > 1 > float(losses[2])
    assert "<!doctype html>" in (tmp_path / "05_trace.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_without_a_gpu_it_is_said_what_is_left_out(tmp_path: Path) -> None:
    printed = run(SCRIPTS[5], tmp_path)
    assert re.search(r"on cc: the loss goes from 1\.\d+ to 0\.\d+", printed)
    if pe.backends()["cuda"] == "available":
        assert "on cuda: the loss goes from" in printed and "cc and cuda agree" in printed
        return
    assert "numpy and cc agree in all of" in printed
    assert "left out, since there is no device: training on it" in printed


@pytest.mark.slow
def test_a_plan_with_loops_and_a_branch_finds_the_warmer_plate(tmp_path: Path) -> None:
    printed = run(SCRIPTS[6], tmp_path)
    assert "plates: 5 nodes, 2 streams" in printed
    assert "means: 25.02 and 14.98" in printed
    assert "the warmer one has 25.02" in printed
    assert "on the second one the answer is 50.12" in printed
    assert (tmp_path / "07_plan.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_a_pendulum_is_fitted_and_its_wrong_gradient_found(tmp_path: Path) -> None:
    printed = run(SCRIPTS[7], tmp_path)
    wrong, right = re.findall(r"^p +\(3,\) .* ([\d.]+) $", printed, re.MULTILINE)
    assert float(wrong) < 1 and float(right) > 3
    assert "error[CD0485]: the gradient of `loss` in `p[" in printed
    text = SCRIPTS[7].read_text(encoding="utf-8").splitlines()
    line = 1 + next(at for at, one in enumerate(text) if "return table[int(" in one)
    assert re.search(rf"line {line}, 4,000 times, first as result = table\[80\]", printed)
    assert re.search(rf"└─ result = table\[79\].* line {line}, t = 0\n   └─ table\[79\]", printed)
    fitted = re.search(r"^between +([\d.]+) +([\d.]+) +([\d.]+)$", printed, re.MULTILINE)
    assert fitted is not None
    np.testing.assert_allclose([float(one) for one in fitted.groups()], [4, 1.5, 1], rtol=0.02)
    assert (tmp_path / "08_fitting.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
@needs_gxx
def test_the_gpu_tutorial_on_a_device_that_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPTS[5]), "--quick"])
    monkeypatch.setattr(pe, "backends", lambda: {"cuda": "available"})
    with installed(backend(CpuDriver(memory=1 << 26))):
        runpy.run_path(str(SCRIPTS[5]), run_name="__main__")
    printed = capsys.readouterr().out
    losses = re.findall(r"the loss goes from ([\d.]+) to ([\d.]+)", printed)
    assert len(losses) == 2 and losses[0] == losses[1]
    assert "cc and cuda agree in all of 6099 assignments" in printed


def test_a_tutorial_that_is_not_there_is_named() -> None:
    command = [sys.executable, str(ROOT / "tutorials" / "start.py"), "99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no tutorial 99" in done.stderr and "01_digits.py" in done.stderr
