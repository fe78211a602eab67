"""Monotonic scalars: those that start from constants and are only incremented have lower bounds.

Where a loop without iterations would have stored the constant, the scalar is still zero. Analysis
only.

>>> program, _ = optimize(lowered('''
... n = 3
... while x[n] > 0:
...     n += 2
... y[0] = n
... ''', y="i64[1]", x="f32[90]"), Target("cuda"))
>>> [*monotonic_bounds(program).values()]
[3]
"""

from __future__ import annotations

from ...analysis.accesses import collect_accesses
from ...ir import dtypes
from ...ir.expressions import Apply, Const, Read
from ...ir.loops import Program, Stmt, Store, Update
from ...ir.walk import direct_writes, statements

MAX_INCREMENT = 1 << 16
"""Increments below this cannot overflow in any feasible run."""


def monotonic_bounds(program: Program) -> dict[int, int]:
    """Return the lower bounds of scalars that are only incremented, by their ids."""
    lower_bounds: dict[int, int] = {}
    excluded: set[int] = set()
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            for node in direct_writes(stmt):
                start = _initial_value(stmt)
                if node.rank or node.dtype is not dtypes.int64 or start is None:
                    excluded.add(node.id)
                elif start >= 0:
                    lower_bounds[node.id] = min(start, lower_bounds.get(node.id, start))
    accesses = collect_accesses([stmt for kernel in program.kernels for stmt in kernel.body])
    return {
        node.id: 0 if accesses.is_read_before_written(node) else lower_bounds[node.id]
        for node in program.locals if node.id in lower_bounds.keys() - excluded
    }  # fmt: skip


def _initial_value(stmt: Stmt) -> int | None:
    """Return the constant that a statement initializes a scalar with, -1 where it increments it,
    None where it does anything else."""
    match stmt:
        case Store(_, Const(int() as value)) if 0 <= value < MAX_INCREMENT:
            return value
        case Store(access, Apply(op, (Read(node), Const(int() as by)))) if (
            op.name == "add" and node == access.node and 0 <= by < MAX_INCREMENT
        ):
            return -1
        case Update(_, op, Const(int() as by)) if op.name == "add" and 0 <= by < MAX_INCREMENT:
            return -1
        case _:
            return None
