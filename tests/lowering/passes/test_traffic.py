"""The bytes that the final loops move, against the least that any loops could move."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import Program
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from ..shown import lowered
from .digits import digits
from .traffic import bytes_moved, size_of
from .variants import rows

SHAPES = {"x": "f32[48, 512]", "y": "f32[48, 512]", "gamma": "f32[512]", "beta": "f32[512]"}


def arrays(program: Program) -> dict[str, int]:
    """The bytes of each array that the caller sees, by name."""
    nodes = (*(p.node for p in program.parameters), *program.results)
    return {node.label: size_of(node) for node in nodes}


@pytest.mark.parametrize("name", [
    "softmax with keepdims", "softmax into an argument", "softmax in place", "softmax row by row",
    "log softmax", "layer norm with var", "layer norm with std", "layer norm by a reciprocal",
])  # fmt: skip
def test_rows_are_fetched_once_and_written_once(name: str) -> None:
    variant = next(one for one in rows.VARIANTS if one.name == name.replace(" by a ", " with a "))
    shapes = {label: SHAPES[label] for label in variant.arrays}
    program, _ = optimize(lowered(variant.body, **shapes), HOST)
    seen = arrays(program)
    written = [p.node.label for p in program.parameters if p.written]
    least = sum(n for label, n in seen.items() if label != "y" and label != "result")
    least += sum(seen[label] for label in (*written, *(r.label for r in program.results)))
    assert least >= 2 * seen["x"] > 2 * HOST.l1_bytes, "more than the cache holds"
    moved = bytes_moved(program, HOST.l1_bytes)
    assert least <= moved <= 1.1 * least


def test_the_digits_move_little_more_than_what_the_caller_sees() -> None:
    """Read: data, labels, weights, velocities. Written: gradients, velocities, weights."""
    program, _ = optimize(digits(), HOST)
    seen = arrays(program)
    weights = sum(seen[name] for name in ("w1", "b1", "w2", "b2"))
    least = seen["x"] + seen["y"] + 2 * weights + 3 * weights
    moved = bytes_moved(program, HOST.l2_bytes)
    assert least <= moved <= 1.1 * least, (least, moved)


def test_the_count_itself() -> None:
    program = lowered("y[i] = x[i] * 2\nz[i] = x[i] + y[i]", x="f32[4096]", y="f32[4096]",
                      z="f32[4096]")  # fmt: skip
    size = 4096 * 4
    assert bytes_moved(program, 4 * size) == 3 * size, "x in, y and z out"
    assert bytes_moved(program, size // 4) == 5 * size, "x and y in again"
    backwards = lowered("y[:] = x[::-1]", x="f32[16]", y="f32[16]")
    assert bytes_moved(backwards, 1024) == 128
