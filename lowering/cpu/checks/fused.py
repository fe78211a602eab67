"""What is checked, used while it is near: checks of a block beside what is done in that block.

Changes: a loop that only checks, and behind it one of the same rounds that writes nothing which is
there after an error, temporaries and results, are done by turns, a block of rounds each. What is
looked up comes from memory once.

    for i: check 0 <= k[i] and k[i] < n        for block:
    for i: result[i] = x[k[i]]                     for i in block: check 0 <= k[i] and k[i] < n
                                                   for i in block: result[i] = x[k[i]]

Needs: rounds that are many and short, and write nothing that the checks look at. Guarantees: the
check that fails is the first one, and nothing that anybody sees is written before it.

>>> show(lambda program: beside(program, Target(schedule=True, l2_bytes=4096)),
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
from ...ir.fresh import Fresh, fresh_for
from ...ir.indexing import Affine, Quasi, Symbol, minimum, var
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ...ir.rewrite import map_bodies, over_kernels, substitute
from ...ir.walk import reads, statements, writes
from ...target import Target

Body = tuple[Stmt, ...]
BLOCK = 1024
"""So many rounds are checked at once."""


def beside(program: Program, target: Target) -> Program:
    """Return the program with checks beside what needs them."""
    seen = frozenset(parameter.node.id for parameter in program.parameters)
    work = _Work(fresh_for(program), target, seen)
    return over_kernels(program, work.body)


def checked(body: Body) -> Iterator[tuple[For, int]]:
    """Yield loops that only check, and the places of loops just behind over the same rounds."""
    last: For | None = None
    for number, stmt in enumerate(body):
        if isinstance(stmt, Comment):
            continue
        if last is not None and isinstance(stmt, For) and _rounds(stmt) == _rounds(last):
            yield last, number
        last = stmt if isinstance(stmt, For) and _only_checks(stmt) else None


def round_of(loop: For, symbol: Symbol) -> tuple[Check, ...]:
    """Return what a loop that only checks does in a round of another loop."""
    done = substitute(loop.body, {loop.symbol: var(symbol)})
    return tuple(stmt for stmt in done if isinstance(stmt, Check))


def _rounds(loop: For) -> object:
    return loop.lo, loop.hi, loop.step, loop.kind


def _only_checks(loop: For) -> bool:
    found = {type(stmt) for stmt in loop.body}
    return Check in found and found <= {Check, Comment} and loop.step == 1 and loop.kind == "serial"


def a_block(loop: For, block: Symbol) -> For:
    """Return the loop over the rounds of a block of a loop."""
    rounds, end = (loop.hi - loop.lo).constant, var(block) + BLOCK
    whole = rounds is not None and rounds % BLOCK == 0
    return replace(loop, lo=var(block), hi=end if whole else minimum(loop.hi, end))


def is_a_block(loop: For) -> bool:
    """Whether a loop has the rounds of one block."""
    match loop.hi:
        case Affine(((Quasi("min", one, other), 1),), 0):
            return BLOCK in ((one - loop.lo).constant, (other - loop.lo).constant)
        case end:
            return (end - loop.lo).constant == BLOCK


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one program."""

    fresh: Fresh
    target: Target
    seen: frozenset[int]
    """The ids of what is there after an error."""

    def body(self, body: Body) -> Body:
        """Return a list of statements with checks beside what needs them."""
        near = {two: check for check, two in checked(body) if self.can(check, body[two])}
        gone = [id(check) for check in near.values()]
        return tuple(
            self.joined(near[number], stmt) if number in near else map_bodies(stmt, self.body)
            for number, stmt in enumerate(body) if id(stmt) not in gone
        )  # fmt: skip

    def can(self, check: Stmt, loop: Stmt) -> bool:
        """Whether a loop may be done while its rounds are checked, and it is worth it."""
        inside, read = statements((loop,))[1:], reads((check,))
        changed = {node.id for node in writes((loop,))}
        return (
            all(isinstance(stmt, Comment | If | Store | Update) for stmt in inside)
            and changed.isdisjoint(self.seen)
            and changed.isdisjoint(node.id for node in read)
            and any(node.static_shape is None or node.bytes > self.target.l2_bytes for node in read)
        )

    def joined(self, check: Stmt, loop: Stmt) -> Stmt:
        """Return a loop over blocks, in which both are done."""
        assert isinstance(check, For) and isinstance(loop, For)
        block = self.fresh.symbol("block")
        both = (a_block(check, block), a_block(loop, block))
        return For(block, loop.lo, loop.hi, BLOCK, both, span=loop.span)
