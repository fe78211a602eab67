"""What a function became for some arguments, and why: as text, as a page, and part by part.

    print(f.explain(x, y))                     all of it as text
    f.explain(x, y).to_html("f.html")          all of it as one page, lines linked
    print(f.explain(x, y).why)                 one part: see `Parts` for the others

In a notebook, an explanation that is the last line of a cell shows as the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...backends.interface import Code, HasKernels, Origin
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
from ...lowering.placement import Place, Placement
from ...lowering.placement import place_nodes as place
from ..elaborate.captures.inputs import NumberSpec, ObjectSpec, Spec
from ..elaborate.captures.instances import is_library
from ..elaborate.scope import LIBRARY
from ..source.function_source import MISSING
from ..specialize.recompile_reasons import path_text, spec_text
from ..specialize.variants import Arguments, Specialisation
from ..tracing.bisect import target_of
from ..values.values import Path as Way
from .page import page_of
from .parts import ArrayRow, Parts, Told, in_order, text_of_lines
from .text import arrays_text, decisions_text, kernels_text, text_of, work_text

if TYPE_CHECKING:
    from ..tracing import page
else:
    page = LazyModule("..tracing.page", __package__)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Parts):
    """Every decision about one form of a function. `str()` is the whole text."""

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the page, which needs nothing but itself; written to the path, if one is given.

        Raises OSError where the file cannot be written.
        """
        made = page_of(self)
        if path is not None:
            Path(path).write_text(made, encoding="utf-8")
        return made

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, for notebooks."""
        return page.framed(page_of(self))

    @property
    def places(self) -> str:
        """Each array, its memory mode and why, as text."""
        return arrays_text(self)

    @property
    def choices(self) -> str:
        """What was decided about loops and values, as text."""
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
        return text_of_lines(self.meaning)

    @property
    def loops(self) -> str:
        """The loops as text; empty where the backend runs the assignments."""
        return text_of_lines(self.lowered)

    @property
    def code(self) -> str:
        """The generated code as text."""
        return text_of_lines(self.generated)


def explanation(form: Specialisation, is_kept: bool, arguments: Arguments) -> Explanation:
    """Return the explanation of a form; `is_kept` says that it was made by a call before."""
    assert form.routine is not None, "only compiled forms are explained"
    procedure, code, names = form.procedure, form.routine.code, Scope()
    about: dict[str, Any] = {
        "arrays": (), "decisions": (), "counts": None, "lowered": (), "names": names.nodes,
    }  # fmt: skip
    if code.origin != "interpreted":
        before = lower(procedure)
        stop = settings.current().stop_after
        program, placement = optimize(
            before, target_of(code, form.situation.backend), stop_after=stop
        )
        shown = code.program if isinstance(code, HasKernels) else program
        about["lowered"] = tuple(program_lines(shown, names))
        given = [get(arguments) for get in form.arrays]
        known = call_values(procedure.parameters, given)
        about["counts"] = count_operations(program, known, placement.memory)
        if isinstance(code, HasKernels) and code.computed:
            about["counts"] = _without(code, about["counts"], known)
            placement = _computed(placement, code)
        about["arrays"] = tuple(_arrays(before, program, placement, names))
        if isinstance(code, HasKernels):
            found = (*placement.decisions, *code.decisions)
            placement = replace(placement, decisions=found)
        about["decisions"] = tuple(_decisions(placement, names, procedure.span))
    meaning = tuple(procedure_lines(procedure, names))
    return Explanation(
        name=procedure.name,
        called=_called(form),
        why=form.reason,
        origin=_origin(code.origin, (form.seconds, form.routine.seconds), is_kept),
        written=tuple(_written(procedure.span.source, meaning)),
        meaning=meaning,
        generated=tuple(_generated(code)),
        kernels=tuple(code.kernels) if isinstance(code, HasKernels) else (),
        **about,
    )


def _computed(placement: Placement, code: HasKernels) -> Placement:
    """Return where arrays are of which a device has some only in tiles, element by element."""
    tiles = Place("virtual", "the product that reads it computes its elements where it fills tiles")
    return replace(placement, places={**placement.places, **dict.fromkeys(code.computed, tiles)})


def _without(code: HasKernels, found: OperationCounts, known: CallValues) -> OperationCounts:
    """Return the work of a call without the memory that these would take, and its traffic."""
    memory = place(code.whole, stack_bytes=settings.current().stack_bytes).memory
    kept = count_operations(code.whole, known, memory)
    arrays = tuple(one for one in found.arrays if one.node.id not in code.computed)
    return replace(found, arrays=arrays, allocated=kept.allocated, stack=kept.stack)


def _written(home: Source, lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the text of the function, then that of others that lines come from: inlined ones."""
    others = {line.span.source: None for line in lines if line.span is not NOWHERE}
    for source in dict.fromkeys((home, *others)):
        if source != home:
            yield from (Line(""), Line(f"# {source.name}"))
        for number, text in enumerate(source.text.rstrip("\n").split("\n"), source.first_line):
            yield Line(text, Span(source, number, 0, number, len(text)))


