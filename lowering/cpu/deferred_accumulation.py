"""Accumulations put off until after a loop, whose rounds then may be shared among threads.

Changes: where nothing but accumulations stands between the rounds of a loop, each round keeps what
it would add in an array of its own, and a loop behind it adds all that in the order of the rounds:

    for i: ...; total += f(i)    becomes    for i: ...; kept[i] = f(i)
                                            for i: total += kept[i]

A loop of so many rounds that they would keep too much is cut into several. `put_off` does it before
`lanes`, where that can put the terms together as well behind the loop as in it: it then needs no
places for lanes there, which rounds would share.

Precondition: iterations that are long beside what they add, several of them in `ROOM` bytes for
each thread, and loops inside that threads do not share as they are, at no cost. Postcondition: not
a bit changes: what is added, and in which order, is what it was.

>>> from plusequals.lowering.target import Target
>>> show(lambda program: defer(program, Target(threads=2, parallel_from=10_000)), '''
... s = 0.0
... for i in range(200):
...     s += max(x[i, j])
... return s
... ''', x="f32[200, 300]")
s = 0.0
for i in 0..200:
    largest = -inf
    for j in 0..300:
        largest max= x[i, j]
    s_kept[i] = largest
for i in 0..200:
    s = s + s_kept[i]
result = s
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, prod

from ...base.dataclass import dataclass
from ..analysis.accesses import accesses
from ..analysis.cost import SCALAR, rounds_of, total_of, work_of
from ..analysis.dependence import ends_early, independent, private
from ..analysis.parallel_band import normal
from ..analysis.reductions import is_extreme, is_regrouped
from ..analysis.subscripts import ranges
from ..ir.assignments import Access, Let
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Expr, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, minimum, var
from ..ir.loops import For, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_statements, rename
from ..ir.rewrite import substitute as substituted
from ..ir.walk import statements
from ..target import Target
from ..transform.outermost import Outermost
from .parallelize import is_worth

Body = tuple[Stmt, ...]
SHARE = 16
"""A round has so many times the work of adding the elements that it keeps, at least."""
ROOM = 1 << 18
"""How many bytes the rounds of a loop keep at most."""
EACH = 2
"""So many iterations that keep something at a time each thread has at least."""
UNKNOWN = 256
"""So many rounds keep something at a time where their number is not known."""


class Later(Reason):
    """Why accumulations are put off."""

    THREADS = "nothing else keeps the rounds of its loop from being shared among threads"


def defer(program: Program, target: Target) -> Program:
    """Return the program with accumulations put off."""
    return deferred(program, target).program


def deferred(program: Program, target: Target) -> Decided:
    """Return the program with accumulations put off, and which these are."""
    if target.threads < 2:
        return Decided(program, ())
    return _Work.on(program, target)


def put_off(program: Program, target: Target) -> Program:
    """Return the program with sums of whole loops put off whose order is open."""
    return sums_put_off(program, target).program


def sums_put_off(program: Program, target: Target) -> Decided:
    """Return the program with sums of whole loops put off, and which these are.

    It is the same for any number of threads.
    """
    return _Whole.on(program, target)


@dataclass(frozen=True, slots=True)
class _Sum:
    """An accumulation of which each round of a loop keeps what it would add."""

    stmt: Store | Update
    value: Expr
    """What it adds."""
    path: tuple[For, ...]
    """The loops inside of that one that are around it, of known numbers of rounds."""

    @property
    def shape(self) -> tuple[int, ...]:
        """What a round keeps."""
        return tuple((loop.hi - loop.lo).offset for loop in self.path)

    @property
    def size(self) -> int:
        """How many elements a round keeps."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes they have."""
        return self.size * self.value.dtype.itemsize

    @property
    def is_of_lanes(self) -> bool:
        """Whether each lane of a vector is added to its own element."""
        if [loop.kind for loop in self.path] != ["vector"]:
            return False
        (lane,) = self.path
        return lane.lo == const(0) and self.stmt.access.index == (var(lane.symbol),)

    @property
    def node(self) -> Node:
        """What it adds to."""
        return self.stmt.access.node

    def symbols(self) -> frozenset[Symbol]:
        """Return what its place, and the loops around it, depend on."""
        index = (at for at in self.stmt.access.index if isinstance(at, Affine))
        ends = (end for loop in self.path for end in (loop.lo, loop.hi))
        return frozenset(symbol for one in (*index, *ends) for symbol in one.symbols())

    def added(self, access: Access, value: Expr) -> Store | Update:
        """Return the accumulation of a value in an element."""
        if isinstance(self.stmt, Update):
            return replace(self.stmt, access=access, value=value)
        assert isinstance(self.stmt.value, Apply)
        args = (value if arg == self.value else Read(access.node, access.index)
                for arg in self.stmt.value.args)  # fmt: skip
        return Store(access, replace(self.stmt.value, args=tuple(args)), self.stmt.span)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop without its accumulations and one that does these; the loop itself where
        it may be shared as it is; None where loops inside of it may."""
        if loop.kind != "serial" or not is_worth(loop, self.target.parallel_from):
            return None
        if not any(map(self.may, statements(loop.body))):
            return (loop,)  # before asking what takes longer
        mine = private(loop, self.only()[id(loop)])
        if independent(loop, mine, self.own, ranges(outer)) is None:
            return (loop,)
        before = len(self.fresh.nodes)
        found = self.sums(loop, mine)
        if not self.is_gain(loop, found, outer):
            return None
        made = _Deferral.of(self.fresh, loop, found)
        has_room = made.at_a_time is None or made.at_a_time >= EACH * self.target.threads
        if not has_room or not self.is_legal(made, mine, outer):
            del self.fresh.nodes[before:]
            return None
        for one in found:
            name, span = loop.symbol.name, one.stmt.span
            decision = Decision("deferred", Later.THREADS, one.node, span=span, variable=name)
            self.decisions.append(decision)
        return made.nests()

    def may(self, stmt: Stmt) -> bool:
        """Whether a statement may be an accumulation that some loop around it keeps."""
        if not isinstance(stmt, Store | Update) or stmt.access.node.id not in self.own:
            return False
        return _added(stmt) is not None

    def is_gain(self, loop: For, found: list[_Sum], outer: tuple[For, ...]) -> bool:
        """Whether it is a gain that iterations of a loop keep what they add: not where these are
        arrays, and half of the work is in loops inside that threads share as they are."""
        work = work_of(loop).constant
        if work is None or not any(one.path for one in found):
            return bool(found)
        return 2 * self.shared(loop.body, (*outer, loop)) < work

    def shared(self, body: Body, outer: tuple[For, ...]) -> int:
        """Return how much of the work of statements is in loops that threads share as they are."""
        total = 0
        for stmt in body:
            if not isinstance(stmt, For) or stmt.kind != "serial":
                continue
            if is_worth(stmt, self.target.parallel_from) and self.is_free((stmt,), outer):
                total += total_of(stmt).constant or 0
            else:
                total += (rounds_of(stmt).constant or 0) * self.shared(stmt.body, (*outer, stmt))
        return total

    def is_legal(self, made: _Deferral, mine: frozenset[int], outer: tuple[For, ...]) -> bool:
        """Whether the rounds of a loop are independent now; `mine` are those of which each has its
        own."""
        own = self.own | {node.id for node in made.kept.values()}
        return independent(made.first(), mine, own, ranges((*outer, *made.pieces))) is None

    def sums(self, loop: For, mine: frozenset[int]) -> list[_Sum]:
        """Return the accumulations of which a loop may keep what they add; none if that is too much
        beside what else it does."""
        sites, work = accesses((loop,)), work_of(loop).constant
        data = {stmt.symbol for stmt in statements(loop.body) if isinstance(stmt, Let)}
        found = [
            one for one in _sums(loop.body, ())
            if one.node.id in self.own - mine and not one.symbols() & data
            and len(sites.of(one.node)) == (1 if isinstance(one.stmt, Update) else 2)
        ]  # fmt: skip
        later = sum(one.size * (1 if one.is_of_lanes else SCALAR) for one in found)
        return found if work is not None and work >= SHARE * later else []


class _Whole(_Work):
    """The work on one program, where sums know where their terms stand."""

    __slots__ = ()

    def may(self, stmt: Stmt) -> bool:
        """Whether a statement may be an accumulation that some loop around it keeps."""
        return isinstance(stmt, Update) and bool(stmt.over) and super().may(stmt)

    def sums(self, loop: For, mine: frozenset[int]) -> list[_Sum]:
        """Return the accumulations of a loop if all of them add one term in each of its rounds, and
        all that they add may be kept."""
        found, rounds = super().sums(loop, mine), (loop.hi - loop.lo).constant
        open_ = all(
            isinstance(one.stmt, Update) and not one.path and is_regrouped(one.stmt)
            and not is_extreme(one.stmt) and one.stmt.over[-1:] == (var(loop.symbol) - loop.lo,)
            for one in found
        )  # fmt: skip
        fits = rounds is not None and rounds * sum(one.bytes for one in found) <= ROOM
        return found if open_ and fits and loop.step == 1 else []


def _sums(body: Body, path: tuple[For, ...]) -> Iterator[_Sum]:
    """Yield the accumulations that every iteration reaches, in loops of static trip counts."""
    if ends_early(body):
        return
    for stmt in body:
        if isinstance(stmt, For):
            rounds = (stmt.hi - stmt.lo).constant
            if stmt.step == 1 and rounds is not None and rounds > 0:
                yield from _sums(stmt.body, (*path, stmt))
        elif isinstance(stmt, Store | Update):
            value = _added(stmt)
            if value is not None and all(isinstance(at, Affine) for at in stmt.access.index):
                yield _Sum(stmt, value, path)


def _added(stmt: Stmt) -> Expr | None:
    """Return what a statement adds to an element; None where it does something else."""
    match stmt:
        case Update(value=value, pair=None):
            return value
        case Store(access, Apply(_, (one, other), _)):
            old = Read(access.node, access.index)
            return other if one == old else one if other == old else None
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Deferral:
    """Makes the two loops."""

    fresh: Fresh
    loop: For
    """It counts its rounds from zero."""
    sums: tuple[_Sum, ...]
    kept: Mapping[int, Node]
    """What rounds keep, by the id of what it is for."""
    pieces: tuple[For, ...]
    """The loop over pieces of its rounds, where it is cut."""

    @classmethod
    def of(cls, fresh: Fresh, loop: For, sums: list[_Sum]) -> _Deferral:
        """Return what makes them, with the arrays that it needs."""
        wanted = {one.node.id for one in sums}
        plain, value = normal(loop, fresh.symbol(loop.symbol.name))
        plain = replace(plain, body=substituted(loop.body, {loop.symbol: value}))
        found = [one for one in _sums(plain.body, ()) if one.node.id in wanted]
        most = max(1, ROOM // max(1, sum(one.bytes for one in found)))
        rounds = plain.hi.constant
        count = min(most, UNKNOWN) if rounds is None else ceil(rounds / ceil(rounds / most))
        kept: dict[int, Node] = {}
        for one in found:
            shape, dtype = (count, *one.shape), one.value.dtype
            kept[one.node.id] = fresh.array(f"{one.node.label}_kept", shape, dtype, "kept")
        pieces: tuple[For, ...] = ()
        if rounds is None or rounds > count:
            at = fresh.symbol("piece")
            pieces = (For(at, const(0), plain.hi, count, (), span=loop.span),)
            end = var(at) + count
            even = rounds is not None and rounds % count == 0
            plain = replace(plain, lo=var(at), hi=end if even else minimum(end, plain.hi))
        return cls(fresh, plain, tuple(found), kept, pieces)

    @property
    def at_a_time(self) -> int | None:
        """How many iterations keep what they add at a time, None where all of them do."""
        return self.pieces[0].step if self.pieces else None

    def nests(self) -> Body:
        """Return the loop that keeps what it would add, and those that add it."""
        behind = (stmt for one in self.sums for stmt in self.behind(one))
        body: Body = (self.first(), *behind)
        return tuple(replace(loop, body=body) for loop in self.pieces) or body

    def first(self) -> For:
        """Return the loop whose rounds keep what they would add."""
        places = {one.node.id: self.place(one) for one in self.sums}

        def change(stmt: Stmt) -> Body:
            value = _added(stmt)
            if value is None or not isinstance(stmt, Store | Update):
                return (stmt,)
            place = places.get(stmt.access.node.id)
            return (stmt if place is None else Store(place, value, stmt.span),)

        return replace(self.loop, body=map_statements(self.loop.body, change))

    def behind(self, one: _Sum) -> Body:
        """Return the loop that adds what rounds have kept, in their order."""
        there, kept, span = one.stmt.access, self.place(one), one.stmt.span
        value = Read(kept.node, kept.index)
        if not one.is_of_lanes:
            return (self.around(one, one.added(there, value)),)
        (lane,) = one.path
        sums = self.fresh.array(one.node.label, one.shape, one.node.dtype, "lanes")  # registers
        here = Access(sums, there.index)
        begun = Store(here, Read(there.node, there.index), span)
        ended = Store(there, Read(sums, here.index), span)
        return (
            self.renamed(replace(lane, body=(begun,))),
            self.around(one, one.added(here, value)),
            self.renamed(replace(lane, body=(ended,))),
        )

    def around(self, one: _Sum, stmt: Stmt) -> Stmt:
        """Return a statement in loops through all that rounds have kept."""
        for loop in reversed((self.loop, *one.path)):
            stmt = replace(loop, body=(stmt,))
        return self.renamed(stmt)

    def renamed(self, stmt: Stmt) -> Stmt:
        """Return a statement whose loops have variables of their own."""
        loops = (one.symbol for one in statements((stmt,)) if isinstance(one, For))
        names = {symbol: self.fresh.symbol(symbol.name) for symbol in loops}
        return rename((stmt,), names, {})[0]

    def place(self, one: _Sum) -> Access:
        """Return where a round keeps what it would add."""
        index = (var(loop.symbol) - loop.lo for loop in (self.loop, *one.path))
        return Access(self.kept[one.node.id], tuple(index))
