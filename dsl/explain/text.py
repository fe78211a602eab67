"""Text rendering of an explanation: at most 100 columns, with source line numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.printer import Line
from ...lowering.operation_counts import OperationCounts
from .parts import (
    KERNEL_TITLES,
    TRAFFIC_TITLES,
    ExplanationParts,
    Remark,
    assumptions,
    count_rows,
    join_lines,
    kernel_rows,
    operation_rows,
    traffic_rows,
)

WIDTH = 100


def render_text(parts: ExplanationParts) -> str:
    """Return the whole explanation as text."""
    sections = (
        ("called with", parts.called),
        ("why it was compiled", parts.why),
        ("where the code came from", parts.origin),
        ("arrays", arrays_text(parts)),
        ("decisions", decisions_text(parts)),
        ("work of one call", work_text(parts)),
        ("kernels", kernels_text(parts)),
        ("the function", number_lines(parts.written, parts.home)),
        ("assignments", join_lines(parts.meaning)),
        ("loops, beside them the line of the function", number_lines(parts.lowered, parts.home)),
        ("code, beside it the line of the function", code_text(parts)),
    )
    texts = [_with_title(parts.name, "=", "")]
    texts += [_with_title(title, "-", text) for title, text in sections if text]
    return "\n\n".join(text.rstrip("\n") for text in texts) + "\n"


def arrays_text(parts: ExplanationParts) -> str:
    """Return a row for each array: its name, type, line, memory mode, and the reason."""
    rows = [
        (row.name, row.type, place_text(row.span, parts.home), row.mode, row.why)
        for row in parts.arrays
    ]
    return "\n".join(_table([("array", "type", "line", "mode", "why"), *rows] if rows else []))


def decisions_text(parts: ExplanationParts) -> str:
    """Return a row for each decision about loops and values: its line, and a sentence."""
    return "\n".join(_remark_lines(parts.decisions, parts.home))


def work_text(parts: ExplanationParts) -> str:
    """Return the counts of a call: operations, bytes, intensities, temporary memory."""
    if parts.counts is None:
        return ""
    blocks = [
        _table(count_rows(parts.counts), 1, 1),
        _table(operation_rows(parts.counts), 1, 1),
        _table([TRAFFIC_TITLES, *traffic_rows(parts, parts.counts)], 1, 4),
        _assumption_lines(parts.counts, parts.home),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def kernels_text(parts: ExplanationParts) -> str:
    """Return a row for each kernel: its resources, as the compiler reports them."""
    rows = kernel_rows(parts, place_text)
    return "\n".join(_table([KERNEL_TITLES, *rows], 1, 6)) if rows else ""


def number_lines(lines: Sequence[Line], home: Span) -> str:
    """Return lines prefixed with the number of the source line that each comes from."""
    numbers = [place_text(line.span, home) for line in lines]
    width = max(map(len, numbers), default=0)
    return "\n".join(
        f"{number:>{width}} | {line.text}".rstrip()
        for number, line in zip(numbers, lines, strict=True)
    )


def code_text(parts: ExplanationParts) -> str:
    """Return the functions of the code, and in place of the prelude how to see it."""
    text = number_lines(parts.generated, parts.home)
    if not parts.prelude:
        return text
    return f"{text}\n\nnot shown: the prelude above it, {len(parts.prelude)} lines; `.code` has all"


def place_text(span: Span, home: Span) -> str:
    """Return the number of a line, with its file name where that is not the home source."""
    if span is NOWHERE:
        return ""
    if span.source == home.source:
        return str(span.line)
    return f"{span.source.short_name}:{span.line}"


def _with_title(title: str, mark: str, text: str) -> str:
    return f"{title}\n{mark * len(title)}\n{text}"


def _assumption_lines(counts: OperationCounts, home: Span) -> list[str]:
    return list(_remark_lines(assumptions(counts, home), home))


def _remark_lines(remarks: Iterable[Remark], home: Span) -> Iterator[str]:
    rows = [(place_text(remark.span, home), remark.sentence) for remark in remarks]
    width = max((len(line) for line, _ in rows), default=0)
    align = "<" if any(":" in line for line, _ in rows) else ">"  # left-align with file names
    for line, sentence in rows:
        lead = f"line {line:{align}{width}}  " if line else " " * (width + 7)
        yield from _wrap_lines(lead, sentence)


def _table(rows: Sequence[tuple[str, ...]], first: int = 0, count: int = 0) -> list[str]:
    """Return rows as aligned columns, the last one wrapped; `count` columns from `first` are
    right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out: list[str] = []
    for row in rows:
        cells = [
            f"{cell:>{width}}" if first <= at < first + count else f"{cell:<{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        out += _wrap_lines("  ".join(cells[:-1]) + "  ", cells[-1].rstrip())
    return out


def _wrap_lines(lead: str, text: str) -> list[str]:
    """Return text after a lead, its continuation lines indented by the lead's width."""
    width = max(WIDTH - len(lead), 40)
    if len(text) <= width:
        return [(lead + text).rstrip()]
    first, *rest = wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [lead + first, *(" " * len(lead) + line for line in rest)]
