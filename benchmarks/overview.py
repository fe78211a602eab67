"""One picture of all cells beside each library, drawn from the tables of a page.

    python -m benchmarks.overview                   docs/performance.md into docs/libraries.png
    python -m benchmarks.overview --page benchmarks/out/performance.md --out out.png --threads 1

Nothing is measured: the page is what `python3 -m benchmarks` wrote, so that the picture shows the
recorded numbers and no others.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cells import cell
from .peers import OURS, PEERS
from .results import mean

DOCS = Path(__file__).resolve().parent.parent / "docs"
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
REGIMES = {"small": "#f2a541", "medium": "#2a9d8f", "large": "#3d5a98"}
"""The sizes of cells and their colours, from top to bottom in each library's band."""
BEST = "best of these"
FACTORS = (0.5, 1, 2, 5, 10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long as plusequals one library takes in one cell."""

    library: str
    cell: str
    regime: str
    factor: float


def ratios(page: str, threads: int) -> list[Ratio]:
    """Return the ratios of a page's table of cells, and those of the best library of each cell.

    Raises ValueError where the page has no such table.
    """
    rows = _table(page, f"**Cells with {_threads(threads)}**")
    titles = [peer.title for peer in PEERS if peer != OURS and peer.title in rows[0]]
    found = []
    for row in rows:
        times = {title: known for title in titles if (known := _seconds(row[title])) is not None}
        ours = _seconds(row[OURS.title])
        if ours is None or not times:
            continue
        best = (BEST, min(times.values()))
        found += [
            Ratio(library, row["cell"], cell(row["cell"]).size.regime, other / ours)
            for library, other in (*times.items(), best)
        ]
    return found


def _table(page: str, title: str) -> list[dict[str, str]]:
    """Return the rows of the table below a title, each by the heads of its columns."""
    _, there, rest = page.partition(f"{title}\n\n")
    lines = [line.strip("| ") for line in rest.split("\n\n")[0].splitlines()]
    if not there or len(lines) < 3:
        raise ValueError(f"the page has no table below `{title}`")
    heads, _, *rows = [[word.strip() for word in line.split(" | ")] for line in lines]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def _seconds(text: str) -> float | None:
    """Return a time as the tables have it, None of one that is missing.

    >>> _seconds("22.8 µs"), _seconds("–")
    (2.28e-05, None)
    """
    match = re.fullmatch(r"([\d.]+) (ns|µs|ms|s)", text)
    return None if match is None else float(match[1]) * UNITS[match[2]]


def draw(found: Sequence[Ratio], threads: int, path: Path) -> None:
    """Write a picture: a band for each library, in it a dot for each cell, a bar for each mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    libraries = dict.fromkeys(ratio.library for ratio in found if ratio.library != BEST)
    bands = [*libraries, BEST]
    figure, axes = pyplot.subplots(figsize=(8, 0.55 * len(bands) + 1.3), layout="constrained")
    for band, library in enumerate(bands):
        for lane, (regime, color) in enumerate(REGIMES.items()):
            factors = [r.factor for r in found if (r.library, r.regime) == (library, regime)]
            y = band + (lane - 1) * 0.24
            axes.scatter(factors, [y] * len(factors), s=16, color=color, alpha=0.45, linewidth=0)
            middle = mean(factors)
            if middle is not None:
                axes.plot([middle] * 2, [y - 0.13, y + 0.13], color=color, linewidth=2.5)
    cells = len({ratio.cell for ratio in found})
    axes.set_xlim(0.42, 1.25 * max(ratio.factor for ratio in found))
    _frame(axes, bands)
    axes.set_xlabel(f"time over that of plusequals: {cells} cells, {_threads(threads)}")
    marks = [Line2D([], [], color=color, marker="o", linestyle="") for color in REGIMES.values()]
    gray = Line2D([], [], color="gray", marker="|", linestyle="")
    gray.set(markersize=10, markeredgewidth=2.5)
    marks.append(gray)
    names = [*(f"a {regime} cell" for regime in REGIMES), "geometric mean"]
    figure.legend(marks, names, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=200, metadata={"Software": None})
    pyplot.close(figure)


def _frame(axes: Any, bands: Sequence[str]) -> None:
    """Draw what is around the dots: the axes, and which side of 1 is whose."""
    axes.axvspan(1e-9, 1, color="black", alpha=0.06, linewidth=0)
    axes.axvline(1, color="black", linewidth=1)
    axes.axhline(len(bands) - 1.5, color="black", linewidth=0.5, alpha=0.3)
    small = {"fontsize": 8, "color": "#555555", "va": "bottom"}
    axes.text(0.95, -0.55, "the library is faster", ha="right", **small)
    axes.text(1.06, -0.55, "plusequals is faster", ha="left", **small)
    axes.set_xscale("log")
    axes.set_xticks(FACTORS, [f"{factor:g}×" for factor in FACTORS])
    axes.minorticks_off()
    axes.set_yticks(range(len(bands)), bands)
    axes.set_ylim(len(bands) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[:].set_visible(False)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def main(words: Sequence[str] | None = None) -> int:
    """Draw what a page has, and say where the picture is."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.overview", None, __doc__,
                                     formatter_class=raw)  # fmt: skip
    parser.add_argument("--page", type=Path, default=DOCS / "performance.md")
    parser.add_argument("--out", type=Path, default=DOCS / "libraries.png")
    parser.add_argument("--threads", type=int, default=2, help="which table of the page (2)")
    asked = parser.parse_args(words)
    found = ratios(asked.page.read_text(encoding="utf-8"), asked.threads)
    draw(found, asked.threads, asked.out)
    print(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
