"""Self-contained HTML page of an explanation: it loads no network resources and no other files.

The function, its loops and its C are in adjacent columns. Hovering over a line highlights the
corresponding lines in the other columns; a click, or Enter, pins the highlight and scrolls there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ...base.diagnostic import NOWHERE, Source, Span
from ...lowering.ir.printer import Line
from .parts import (
    KERNEL_TITLES,
    TRAFFIC_TITLES,
    ExplanationParts,
    Remark,
    assumptions,
    count_rows,
    kernel_rows,
    operation_rows,
    traffic_rows,
)
from .text import place_text

_STYLE = """
:root { color-scheme: light dark; --ink: #1d232b; --soft: #66707d; --paper: #ffffff;
  --panel: #f5f6f8; --rule: #dde1e6; --mark: #ffe9a8; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde3ea; --soft: #93a0ae; --paper: #14181d;
  --panel: #1b2026; --rule: #303841; --mark: #57470f; --link: #7db8f0; } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 2rem 3rem; max-width: 150rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font: 600 1.7rem/1.2 ui-monospace, monospace; margin: 0 0 .4rem }
h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem }
p { margin: .2rem 0; max-width: 75ch }
.soft, .number { color: var(--soft) }
code, pre, .line, .name { font: 13px/1.5 ui-monospace, "SF Mono", Consolas, monospace }
table { border-collapse: collapse; max-width: 75rem }
th { text-align: left; font-weight: 600; color: var(--soft) }
th, td { padding: .2rem 1.2rem .2rem 0; vertical-align: top; border-bottom: 1px solid var(--rule) }
td.right, th.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.keep { white-space: nowrap }
.tables { display: flex; flex-wrap: wrap; gap: 1rem 3rem; align-items: flex-start }
.columns { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); gap: 1rem;
  align-items: start }
h1 + p + p { margin-bottom: 1.2rem }
.column { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  overflow: auto; max-height: 75vh; padding-bottom: .5rem }
.column h3 { position: sticky; top: 0; left: 0; margin: 0 0 .3rem; padding: .45rem .8rem;
  font-size: .85rem; background: var(--panel); border-bottom: 1px solid var(--rule) }
.line { display: flex; width: max-content; min-width: 100%; white-space: pre; padding-right: 1rem }
.line .number { flex: none; min-width: 3.2rem; padding-right: .9rem; text-align: right;
  user-select: none }
[data-at] { cursor: pointer }
.on { background: var(--mark) }
:focus-visible { outline: 2px solid var(--link); outline-offset: -2px }
details pre { background: var(--panel); padding: .8rem; overflow: auto; border-radius: 6px }
summary { cursor: pointer; margin-top: 1.8rem; font-weight: 600 }
.column summary { margin: .8rem; font-size: .85rem }
@media (max-width: 60rem) { .columns { grid-auto-flow: row; grid-auto-columns: auto }
  .column { max-height: 60vh } body { padding: 1rem } }
