"""Rounds that need what later ones change, as it was: all find what is new, then put it there.

    for i in 0..n: x[i] = f(x[i + d])
    becomes
    for i in 0..n: new[i] = f(x[i + d])
    for i in 0..n: x[i] = new[i]

Needs rounds that do nothing but to change one element each, none of which a later round reads or
changes. Where the distance `d` is data, it is looked at before: where it is not as needed, rounds
are done in their order.

>>> program = lowered('''
... for i in range(899):
...     x[i] = x[i + 1] * 2
... ''', x="f32[900]")
>>> print_loops(beforehand(program, facts_of(program), fresh_for(program)).kernels[0].body)
for i in 0..899:
    # x[i] = x[i + 1] * 2
    x_new[i] = x[i + 1] * 2.0
for i in 0..899:
    x[i] = x_new[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..analysis.accesses import Site, accesses
from ..analysis.accumulators import sums
from ..analysis.conjunctions import every
from ..analysis.dependence import overtakes
from ..analysis.involution import round_of
from ..analysis.parallel_band import Facts, around, nest_of
from ..analysis.predicate_facts import is_never
from ..analysis.subscripts import is_in_range, ranges
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, substitute, var
from ..ir.loops import Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ..ir.ops import OPS
from ..ir.rewrite import map_statements, over_kernels, rename, with_bodies
from ..ir.walk import binds, bodies, own_writes, statements, writes
from ..thresholds import EXPANDED_BYTES

Body = tuple[Stmt, ...]


def beforehand(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose rounds find what is new before any of it is put in its place."""

    def body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            found = _change(stmt, outer, facts, fresh)
            if found is not None:
                return found.made(fresh)
            outer = (*outer, stmt)
            if facts.is_free(stmt, facts.private(stmt), ranges(outer[:-1])):
                return (stmt,)
        return (with_bodies(stmt, tuple(body(part, outer) for part in bodies(stmt))),)

    return over_kernels(program, lambda stmts: body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Change:
    """What all rounds of a nest do: they change one element each."""

    loops: tuple[For, ...]
    body: Body
    change: Store | Update
    tests: tuple[Expr, ...]
    """What has to hold, as far as that is not known."""

    def made(self, fresh: Fresh) -> Body:
        """Return what finds the new elements, and what puts them into their places."""
        node, index = self.change.access.node, self.change.access.index
        new = fresh.array(f"{node.label}_new", node.shape, node.dtype)
        here, old = Access(new, index), Read(node, index)
        put = Store(here, new_value(self.change), self.change.span)

        def found(stmt: Stmt) -> Body:
            return (put,) if stmt is self.change else (stmt,)

        body = map_statements(self.body, found)
        if not any(stmt is self.change for stmt in self.body):
            body = (Store(here, old, self.change.span), *body)
        if self.tests:
            copies = {n.id: fresh.like(n) for n in writes(body) if n != new}
            names = {s: fresh.symbol(s.name) for one in statements(body) for s in binds(one)}
            body = rename(body, names, copies)
        back = Store(self.change.access, Read(new, index), self.change.span)
        made = (*self.nest(body, fresh), *self.nest((back,), fresh))
        if not self.tests:
            return made
        return (If(every(self.tests), made, around(self.loops, self.body)),)

    def nest(self, body: Body, fresh: Fresh) -> Body:
        """Return the nest around another body, with names of its own."""
        names = {loop.symbol: fresh.symbol(loop.symbol.name) for loop in self.loops}
        values = {old: var(symbol) for old, symbol in names.items()}
        loops = [
            replace(loop, lo=substitute(loop.lo, values), hi=substitute(loop.hi, values))
            for loop in self.loops
        ]
        return rename(around(loops, body), names, {})


def new_value(change: Store | Update) -> Expr:
    """Return what a statement puts into its element."""
    if isinstance(change, Store):
        return change.value
    old = Read(change.access.node, change.access.index)
    return Apply(change.op, (old, change.value), change.access.node.dtype)


def _change(loop: For, outer: tuple[For, ...], facts: Facts, fresh: Fresh) -> _Change | None:
    """Return what the rounds of a nest change, None where they need each other, or do not."""
    loops, body = nest_of(loop)
    own = facts.private(loops[-1])
    inside = statements(body)
    effects = [one for one in inside if any(node.id not in own for node in own_writes(one))]
    halts = Print, Permute, Alloc, Break, Continue, While, Fill
    if len(effects) != 1 or any(isinstance(stmt, halts) for stmt in inside):
        return None
    (change,) = effects
    if not isinstance(change, Store | Update) or any(one.kind != "serial" for one in loops):
        return None
    node, index = change.access.node, change.access.index
    paired = isinstance(change, Update) and change.pair is not None
    if not node.rank or paired or node.bytes >= EXPANDED_BYTES or not fresh.fits(node.shape):
        return None
    bound = {symbol for stmt in inside for symbol in binds(stmt)}
    if any(isinstance(at, Dynamic) or at.symbols() & bound for at in index):
        return None
    known = ranges((*outer, *loops))
    in_each = any(stmt is change for stmt in body)
    if not _is_last(body, change) or not (in_each or is_in_range(node, index, known)):
        return None
    if facts.is_free(loop, facts.private(loop), ranges(outer)) or sums(loop, own, facts):
        return None
    tests = _tests(loops, change, outer)
    return None if tests is None else _Change(loops, body, change, tests)


def _is_last(body: Body, change: Stmt) -> bool:
    """Whether nothing is done in a round behind a statement, which is done at most once."""
    plain = [stmt for stmt in body if not isinstance(stmt, Comment)]
    last = plain[-1] if plain else None
    if isinstance(last, If):
        return _is_last(last.then, change) or _is_last(last.other, change)
    return last is change


def _tests(
    loops: tuple[For, ...], change: Store | Update, outer: tuple[For, ...]
) -> tuple[Expr, ...] | None:
    """Return what has to hold for no round to need what an earlier one has changed, None where that
    cannot be said."""
    node, tests = change.access.node, dict[Expr, None]()
    for at, loop in enumerate(loops):
        known = ranges((*outer, *loops[:at]))
        sites = accesses((loop,)).of(node)
        writing = [site for site in sites if site.writes]
        if any(overtakes(loop, one, other, known) for one in writing for other in writing):
            return None
        for site in sites:
            if not site.writes and any(overtakes(loop, one, site, known) for one in writing):
                test = _distance(loop, site, writing[0]) if len(loops) == 1 else None
                if test is None or is_never(test, {}, ranges((*outer, loop))):
                    return None
                tests[test] = None
    return tuple(tests)


def _distance(loop: For, site: Site, change: Site) -> Expr | None:
    """Return whether a round reads an element of its own, or of a later round, None where they are
    not the same number of rounds apart."""
    here = round_of(loop)
    apart: list[Expr] = []
    for at, own in zip(site.index or (), change.index or (), strict=True):
        if at == own:
            continue
        place = here.known(at.value if isinstance(at, Dynamic) else Position(at))
        by = _beyond(place, own, loop.symbol)
        if by is None or not here.stays(by):
            return None
        apart.append(by)
    if len(apart) != 1:
        return None
    name = "ge" if loop.step > 0 else "le"
    return Apply(OPS[name], (apart[0], Const(0, dtypes.int64)), dtypes.bool_)


def _beyond(place: Expr, own: Index, symbol: Symbol) -> Expr | None:
    """Return how far a place is behind one that a round moves on by one, None where it is not
    known."""
    if not isinstance(own, Affine) or own.coefficient(symbol) != 1:
        return None
    here = Position(own)
    match place:
        case Position(at):
            return Position(at - own)
        case Apply(op, (one, other), dtype) if op.name == "add" and here in (one, other):
            return other if one == here else one
        case Apply(op, (one, other), dtype) if op.name == "sub" and one == here:
            return Apply(OPS["neg"], (other,), dtype)
        case _:
            return None
