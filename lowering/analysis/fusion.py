"""Legality and profitability of fusing two neighbouring nests, and the reason where it is refused.

In the fused loop an iteration of the second nest runs before the later iterations of the first.
That is refused wherever one of these may access an element that the other writes, for a dependence
distance that cannot be excluded; and wherever a check or a print would be reordered with a write
that is visible. Analysis only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...base.dataclass import dataclass
from .. import thresholds
from ..ir.assignments import Alloc, Break, Continue, Let, Print
from ..ir.decision import Reason
from ..ir.expressions import Dynamic, Position, walk
from ..ir.indexing import Affine, Range, Symbol, const, substitute, var
from ..ir.loops import Check, Comment, Fill, For, If, Stmt, Store, Update, While
from ..ir.rewrite import map_statements, rename
from ..ir.rewrite import substitute as substituted
from ..ir.walk import bodies, inside, parts, statements
from .accesses import Accesses, Site, body_accesses, collect_accesses
from .effects import bound_symbols, summarize
from .product_loops import Depth, tiled_depth
from .subscripts import are_disjoint, is_in_range, ranges


class FusionRefusal(Reason):
    """Why two neighbouring nests were not fused."""

    RANGES = "their loops do not run through the same values"
    JUMPS = "one of them may be left before its last iteration"
    ORDER = "an iteration of the second depends on a later iteration of the first"
    EFFECTS = "a check or a print would trade places with a write that can be seen"
    BETWEEN = "a branch, a check, a print or another loop stands between them"
    SEPARATED = "a statement between them needs what the first one computes"
    CHECKS = "the second may rely on what later iterations of the first check"
    NOTHING = "they have no array in common"
    TILES = "one is a product of matrices, which runs faster in tiles than row by row"
    ACROSS = "they read the arrays that they share along different axes"
    RUNNING = "one accumulates over its innermost loop, the other can be vectorized"
    LITTLE = (
        "the second accumulates few of the values for which the first does much: little is saved"
    )


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop with the analysis results that fusion needs more than once."""

    loop: For
    accesses: Accesses
    """Relative to its body; one representative of sites that access the same elements."""
    reads: Mapping[int, int]
    """How often each node is read, by its id."""
    kinds: frozenset[type]
    """The types of the statements in it."""
    stays: bool
    """Of an innermost loop, whether some statement writes the same element in every iteration."""
    accumulates: bool
    """Whether every iteration adds to the same element, which none initializes."""

    @property
    def work(self) -> int:
        """How many innermost iterations one of its own has; unknown trip counts count as 64."""
        return _work(self.loop.body)

    @property
    def jumps(self) -> bool:
        """Whether it, or an iteration of it, may be left early."""
        return not self.kinds.isdisjoint((Break, Continue))

    @property
    def effects(self) -> bool:
        """Whether it may raise or print."""
        return not self.kinds.isdisjoint((Check, Print))

    @property
    def is_innermost(self) -> bool:
        """Whether there is no loop in it."""
        return self.kinds.isdisjoint((For, While))

    def is_visible(self, temporaries: frozenset[int]) -> bool:
        """Whether it writes nodes that are visible: not among these ids of temporaries."""
        return has_visible_writes(self.accesses, temporaries)

    def reads_produced_for(self, consumer: Nest) -> dict[int, int]:
        """Return the arrays that it writes and another nest reads, by id, with the number of reads
        of both."""
        read_counts: dict[int, int] = {}
        for number, sites in self.accesses.sites.items():
            consumer_sites = consumer.accesses.sites.get(number, ())
            is_read = any(site.reads for site in consumer_sites)
            if is_read and sites[0].node.rank and any(site.writes for site in sites):
                read_counts[number] = self.reads.get(number, 0) + consumer.reads[number]
        return read_counts

    @property
    def runs(self) -> bool:
        """Whether iterations of an innermost loop write the same element, or check something."""
        return self.effects or self.stays


