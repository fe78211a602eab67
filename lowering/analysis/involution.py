"""Rounds that come in pairs, of which one does what both have to do: no two use one element.

    for i: j = i ^ k; if j > i: exchange x[i] and x[j]           the partner of j is i
    for i: if i & k == 0: x[i], x[i + k] = ...                   the round i + k does nothing

Exclusive or is its own inverse, so that each element has one partner; where all that a round does
to an array is done under a test that the round of the partner fails, rounds are independent. It
changes nothing.

>>> program = lowered('''
... for i in range(8):
...     j = i ^ k
...     if j > i and x[i] > x[j]:
...         t = x[i]
...         x[i] = x[j]
...         x[j] = t
... ''', x="f32[8]", k="i64")
>>> loop = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
>>> from plusequals.lowering.analysis.accesses import accesses
>>> are_partners(loop, accesses((loop,)).of(program.parameters[0].node))
True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...base.dataclass import dataclass
from ..ir.assignments import Let
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Read, reads, rebuild
from ..ir.indexing import Affine, var
from ..ir.loops import For, If, Stmt, Store
from ..ir.walk import binds, bodies, free_symbols, own_reads, own_writes, statements
from .accesses import Site

Body = tuple[Stmt, ...]
JOINED = ("add", "bitor", "bitxor")
"""How a number and one that has no bit in common with it become one: all the same."""


@dataclass(frozen=True, slots=True)
class Round:
    """What is known of the numbers of a round."""

    loop: For
    values: dict[int, Expr]
    """What scalars are, that are filled once, before all that reads them: then."""
    names: dict[Affine, Expr]
    """What symbols are that are bound once."""

    def known(self, expr: Expr) -> Expr:
        """Return an expression of the loop's variable and of what the loop does not change, as far
        as it is one."""
        match expr:
            case Read(node, ()) if node.id in self.values:
                return self.known(self.values[node.id])
            case Position(index) if index in self.names:
                return self.known(self.names[index])
            case _:
                return rebuild(expr, self.known, lambda index: index)

    def stays(self, expr: Expr) -> bool:
        """Whether an expression is the same in all rounds."""
        inside = statements((self.loop,))
        bound = {symbol for stmt in inside for symbol in binds(stmt)}
        written = {node for stmt in inside for node in own_writes(stmt)}
        return not free_symbols(expr) & bound and not any(r.node in written for r in reads(expr))

    def partner(self, index: Index, names: Sequence[str]) -> Expr | None:
        """Return what a place is joined with to be another one; None where it is not."""
        expr = self.known(index.value if isinstance(index, Dynamic) else Position(index))
        here = Position(var(self.loop.symbol))
        match expr:
            case Apply(op, (one, other)) if op.name in names and here in (one, other):
                by = other if one == here else one
            case Position(at) if "add" in names and at.coefficient(self.loop.symbol) == 1:
                by = Position(at - var(self.loop.symbol))
            case _:
                return None
        return by if self.stays(by) else None


def are_partners(loop: For, sites: Sequence[Site]) -> bool:
    """Whether sites that use a node do so in one round of each pair, whose elements they are."""
    here = round_of(loop)
    rank = sites[0].node.rank
    indices = [site.index for site in sites if site.index is not None]
    if len(indices) < len(sites):
        return False
    tests = [[here.known(test) for test in site.tests] for site in sites]
    at = Position(var(loop.symbol))
    for axis in range(rank):
        places = {index[axis] for index in indices} - {var(loop.symbol)}
        by = [here.partner(place, ("bitxor",)) for place in places]
        if by and by[0] is not None and by == by[:1] * len(by):
            for above in (True, False):
                if all(_asks(one, at, by[0], above) for one in tests):
                    return True
        by = [here.partner(place, JOINED) for place in places]
        if by and by[0] is not None and by == by[:1] * len(by):
            if all(_has_none(one, at, by[0]) for one in tests):
                return True
    return False


def round_of(loop: For) -> Round:
    """Return what is known of the numbers of a round."""
    values = dict(_fixed(loop.body, Counter(_used(loop.body)), loop.body))
    lets = [stmt for stmt in statements(loop.body) if isinstance(stmt, Let)]
    bound = [symbol for stmt in statements(loop.body) for symbol in binds(stmt)]
    names = {var(one.symbol): one.value for one in lets if bound.count(one.symbol) == 1}
    return Round(loop, values, names)


def _fixed(part: Body, total: Counter[int], whole: Body) -> Iterator[tuple[int, Expr]]:
    """Yield the scalars that are filled once in a round, before all that reads them, and with
    what."""
    written = Counter(node.id for stmt in statements(whole) for node in own_writes(stmt))
    for at, stmt in enumerate(part):
        if isinstance(stmt, Store) and not stmt.access.index:
            node = stmt.access.node
            behind = Counter(_used(part[at + 1 :]))[node.id] == total[node.id]
            if behind and written[node.id] == 1 and node.dtype is stmt.value.dtype:
                yield node.id, stmt.value
        elif isinstance(stmt, If | For):
            for one in bodies(stmt):
                yield from _fixed(one, total, whole)


def _used(body: Body) -> list[int]:
    return [node.id for one in statements(body) for node in own_reads(one)]


def _asks(tests: Sequence[Expr], here: Expr, by: Expr, above: bool) -> bool:
    """Whether one of the tests asks for the partner to be behind a round, or before it."""
    for test in tests:
        match test:
            case Apply(op, (one, other)) if op.name in ("gt", "ge", "lt", "le"):
                behind, before = (one, other) if op.name in ("gt", "ge") else (other, one)
                partner, own = (behind, before) if above else (before, behind)
                if own == here and _is_joined(partner, here, by, ("bitxor",)):
                    return True
            case _:
                pass
    return False


def _has_none(tests: Sequence[Expr], here: Expr, by: Expr) -> bool:
    """Whether one of the tests asks for a round to have no bit of a number."""
    for test in tests:
        match test:
            case Apply(op, (bits, Const(0))) if op.name == "eq":
                if _is_joined(bits, here, by, ("bitand",)):
                    return True
            case _:
                pass
    return False


def _is_joined(expr: Expr, here: Expr, by: Expr, names: Sequence[str]) -> bool:
    """Whether an expression is a number joined with another."""
    return isinstance(expr, Apply) and expr.op.name in names and (
        expr.args in ((here, by), (by, here))
    )  # fmt: skip
