"""Where temporaries are: what is needed at once is apart, and the rest shares memory."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering import thresholds
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Permute
from plusequals.lowering.ir.dynamic_sizes import Size, run_time_sizes
from plusequals.lowering.ir.indexing import (
    Affine,
    Range,
    Symbol,
    const,
    evaluate,
    maximum,
    minimum,
    var,
)
from plusequals.lowering.ir.loops import Fill, Program, Store
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.walk import permuted_nodes
from plusequals.lowering.lower import lower
from plusequals.lowering.passes import buffer_sharing
from plusequals.lowering.passes.buffer_sharing import (
    ALIGNMENT,
    Buffer,
    MemoryPlan,
    peak_memory,
    plan_memory,
)

from ..ir.build import at, node, num, program
from ..shown import lowered
from .test_traps import used
from .traps.buffers import TRAPS as BUFFERS

CHAIN = "t[i] = sum(x[i, j])\nu[i] = max(x[i, j] - t[i])\nv[i] = max(x[i, j] - u[i])\ny[i] = v[i]"
SHAPES = {"y": "f32[64]", "x": "f32[64, 9]"}


def _spans(body: str, **arrays: str) -> dict[str, tuple[int, int]]:
    plan = plan_memory(lowered(body, **arrays), 0)
    return {buffer.node.label: (buffer.first, buffer.last) for buffer in plan.arena}


def _places(body: str, **arrays: str) -> dict[str, int]:
    plan = plan_memory(lowered(body, **arrays), 0)
    return {b.node.label: plan.layout().offsets[b.node.id] for b in plan.arena}


def test_an_array_takes_the_place_of_one_that_is_done() -> None:
    assert _places(CHAIN, **SHAPES) == {"t": 0, "u": 256, "v": 0}
    assert peak_memory(lowered(CHAIN, **SHAPES), stack_bytes=0).heap == 512


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
    plan = plan_memory(lowered("v: f32[64]\n" + body, **SHAPES), 0)
    (late,) = (buffer for buffer in plan.arena if buffer.node.label == "v")
    assert late.zeroed or late.first < plan.arena[0].last, "zeros are there, or filled in before"


def test_small_arrays_are_on_the_stack_as_long_as_there_is_room() -> None:
    assert [n.label for n in plan_memory(lowered(CHAIN, **SHAPES), 256).stack] == ["t", "u", "v"]
    assert not plan_memory(lowered(CHAIN, **SHAPES), 255).stack
    many = "\n".join(f"a{n}[i] = sum(x[i, j])" for n in range(20))
    total = " + ".join(f"a{n}[i]" for n in range(20))
    plan = plan_memory(lowered(f"{many}\ny[i] = {total}", **SHAPES), 256)
    assert (len(plan.stack), len(plan.arena)) == (16, 4)


def test_arrays_that_trade_places_are_needed_all_the_time() -> None:
    swap = "a = x.copy()\nb = x * 2\nfor k in range(3):\n    a, b = b, a\ny[:] = a[:, 0] + b[:, 0]"
    program = lowered(swap, **SHAPES)
    plan = plan_memory(program, 0)
    moving = [buffer for buffer in plan.arena if buffer.node.id in permuted_nodes(program)]
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
    plan = MemoryPlan(_buffers(rng, rng.randrange(1, 14)), (), (), ())
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
    plan = plan_memory(lowered(CHAIN, **SHAPES), 0)
    labels = {buffer.node.id: buffer.node.label for buffer in plan.arena}
    assert {labels[number] for number in plan.sharing()} == {"t", "v"}
    n = Symbol("n", 99)
    open_sizes = tuple(
        Buffer(Node(at, "b", (var(n),), dtypes.int8), (var(n),), at, at + 1, False)
        for at in range(3)
    )
    assert MemoryPlan(open_sizes, (), (), ()).sharing() == {0, 2}, (
        "they may, once the size is known"
    )


@pytest.mark.parametrize("seed", range(5))
def test_those_that_overlap_are_found_in_order(seed: int) -> None:
    rng = random.Random(seed)
    sizes = (0, 1, 8, 64)
    nodes = [Node(n, "b", (const(rng.choice(sizes)),), dtypes.int8) for n in range(12)]
    plan = MemoryPlan(tuple(Buffer(one, one.shape, 0, 1, False) for one in nodes), (), (), ())
    starts = {one.id: rng.randrange(0, 128, 8) for one in nodes}
    wanted = {
        one.id: [
            other for other in nodes
            if other is not one
            and starts[one.id] < starts[other.id] + other.bytes
            and starts[other.id] < starts[one.id] + one.bytes
        ]
        for one in nodes
    }  # fmt: skip
    found = plan.overlapping(buffer_sharing.Layout(starts, 256))
    assert found == {number: others for number, others in wanted.items() if others}


def test_numbers_are_the_sizes_then_the_layout() -> None:
    n = Symbol("n", 99)
    arrays = tuple(
        Buffer(Node(at, "b", (var(n),), dtypes.int8), (var(n),), 0, 1, False) for at in (1, 2)
    )
    program = lowered(CHAIN, **SHAPES)
    assert run_time_sizes(program) == ()
    assert plan_memory(program).numbers([]) == []
    plan = MemoryPlan(arrays, (), (), (Size(n, 0, 0),))
    assert plan.numbers([100]) == [100, 256, 0, 128]


# --------------------------------------------------------------------------- plans, as text

OPEN = {
    "one after the other": CHAIN,
    "at two times": CHAIN.replace("y[i] = v[i]", "y[i] = v[i] + t[i]"),
    "all but one": "t = x[1:, 0] * 2\ny[1:] = t[::-1]",
    "a part that is known": "t = x[:7, 0] * 2\ny[:7] = t[::-1]",
    "rows and columns": "t[i, j] = x[i, j] * 2\ny[i] = sum(t[i, j])\nu[j] = sum[i](t[i, j])\n"
    "y[0] += u[3]",
    "growing": "for k in range(2, len(x)):\n    t = x[:k, 0] * 2\n    y[:k] = t[::-1]",
    "zeros at the start": "t: f64[9]\nt[0] = 1\ny[i] = t[i % 9]",
    "moved": "a = x[:, 0] * 2\nb = x[:, 1] * 3\nfor k in range(3):\n    a, b = b, a\ny[:] = a + b",
}


def of_any_size(body: str) -> Program:
    """Return the loops of a function of `y` and `x` whose first axes have any size."""
    text = "def f(y, x):\n    " + body.replace("\n", "\n    ") + "\n"
    function = pe.cd_from_source(text, backend="numpy")
    for n in (20, 30, 40, 50):
        form = function.specialise(np.zeros(n), np.zeros((n, 9)))
    assert "any size" in form.reason
    return lower(form.procedure)


def plan_of(title: str, program: Program, stack: int) -> str:
    """Return where the temporaries of a program are, for two sizes where the call knows them."""
    plan = plan_memory(program, stack)
    lines = [f"{title}, up to {stack} bytes on the stack"]
    for b in plan.arena:
        room = ", ".join(map(str, b.extent_bounds))
        zeros = ", zeros" if b.zeroed else ""
        lines.append(f"  {b.node.label}[{room}]: {b.first} to {b.last}{zeros}")
    sizes = [f"{size.symbol.name} of {size.parameter}, {size.axis}" for size in plan.sizes]
    lines.append(f"  sizes: {'; '.join(sizes)}")
    lines.append(f"  stack: {', '.join(node.label for node in plan.stack)}")
    lines.append(f"  growing: {', '.join(node.label for node in plan.growing)}")
    for number in (7, 100):
        known = {size.symbol: number for size in plan.sizes}
        layout = plan.layout(known)
        places = [layout.offsets[b.node.id] for b in plan.arena]
        most = peak_memory(program, known, stack)
        assert most.growing == plan.growing
        lines.append(f"  at {places}, in all {layout.total}, {most.heap} and {most.stack} at once")
        lines.append(f"  numbers: {plan.numbers(list(known.values()))}")
        if plan.is_static:
            break
    names = {b.node.id: b.node.label for b in plan.arena}
    lines.append(f"  sharing: {', '.join(sorted(names[number] for number in plan.sharing()))}")
    return "\n".join(lines)


def test_the_plans_are_those_expected(golden: Callable[[str], Callable[[str], None]]) -> None:
    parts = []
    for name, body in BUFFERS.items():
        parts += [plan_of(name, lowered(body, **used(body)), stack) for stack in (0, 64)]
    parts += [plan_of(f"of any size: {name}", of_any_size(body), 64) for name, body in OPEN.items()]
    assert len(parts) > 50
    golden("plans.txt")("\n\n".join(parts))


def test_the_layouts_are_those_expected(golden: Callable[[str], Callable[[str], None]]) -> None:
    lines = []
    for seed in range(24):
        rng = random.Random(seed)
        plan = MemoryPlan(_buffers(rng, rng.randrange(1, 14)), (), (), ())
        layout = plan.layout({Symbol("n", 99): 50})
        lines.append(f"{layout.total} {[layout.offsets[b.node.id] for b in plan.arena]}")
    assert len(set(lines)) > 20
    golden("layouts.txt")("\n".join(lines))


def test_empty_arrays_have_addresses_of_their_own() -> None:
    empty = tuple(
        Buffer(Node(at, "b", (const(0),), dtypes.int8), (const(0),), 0, 1, False) for at in (0, 1)
    )
    layout = MemoryPlan(empty, (), (), ()).layout()
    assert (layout.offsets, layout.total) == ({0: 0, 1: ALIGNMENT}, 2 * ALIGNMENT)


def test_an_array_without_a_use_has_no_place() -> None:
    used_one, unused = node(0, "t", 64), node(1, "u", 64)
    made = program((), (), Fill(used_one, num(0.0)), local=(used_one, unused))
    assert [b.node for b in plan_memory(made, 0).arena] == [used_one]


def test_numbers_that_trade_places_have_one() -> None:
    s, h, k = node(0, "s"), node(1, "h"), node(2, "k")
    body = Store(at(s), num(1.0)), Store(at(k), num(2.0)), Permute((s, h), (h, s))
    made = program((), (), *body, local=(s, h, k))
    assert [b.node for b in plan_memory(made, 0).arena] == [s, h]
    assert plan_memory(made).stack == (s, h)


@pytest.mark.parametrize("stack_bytes", [0, 64, 4096, 10**8])
def test_the_stack_takes_no_more_than_any_thread_has(stack_bytes: int) -> None:
    count = 40
    steps = [f"t{n + 1}[i] = sum(t{n}[j] * t{n}[i])" for n in range(count)]
    body = "\n".join(["t0[i] = sum(x[i, j])", *steps, f"y[i] = t{count}[i]"])
    plan = plan_memory(lowered(body, y="f64[8192]", x="f64[8192, 9]"), stack_bytes)
    on_stack = sum(node.bytes for node in plan.stack)
    assert on_stack <= 128 * 1024
    assert bool(plan.stack) is (stack_bytes > 8 * 8192)


def test_places_are_those_of_trying_all_that_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(7)
    for _ in range(50):
        first = drawn.integers(0, 30, 25)
        last = first + drawn.integers(0, drawn.choice([2, 30]), 25)
        nodes = [
            Node(n, "t", (const(int(drawn.integers(0, 50))),), dtypes.float64) for n in range(25)
        ]
        wanted = [
            (
                buffer_sharing.Buffer(node, node.shape, int(a), int(b), False),
                64 * (1 + node.bytes // 64),
            )
            for node, a, b in zip(nodes, first, last, strict=True)
        ]
        placed: list[tuple[int, int, buffer_sharing.Buffer]] = []
        for one, size in wanted:
            occupied = sorted((lo, hi) for lo, hi, b in placed if one.meets(b))
            at = buffer_sharing._best_fit(occupied, size)
            placed.append((at, at + size, one))
        for limit in (-1, 1000):  # all placed arrays are looked at, or those by statement
            monkeypatch.setattr(thresholds, "LONG_LIVE_RANGE", limit)
            layout = buffer_sharing._assign_offsets(wanted)
            assert layout.offsets == {one.node.id: lo for lo, _, one in placed}
            assert layout.total == max(hi for _, hi, _ in placed)


I, J = Symbol("i", 1), Symbol("j", 2)


@pytest.mark.parametrize(
    ("extent", "is_tight"),
    [
        (minimum(var(I) + 1, const(5)) * 3 + 7, True),
        (maximum(var(I) - 4, var(J) * 2) * 2 - 1, True),
        (minimum(maximum(var(I), const(2)) + 3, const(6)), True),
        (minimum(var(I), const(9) - var(I)) + 1, False),
        (var(I) * 2 - var(J) + 4, True),
    ],
)
def test_the_room_of_an_array_is_the_largest_that_a_loop_asks_for(
    extent: Affine, is_tight: bool
) -> None:
    ranges = Range(I, const(0), const(10)), Range(J, const(1), const(4))
    bound = buffer_sharing._upper_bound(extent, ranges)
    assert bound is not None and bound.constant is not None
    found = [evaluate(extent, {I: i, J: j}) for i in range(10) for j in range(1, 4)]
    assert bound.constant == max(found) if is_tight else bound.constant >= max(found)
