"""What a procedure becomes on its way to a target: texts after every pass, and a table of facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from plusequals.backends.codegen.c_printer import print_program as emit
from plusequals.backends.cuda import backend as cuda
from plusequals.lowering.gpu.mapping import MappedProgram
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.decision import Decision
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.printer import print_procedure, print_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import PASSES, map_to_device, optimize
from plusequals.lowering.placement import Placement
from plusequals.lowering.target import Target

from .targets import DEVICE, DEVICES, Variant, fixed, processor

ASSIGNMENTS = "assignments"
"""The stage before the first pass."""


@dataclass(slots=True)
class Lowered:
    """One program for one target. Texts name no module, class, number of a node or address."""

    stages: list[tuple[str, str]] = field(default_factory=list)
    """The stages that changed something, with the printed program after each."""
    ran: list[str] = field(default_factory=list)
    """All stages, in order."""
    silent: list[str] = field(default_factory=list)
    """Those after which there is another program, which is printed as the one before."""
    prelude: str = ""
    text: str = ""
    """The functions of the C or CUDA text, and what stands above them."""
    table: dict[str, Any] = field(default_factory=dict)
    """Kernels, loops by kind, and what was decided, as values for JSON."""
    sentences: list[str] = field(default_factory=list)
    """The decisions as `explain` tells them."""
    idle: frozenset[str] = frozenset()
    """The passes of the pipeline that do nothing for this target."""
    _last: Program | None = None

    def observe(self, name: str, program: Program) -> None:
        """Keep a stage of the pipeline."""
        if name not in self.idle:
            self.ran.append(name)
        if program is not self._last:
            self._add(name, print_program(program))
        self._last = program

    def _add(self, name: str, text: str) -> None:
        if self.stages[-1][1] != text:
            self.stages.append((name, text))
        elif name not in self.silent:
            self.silent.append(name)


def lowered(procedure: Procedure, variant: Variant) -> Lowered:
    """Return what a procedure becomes; nothing is compiled. Raises what lowering raises."""
    made = Lowered([(ASSIGNMENTS, print_procedure(procedure))])
    with fixed(profile=variant.profile, **DEVICES.get(variant.target, {})):
        if variant.target in DEVICES:
            _on_device(procedure, made)
        else:
            _on_processor(procedure, variant, made)
    return made


def _on_processor(procedure: Procedure, variant: Variant, made: Lowered) -> None:
    """Do what `translate` of the backend does, for a given processor."""
    target = processor(variant.target, variant.profile)
    made.idle = _idle(target)
    program, placement = optimize(lower(procedure), target, made.observe)
    source = emit(program, placement)
    _split(source.text, source.above, made)
    made.table = {
        "kernels": [kernel.name for kernel in program.kernels],
        "loops": _loops(program),
        "threads": source.asks,
        "places": sorted(Counter(one.where for one in placement.places.values()).items()),
        "memory": len(placement.memory.arena),
    }
    _decided(placement.decisions, made)


def _on_device(procedure: Procedure, made: Lowered) -> None:
    """Have the backend translate, with its passes observed."""
    placed: list[Placement] = []

    def observed(program: Program, target: Target, *_: object) -> tuple[Program, Placement]:
        made.idle = _idle(target)
        found = optimize(program, target, made.observe)
        placed.append(found[1])
        return found

    def mapped(program: Program, target: Target, *_: object) -> MappedProgram:
        return map_to_device(program, target, made.observe)

    with patch.object(cuda, "optimize", observed), patch.object(cuda, "map_to_device", mapped):
        plan = cuda.translate(procedure, DEVICE)
    fired = Counter(one.reason.name.lower() for one in plan.decisions if one.outcome == "mapped")
    _split(plan.text.text, plan.text.above, made)
    made.table = {
        "kernels": [[one.name, one.threads, one.shared, one.dynamic] for one in plan.text.kernels],
        "loops": _loops(plan.program),
        "mappings": sorted(fired.items()),
    }
    _decided((*placed[0].decisions, *plan.decisions), made)


def _idle(target: Target) -> frozenset[str]:
    return frozenset(one.name for one in PASSES if not one.when(target))


def _split(text: str, above: int, made: Lowered) -> None:
    lines = text.split("\n", above)
    made.prelude, made.text = "\n".join(lines[:-1]), lines[-1]


def _loops(program: Program) -> list[tuple[str, int]]:
    """Return how many loops of each kind there are."""
    every = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    return sorted(Counter(str(one.kind) for one in every if isinstance(one, For)).items())


def _decided(decisions: tuple[Decision, ...], made: Lowered) -> None:
    made.table["decisions"] = [
        [one.outcome, "" if one.node is None else one.node.label] for one in decisions
    ]
    told: Callable[[Decision], str] = Decision.sentence
    made.sentences = list(map(told, decisions))
