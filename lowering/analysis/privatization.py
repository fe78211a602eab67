"""Which temporaries are of use to single rounds of a loop, noted before loops are cut into pieces.

Changes: nothing but what is noted of the program. Where a round writes all that it reads of a
temporary, threads that share the loop may each have their own. That is plain while one write is in
loops over all that is read; tiles and lanes, and what they leave over, write it piece by piece.

Needs: arrays that have their final shape, and no store of zeros missing that a later round relies
on. Guarantees: it stays true, since schedules keep every round's meaning. A loop that has another
symbol afterwards has to be found independent for a reason of its own.

>>> sharing = Target(threads=2, schedule=True, parallel_from=0)
>>> program, _ = optimize(lowered('''
... m[i] = max(x[i, j])
... e[i, j] = exp(x[i, j] - m[i])
... y[i, j] = e[i, j] / sum[k](e[i, k])
... ''', y="f32[8, 9]", x="f32[8, 9]"), sharing, stop_after="dead again")
>>> names = {node.id: node.label for node in program.locals}
>>> [(names[number], symbol.name) for number, symbol in noted(program, sharing).rounds]
[('e', 'i')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..ir.indexing import Symbol
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.walk import bodies
from ..target import Target
from .cost import total_of
from .dependence import confined, private
from .effects import summary


def noted(program: Program, target: Target) -> Program:
    """Return the program with what is noted of its temporaries, for a target with threads."""
    arrays = {node.id: node for node in program.locals if node.rank}
    if not target.schedule or target.threads < 2 or not arrays:
        return program
    only = confined(program)
    found = (
        pair
        for kernel in program.kernels
        for pair in _noted(kernel.body, arrays, only, target.parallel_from)
    )
    return replace(program, rounds=tuple(dict.fromkeys(found)))


def _noted(
    body: Iterable[Stmt], arrays: Mapping[int, Node], only: Mapping[int, frozenset[int]], least: int
) -> Iterator[tuple[int, Symbol]]:
    """Yield the arrays and the loops of which each round has its own, where sharing is worth it."""
    for stmt in body:
        if not isinstance(stmt, For | If | While) or For not in summary(stmt).kinds:
            continue
        if isinstance(stmt, For):
            total = total_of(stmt).constant
            if total is not None and total < least:
                continue
            mine = only[id(stmt)] & arrays.keys()
            for number in sorted(private(stmt, mine)) if mine else ():
                yield number, stmt.symbol
        for inner in bodies(stmt):
            yield from _noted(inner, arrays, only, least)
