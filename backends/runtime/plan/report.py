"""Plans as tables, graphs and pictures: streams, signals, waits, and why each thing waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....base.diagnostic import CdBackendError, Diagnostic
from .steps import Body, Loop, Step


def statistics(body: Body) -> dict[str, int]:
    """Return counts of a body, without those of the bodies inside."""
    schedule, graph = body.schedule, body.graph
    begins = bool(schedule.first)
    return {
        "nodes": len(body.nodes),
        "streams": len(schedule.devices),
        "events": len(schedule.signals) + begins,
        "waits": sum(map(len, schedule.waits)) + len(schedule.first) + len(schedule.last),
        "edges": len(graph.edges),
        "removed_edges": len(graph.edges) - len(graph.kept),
        "added_edges": len(schedule.added),
    }


def table(body: Body, name: str) -> str:
    """Return a body as a table, and those inside of its nodes after it, indented."""
    return "\n".join(_lines(body, name))


def _lines(body: Body, name: str) -> Iterator[str]:
    counts = statistics(body)
    shown = ", ".join(f"{counts[each]} {each}" for each in ("nodes", "streams", "events", "waits"))
    yield f"{name}: {shown}"
    rows = [
        ("", "node", "rank", "stream", "signals", "waits for", "why it is after others", "line")
    ]
    schedule, graph = body.schedule, body.graph
    for at in schedule.order:
        node = body.nodes[at]
        numbers = "+".join(f"{schedule.devices[s]}/{s}" for s in schedule.streams[at])
        waits = ", ".join(f"{p} {body.nodes[p].name}" for p in schedule.waits[at])
        begin = "begin" if at in schedule.first else ""
        reasons = [
            f"{edge.before}: {', '.join(edge.reasons)}"
            for edge in (*graph.kept, *schedule.added)
            if edge.after == at
        ]
        signal = "yes" if at in schedule.signals else ""
        rows.append((str(at), node.name, str(graph.ranks[at]), numbers, signal, waits or begin,
                     "; ".join(reasons), node.line))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
    if schedule.last:
        names = ", ".join(f"{at} {body.nodes[at].name}" for at in schedule.last)
        yield f"the end waits for {names}"
    for node in body.nodes:
        if isinstance(node, Step):
            continue
        labels = ("before the predicate", "after the predicate") if isinstance(node, Loop) else ()
        for number, inner in enumerate(node.bodies):
            label = labels[number] if labels else f"branch {number}"
            if inner.nodes:
                yield ""
                yield from ("    " + line for line in _lines(inner, f"{node.name}, {label}"))


def explanation(body: Body, name: str) -> str:
    """Return why each node of a name comes when it does, "" where there is none."""
    return "\n".join(_explained(body, name, ""))


def _explained(body: Body, name: str, where: str) -> Iterator[str]:
    schedule, graph = body.schedule, body.graph
    for at, node in enumerate(body.nodes):
        inside = f" in `{where}`" if where else ""
        if node.name == name:
            stream = " and ".join(f"{schedule.devices[s]}/{s}" for s in schedule.streams[at])
            yield f"{at} `{name}`{inside}, recorded at {node.line}: on stream {stream}"
            for edge in (*graph.kept, *schedule.added):
                if edge.after == at:
                    earlier = f"{edge.before} `{body.nodes[edge.before].name}`"
                    how = "waits for" if edge.before in schedule.waits[at] else "comes after"
                    yield f"    {how} {earlier}: {', '.join(edge.reasons)}"
            for edge in graph.edges:
                if edge.after == at and edge not in graph.kept:
                    earlier = f"{edge.before} `{body.nodes[edge.before].name}`"
                    yield f"    {earlier} has ended then anyway: {', '.join(edge.reasons)}"
            if at in schedule.first:
                yield "    waits for the begin, on a stream of its own"
            if not graph.ancestors[at] and at not in schedule.first:
                yield "    depends on nothing before it"
        if not isinstance(node, Step):
            for inner in node.bodies:
                yield from _explained(inner, name, node.name)


def dot(body: Body, name: str) -> str:
    """Return a body as text in the DOT language: nodes in the colours of their streams."""
    return "\n".join(("digraph plan {", f'    label="{name}"', "    node [style=filled]",
                      *_dot_lines(body, "n", "    "), "}"))  # fmt: skip


def _dot_lines(body: Body, prefix: str, indent: str) -> Iterator[str]:
    schedule = body.schedule
    for at, node in enumerate(body.nodes):
        colour = schedule.streams[at][0] % 12 + 1
        yield (f'{indent}{prefix}{at} [label="{node.name}", colorscheme=set312, '
               f"fillcolor={colour}]")  # fmt: skip
        if not isinstance(node, Step):
            for number, inner in enumerate(node.bodies):
                if inner.nodes:
                    yield f"{indent}subgraph cluster_{prefix}{at}_{number} {{"
                    yield f'{indent}    label="{node.name} {number}"'
                    yield from _dot_lines(inner, f"{prefix}{at}_{number}_", indent + "    ")
                    yield f"{indent}}}"
    for edge in (*body.graph.kept, *schedule.added):
        reasons = ", ".join(edge.reasons)
        style = ", style=bold" if edge.before in schedule.waits[edge.after] else ""
        yield f'{indent}{prefix}{edge.before} -> {prefix}{edge.after} [label="{reasons}"{style}]'


def save_picture(body: Body, name: str, path: str | os.PathLike[str]) -> Path:
    """Draw a body into an image file: ranks from left to right, a colour for each stream.

    Raises CdBackendError CD0848 where matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise CdBackendError(
            Diagnostic(
                "CD0848", "a picture of a plan needs matplotlib, which is not installed",
                helps=("`pip install matplotlib`, or take the text for Graphviz: `plan.to_dot()`",),
            )
        ) from None  # fmt: skip
    shown = list(_placed(body, name))
    width = max((columns for *_, columns in shown), default=1)
    figure = Figure(figsize=(2 + 1.7 * width, 1 + 0.9 * sum(max(r, 1) for _, _, r, _ in shown)))
    heights = [max(rows, 1) + 0.5 for _, _, rows, _ in shown]
    axes = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, (inner, label, rows, _) in zip(axes, shown, strict=True):
        _draw(panel, inner, label, rows, width)
    target = Path(path)
    figure.savefig(target, dpi=120, bbox_inches="tight")
    return target


