"""The passes in their order, and where each node ends up living.

Passes are functions from program to program, named in one tuple; none calls another. After each,
the observer is shown the program and, where asked, the invariants are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .diagnostic import CdValueError, Diagnostic, nearest
from .ir.assignments import Permute
from .ir.loops import For, If, Program, Stmt, While
from .ir.node import Node
from .passes.buffers import buffers, decide_buffers
from .passes.cse import cse
from .passes.dead import dead
from .passes.decision import Decided, Decision
from .passes.fuse import fuse, fused
from .passes.gather import gather
from .passes.hoist import hoist
from .passes.shrink import shrink, shrunk
from .passes.simplify import simplify
from .passes.virtualize import virtualize, virtualized
from .target import Target

Where = Literal["parameter", "result", "register", "scratch", "runtime", "virtual"]
Observer = Callable[[str, Program], None]
"""Called with the name of a stage and the program after it."""


class Pass(NamedTuple):
    """A step of the pipeline; the name is used by dumps, errors and the documentation."""

    name: str
    run: Callable[[Program, Target], Program]
    decide: Callable[[Program], Decided] | None = None
    """Where given: the same, together with what was decided about nodes and nests, and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node lives, and the sentence that says why."""

    where: Where
    why: str


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of every node of a program, by node id."""

    places: Mapping[int, Place]
    decisions: tuple[Decision, ...] = ()
    """What the passes decided, in order."""

    def __getitem__(self, node: Node) -> Place:
        return self.places[node.id]


PASSES: tuple[Pass, ...] = (
    Pass("simplify", lambda program, _: simplify(program)),
    Pass("gather", lambda program, _: gather(program)),  # before what it would look up is inlined
    Pass("dead", lambda program, _: dead(program)),
    Pass("virtualize", lambda program, _: virtualize(program), virtualized),
    Pass("fuse", lambda program, _: fuse(program), fused),  # the nests that are left
    Pass("shrink", lambda program, _: shrink(program), shrunk),  # fused rounds need less at once
    Pass("simplify again", lambda program, _: simplify(program)),  # what came together by moving
    Pass("cse", lambda program, _: cse(program)),  # the others count equal work as one
    Pass("hoist", lambda program, _: hoist(program)),
    Pass("dead again", lambda program, _: dead(program)),
    Pass("buffers", lambda program, _: buffers(program), decide_buffers),  # last: it ties nests
)


def optimize(
    program: Program,
    target: Target,
    observe: Observer | None = None,
    verify: Callable[[Program], None] | None = None,
    stop_after: str = "",
) -> tuple[Program, Placement]:
    """Return the program after every pass, and where its nodes live.

    `verify` is called on the program before the first pass and after each, and raises where an
    invariant does not hold. `stop_after` names the last pass to run, `lower` for none of them: a
    wrong result is pinned on a pass that way. Raises CdValueError where there is no such pass.
    """
    decisions: list[Decision] = []
    for stage in _stages(stop_after):
        if stage.decide is None:
            program = stage.run(program, target)
        else:
            program, found = stage.decide(program)
            decisions += found
        if observe is not None:
            observe(stage.name, program)
        if verify is not None:
            verify(program)
    return program, place(program, tuple(decisions))


def _stages(stop_after: str) -> tuple[Pass, ...]:
    """Return the stages up to the one that is named, all of them where none is."""
    stages = (Pass("lower", lambda lowered, _: lowered), *PASSES)
    names = [stage.name for stage in stages]
    if stop_after and stop_after not in names:
        near = nearest(stop_after, names)
        raise CdValueError(
            Diagnostic(
                "CD0823",
                f"the setting `stop_after` names `{stop_after}`, which is no pass",
                notes=("the passes are " + ", ".join(names),),
                helps=(f"did you mean `{near}`?",) if near else (),
            )
        )
    return stages[: names.index(stop_after) + 1] if stop_after else stages


def place(program: Program, decisions: tuple[Decision, ...] = ()) -> Placement:
    """Return where each node of a finished program lives, and why; those without array too."""
    moving = exchanged(program)
    places = {p.node.id: Place("parameter", "the caller provides it") for p in program.parameters}
    for node in program.results:
        places[node.id] = Place("result", "it is handed to the caller")
    why = {made.node.id: made for made in decisions if made.node is not None}
    for made in why.values():
        if made.node is not None and made.outcome in ("virtual", "reused"):
            where: Where = "virtual" if made.outcome == "virtual" else "scratch"
            places[made.node.id] = Place(where, str(made))
    for node in program.locals:
        places[node.id] = _local(node, node.id in moving, why.get(node.id))
    return Placement(places, decisions)


def exchanged(program: Program) -> frozenset[int]:
    """Return the ids of the nodes whose arrays some `Permute` moves."""
    return frozenset(node.id for kernel in program.kernels for node in _permuted(kernel.body))


def _local(node: Node, moving: bool, made: Decision | None) -> Place:
    shape = node.static_shape
    if shape is None:
        return Place("runtime", "its size is known only during the run")
    if node.rank == 0 and not moving:
        scalar = "it is a scalar that only this function uses"
        return Place("register", str(made) if made and made.outcome == "shrunk" else scalar)
    if node.rank == 0:
        return Place("scratch", "it is a scalar that trades places with another array")
    size = node.dtype.itemsize
    for extent in shape:
        size *= extent
    why = str(made) if made else "it is read after its loops have ended"
    return Place("scratch", f"{why}: {size} bytes")


def _permuted(body: tuple[Stmt, ...]) -> Iterator[Node]:
    for stmt in body:
        match stmt:
            case Permute(nodes, sources):
                yield from (*nodes, *sources)
            case For(body=inner):
                yield from _permuted(inner)
            case While(prelude, _, inner):
                yield from _permuted(prelude + inner)
            case If(_, then, other):
                yield from _permuted(then + other)
            case _:
                pass
