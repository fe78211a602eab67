"""A few faults of each subject; all of them are a command: `python -m tests.faults`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults import storm
from tests.faults.__main__ import ROWS
from tests.faults.rows import Row, run

_SAMPLE = (
    "is killed", "entries with a bit flipped", "another owner", "3 files may be opened",
    "forks while a thread compiles", "hostile: '%n%n%n%s'", "size changed in place between calls",
    "the package is in an archive",
)  # fmt: skip


def test_every_fault_has_a_name_of_its_own() -> None:
    names = [(row.subject, row.name) for row in ROWS]
    assert len(set(names)) == len(names) > 100
    assert set(_SAMPLE) <= {row.name for row in ROWS}


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in _SAMPLE], ids=lambda r: r.name)
def test_a_fault_is_survived(row: Row) -> None:
    good, text = run(row)
    assert good, text


@pytest.mark.parametrize(
    "body", ["say('wrong 1')", "raise ValueError", "os._exit(3)", "say('refused CD0802')", "pass"]
)
def test_what_is_not_survived_is_seen(body: str) -> None:
    good, _ = run(Row(subject="none", name="none", body=body))
    assert not good


def test_killed_processes_harm_nobody(tmp_path: Path) -> None:
    problems, compiled = storm.storm(tmp_path, 2, 1, random.Random(1))
    assert problems == []
    assert all(compiled[number] <= 2 for number in range(storm.FUNCTIONS))
