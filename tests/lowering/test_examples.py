"""The examples in the docstrings of analyses, passes, transformations and schedules are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from dataclasses import replace

import pytest

from plusequals.lowering import analysis, cpu, gpu, passes, transform
from plusequals.lowering.analysis.dependence import find_privatizable, loop_local_nodes
from plusequals.lowering.analysis.parallel_band import facts_of, find_band
from plusequals.lowering.analysis.subscripts import ranges
from plusequals.lowering.cpu.masked_lanes import mask_lanes
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For, LoopKind
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from .shown import lowered, print_loops, shared, show

ROOMS = (analysis, passes, transform, cpu, gpu)
NAMES = sorted(
    module.name
    for room in ROOMS
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    if not module.ispkg
)
WITHOUT = {
    "analysis.fusion",
    "analysis.product_loops",
    "analysis.guarded_reads",
    "analysis.upward_exposed",
    "passes.equal_sizes",
}


def in_kind(loop: For, kind: LoopKind) -> For:
    return replace(loop, kind=kind)


@pytest.mark.parametrize("name", [n.removeprefix("plusequals.lowering.") for n in NAMES])
def test_the_example_is_true(name: str) -> None:
    module = importlib.import_module(f"plusequals.lowering.{name}")
    given = {
        "show": show, "shared": shared, "lowered": lowered, "print_loops": print_loops,
        "find_band": find_band, "facts_of": facts_of, "in_kind": in_kind, "fresh_for": fresh_for,
        "optimize": optimize, "Target": Target, "For": For, "loop_local_nodes": loop_local_nodes,
        "find_privatizable": find_privatizable, "ranges": ranges, "mask_lanes": mask_lanes,
    }  # fmt: skip
    result = doctest.testmod(module, extraglobs=given)
    assert result.attempted > 0 or name in WITHOUT, "a module shows what it does"
    assert result.failed == 0
