"""Loops that keep what the last round in which a test holds has found, or the first one.

    for i: if t(i): b = f(i)                   for i: if b < 0 and t(i): b = i
    becomes                                    becomes
    at = -1                                    at = the greatest number
    for i: if t(i): at max= i                  for i: if t(i): at min= i
    if at >= 0: i = at; b = f(i)               if b < 0: if at is less: i = at; b = i

Needs elements that a loop uses in no other way, and values that it does not change, or finds anew
in each round. It is the first round where the test asks for what is kept, too, and does not hold
any more behind it.

>>> program, _ = optimize(lowered('''
... b = -1
... for i in range(len(x)):
...     if b < 0 and x[i] > 3:
...         b = i
... y[0] = b
... ''', y="i64[1]", x="f32[900]"), Target("cuda"))
>>> print_loops(hits(program, facts_of(program), fresh_for(program)).kernels[0].body[2:-2])
b_at = 9223372036854775807
for i in 0..900:
    if x[i] > 3.0:
        # b = i
        b_at min= i
if b < 0:
    if b_at < 9223372036854775807:
        let i = b_at
        b = i
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.conjunctions import every, parts_of
from ...analysis.dependence import is_left
from ...analysis.linear_iteration import Numbered, numbered
from ...analysis.parallel_band import Facts, around, fails, nest_of
from ...analysis.predicate_facts import after, is_never
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.algebra import TRUE
from ...ir.assignments import Access
from ...ir.expressions import Apply, Const, Dynamic, Expr, Position, Read, reads, rebuild
from ...ir.fresh import Fresh
from ...ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import over_kernels, substitute_expr, with_bodies
from ...ir.walk import binds, bodies, free_symbols, own_reads, own_writes, statements
from .find_first import LAST

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class _List:
    """A list in a nest that is done under tests, and these, outermost first."""

    body: Body
    tests: tuple[If, ...]


@dataclass(frozen=True, slots=True)
class _Hit:
    """What a list of statements in a nest keeps."""

    list: Body
    kept: Body
    stores: tuple[Store, ...]
    """The same, with values that can be found anew from the variables of the loops."""
    open: tuple[Expr, ...] = ()
    """What holds as long as nothing was found, where the first round counts."""
    asks: tuple[tuple[If, Expr], ...] = ()
    """What is asked instead in branches around that ask for it, too."""


def hits(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program in which loops that keep what one round found look for that round."""
    own = frozenset(node.id for node in program.locals)

    def body(stmts: Iterable[Stmt]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt))

    def statement(stmt: Stmt) -> Body:
        if isinstance(stmt, For):
            loops, inner = nest_of(stmt)
            found = _hits_of(loops, inner, own)
            order = numbered(loops) if found else None
            if order is not None:
                return _made(found, order, inner, fresh)
        return (with_bodies(stmt, tuple(map(body, bodies(stmt)))),)

    return over_kernels(program, body)


def _hits_of(loops: tuple[For, ...], body: Body, own: frozenset[int]) -> tuple[_Hit, ...]:
    """Return what a nest keeps."""
    if any(loop.kind != "serial" for loop in loops) or is_left(body):
        return ()
    found = _Finding(loops, body, own)
    made = (hit for part in _lists(body, ()) if (hit := found.hit(part)) is not None)
    return tuple({hit.list: hit for hit in made}.values())


def _lists(body: Body, tests: tuple[If, ...]) -> Iterator[_List]:
    """Yield the lists that are done under a test."""
    for stmt in body:
        if isinstance(stmt, If):
            for part in bodies(stmt):
                yield _List(part, (*tests, stmt))
                yield from _lists(part, (*tests, stmt))


