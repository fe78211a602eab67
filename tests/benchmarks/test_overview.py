"""The picture beside other libraries shows what the page has: its cells, ratios and means."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from benchmarks import overview
from benchmarks.results import mean

PAGE = (overview.DOCS / "performance.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("threads", (2, 1))
def test_ratios_are_those_of_the_page(threads: int) -> None:
    found = overview.ratios(PAGE, threads)
    assert len({ratio.cell for ratio in found}) == 115
    heads = ("threads", "size", "cells", "over the best peer")
    for row in overview._table(PAGE, "**Geometric means**"):
        of_threads, regime, cells, over = (row[head] for head in heads)
        if of_threads == str(threads):
            known = [r.factor for r in found if (r.library, r.regime) == (overview.BEST, regime)]
            assert len(known) == int(cells)
            assert 1 / (mean(known) or 0) == pytest.approx(float(over), abs=0.006)


def test_a_page_without_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no table below `..Cells with 3 threads"):
        overview.ratios(PAGE, 3)


def test_times_are_read_with_their_units() -> None:
    assert doctest.testmod(overview).failed == 0


def test_the_picture_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.png"
    assert overview.main(["--out", str(path), "--threads", "1"]) == 0
    assert path.read_bytes().startswith(b"\x89PNG") and capsys.readouterr().out == f"{path}\n"
