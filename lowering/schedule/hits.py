"""Loops that keep what the last round in which a test holds has found, or the first one, and end.

    for i: if t(i): b = f(i)                   for i: if t(i): b = f(i); break
    becomes                                    becomes
    at = -1                                    at = the greatest number
    for i: if t(i): at max= i                  for i: if t(i): at min= i
    if at >= 0: i = at; b = f(i)               if at is less: i = at; b = f(i)

Needs elements that a loop uses in no other way, and values that it does not change, or finds anew
in each round. A loop that is left goes on instead: it has to do nothing else, nothing in it may
fail, and it has no more rounds than an array that it reads has elements. Where each of many points
looks for a first round, it stops there.

>>> program, _ = optimize(lowered('''
... b = -1
... for i in range(len(x)):
...     if x[i] > 3:
...         b = i
...         break
... y[0] = b
... ''', y="i64[1]", x="f32[900]"), Target("cuda"))
>>> print_loops(hits(program, facts_of(program), fresh_for(program)).kernels[0].body[2:-2])
b_at = 9223372036854775807
for i in 0..900:
    if x[i] > 3.0:
        # b = i
        b_at min= i
if b_at < 9223372036854775807:
    let i = b_at
    b = i
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ..ir.expressions import Apply, Const, Dynamic, Expr, Position, Read, reads, rebuild
from ..ir.fresh import Fresh
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import over_kernels, substitute_expr, with_bodies
from ..ir.walk import (
    binds,
    bodies,
    free_symbols,
    own_reads,
    own_writes,
    statements,
)
from .legal import is_left
from .nests import Facts, accesses_of, around, fails, nest_of
from .numbered import Numbered, numbered

LAST = 2**63 - 1
"""No round has that number."""
Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class _Hit:
    """What a list of statements in a nest keeps."""

    list: Body
    kept: Body
    stores: tuple[Store, ...]
    """The same, with values that can be found anew from the variables of the loops."""
    ends: bool
    """Whether the loop is left there."""


def hits(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program in which loops that keep what one round found look for that round."""
    own = frozenset(node.id for node in program.locals)

    def body(stmts: Iterable[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            loops, inner = nest_of(stmt)
            found = _hits_of(loops, inner, own, facts)
            order = numbered(loops) if found else None
            if order is not None and not (found[0].ends and _are_points(outer, facts)):
                return _made(found, order, inner, fresh)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(body(part, outer) for part in bodies(stmt))),)

    return over_kernels(program, lambda stmts: body(stmts, ()))


def _are_points(outer: Sequence[For], facts: Facts) -> bool:
    """Whether the rounds of some loop are done at once, of which each looks for itself."""
    return any(facts.is_free(loop, facts.private(loop)) for loop in outer)


def _hits_of(
    loops: tuple[For, ...], body: Body, own: frozenset[int], facts: Facts
) -> tuple[_Hit, ...]:
    """Return what a nest keeps: of a loop that is left there is one hit, or none."""
    if any(loop.kind != "serial" for loop in loops):
        return ()
    ends = is_left(body)
    if ends and (len(loops) > 1 or not _may_go_on(loops[0], body)):
        return ()
    found = _Finding(loops, body, own, facts.private(loops[0]))
    return tuple(hit for part in _lists(body, ends) if (hit := found.hit(part, ends)) is not None)


def _may_go_on(loop: For, body: Body) -> bool:
    """Whether a loop that is left may do its other rounds, too: nothing fails, and an array that it
    reads has as many elements."""
    halts = Check, While, Print, Alloc, Permute, Continue
    inside = statements(body)
    if sum(isinstance(stmt, Break) for stmt in inside) > 1:
        return False
    if any(isinstance(stmt, halts) for stmt in inside):
        return False
    return any(at.coefficient(loop.symbol) for _, index in accesses_of(body)
               for at in index if not isinstance(at, Dynamic))  # fmt: skip


def _lists(body: Body, ends: bool) -> Iterator[Body]:
    """Yield the lists that are done under a test; if that `ends` the loop, those that come last."""
    plain = [stmt for stmt in body if not isinstance(stmt, Comment)]
    for stmt in plain[-1:] if ends else plain:
        if isinstance(stmt, If):
            for part in bodies(stmt):
                yield part
                yield from _lists(part, ends)


