"""The memory that a run of a plan takes: of the arrays that only it sees, and of temporaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
from .steps import Body, Node, Step


@dataclass(frozen=True, slots=True, repr=False)
class PlanMemory:
    """Bytes that a run takes beside the tensors that others see."""

    arena: int
    """Of the memory that arrays share which only the plan sees, and temporaries of its routines."""
    unshared: int
    """What these would take one by one."""
    temporaries: Mapping[str, int]
    """Of the temporary arrays of one call of each routine alone, by name."""
    peak: int
    """Of all at once, at most: the arena, and temporaries that are not in it, those on the stack,
    say, of steps that may run at one time."""

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

    def outside(step: Step) -> int:
        if step.routine is None:
            return 0
        scratch = step.scratch
        lent = scratch.size if scratch is not None and scratch in private.lent else 0
        return max(0, sizes[step.routine] - lent)

    return PlanMemory(private.size, private.unshared, by_name, private.size + _peak(body, outside))


def _temporaries(routine: Routine) -> int:
    """Return the bytes of temporary arrays of a call, 0 where the assignments are interpreted."""
    compiled, name = routine.compiled, routine.context.device.code
    if compiled.codes.on(name).origin == "interpreted":
        return 0
    if (known := routine.temporary_bytes) is not None:
        return known
    backend = RUNTIME.backend(name)
    target = backend.target() if isinstance(backend, HasTarget) else HOST
    program, placement = optimize(lower(compiled.procedure), target)
    return count_operations(program, None, placement.memory).temporary


def _peak(body: Body, outside: Callable[[Step], int]) -> int:
    """Return the most bytes of temporaries outside of the arena at once: of a node, and on each
    other stream of the largest of those that may run at its time."""
    own = [_largest(node, outside) for node in body.nodes]
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


def _largest(node: Node, outside: Callable[[Step], int]) -> int:
    if isinstance(node, Step):
        return outside(node)
    return max((_peak(inner, outside) for inner in node.bodies), default=0)
