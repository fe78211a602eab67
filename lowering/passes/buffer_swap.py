"""Exchange: an argument that takes an array at the end trades places in its stead.

Changes: where arrays trade places, and the last thing that is done to one of them is that an
argument takes all of it, the argument is that array from the start. So one array of the two that a
stencil needs is the caller's, and there is nothing to copy after an even number of rounds.

Needs: arrays that have their final shape. Guarantees: the same values; what the argument held is
not read, all of it is written, and nothing can fail or print from then on. Where it has moved, its
values are brought to the caller's memory at the end, as those of results are.

>>> show(exchange, '''
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

from ..analysis.accesses import accesses, has_effects
from ..analysis.effects import changed_where
from ..ir.comments import headed
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Read
from ..ir.loops import Comment, For, Kernel, Program, Stmt, Store
from ..ir.node import Node
from ..ir.rewrite import rename
from ..ir.walk import exchanged, statements


class Traded(Reason):
    """Why an array is an argument from the start."""

    TAKEN = "it trades places, and at the end an argument takes all of it"


def exchange(program: Program) -> Program:
    """Return the program with an argument in the place of an array that it takes at the end."""
    return decide_exchange(program).program


def decide_exchange(program: Program) -> Decided:
    """Return the program with an argument among the arrays that trade places, and which."""
    moving = exchanged(program)
    shared = {p.node.id for p in program.parameters if p.written}
    shared |= {node.id for node in program.results}
    if not moving or moving & shared or len(program.kernels) != 1:
        return Decided(program, ())  # several that move would be brought home by way of others
    (kernel,) = program.kernels
    own = {node.id for node in program.locals if node.request is None} & moving
    for at, old, new in _copies(kernel):
        if old.id in own and new.id in shared and _is_free(kernel, at, old, new):
            left = headed([None if k == at else stmt for k, stmt in enumerate(kernel.body)])
            found = {old.id: new}
            body = changed_where(found, left, partial(rename, symbols={}, nodes=found))
            made = replace(
                program, kernels=(replace(kernel, body=body),),
                locals=tuple(node for node in program.locals if node != old),
                parameters=tuple(
                    replace(p, returns=True) if p.node == new else p for p in program.parameters
                ),
            )  # fmt: skip
            return Decided(made, (Decision("reused", Traded.TAKEN, old, f"`{new.label}`"),))
    return Decided(program, ())


def _copies(kernel: Kernel) -> Iterator[tuple[int, Node, Node]]:
    """Yield the nests that do nothing but copy cells to where they are in an array like theirs."""
    for at, stmt in enumerate(kernel.body):
        left = [one for one in statements((stmt,)) if not isinstance(one, For | Comment)]
        match left:
            case [Store(to, Read(old, index))] if to.index == index:
                new = to.node
                same = (old.dtype, old.shape, old.strides) == (new.dtype, new.shape, new.strides)
                if same and old.rank and old.id != new.id and old.static_shape is not None:
                    yield at, old, new


def _is_free(kernel: Kernel, at: int, old: Node, new: Node) -> bool:
    """Whether an argument that nothing else touches may be an array until it takes it."""
    found = accesses(kernel.body)
    if len(found.of(new)) != 1:
        return False
    first, last = found.of(old)[0].route[0][0], found.of(old)[-1].route[0][0]
    rest: tuple[Stmt, ...] = kernel.body[first:]
    if last != at or any(map(has_effects, rest)) or found.read_before_written(old):
        return False
    return accesses((kernel.body[at],)).is_overwritten(new)
