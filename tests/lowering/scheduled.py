"""A function of a few lines with its loops scheduled: for any size or one, interpreted or as C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.cc.cpu_info import target
from plusequals.base import settings
from plusequals.lowering.analysis.parallel_band import trip_count
from plusequals.lowering.cpu.parallelize import thread_privates
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.expressions import Const
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Fill, For, Program, Stmt
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.rewrite import map_statements
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import direct_reads, direct_writes, parallel_loops, statements
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


def out_of_order(program: Program) -> Program:
    """Return the program with the iterations of parallel loops from the last to the first, each
    with garbage in its private arrays: the same meaning, if they are independent."""
    private = thread_privates(program)

    def reversed_(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For) or stmt.kind != "parallel":
            return (stmt,)
        used = {
            n.id: n for s in statements(stmt.body) for n in (*direct_reads(s), *direct_writes(s))
        }
        garbage = tuple(_garbage(used[number]) for number in sorted(private & used.keys()))
        last = stmt.lo + (trip_count(stmt) - 1) * stmt.step
        made = replace(stmt, lo=last, hi=stmt.lo - stmt.step, step=-stmt.step, kind="serial")
        return (replace(made, body=(*garbage, *stmt.body)),)

    kernels = (replace(k, body=map_statements(k.body, reversed_)) for k in program.kernels)
    return replace(program, kernels=tuple(kernels))


def is_shared(program: Program) -> bool:
    """Whether some loop of a program is parallel."""
    return any(parallel_loops(kernel.body) for kernel in program.kernels)


_GARBAGE = {"f": float("nan"), "c": complex(float("nan")), "b": True}


def _garbage(node: Node) -> Fill:
    return Fill(node, Const(_GARBAGE.get(node.dtype.kind, 113), node.dtype))
