"""What a function became for some arguments, and why: text, and the same as single sections.

    print(f.explain(x, y))             all of it
    print(f.explain(x, y).why)         one section

The sections are called, why, origin, assignments, loops, places and source.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..backends.cc import host
from ..backends.interface import Origin
from ..lowering import settings
from ..lowering.ir.loops import Program
from ..lowering.ir.printer import print_procedure, print_program
from ..lowering.lower import lower
from ..lowering.pipeline import Placement, optimize
from ..lowering.target import HOST
from .elaborate.inputs import ObjectSpec, Spec, is_library
from .forms import Specialisation
from .reasons import path_text, spec_text
from .source import MISSING


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Every decision about one form of a function. `str()` is the whole text."""

    name: str
    called: str
    """What it was called with: a line for each argument and each captured value."""
    why: str
    """Why there was no code for such a call before."""
    origin: str
    """Where the code came from, and what that cost."""
    assignments: str
    """What it means: accumulating assignments over index domains."""
    loops: str
    """What it became, after every pass; empty where the backend runs the assignments."""
    places: str
    """Where each array lives, and why."""
    source: str
    """The generated code."""

    def __str__(self) -> str:
        sections = (
            ("called with", self.called),
            ("why it was compiled", self.why),
            ("where the code came from", self.origin),
            ("assignments", self.assignments),
            ("loops", self.loops),
            ("places", self.places),
            ("source", self.source),
        )
        texts = [f"{self.name}\n{'=' * len(self.name)}"]
        texts += [f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections if text]
        return "\n\n".join(text.rstrip("\n") for text in texts) + "\n"

    __repr__ = __str__


def explanation(form: Specialisation, is_kept: bool) -> Explanation:
    """Return the explanation of a form; `is_kept` says that it was made by a call before."""
    assert form.routine is not None, "only compiled forms are explained"
    code = form.routine.code
    loops, places = "", ""
    if code.origin != "interpreted":
        target = host.target() if form.situation.backend == "cc" else HOST
        last = settings.current().stop_after
        program, placement = optimize(lower(form.procedure), target, stop_after=last)
        loops, places = print_program(program), _places(program, placement)
    return Explanation(
        form.procedure.name,
        _called(form),
        form.reason,
        _origin(code.origin, form.seconds, is_kept),
        print_procedure(form.procedure),
        loops,
        places,
        code.text,
    )


def _called(form: Specialisation) -> str:
    """Return a line for each argument, captured value, and pair of names of one array."""
    situation = form.situation
    lines = [f"{name}: {spec_text(spec)}" for name, spec in situation.arguments.items()]
    lines += [
        f"{path_text(path)}: {spec_text(spec)}"
        for path, spec in situation.captured.items()
        if _is_news(spec)
    ]
    lines += [f"{two} is the array {one}" for two, one in situation.alias.items()]
    return "\n".join([*lines, f"on the backend `{situation.backend}`"])


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


def _places(program: Program, placement: Placement) -> str:
    """Return a line for each array, those that vanished last: its name, where it lives, why."""
    inlined = [made.node for made in placement.decisions if made.outcome == "virtual"]
    nodes = [*(p.node for p in program.parameters), *program.results, *program.locals]
    nodes += [node for node in inlined if node is not None]
    width = max((len(node.label) for node in nodes), default=0)
    return "\n".join(
        f"{node.label:<{width}}  {placement[node].where:<9}  {placement[node].why}"
        for node in nodes
    )
