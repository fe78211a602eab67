"""Self-contained HTML page of a trace, and its JSON export."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import Source
from ...lowering.ir.assignments import Assign
from .recorded import RecordSequence
from .records import Record
from .terms import Term
from .text import TreeNode, build_tree

MAX_PAGE_LINES = 20_000
"""The largest number of lines of a page, unless all are requested."""
_NOT_FINITE = re.compile(r"-> .*\b(nan|inf)|= ?\S*\b(nan|inf)j?[)}]*$")
"""Matches a record or a term whose value is not finite."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1d232b; --soft: #66707d; --paper: #ffffff;
  --panel: #f5f6f8; --rule: #dde1e6; --mark: #ffe9a8; --link: #0b5cad; --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #dde3ea; --soft: #93a0ae; --paper: #14181d;
  --panel: #1b2026; --rule: #303841; --mark: #57470f; --link: #7db8f0; --bad: #f2938c } }
* { box-sizing: border-box }
body { margin: 0; padding: 1.2rem 1.6rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.3rem; margin: 0 0 .2rem } .soft { color: var(--soft) }
#bar { display: flex; gap: .6rem; align-items: center; margin: .8rem 0; flex-wrap: wrap }
input, button { font: inherit; padding: .25rem .6rem; color: inherit; background: var(--panel);
  border: 1px solid var(--rule); border-radius: 5px }
input { min-width: 22rem }
#both { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 2fr); gap: 1.2rem }
pre, #tree { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  margin: 0; padding: .6rem; overflow: auto; max-height: 78vh;
  font: 13px/1.55 ui-monospace, Consolas, monospace }
#tree details, #tree div { padding-left: 1.1rem; white-space: pre }
#tree summary { cursor: pointer; margin-left: -1.1rem }
.at { color: var(--link); cursor: pointer; margin-right: .7rem; user-select: none }
.comment > summary { color: var(--link) } .loop > summary, .iteration > summary, .branch > summary
  { font-style: italic } .folded { color: var(--soft) } .bad, .error { color: var(--bad) }
