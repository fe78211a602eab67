"""No pass changes what small programs do that are made to tempt it; alone or in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.passes.cse import cse
from plusequals.lowering.passes.fuse import fuse
from plusequals.lowering.passes.licm import hoist
from plusequals.lowering.pipeline import PASSES, Pass, optimize
from plusequals.lowering.target import HOST

from ..shown import array, lowered, text_of
from .agree import Change, Seen, program_of
from .traps import ARRAYS, TRAPS


def _of(*changes: Change) -> Change:
    return lambda program: reduce(lambda now, change: program_of(change(now)), changes, program)


def _alone(step: Pass) -> Change:
    return lambda program: step.run(program, HOST).program


CHANGES: dict[str, Change] = {
    **{step.name: _alone(step) for step in PASSES if " " not in step.name},  # each function once
    "fuse, shrink": _of(fuse, contract_arrays),
    "fuse, shrink, hoist": _of(fuse, contract_arrays, cse, hoist),
    "all": lambda program: optimize(program, HOST)[0],
}


def inputs(seed: int, specs: dict[str, str]) -> list[Any]:
    """Return small whole numbers for each parameter.

    Indices are in range for the first seed and never for the second, where `n` is zero: what stands
    in a loop that does not run is not reached.
    """
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for name, spec in specs.items():
        empty = array(spec)
        low, high = (-3, 4) if spec.startswith("f") else ((0, 8), (9, 10), (-1, 9))[seed]
        values = rng.integers(low, high, np.shape(empty)).astype(empty.dtype)
        made.append(np.int64((8, 0, 5)[seed]) if name == "n" else values)
    return made


def used(body: str) -> dict[str, str]:
    """Return the parameters that a program names, with their types."""
    return {key: spec for key, spec in ARRAYS.items() if re.search(rf"\b{key}\b", body)}


@pytest.mark.parametrize("name", TRAPS)
def test_every_pass_keeps_what_is_seen(name: str) -> None:
    body = TRAPS[name]
    specs = used(body)
    program = lowered(body, **specs)
    arrays = [[*inputs(seed, specs), *(None for _ in program.results)] for seed in range(3)]
    ran = [Seen.of(program, given)[0] for given in arrays]
    for change in CHANGES.values():
        after = program_of(change(program))
        if after == program:
            continue
        verify_program(after)
        for given, before in zip(arrays, ran, strict=True):
            assert Seen.of(after, given)[0] == before


ALONE = {step.name: step for step in PASSES}
KINDS = [kind for kind in dict.fromkeys(name.split(": ")[0] for name in TRAPS) if kind in ALONE]


def told(kind: str, name: str) -> str:
    """Return what a pass makes of a program made for it, what is left of its temporaries, why."""
    program = lowered(TRAPS[name], **used(TRAPS[name]))
    step = ALONE[kind]
    after, made = step.run(program, HOST)
    temporaries = [f"{node.label}: {node.rank}" for node in after.locals]
    lines = [name, "=" * len(name), text_of(after), "", f"locals: {', '.join(temporaries)}"]
    for one in made or ():
        label = one.node.label if one.node else "nests"
        lines.append(f"{label}: {one.outcome}, {one.reason.name}")
    return "\n".join(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loops_are_those_expected(
    kind: str, golden: Callable[[str], Callable[[str], None]]
) -> None:
    parts = [told(kind, name) for name in TRAPS if name.startswith(f"{kind}: ")]
    assert len(parts) > 9
    golden(f"{kind}.txt")("\n\n\n".join(parts))
