"""A report as a picture: for each cell, the time of every peer over that of plusequals."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # the line above says that there is no window

from .peers import OURS, PEERS
from .results import Report, Row

MARKS = {"numpy": "s", "numba": "^", "torch": "o", "torch_compile": "D", "jax": "v"}
FACTORS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def draw(report: Report, folder: Path) -> list[Path]:
    """Write a picture for each number of threads; return where they are."""
    paths = []
    for threads in sorted({row.threads for row in report.rows}):
        rows = [row for row in report.rows if row.threads == threads and row.ours is not None]
        if rows:
            paths.append(folder / f"cells-{threads}.png")
            _draw(rows, threads, paths[-1])
    return paths


def _draw(rows: list[Row], threads: int, path: Path) -> None:
    """Draw one line a cell: right of 1 a peer takes longer than plusequals."""
    figure, axes = pyplot.subplots(figsize=(9, 2.5 + 0.2 * len(rows)), layout="constrained")
    places = range(len(rows))
    for peer in PEERS:
        known = [
            (row.timings[peer.name].seconds / row.ours.seconds, place)
            for place, row in zip(places, rows) if peer.name in row.timings and row.ours
        ]  # fmt: skip
        if known and peer != OURS:
            x, y = zip(*known)
            axes.scatter(x, y, s=18, marker=MARKS[peer.name], label=peer.title, alpha=0.8)
    limits = [
        (row.roofline / row.ours.seconds, place)
        for place, row in zip(places, rows) if row.roofline and row.ours
    ]  # fmt: skip
    if limits:
        x, y = zip(*limits)
        axes.scatter(x, y, s=60, marker="|", color="black", label="roofline")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    shown = [factor for factor in FACTORS if low <= factor <= high] or [1]
    axes.set_xticks(shown, [f"{factor:g}" for factor in shown])
    axes.set_yticks(list(places), [row.cell for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    of = f"{threads} thread{'s' if threads > 1 else ''}"
    axes.set_xlabel(f"time over that of plusequals, {of}: further right is slower")
    figure.legend(loc="outside upper center", ncols=6, fontsize=7, frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