class _Finding:
    """What is known of a nest, to find what it keeps."""

    def __init__(self, loops: tuple[For, ...], body: Body, own: frozenset[int]) -> None:
        """`own` are temporaries."""
        self.own, self.fails, self.known = own, fails(body), ranges(loops)
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

    def hit(self, part: _List) -> _Hit | None:
        """Return what a list keeps, None where it keeps nothing."""
        fixed = [one for one in part.body if isinstance(one, Store) and self.is_fixed(one)]
        times = Counter(one.access.node for one in fixed)
        asked = Counter(n for test in part.tests for n in own_reads(test) if not n.rank)
        kept = tuple(
            one for one in fixed
            if times[one.access.node] + asked[one.access.node] == self.uses[one.access.node]
        )  # fmt: skip
        stores = tuple(replace(one, value=self.anew(one.value)) for one in kept)
        if not any(asked[one.access.node] for one in kept):
            fits = any(free_symbols(one.value) & self.letters for one in stores)
            return _Hit(part.body, kept, stores) if fits else None
        return self.first(part, kept, stores)

    def first(self, part: _List, kept: Body, stores: tuple[Store, ...]) -> _Hit | None:
        """Return what a list keeps once, None where what is asked may hold again behind it."""
        if len(kept) < sum(not isinstance(stmt, Comment) for stmt in part.body):
            return None
        nodes = {one.access.node for one in stores}
        open_, asks = list[Expr](), list[tuple[If, Expr]]()
        inside = part.body
        for branch in reversed(part.tests):
            tests = parts_of(branch.test)
            theirs = [one for one in tests if any(read.node in nodes for read in reads(one))]
            if theirs and (branch.other or inside is not branch.then):
                return None
            if not all(self.stays_open(one, nodes) for one in theirs):
                return None
            rest = [one for one in tests if one not in theirs]
            if theirs:
                asks.append((branch, every(rest) if rest else TRUE))
                open_ = [*theirs, *open_]
                if not self.does_nothing_else(branch, part.body):
                    return None
            inside = self.around(branch, part.tests)
        values = after(stores)
        if not any(is_never(one, values, self.known) for one in open_):
            return None
        return _Hit(part.body, kept, stores, tuple(open_), tuple(asks))

    def around(self, branch: If, tests: tuple[If, ...]) -> Body:
        """Return the list of another branch, or of the nest, in which a branch stands."""
        at = next(n for n, one in enumerate(tests) if one is branch)
        if not at:
            return ()
        lists = bodies(tests[at - 1])
        return next(one for one in lists if any(stmt is branch for stmt in one))

    def stays_open(self, test: Expr, nodes: set[Node]) -> bool:
        """Whether a test asks for nothing but what is kept, and what the loops do not change."""
        others = [read.node for read in reads(test) if read.node not in nodes]
        return not free_symbols(test) and not any(node in self.written for node in others)

    def does_nothing_else(self, branch: If, part: Body) -> bool:
        """Whether nothing but a list is done under a test."""
        rest = branch.then
        while rest is not part:
            plain = [stmt for stmt in rest if not isinstance(stmt, Comment)]
            if len(plain) != 1 or not isinstance(plain[0], If) or plain[0].other:
                return False
            rest = plain[0].then
        return True

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
        nothing, name, test = (LAST, "min", "lt") if hit.open else (-1, "max", "gt")
        update = Update(Access(at, ()), OPS[name], Position(order.number))
        gone = {id(stmt) for stmt in hit.kept}
        rest = (stmt for stmt in hit.list if id(stmt) not in gone)
        body = _with_list(body, hit, (*rest, update))
        starts.append(Store(Access(at, ()), Const(nothing, dtypes.int64)))
        is_one = Apply(OPS[test], (Read(at, ()), Const(nothing, dtypes.int64)), dtypes.bool_)
        lets, names = order.named(Read(at, ()), fresh)
        put = (replace(one, value=substitute_expr(one.value, names)) for one in hit.stores)
        end = If(is_one, (*lets, *put))
        ends.append(If(every(hit.open), (end,)) if hit.open else end)
    return (*starts, *around(order.loops, body), *ends)


def _with_list(body: Body, hit: _Hit, new: Body) -> Body:
    """Return statements with another list in the place of one in them."""
    if body is hit.list:
        return new
    out: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, If):
            out.append(stmt)
            continue
        made = with_bodies(stmt, tuple(_with_list(part, hit, new) for part in bodies(stmt)))
        test = next((one for branch, one in hit.asks if branch is stmt), stmt.test)
        out += made.then if test == TRUE else (replace(made, test=test),)
    return tuple(out)
