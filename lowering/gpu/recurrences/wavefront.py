"""Tables whose elements need those beside and above them: front by front, as diagonals.

    for i in a..b: for j in c..d: u[i, j] = f(u[i - 1, j], u[i, j - 1])
    becomes
    for front in a + c..b + d - 1:
        for i in max(a, front - d + 1)..min(b, front - c + 1): u[i, front - i] = ...

The points of a front, of which `skew * i + j` is one number, are done at once, the fronts in their
order. Needs two loops, one directly in the other, none of whose rounds are independent, and a skew
with which no two points that use one element, where one of them writes it, come in another order,
or in one front: that is looked for in integers, see `legal`. Every point does what it did, with
the same numbers; only points that have nothing to do with each other change places, and terms of
totals that are exact in any order. What stands beside the loop inside is done for all rounds before
or behind, where it can be.

>>> program = lowered('''
... for i in range(1, 40):
...     for j in range(1, 50):
...         u[i, j] = u[i - 1, j] + u[i, j - 1]
... ''', u="i64[40, 50]")
>>> made = fronts(program, facts_of(program), fresh_for(program))
>>> print_loops(made.kernels[0].body)
for front in 2..89:
    for i in max(1, front - 49)..min(40, front):
        # u[i, j] = u[i - 1, j] + u[i, j - 1]
        u[i, -i + front] = u[i - 1, -i + front] + u[i, -i + front - 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ....base.dataclass import dataclass
from ...analysis.accesses import accesses
from ...analysis.accumulators import is_apart, only_written
from ...analysis.dependence import is_left, overtakes
from ...analysis.parallel_band import Facts, around, nest_of, normal, trips, with_loops, with_value
from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import ranges
from ...ir.assignments import Alloc, Permute, Print
from ...ir.expressions import Read
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Range, Symbol, var
from ...ir.loops import Check, For, Program, Stmt, Update
from ...ir.rewrite import over_kernels
from ...ir.walk import binds, parts, statements
from ...transform.skew import is_linear, skewed
from ...transform.split_index_set import separated, separated_within
from ..thread_block import is_shared

SKEWS = (0, 1, 2, 3)
"""By how many columns each row of a front may be behind the one before it."""
FEWEST = 32
"""Loops of fewer rounds are not worth it."""


def fronts(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose tables are done front by front, where they have no other order."""
    work = _Fronts(facts, fresh)
    return over_kernels(program, lambda body: with_loops(body, facts, work.made))


