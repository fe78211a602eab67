"""Whether two nests may be one, and why not: what `fuse` asks of each pair that it meets.

A round of the second nest would run before the later rounds of the first. That is refused wherever
one of these may touch a cell that the other writes, for a difference of their indices that may be
zero; and wherever a check or a print would change places with a write that can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base.dataclass import dataclass
from ..ir.assignments import Alloc, Break, Continue, Let, Print
from ..ir.decision import Reason
from ..ir.expressions import Dynamic, Position, walk
from ..ir.indexing import Affine, Range, Symbol, const, substitute, var
from ..ir.loops import Check, Comment, Fill, For, If, Stmt, Store, Update, While
from ..ir.rewrite import map_statements
from ..ir.rewrite import substitute as substituted
from ..ir.walk import inside, parts, statements
from .accesses import Accesses, Site, accesses, within
from .effects import bound_in, summary
from .product_loops import Depth, tiled_depth
from .subscripts import are_apart, is_in_range, ranges


class Apart(Reason):
    """Why two neighbouring nests were not fused."""

    RANGES = "their loops do not run through the same values"
    JUMPS = "one of them may be left before its last round"
    ORDER = "a round of the second touches what a later round of the first does"
    EFFECTS = "a check or a print would change places with a write that can be seen"
    BETWEEN = "a branch, a check, a print or another loop stands between them"
    SEPARATED = "a statement between them needs what the first one does"
    CHECKS = "the second may rely on what later rounds of the first check"
    NOTHING = "they have no array in common"
    TILES = "one is a product of matrices, which runs faster in tiles than row by row"
    ACROSS = "they read along different axes, and rounds of one meet no array as the other's do"
    RUNNING = "one accumulates over its innermost loop, the other can run in vectors"


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop and what is asked of it more than once."""

    loop: For
    found: Accesses
    """As seen from its body; of sites that use the same elements there is one."""
    reads: Mapping[int, int]
    """How often each node is read."""
    kinds: frozenset[type]
    """Of what statements are in it."""
    stays: bool
    """Of an innermost loop, whether some statement writes the same cell in every iteration."""

    @property
    def jumps(self) -> bool:
        """Whether rounds of it may be left early."""
        return not self.kinds.isdisjoint((Break, Continue))

    @property
    def effects(self) -> bool:
        """Whether it may raise or print."""
        return not self.kinds.isdisjoint((Check, Print))

    @property
    def is_innermost(self) -> bool:
        """Whether there is no loop in it."""
        return self.kinds.isdisjoint((For, While))

    def is_visible(self, own: frozenset[int]) -> bool:
        """Whether it writes anything that is not among the ids of our own nodes."""
        return is_visible(self.found, own)

    def written_for(self, other: Nest) -> dict[int, int]:
        """Return the arrays that it writes and another nest reads, with how often both read."""
        found: dict[int, int] = {}
        for number, sites in self.found.sites.items():
            theirs = other.found.sites.get(number, ())
            is_read = any(site.reads for site in theirs)
            if is_read and sites[0].node.rank and any(site.writes for site in sites):
                found[number] = self.reads.get(number, 0) + other.reads[number]
        return found

    @property
    def runs(self) -> bool:
        """Whether rounds of an innermost loop write the same cell, or check something."""
        return self.effects or self.stays


def nest_of(loop: For) -> Nest:
    """Return a loop with what is asked of it."""
    every: tuple[Stmt, ...] = inside(loop)
    sites = within(loop).sites
    reads = {number: sum(site.reads for site in some) for number, some in sites.items()}
    kinds = frozenset(map(type, every))
    stays = kinds.isdisjoint((For, While)) and any(
        not any(isinstance(i, Affine) and loop.symbol in i.symbols() for i in access.index)
        for stmt in every
        if isinstance(stmt, Store | Update)
        for access in parts(stmt).targets
    )
    found = Accesses({number: _distinct(some) for number, some in sites.items()})
    return Nest(loop, found, reads, kinds, stays)


