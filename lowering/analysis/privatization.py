"""Privatizable temporaries of loops, annotated before loops are tiled or otherwise split.

Changes only the annotation `Program.private_annotations`. Where an iteration writes all that it
reads of a temporary, threads that share the loop may each have a private copy. That is easy to see
while one write covers all that is read; after tiling and vectorization several partial writes do.

Precondition: arrays have their final shape, and no store of zeros that a later iteration relies on
has been removed. Postcondition: the annotation stays true, since transformations keep the meaning
of every iteration. A loop that has another symbol afterwards has to be analyzed again.

>>> sharing = Target(threads=2, schedule=True, parallel_from=0)
>>> program, _ = optimize(lowered('''
... m[i] = max(x[i, j])
... e[i, j] = exp(x[i, j] - m[i])
... y[i, j] = e[i, j] / sum[k](e[i, k])
... ''', y="f32[8, 9]", x="f32[8, 9]"), sharing, stop_after="eliminate_dead_code 2")
>>> names = {node.id: node.label for node in program.locals}
>>> annotations = annotate_private(program, sharing).private_annotations
>>> [(names[number], symbol.name) for number, symbol in annotations]
[('e', 'i')]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir.indexing import Symbol
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.walk import bodies, reads, writes
from ..target import Target
from .cost import total_work
from .dependence import find_privatizable, loop_local_nodes
from .effects import summarize


def annotate_private(program: Program, target: Target) -> Program:
    """Return the program with its privatizable temporaries annotated, for a target with threads."""
    arrays = {node.id: node for node in program.locals if node.rank}
    if not target.schedule or target.threads < 2 or not arrays:
        return program
    only = loop_local_nodes(program)
    annotations = (
        pair
        for kernel in program.kernels
        for pair in _find_annotations(kernel.body, arrays, only, target.parallel_from)
    )
    return replace(program, private_annotations=tuple(dict.fromkeys(annotations)))


def has_crossing_arrays(parts: Iterable[Sequence[Stmt]], privates: frozenset[int]) -> bool:
    """Whether several parts of an iteration use an array that is private to it. A transformation
    that runs each part for many iterations has to expand it, as it expands scalars."""
    used = Counter(
        number
        for part in parts
        for number in {n.id for n in (*reads(part), *writes(part)) if n.rank} & privates
    )
    return any(count > 1 for count in used.values())


def _find_annotations(
    body: Iterable[Stmt], arrays: Mapping[int, Node], only: Mapping[int, frozenset[int]], least: int
) -> Iterator[tuple[int, Symbol]]:
    """Yield arrays with the loops that they are privatizable in, where parallelizing these is worth
    it."""
    for stmt in body:
        if not isinstance(stmt, For | If | While) or For not in summarize(stmt).kinds:
            continue
        if isinstance(stmt, For):
            total = total_work(stmt).constant
            if total is not None and total < least:
                continue
            candidates = only[id(stmt)] & arrays.keys()
            for number in sorted(find_privatizable(stmt, candidates)) if candidates else ():
                yield number, stmt.symbol
        for inner in bodies(stmt):
            yield from _find_annotations(inner, arrays, only, least)
