"""The table of accuracy: what the page says, and functions that have a row."""

from __future__ import annotations

import re
from pathlib import Path

from plusequals.lowering.ir.accuracy import ULPS
from plusequals.lowering.ir.ops import OPS

PAGE = Path(__file__).parents[3] / "docs" / "numerics.md"
ROW = re.compile(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


def test_the_page_has_the_table() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert {name: (float(one), float(other)) for name, one, other in rows} == ULPS


def test_each_row_is_an_operation() -> None:
    assert OPS.keys() >= ULPS.keys()
