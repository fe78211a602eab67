"""Parallelization: the outermost independent loops that are worth it run on several threads.

A loop becomes parallel where `find_dependence` allows it, with a private copy for each thread of
the temporaries that are live in single iterations only, and where its work is more than the cost of
starting threads; with run-time sizes, the generated code decides at the call. Parallel loops do not
nest: a loop that an earlier schedule made parallel is serial again where an enclosing loop becomes
parallel. Which thread executes which iterations never decides a bit.

Precondition: none. Postcondition: the same meaning, and no parallel loop inside of a parallel one.

>>> show(lambda program: parallelize(program, Target(threads=4, schedule=True)),
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
from .. import thresholds
from ..analysis.cost import iteration_count, total_work
from ..analysis.dependence import (
    Dependent,
    Refusal,
    find_dependence,
    find_privatizable,
    loop_local_nodes,
)
from ..analysis.subscripts import ranges
from ..ir.assignments import Alloc
from ..ir.decision import Reason
from ..ir.indexing import Range, Symbol
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.rewrite import map_bodies, map_kernels, with_bodies
from ..ir.walk import bodies, parallel_loops, statements, writes
from ..target import Target


class StorageReason(Reason):
    """Why a loop is not parallel that could be."""

    ROOM = "each thread would need a copy of its temporaries"


def parallelize(program: Program, target: Target) -> Program:
    """Return the program with parallel loops, for a target with several threads."""
    if not target.schedule or target.threads < 2:
        return program
    hidden = frozenset(node.id for node in (*program.locals, *program.results))
    parallelizer = _Parallelizer(
        loop_local_nodes(program), hidden, target.parallel_from, program.private_annotations
    )
    return map_kernels(program, lambda body: parallelizer.body(body, ()))


def thread_privates(program: Program) -> frozenset[int]:
    """Return the ids of the temporaries of which each thread of a parallel loop has a private copy.

    Raises CdInternalError CD0901 where parallel loops nest, so that an array could be private to
    both: a copy made for the inner loop would hide what the outer one wrote.
    """
    loops = parallel_loops(tuple(s for kernel in program.kernels for s in kernel.body))
    if not loops:
        return frozenset()
    exclusive = loop_local_nodes(program)
    out: set[int] = set()
    for loop in loops:
        if parallel_loops(loop.body):
            raise _nesting_error(loop, program.name)
        out |= find_privatizable(loop, exclusive[id(loop)], program.private_annotations)
    return frozenset(out)


def _nesting_error(loop: For, name: str) -> CdInternalError:
    """Return the error for nested parallel loops."""
    text = f"{name}: the parallel loop over {loop.symbol.name} shares its arrays with another one"
    helps = ("this is a fault of plusequals, not of your function; please report this text",)
    return CdInternalError(Diagnostic("CD0901", text, (Label(loop.span),), helps))


@dataclass(frozen=True, slots=True)
class _Parallelizer:
    """The parallelization of one program."""

    exclusive: Mapping[int, frozenset[int]]
    """The temporaries that only a loop uses, by the loop's `id`."""
    hidden: frozenset[int]
    """All temporaries and results: what nobody sees after an error."""
    least: int
    """The least work of a loop that is worth sharing."""
    annotations: tuple[tuple[int, Symbol], ...]
    """The private nodes of each loop's iterations, as annotated in the program."""

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return statements with the outermost loops parallel that should be."""
        return tuple(self.statement(stmt, outer) for stmt in body)

    def statement(self, stmt: Stmt, outer: tuple[Range, ...]) -> Stmt:
        """Return a statement with the outermost loops parallel that should be, itself or those
        inside."""
        match stmt:
            case For(kind="serial"):
                total = total_work(stmt).constant
                if total is not None and total < self.least:
                    return stmt  # nor is anything inside worth it
                if _has_several(stmt) and self.refusal(stmt, outer) is None:
                    return replace(stmt, kind="parallel", body=_make_serial(stmt.body))
                outer = (*outer, *ranges((stmt,)))
            case If() | While():
                pass
            case _:
                return stmt  # a parallel loop among them: what is inside stays serial
        return with_bodies(stmt, tuple(self.body(inner, outer) for inner in bodies(stmt)))

    def refusal(self, loop: For, outer: tuple[Range, ...]) -> Refusal | None:
        """Return why a loop may not be parallel; None where it may."""
        private_ids = find_privatizable(loop, self.exclusive[id(loop)], self.annotations)
        size = 0
        for stmt in statements(loop.body):
            if isinstance(stmt, Alloc):
                return Refusal(Dependent.STORAGE, f"`{stmt.node.label}`")
        for node in writes(loop.body):
            size += node.bytes if node.id in private_ids else 0
        if size > thresholds.MAX_PRIVATE_BYTES:
            return Refusal(StorageReason.ROOM, f"{size:,} bytes")
        return find_dependence(loop, private_ids, self.hidden, outer)


def _make_serial(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the body of a parallel loop, with all loops in it serial that were parallel."""
    if not parallel_loops(body):
        return body
    out = (map_bodies(stmt, _make_serial) for stmt in body)
    return tuple(
        replace(stmt, kind="serial") if isinstance(stmt, For) and stmt.kind == "parallel" else stmt
        for stmt in out
    )


def is_worth_sharing(loop: For, least: int) -> bool:
    """Whether a loop may have more than one iteration, and at least so much work.

    >>> program = lowered("y[i] = x[i] + 1", y="f32[8]", x="f32[8]")
    >>> (*_, loop) = program.kernels[0].body
    >>> is_worth_sharing(loop, 20), is_worth_sharing(loop, 30)
    (True, False)
    """
    if not _has_several(loop):
        return False
    total = total_work(loop).constant
    return total is None or total >= least


def _has_several(loop: For) -> bool:
    """Whether a loop may have more than one iteration."""
    trip_count = iteration_count(loop).constant
    return trip_count is None or trip_count > 1
