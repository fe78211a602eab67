"""The scoreboard: its data are whole, and the page has them."""

from __future__ import annotations

import importlib.util
import re

import pytest

from .hunt import PARTS, SIZES, Part, chosen
from .reliability import NOT_RUN, PAGE, main, printed, rows, with_table


def test_the_page_has_the_table_of_the_data() -> None:
    page = PAGE.read_text("utf-8")
    assert with_table(page, rows()) == page, "python -m tests.reliability --write"


def test_each_measure_has_a_row_and_what_was_run_says_when() -> None:
    board = rows()
    assert [row.name for row in board] == [f"R{n}" for n in range(1, 22)]
    for row in board:
        assert row.figure and row.goal and row.measure, row.name
        assert "|" not in "".join((row.figure, row.command, row.measure, row.goal)), row.name
        ran = row.figure != NOT_RUN
        assert ran == bool(row.date), f"{row.name}: a figure has a date"
        assert not row.date or re.fullmatch(r"\d{4}-\d\d-\d\d", row.date), row.name
        assert ran or not (row.command or row.seed), f"{row.name}: it was not run"


def test_commands_name_modules_that_exist() -> None:
    for row in rows():
        for command in filter(None, (one.strip() for one in row.command.split(";"))):
            assert importlib.util.find_spec(command.split()[0]) is not None, command


def test_the_scoreboard_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert said == printed(rows()) + "\n"
    assert said.startswith("R1 ")
    assert f"of {len(rows())} measured" in said


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_hunt_has_a_command_for_each_size(part: Part) -> None:
    assert list(part.counts) == sorted(part.counts), "a longer hunt has no fewer programs"
    for size, count in zip(SIZES, part.counts):
        command = part.command(size, 7, 2)
        assert command[command.index(part.counted) + 1] == str(count)
        assert command[command.index("--seed") + 1] == "7"


def test_hunts_are_chosen_by_size_and_name() -> None:
    names = [part.name for part in chosen("seconds", [])]
    assert "nests" in names
    assert "kernels" not in names
    assert [part.name for part in chosen("hours", ["kernels", "large"])] == ["large", "kernels"]
