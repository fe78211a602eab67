"""Other names for the loops of a program: no pass may decide by them.

Loops that do not enclose each other may have one and the same variable, and after many passes some
do. An analysis that compares two of them must not take one variable for the other's. Here the same
program is lowered twice: all loops have variables of their own, or share as many as they may.
"""

from __future__ import annotations

import difflib
import itertools
import random
from collections.abc import Callable
from dataclasses import replace

from plusequals.lowering.ir.indexing import Symbol
from plusequals.lowering.ir.loops import For, Program, Stmt
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.rewrite import map_bodies, map_kernels, rename
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

_FIRST = 10**6
"""The lowest number of a new variable: above those of all others. Index expressions print their
terms by these numbers, so that those of inner loops have to be higher ones in both programs."""
_SHARED = 2
"""Among so many variables one is drawn."""

Pick = Callable[[int], int]
"""The number of a loop's variable, above the highest of the loops around it."""


def with_own_variables(program: Program, first: int = _FIRST) -> Program:
    """Return the program with a variable for each loop that no other has, numbered from `first`."""
    numbers = itertools.count(first)
    return _renamed(program, lambda highest: next(numbers))


def with_shared_variables(program: Program, rng: random.Random) -> Program:
    """Return the program with few variables, which loops have that do not enclose each other."""
    return _renamed(program, lambda highest: highest + rng.randint(1, _SHARED))


def _renamed(program: Program, pick: Pick) -> Program:
    def change(body: tuple[Stmt, ...], highest: int) -> tuple[Stmt, ...]:
        return tuple(changed(stmt, highest) for stmt in body)

    def changed(stmt: Stmt, highest: int) -> Stmt:
        if not isinstance(stmt, For):
            return map_bodies(stmt, lambda body: change(body, highest))
        number = pick(highest)
        (loop,) = rename((stmt,), {stmt.symbol: Symbol("i", number)}, {})
        return replace(loop, body=change(loop.body, number))

    return map_kernels(program, lambda body: change(body, _FIRST))


def difference(program: Program, target: Target, rng: random.Random) -> str | None:
    """Return the first pass after which the program depends on the names of its loops, and how;
    None where what all passes make of it does not."""
    stages: list[list[tuple[str, Program]]] = []
    for renamed in (with_own_variables(program), with_shared_variables(program, rng)):
        stages.append([("renamed", renamed)])
        optimize(renamed, target, lambda name, now: stages[-1].append((name, now)))
    if _shown(*(stage[-1][1] for stage in stages)) is None:
        return None  # what a pass does otherwise, one after it mends
    for (name, own), (other, shared) in zip(*stages, strict=True):
        shown = _shown(own, shared)
        if name != other or shown is not None:
            return "\n".join((name, *(shown or ())))
    return None


def _shown(own: Program, shared: Program) -> list[str] | None:
    """Return how the texts of two programs differ, None where they do not."""
    one, two = print_program(own).splitlines(), print_program(shared).splitlines()
    if one != two:  # fused loops may enclose variables with lower numbers
        own, shared = (with_own_variables(now, 2 * _FIRST) for now in (own, shared))
        one, two = print_program(own).splitlines(), print_program(shared).splitlines()
    return None if one == two else [*difflib.unified_diff(one, two, lineterm="", n=4)]
