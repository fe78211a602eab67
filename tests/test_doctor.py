"""`python -m plusequals` says what is here, also where nothing works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import plusequals

ROOT = Path(__file__).resolve().parent.parent


def doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    """Return how the command ended with these variables set."""
    return subprocess.run(
        [sys.executable, "-m", "plusequals"],
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
