"""Unroll: short loops whose tests depend on nothing but their rounds, round by round.

Changes: a loop of a few rounds, alone or with short loops inside of it, in which a test or a jump
only depends on the rounds, becomes the statements of its rounds, those that happen. So the eight
neighbours of a cell are added without a test, and the loops around it can be vectors.

Needs: symbols are unique in their scope. Guarantees: the same statements happen in the same order;
where a jump is left that data decides, the loop stays.

>>> show(unroll, '''
... for i in range(1, 7):
...     for d in range(-1, 2):
...         if d == 0:
...             continue
...         y[i] += x[i + d]
... ''', y="f32[8]", x="f32[8]")
for i in 1..7:
    y[i] += x[i - 1]
    y[i] += x[i + 1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import NamedTuple

from ...base.dataclass import dataclass
from ..analysis.accesses import has_jumps
from ..analysis.effects import bound_in, sizes_use
from ..ir.assignments import Break, Continue
from ..ir.bounds import Bounds
from ..ir.exact import simplified
from ..ir.expressions import Const, reads
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Symbol, const
from ..ir.loops import Comment, For, If, Program, Stmt, Update
from ..ir.rewrite import map_bodies, map_statements, over_kernels, rename, substitute
from ..ir.walk import free_symbols, statements

ROUNDS = 5
"""Loops of more rounds stay."""
STATEMENTS = 96
"""So many statements may be written for one loop."""
Body = tuple[Stmt, ...]


def unroll(program: Program) -> Program:
    """Return the program without short loops whose rounds decide tests."""
    work = _Work(fresh_for(program))
    return over_kernels(program, work.body)


class _Left(NamedTuple):
    """What happens in a list of statements whose tests are decided, and by which jump it ends."""

    body: Body
    jump: type[Break | Continue] | None = None


@dataclass(slots=True)
class _Work:
    """The work on one program."""

    fresh: Fresh
    seen: set[Symbol] = field(default_factory=set)
    """Symbols that a copy of a loop's rounds binds already."""

    def body(self, body: Body) -> Body:
        """Return a list of statements with such loops unrolled, the outermost first."""
        out: list[Stmt] = []
        for stmt in body:
            made = self.unrolled(stmt) if isinstance(stmt, For) and _gains(stmt) else None
            out += (map_bodies(stmt, self.body),) if made is None else made
        return tuple(out)

    def unrolled(self, loop: For) -> Body | None:
        """Return what the rounds of a loop do; None where data decides on a jump."""
        out: list[Stmt] = []
        for number, value in enumerate(_values(loop)):
            body = substitute(loop.body, {loop.symbol: const(value)})
            body, bound = self.apart(body)
            if number:
                body = map_statements(body, _without_comments)
            left = self.left(body)
            self.seen |= bound
            if left is None:
                return None
            out += left.body
            if left.jump is Break:
                break
        return tuple(out)

    def left(self, body: Body) -> _Left | None:
        """Return what is left of the statements of a round; None where data decides on a jump."""
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Break() | Continue():
                    return _Left(tuple(out), type(stmt))
                case If(test, then, other):
                    decided = simplified(test, Bounds())
                    if isinstance(decided, Const):
                        inner = self.left(then if decided.value else other)
                        if inner is None:
                            return None
                        out += inner.body
                        if inner.jump is not None:
                            return _Left(tuple(out), inner.jump)
                        continue
                    if has_jumps(For(_ANY, const(0), const(1), 1, (stmt,))):
                        return None
                case For() if _gains(stmt) and (made := self.unrolled(stmt)) is not None:
                    out += made
                    continue
            out.append(stmt)
        return _Left(tuple(out))

    def apart(self, body: Body) -> tuple[Body, frozenset[Symbol]]:
        """Return a round with symbols that no other copy of it binds, and what it bound.

        It is renamed as a whole: what a `let` binds is used by the statements behind it.
        """
        bound = bound_in(body)
        taken = sorted(bound & self.seen, key=lambda symbol: symbol.serial)
        names = {old: self.fresh.symbol(old.name) for old in taken}
        return (rename(body, names, {}) if names else body), bound


def _without_comments(stmt: Stmt) -> Body:
    return () if isinstance(stmt, Comment) else (stmt,)


_ANY = Symbol("any", -(2**31))


def _is_short(loop: For) -> bool:
    """Whether a loop has few rounds, in order, whose number is known."""
    lo, hi = loop.lo.constant, loop.hi.constant
    if lo is None or hi is None or loop.kind != "serial":
        return False
    return len(range(lo, hi, loop.step)) <= ROUNDS


def _values(loop: For) -> range:
    lo, hi = loop.lo.constant, loop.hi.constant
    assert lo is not None and hi is not None, "only loops that are short are unrolled"
    return range(lo, hi, loop.step)


def _gains(loop: For) -> bool:
    """Whether the rounds of a short loop, and of short ones in it, decide tests inside."""
    if not _is_short(loop) or _size(loop) > STATEMENTS:
        return False
    inside = [stmt for stmt in statements(loop.body) if not isinstance(stmt, Comment)]
    if any(isinstance(stmt, Update) and stmt.over for stmt in inside):
        return False  # terms of one sum, whose order is open
    if sizes_use(loop.body, bound_in((loop,))):
        return False  # each round has an array of its own size
    return any(loop.symbol in symbols for symbols in _decided(loop, frozenset()))


def _decided(loop: For, outer: frozenset[Symbol]) -> Iterator[frozenset[Symbol]]:
    """Yield the symbols of each test inside that depends on nothing but short loops."""
    known = outer | {loop.symbol}
    for stmt in loop.body:
        if isinstance(stmt, For) and _is_short(stmt):
            yield from _decided(stmt, known)
        elif isinstance(stmt, If):
            symbols = free_symbols(stmt.test)
            if symbols and symbols <= known and not any(reads(stmt.test)):
                yield symbols


def _size(loop: For) -> int:
    """Return how many statements there would be."""
    inner = sum(
        _size(stmt) if isinstance(stmt, For) and _is_short(stmt) else len(statements((stmt,)))
        for stmt in loop.body if not isinstance(stmt, Comment)
    )  # fmt: skip
    return len(_values(loop)) * inner
