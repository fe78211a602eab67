"""Explanations: the code of a function for given arguments, and each decision that led to it.

    print(f.explain(x, y))                     the whole text
    f.explain(x, y).to_html("f.html")          one HTML page with linked lines
    print(f.explain(x, y).why)                 one part: see `ExplanationParts` for the others

In a notebook, an explanation that is the last line of a cell is displayed as the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...backends.interface import Code, HasKernels, HasPrelude, Origin
from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Source, Span
from ...base.lazy_import import LazyModule
from ...lowering.analysis.iteration_domains import CallValues, call_values
from ...lowering.ir.loops import Program
from ...lowering.ir.memory_mode import MATERIALIZED, NEVER_VIRTUAL, Decision
from ...lowering.ir.node import Node
from ...lowering.ir.printer import Line, procedure_lines, program_lines
from ...lowering.ir.text import Scope
from ...lowering.lower import lower
from ...lowering.operation_counts import OperationCounts, count_operations
from ...lowering.passes.inferred_decisions import first_writes
from ...lowering.pipeline import optimize
from ...lowering.placement import UNUSED, Placement, StorageDecision
from ...lowering.placement import place_nodes as place
from ..elaborate.captures.inputs import NumberSpec, ObjectSpec, Spec
from ..elaborate.captures.instances import is_library
from ..source.function_source import MISSING
from ..specialize.recompile_reasons import path_text, spec_text
from ..specialize.variants import Arguments, Specialization
from ..tracing.bisect import target_of
from ..values.call_site import LIBRARY
from ..values.values import Path as ValuePath
from .page import render_page
from .parts import ArrayRow, ExplanationParts, Remark, join_lines, sort_remarks, source_order
from .text import arrays_text, decisions_text, kernels_text, render_text, work_text

if TYPE_CHECKING:
    from ..tracing import page
else:
    page = LazyModule("..tracing.page", __package__)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(ExplanationParts):
    """Every decision about one specialization of a function. `str()` is the whole text."""

    def __str__(self) -> str:
        return render_text(self)

    __repr__ = __str__

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained HTML page, and write it to the path, if one is given.

        Raises OSError where the file cannot be written.
        """
        html = render_page(self)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html

    def _repr_html_(self) -> str:
        """Return the page inside an iframe, for notebooks."""
        return page.wrap_in_iframe(render_page(self))

    @property
    def places(self) -> str:
        """Each array with its memory mode and the reason, as text."""
        return arrays_text(self)

    @property
    def choices(self) -> str:
        """The decisions about loops and values, as text."""
        return decisions_text(self)

    @property
    def work(self) -> str:
        """Operations, bytes, intensities and temporary memory of a call, as text."""
        return work_text(self)

    @property
    def kernel_table(self) -> str:
        """Registers, spills, shared memory and stack of each kernel, as text."""
        return kernels_text(self)

    @property
    def assignments(self) -> str:
        """The assignments as text."""
        return join_lines(self.meaning)

    @property
    def loops(self) -> str:
        """The loops as text; empty where the backend runs the assignments."""
        return join_lines(self.lowered)

    @property
    def code(self) -> str:
        """The generated code as text: the prelude, and the functions."""
        return join_lines((*self.prelude, *self.generated))


