"""Privatization of temporaries: loops that threads may share have none in common with others.

    for j step 32: t = f(j); y[j] = t         for j step 32: u = f(j); y[j] = u
    for j: t = f(j); y[j] = t                 for j: t = f(j); y[j] = t

Changes: a temporary that a loop worth sharing writes before it reads it, and whose last value is
dead after the loop, is replaced by a private one in that loop (renaming). Schedules that split a
loop leave one temporary in several loops, and threads share a loop only if no other loop uses its
temporaries.

Precondition: loops that are finished but for that. Postcondition: bit-identical, for no loop read a
value of another.

>>> target = Target(threads=2, parallel_from=9000)
>>> show(lambda program: privatize_temporaries(shared(program), target),
... '''
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
from ..transform.renaming import rename_temporaries
from .parallelize import is_worth_sharing


def privatize_temporaries(program: Program, target: Target) -> Program:
    """Return the program in which loops that are worth sharing use temporaries of their own, where
    other statements of their list use the same ones without need."""
    if target.threads < 2:
        return program
    return rename_temporaries(program, lambda loop: is_worth_sharing(loop, target.parallel_from))
