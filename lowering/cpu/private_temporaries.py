"""Loops that threads might share have temporaries of their own, apart from those beside them.

    for j step 32: t = f(j); y[j] = t         for j step 32: u = f(j); y[j] = u
    for j: t = f(j); y[j] = t                 for j: t = f(j); y[j] = t

Changes: a temporary that a loop worth sharing writes before it reads it, and whose last value is
not needed behind it, is another one there than in other statements of its list. Schedules that cut
a loop leave such ones, and threads share a loop only if no other one has its temporaries.

Needs: loops that are finished but for that. Guarantees: not a bit changes, for no loop had a value
from another.

>>> show(lambda program: separate(shared(program), Target(threads=2, parallel_from=9000)), '''
... for i in range(8000):
...     t = x[i] * 2
...     y[i] = t + t * t
... for i in range(8000, 8009):
...     t = x[i] - 1
...     y[i] += t * t
... ''', y="f32[8009]", x="f32[8009]")
for i in 0..8000:
    t_2 = x[i] * 2.0
    y[i] = t_2 + t_2 * t_2
for i in 8000..8009:
    t = x[i] - 1.0
    y[i] += t * t
"""

from __future__ import annotations

from ..ir.loops import Program
from ..target import Target
from ..transform.renaming import with_own
from .parallelize import is_worth


def separate(program: Program, target: Target) -> Program:
    """Return the program in which loops worth sharing have no temporary in common with others of
    their list that they need not have."""
    if target.threads < 2:
        return program
    return with_own(program, lambda loop: is_worth(loop, target.parallel_from))
