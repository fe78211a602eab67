"""Plans as tables, graphs and pictures: streams, signals, waits, and why each thing waits."""

from __future__ import annotations

from collections.abc import Iterator

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
    streams, events, waits = (counts[each] for each in ("streams", "events", "waits"))
    yield f"{name}: {len(body.nodes)} nodes, {streams} streams, {events} events, {waits} waits"
    rows = [("", "node", "rank", "stream", "waits for", "why it comes after others", "line")]
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
        signal = "!" if at in schedule.signals else ""
        rows.append((str(at), node.name + signal, str(graph.ranks[at]), numbers, waits or begin,
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
        labels = ("before the test", "after the test") if isinstance(node, Loop) else ()
        for number, inner in enumerate(node.bodies):
            label = labels[number] if labels else f"branch {number}"
            if inner.nodes:
                yield ""
                yield from ("    " + line for line in _lines(inner, f"{node.name}, {label}"))


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
