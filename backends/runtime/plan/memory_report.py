"""The memory that a run of a plan takes: of the arrays that only it sees, and of temporaries."""

from __future__ import annotations

from collections.abc import Mapping

from ....base.dataclass import dataclass
from ....lowering.lower import lower
from ....lowering.operation_counts import count_operations
from ....lowering.pipeline import optimize
from ....lowering.target import HOST
from ...interface import HasTarget
from ..routine import Routine
from ..state import RUNTIME
from .arena import ancestors_of
from .private_arrays import PrivateMemory
from .steps import Body, Step


@dataclass(frozen=True, slots=True, repr=False)
class PlanMemory:
    """Bytes that a run takes beside the tensors that others see."""

    arena: int
    """Of the memory that the arrays share which only the plan sees."""
    unshared: int
    """What these would take one by one."""
    temporaries: Mapping[str, int]
    """Of the temporary arrays of one call of each routine, by name: taken and freed by the call."""
    peak: int
    """Of all at once, at most: the arena, and temporaries of steps that may run at one time."""

    def __str__(self) -> str:
        rows = [
            ("arena", self.arena), ("its arrays one by one", self.unshared), ("peak", self.peak),
            *((f"temporaries of {name}", size) for name, size in self.temporaries.items()),
        ]  # fmt: skip
        width = max(len(name) for name, _ in rows)
        digits = max(len(f"{size:,}") for _, size in rows)
        return "\n".join(f"{name:{width}}  {size:>{digits},} bytes" for name, size in rows)

    def __repr__(self) -> str:
        return f"<memory of a plan: {self.peak:,} bytes at its peak>"


def memory_of_plan(body: Body, private: PrivateMemory) -> PlanMemory:
    """Return what a run of a body takes; sizes that a call decides are taken as in `explain`."""
    sizes: dict[Routine, int] = {}
    for step in body.steps:
        if step.routine is not None and step.routine not in sizes:
            sizes[step.routine] = _temporaries(step.routine)
    by_name: dict[str, int] = {}
    for routine, size in sizes.items():
        by_name[routine.name] = max(size, by_name.get(routine.name, 0))
    peak = private.size + _peak(body, sizes)
    return PlanMemory(private.size, private.unshared, by_name, peak)


def _temporaries(routine: Routine) -> int:
    """Return the bytes of temporary arrays of a call, 0 where the assignments are interpreted."""
    compiled, name = routine.compiled, routine.context.device.code
    if compiled.codes.on(name).origin == "interpreted":
        return 0
    backend = RUNTIME.backend(name)
    target = backend.target() if isinstance(backend, HasTarget) else HOST
    program, placement = optimize(lower(compiled.procedure), target)
    return count_operations(program, None, placement.memory).temporary


def _peak(body: Body, sizes: Mapping[Routine, int]) -> int:
    """Return the most bytes of temporaries at once: of a node, and on each other stream of the
    largest of those that may run at its time."""
    own = [_largest(body, at, sizes) for at in range(len(body.nodes))]
    ancestors, home = ancestors_of(body), [streams[0] for streams in body.schedule.streams]
    most = 0
    for at, size in enumerate(own):
        others: dict[int, int] = {}
        for other, its in enumerate(own):
            ordered = ancestors[at] >> other & 1 or ancestors[other] >> at & 1
            if not ordered and home[other] != home[at]:
                others[home[other]] = max(its, others.get(home[other], 0))
        most = max(most, size + sum(others.values()))
    return most


def _largest(body: Body, at: int, sizes: Mapping[Routine, int]) -> int:
    node = body.nodes[at]
    if isinstance(node, Step):
        return 0 if node.routine is None else sizes[node.routine]
    return max((_peak(inner, sizes) for inner in node.bodies), default=0)