def build_explanation(
    specialization: Specialization, is_cached: bool, arguments: Arguments
) -> Explanation:
    """Return the explanation of a specialization; `is_cached`: an earlier call compiled it."""
    assert specialization.routine is not None, "only compiled forms are explained"
    procedure, code, names = specialization.procedure, specialization.routine.code, Scope()
    details: dict[str, Any] = {
        "arrays": (), "decisions": (), "counts": None, "lowered": (), "names": names.nodes,
    }  # fmt: skip
    if code.origin != "interpreted":
        lowered = lower(procedure)
        stop = settings.current().stop_after
        target = target_of(specialization.situation.backend)
        program, placement = optimize(lowered, target, stop_after=stop)
        shown = code.program if isinstance(code, HasKernels) else program
        details["lowered"] = tuple(program_lines(shown, names))
        arrays = [get(arguments) for get in specialization.arrays]
        facts = call_values(procedure.parameters, arrays)
        details["counts"] = count_operations(program, facts, placement.memory)
        if isinstance(code, HasKernels) and code.computed:
            details["counts"] = _without_tiled(code, details["counts"], facts)
            placement = _with_tiles(placement, code)
        details["arrays"] = tuple(_arrays(lowered, program, placement, names, procedure.span))
        if isinstance(code, HasKernels):
            decisions = (*placement.decisions, *code.decisions)
            placement = replace(placement, decisions=decisions)
        details["decisions"] = tuple(_decisions(placement, names, procedure.span))
    meaning, lines = tuple(procedure_lines(procedure, names)), tuple(_code_lines(code))
    above = code.above if isinstance(code, HasPrelude) else 0
    return Explanation(
        name=procedure.name,
        called=_call_text(specialization),
        why=specialization.reason,
        origin=_origin_text(
            code.origin, (specialization.seconds, specialization.routine.seconds), is_cached
        ),
        written=tuple(_source_lines(procedure.span.source, meaning)),
        meaning=meaning,
        generated=lines[above:],
        prelude=lines[:above],
        kernels=tuple(code.kernels) if isinstance(code, HasKernels) else (),
        **details,
    )


def _with_tiles(placement: Placement, code: HasKernels) -> Placement:
    """Return the placement in which arrays that a device computes only in tiles are virtual."""
    tiles = StorageDecision(
        "virtual", "the product that reads it computes its elements where it fills tiles"
    )
    return replace(placement, places={**placement.places, **dict.fromkeys(code.computed, tiles)})


def _without_tiled(code: HasKernels, totals: OperationCounts, facts: CallValues) -> OperationCounts:
    """Return the counts of a call without the memory and traffic of arrays computed in tiles."""
    memory = place(code.whole, stack_bytes=settings.current().stack_bytes).memory
    whole = count_operations(code.whole, facts, memory)
    arrays = tuple(array for array in totals.arrays if array.node.id not in code.computed)
    return replace(totals, arrays=arrays, allocated=whole.allocated, stack=whole.stack)


