"""The pass pipeline: runs the passes in order, and places nodes at its end.

Passes are functions from program to program, listed in one tuple; none calls another. After each,
the observer is shown the program and, where requested, the invariants are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.diagnostic import CdValueError, Diagnostic, nearest
from ..base.garbage_collector import gc_paused
from ..base.lazy_import import lazy_functions, lazy_modules
from .ir.decision import Decision, Pass
from .ir.loops import Program
from .pass_table import PASSES as PASSES
from .passes.inferred_decisions import first_writes, rewriting, with_span
from .placement import Placement, place_nodes
from .preconditions import has_requests
from .target import Target

if TYPE_CHECKING:
    from .analysis.carried_scalars import verify_scalars
    from .gpu import mapping
    from .gpu import passes as device
    from .gpu.mapping import MappedProgram
    from .memory_requests import resolve_requests
else:  # imported lazily: few programs need it
    device, mapping = lazy_modules(__package__, ".gpu.passes", ".gpu.mapping")
    verify_scalars, resolve_requests = lazy_functions(
        __package__, ".analysis.carried_scalars:verify_scalars", ".memory_requests:resolve_requests"
    )

Observer = Callable[[str, Program], None]
"""Called with the name of a stage and the program after it."""


@gc_paused()
def optimize(
    program: Program, target: Target, observe: Observer | None = None,
    verify: Callable[[Program], None] | None = None, stop_after: str = "",
) -> tuple[Program, Placement]:  # fmt: skip
    """Return the program after every pass, and where its nodes live.

    `verify` is called on the program before the first pass and after each that changes it, and
    raises where an invariant does not hold. `stop_after` names the last pass to run, `lower` for
    none of them, to bisect a wrong result. Raises CdValueError where there is no such pass, and
    CdTypeError CD0572 for requests that the whole pipeline does not meet, wherever it stops.
    """
    lowered = program
    if target.short and has_requests(program):
        target = replace(target, short=False)  # requests need passes that the short pipeline lacks
    program, decisions = _run(_stages(stop_after), program, target, observe, verify)
    placement = place_nodes(program, decisions, target.stack_bytes)
    if target.schedule and target.vector_bits > 64:
        placement = replace(placement, vector_bits=target.vector_bits)
    if has_requests(lowered) and not stop_after:
        placement = replace(placement, modes=resolve_requests(lowered, program, decisions))
    elif has_requests(lowered):
        optimize(lowered, target)  # a request that the whole pipeline refuses is refused here, too
    return program, replace(placement, polls=target.schedule, picks=target.schedule)


def map_to_device(
    program: Program, target: Target, observe: Observer | None = None,
    verify: Callable[[Program], None] | None = None, stop_after: str = "",
) -> MappedProgram:  # fmt: skip
    """Return what `optimize` returned as kernels of a device: after its passes, nests are mapped.

    The arguments are those of `optimize`; where `stop_after` names a pass before the device's,
    these are left out. The mapping itself is the stage `mapping`, in which all ends.
    """
    stages, named = device.GPU_PASSES, [stage.name for stage in device.GPU_PASSES]
    if stop_after:
        stages = stages[: named.index(stop_after) + 1] if stop_after in named else ()
    program, decisions = _run(stages, program, target, observe, verify)
    grid = mapping.map_kernels(program, target)
    if observe is not None:
        observe("mapping", grid.program)
    if verify is not None:
        verify(grid.program)
    return replace(grid, decisions=(*decisions, *grid.decisions))


def _run(
    stages: Iterable[Pass], program: Program, target: Target, observe: Observer | None,
    verify: Callable[[Program], None] | None,
) -> tuple[Program, tuple[Decision, ...]]:  # fmt: skip
    """Return the program after some stages, and what they decided."""
    decisions: list[Decision] = []
    spans, wanted = first_writes(program), {node.id for node in program.locals}
    for stage in stages:
        before = program
        new_decisions: tuple[Decision, ...] = ()
        if stage.applies(program, target):
            program, new_decisions = stage.run(program, target)
        if any(node.id not in spans for node in program.locals):
            spans = first_writes(program) | spans
        decisions += (
            with_span(decision, spans) for decision in new_decisions
            if decision.outcome != "removed" or decision.node is None or decision.node.id in wanted
        )  # fmt: skip
        if observe is not None:
            observe(stage.name, program)
        if verify is not None and (program is not before or stage.name == "lower"):
            verify(program)
            verify_scalars(program)
    return program, tuple(decisions)


def _stages(stop_after: str) -> tuple[Pass, ...]:
    """Return the stages up to the named one, all of them where none is named."""
    stages = (Pass("lower", rewriting(lambda lowered: lowered)), *PASSES)
    names = [stage.name for stage in stages]
    if stop_after and stop_after not in names:
        names += [stage.name for stage in device.GPU_PASSES]
        if stop_after in names:
            return stages
        near = nearest(stop_after, names)
        raise CdValueError(
            Diagnostic(
                "CD0823", f"the setting `stop_after` names `{stop_after}`, which is no pass",
                notes=("the passes are " + ", ".join(names),),
                helps=(f"did you mean `{near}`?",) if near else (),
            )
        )  # fmt: skip
    return stages[: names.index(stop_after) + 1] if stop_after else stages