def _generated(code: Code) -> Iterator[Line]:
    """Yield the lines of the code; a comment has the place of the line that it heads."""
    texts = code.text.rstrip("\n").split("\n")
    places = code.line_map
    for number, text in enumerate(texts, 1):
        at = number + 1 if text.lstrip().startswith("/*") else number
        yield Line(text, places.get(at, NOWHERE))


def _arrays(
    before: Program, program: Program, placement: Placement, names: Scope
) -> Iterator[ArrayRow]:
    """Yield what the caller provides or gets, then the others in the order of the source."""
    spans, now = (
        first_writes(program) | first_writes(before),
        {node.id: node for node in program.locals},
    )
    written = {p.node.id: p.written for p in program.parameters}
    outside = [*(p.node for p in before.parameters), *before.results]
    inside = {node.id: node for node in (*program.locals, *before.locals)}
    between = sorted(inside.values(), key=lambda node: _line(spans.get(node.id, NOWHERE)))
    for node in (*outside, *between):
        place = placement[node]
        mode = _mode(place, now.get(node.id, node), written.get(node.id, False))
        settled = placement.modes.get(node.id)
        why = str(place)
        if settled is not None:
            if place.where != "removed" and _says_more(node):
                mode = ", ".join([str(settled.mode), *mode.split(", ")[1:]])
            why = f"{_asked(settled)}; {why}"
        span = spans.get(node.id, NOWHERE)
        if not node.rank and span.source.name == LIBRARY:
            continue  # numbers that functions of the library work with say nothing of this one
        yield ArrayRow(names.node(node), _type(node), mode, why, span)


def _says_more(node: Node) -> bool:
    """Whether what was asked of a node leaves less open than that it has an array."""
    return node.request is not None and node.request.mode not in (NEVER_VIRTUAL, MATERIALIZED)


def _asked(settled: Decision) -> str:
    """Return what was asked of the memory of a node, and on which lines."""
    return "; ".join(
        f"line {one.span.line} asks for {one.mode}"
        for one in settled.requests if one.span is not NOWHERE
    )  # fmt: skip


def _line(span: Span) -> tuple[str, int, int]:
    return span.source.name, span.line, span.column


def _mode(place: Place, now: Node, written: bool) -> str:
    """Return the memory mode of a node in words, and what of it is in memory."""
    match place.where:
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
            return f"local, {_type(now)} of each thread"
        case "scratch" | "runtime":
            return f"local, {_type(now)}"


def _type(node: Node) -> str:
    shape = ", ".join(map(str, node.shape))
    return f"{node.dtype.short}[{shape}]" if node.rank else node.dtype.short


def _decisions(placement: Placement, names: Scope, home: Span) -> Sequence[Told]:
    """Return what was decided about loops and values; what is about arrays has rows of its own."""
    arrays = ("virtual", "stored", "shrunk", "whole", "removed", "reused")
    told = (
        Told(made.told(names.node), made.span)
        for made in placement.decisions if made.outcome not in arrays
    )  # fmt: skip
    return in_order(told, home)


def _called(form: Specialisation) -> str:
    """Return a line for each argument, captured value, and pair of names of one array."""
    situation = form.situation
    lines = [_argument(form, name, spec) for name, spec in situation.arguments.items()]
    lines += [
        f"{path_text(path)}: {spec_text(spec)}"
        for path, spec in situation.captured.items()
        if _is_news(spec) and path.steps[-1:] != ("__code__",)
    ]
    lines += [f"{two} is the array {one}" for two, one in situation.alias.items()]
    return "\n".join([*lines, f"on the backend `{situation.backend}`"])


def _argument(form: Specialisation, name: str, spec: Spec) -> str:
    """Return the line of an argument: of an integer whether its value is compiled in, and why."""
    told, now = f"{name}: {spec_text(spec)}", form.typed.used.get(Way(name))
    place = form.typed.needed.get(name)
    if name not in form.typed.statics or place is None:
        return told
    if isinstance(now, NumberSpec):
        return f"{name}: {spec_text(now)} of any value"
    text = place.text.split("\n")[0].strip()
    return f"{told}, static: line {place.line} needs its value, `{text}`"


def _is_news(spec: Spec) -> bool:
    """Whether a reader wants to see it: not what comes with Python, NumPy or the language."""
    return not isinstance(spec, ObjectSpec) or (
        spec.value is not MISSING and not is_library(spec.value)
    )


def _origin(origin: Origin, seconds: tuple[float, float], is_kept: bool) -> str:
    before, after = (f"{1000 * part:.1f} ms" for part in seconds)
    texts = {
        "compiled": f"compiled in {after}",
        "disk": f"read from the disk cache in {after}",
        "memory": f"equal code was loaded already, found in {after}",
        "interpreted": "not compiled: the backend runs the assignments as they stand",
    }
    asked = "" if is_kept else "\nmade for this explanation only: no such call was made so far"
    return f"{texts[origin]}, after {before} to read the function for these arguments{asked}"
