"""Interrupts of calls, reads and plans at any moment: whoever comes later goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_no_lock_stays_taken() -> None:
    """In a process of its own, as an interrupt may come at any place of the run time."""
    command = [sys.executable, "-m", "tests.backends.runtime.random_interrupts", "--count", "160"]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "160 interrupts: everything went on" in ended.stdout
