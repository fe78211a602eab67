"""Temporaries of their own: only loops that are asked for, and as often as there is need."""

from __future__ import annotations

from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import direct_writes, statements
from plusequals.lowering.transform.renaming import rename_temporaries

from ..shown import lowered, shared

LOOP = "for i in range(9):\n    t = x[i] * 2\n    y[i] = t + t * t"


def _written(program: Program) -> list[set[int]]:
    own = {node.id for node in program.locals}
    return [
        {node.id for stmt in statements((loop,)) for node in direct_writes(stmt)} & own
        for loop in program.kernels[0].body if isinstance(loop, For)
    ]  # fmt: skip


def test_only_loops_that_are_asked_for() -> None:
    program = shared(lowered("\n".join([LOOP] * 3), y="f32[9]", x="f32[9]"))
    loops = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    made = rename_temporaries(program, lambda loop: loop is loops[1])
    verify_program(made)
    first, second, third = _written(made)
    assert first == third != second and not first & second
    assert rename_temporaries(program, lambda loop: False).kernels == program.kernels


def test_what_has_its_own_stays() -> None:
    program = shared(lowered("\n".join([LOOP] * 2), y="f32[9]", x="f32[9]"))
    made = rename_temporaries(program, lambda loop: True)
    assert rename_temporaries(made, lambda loop: True) == made != program


def test_of_several_that_share_one_the_last_keeps_it_or_the_first() -> None:
    program = shared(lowered("\n".join([LOOP] * 3), y="f32[9]", x="f32[9]"))
    before = {node.id for node in program.locals}
    for first_keeps, kept in ((False, [False, False, True]), (True, [True, False, False])):
        made = rename_temporaries(program, lambda loop: True, first_keeps)
        verify_program(made)
        assert [ids <= before for ids in _written(made)] == kept
