"""A function of a few lines with its loops scheduled: for any size or one, interpreted or as C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.cc.host import target
from plusequals.lowering import settings
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

MODEST = Target(schedule=True, reorders=True)
LIKE_C = replace(MODEST, fma=target().fma)
"""Rounds as the compiled code of this machine does."""


def function(text: str) -> pe.CdFunction:
    """Return the function of a text."""
    return pe.cd_from_source(text, {"np": np})


def of_any_size(made: pe.CdFunction, *arguments: Any) -> Procedure:
    """Return the assignments for run-time sizes, as calls with many sizes get them."""
    with settings.override("numpy"):
        for more in (2, 3, 4, 5):
            made.specialise(*(_grown(one, more) for one in arguments))
        return made.procedure(*arguments)


def _grown(argument: Any, more: int) -> Any:
    if not isinstance(argument, np.ndarray):
        return argument
    return np.ones(tuple(size + more for size in argument.shape), argument.dtype)


def scheduled(procedure: Procedure, target: Target = MODEST) -> Program:
    """Return the scheduled loops of a procedure, which are sound."""
    program, _ = optimize(lower(procedure), target, None, verify_program)
    return program


def interpreted(program: Program, *arguments: Any) -> tuple[Any, ...]:
    """Return the results of loops, which are run on copies; the arrays they wrote where none."""
    mine = [np.array(one) for one in arguments]
    results = run_program(program, [*mine, *(None for _ in program.results)], lambda text: None)
    return results or tuple(mine)
