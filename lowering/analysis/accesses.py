"""Who reads and writes which cells: the analysis that the passes decide by. It changes nothing.

Every access becomes a `Site`: the node, the affine index, the loops around it that say through
which values the symbols of the index run, and the tests that hold where it happens. Nothing is
traced or sampled, so the answers are exact for any size; where an index depends on data, or on
something that is not affine, they err towards "may touch".

>>> from plusequals.lowering.ir import dtypes, indexing, loops, node, expressions, assignments
>>> i = indexing.Symbol("i", 0)
>>> x = node.Node(0, "x", (indexing.const(9),), dtypes.float32)
>>> value = expressions.Read(x, (indexing.var(i) - 1,))
>>> store = loops.Store(assignments.Access(x, (indexing.var(i),)), value)
>>> loop = loops.For(i, indexing.const(1), indexing.const(9), 1, (store,))
>>> for site in accesses((loop,)).of(x):
...     print(site.kind, site.node.label, site.index, ranges(site.inside))
read x (i - 1,) (Range(symbol=i.0, lo=1, hi=9),)
write x (i,) (Range(symbol=i.0, lo=1, hi=9),)
>>> accesses((loop,)).read_before_written(x)  # x[0] is
True
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from operator import attrgetter
from typing import Literal, NamedTuple, cast

from ...base.dataclass import dataclass
from ..ir.assignments import Alloc, Break, Continue, Permute, Print
from ..ir.expressions import Dynamic, Expr, Index, conjuncts
from ..ir.indexing import Affine, Range, Symbol, const, substitute, var
from ..ir.loops import Check, Fill, For, If, Stmt, Store, Update, While
from ..ir.memo import keep
from ..ir.node import Node
from ..ir.rewrite import substitute_expr
from ..ir.walk import BODIES, bodies, own
from .definite_writes import in_first_rounds
from .effects import summary
from .guarded_reads import negated, nodes_of, reads_in
from .subscripts import holds, is_inside, ranges, solve

Kind = Literal["read", "write", "update"]
PARTS, BRANCHES, CUTS = 8, 4, 8
"""So many writes, branches and ends of writes are considered together."""
FIRST = 4
"""So many first rounds of a loop are looked at one by one."""
_route = attrgetter("route")
Route = tuple[tuple[int, int], ...]
"""Where a statement stands: at each level its number in the list, and which list inside of it."""


class Site(NamedTuple):
    """One place of the text where elements of a node are read, written, or both (an update)."""

    node: Node
    index: tuple[Index, ...] | None  # type: ignore[assignment]  # hides `tuple.index`
    """None: the whole array at once (`Fill`, `Alloc`, `Permute`)."""
    kind: Kind
    inside: tuple[Stmt, ...]
    """The loops and branches around the statement, outermost first."""
    route: Route
    """One entry more than `inside`: the last is the statement itself. Ordered as the program."""
    tests: tuple[Expr, ...]
    """What holds when it happens: tests of branches and of selects around it."""

    @property
    def reads(self) -> bool:
        """Whether the old value matters."""
        return self.kind != "write"

    @property
    def writes(self) -> bool:
        """Whether there is a new value."""
        return self.kind != "read"


@dataclass(frozen=True, slots=True)
class Accesses:
    """Every site of some statements, in program order, by the id of the node."""

    sites: Mapping[int, tuple[Site, ...]]
    covered: dict[int, bool] = field(default_factory=dict, compare=False, repr=False)
    """Whether all reads of a node are covered, as far as it was asked; kept with a loop."""

    def of(self, node: Node) -> tuple[Site, ...]:
        """Return the sites of a node."""
        return self.sites.get(node.id, ())

    def is_written(self, node: Node) -> bool:
        """Whether any element may be written."""
        return any(site.writes for site in self.of(node))

    def read_before_written(self, node: Node) -> bool:
        """Whether some read may see an element that nothing here wrote before."""
        known = self.covered.get(node.id)
        if known is None:
            reads = (site for site in self.of(node) if site.reads)
            known = self.covered[node.id] = all(map(self.is_covered, reads))
        return not known

    def is_covered(self, read: Site) -> bool:
        """Whether all that a site reads was surely written before: in the same round, or by rounds
        of a loop around it that came before."""
        if self._is_written_by_one(read):
            return True
        writes = [site for site in self._before(read) if site.kind == "write"]
        if any(site.route < read.route and self.covers(site, read) for site in _sides(writes)):
            return True
        several = islice((s for s in self.of(read.node) if s.kind == "write" and s.index), 2)
        if len(tuple(several)) < 2 or not all(
            isinstance(at, Affine) for at in read.index or (None,)
        ):
            return False
        writes += [site for site in self._later_in(read) if site.kind == "write"]
        hands_on = any(self._hands_on(write, read) for write in writes if write.index)
        return hands_on or self._is_in_parts(read)

    def _is_written_by_one(self, read: Site) -> bool:
        """Whether one statement before a site surely wrote all that it reads."""
        return any(
            write.kind == "write" and self.covers(write, read) for write in self._before(read)
        )

    def _before(self, site: Site) -> tuple[Site, ...]:
        """Return the sites of its node that stand before a site."""
        every = self.of(site.node)
        return every[: bisect_left(every, site.route, key=_route)]

    def _later_in(self, site: Site) -> tuple[Site, ...]:
        """Return the sites of its node behind it that an earlier iteration of a loop may run."""
        every, last = self.of(site.node), site.route[0][0]
        start = bisect_left(every, site.route, key=_route)
        return every[start : bisect_right(every, last, start, key=lambda one: one.route[0][0])]

    def _hands_on(self, write: Site, read: Site) -> bool:
        """Whether each round reads what a write has left some rounds before; and the first rounds
        what another one has left before the loop."""
        shared = common(write.route, read.route)
        loop = read.inside[shared - 1] if shared else None
        inner = write.inside[shared:]
        if not isinstance(loop, For) or loop.step not in (1, -1) or own_tests(write, shared):
            return False
        if any(isinstance(stmt, While) or has_jumps(stmt) for stmt in (loop, *inner)):
            return False
        values = solve(write.index or (), read.index or (), (loop, *inner))
        if values is None or not is_inside(values, inner, ranges(read.inside), read.tests):
            return False
        back = ((var(loop.symbol) - values[loop.symbol]) * loop.step).constant
        if back is None or not 1 <= back <= FIRST:
            return False
        firsts = (loop.lo + loop.step * number for number in range(back))
        return all(self._is_written_by_one(_at(read, loop, first)) for first in firsts)

    def _is_in_parts(self, read: Site) -> bool:
        """Whether writes cover what the first, or last, round of a loop reads, and all others."""
        index, known = _everywhere(read.node)
        loops = tuple(For(one.symbol, one.lo, one.hi, 1, ()) for one in known)
        whole = read._replace(index=index, inside=(*read.inside, *loops))
        places = ((site, *at) for site in (read, whole) for at in enumerate(site.inside))
        for one, at, loop in places:
            if not isinstance(loop, For) or loop.step not in (1, -1):
                continue
            last = loop.hi - loop.step
            rests = {loop.lo: replace(loop, lo=loop.lo + loop.step), last: replace(loop, hi=last)}
            for end, rest in rests.items():
                others = one._replace(inside=(*one.inside[:at], rest, *one.inside[at + 1 :]))
                if self._is_written_by_one(_at(one, loop, end)):
                    if self._is_written_by_one(others):
                        return True
        return False

    def is_overwritten(self, node: Node) -> bool:
        """Whether every element is surely written: by one statement, by several that write parts
        of it, or on both sides of branches."""
        return self._is_filled(node, [site for site in self.of(node) if site.kind == "write"])

    def is_input(self, node: Node) -> bool:
        """Whether some read may see an element from before, all statements before it considered."""
        return any(
            site.reads
            and not self.is_covered(site)
            and not self._is_filled(node, [one for one in self._ahead(site) if one.kind == "write"])
            for site in self.of(node)
        )

    def _ahead(self, read: Site) -> Iterator[Site]:
        """Yield the sites of its node in statements before the outermost one around a site."""
        return (one for one in self._before(read) if one.route[0][0] < read.route[0][0])

    def _is_filled(self, node: Node, writes: list[Site]) -> bool:
        """Whether writes surely reach every element."""
        index, whole = _everywhere(node)
        if any(self._reaches(site, index, whole, (), 0) for site in (*writes, *_sides(writes))):
            return True
        if 2 <= len(writes) <= PARTS and self._reach_in_parts(writes, index, whole, 0):
            return True
        branches = {one.route[0][0] for one in writes if one.inside and type(one.inside[0]) is If}
        if len(writes) > PARTS or len(branches) > BRANCHES:
            return False
        return any(
            all(self._is_filled(node, _on_side(writes, place, side)) for side in (0, 1))
            for place in branches
        )

    def _reach_in_parts(
        self, writes: list[Site], index: tuple[Index, ...], known: tuple[Range, ...], first: int
    ) -> bool:
        """Whether each element of some ranges is reached by one of several writes.

        The ranges from `first` on are cut where writes begin and end: what is reached up to a cut
        is extended from there, so nothing has to be known of the order of the cuts.
        """
        if any(self._reaches(site, index, known, (), 0) for site in writes):
            return True
        for at in range(first, len(known)):
            symbol, lo, hi = known[at].symbol, known[at].lo, known[at].hi
            axis = next(n for n, one in enumerate(index) if one == var(symbol))
            cuts = dict.fromkeys((hi, *(cut for one in writes for cut in _ends(one, axis))))
            reached, left = [lo], [cut for cut in cuts if cut != lo][:CUTS]
            for start in reached:
                for cut in tuple(left):
                    here: tuple[Index, ...] = index
                    part: tuple[Range, ...] = (Range(symbol, start, cut),)
                    if (cut - start).constant == 1:
                        here, part = (*index[:axis], start, *index[axis + 1 :]), ()
                    around = (*known[:at], *part, *known[at + 1 :])
                    if self._reach_in_parts(writes, here, around, at + len(part)):
                        if cut == hi:
                            return True
                        left.remove(cut)
                        reached.append(cut)
        return False

    def only(self, node: Node, sites: tuple[Site, ...]) -> Accesses:
        """Return the accesses as if a node had those sites only."""
        return Accesses(ChainMap({node.id: sites}, cast("dict[int, tuple[Site, ...]]", self.sites)))

    def joined(self, gone: Node, kept: Node) -> Accesses:
        """Return the accesses where one node stands for another one too."""
        moved = (site._replace(node=kept) for site in self.of(gone))
        both = sorted((*self.of(kept), *moved), key=lambda site: site.route)
        left = {number: sites for number, sites in self.sites.items() if number != gone.id}
        return Accesses({**left, kept.id: tuple(both)})

    def last_use(self, node: Node) -> Route | None:
        """Return where the last read or write stands; None where there is none."""
        return max((site.route for site in self.of(node)), default=None)

    def covers(self, write: Site, read: Site) -> bool:
        """Whether a write before a read, in one round of the loops around both, wrote its cells."""
        shared = common(write.route, read.route)
        if any(_is_between(self, test, write, read, shared) for test in own_tests(write, shared)):
            return False
        return any(
            self._reaches(one, index, (*ranges(read.inside), *anywhere), read.tests, shared)
            for one in _firsts(write, shared)
            for index, anywhere in _wanted(read)
        )

    def _reaches(
        self,
        write: Site,
        index: tuple[Index, ...],
        known: tuple[Range, ...],
        tests: tuple[Expr, ...],
        shared: int,
    ) -> bool:
        """Whether the write runs for sure at the points that give every cell of the index."""
        own = write.inside[shared:]
        if any(isinstance(s, While) or has_jumps(s) for s in own):
            return False
        if write.index is None:
            return not any(isinstance(s, If | For) for s in own)
        values = solve(write.index, index, own)
        if values is None:
            return False
        return is_inside(values, own, known, tests) and all(
            holds(substitute_expr(test, values), known, tests) for test in own_tests(write, shared)
        )


def _sides(writes: Iterable[Site]) -> Iterator[Site]:
    """Yield a write in place of each branch that writes the same elements on both sides."""
    left, seen = list(writes), dict[tuple[object, ...], Site]()
    while left:
        site = left.pop()
        if site.inside and isinstance(site.inside[-1], If):
            at = len(site.inside) - 1
            place, number = site.route[at]
            first = seen.setdefault((site.route[:at], place, site.index), site)
            if first.route[at][1] != number:
                tests = site.tests[: len(site.tests) - len(own_tests(site, at))]
                route = (*site.route[:at], (place, 2))  # after what stands on either side
                left.append(site._replace(inside=site.inside[:at], route=route, tests=tests))
                yield left[-1]


def _on_side(writes: Iterable[Site], place: int, side: int) -> list[Site]:
    """Return writes as they are where a branch, the statement at a place, takes one side."""
    found: list[Site] = []
    for one in writes:
        (at, number), *route = one.route
        if at != place:
            found.append(one)
        elif number == side:
            inner = (at, route[0][1]), *route[1:]
            found.append(one._replace(inside=one.inside[1:], route=inner, tests=own_tests(one, 1)))
    return found


def _ends(write: Site, axis: int) -> Iterator[Affine]:
    """Yield where the cells of a write may begin or end on an axis."""
    one = None if write.index is None else write.index[axis]
    if isinstance(one, Affine):
        loops = [stmt for stmt in write.inside if isinstance(stmt, For)]
        for end in (
            substitute(one, {loop.symbol: loop.lo for loop in loops}),
            substitute(one, {loop.symbol: loop.hi for loop in loops}),
        ):
            yield from (end, end + 1)


def _firsts(write: Site, shared: int) -> Iterator[Site]:
    """Yield a write, then what it surely does in the first rounds of the loops around it."""
    yield write
    around, places = write.inside[shared:], [at + (n == 2) for at, n in write.route[shared + 1 :]]
    found = in_first_rounds(around, places, write.index or (), ranges(write.inside[:shared]))
    if found is not None:
        loops, index = found
        inside = (*write.inside[:shared], *loops)
        yield write._replace(index=None if write.index is None else index, inside=inside)


def _at(site: Site, loop: For, value: Affine) -> Site:
    """Return a site in one round of a loop around it."""
    values = {loop.symbol: value}
    index = (substitute(at, values) if isinstance(at, Affine) else at for at in site.index or ())
    return site if site.index is None else site._replace(index=tuple(index))


def _wanted(read: Site) -> Iterator[tuple[tuple[Index, ...], tuple[Range, ...]]]:
    """Yield the cells that a site reads, then all: data may say which, under a name."""
    if read.index is not None:
        yield _anywhere(read.node, read.index)
    yield _everywhere(read.node)


def _everywhere(node: Node) -> tuple[tuple[Index, ...], tuple[Range, ...]]:
    """Return an index that runs over all elements of a node, and the ranges of its symbols."""
    sizes = [(axis, n) for axis, n in enumerate(node.shape) if n.constant != 1]
    symbols = {axis: Symbol(f"axis{axis}", -1 - axis) for axis, _ in sizes}
    index = (var(symbols[a]) if a in symbols else const(0) for a in range(node.rank))
    return tuple(index), tuple(Range(symbols[axis], const(0), n) for axis, n in sizes)


def _anywhere(node: Node, index: tuple[Index, ...]) -> tuple[tuple[Index, ...], tuple[Range, ...]]:
    """Return an index with a symbol over the whole axis for each part that depends on data."""
    symbols = {
        axis: Symbol(f"any{axis}", -1 - axis)
        for axis, one in enumerate(index)
        if isinstance(one, Dynamic)
    }
    wide = tuple(var(symbols[a]) if a in symbols else one for a, one in enumerate(index))
    return wide, tuple(Range(s, const(0), node.shape[axis]) for axis, s in symbols.items())


def own_tests(site: Site, shared: int) -> tuple[Expr, ...]:
    """Return the tests around a site that do not stand around the first `shared` lists."""
    outer = 0
    for stmt, (_, number) in zip(site.inside[:shared], site.route, strict=False):
        if isinstance(stmt, If):
            outer += 1 if number else len(tuple(conjuncts(stmt.test)))
    return site.tests[outer:]


def _is_between(found: Accesses, test: Expr, write: Site, read: Site, shared: int) -> bool:
    """Whether what a test reads may be written between the write that it guards and the read."""
    first, last = write.route[shared][0], read.route[shared][0]
    return any(
        site.writes
        and site.route[:shared] == write.route[:shared]
        and len(site.route) > shared
        and first <= site.route[shared][0] <= last
        for node in nodes_of(test)
        for site in found.of(node)
    )


# --------------------------------------------------------------------------------- collecting


def accesses(body: Iterable[Stmt]) -> Accesses:
    """Return every access of some statements, those inside them too."""
    body = tuple(body)
    if len(body) != 1:
        return _by_node(_sites(body))
    try:
        covered: dict[int, bool] = body[0].covered
    except AttributeError:
        covered = keep(body[0], "covered", {})
    return Accesses(_by_node(_sites(body)).sites, covered)


def within(loop: For) -> Accesses:
    """Return every access in the body of a loop, as seen from there: the loop is not around it."""
    ((_, sites),) = _lists(loop)
    return _by_node(sites)


def _by_node(sites: Iterable[Site]) -> Accesses:
    found: dict[int, list[Site]] = {}
    for site in sites:
        found.setdefault(site.node.id, []).append(site)
    return Accesses({number: tuple(sites) for number, sites in found.items()})


def _sites(body: Iterable[Stmt]) -> list[Site]:
    """Return the sites of a list of statements, as they are seen from this list."""
    found: list[Site] = []
    for at, stmt in enumerate(body):
        for node, index, kind, tests in _touches(stmt):
            found.append(Site(node, index, kind, (), ((at, 0),), tests))
        if type(stmt) not in BODIES:
            continue
        around = (stmt,)
        for number, (holding, sites) in enumerate(_lists(stmt)):
            here = ((at, number),)
            for node, index, kind, inside, route, tests in sites:
                found.append(
                    Site(node, index, kind, around + inside, here + route, holding + tests)
                )
    return found


_List = tuple[tuple[Expr, ...], list[Site]]
"""What holds in a list inside of a statement, and the sites as they are seen from that list."""


def _lists(stmt: Stmt) -> tuple[_List, ...]:
    """Return what is known of each list inside of a statement.

    No site names the statement itself: what is kept with it does not keep it alive.
    """
    try:
        known: tuple[_List, ...] = stmt.lists
    except AttributeError:
        holding: tuple[tuple[Expr, ...], ...] = ((), ())
        if isinstance(stmt, If):
            holding = tuple(conjuncts(stmt.test)), (negated(stmt.test),)
        known = keep(stmt, "lists", tuple(zip(holding, map(_sites, bodies(stmt)))))
    return known


_Touch = tuple[Node, tuple[Index, ...] | None, Kind, tuple[Expr, ...]]
"""Node, index, kind and tests of a site, but for what depends on where its statement stands."""


def _touches(stmt: Stmt) -> tuple[_Touch, ...]:
    """Return what a statement itself touches."""
    try:
        known: tuple[_Touch, ...] = stmt.sites
    except AttributeError:
        known = keep(stmt, "sites", _touched(stmt))
    return known


def _touched(stmt: Stmt) -> tuple[_Touch, ...]:
    mine = own(stmt)
    if mine.chooses:
        pairs = [pair for expr in mine.expressions for pair in reads_in(expr)]
        found: list[_Touch] = [(read.node, read.index, "read", tests) for read, tests in pairs]
    else:
        found = [(read.node, read.index, "read", ()) for read in mine.found]
    match stmt:
        case Store(access):
            found.append((access.node, access.index, "write", ()))
        case Update():
            for access in (stmt.access,) if stmt.pair is None else (stmt.access, stmt.pair.access):
                found.append((access.node, access.index, "update", ()))
        case Fill(node) | Alloc(node):
            found.append((node, None, "write", ()))
        case Permute(nodes, sources):
            for node in dict.fromkeys((*nodes, *sources)):
                found.append((node, None, "update", ()))
        case _:
            pass
    return tuple(found)


def has_jumps(stmt: Stmt) -> bool:
    """Whether a loop may be left early, or a round of it, by a `Break` or `Continue` inside."""
    return isinstance(stmt, For | While) and not summary(stmt).kinds.isdisjoint((Break, Continue))


def has_effects(stmt: Stmt) -> bool:
    """Whether a statement may raise or print: what can be seen besides the arrays."""
    return not summary(stmt).kinds.isdisjoint((Check, Print))


def place_in(route: Route, outer: Route) -> int | None:
    """Return where a place is in the list that `outer` leads to; None for a place that is not in
    it, and for the test of the loop whose list it is, which comes after it."""
    depth = len(outer)
    return route[depth][0] if route[:depth] == outer and len(route) > depth else None


def common(left: Route, right: Route) -> int:
    """Return how many lists deep two places are in the same statement."""
    depth = 0
    for one, other in zip(left[:-1], right[:-1]):
        if one != other:
            break
        depth += 1
    return depth
