"""Scalars that never get less than some number: those that start from numbers, and only count on.

>>> program, _ = optimize(lowered('''
... n = 3
... while x[n] > 0:
...     n += 2
... y[0] = n
... ''', y="i64[1]", x="f32[90]"), Target("cuda"))
>>> [*growing(program).values()]
[3]
"""

from __future__ import annotations

from ..ir import dtypes
from ..ir.expressions import Apply, Const, Read
from ..ir.loops import Program, Stmt, Store, Update
from ..ir.walk import own_writes, statements

SMALL = 1 << 16
"""Counted on by less than that, a number does not wrap around."""


def growing(program: Program) -> dict[int, int]:
    """Return what scalars are at least, by their ids, of those that only count on."""
    least: dict[int, int] = {}
    others: set[int] = set()
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            for node in own_writes(stmt):
                start = _start(stmt)
                if node.rank or node.dtype is not dtypes.int64 or start is None:
                    others.add(node.id)
                elif start >= 0:
                    least[node.id] = min(start, least.get(node.id, start))
    own = {node.id for node in program.locals}
    return {number: one for number, one in least.items() if number in own - others}


def _start(stmt: Stmt) -> int | None:
    """Return the number that a scalar starts from in a statement, -1 where it counts on there, None
    where it does anything else."""
    match stmt:
        case Store(_, Const(int() as value)) if 0 <= value < SMALL:
            return value
        case Store(access, Apply(op, (Read(node), Const(int() as by)))) if (
            op.name == "add" and node == access.node and 0 <= by < SMALL
        ):
            return -1
        case Update(_, op, Const(int() as by)) if op.name == "add" and 0 <= by < SMALL:
            return -1
        case _:
            return None