def grown(first: Nest, second: Nest, both: For) -> Nest:
    """Return what is asked of a loop that does what two nests over the same symbol do.

    It takes as long as the second nest is: a nest that many join is not looked at each time.
    """
    sites, reads = {**first.found.sites}, {**first.reads}
    for number, some in second.found.sites.items():
        sites[number] = _distinct((*sites.get(number, ()), *some))
        reads[number] = reads.get(number, 0) + second.reads[number]
    kinds, stays = first.kinds | second.kinds, first.stays or second.stays
    return Nest(both, Accesses(sites), reads, kinds, stays)


def _distinct(sites: tuple[Site, ...]) -> tuple[Site, ...]:
    """Return sites of one node without those that use the same elements as an earlier one does, in
    the same way: where they stand, and under which tests, nothing here asks."""
    if len(sites) < 2:
        return sites
    first: dict[object, Site] = {}
    for site in sites:
        first.setdefault((site.kind, *_elements(site)), site)
    return tuple(first.values()) if len(first) < len(sites) else sites


def _elements(site: Site) -> tuple[object, ...]:
    """Return what sites of a node that use the same elements have in common: symbols of the loops
    around them are numbered."""
    loops = ranges(site.inside)
    if not loops:
        return (site.index,)
    names = {r.symbol: var(Symbol("", -(2**29) - at)) for at, r in enumerate(loops)}
    ends = tuple((substitute(r.lo, names), substitute(r.hi, names)) for r in loops)
    if site.index is None:
        return None, ends
    if any(isinstance(at, Dynamic) for at in site.index):
        return (site.index, *loops)
    return tuple(substitute(at, names) for at in site.index if isinstance(at, Affine)), ends


def match(first: For, second: For) -> bool:
    """Whether two loops run through the same values."""
    ends = first.hi == second.hi and first.lo == second.lo
    return ends and (first.step, first.kind) == (second.step, second.kind)


def are_strangers(first: For, second: For) -> bool:
    """Whether two loops have no node in common, and the second writes some."""
    ours, theirs = summary(first), summary(second)
    touched = theirs.touches
    return (
        bool(theirs.writes)
        and ours.reads.isdisjoint(touched) and ours.writes.isdisjoint(touched)
    )  # fmt: skip