"""

_SCRIPT = """
const all = [...document.querySelectorAll("[data-at]")];
const at = new Map(all.map(one => [one, one.dataset.at.split(" ")]));
let kept = null;
function mark(chosen) {
  const places = new Set(chosen ? at.get(chosen) : []);
  for (const one of all) one.classList.toggle("on", at.get(one).some(x => places.has(x)));
}
function keep(chosen) {
  kept = kept === chosen ? null : chosen;
  mark(chosen);
  if (!kept) return;
  for (const column of document.querySelectorAll(".column")) {
    const first = column.querySelector(".on");
    if (first && !column.contains(chosen))
      column.scrollTop += first.getBoundingClientRect().top
        - column.getBoundingClientRect().top - column.clientHeight / 3;
  }
}
for (const one of all) {
  one.tabIndex = 0;
  one.addEventListener("mouseenter", () => kept || mark(one));
  one.addEventListener("mouseleave", () => kept || mark(null));
  one.addEventListener("focus", () => kept || mark(one));
  one.addEventListener("click", () => keep(one));
  one.addEventListener("keydown", event => { if (event.key === "Enter") keep(one); });
}
document.addEventListener("keydown", event => {
  if (event.key === "Escape") { kept = null; mark(null); }
});
"""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def render_page(parts: ExplanationParts) -> str:
    """Return the explanation as a whole HTML document."""
    page = _Page(parts)
    body = "\n".join(text for text in page.sections() if text)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(parts.name)}, explained</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


class _Page:
    """The sections of one page, and numbers of its sources, to which lines refer."""

    __slots__ = ("parts", "sources")

    def __init__(self, parts: ExplanationParts) -> None:
        self.parts = parts
        lines = [line.span.source for line in parts.written if line.span is not NOWHERE]
        self.sources: dict[Source, int] = {s: n for n, s in enumerate(dict.fromkeys(lines))}

    def sections(self) -> Sequence[str]:
        """Return the sections in order, empty strings for those without content."""
        parts = self.parts
        called = "".join(f"<br><code>{escape(line)}</code>" for line in parts.called.split("\n"))
        origin = f"{parts.why}; {parts.origin}".replace("\n", "; ")
        return (
            f"<h1>{escape(parts.name)}</h1>",
            f'<p class="soft">called with{called}</p>',
            f'<p class="soft">{escape(origin)}</p>',
            self.columns(),
            self.arrays(),
            self.remarks("decisions", parts.decisions),
            self.work(),
            self.kernels(),
            self.meaning(),
        )

    def columns(self) -> str:
        """Return the columns of the function, the loops and the code."""
        parts = self.parts
        columns = [("the function", parts.written, True, ""), ("loops", parts.lowered, False, ""),
                 ("code", parts.generated, False, self.prelude())]  # fmt: skip
        shown = "\n".join(
            f'<section class="column"><h3>{title}</h3>\n{self.lines(lines, numbered)}{end}\n'
            "</section>"
            for title, lines, numbered, end in columns if lines
        )  # fmt: skip
        return f'<div class="columns">\n{shown}\n</div>'

    def prelude(self) -> str:
        """Return the prelude of the code in a collapsed section, empty where there is none."""
        prelude = self.parts.prelude
        if not prelude:
            return ""
        title = f"the prelude above it, {len(prelude)} lines"
        text = self.lines(prelude, False)
        return f"\n<details><summary>{title}</summary>\n{text}\n</details>"

    def lines(self, lines: Iterable[Line], is_source: bool) -> str:
        """Return lines, each linked to the lines of the function that it comes from."""
        out = []
        for line in lines:
            number = place_text(line.span, self.parts.home)
            title = "" if is_source or not number else f' title="from line {escape(number)}"'
            out.append(
                f'<div class="line"{self.link(line.span)}{title}>'
                f'<span class="number">{escape(number)}</span>'
                f"<span>{escape(line.text) or ' '}</span></div>"
            )
        return "\n".join(out)

    def link(self, span: Span) -> str:
        """Return the attribute with the source lines of a span, empty where it has none."""
        source = self.sources.get(span.source)
        if span is NOWHERE or source is None:
            return ""
        numbers = range(span.line, span.end_line + 1)
        return f' data-at="{" ".join(f"{source}.{number}" for number in numbers)}"'

    def arrays(self) -> str:
        """Return the table of arrays with their modes and the reasons."""
        if not self.parts.arrays:
            return ""
        rows = "\n".join(
            f'<tr{self.link(row.span)}><td class="name">{escape(row.name)}</td>'
            f'<td class="name keep">{escape(row.type)}</td><td class="keep">{escape(row.mode)}</td>'
            f'<td class="number">{escape(place_text(row.span, self.parts.home))}</td>'
            f"<td>{_prose(row.why)}</td></tr>"
            for row in self.parts.arrays
        )
        head = "<tr><th>array</th><th>type</th><th>mode</th><th>line</th><th>why</th></tr>"
        return f"<h2>arrays</h2>\n<table>\n{head}\n{rows}\n</table>"

    def remarks(self, title: str, remarks: Iterable[Remark]) -> str:
        """Return remarks about lines as a table."""
        rows = "\n".join(
            f'<tr{self.link(remark.span)}><td class="number keep">'
            f"{escape(place_text(remark.span, self.parts.home))}</td>"
            f"<td>{_prose(remark.sentence)}</td></tr>"
            for remark in remarks
        )
        return f"<h2>{title}</h2>\n<table>\n{rows}\n</table>" if rows else ""

    def work(self) -> str:
        """Return the tables of counts."""
        counts = self.parts.counts
        if counts is None:
            return ""
        tables = [
            _table((), count_rows(counts), 1, 1),
            _table(("operation", "times"), operation_rows(counts), 1, 1),
            _table(TRAFFIC_TITLES, traffic_rows(self.parts, counts), 1, 4),
        ]
        body = "\n".join(table for table in tables if table)
        assumed = self.remarks(
            "taken for granted in counting", assumptions(counts, self.parts.home)
        )
        return f'<h2>work of one call</h2>\n<div class="tables">\n{body}\n</div>\n{assumed}'

    def kernels(self) -> str:
        """Return the table of kernels and their resources."""
        table = _table(KERNEL_TITLES, kernel_rows(self.parts, place_text), 1, 6)
        return f"<h2>kernels</h2>\n{table}" if table else ""

    def meaning(self) -> str:
        """Return the assignments in a collapsed section."""
        text = escape("\n".join(line.text for line in self.parts.meaning))
        return f"<details><summary>assignments</summary><pre>{text}</pre></details>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], first: int, count: int) -> str:
    """Return a table in which `count` columns, starting at `first`, hold numbers."""
    if not rows:
        return ""

    def row(cells: Sequence[str], tag: str) -> str:
        sides = (' class="right"' if first <= k < first + count else "" for k in range(len(cells)))
        inner = (f"<{tag}{side}>{escape(c)}</{tag}>" for side, c in zip(sides, cells, strict=True))
        return f"<tr>{''.join(inner)}</tr>"

    lines = [row(head, "th")] if head else []
    return (
        "<table>\n"
        + "\n".join([*lines, *(row(row_cells, "td") for row_cells in rows)])
        + "\n</table>"
    )


def _prose(text: str) -> str:
    """Return a sentence in which text between backticks is code."""
    segments = escape(text).split("`")
    if len(segments) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(segments))
