"""Kinds of loops: the outermost loops whose rounds are independent, and worth it, run in parallel.

A loop becomes parallel where `legal.independent` allows it, each thread having its own copy of the
temporaries that are of use to single iterations only, and where its work is more than what sharing
it costs; where only the call knows the sizes, the call decides. Parallel loops do not nest: a loop
that an earlier schedule made parallel is serial again where a loop around it becomes parallel.
Which thread runs which iterations never decides a bit.

Precondition: none. Postcondition: the same meaning, and no parallel loop inside of a parallel one.

>>> show(lambda program: parallel(program, Target(threads=4, schedule=True)),
...      "s[i] = sum(x[i, j]); y[i, j] = x[i, j] / s[i]",
...      y="f32[800, 900]", x="f32[800, 900]")
for i in 0..800 parallel:
    s[i] = 0.0
    for j in 0..900:
        s[i] += x[i, j]
for i in 0..800 parallel:
    for j in 0..900:
        y[i, j] = x[i, j] / s[i]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import CdInternalError, Diagnostic, Label
from ..analysis.cost import rounds_of, total_of
from ..analysis.dependence import Dependent, Refusal, confined, independent, private
from ..analysis.subscripts import ranges
from ..ir.assignments import Alloc
from ..ir.decision import Reason
from ..ir.indexing import Range, Symbol
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.rewrite import map_bodies, over_kernels, with_bodies
from ..ir.walk import bodies, parallel_loops, statements, writes
from ..target import Target

ROOM = 4 << 20
"""How many bytes of temporaries a thread may have of its own."""


class Crowded(Reason):
    """Why a loop is not parallel that could be."""

    ROOM = "each thread would need temporaries of its own"


def parallel(program: Program, target: Target) -> Program:
    """Return the program with the loops parallel that should be, for a target with threads."""
    if not target.schedule or target.threads < 2:
        return program
    own = frozenset(node.id for node in (*program.locals, *program.results))
    known = _Known(confined(program), own, target.parallel_from, program.rounds)
    return over_kernels(program, lambda body: known.body(body, ()))


def privates(program: Program) -> frozenset[int]:
    """Return the ids of the temporaries of which each thread of a parallel loop has its own copy.

    Raises CdInternalError CD0901 where parallel loops nest, so that two of them may own an array: a
    copy made for the inner loop would hide what the outer one wrote.
    """
    found = parallel_loops(tuple(s for kernel in program.kernels for s in kernel.body))
    if not found:
        return frozenset()
    only = confined(program)
    out: set[int] = set()
    for loop in found:
        if parallel_loops(loop.body):
            raise _nested(loop, program.name)
        out |= private(loop, only[id(loop)], program.rounds)
    return frozenset(out)


def _nested(loop: For, name: str) -> CdInternalError:
    """Return the error for a parallel loop that is inside of another one, or has one inside."""
    said = f"{name}: the parallel loop over {loop.symbol.name} shares its arrays with another one"
    helps = ("this is a fault of plusequals, not of your function; please report this text",)
    return CdInternalError(Diagnostic("CD0901", said, (Label(loop.span),), helps))


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the whole program."""

    only: Mapping[int, frozenset[int]]
    """The temporaries that each loop alone uses."""
    own: frozenset[int]
    """All temporaries and results: what nobody sees after an error."""
    least: int
    """The work that is worth sharing."""
    noted: tuple[tuple[int, Symbol], ...]
    """What each round of a loop has for itself, by what was noted of the program."""

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return statements with the outermost loops that should be parallel made so."""
        return tuple(self.statement(stmt, outer) for stmt in body)

    def statement(self, stmt: Stmt, outer: tuple[Range, ...]) -> Stmt:
        """Return a statement that is parallel, or what is inside of it."""
        match stmt:
            case For(kind="serial"):
                total = total_of(stmt).constant
                if total is not None and total < self.least:
                    return stmt  # nor is anything inside worth it
                if _are_several(stmt) and self.refusal(stmt, outer) is None:
                    return replace(stmt, kind="parallel", body=_serial(stmt.body))
                outer = (*outer, *ranges((stmt,)))
            case If() | While():
                pass
            case _:
                return stmt  # a parallel loop among them: what is inside stays serial
        return with_bodies(stmt, tuple(self.body(inner, outer) for inner in bodies(stmt)))

    def refusal(self, loop: For, outer: tuple[Range, ...]) -> Refusal | None:
        """Return why a loop may not be parallel; None where it may."""
        own = private(loop, self.only[id(loop)], self.noted)
        size = 0
        for stmt in statements(loop.body):
            if isinstance(stmt, Alloc):
                return Refusal(Dependent.STORAGE, f"`{stmt.node.label}`")
        for node in writes(loop.body):
            size += node.bytes if node.id in own else 0
        if size > ROOM:
            return Refusal(Crowded.ROOM, f"{size:,} bytes")
        return independent(loop, own, self.own, outer)


def _serial(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements with their parallel loops serial: for the body of a parallel loop."""
    if not parallel_loops(body):
        return body
    out = (map_bodies(stmt, _serial) for stmt in body)
    return tuple(
        replace(stmt, kind="serial") if isinstance(stmt, For) and stmt.kind == "parallel" else stmt
        for stmt in out
    )


def is_worth(loop: For, least: int) -> bool:
    """Whether the rounds of a loop may have that much work, and are more than one.

    >>> program = lowered("y[i] = x[i] + 1", y="f32[8]", x="f32[8]")
    >>> is_worth(program.kernels[0].body[-1], 20), is_worth(program.kernels[0].body[-1], 30)
    (True, False)
    """
    if not _are_several(loop):
        return False
    total = total_of(loop).constant
    return total is None or total >= least


def _are_several(loop: For) -> bool:
    """Whether a loop may have more than one round."""
    rounds = rounds_of(loop).constant
    return rounds is None or rounds > 1
