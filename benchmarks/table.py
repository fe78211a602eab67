"""A report as text: tables of Markdown that are also readable as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .cell import REGIMES
from .peers import OURS, PEERS, peer
from .results import Report, Row, mean

NOTHING = "–"


def markdown(report: Report) -> str:
    """Return all of a report: what was run where, the cells, and what is paid once."""
    parts: list[Callable[[Report], list[str]]] = [
        _head, _summary, _cells, _gradients, _refused, _calls, _startup, _memory, _ceilings,
        _problems,
    ]  # fmt: skip
    return "\n".join(line for part in parts for line in part(report)) + "\n"


def line(row: Row) -> str:
    """Return one cell in one line, for those who watch."""
    said = f"{row.cell:32} {row.threads} thread{'s' if row.threads > 1 else ' '}"
    if row.ours is None:
        return f"{said}  {row.why.get(OURS.name, 'not measured')[:100]}"
    said += f"  {seconds(row.ours.seconds):>9}"
    if row.best is not None and row.ratio is not None:
        said += f"  {row.ratio:6.2f} x {peer(row.best).title}"
    if row.over_forward is not None:
        said += f"  {row.over_forward:6.2f} x forward"
    if row.over_roofline is not None:
        said += f"  {row.over_roofline:6.1f} x roofline"
    return said


def seconds(value: float) -> str:
    """Return a time with three digits and the unit that fits.

    >>> seconds(0.0123), seconds(2.5e-7), seconds(12.5)
    ('12.3 ms', '250 ns', '12.5 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {unit}" if value < 999.5 * size else f"{value:.0f} {unit}"
    return f"{value * 1e9:.3g} ns"


def size(value: float) -> str:
    """Return a number of bytes with the unit that fits.

    >>> size(12288), size(3 * 2**20)
    ('12 KiB', '3 MiB')
    """
    for unit, bytes in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= bytes:
            return f"{value / bytes:.3g} {unit}"
    return f"{value:.0f} bytes"


def _head(report: Report) -> list[str]:
    facts = [f"{name} {value}" for name, value in report.machine.items() if value]
    said = ["```sh", report.command, "```", "", "; ".join(facts) + "."]
    said += ["", "; ".join(report.versions.values()) + "."] if report.versions else []
    said += [f"\n{peer(name).title} was left out: {why}." for name, why in report.left_out.items()]
    return [*said, ""]


def _summary(report: Report) -> list[str]:
    """The geometric means over the cells where both sides have a time."""
    rows = []
    others = _others(report.rows)
    for threads in sorted({row.threads for row in report.rows}, reverse=True):
        of_this = [row for row in report.rows if row.threads == threads]
        for regime in REGIMES:
            some = [row for row in of_this if row.regime == regime]
            ratios = [row.ratio for row in some if row.ratio]
            if ratios:
                won = sum(ratio <= 1 for ratio in ratios)
                over = mean(row.over_roofline for row in some if row.over_roofline)
                rows.append([
                    str(threads), regime, str(len(ratios)), _times(mean(ratios)), str(won),
                    *(_times(_against(some, other)) for other in others), _times(over),
                ])  # fmt: skip
    titles = [f"over {peer(name).title}" for name in others]
    heads = ["threads", "size", "cells", "over the best peer", "of these fastest", *titles,
             "over the roofline"]  # fmt: skip
    return _table("Geometric means", heads, rows)


def _against(rows: Iterable[Row], other: str) -> float | None:
    return mean(
        row.ours.seconds / row.timings[other].seconds
        for row in rows if row.ours is not None and other in row.timings
    )  # fmt: skip


def _cells(report: Report) -> list[str]:
    said: list[str] = []
    for threads in sorted({row.threads for row in report.rows}, reverse=True):
        rows = [
            [
                row.cell, _time(row, OURS.name), peer(row.best).title if row.best else NOTHING,
                _times(row.ratio), _times(row.over_roofline),
                *(_time(row, name) for name in _others(report.rows)),
            ]
            for row in report.rows if row.threads == threads
        ]  # fmt: skip
        titles = [peer(name).title for name in _others(report.rows)]
        heads = ["cell", OURS.title, "best peer", "over it", "over the roofline", *titles]
        title = f"Cells with {threads} thread{'s' if threads > 1 else ''}"
        said += _table(title, heads, rows)
    return said


def _gradients(report: Report) -> list[str]:
    """The means of gradients, then one table for each number of threads."""
    means, tables = [], []
    others = _others(report.gradients)
    titles = [peer(name).title for name in others]
    for threads in sorted({row.threads for row in report.gradients}, reverse=True):
        of_this = [row for row in report.gradients if row.threads == threads]
        for regime in REGIMES:
            some = [row for row in of_this if row.regime == regime]
            ratios = [row.ratio for row in some if row.ratio]
            over = [row.over_forward for row in some if row.over_forward]
            if over:
                won = sum(ratio <= 1 for ratio in ratios)
                means.append([
                    str(threads), regime, str(len(over)), _times(mean(over)), _times(max(over)),
                    _times(mean(ratios)), str(won),
                    *(_times(_against(some, other)) for other in others),
                ])  # fmt: skip
        rows = [
            [
                row.cell, seconds(row.forward.seconds) if row.forward else NOTHING,
                _time(row, OURS.name), _times(row.over_forward),
                peer(row.best).title if row.best else NOTHING, _times(row.ratio),
                *(_time(row, name) for name in others),
            ]
            for row in of_this
        ]  # fmt: skip
        heads = ["cell", "loss", "with its gradient", "over the loss", "best peer", "over it"]
        title = f"Gradients with {threads} thread{'s' if threads > 1 else ''}"
        tables += _table(title, [*heads, *titles], rows)
    heads = ["threads", "size", "cells", "over the loss", "at most", "over the best peer",
             "of these fastest", *(f"over {title}" for title in titles)]  # fmt: skip
    return _table("Gradients: geometric means", heads, means) + tables


def _refused(report: Report) -> list[str]:
    """Why a peer has no time, once for all cells and threads that have the same reason."""
    cells: dict[tuple[str, str], list[str]] = {}
    for of, some in (("", report.rows), ("gradient of ", report.gradients)):
        for row in some:
            for name, why in row.why.items():
                short = " ".join(why.split())[:160]
                cells.setdefault((name, short), []).append(f"{of}{row.cell} ({row.threads})")
    rows = [[peer(n).title, ", ".join(found), why] for (n, why), found in cells.items()]
    return _table("Without a time", ["peer", "cells (threads)", "why"], rows)


def _calls(report: Report) -> list[str]:
    rows = [
        [peer(name).title, *(seconds(t[k]) if k in t else NOTHING for k in ("same", "fresh"))]
        for name, t in report.calls.items()
    ]
    heads = ["peer", "the same arrays", "fresh arrays"]
    return _table("A warm call with three arrays of 64 numbers", heads, rows)


def _startup(report: Report) -> list[str]:
    rows = [[f"`import {module}`", seconds(taken)] for module, taken in report.imports.items()]
    said = _table("Importing, in a new process", ["what", "time"], rows)
    rows = [
        [name, peer(other).title, seconds(empty), seconds(warm)]
        for name, peers in report.firsts.items() for other, (empty, warm) in peers.items()
    ]  # fmt: skip
    heads = ["cell", "peer", "empty cache", "warm cache"]
    return said + _table("The first call of a process, after importing", heads, rows)


def _memory(report: Report) -> list[str]:
    rows = [
        [name, *(size(peers[p.name]) if p.name in peers else NOTHING for p in PEERS)]
        for name, peers in report.memory.items()
    ]
    heads = ["cell", *(p.title for p in PEERS)]
    return _table("Memory at the peak, beyond arguments and results", heads, rows)


def _ceilings(report: Report) -> list[str]:
    rows = [
        [str(c.threads), *(f"{c.peak[name] / 1e9:.0f}" for name in ("f32", "f64"))]
        for c in report.ceilings
    ]
    said = _table("Ceilings: operations", ["threads", "f32, GFLOP/s", "f64, GFLOP/s"], rows)
    sizes = sorted({bytes for c in report.ceilings for bytes in c.bandwidth})
    heads, columns = ["footprint"], []
    for c in report.ceilings:
        heads += [f"triad, {c.threads}", f"read, {c.threads}"]
        columns += [c.triad, c.read]
    rows = [[size(bytes), *(f"{of.get(bytes, 0) / 1e9:.0f}" for of in columns)] for bytes in sizes]
    return said + _table("Ceilings: GB/s, by threads", heads, rows)


def _problems(report: Report) -> list[str]:
    return ["**Not measured**", "", *(f"* {text}" for text in report.problems), ""] * bool(
        report.problems
    )


def _others(rows: Iterable[Row]) -> list[str]:
    """The peers beside plusequals that have a time somewhere, in the order of the list."""
    there = {name for row in rows for name in row.timings}
    return [p.name for p in PEERS if p.name in there and p != OURS]


def _time(row: Row, name: str) -> str:
    return seconds(row.timings[name].seconds) if name in row.timings else NOTHING


def _times(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio is not None else NOTHING


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table with columns of one width, nothing where there are no rows."""
    if not rows:
        return []
    wide = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, wide)) + " |"
        for row in [heads, ["-" * width for width in wide], *rows]
    ]
    return [f"**{title}**", "", *lines, ""]
