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
from .passes.buffers import buffers
from .passes.cse import cse
from .passes.dead import dead
from .passes.gather import gather
from .passes.hoist import hoist
from .passes.simplify import simplify
from .target import Target

Where = Literal["parameter", "result", "register", "scratch", "runtime"]
Observer = Callable[[str, Program], None]
"""Called with the name of a stage and the program after it."""


class Pass(NamedTuple):
    """A step of the pipeline; the name is used by dumps, errors and the documentation."""

    name: str
    run: Callable[[Program, Target], Program]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node lives, and the sentence that says why."""

    where: Where
    why: str


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of every node of a program, by node id."""

    places: Mapping[int, Place]

    def __getitem__(self, node: Node) -> Place:
        return self.places[node.id]


PASSES: tuple[Pass, ...] = (
    Pass("simplify", lambda program, _: simplify(program)),
    Pass("gather", lambda program, _: gather(program)),  # before what it would look up is inlined
    Pass("dead", lambda program, _: dead(program)),
    Pass("simplify again", lambda program, _: simplify(program)),  # what came together by moving
    Pass("cse", lambda program, _: cse(program)),  # the others count equal work as one
    Pass("hoist", lambda program, _: hoist(program)),
    Pass("dead again", lambda program, _: dead(program)),
    Pass("buffers", lambda program, _: buffers(program)),  # last: it makes nests depend on others
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
    for stage in _stages(stop_after):
        program = stage.run(program, target)
        if observe is not None:
            observe(stage.name, program)
        if verify is not None:
            verify(program)
    return program, place(program)


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


def place(program: Program) -> Placement:
    """Return where each node of a finished program lives."""
    moving = exchanged(program)
    places = {p.node.id: Place("parameter", "the caller provides it") for p in program.parameters}
    for node in program.results:
        places[node.id] = Place("result", "it is handed to the caller")
    for node in program.locals:
        places[node.id] = _local(node, node.id in moving)
    return Placement(places)


def exchanged(program: Program) -> frozenset[int]:
    """Return the ids of the nodes whose arrays some `Permute` moves."""
    return frozenset(node.id for kernel in program.kernels for node in _permuted(kernel.body))


def _local(node: Node, moving: bool) -> Place:
    shape = node.static_shape
    if shape is None:
        return Place("runtime", "its size is known only during the run")
    if node.rank == 0 and not moving:
        return Place("register", "it is a scalar that only this function uses")
    if node.rank == 0:
        return Place("scratch", "it is a scalar that trades places with another array")
    size = node.dtype.itemsize
    for extent in shape:
        size *= extent
    return Place("scratch", f"it is read after its loops have ended: {size} bytes")


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
