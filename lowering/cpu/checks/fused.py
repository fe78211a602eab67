"""Blocked fusion of bounds checks with the loop that needs them.

Changes: a loop that only checks, and after it one over the same iterations that writes nothing
that is visible after an error (only temporaries and results), are strip-mined and fused: they
alternate by blocks. What is looked up is loaded from memory once.

    for i: check 0 <= k[i] and k[i] < n        for block:
    for i: result[i] = x[k[i]]                     for i in block: check 0 <= k[i] and k[i] < n
                                                   for i in block: result[i] = x[k[i]]

Precondition: iterations that are many and short, and write nothing that the checks read.
Postcondition: the check that fails is the first one, and nothing visible is written before it.

>>> show(lambda program: fuse_checks(program, Target(schedule=True, l2_bytes=4096)),
...      "return x[k]", x="f32[9]", k="i64[4096]")
for block in 0..4096 step 1024:
    for i in block..block + 1024:
        check k[i] >= -9 and k[i] < 9 else CdIndexError('CD0601',
                'index {0} is out of range for axis 0 of `x` with size {1}, at i = {2}',
                k[i], 9, i)
    for i in block..block + 1024:
        result[i] = x[k[i] + 9 if k[i] < 0 else k[i]]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....base.dataclass import dataclass
from ... import thresholds
from ...ir.fresh import Fresh, fresh_for
from ...ir.indexing import Affine, Quasi, Symbol, minimum, var
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ...ir.rewrite import map_bodies, map_kernels, substitute
from ...ir.walk import reads, statements, writes
from ...target import Target

Body = tuple[Stmt, ...]


def fuse_checks(program: Program, target: Target) -> Program:
    """Return the program with checks fused with the loops that need them, by blocks."""
    visible = frozenset(parameter.node.id for parameter in program.parameters)
    fusion = _CheckFusion(fresh_for(program), target, visible)
    return map_kernels(program, fusion.body)


def find_checked_loops(body: Body) -> Iterator[tuple[For, int]]:
    """Yield the loops that only check, each with the position of a loop right after it over the
    same iterations."""
    last: For | None = None
    for number, stmt in enumerate(body):
        if isinstance(stmt, Comment):
            continue
        if last is not None and isinstance(stmt, For) and _header(stmt) == _header(last):
            yield last, number
        last = stmt if isinstance(stmt, For) and _is_checking(stmt) else None


def checks_in_iteration(loop: For, symbol: Symbol) -> tuple[Check, ...]:
    """Return the checks that a checking loop makes in an iteration of another loop."""
    body = substitute(loop.body, {loop.symbol: var(symbol)})
    return tuple(stmt for stmt in body if isinstance(stmt, Check))


def _header(loop: For) -> object:
    return loop.lo, loop.hi, loop.step, loop.kind


def _is_checking(loop: For) -> bool:
    types = {type(stmt) for stmt in loop.body}
    return Check in types and types <= {Check, Comment} and loop.step == 1 and loop.kind == "serial"


def block_loop(loop: For, block: Symbol) -> For:
    """Return the loop over the iterations of a block of a loop."""
    trip_count, end = (loop.hi - loop.lo).constant, var(block) + thresholds.CHECKED_BLOCK_ITERATIONS
    is_even = trip_count is not None and trip_count % thresholds.CHECKED_BLOCK_ITERATIONS == 0
    return replace(loop, lo=var(block), hi=end if is_even else minimum(loop.hi, end))


def is_block(loop: For) -> bool:
    """Whether a loop has the iterations of one block."""
    match loop.hi:
        case Affine(((Quasi("min", left, right), 1),), 0):
            ends = (left - loop.lo).constant, (right - loop.lo).constant
            return thresholds.CHECKED_BLOCK_ITERATIONS in ends
        case end:
            return (end - loop.lo).constant == thresholds.CHECKED_BLOCK_ITERATIONS


@dataclass(frozen=True, slots=True)
class _CheckFusion:
    """The fusion of the checks of one program."""

    fresh: Fresh
    target: Target
    visible: frozenset[int]
    """The ids of the nodes that are visible after an error."""

    def body(self, body: Body) -> Body:
        """Return a list of statements with checks fused with the loops that need them."""
        fusable = {
            position: check
            for check, position in find_checked_loops(body)
            if self.can_fuse(check, body[position])
        }
        fused = [id(check) for check in fusable.values()]
        return tuple(
            self.fuse(fusable[number], stmt) if number in fusable else map_bodies(stmt, self.body)
            for number, stmt in enumerate(body) if id(stmt) not in fused
        )  # fmt: skip

    def can_fuse(self, check: Stmt, loop: Stmt) -> bool:
        """Whether a loop can be fused with its checks by blocks, and it pays."""
        inside, read = statements((loop,))[1:], reads((check,))
        written = {node.id for node in writes((loop,))}
        return (
            all(isinstance(stmt, Comment | If | Store | Update) for stmt in inside)
            and written.isdisjoint(self.visible)
            and written.isdisjoint(node.id for node in read)
            and any(node.static_shape is None or node.bytes > self.target.l2_bytes for node in read)
        )

    def fuse(self, check: Stmt, loop: Stmt) -> Stmt:
        """Return a loop over blocks of both loops."""
        assert isinstance(check, For) and isinstance(loop, For)
        block = self.fresh.symbol("block")
        both = (block_loop(check, block), block_loop(loop, block))
        return For(
            block, loop.lo, loop.hi, thresholds.CHECKED_BLOCK_ITERATIONS, both, span=loop.span
        )
