"""Arguments that trade places in the stead of what they take at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.rewrite import map_kernels, rename
from plusequals.lowering.passes.buffer_swap import SwapReason, swap_buffers

from ..shown import lowered, text_of
from .agree import assert_agrees
from .traps.swap_buffers import TRAPS as EXCHANGE

ARRAYS = {"y": "f64[8]", "z": "f64[8]", "x": "f64[8]", "n": "i64"}
TAKEN = {
    "taken whole": ["u"],
    "an even number of rounds": ["u"],
    "the other one": ["v"],
    "both": ["u"],
    "into a result": ["u"],
    "three of them": ["v"],
    "what it took is read afterwards": ["u"],
    "zeros at the start": ["u"],
}


def loops(name: str) -> Program:
    return lowered(EXCHANGE[name], **ARRAYS)


def test_one_array_less() -> None:
    before = loops("an even number of rounds")
    after, (made,) = swap_buffers(before)
    assert [node.label for node in before.locals if node.rank] == ["u", "v"]
    assert [node.label for node in after.locals if node.rank] == ["v"]
    assert [p.node.label for p in after.parameters if p.returns] == ["y"]
    assert made.node is not None and made.node.label == "u"
    assert (made.outcome, made.reason, made.detail) == ("reused", SwapReason.TAKEN, "`y`")
    assert swap_buffers(after).program == after


@pytest.mark.parametrize("name", EXCHANGE)
def test_only_what_takes_all_of_it_and_is_touched_by_nothing_else(name: str) -> None:
    before = loops(name)
    after = swap_buffers(before).program
    taken = [node.label for node in before.locals if node not in after.locals]
    assert taken == TAKEN.get(name, []), text_of(after)


@pytest.mark.parametrize("name", EXCHANGE)
def test_nothing_else_changes(name: str) -> None:
    x = np.random.default_rng(1).random(8)
    for sign in (1.0, -1.0):
        program = loops(name)
        given = [np.full(8, 3.0), np.full(8, 4.0), x * sign, np.array(3), np.array(0)]
        arrays = [*given[: len(program.parameters)], *(np.empty(8) for _ in program.results)]
        assert_agrees(program, swap_buffers, arrays)


def test_arrays_of_other_strides_stay() -> None:
    before = loops("taken whole")
    y = before.parameters[0].node
    spread = {y.id: replace(y, strides=(2,))}
    moved = map_kernels(before, lambda body: rename(body, {}, spread))
    assert swap_buffers(before).program != before
    assert swap_buffers(moved).program == moved
