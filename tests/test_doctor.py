"""`python -m plusequals` says what is here, also where nothing works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import plusequals
from plusequals.__main__ import USAGE, main
from plusequals.base.settings import describe

ROOT = Path(__file__).resolve().parent.parent


def doctor(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return how the command ended with these variables set."""
    return subprocess.run(
        [sys.executable, *(words if words[:1] == ("-c",) else ("-m", "plusequals", *words))],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_names_version_backends_compiler_and_cache(tmp_path: Path) -> None:
    done = doctor(PLUSEQUALS_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for text in (
        plusequals.__version__,
        "numpy         available",
        "-ffp-contract=off",
        str(tmp_path),
    ):
        assert text in done.stdout
    assert not done.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not left, "looking has filled the cache"


def test_it_survives_a_missing_compiler() -> None:
    done = doctor(PLUSEQUALS_COMPILER="no-such-compiler")
    assert done.returncode == 1
    assert "no-such-compiler" in done.stdout and "cache" in done.stdout
    assert not done.stderr


def test_it_shows_an_open_cache_and_changed_settings(tmp_path: Path) -> None:
    inside = tmp_path / "v1"
    inside.mkdir()
    tmp_path.chmod(0o777)
    done = doctor(PLUSEQUALS_CACHE_DIR=str(tmp_path), PLUSEQUALS_BACKEND="numpy")
    assert done.returncode == 0, done.stderr
    assert "others can write" in done.stdout
    assert "backend       'numpy'" in done.stdout


def test_a_cache_that_was_shared_serves_those_who_ask_for_it(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(
        "import numpy as np\nfrom plusequals import cd\n@cd\ndef f(x):\n    return x * 2\n"
    )
    run = (
        "import numpy as np, shown\nfrom plusequals.backends.runtime.state import RUNTIME\n"
        "print(shown.f(np.arange(3.0))[2], RUNTIME.counts())"
    )
    found = {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "PLUSEQUALS_OPTIMIZE": "0",
        "PLUSEQUALS_CACHE_DIR": str(tmp_path / "mine"),
    }
    shared = str(tmp_path / "shared")
    assert "'compiled': 1" in doctor("-c", run, **found).stdout
    done = doctor("cache", "share", shared, **found)
    assert done.returncode == 0 and f"SHARED_CACHE_DIR={shared}" in done.stdout
    found |= {"PLUSEQUALS_CACHE_DIR": str(tmp_path / "other"), "PLUSEQUALS_CACHE_TIMEOUT": "9"}
    done = doctor("-c", run, PLUSEQUALS_SHARED_CACHE_DIR=shared, **found)
    assert done.stdout == "4.0 {'disk': 1}\n" and not done.stderr
    left = {path.name for path in (tmp_path / "other").rglob("*.entry")}
    assert not left & {path.name for path in (tmp_path / "shared").rglob("*.entry")}
    (tmp_path / "shared" / "v1").chmod(0o777)
    done = doctor("cache", "share", shared, **found)
    assert done.returncode == 1 and "others can write" in done.stderr
    assert doctor("cache", "steal").returncode == 2


def test_words_mean_something_or_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"plusequals {plusequals.__version__}\n"
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == USAGE
    assert main(["settings"]) == 0
    shown = capsys.readouterr().out
    assert all(f"PLUSEQUALS_{name.upper()}: {text}" in shown for name, _, text in describe())
    for words in (["what"], ["--what"], ["cache"], ["settings", "threads"], ["--version", "x"]):
        assert main(words) == 2
        found = capsys.readouterr()
        assert not found.out and found.err == USAGE


def test_the_command_takes_its_words_from_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["plusequals", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("plusequals 0")


def test_a_page_has_every_setting() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    wanted = [f"| `{name}` | `{default}` | {text} |" for name, default, text in describe()]
    assert rows[: len(wanted)] == wanted
