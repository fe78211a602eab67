"""Which arrays share memory, and how much there is."""

from __future__ import annotations

from plusequals.lowering.passes.buffers import Memory, buffers, decide_buffers, memory

from .shown import lowered

CHAIN = "t[i] = sum(x[i, j])\nu[i] = max(x[i, j] - t[i])\nv[i] = max(x[i, j] - u[i])\ny[i] = v[i]"
SHAPES = {"y": "f32[8]", "x": "f32[8, 9]"}


def _labels(body: str, **arrays: str) -> list[str]:
    return [node.label for node in buffers(lowered(body, **arrays)).locals]


def test_an_array_takes_the_place_of_one_that_is_done() -> None:
    before = lowered(CHAIN, **SHAPES)
    program, decisions = decide_buffers(before)
    assert [node.label for node in program.locals] == ["t", "u"]
    assert [str(d) for d in decisions] == [
        "it is needed only after the last use of the array whose memory it takes: `t`"
    ]
    assert memory(before) == Memory(96, 64)
    assert memory(program) == Memory(64, 64)


def test_other_shapes_and_types_have_memory_of_their_own() -> None:
    wide = CHAIN.replace("v[i] = max(x[i, j] - u[i])", "v[j] = max[i](x[i, j] - u[i])")
    assert _labels(wide.replace("y[i] = v[i]", "y[i] = v[i + 1]"), **SHAPES) == ["t", "u", "v"]
    assert "v" in _labels(CHAIN.replace("v[i] = max(x[i, j] - u[i])", "v[i] = u[i] > 0"), **SHAPES)


def test_arrays_of_one_time_loop_never_share() -> None:
    inner = CHAIN.replace("\n", "\n    ")
    assert _labels(f"for k in range(3):\n    {inner}", **SHAPES) == ["t", "u", "v"]


def test_what_relies_on_the_zeros_at_the_start_keeps_its_memory() -> None:
    partly = "v: f32[8]\nif i > 2:\n    v[i] = u[i]"
    body = CHAIN.replace("v[i] = max(x[i, j] - u[i])", partly)
    assert "v" in _labels(body, **SHAPES)
    assert "v" not in _labels(body.replace("i > 2", "i >= 0"), **SHAPES)
