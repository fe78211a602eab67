"""Copy elimination among permuted buffers: the argument that receives an array takes its place.

Changes: where arrays are permuted (double buffering), and the last access of one of them copies all
of it to an argument, the argument is that array from the start. So one of the two arrays of a
stencil is the caller's, and there is nothing to copy after an even number of iterations.

Precondition: arrays have their final shape. Postcondition: the same values; what the argument held
is not read, all of it is written, and nothing can fail or print from then on. Where the permutation
has moved it, its values are copied to the caller's memory at the end, as those of results are.

>>> show(swap_buffers, '''
... u, v = x.copy(), x.copy()
... for t in range(5):
...     v[1:-1] = u[:-2] + u[2:]
...     u, v = v, u
... y[...] = u
... ''', y="f32[8]", x="f32[8]")
for i in 0..8:
    y[i] = x[i]
for i in 0..8:
    v[i] = x[i]
for t in 0..5:
    for i in 0..6:
        v[i + 1] = y[i] + y[i + 2]
    permute y, v = v, y
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ..analysis.accesses import collect_accesses
from ..analysis.effects import change_touching, has_effects
from ..ir.comments import drop_removed
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Read
from ..ir.loops import Comment, For, Kernel, Program, Stmt, Store
from ..ir.node import Node
from ..ir.rewrite import rename
from ..ir.walk import permuted_nodes, statements


class SwapReason(Reason):
    """Why an array is an argument from the start."""

    TAKEN = "the loop exchanges it with another array, and its values are copied there at the end"


def swap_buffers(program: Program) -> Decided:
    """Return the program with an argument among its permuted arrays, and the decision."""
    permuted = permuted_nodes(program)
    shared = {p.node.id for p in program.parameters if p.written}
    shared |= {node.id for node in program.results}
    if not permuted or permuted & shared or len(program.kernels) != 1:
        return Decided(program, ())  # several permuted ones would be copied back through others
    (kernel,) = program.kernels
    candidates = {node.id for node in program.locals if node.request is None} & permuted
    for at, old, new in _find_copies(kernel):
        if old.id in candidates and new.id in shared and _can_replace(kernel, at, old, new):
            remaining = drop_removed(
                [None if k == at else stmt for k, stmt in enumerate(kernel.body)]
            )
            replacement = {old.id: new}
            body = change_touching(
                replacement, remaining, partial(rename, symbols={}, nodes=replacement)
            )
            result = replace(
                program, kernels=(replace(kernel, body=body),),
                locals=tuple(node for node in program.locals if node != old),
                parameters=tuple(
                    replace(p, returns=True) if p.node == new else p for p in program.parameters
                ),
            )  # fmt: skip
            return Decided(result, (Decision("reused", SwapReason.TAKEN, old, f"`{new.label}`"),))
    return Decided(program, ())


def _find_copies(kernel: Kernel) -> Iterator[tuple[int, Node, Node]]:
    """Yield the nests that only copy cells to the same subscripts of an array of the same
    layout."""
    for at, stmt in enumerate(kernel.body):
        inner = [s for s in statements((stmt,)) if not isinstance(s, For | Comment)]
        match inner:
            case [Store(to, Read(old, index))] if to.index == index:
                new = to.node
                same = (old.dtype, old.shape, old.strides) == (new.dtype, new.shape, new.strides)
                if same and old.rank and old.id != new.id and old.static_shape is not None:
                    yield at, old, new


def _can_replace(kernel: Kernel, at: int, old: Node, new: Node) -> bool:
    """Whether an argument that nothing else accesses may replace an array until it receives it."""
    sites = collect_accesses(kernel.body)
    if len(sites.of(new)) != 1:
        return False
    first, last = sites.of(old)[0].route[0][0], sites.of(old)[-1].route[0][0]
    rest: tuple[Stmt, ...] = kernel.body[first:]
    if last != at or any(map(has_effects, rest)) or sites.is_read_before_written(old):
        return False
    return collect_accesses((kernel.body[at],)).is_overwritten(new)