.on { background: var(--mark) } .gone { display: none }
pre span { display: block; min-height: 1.2em }
@media (max-width: 60rem) { #both { grid-template-columns: minmax(0, 1fr) } }
"""

_SCRIPT = """
const tree = document.getElementById("tree"), find = document.getElementById("find");
const said = document.getElementById("said");
function fold(open) { for (const one of tree.querySelectorAll("details")) one.open = open }
document.getElementById("open").onclick = () => fold(true);
document.getElementById("fold").onclick = () => fold(false);
function mark(line, scroll) {
  for (const one of document.querySelectorAll("[data-line]"))
    one.classList.toggle("on", one.dataset.line === line);
  const place = document.querySelector(`pre [data-line="${line}"]`);
  if (place && scroll) place.scrollIntoView({ block: "center" });
}
document.addEventListener("click", event => {
  const at = event.target.closest(".at, pre span");
  if (!at) return;
  event.preventDefault();
  mark(at.dataset.line, at.classList.contains("at"));
  if (!at.classList.contains("at")) {
    const first = tree.querySelector(`.at[data-line="${at.dataset.line}"]`);
    for (let up = first && first.closest("details"); up; up = up.parentElement.closest("details"))
      up.open = true;
    if (first) first.scrollIntoView({ block: "center" });
  }
});
find.oninput = () => {
  const wanted = find.value.trim().toLowerCase();
  let count = 0;
  const show = (one, all) => {
    const own = (one.firstElementChild && one.tagName === "DETAILS"
      ? one.firstElementChild : one).textContent.toLowerCase().includes(wanted);
    let inner = false;
    for (const child of one.children)
      if (child.tagName === "DETAILS" || child.tagName === "DIV")
        inner = show(child, all || own) || inner;
    if (own && wanted) count += 1;
    const seen = !wanted || own || inner;
    one.classList.toggle("gone", !seen && !all);
    if (wanted && inner && one.tagName === "DETAILS") one.open = true;
    return seen;
  };
  for (const one of tree.children) show(one, false);
  said.textContent = wanted ? `${count} found` : "";
};
"""


def wrap_in_iframe(html_text: str) -> str:
    """Return a page in an iframe, for notebooks."""
    style = "width: 100%; height: 48em; border: 0"
    return f'<iframe srcdoc="{escape(html_text)}" style="{style}"></iframe>'


def render_page(trace: RecordSequence, head: int, tail: int) -> str:
    """Return the page: the source on the left, the foldable, searchable tree on the right.

    Where the page would be too long, fewer iterations and elements are shown; a page that is still
    too long is truncated. A `head` of 0 shows all.
    """
    sources = dict.fromkeys(
        site.statement.span.source for run in trace.runs for site in run.layout.sites
    )
    numbers = {source: number for number, source in enumerate(sources)}
    listing = "".join(_source_html(number, source) for source, number in numbers.items())
    names = ", ".join(dict.fromkeys(run.name for run in trace.runs)) or "nothing"
    dropped = f"; {trace.dropped:,} more were dropped" if trace.dropped else ""
    body = _tree_body(trace, head, tail, numbers)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>trace of {escape(names)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Recorded of {escape(names)}</h1>"
        f'<p class="soft">{len(trace.runs)} runs, {len(trace):,} assignments{dropped}. Each says '
        "what it read and what its element was before and after.</p>"
        '<div id="bar"><input id="find" type="search" aria-label="search" '
        'placeholder="search: y[0, 3], nan, a line of the function">'
        '<button id="open">open all</button><button id="fold">fold all</button>'
        '<span id="said" class="soft"></span></div>'
        f'<div id="both"><pre>{listing}</pre><div id="tree">{body}</div></div>'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _tree_body(trace: RecordSequence, head: int, tail: int, sources: Mapping[Source, int]) -> str:
    """Return the tree of a trace as HTML."""
    while True:
        budget = _LineBudget(MAX_PAGE_LINES if head else sys.maxsize)
        fragments = list(_tree_html(build_tree(trace, head, tail), sources, True, budget))
        if budget.lines > 0 or head <= 1:
            return "".join(fragments)
        head, tail = head // 2, min(tail, head // 2)


@dataclass
class _LineBudget:
    """The remaining number of lines of a page."""

    lines: int


def _source_html(source_number: int, source: Source) -> str:
    """Return the lines of a source, identified by the number of the source and of the line."""
    rows = source.text.rstrip("\n").split("\n")
    return "".join(
        f'<span data-line="{source_number}:{number}">{number:>4}  {escape(row)}</span>'
        for number, row in enumerate(rows, source.first_line)
    )


def _tree_html(
    branches: Iterable[TreeNode], sources: Mapping[Source, int], is_open: bool, budget: _LineBudget
) -> Iterator[str]:
    for node in branches:
        if budget.lines <= 0:
            yield '<div class="folded">... more is left out, for the page would be too long</div>'
            return
        budget.lines -= 1
        line = f"{sources[node.span.source]}:{node.line}" if node.span.source in sources else ""
        at = f'<span class="at" data-line="{line}">{node.line}</span>' if line and node.line else ""
        text = escape(node.text)
        kind = node.kind
        if kind in ("record", "term"):
            kind += " bad" if _NOT_FINITE.search(node.text) else ""
        inner = list(_tree_html(node.children(), sources, node.kind in ("call", "comment"), budget))
        if not inner:
            yield f'<div class="{kind}">{at}{text}</div>'
            continue
        state = " open" if is_open else ""
        yield f'<details class="{kind}"{state}><summary>{at}{text}</summary>'
        yield from inner
        yield "</details>"


def render_json(trace: RecordSequence) -> str:
    """Return the runs and the records as JSON."""
    runs = [
        {"name": run.name, "backend": run.backend, "stream": run.stream, "records": run.points,
         "dropped": run.dropped, "error": run.error}
        for run in trace.runs
    ]  # fmt: skip
    records = [_record_json(record, trace.terms(record)) for record in trace]
    return json.dumps({"runs": runs, "records": records}, indent=1)


def _record_json(record: Record, terms: Sequence[Term]) -> dict[str, Any]:
    statement = record.site.statement
    assert isinstance(statement, Assign)
    return {
        "run": record.run, "row": record.row, "line": record.line,
        "statement": statement.span.text, "array": record.array, "index": list(record.index),
        "at": dict(record.at), "before": _encode(record.before), "after": _encode(record.after),
        "operands": [{"text": x.text, "value": _encode(x.value)} for x in record.operands],
        **({} if record.contribution is None else {"contribution": _encode(record.contribution)}),
        **({"terms": [_term_json(x) for x in terms]} if terms else {}),
    }  # fmt: skip


def _term_json(term: Term) -> dict[str, Any]:
    return {"at": term.at, "text": term.text, "value": _encode(term.value)}


def _encode(value: Any) -> Any:
    if np.iscomplexobj(value) or not np.isfinite(value):
        return str(value)
    return value.item() if hasattr(value, "item") else value
