"""Which modules get faults, and the tests that have to catch them, those of the module first."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..lowering.passes.traps import TRAPS

ROOT = Path(__file__).resolve().parents[2]
PASSES = "tests/lowering/passes"
LOWERING = "tests/lowering"
SCHEDULE = "tests/lowering/schedule"
TRAP = f"{PASSES}/test_traps.py::test_every_pass_keeps_what_is_seen"
TOLD = f"{PASSES}/test_traps.py::test_the_loops_are_those_expected"
TRAPPED = {name.split(":")[0] for name in TRAPS} - {"buffers"}


class Target(NamedTuple):
    """A module and its tests."""

    module: str
    tests: tuple[str, ...]


SHARED = (
    f"{PASSES}/test_legality.py",
    f"{PASSES}/test_examples.py",
    f"{PASSES}/test_together.py",
    f"{PASSES}/test_prefixes.py::test_every_prefix_agrees[0]",
    f"{PASSES}/test_prefixes.py::test_every_prefix_agrees[4]",
)


def _pass(name: str, *others: str) -> Target:
    kinds = (name, *others)
    units = (f"{PASSES}/test_{one}.py" for one in kinds)
    files = (unit for unit in units if (ROOT / unit).is_file())
    traps = (f"{TRAP}[{trap}]" for trap in TRAPS if trap.split(":")[0] in kinds)
    told = (f"{TOLD}[{kind}]" for kind in kinds if kind in TRAPPED)
    return Target(f"plusequals.lowering.passes.{name}", (*files, *told, *traps, *SHARED))


def _lowering(name: str, *others: str) -> Target:
    files = (f"{LOWERING}/{one}.py" for one in (f"test_{name}", *others))
    return Target(f"plusequals.lowering.{name}", (*files, *SHARED))


def _schedule(name: str, *others: str) -> Target:
    files = (f"{SCHEDULE}/test_{one}.py" for one in (name, *others))
    example = f"{SCHEDULE}/test_examples.py::test_the_example_is_true[{name}]"
    return Target(f"plusequals.lowering.schedule.{name}", (*files, example))


def _emit(name: str, *others: str) -> Target:
    files = (f"tests/backends/emit/test_{one}.py" for one in (name, *others))
    return Target(f"plusequals.backends.emit.{name}", tuple(files))


def _backend(name: str) -> Target:
    return Target(f"plusequals.backends.{name}", (f"tests/backends/test_{name}.py",))


def _dsl(name: str, *others: str) -> Target:
    files = (f"tests/dsl/test_{one}.py" for one in (name, *others))
    return Target(f"plusequals.dsl.{name}", tuple(files))


def _ir(name: str) -> Target:
    return Target(f"plusequals.lowering.ir.{name}", (f"{LOWERING}/ir/test_{name}.py",))


ANALYSES = {
    "access": ("virtualize", "fuse", "shrink"),
    "cells": ("access", "virtualize", "fuse", "shrink"),
    "cost": ("virtualize",),
    "definition": ("virtualize",),
    "overwritten": ("zeros",),
    "pair": ("fuse",),
    "products": ("fuse",),
    "reading": ("access", "legality"),
    "summary": ("virtualize", "fuse"),
}
"""What is tested by its uses, too."""

SCHEDULES = {
    "abreast": ("strips_abreast",),
    "accumulation": ("contraction", "strips"),
    "axes": ("tiles",),
    "beside": ("checks", "undo"),
    "best": (),
    "blocks": ("tiles",),
    "checks": (),
    "contraction": ("tiles",),
    "deferred": (),
    "edges": (),
    "effort": ("kinds",),
    "existing": ("tiles",),
    "integers": ("legal",),
    "jam": ("abreast",),
    "kinds": (),
    "lanes": ("sums",),
    "legal": ("legal_private", "legal_small", "kinds", "strips", "abreast"),
    "lockstep": ("masks",),
    "masks": ("lockstep", "predicate"),
    "order": (),
    "outermost": ("strips", "tiles", "strips_abreast"),
    "outer": ("abreast", "strips_abreast"),
    "partners": ("legal",),
    "periods": (),
    "pieces": (),
    "predicate": ("masks", "lockstep"),
    "rounding": (),
    "rounds": ("kinds",),
    "sections": ("fission",),
    "separate": ("own",),
    "stage": ("tiles",),
    "stencil": ("sweeps",),
    "streams": (),
    "strips": (),
    "sums": ("lanes",),
    "sweeps": ("stencil",),
    "tiles": (),
    "undo": ("beside",),
}
"""The schedules of the host, by what else tests them."""

TARGETS = {
    **{
        path.stem: _pass(path.stem, *ANALYSES.get(path.stem, ()))
        for path in sorted((ROOT / "lowering" / "passes").glob("*.py"))
        if path.stem != "__init__"
    },
    **{name: _schedule(name, *others) for name, others in SCHEDULES.items()},
    "lower": _lowering("lower", "test_clash"),
    "clash": _lowering("clash", "test_lower"),
    "pipeline": _lowering("pipeline", "passes/test_decision"),
    "parts": _emit("parts"),
    "held": _emit("held", "vectors", "lane_shape"),
    "cache": _backend("cache"),
    "front": _dsl("front", "identity"),
    "keys": _dsl("keys"),
    "recipe": _dsl("recipe"),
    "remember": _dsl("remember"),
    "verify": _ir("verify"),
    "verify_local": _ir("verify_local"),
}
