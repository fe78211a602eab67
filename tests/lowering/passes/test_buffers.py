"""Where temporaries are: what is needed at once is apart, and the rest shares memory."""

from __future__ import annotations

import random

import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.passes.buffers import (
    ALIGNMENT,
    Buffer,
    Memory,
    Size,
    exchanged,
    memory,
    peak,
    sizes_of,
)

from .shown import lowered

CHAIN = "t[i] = sum(x[i, j])\nu[i] = max(x[i, j] - t[i])\nv[i] = max(x[i, j] - u[i])\ny[i] = v[i]"
SHAPES = {"y": "f32[64]", "x": "f32[64, 9]"}


def _spans(body: str, **arrays: str) -> dict[str, tuple[int, int]]:
    plan = memory(lowered(body, **arrays), 0)
    return {buffer.node.label: (buffer.first, buffer.last) for buffer in plan.arena}


def _places(body: str, **arrays: str) -> dict[str, int]:
    plan = memory(lowered(body, **arrays), 0)
    return {b.node.label: plan.layout().offsets[b.node.id] for b in plan.arena}


def test_an_array_takes_the_place_of_one_that_is_done() -> None:
    assert _places(CHAIN, **SHAPES) == {"t": 0, "u": 256, "v": 0}
    assert peak(lowered(CHAIN, **SHAPES), stack_bytes=0).heap == 512


def test_shapes_and_types_do_not_matter() -> None:
    halves = CHAIN.replace("v[i] = max(x[i, j] - u[i])", "v[i] = u[i] > 0")
    assert _places(halves, **SHAPES)["v"] == 0


def test_arrays_of_one_round_share_those_of_several_rounds_do_not() -> None:
    inner = CHAIN.replace("\n", "\n    ")
    assert _places(f"for k in range(3):\n    {inner}", **SHAPES) == {"t": 0, "u": 256, "v": 0}
    kept = "t: f32[64]\nfor k in range(3):\n    u[i] = max(x[i, j] - t[i])\n    t[i] = u[i] + 1"
    spans = _spans(f"{kept}\n    v[i] = max(x[i, j] - u[i])\n    y[i] = v[i]", **SHAPES)
    assert spans["t"][0] < spans["u"][0] < spans["u"][1] <= spans["t"][1]
    assert spans["t"][1] >= spans["v"][1], "the next round reads it"


def test_what_relies_on_the_zeros_at_the_start_is_needed_from_there() -> None:
    partly = "if i > 2:\n    v[i] = u[i]\ny[i] = v[i]"
    body = CHAIN.replace("v[i] = max(x[i, j] - u[i])\ny[i] = v[i]", partly)
    plan = memory(lowered("v: f32[64]\n" + body, **SHAPES), 0)
    (late,) = (buffer for buffer in plan.arena if buffer.node.label == "v")
    assert late.zeroed or late.first < plan.arena[0].last, "zeros are there, or filled in before"


def test_small_arrays_are_on_the_stack_as_long_as_there_is_room() -> None:
    assert [n.label for n in memory(lowered(CHAIN, **SHAPES), 256).stack] == ["t", "u", "v"]
    assert not memory(lowered(CHAIN, **SHAPES), 255).stack
    many = "\n".join(f"a{n}[i] = sum(x[i, j])" for n in range(20))
    total = " + ".join(f"a{n}[i]" for n in range(20))
    plan = memory(lowered(f"{many}\ny[i] = {total}", **SHAPES), 256)
    assert (len(plan.stack), len(plan.arena)) == (16, 4)


def test_arrays_that_trade_places_are_needed_all_the_time() -> None:
    swap = "a = x.copy()\nb = x * 2\nfor k in range(3):\n    a, b = b, a\ny[:] = a[:, 0] + b[:, 0]"
    program = lowered(swap, **SHAPES)
    plan = memory(program, 0)
    moving = [buffer for buffer in plan.arena if buffer.node.id in exchanged(program)]
    assert len(moving) == 2
    assert all(one.meets(other) for one in moving for other in plan.arena)


def _buffers(rng: random.Random, count: int) -> tuple[Buffer, ...]:
    n = Symbol("n", 99)
    out = []
    for number in range(count):
        first = rng.randrange(12)
        extent = const(rng.randrange(0, 400)) if rng.random() < 0.7 else var(n) * 3 + number
        kind = rng.choice([dtypes.float32, dtypes.int8, dtypes.complex128])
        node = Node(number, f"b{number}", (extent,), kind)
        out.append(Buffer(node, (extent,), first, first + rng.randrange(6), False))
    return tuple(out)


@pytest.mark.parametrize("seed", range(40))
def test_no_two_arrays_needed_at_once_overlap(seed: int) -> None:
    rng = random.Random(seed)
    plan = Memory(_buffers(rng, rng.randrange(1, 14)), (), (), ())
    sizes = {Symbol("n", 99): rng.randrange(2, 300)}
    layout = plan.layout(sizes)
    spans = [(b, layout.offsets[b.node.id], b.bytes(sizes)) for b in plan.arena]
    for one, lo, size in spans:
        assert lo % ALIGNMENT == 0
        assert lo + size <= layout.total
        for other, low, other_size in spans:
            apart = lo + size <= low or low + other_size <= lo
            assert one is other or apart or not one.meets(other)
    moments = range(20)
    needed = (sum(b.bytes(sizes) for b in plan.arena if b.first <= m <= b.last) for m in moments)
    assert max(needed) <= layout.total


def test_those_that_share_are_known() -> None:
    plan = memory(lowered(CHAIN, **SHAPES), 0)
    labels = {buffer.node.id: buffer.node.label for buffer in plan.arena}
    assert {labels[number] for number in plan.sharing()} == {"t", "v"}
    n = Symbol("n", 99)
    open_sizes = tuple(
        Buffer(Node(at, "b", (var(n),), dtypes.int8), (var(n),), at, at + 1, False)
        for at in range(3)
    )
    assert Memory(open_sizes, (), (), ()).sharing() == {0, 2}, "they may, once the size is known"


def test_numbers_are_the_sizes_then_the_layout() -> None:
    n = Symbol("n", 99)
    arrays = tuple(
        Buffer(Node(at, "b", (var(n),), dtypes.int8), (var(n),), 0, 1, False) for at in (1, 2)
    )
    program = lowered(CHAIN, **SHAPES)
    assert sizes_of(program) == ()
    assert memory(program).numbers([]) == []
    plan = Memory(arrays, (), (), (Size(n, 0, 0),))
    assert plan.numbers([100]) == [100, 256, 0, 128]
