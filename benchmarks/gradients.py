"""Gradients: for each cell that has one a loss, the sum of its results' squares, and its gradient.

What is differentiated is the function that each library has for the cell anyway. A gradient counts
only where it agrees with that of another library on the same inputs in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .cell import Array, Cell, Tolerance, wrong
from .measure import Crew, Say, answers, measure, write
from .peers import GRADIENTS, LOSS, OURS, Peer, peer
from .process import Died, LeftOut
from .results import Row

REFERENCES = ("jax_gradient", "torch_gradient")
"""Whose gradients in float64 are what others are compared with: the first that has one."""
LEAST = 1e-5
"""What a gradient may be off by where results may be off by less."""
LOSS_TOLERANCE = Tolerance(2e-2)
"""How far a loss may be off: it is one sum of up to 16 million squares, in the type of these."""


def peers(asked: Sequence[Peer]) -> tuple[Peer, ...]:
    """Return who computes losses and gradients of the peers that are asked for."""
    bases = {one.name for one in asked}
    return (LOSS, *(one for one in GRADIENTS if one.base in bases))


def cells(asked: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells that have a gradient: results are floats, and so are inputs."""
    return tuple(one for one in asked if one.differentiable)


def row(crew: Crew, cell: Cell, rounds: int, folder: Path, say: Say) -> Row:
    """Measure the loss of a cell alone, and with its gradient beside the other libraries."""
    allowed = tolerance(cell)
    right = reference(crew, cell, folder, say)
    if isinstance(right, str):
        found = Row(cell.name, cell.workload.kind, cell.size.regime, crew.threads, {}, {}, "")
        found.why[OURS.name] = right
        return found

    def check(name: str, found: tuple[Array, ...]) -> str | None:
        """Say what is wrong with a loss, and with the gradients that follow it."""
        problem = wrong(found[:1], right[:1], LOSS_TOLERANCE)
        if problem or name == LOSS.name:
            return problem
        return wrong(found[1:], right[1:], allowed)

    timings, why = measure(crew, cell, rounds, folder, say, check)
    forward = timings.pop(LOSS.name, None)
    return Row(
        cell.name, cell.workload.kind, cell.size.regime, crew.threads,
        {peer(name).base: timing for name, timing in timings.items()},
        {peer(name).base: reason for name, reason in why.items()},
        str(allowed), forward=forward,
    )  # fmt: skip


def tolerance(cell: Cell) -> Tolerance:
    """Return how far gradients may be off: ten times as far as results, which they add up."""
    given = cell.workload.tolerance
    least = LEAST if cell.workload.precision == "f32" else 0.0
    return replace(given, bound=max(10 * given.bound, least))


def reference(crew: Crew, cell: Cell, folder: Path, say: Say) -> tuple[Array, ...] | str:
    """Return loss and gradients as another library computes them in float64, or why none does."""
    why = ["there is no other library to compare the gradient with"]
    for name in REFERENCES:
        if name not in crew.there():
            continue
        say(f"{cell.name}: {name}, float64")
        write(cell.workload.case(cell.size), folder)
        try:
            process = crew.there()[name]
            process.ask("prepare", cell=cell.name, folder=str(folder), wide=True)
        except LeftOut as reason:
            why.append(str(reason))
        except Died as reason:
            why.append(str(reason))
            crew.start(name)
        else:
            return answers(folder, name)
    return "; ".join(why)