def analyze_nest(loop: For) -> Nest:
    """Return the analysis results of a loop."""
    all_statements: tuple[Stmt, ...] = inside(loop)
    sites = body_accesses(loop).sites
    reads = {number: sum(site.reads for site in node_sites) for number, node_sites in sites.items()}
    kinds = frozenset(map(type, all_statements))
    stays = kinds.isdisjoint((For, While)) and any(
        not any(isinstance(i, Affine) and loop.symbol in i.symbols() for i in access.index)
        for stmt in all_statements
        if isinstance(stmt, Store | Update)
        for access in parts(stmt).targets
    )
    representatives = Accesses(
        {number: _representatives(node_sites) for number, node_sites in sites.items()}
    )
    return Nest(loop, representatives, reads, kinds, stays, _accumulates(loop))


def _accumulates(loop: For) -> bool:
    every: tuple[Stmt, ...] = inside(loop)
    stored = {stmt.access.node.id for stmt in every if isinstance(stmt, Store)}
    return any(
        isinstance(stmt, Update)
        and stmt.access.node.id not in stored
        and not any(
            not isinstance(at, Affine) or loop.symbol in at.symbols() for at in stmt.access.index
        )
        for stmt in every
    )


def _work(body: tuple[Stmt, ...]) -> int:
    total = 0
    for stmt in body:
        for inner in bodies(stmt):
            count = (stmt.hi - stmt.lo).constant if isinstance(stmt, For) else 1
            total += (64 if count is None else count) * _work(inner)
    return max(1, total)


def fuse_nests(first: Nest, second: Nest, both: For) -> Nest:
    """Return the analysis results of the fusion `both` of two nests over the same symbol.

    The time is linear in the second nest: a nest that many are fused with is not analyzed each
    time.
    """
    sites, reads = {**first.accesses.sites}, {**first.reads}
    for number, node_sites in second.accesses.sites.items():
        sites[number] = _representatives((*sites.get(number, ()), *node_sites))
        reads[number] = reads.get(number, 0) + second.reads[number]
    kinds, stays = first.kinds | second.kinds, first.stays or second.stays
    accumulates = first.accumulates or second.accumulates
    return Nest(both, Accesses(sites), reads, kinds, stays, accumulates)


def _representatives(sites: tuple[Site, ...]) -> tuple[Site, ...]:
    """Return one representative of the sites of a node that access the same elements in the same
    way: position and tests do not matter here."""
    if len(sites) < 2:
        return sites
    first: dict[object, Site] = {}
    for site in sites:
        first.setdefault((site.kind, *_element_key(site)), site)
    return tuple(first.values()) if len(first) < len(sites) else sites


def _element_key(site: Site) -> tuple[object, ...]:
    """Return a key that sites of a node share if they access the same elements: symbols of the
    loops around them are numbered."""
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


def has_same_range(first: For, second: For) -> bool:
    """Whether two loops have the same iteration range."""
    ends = first.hi == second.hi and first.lo == second.lo
    return ends and (first.step, first.kind) == (second.step, second.kind)


def are_unrelated(first: For, second: For) -> bool:
    """Whether two loops access no common node, and the second writes some."""
    left, right = summarize(first), summarize(second)
    nodes = right.touches
    return (
        bool(right.writes)
        and left.reads.isdisjoint(nodes) and left.writes.isdisjoint(nodes)
    )  # fmt: skip


def has_visible_writes(accesses: Accesses, temporaries: frozenset[int]) -> bool:
    """Whether anything is written that is not among the ids of temporaries."""
    return any(
        number not in temporaries and any(site.writes for site in sites)
        for number, sites in accesses.sites.items()
    )


