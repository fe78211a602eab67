"""Writes that together cover an array: random parts and strides, against counting in NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.analysis.accesses import collect_accesses
from plusequals.lowering.analysis.subscripts import Elements, residue_classes
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.indexing import Range, Symbol, const, evaluate, var
from plusequals.lowering.lower import lower

SIZES = (6, 7, 9, 10, 12)
LATER = range(4, 40)
"""Sizes that the function for any size has not seen."""


def is_overwritten(procedure: Procedure) -> bool:
    """Whether the first parameter of a procedure is surely written completely."""
    found = collect_accesses(s for kernel in lower(procedure).kernels for s in kernel.body)
    return found.is_overwritten(procedure.parameters[0].node)


def is_filled(body: str, shape: tuple[int, ...]) -> bool:
    """Whether the statements leave no element of an array as it was, counted by running them."""
    t = np.full(shape, np.nan)
    exec(body, {"t": t})
    return not np.isnan(t).any()


def function(body: str) -> pe.CdFunction:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return pe.cd_from_source(f"def f(t):\n{lines}", backend="numpy")


def random_slice(chooser: random.Random, size: int) -> str:
    step = chooser.choice((1, 1, 2, 2, 3, 4, -1, -2, -3))
    start = chooser.choice(("", *map(str, range(min(5, size)))))
    stop = chooser.choice(("", "", "", str(chooser.randrange(size))))
    if step < 0:
        start, stop = chooser.choice(("", *(str(-n) for n in range(1, 4)))), ""
    return f"{start}:{stop}:{step}"


def random_body(chooser: random.Random, shape: tuple[int, ...]) -> str:
    """Return writes of slices: those of all residues of an axis, some of them changed or left
    out, or any."""
    slices = [[random_slice(chooser, size) for size in shape] for _ in range(chooser.randint(1, 3))]
    for _ in range(chooser.randint(0, 2)):
        axis, step = chooser.randrange(len(shape)), chooser.choice((2, 2, 3, 4))
        parts = [[":"] * len(shape) for _ in range(step)]
        for residue, part in enumerate(parts):
            part[axis] = f"{residue}::{step}"
        at = chooser.randrange(step)
        if chooser.random() < 0.5:  # one part in two, on another axis
            other = (axis + 1) % len(shape)
            left, right = list(parts[at]), list(parts[at])
            left[other], right[other] = chooser.choice(
                (("::2", "1::2"), (":2", "2:"), ("1::2", "::2"), (":3", "2:"), ("::2", "::2"))
            )
            if len(shape) > 1:
                parts[at : at + 1] = [left, right]
        elif chooser.random() < 0.4:
            del parts[at]
        slices = [*parts, *slices[: chooser.randint(0, 1)]]
    chooser.shuffle(slices)
    return "\n".join(f"t[{', '.join(part)}] = 1" for part in slices[:8])


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_random_strided_writes_cover_what_they_cover(axes: int) -> None:
    chooser = random.Random(axes)
    counts = {True: 0, False: 0}
    missed = 0
    for _ in range(120):
        shape = tuple(chooser.choice((1, 2, 5, 6, 8, 9)) for _ in range(axes))
        body = random_body(chooser, shape)
        filled = is_filled(body, shape)
        counts[filled] += 1
        is_known = is_overwritten(function(body).procedure(np.zeros(shape)))
        assert filled or not is_known, (shape, body)
        missed += filled and not is_known
    assert min(counts.values()) >= 20, counts
    assert missed <= (0 if axes == 1 else 4), "sizes are static, so that nearly all are seen"


@pytest.mark.parametrize("axes", [1, 2])
def test_random_strided_writes_of_any_size(axes: int) -> None:
    chooser = random.Random(10 + axes)
    known = 0
    for _ in range(25):
        body = random_body(chooser, (6,) * axes)
        f = function(body)
        for size in SIZES:
            f(np.zeros((size,) * axes))
        procedure = f.procedure(np.zeros((SIZES[-1],) * axes))
        assert any(e.constant is None for e in procedure.parameters[0].node.shape)
        if is_overwritten(procedure):
            known += 1
            for size in LATER:
                assert is_filled(body, (size,) * axes), (size, body)
    assert known >= 3


@pytest.mark.parametrize(
    ("body", "shape", "whole"),
    [
        ("t[::2] = 1\nt[1::2] = 2", (9,), True),
        ("t[::2] = 1\nt[-1::-2] = 2", (10,), True),
        ("t[::2] = 1\nt[-1::-2] = 2", (9,), False),
        ("t[::2] = 1\nt[1::4] = 2\nt[3::4] = 3", (11,), True),
        ("t[::2] = 1\nt[1::4] = 2\nt[3::8] = 3", (11,), False),
        ("t[:4] = 1\nt[4::2] = 2\nt[5::2] = 3", (11,), True),
        ("t[:4] = 1\nt[5::2] = 2\nt[6::2] = 3", (11,), False),
        ("t[::5] = 1\nt[1::5] = 2\nt[2::5] = 3\nt[3::5] = 3\nt[4::5] = 3", (23,), True),
        ("for k in range(0, 10, 2):\n    t[k] = 1\n    t[k + 1] = 2", (10,), True),
        ("for k in range(0, 10, 3):\n    t[k] = 1\n    t[k + 1] = 2", (11,), False),
        ("for k in range(9, -1, -2):\n    t[k] = 1\n    t[k - 1] = 2", (10,), True),
        ("t[::2, ::2] = 1\nt[1::2, ::2] = 2\nt[:, 1::2] = 3", (5, 6), True),
        ("t[::2, ::2] = 1\nt[1::2, 1::2] = 2\nt[:, 1::2] = 3", (5, 6), False),
        ("t[::2, :3] = 1\nt[::2, 3:] = 2\nt[1::2] = 3", (5, 6), True),
        ("t[::2, :3] = 1\nt[::2, 4:] = 2\nt[1::2] = 3", (5, 6), False),
        ("t[::17] = 1\nt[:] = 2", (20,), True),
    ],
)
def test_writes_of_residue_classes(body: str, shape: tuple[int, ...], whole: bool) -> None:
    assert is_filled(body, shape) is whole
    procedure = function(body).procedure(np.zeros(shape))
    assert is_overwritten(procedure) is whole


@pytest.mark.parametrize("backwards", [False, True])
def test_residue_classes_are_a_partition(backwards: bool) -> None:
    i = Symbol("i", 0)
    for lo, hi, modulus in [(0, 9, 2), (3, 9, 4), (-2, 7, 3), (1, 3, 5)]:
        whole = Elements((var(i),), (Range(i, const(lo), const(hi)),))
        found = [
            evaluate(subscript, {i: value})
            for part in residue_classes(whole, 0, 0, modulus, backwards)
            for subscript in [part.index[0]]
            for value in range(part.domain[0].lo.constant or 0, part.domain[0].hi.constant or 0)
        ]
        assert sorted(found) == list(range(lo, hi))
