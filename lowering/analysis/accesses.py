"""Array accesses of statements: which elements are read and written, and where.

Every access becomes a `Site`: the node, the affine subscripts, the loops around it that give the
symbols of the subscripts their ranges, and the tests that hold where it happens. Nothing is traced
or sampled, so the answers are exact for any size; where a subscript depends on data, or is not
affine, they err towards "may access". Analysis only.

>>> from plusequals.lowering.ir import dtypes, indexing, loops, node, expressions, assignments
>>> i = indexing.Symbol("i", 0)
>>> x = node.Node(0, "x", (indexing.const(9),), dtypes.float32)
>>> value = expressions.Read(x, (indexing.var(i) - 1,))
>>> store = loops.Store(assignments.Access(x, (indexing.var(i),)), value)
>>> loop = loops.For(i, indexing.const(1), indexing.const(9), 1, (store,))
>>> for site in collect_accesses((loop,)).of(x):
...     print(site.kind, site.node.label, site.index, ranges(site.inside))
read x (i - 1,) (Range(symbol=i.0, lo=1, hi=9),)
write x (i,) (Range(symbol=i.0, lo=1, hi=9),)
>>> collect_accesses((loop,)).is_read_before_written(x)  # x[0] is
True
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import count, islice
from operator import attrgetter
from typing import Literal, NamedTuple, cast

from ...base.dataclass import dataclass
from .. import thresholds
from ..ir.assignments import Alloc, Let, Permute
from ..ir.expressions import Expr, Index, conjuncts
from ..ir.indexing import Affine, Range, substitute, var
from ..ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from ..ir.loops import Fill, For, If, Stmt, Store, Update, While
from ..ir.memo import memoize
from ..ir.node import Node
from ..ir.rewrite import substitute_expr
from ..ir.walk import BODIES, bodies, direct_effects, statements
from .definite_writes import in_first_iterations
from .effects import has_jumps, summarize
from .guarded_reads import guarded_reads, negate, nodes_of
from .subscripts import (
    Elements,
    all_elements,
    is_implied,
    is_in_loops,
    is_reached_in_parts,
    ranges,
    solve_subscripts,
    widen_dynamic,
)

Kind = Literal["read", "write", "update"]
_site_route = attrgetter("route")
Route = tuple[tuple[int, int], ...]
"""Path to a statement in the program tree: at each level its position in the list of statements,
and which list inside of it comes next."""


class Site(NamedTuple):
    """One access in the program text: elements of a node are read, written, or both (an update)."""

    node: Node
    index: tuple[Index, ...] | None  # type: ignore[assignment]  # hides `tuple.index`
    """None: the whole array at once (`Fill`, `Alloc`, `Permute`, instructions)."""
    kind: Kind
    inside: tuple[Stmt, ...]
    """The loops and branches around the statement, outermost first."""
    route: Route
    """Path of the statement, with one entry more than `inside`: the last is the statement itself.
    Paths compare in program order."""
    tests: tuple[Expr, ...]
    """Conditions that hold when it happens: tests of the branches and selects around it."""

    @property
    def reads(self) -> bool:
        """Whether the old value matters (a read or an update)."""
        return self.kind != "write"

    @property
    def writes(self) -> bool:
        """Whether a new value is stored (a write or an update)."""
        return self.kind != "read"


@dataclass(frozen=True, slots=True)
class Accesses:
    """All sites of some statements, in program order, by the id of the node."""

    sites: Mapping[int, tuple[Site, ...]]
    covered: dict[tuple[int, int], bool] = field(default_factory=dict, compare=False, repr=False)
    """Memo of `read_before_written`, by the id of the node; shared with the loop."""

    def of(self, node: Node) -> tuple[Site, ...]:
        """Return the sites of a node."""
        return self.sites.get(node.id, ())

    def is_written(self, node: Node) -> bool:
        """Whether any element may be written."""
        return any(site.writes for site in self.of(node))

    def is_read_before_written(self, node: Node, depth: int = 0) -> bool:
        """Whether some read may see an element that none of these statements wrote before, in the
        same iteration of the `depth` outermost ones: in other iterations only of deeper loops."""
        covered = self.covered.get((node.id, depth))
        if covered is None:
            reads = (site for site in self.of(node) if site.reads)
            covered = self.covered[node.id, depth] = all(self.is_covered(x, depth) for x in reads)
        return not covered

    def is_covered(self, read: Site, depth: int = 0) -> bool:
        """Whether all elements that a site reads were surely written before: in the same iteration,
        or in earlier iterations of a loop around it that is deeper than `depth`."""
        if self._has_covering_write(read):
            return True
        writes = [site for site in self._before(read) if site.kind == "write"]
        if any(
            site.route < read.route and self.covers(site, read) for site in _merge_branches(writes)
        ):
            return True
        several = islice((s for s in self.of(read.node) if s.kind == "write" and s.index), 2)
        if len(tuple(several)) < 2 or not all(
            isinstance(at, Affine) for at in read.index or (None,)
        ):
            return False
        writes += [site for site in self._later_in(read) if site.kind == "write"]
        hands_on = any(
            self._is_carried(write, read)
            for write in writes
            if write.index and common_depth(write.route, read.route) > depth
        )
        return hands_on or self._is_covered_in_parts(read)

    def _has_covering_write(self, read: Site) -> bool:
        """Whether a single statement before a site surely wrote all that it reads."""
        return any(
            write.kind == "write" and self.covers(write, read) for write in self._before(read)
        )

    def _before(self, site: Site) -> tuple[Site, ...]:
        """Return the sites of the same node before a site, in program order."""
        sites = self.of(site.node)
        return sites[: bisect_left(sites, site.route, key=_site_route)]

    def _later_in(self, site: Site) -> tuple[Site, ...]:
        """Return the sites of its node after it that an earlier iteration of a loop may run."""
        sites, last = self.of(site.node), site.route[0][0]
        start = bisect_left(sites, site.route, key=_site_route)
        return sites[
            start : bisect_right(sites, last, start, key=lambda candidate: candidate.route[0][0])
        ]

    def _is_carried(self, write: Site, read: Site) -> bool:
        """Whether each iteration reads what a write left a constant number of iterations before,
        and the first iterations read what another write left before the loop."""
        shared = common_depth(write.route, read.route)
        loop = read.inside[shared - 1] if shared else None
        inner = write.inside[shared:]
        if not isinstance(loop, For) or loop.step not in (1, -1) or inner_tests(write, shared):
            return False
        if any(isinstance(stmt, While) or has_jumps(stmt) for stmt in (loop, *inner)):
            return False
        ends = (end for s in inner if isinstance(s, For) for end in (s.lo, s.hi))
        parts = (*(write.index or ()), *(read.index or ()), *ends)
        used = {symbol for at in parts if isinstance(at, Affine) for symbol in at.symbols()}
        if any(isinstance(s, Let) and s.symbol in used for s in statements(loop.body)):
            return False  # it has another value in each iteration
        values = solve_subscripts(write.index or (), read.index or (), (loop, *inner))
        tests = holding_tests(read)
        if values is None or not is_in_loops(values, inner, ranges(read.inside), tests):
            return False
        back = ((var(loop.symbol) - values[loop.symbol]) * loop.step).constant
        if back is None or not 1 <= back <= thresholds.MAX_FIRST_ITERATIONS:
            return False
        first_values = (loop.lo + loop.step * number for number in range(back))
        return all(
            self._has_covering_write(_fix_iteration(read, loop, first)) for first in first_values
        )

    def _is_covered_in_parts(self, read: Site) -> bool:
        """Whether writes cover both what the first (or last) iteration of a loop reads, and what
        all the other iterations read."""
        index, domain = all_elements(read.node)
        loops = tuple(
            For(candidate.symbol, candidate.lo, candidate.hi, 1, ()) for candidate in domain
        )
        whole = read._replace(index=index, inside=(*read.inside, *loops))
        candidates = ((site, *at) for site in (read, whole) for at in enumerate(site.inside))
        for candidate, at, loop in candidates:
            if not isinstance(loop, For) or loop.step not in (1, -1):
                continue
            last = loop.hi - loop.step
            remaining = {
                loop.lo: replace(loop, lo=loop.lo + loop.step),
                last: replace(loop, hi=last),
            }
            for end, rest in remaining.items():
                others = candidate._replace(
                    inside=(*candidate.inside[:at], rest, *candidate.inside[at + 1 :])
                )
                if self._has_covering_write(_fix_iteration(candidate, loop, end)):
                    if self._has_covering_write(others):
                        return True
        return False

    def is_overwritten(self, node: Node) -> bool:
        """Whether every element is surely written: by one statement, by several that write a part
        each, or on both sides of branches."""
        return self._is_filled(node, [site for site in self.of(node) if site.kind == "write"])

    def is_upward_exposed(self, node: Node) -> bool:
        """Whether some read may see an element's value on entry (an upward-exposed read), with all
        statements before it considered."""
        return any(
            site.reads
            and not self.is_covered(site)
            and not self._is_filled(
                node,
                [earlier for earlier in self._before_outermost(site) if earlier.kind == "write"],
            )
            for site in self.of(node)
        )

    def _before_outermost(self, read: Site) -> Iterator[Site]:
        """Yield the sites of the same node in statements before the outermost one around a site."""
        return (site for site in self._before(read) if site.route[0][0] < read.route[0][0])

    def _is_filled(self, node: Node, writes: list[Site]) -> bool:
        """Whether writes together surely reach every element."""
        whole = Elements(*all_elements(node))
        if any(self._reaches(site, *whole, 0) for site in (*writes, *_merge_branches(writes))):
            return True
        if 2 <= len(writes) <= thresholds.MAX_PARTIAL_WRITES:
            indexed = [(w.index, [x for x in w.inside if isinstance(x, For)]) for w in writes]
            tries = count()
            if is_reached_in_parts(
                lambda part: (
                    next(tries) < thresholds.MAX_WRITTEN_PARTS
                    and any(self._reaches(site, *part, 0) for site in writes)
                ),
                [(index, loops) for index, loops in indexed if index],
                whole,
            ):
                return True
        branches = {
            write.route[0][0] for write in writes if write.inside and type(write.inside[0]) is If
        }
        if (
            len(writes) > thresholds.MAX_PARTIAL_WRITES
            or len(branches) > thresholds.MAX_WRITING_BRANCHES
        ):
            return False
        return any(
            all(self._is_filled(node, _take_side(writes, position, side)) for side in (0, 1))
            for position in branches
        )

    def only(self, node: Node, sites: tuple[Site, ...]) -> Accesses:
        """Return the accesses as if a node had those sites only."""
        return Accesses(ChainMap({node.id: sites}, cast("dict[int, tuple[Site, ...]]", self.sites)))

    def joined(self, replaced: Node, target: Node) -> Accesses:
        """Return the accesses where the node `target` stands for the node `replaced` too."""
        moved = (site._replace(node=target) for site in self.of(replaced))
        merged = sorted((*self.of(target), *moved), key=lambda site: site.route)
        others = {number: sites for number, sites in self.sites.items() if number != replaced.id}
        return Accesses({**others, target.id: tuple(merged)})

    def last_use(self, node: Node) -> Route | None:
        """Return the path of the last access of a node; None where there is none."""
        return max((site.route for site in self.of(node)), default=None)

    def covers(self, write: Site, read: Site) -> bool:
        """Whether a write before a read, in one iteration of the loops around both, wrote all that
        it reads."""
        shared = common_depth(write.route, read.route)
        if any(
            _may_change_test(self, test, write, read, shared) for test in inner_tests(write, shared)
        ):
            return False
        return any(
            self._reaches(
                instance, index, (*ranges(read.inside), *anywhere), holding_tests(read), shared
            )
            for instance in _first_iterations(write, shared)
            for index, anywhere in _read_elements(read)
        )

    def _reaches(
        self,
        write: Site,
        index: tuple[Index, ...],
        domain: tuple[Range, ...],
        tests: tuple[Expr, ...],
        shared: int,
    ) -> bool:
        """Whether the write surely runs at the points that give every element of the index."""
        inner = write.inside[shared:]
        if any(isinstance(s, While) or has_jumps(s) for s in inner):
            return False
        if write.index is None:
            return not any(isinstance(s, If | For) for s in inner)
        values = solve_subscripts(write.index, index, inner)
        if values is None:
            return False
        return is_in_loops(values, inner, domain, tests) and all(
            is_implied(substitute_expr(test, values), domain, tests)
            for test in inner_tests(write, shared)
        )


def _merge_branches(writes: Iterable[Site]) -> Iterator[Site]:
    """Yield a write in place of each branch that writes the same elements on both sides."""
    left, seen = list(writes), dict[tuple[object, ...], Site]()
    while left:
        site = left.pop()
        if site.inside and isinstance(site.inside[-1], If):
            at = len(site.inside) - 1
            position, number = site.route[at]
            first = seen.setdefault((site.route[:at], position, site.index), site)
            if first.route[at][1] != number:
                tests = site.tests[: len(site.tests) - len(inner_tests(site, at))]
                route = (*site.route[:at], (position, 2))  # after the statements of both sides
                left.append(site._replace(inside=site.inside[:at], route=route, tests=tests))
                yield left[-1]


def _take_side(writes: list[Site], position: int, side: int) -> list[Site]:
    """Return the writes where a branch, the statement at a position, takes one side."""
    result: list[Site] = []
    end = 1 + max(write.route[0][0] for write in writes)  # what is nested follows all others
    for write in writes:
        (at, number), *route = write.route
        if at != position:
            result.append(write)
        elif number == side:
            (nested, nested_number), *rest = route
            inner = (end + nested, nested_number), *rest
            result.append(
                write._replace(inside=write.inside[1:], route=inner, tests=inner_tests(write, 1))
            )
    return result


def _first_iterations(write: Site, shared: int) -> Iterator[Site]:
    """Yield a write, then what it surely does in the first iterations of the loops around it."""
    yield write
    enclosing, positions = (
        write.inside[shared:],
        [at + (n == 2) for at, n in write.route[shared + 1 :]],
    )
    first_iterations = in_first_iterations(
        enclosing, positions, write.index or (), ranges(write.inside[:shared])
    )
    if first_iterations is not None:
        loops, index = first_iterations
        inside = (*write.inside[:shared], *loops)
        yield write._replace(index=None if write.index is None else index, inside=inside)


def _fix_iteration(site: Site, loop: For, value: Affine) -> Site:
    """Return a site in the iteration of a loop around it that has a value."""
    values = {loop.symbol: value}
    index = (substitute(at, values) if isinstance(at, Affine) else at for at in site.index or ())
    return site if site.index is None else site._replace(index=tuple(index))


def _read_elements(read: Site) -> Iterator[tuple[tuple[Index, ...], tuple[Range, ...]]]:
    """Yield the elements that a site reads, then all elements: its subscripts may be symbols bound
    to data."""
    if read.index is not None:
        yield widen_dynamic(read.node, read.index)
    yield all_elements(read.node)


def inner_tests(site: Site, shared: int) -> tuple[Expr, ...]:
    """Return the tests around a site that do not hold for the first `shared` statement lists."""
    outer = 0
    for stmt, (_, number) in zip(site.inside[:shared], site.route, strict=False):
        if isinstance(stmt, If):
            outer += 1 if number else len(tuple(conjuncts(stmt.test)))
    return site.tests[outer:]


def holding_tests(site: Site) -> tuple[Expr, ...]:
    """Return the tests around a site that surely still hold there: those whose branch writes
    nothing that they read."""
    kept: list[Expr] = []
    at = 0
    for stmt, (_, number) in zip(site.inside, site.route, strict=False):
        if at < len(site.tests) and isinstance(stmt, If):
            end = at + (1 if number else len(tuple(conjuncts(stmt.test))))
            written = summarize(stmt).writes
            changed = [
                not written.isdisjoint(x.id for x in nodes_of(t)) for t in site.tests[at:end]
            ]
            kept += (test for test, gone in zip(site.tests[at:end], changed) if not gone)
            at = end
    return (*kept, *site.tests[at:])


def _may_change_test(touched: Accesses, test: Expr, write: Site, read: Site, shared: int) -> bool:
    """Whether what a test reads may be written between the write that it guards and the read."""
    first, last = write.route[shared][0], read.route[shared][0]
    return any(
        site.writes
        and site.route[:shared] == write.route[:shared]
        and len(site.route) > shared
        and first <= site.route[shared][0] <= last
        for node in nodes_of(test)
        for site in touched.of(node)
    )


# --------------------------------------------------------------------------------- collecting


def collect_accesses(body: Iterable[Stmt]) -> Accesses:
    """Return all accesses of some statements, with those nested inside them."""
    body = tuple(body)
    if len(body) != 1:
        return _group_by_node(_collect_sites(body))
    try:
        covered: dict[tuple[int, int], bool] = body[0].covered
    except AttributeError:
        covered = memoize(body[0], "covered", {})
    return Accesses(_group_by_node(_collect_sites(body)).sites, covered)


def body_accesses(loop: For) -> Accesses:
    """Return all accesses in the body of a loop, relative to the body."""
    ((_, sites),) = _nested_sites(loop)
    return _group_by_node(sites)


def _group_by_node(sites: Iterable[Site]) -> Accesses:
    by_node: dict[int, list[Site]] = {}
    for site in sites:
        by_node.setdefault(site.node.id, []).append(site)
    return Accesses({number: tuple(sites) for number, sites in by_node.items()})


def _collect_sites(body: Iterable[Stmt]) -> list[Site]:
    """Return the sites of a list of statements, relative to this list."""
    result: list[Site] = []
    for at, stmt in enumerate(body):
        for node, index, kind, tests in _local_sites(stmt):
            result.append(Site(node, index, kind, (), ((at, 0),), tests))
        if type(stmt) not in BODIES:
            continue
        enclosing = (stmt,)
        for number, (conditions, sites) in enumerate(_nested_sites(stmt)):
            prefix = ((at, number),)
            for node, index, kind, inside, route, tests in sites:
                result.append(
                    Site(node, index, kind, enclosing + inside, prefix + route, conditions + tests)
                )
    return result


_NestedList = tuple[tuple[Expr, ...], list[Site]]
"""The conditions that hold in a nested list of statements, and its sites relative to that list."""


def _nested_sites(stmt: Stmt) -> tuple[_NestedList, ...]:
    """Return the conditions and the sites of each list nested in a statement.

    No site refers to the statement itself: the memo kept with a statement must not keep it alive.
    """
    try:
        lists: tuple[_NestedList, ...] = stmt.lists
    except AttributeError:
        conditions: tuple[tuple[Expr, ...], ...] = ((), ())
        if isinstance(stmt, If):
            conditions = tuple(conjuncts(stmt.test)), (negate(stmt.test),)
        lists = memoize(stmt, "lists", tuple(zip(conditions, map(_collect_sites, bodies(stmt)))))
    return lists


_LocalSite = tuple[Node, tuple[Index, ...] | None, Kind, tuple[Expr, ...]]
"""Node, index, kind and tests of a site: all that does not depend on where its statement is."""


def _local_sites(stmt: Stmt) -> tuple[_LocalSite, ...]:
    """Return the accesses of a statement itself, without those nested in it."""
    try:
        touches: tuple[_LocalSite, ...] = stmt.sites
    except AttributeError:
        touches = memoize(stmt, "sites", _compute_local_sites(stmt))
    return touches


def _compute_local_sites(stmt: Stmt) -> tuple[_LocalSite, ...]:
    accessed = direct_effects(stmt)
    touches: list[_LocalSite]
    if accessed.has_select:
        pairs = (pair for expr in accessed.expressions for pair in guarded_reads(expr))
        touches = [(read.node, read.index, "read", tests) for read, tests in pairs]
    else:
        touches = [(read.node, read.index, "read", ()) for read in accessed.all_reads]
    match stmt:
        case Store(access):
            touches.append((access.node, access.index, "write", ()))
        case Update():
            for access in (stmt.access,) if stmt.pair is None else (stmt.access, stmt.pair.access):
                touches.append((access.node, access.index, "update", ()))
        case Fill(node) | Alloc(node):
            touches.append((node, None, "write", ()))
        case Permute(nodes, sources):
            for node in dict.fromkeys((*nodes, *sources)):
                touches.append((node, None, "update", ()))
        case CopyVector() | StoreVector() | MatMul() | AwaitProducts():  # of elements not named
            touches = [(node, None, "read", ()) for node in dict.fromkeys(accessed.reads)]
            touches += [(node, None, "update", ()) for node in accessed.writes]
        case _:
            pass
    return tuple(touches)


def position_in(route: Route, outer: Route) -> int | None:
    """Return the position of a statement, or of the one around it, in the list that `outer` leads
    to; None where it is not in that list, and for the test of the loop that owns the list, which
    comes after it."""
    depth = len(outer)
    return route[depth][0] if route[:depth] == outer and len(route) > depth else None


def common_depth(left: Route, right: Route) -> int:
    """Return the depth down to which two paths are in the same statement."""
    pairs = enumerate(zip(left[:-1], right[:-1]))
    return next((n for n, (a, b) in pairs if a != b), min(len(left), len(right)) - 1)
