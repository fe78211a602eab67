"""Functions with a round for each element, compiled and interpreted: what tests of masks share."""

from __future__ import annotations

from typing import Any

import numpy as np

import plusequals as pe
from plusequals.lowering.cpu.masked_lanes import mask_lanes
from plusequals.lowering.ir.decision import Decision
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..scheduled import function
from ..shown import lowered

TARGET = Target(schedule=True, vector_bits=256)


def each(body: str, count: str = "len(x)") -> str:
    """Return a function with a round for each element."""
    lines = body.replace("\n", "\n        ")
    start = "    u = 0.0\n" if body.startswith("u = u") else ""
    return f"def f(x, y, z, w):\n{start}    for i in range({count}):\n        {lines}\n"


def arrays(size: int, dtype: str = "f4") -> list[Any]:
    rng = np.random.default_rng(size)
    made: list[Any] = [np.rint(8 * rng.standard_normal(size)).astype(dtype) / 4 for _ in range(3)]
    return [*made, rng.standard_normal((max(size, 5), max(size, 1))).astype(dtype)]


def same_bits(text: str, size: int, dtype: str = "f4") -> None:
    """Compare compiled and interpreted rounds."""
    made, given = function(text), arrays(size, dtype)
    wanted, got = [a.copy() for a in given], [a.copy() for a in given]
    made.on("numpy")(*wanted)
    with pe.settings.override(schedule=True, threads=2):
        made.on("cc")(*got)
    for one, other in zip(wanted, got, strict=True):
        assert np.array_equal(one.view("u1"), other.view("u1"))


def same_as_python(text: str, given: list[Any]) -> None:
    """Compare what compiled code and Python leave in arguments, bit for bit."""
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    wanted, got = ([a.copy() for a in given] for _ in range(2))
    scope["f"](*wanted)
    with pe.settings.override(schedule=True):
        function(text).on("cc")(*got)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def decided(body: str, count: str = "len(x)") -> tuple[Decision, ...]:
    """Return what was done of the loop over 48 elements."""
    lines = each(body, count).split("\n")[1:]
    text = "\n".join(line[4:] for line in lines)
    sizes = {"x": "f32[48]", "y": "f32[48]", "z": "f32[48]", "w": "f32[48, 48]"}
    program, _ = optimize(lowered(text, **sizes), TARGET, stop_after="annotate_private")
    return mask_lanes(program, TARGET).decisions