@dataclass(frozen=True, slots=True)
class NestPair:
    """Two neighbouring nests whose loops have the same iteration range."""

    first: Nest
    second: Nest
    temporaries: frozenset[int]
    """The ids of the program's temporaries, which are unobservable: nobody sees their values after
    an error."""
    outer: tuple[Range, ...]
    """The ranges of the symbols of the loops around both."""
    splits_sums: bool = True
    """Whether short sums of what a long nest computes are not fused with it."""

    def refusal(self, moved: Sequence[Stmt]) -> tuple[FusionRefusal | None, str]:
        """Return why they cannot, or should not, be fused, and the names involved; None where they
        are.

        `moved` are the statements between them that move before the first.
        """
        first, second = self.first, self.second
        shared = any(
            number in first.accesses.sites and sites[0].node.rank
            for number, sites in second.accesses.sites.items()
        )
        checks_only = not any(s.writes for sites in second.accesses.sites.values() for s in sites)
        if not shared and not checks_only:
            return FusionRefusal.NOTHING, ""
        if first.jumps or second.jumps:
            return FusionRefusal.JUMPS, ""
        if self._reorders_effects():
            return FusionRefusal.EFFECTS, ""
        if not all(self._is_movable(stmt) for stmt in moved):
            return FusionRefusal.SEPARATED, ""
        if first.is_innermost and second.is_innermost and first.runs != second.runs:
            return FusionRefusal.RUNNING, ""
        if self.splits_sums and self._saves_little():
            return FusionRefusal.LITTLE, ""
        clash = self._find_conflict(first.accesses)
        if clash is not None:
            return FusionRefusal.ORDER, clash
        if first.effects and self._outruns_checks():
            return FusionRefusal.CHECKS, ""
        if self._breaks_tiling():
            return FusionRefusal.TILES, ""
        if self._has_different_axes():
            return FusionRefusal.ACROSS, ""
        return None, ""

    def _saves_little(self) -> bool:
        """Whether the second nest only accumulates a little of what the first computes.

        Fused, the accumulator is carried through the loop, which can be neither vectorized nor
        distributed as before; what is saved is to store and load few elements.
        """
        first, second = self.first, self.second
        return (
            second.accumulates
            and not first.accumulates
            and first.work >= thresholds.LITTLE_ACCUMULATION * second.work
        )

    def is_in_order(self) -> bool:
        """Whether no iteration of the second accesses what a later iteration of the first does."""
        return self._find_conflict(self.first.accesses) is None

    def _reorders_effects(self) -> bool:
        first, second = self.first, self.second
        return (
            (first.effects and second.effects)
            or (first.effects and second.is_visible(self.temporaries))
            or (second.effects and first.is_visible(self.temporaries))
        )

    def _is_movable(self, stmt: Stmt) -> bool:
        """Whether a statement between the nests may be moved before the first."""
        if not isinstance(stmt, Store | Update | Fill | Alloc | Let):
            return False
        before = self.first.accesses
        touched = summarize(stmt).touches
        if not self.first.effects and not any(number in before.sites for number in touched):
            return True
        alone = collect_accesses((stmt,))
        if self.first.effects and (
            has_visible_writes(alone, self.temporaries)
            or any(s[0].node.rank for s in alone.sites.values())
        ):
            return False
        return not any(
            site.writes or before.is_written(site.node)
            for number, sites in alone.sites.items()
            if number in before.sites
            for site in sites
        )

    def _outruns_checks(self) -> bool:
        """Whether an iteration of the second may use a subscript that a later iteration of the
        first checks.

        Where checks read elements, the second must not access these; where they are of index
        expressions, its subscripts have to be in range without them.
        """
        structural = (For, While, If, Check)
        checks = map_statements(
            self.first.loop.body, lambda stmt: (stmt,) if isinstance(stmt, structural) else ()
        )
        tests = [stmt.test for stmt in statements(checks) if isinstance(stmt, Check)]
        if self._find_conflict(collect_accesses(checks), checked=True) is not None:
            return True
        of_positions = any(
            isinstance(e, Position) and e.index.terms for test in tests for e in walk(test)
        )
        domain = (*self.outer, *ranges((self.second.loop,)))
        return of_positions and not all(
            is_in_range(site.node, site.index, (*domain, *ranges(site.inside)))
            for sites in self.second.accesses.sites.values()
            for site in sites
        )

    def _find_conflict(self, before: Accesses, checked: bool = False) -> str | None:
        """Return the label of a node whose dependences forbid the order of the fused loop; None if
        there is none.

        `before` are the accesses of the first nest; with `checked` any two accesses count as a
        dependence. A later iteration of the first is `second.symbol + step * later`, with `later >=
        1`.
        """
        variables = var(self.first.loop.symbol), var(self.second.loop.symbol)
        later: _LaterValues | None = None
        clashing: dict[int, str] = {}
        common = [number for number in self.second.accesses.sites if number in before.sites]
        for number in common:
            others = self.second.accesses.sites[number]
            for source in before.sites[number]:
                conflicting = [
                    sink for sink in others
                    if (checked or source.writes or sink.writes)
                    and not _has_equal_subscript(source, sink, variables)
                ]  # fmt: skip
                if conflicting:
                    later = later or self._later()
                    if not _are_disjoint(source, conflicting, *later):
                        clashing[number] = source.node.label
                        break
        first = (number for number in before.sites if number in clashing) if clashing else ()
        return next((clashing[number] for number in first), None)

    def _later(self) -> _LaterValues:
        """Return the values of the first nest's symbols in a later iteration, and all ranges."""
        first, second = self.first.loop, self.second.loop
        step, symbol = first.step, var(second.symbol)
        later = Symbol("later", -1)
        gap = second.hi - symbol if step > 0 else symbol - second.hi
        values = {first.symbol: symbol + var(later) * step}
        others = bound_symbols((second,)) & summarize(first).bound
        for name in others - {first.symbol}:  # the second's own may be that of an inner loop
            values[name] = var(Symbol(name.name, -2 - name.serial))
        return values, (*self.outer, *ranges((second,)), Range(later, const(1), gap))

    def _has_different_axes(self) -> bool:
        """Whether both nests read arrays each along another axis, and share little besides.

        Fusion then saves next to no memory traffic, and one of them loses contiguous accesses.
        """
        across = along = 0
        for number, sites in self.second.accesses.sites.items():
            first_sites = self.first.accesses.sites.get(number, ())
            if not first_sites or not sites[0].node.rank:
                continue
            first = _elements_by_axis(first_sites, self.first.loop.symbol)
            second = _elements_by_axis(sites, self.second.loop.symbol)
            common = first.keys() & second.keys()
            if common or any(site.writes for site in (*first_sites, *sites)):
                counts = [max(first[axis], second[axis]) for axis in common]
                along = max(along, 1, *counts)
            elif first and second:
                across = max(across, *first.values(), *second.values())
        return across > 0 and across >= thresholds.LITTLE_SHARED * along

    def _breaks_tiling(self) -> bool:
        """Whether a product of matrices would lose one of the loops over which it is tiled."""
        reducing = [n for n in (self.first, self.second) if Update in n.kinds]
        depths = [(n is self.second, tiled_depth(n.loop)) for n in reducing]
        products = [(is_late, depth) for is_late, depth in depths if depth.loops]
        return len(products) == 2 or not all(self._can_fuse_depth(*product) for product in products)

    def _can_fuse_depth(self, is_late: bool, depth: Depth) -> bool:
        """Whether so many loops of both nests can be fused, one inside the other.

        The first may already be a fusion of several nests, whose inner loops are fused later. The
        product is in the second where it `is_late`; the other nest has to compute its elements
        independently.
        """
        partner = self.first if is_late else self.second
        if not depth.is_tiled_inside and not self._is_independent(partner):
            return False
        if depth.loops == 1:
            return depth.is_tiled_inside or self._is_tileable_around(partner, is_late)
        first_body, second_body = (
            _without_comments(self.first.loop.body),
            _without_comments(self.second.loop.body),
        )
        if len(second_body) != 1:
            return False
        symbol = self.first.loop.symbol
        second_body = rename(second_body, {symbol: Symbol(symbol.name, -2 - symbol.serial)}, {})
        (second,) = substituted(second_body, {self.second.loop.symbol: var(symbol)})
        if not isinstance(second, For):
            return False
        domain = (*self.outer, *ranges((self.first.loop,)))
        inner = depth._replace(loops=depth.loops - 1)
        return all(
            isinstance(first, For)
            and has_same_range(first, second)
            and NestPair(
                analyze_nest(first), analyze_nest(second), self.temporaries, domain
            )._can_fuse_inside(is_late, inner)
            for first in first_body
        )

    def _can_fuse_inside(self, is_late: bool, depth: Depth) -> bool:
        return self.is_in_order() and self._can_fuse_depth(is_late, depth)

    def _is_independent(self, nest: Nest) -> bool:
        """Whether iterations of a nest are independent, with scalars privatized."""
        sites = {
            number: node_sites
            for number, node_sites in nest.accesses.sites.items()
            if node_sites[0].node.rank
            or number not in self.temporaries
            or node_sites[0].kind != "write"
        }
        return (
            NestPair(nest, nest, self.temporaries, self.outer)._find_conflict(Accesses(sites))
            is None
        )

    def _is_tileable_around(self, partner: Nest, is_late: bool) -> bool:
        """Whether a nest does nothing around an element of a product that tiling cannot do, too.

        Before the product that is only to compute its initial value.
        """
        if not is_late:
            return partner.kinds <= {Store, Update, If, Comment}
        sums = self.second.accesses.sites
        return partner.kinds <= {Store, Comment} and all(
            not sites[0].node.rank or any(site.kind == "update" for site in sums.get(number, ()))
            for number, sites in partner.accesses.sites.items()
            if any(site.writes for site in sites)
        )