def is_visible(found: Accesses, own: frozenset[int]) -> bool:
    """Whether anything is written that is not among the ids of our own nodes."""
    return any(
        number not in own and any(site.writes for site in sites)
        for number, sites in found.sites.items()
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring nests whose loops run through the same values."""

    first: Nest
    second: Nest
    own: frozenset[int]
    outer: tuple[Range, ...]

    def refusal(self, moved: Sequence[Stmt]) -> tuple[Apart | None, str]:
        """Return why they cannot, or should not, be one loop, with names; None where they do."""
        first, second = self.first, self.second
        shared = any(
            number in first.found.sites and sites[0].node.rank
            for number, sites in second.found.sites.items()
        )
        checks_only = not any(s.writes for sites in second.found.sites.values() for s in sites)
        if not shared and not checks_only:
            return Apart.NOTHING, ""
        if first.jumps or second.jumps:
            return Apart.JUMPS, ""
        if self._changes_what_is_seen():
            return Apart.EFFECTS, ""
        if not all(self._is_movable(stmt) for stmt in moved):
            return Apart.SEPARATED, ""
        if first.is_innermost and second.is_innermost and first.runs != second.runs:
            return Apart.RUNNING, ""
        clash = self._clash(first.found)
        if clash is not None:
            return Apart.ORDER, clash
        if first.effects and self._outruns_checks():
            return Apart.CHECKS, ""
        if self._breaks_tiles():
            return Apart.TILES, ""
        if self._reads_across():
            return Apart.ACROSS, ""
        return None, ""

    def is_in_order(self) -> bool:
        """Whether no round of the second touches what a later round of the first does."""
        return self._clash(self.first.found) is None

    def _changes_what_is_seen(self) -> bool:
        first, second = self.first, self.second
        return (
            (first.effects and second.effects)
            or (first.effects and second.is_visible(self.own))
            or (second.effects and first.is_visible(self.own))
        )

    def _is_movable(self, stmt: Stmt) -> bool:
        """Whether a statement between the nests may as well run before the first."""
        if not isinstance(stmt, Store | Update | Fill | Alloc | Let):
            return False
        before = self.first.found
        touched = summary(stmt).touches
        if not self.first.effects and not any(number in before.sites for number in touched):
            return True
        alone = accesses((stmt,))
        if self.first.effects and (
            is_visible(alone, self.own) or any(s[0].node.rank for s in alone.sites.values())
        ):
            return False
        return not any(
            site.writes or before.is_written(site.node)
            for number, sites in alone.sites.items()
            if number in before.sites
            for site in sites
        )

    def _outruns_checks(self) -> bool:
        """Whether a round of the second may use an index that a later round of the first checks.

        Where checks are of elements, the second must not read these; where they are of positions,
        its indices have to be in range for a reason of their own.
        """
        kept = (For, While, If, Check)
        checks = map_statements(
            self.first.loop.body, lambda stmt: (stmt,) if isinstance(stmt, kept) else ()
        )
        tests = [stmt.test for stmt in statements(checks) if isinstance(stmt, Check)]
        if self._clash(accesses(checks), checked=True) is not None:
            return True
        of_positions = any(
            isinstance(e, Position) and e.index.terms for test in tests for e in walk(test)
        )
        known = (*self.outer, *ranges((self.second.loop,)))
        return of_positions and not all(
            is_in_range(site.node, site.index, (*known, *ranges(site.inside)))
            for sites in self.second.found.sites.values()
            for site in sites
        )

    def _clash(self, before: Accesses, checked: bool = False) -> str | None:
        """Return the label of a node by which the order of rounds matters; None if there is none.

        `before` is what the first nest does; with `checked` any two accesses are a clash.
        A later round of the first is `second.symbol + step * later`, with `later >= 1`.
        """
        rounds = var(self.first.loop.symbol), var(self.second.loop.symbol)
        later: _Later | None = None
        clashing: dict[int, str] = {}
        both = [number for number in self.second.found.sites if number in before.sites]
        for number in both:
            others = self.second.found.sites[number]
            for one in before.sites[number]:
                met = [
                    other for other in others
                    if (checked or one.writes or other.writes) and not _in_turn(one, other, rounds)
                ]  # fmt: skip
                if met:
                    later = later or self._later()
                    if not _never_meet(one, met, *later):
                        clashing[number] = one.node.label
                        break
        first = (number for number in before.sites if number in clashing) if clashing else ()
        return next((clashing[number] for number in first), None)

    def _later(self) -> _Later:
        """Return what the symbols of the first nest are in a later round, and what is known."""
        first, second = self.first.loop, self.second.loop
        step, symbol = first.step, var(second.symbol)
        later = Symbol("later", -1)
        gap = second.hi - symbol if step > 0 else symbol - second.hi
        values = {first.symbol: symbol + var(later) * step}
        for name in (bound_in(second.body) & summary(first).bound) - {first.symbol}:
            values[name] = var(Symbol(name.name, -2 - name.serial))
        return values, (*self.outer, *ranges((second,)), Range(later, const(1), gap))

    def _reads_across(self) -> bool:
        """Whether a round of each reads rows of what both only read, but along another axis.

        Then they share next to nothing, and neighbours in memory are no neighbours in one of them.
        """
        found = False
        for number, sites in self.second.found.sites.items():
            ours = self.first.found.sites.get(number, ())
            if ours and sites[0].node.rank:
                if any(site.writes for site in (*ours, *sites)):
                    return False
                axes = _axes(ours, self.first.loop.symbol), _axes(sites, self.second.loop.symbol)
                if not axes[0].isdisjoint(axes[1]):
                    return False
                found = found or all(axes)
        return found

    def _breaks_tiles(self) -> bool:
        """Whether a product of matrices would lose one of the loops over which it is tiled."""
        summing = [n for n in (self.first, self.second) if Update in n.kinds]
        depths = [(n is self.second, tiled_depth(n.loop)) for n in summing]
        products = [(is_late, depth) for is_late, depth in depths if depth.loops]
        return len(products) == 2 or not all(self._reaches(*one) for one in products)

    def _reaches(self, is_late: bool, depth: Depth) -> bool:
        """Whether that many loops of both nests can be fused, one inside the other.

        The first may be of several nests by now, which are brought together further in. The product
        is in the second where it `is_late`; the other one has to leave its elements in any order.
        """
        other = self.first if is_late else self.second
        if not depth.is_enough and not self._is_free(other):
            return False
        if depth.loops == 1:
            return depth.is_enough or self._is_beside(other, is_late)
        ours, theirs = _code(self.first.loop.body), _code(self.second.loop.body)
        if len(theirs) != 1:
            return False
        same = {self.second.loop.symbol: var(self.first.loop.symbol)}
        (second,) = substituted(theirs, same)
        if not isinstance(second, For):
            return False
        known = (*self.outer, *ranges((self.first.loop,)))
        inner = depth._replace(loops=depth.loops - 1)
        return all(
            isinstance(first, For)
            and match(first, second)
            and Pair(nest_of(first), nest_of(second), self.own, known)._meets(is_late, inner)
            for first in ours
        )

    def _meets(self, is_late: bool, depth: Depth) -> bool:
        return self.is_in_order() and self._reaches(is_late, depth)

    def _is_free(self, nest: Nest) -> bool:
        """Whether rounds of a nest may run in any order: each has its own scalars."""
        sites = {
            number: some
            for number, some in nest.found.sites.items()
            if some[0].node.rank or number not in self.own or some[0].kind != "write"
        }
        return Pair(nest, nest, self.own, self.outer)._clash(Accesses(sites)) is None

    def _is_beside(self, other: Nest, is_late: bool) -> bool:
        """Whether a nest does nothing around an element of a product that tiles do not, either.

        Before it they take no more than what it starts from.
        """
        if not is_late:
            return other.kinds <= {Store, Update, If, Comment}
        sums = self.second.found.sites
        return other.kinds <= {Store, Comment} and all(
            not sites[0].node.rank or any(site.kind == "update" for site in sums.get(number, ()))
            for number, sites in other.found.sites.items()
            if any(site.writes for site in sites)
        )


_Later = tuple[dict[Symbol, Affine], tuple[Range, ...]]


def _axes(sites: Sequence[Site], symbol: Symbol) -> frozenset[int]:
    """Return the axes along which a loop with this symbol goes."""
    return frozenset(
        axis
        for site in sites
        for axis, index in enumerate(site.index or ())
        if isinstance(index, Affine) and symbol in index.symbols()
    )


def _in_turn(one: Site, other: Site, rounds: tuple[Affine, Affine]) -> bool:
    """Whether some axis of both is the number of the round: other rounds have other cells."""
    return any(pair == rounds for pair in zip(one.index or (), other.index or ()))


def _never_meet(
    one: Site, others: Sequence[Site], values: dict[Symbol, Affine], known: tuple[Range, ...]
) -> bool:
    """Whether a site of the first nest, its symbols replaced, and some of the second are apart."""
    if one.index is None:
        return False
    index = tuple(substitute(i, values) if isinstance(i, Affine) else i for i in one.index)
    inner = tuple(
        Range(_renamed(r.symbol, values), substitute(r.lo, values), substitute(r.hi, values))
        for r in ranges(one.inside)
    )
    known = (*known, *inner)
    return all(are_apart(index, o.index, (*known, *ranges(o.inside))) for o in others)


def _renamed(symbol: Symbol, values: dict[Symbol, Affine]) -> Symbol:
    return values[symbol].symbol or symbol if symbol in values else symbol


def _code(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(stmt for stmt in body if not isinstance(stmt, Comment))
