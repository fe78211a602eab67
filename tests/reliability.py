"""The scoreboard of reliability, kept as data in `reliability.toml`: printed, or put into its page.

python -m tests.reliability
python -m tests.reliability --write
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("reliability.toml")
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
NOT_RUN = "not run"
_BLOCK = re.compile(r"(?<=<!-- scoreboard -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measure: its goal, and the last figure with what gave it."""

    name: str
    measure: str
    goal: str
    figure: str
    command: str = ""
    """Without `python -m`; several are divided by `;`. Empty where it was tried by hand."""
    seed: str = ""
    date: str = ""

    @property
    def shown(self) -> str:
        """Return the commands as they are typed."""
        commands = (one.strip() for one in self.command.split(";"))
        return "; ".join(f"`python -m {one}`" for one in commands if one)


def rows(text: str | None = None) -> list[Row]:
    """Return the rows of the file, or of a text."""
    text = FILE.read_text("utf-8") if text is None else text
    return [Row(**row) for row in tomllib.loads(text)["row"]]


def table(board: list[Row]) -> str:
    """Return the rows as a table of Markdown."""
    head = "| # | what | goal | figure | command | seed | date |\n" + "| --- " * 7 + "|\n"
    lines = (
        (row.name, row.measure, row.goal, row.figure, row.shown, row.seed, row.date)
        for row in board
    )
    return head + "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def with_table(page: str, board: list[Row]) -> str:
    """Return the page with these rows in the place of its own."""
    made, count = _BLOCK.subn(lambda _: table(board), page)
    assert count == 1, "the page has one place for the scoreboard"
    return made


def printed(board: list[Row]) -> str:
    """Return the rows as people read them in a terminal."""
    out = []
    for row in board:
        how = ", ".join(
            part for part in (row.shown, row.seed and f"seed {row.seed}", row.date) if part
        )
        out.append(
            f"{row.name:4} {row.measure}\n     goal    {row.goal}\n     figure  {row.figure}"
        )
        out += [f"     by      {how}"] if how else []
    measured = sum(row.figure != NOT_RUN for row in board)
    return "\n".join([*out, f"{measured} of {len(board)} measured"])


def main(arguments: list[str] | None = None) -> int:
    """Print the scoreboard, or put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="put it into docs/reliability.md")
    if parser.parse_args(arguments).write:
        PAGE.write_text(with_table(PAGE.read_text("utf-8"), rows()), "utf-8")
    else:
        print(printed(rows()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