def _placed(body: Body, name: str) -> Iterator[tuple[Body, str, int, int]]:
    """Yield a body and those inside, each with its name, its streams, and its longest path."""
    yield body, name, len(body.schedule.devices), 1 + max(body.graph.ranks, default=0)
    for node in body.nodes:
        if isinstance(node, Step):
            continue
        labels = ("before the predicate", "after the predicate") if isinstance(node, Loop) else ()
        for number, inner in enumerate(node.bodies):
            if inner.nodes:
                label = labels[number] if labels else f"branch {number}"
                yield from _placed(inner, f"{node.name}, {label}")


def _draw(axes: Any, body: Body, name: str, rows: int, width: int) -> None:
    """Draw a body: a row for each stream, nodes by the number of edges before them."""
    depth = [0] * len(body.nodes)
    for edge in body.graph.kept:
        depth[edge.after] = max(depth[edge.after], depth[edge.before] + 1)
    used: dict[int, int] = {}
    places = []
    for at in body.schedule.order:
        row = body.schedule.streams[at][0]
        column = max(depth[at], used.get(row, -1) + 1)
        used[row] = column
        places.append((at, column, row))
    where = {at: (column, row) for at, column, row in places}
    for edge in (*body.graph.kept, *body.schedule.added):
        waits = edge.before in body.schedule.waits[edge.after]
        axes.annotate(
            "", where[edge.after], where[edge.before],
            arrowprops={"arrowstyle": "->", "color": "0.2" if waits else "0.7", "shrinkA": 16,
                        "shrinkB": 16, "lw": 1.5 if waits else 1},
        )  # fmt: skip
    for at, (column, row) in where.items():
        axes.text(
            column, row, f"{at} {body.nodes[at].name}", ha="center", va="center", fontsize=8,
            bbox={"boxstyle": "round", "facecolor": f"C{row % 10}", "alpha": 0.5},
        )  # fmt: skip
    axes.set_xlim(-0.7, max(width - 0.3, max((c for _, c, _ in places), default=0) + 0.7))
    axes.set_ylim(rows - 0.4, -0.6)
    labels = [f"{device}/{n}" for n, device in enumerate(body.schedule.devices)]
    axes.set_yticks(range(rows), labels, fontsize=8)
    axes.set_xticks([])
    axes.set_title(name, fontsize=9, loc="left")
    axes.set_frame_on(False)