@dataclass(frozen=True, slots=True)
class _Fronts:
    """The work on one program."""

    facts: Facts
    fresh: Fresh

    def made(self, loop: For, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return what takes the place of a loop by fronts, nothing where it stays."""
        return self.nest(loop, outer) or self.apart(loop, outer)

    def apart(self, loop: For, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return the parts of a loop, some of them by fronts; none where there are no such."""
        if is_shared(loop, self.facts):
            return ()
        whole = separated(loop, self.facts) or separated_within(loop, self.facts) or ()
        found = [self.nest(part, outer) for part in whole]
        if not any(found):
            return ()
        return tuple(s for made, part in zip(found, whole, strict=True) for s in made or (part,))

    def nest(self, stmt: For, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return a nest of which two loops are fronts now; nothing where it has no such."""
        if only_written(stmt, self.facts.private(stmt)):
            return ()
        loops, body = nest_of(stmt)
        for at in candidates(loops, body, self.facts):
            made = self.turned(loops[at], loops[at + 1], (*outer, *loops[:at]))
            if made is not None:
                nest = around(loops[:at], (made,))
                self.facts.tell(nest, self.facts.only_in(stmt))
                return nest
        return ()

    def turned(self, whole: For, inner: For, outer: tuple[For, ...]) -> For | None:
        """Return the fronts of two loops, None where no skew is legal."""
        own, known = self.facts.private(inner), ranges(outer)
        rows, columns = self.counted(whole, inner)
        if not is_linear(rows, columns):
            return None
        both = replace(rows, body=(columns,))
        for skew in SKEWS:
            front = var(columns.symbol) + var(rows.symbol) * skew
            if is_in_order(both, front, own, known):
                return skewed(rows, columns, skew, self.fresh.symbol("front"))
        return None

    def counted(self, whole: For, inner: For) -> tuple[For, For]:
        """Return two loops in steps of one."""
        if whole.step != 1:
            old = whole.symbol
            whole, value = normal(whole, self.fresh.symbol(old.name))
            (made,) = with_value((inner,), old, value)
            assert isinstance(made, For), "a loop stays one"
            inner = made
        if inner.step != 1:
            old = inner.symbol
            inner, value = normal(inner, self.fresh.symbol(old.name))
            inner = replace(inner, body=with_value(inner.body, old, value))
        return whole, inner


def candidates(loops: Sequence[For], body: tuple[Stmt, ...], facts: Facts) -> list[int]:
    """Return the places of loops that may be fronts together with the one in each, the best first:
    those that the elements follow, then those with many rounds."""
    found: list[tuple[bool, int, int]] = []
    followed = [_followed(stmt) for stmt in statements(body)]
    for at, (whole, inner) in enumerate(zip(loops, loops[1:], strict=False)):
        if any(is_shared(loop, facts) for loop in (loops[0], whole, inner)):
            break
        rounds = [2**40 if (n := trips(loop)) is None else n for loop in (whole, inner)]
        if min(rounds) >= FEWEST and may_turn(whole) and may_turn(inner):
            misses = not any({whole.symbol, inner.symbol} <= one for one in followed)
            found.append((misses, -min(rounds), at))
    return [at for _, _, at in sorted(found)]


def _followed(stmt: Stmt) -> frozenset[Symbol]:
    """Return the symbols of the elements that a statement writes."""
    reads = (Read(access.node, access.index) for access in parts(stmt).targets)
    return frozenset[Symbol]().union(*map(symbols_of, reads))


def may_turn(loop: For) -> bool:
    """Whether nothing in a loop may fail, end it, or has to be the host's."""
    halts = Check, Print, Permute, Alloc
    inside = statements(loop.body)
    return loop.kind == "serial" and not (
        is_left(loop.body) or any(isinstance(stmt, halts) for stmt in inside)
    )


def is_in_order(loop: For, front: Affine, own: frozenset[int], outer: tuple[Range, ...]) -> bool:
    """Whether of two points that use an element, which one of them writes, the later one is of a
    later front; each point has its `own` temporaries."""
    open_ = own | totals(loop)
    for number, sites in accesses((loop,)).sites.items():
        if number in open_ or not any(site.writes for site in sites):
            continue
        if not sites[0].node.rank:
            return False
        for one, other in product(sites, repeat=2):
            if (one.writes or other.writes) and overtakes(loop, one, other, outer, (front, front)):
                return False
    return True


def totals(loop: For) -> frozenset[int]:
    """Return what a loop only accumulates into, always one element each, in an order that is open:
    threads share that out, see `tree`."""
    inside = statements(loop.body)
    bound = {loop.symbol, *(symbol for stmt in inside for symbol in binds(stmt))}
    out = set()
    for number, sites in accesses((loop,)).sites.items():
        node, index = sites[0].node, sites[0].index
        if any(site.kind != "update" or site.index != index for site in sites) or index is None:
            continue
        updates = [s for s in inside if isinstance(s, Update) and s.access.node == node]
        ops = {one.op if one.pair is None else None for one in updates}
        op = ops.pop() if len(ops) == 1 else None
        fixed = all(isinstance(at, Affine) and not at.symbols() & bound for at in index)
        if op is not None and fixed and is_apart(op, node.dtype, exact=True):
            out.add(number)
    return frozenset(out)