def _source_lines(home: Source, lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the text of the function, then that of inlined functions that lines come from."""
    others = {line.span.source: None for line in lines if line.span is not NOWHERE}
    for source in dict.fromkeys((home, *others)):
        if source != home:
            yield from (Line(""), Line(f"# {source.name}"))
        for number, text in enumerate(source.text.rstrip("\n").split("\n"), source.first_line):
            yield Line(text, Span(source, number, 0, number, len(text)))


def _code_lines(code: Code) -> Iterator[Line]:
    """Return the lines of the code; comments and pragmas have the span of the line below them."""
    lines: list[Line] = []
    below, spans = NOWHERE, code.line_map
    texts = code.text.rstrip("\n").split("\n")
    for number, text in reversed([*enumerate(texts, 1)]):
        is_heading = text.lstrip().startswith(("/*", "#pragma"))
        below = below if is_heading else spans.get(number, NOWHERE)
        lines.append(Line(text, below))
    return reversed(lines)


def _arrays(
    before: Program, program: Program, placement: Placement, names: Scope, home: Span
) -> Iterator[ArrayRow]:
    """Yield the rows of parameters and results, then of other arrays in source order."""
    spans, current = (
        first_writes(program) | first_writes(before),
        {node.id: node for node in program.locals},
    )
    written = {p.node.id: p.written for p in program.parameters}
    external = [*(p.node for p in before.parameters), *before.results]
    local = {node.id: node for node in (*program.locals, *before.locals)}
    ordered = sorted(
        local.values(), key=lambda node: source_order(spans.get(node.id, NOWHERE), home)
    )
    for node in (*external, *ordered):
        storage = placement[node]
        if storage.why == UNUSED and node.id not in spans:
            continue  # a pass made it, and others removed what it was for
        mode = _mode_text(storage, current.get(node.id, node), written.get(node.id, False))
        decision = placement.modes.get(node.id)
        why = str(storage)
        if decision is not None:
            if storage.where != "removed" and _has_specific_request(node):
                mode = ", ".join([str(decision.mode), *mode.split(", ")[1:]])
            why = f"{_requests_text(decision)}; {why}"
        span = spans.get(node.id, NOWHERE)
        if not node.rank and span.source.name == LIBRARY:
            continue  # scalars inside library functions are irrelevant to this function
        yield ArrayRow(names.node(node), _type_text(node), mode, why, span)


def _has_specific_request(node: Node) -> bool:
    """Whether the memory request of a node is more specific than that it is stored."""
    return node.request is not None and node.request.mode not in (NEVER_VIRTUAL, MATERIALIZED)


def _requests_text(decision: Decision) -> str:
    """Return the memory requests of a node with their lines."""
    return "; ".join(
        f"line {request.span.line} asks for {request.mode}"
        for request in decision.requests if request.span is not NOWHERE
    )  # fmt: skip


def _mode_text(storage: StorageDecision, current: Node, written: bool) -> str:
    """Return the memory mode of a node in words, and its type in memory."""
    match storage.where:
        case "parameter":
            return "hosted, written" if written else "hosted, read"
        case "result":
            return "hosted, result"
        case "register":
            return "local, a register"
        case "virtual":
            return "virtual"
        case "removed":
            return "not computed"
        case "reused":
            return "local, in the memory of another array"
        case "private":
            return f"local, {_type_text(current)} of each thread"
        case "scratch" | "runtime":
            return f"local, {_type_text(current)}"


def _type_text(node: Node) -> str:
    shape = ", ".join(map(str, node.shape))
    return f"{node.dtype.short}[{shape}]" if node.rank else node.dtype.short


def _decisions(placement: Placement, names: Scope, home: Span) -> Sequence[Remark]:
    """Return the decisions about loops and values; those about arrays are in the array rows."""
    arrays = ("virtual", "stored", "shrunk", "whole", "removed", "reused")
    remarks = (
        Remark(decision.sentence(names.node), decision.span)
        for decision in placement.decisions if decision.outcome not in arrays
    )  # fmt: skip
    return sort_remarks(remarks, home)


def _call_text(specialization: Specialization) -> str:
    """Return a line for each argument, captured value, and pair of names of one array."""
    situation = specialization.situation
    lines = [
        _argument_text(specialization, name, spec) for name, spec in situation.arguments.items()
    ]
    lines += [
        f"{path_text(path)}: {spec_text(spec)}"
        for path, spec in situation.captured.items()
        if _is_shown(spec) and path.steps[-1:] != ("__code__",)
    ]
    lines += [f"{alias} is the array {original}" for alias, original in situation.alias.items()]
    return "\n".join([*lines, f"on the backend `{situation.backend}`"])


def _argument_text(specialization: Specialization, name: str, spec: Spec) -> str:
    """Return the line of an argument; for an integer, whether it is static, and why."""
    text, current = f"{name}: {spec_text(spec)}", specialization.typed.used.get(ValuePath(name))
    span = specialization.typed.needed.get(name)
    if name not in specialization.typed.statics or span is None:
        return text
    if isinstance(current, NumberSpec):
        return f"{name}: {spec_text(current)} of any value"
    source_line = span.text.split("\n")[0].strip()
    return f"{text}, static: line {span.line} needs its value, `{source_line}`"


def _is_shown(spec: Spec) -> bool:
    """Whether a captured value is shown: not objects of Python, NumPy or the language."""
    return not isinstance(spec, ObjectSpec) or (
        spec.value is not MISSING and not is_library(spec.value)
    )


def _origin_text(origin: Origin, seconds: tuple[float, float], is_cached: bool) -> str:
    before, after = (f"{1000 * part:.1f} ms" for part in seconds)
    texts = {
        "compiled": f"compiled in {after}",
        "disk": f"read from the disk cache in {after}",
        "memory": f"equal code was loaded already, found in {after}",
        "interpreted": "not compiled: the backend runs the assignments as they stand",
    }
    note = "" if is_cached else "\nmade for this explanation only: no such call was made so far"
    return f"{texts[origin]}, after {before} to read the function for these arguments{note}"