_LaterValues = tuple[dict[Symbol, Affine], tuple[Range, ...]]


def _elements_by_axis(sites: Sequence[Site], symbol: Symbol) -> dict[int, int]:
    """Return the axes whose subscripts use a symbol, with the most elements that a site accesses
    there in one iteration."""
    found: dict[int, int] = {}
    for site in sites:
        for axis, index in enumerate(site.index or ()):
            if isinstance(index, Affine) and symbol in index.symbols():
                found[axis] = max(found.get(axis, 1), _elements(site))
    return found


def _elements(site: Site) -> int:
    """Return how many elements a site accesses in one iteration of the nest."""
    used = frozenset[Symbol]().union(
        *(index.symbols() for index in site.index or () if isinstance(index, Affine))
    )
    counts = [(r.hi - r.lo).constant for r in ranges(site.inside) if r.symbol in used]
    return prod(64 if count is None else count for count in counts)


def _has_equal_subscript(source: Site, sink: Site, variables: tuple[Affine, Affine]) -> bool:
    """Whether some axis of both is subscripted by the loop variables: other iterations have other
    elements."""
    return any(pair == variables for pair in zip(source.index or (), sink.index or ()))


def _are_disjoint(
    source: Site, others: Sequence[Site], values: dict[Symbol, Affine], domain: tuple[Range, ...]
) -> bool:
    """Whether a site of the first nest, its symbols replaced, and some of the second are
    disjoint."""
    if source.index is None:
        return False
    index = tuple(substitute(i, values) if isinstance(i, Affine) else i for i in source.index)
    inner = tuple(
        Range(_renamed(r.symbol, values), substitute(r.lo, values), substitute(r.hi, values))
        for r in ranges(source.inside)
    )
    domain = (*domain, *inner)
    return all(are_disjoint(index, o.index, (*domain, *ranges(o.inside))) for o in others)


def _renamed(symbol: Symbol, values: dict[Symbol, Affine]) -> Symbol:
    return values[symbol].symbol or symbol if symbol in values else symbol


def _without_comments(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(stmt for stmt in body if not isinstance(stmt, Comment))
