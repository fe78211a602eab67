"""Full unrolling of short loops whose tests depend on the iteration only.

Changes: a loop of a few iterations, alone or with short loops inside of it, in which a test or a
jump depends on the iteration only, becomes the statements of its iterations, with the tests
decided. So the eight neighbours of a cell are added without a test, and the loops around can be
vectorized.

Precondition: symbols are unique in their scope. Postcondition: the same statements are executed in
the same order; where a data-dependent jump remains, the loop stays.

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
from .. import thresholds
from ..analysis.effects import alloc_sizes_use, bound_symbols, has_jumps
from ..ir.assignments import Break, Continue
from ..ir.bounds import Bounds
from ..ir.exact import simplify_expr
from ..ir.expressions import Const, reads
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Symbol, const
from ..ir.loops import Comment, For, If, Program, Stmt, Update
from ..ir.rewrite import map_bodies, map_kernels, map_statements, rename, substitute
from ..ir.walk import free_symbols, statements

Body = tuple[Stmt, ...]


def unroll(program: Program) -> Program:
    """Return the program without short loops whose iterations decide tests."""
    unrolling = _Unrolling(fresh_for(program))
    return map_kernels(program, unrolling.body)


class _Residue(NamedTuple):
    """The statements of a list that are executed once tests are decided, and the jump that ends
    it."""

    body: Body
    jump: type[Break | Continue] | None = None


@dataclass(slots=True)
class _Unrolling:
    """Unrolling in one program."""

    fresh: Fresh
    seen: set[Symbol] = field(default_factory=set)
    """Symbols that a copy of a loop's body binds already."""

    def body(self, body: Body) -> Body:
        """Return a list of statements with such loops unrolled, the outermost first."""
        out: list[Stmt] = []
        for stmt in body:
            unrolled = (
                self.unroll_loop(stmt) if isinstance(stmt, For) and _is_profitable(stmt) else None
            )
            out += (map_bodies(stmt, self.body),) if unrolled is None else unrolled
        return tuple(out)

    def unroll_loop(self, loop: For) -> Body | None:
        """Return the statements of all iterations; None where a jump depends on data."""
        out: list[Stmt] = []
        for iteration, value in enumerate(_iteration_values(loop)):
            body = substitute(loop.body, {loop.symbol: const(value)})
            body, bound = self.with_fresh_symbols(body)
            if iteration:
                body = map_statements(body, _without_comments)
            residue = self.residue_of(body)
            self.seen |= bound
            if residue is None:
                return None
            out += residue.body
            if residue.jump is Break:
                break
        return tuple(out)

    def residue_of(self, body: Body) -> _Residue | None:
        """Return the executed statements of an iteration; None where a jump depends on data."""
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Break() | Continue():
                    return _Residue(tuple(out), type(stmt))
                case If(test, then, orelse):
                    decided = simplify_expr(test, Bounds())
                    if isinstance(decided, Const):
                        inner = self.residue_of(then if decided.value else orelse)
                        if inner is None:
                            return None
                        out += inner.body
                        if inner.jump is not None:
                            return _Residue(tuple(out), inner.jump)
                        continue
                    if has_jumps(For(_ANY_SYMBOL, const(0), const(1), 1, (stmt,))):
                        return None
                case For() if (
                    _is_profitable(stmt) and (unrolled := self.unroll_loop(stmt)) is not None
                ):
                    out += unrolled
                    continue
            out.append(stmt)
        return _Residue(tuple(out))

    def with_fresh_symbols(self, body: Body) -> tuple[Body, frozenset[Symbol]]:
        """Return the body of an iteration with symbols that no other copy of it binds, and what it
        bound.

        It is renamed as a whole: what a `let` binds is used by the statements after it.
        """
        bound = bound_symbols(body)
        clashing = sorted(bound & self.seen, key=lambda symbol: symbol.serial)
        renaming = {old: self.fresh.symbol(old.name) for old in clashing}
        return (rename(body, renaming, {}) if renaming else body), bound


def _without_comments(stmt: Stmt) -> Body:
    return () if isinstance(stmt, Comment) else (stmt,)


_ANY_SYMBOL = Symbol("any", -(2**31))


def _is_short(loop: For) -> bool:
    """Whether a serial loop has few iterations, of static number."""
    lo, hi = loop.lo.constant, loop.hi.constant
    if lo is None or hi is None or loop.kind != "serial":
        return False
    return len(range(lo, hi, loop.step)) <= thresholds.MAX_UNROLLED_ITERATIONS


def _iteration_values(loop: For) -> range:
    lo, hi = loop.lo.constant, loop.hi.constant
    assert lo is not None and hi is not None, "only loops that are short are unrolled"
    return range(lo, hi, loop.step)


def _is_profitable(loop: For) -> bool:
    """Whether the iterations of a short loop, and of short ones in it, decide tests inside."""
    if not _is_short(loop) or _unrolled_size(loop) > thresholds.MAX_UNROLLED_STATEMENTS:
        return False
    inside = [stmt for stmt in statements(loop.body) if not isinstance(stmt, Comment)]
    if any(isinstance(stmt, Update) and stmt.over for stmt in inside):
        return False  # terms of one reassociable sum
    if alloc_sizes_use(loop.body, bound_symbols((loop,))):
        return False  # each iteration has an array of its own size
    return any(loop.symbol in symbols for symbols in _decidable_tests(loop, frozenset()))


def _decidable_tests(loop: For, outer: frozenset[Symbol]) -> Iterator[frozenset[Symbol]]:
    """Yield the symbols of each test inside that depends on short loops only."""
    index_symbols = outer | {loop.symbol}
    for stmt in loop.body:
        if isinstance(stmt, For) and _is_short(stmt):
            yield from _decidable_tests(stmt, index_symbols)
        elif isinstance(stmt, If):
            symbols = free_symbols(stmt.test)
            if symbols and symbols <= index_symbols and not any(reads(stmt.test)):
                yield symbols


def _unrolled_size(loop: For) -> int:
    """Return how many statements unrolling would produce."""
    inner = sum(
        _unrolled_size(stmt)
        if isinstance(stmt, For) and _is_short(stmt) else len(statements((stmt,)))
        for stmt in loop.body if not isinstance(stmt, Comment)
    )  # fmt: skip
    return len(_iteration_values(loop)) * inner