class _Finding:
    """What is known of a nest, to find what it keeps."""

    def __init__(
        self, loops: tuple[For, ...], body: Body, own: frozenset[int], mine: frozenset[int]
    ) -> None:
        """`own` are temporaries, `mine` those of which each round of the loops has its own."""
        self.own, self.mine, self.fails = own, mine, fails(body)
        self.letters = frozenset(loop.symbol for loop in loops)
        inside = statements(body)
        self.bound = {symbol for stmt in inside for symbol in binds(stmt)}
        self.uses = Counter(n for s in inside for n in (*own_reads(s), *own_writes(s)))
        self.written = Counter(n for s in inside for n in own_writes(s))
        self.values: dict[Node, Expr] = {}
        for stmt in body:
            if isinstance(stmt, Store):
                self.know(stmt)
            elif not isinstance(stmt, Comment):
                break

    def know(self, store: Store) -> None:
        """Keep what a scalar is in every round, where the round finds it, and leaves it so."""
        node, value = store.access.node, self.anew(store.value)
        if node.rank or self.written[node] > 1 or node.dtype is not value.dtype:
            return
        if self.stays(value):
            self.values[node] = value

    def anew(self, value: Expr) -> Expr:
        """Return an expression with what scalars are in their place."""
        if isinstance(value, Read) and value.node in self.values:
            return self.values[value.node]
        return rebuild(value, self.anew, lambda index: index)

    def stays(self, value: Expr) -> bool:
        """Whether an expression has its value whatever the loops have done."""
        unknown = free_symbols(value) & self.bound
        return not unknown and not any(one.node in self.written for one in reads(value))

    def hit(self, part: Body, ends: bool) -> _Hit | None:
        """Return what a list keeps, None where it keeps nothing."""
        if ends != any(isinstance(stmt, Break) for stmt in part):
            return None
        rest = [stmt for stmt in part if not isinstance(stmt, Comment | Break)]
        fixed = [stmt for stmt in rest if isinstance(stmt, Store) and self.is_fixed(stmt)]
        times = Counter(one.access.node for one in fixed)
        kept = tuple(s for s in fixed if times[s.access.node] == self.uses[s.access.node])
        stores = tuple(replace(one, value=self.anew(one.value)) for one in kept)
        nodes = {one.access.node for one in kept}
        if ends:
            others = [n for n in self.written if n not in nodes and n.id not in self.mine]
            fits = len(kept) == len(rest) and not others
        else:
            fits = any(free_symbols(one.value) & self.letters for one in stores)
        return _Hit(part, kept, stores, ends) if kept and fits else None

    def is_fixed(self, store: Store) -> bool:
        """Whether a store fills the same element in each round, with what can be found later."""
        if self.fails and store.access.node.id not in self.own:
            return False
        inside = self.bound | self.letters
        fixed = not any(
            isinstance(at, Dynamic) or at.symbols() & inside for at in store.access.index
        )
        return fixed and self.stays(self.anew(store.value))


def _made(found: Sequence[_Hit], order: Numbered, body: Body, fresh: Fresh) -> Body:
    """Return a nest that looks for rounds, between what starts that and what they have found."""
    starts, ends = list[Stmt](), list[Stmt]()
    for hit in found:
        at = fresh.scalar(f"{hit.stores[0].access.node.label}_at", dtypes.int64)
        nothing, name, test = (LAST, "min", "lt") if hit.ends else (-1, "max", "gt")
        update = Update(Access(at, ()), OPS[name], Position(order.number))
        gone = {id(stmt) for stmt in hit.kept}
        rest = (s for s in hit.list if id(s) not in gone and not isinstance(s, Break))
        body = _with_list(body, hit.list, (*rest, update))
        starts.append(Store(Access(at, ()), Const(nothing, dtypes.int64)))
        is_one = Apply(OPS[test], (Read(at, ()), Const(nothing, dtypes.int64)), dtypes.bool_)
        lets, names = order.named(Read(at, ()), fresh)
        put = (replace(one, value=substitute_expr(one.value, names)) for one in hit.stores)
        ends.append(If(is_one, (*lets, *put)))
    return (*starts, *around(order.loops, body), *ends)


def _with_list(body: Body, old: Body, new: Body) -> Body:
    """Return statements with another list in the place of one in them."""
    if body is old:
        return new
    return tuple(
        with_bodies(stmt, tuple(_with_list(part, old, new) for part in bodies(stmt)))
        if isinstance(stmt, If) else stmt
        for stmt in body
    )  # fmt: skip
