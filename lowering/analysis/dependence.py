"""Dependence test: whether the iterations of a loop are independent, so that any order is legal.

Two iterations of a loop depend on each other where both access one element of an array and one of
them writes it. For each pair of accesses to an array the equations "the same element, in different
iterations" are solved in integers, with sizes as unknowns (`presburger`). So the answer is exact
for affine subscripts, and a loop is refused with the two iterations in conflict. Where a subscript
depends on data, only the other axes count. Analysis only.

`loop_local_nodes` and `find_privatizable` say which temporaries are privatizable.

>>> program = lowered("y[i] = x[i] * 2", y="f32[8]", x="f32[8]")
>>> loop = program.kernels[0].body[1]
>>> print(find_dependence(loop))
None
>>> program = lowered('''
... for t in range(1, 8):
...     y[t] = y[t - 1] * x[t]
... ''', y="f32[8]", x="f32[8]")
>>> print(find_dependence(program.kernels[0].body[0]))
two iterations use the same element: `y[t]` in iteration t = 1 and `y[t - 1]` in iteration t = 2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import LazyModule
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.bounds import Bounds
from ..ir.decision import Reason
from ..ir.expressions import Index
from ..ir.indexing import Affine, Quasi, Range, Symbol, affine_text, const, substitute, var
from ..ir.loops import Check, For, If, Program, Stmt, While
from ..ir.memo import memoize
from ..ir.walk import binds, bodies, direct_reads, direct_writes, permuted_nodes, statements
from .accesses import Site, collect_accesses
from .involution import are_paired
from .subscripts import are_disjoint, implied_inequalities, ranges

if TYPE_CHECKING:
    from . import presburger
else:  # what few programs need
    presburger = LazyModule(".presburger", __package__)


NO_BOUNDS = Bounds()
Ranks = tuple[Affine, Affine]
UseCounts = dict[int, int]
"""Number of accesses of nodes, by their ids."""


class Dependent(Reason):
    """Why the iterations of a loop have to run in their order."""

    JUMPS = "an iteration may end the loop"
    PRINTS = "the iterations print one after the other"
    CHECKS = "where a check fails, later iterations must not have written what can be seen"
    STORAGE = "the iterations allocate arrays, or exchange them"
    SCALAR = "every iteration uses the same element"
    CELL = "two iterations use the same element"
    UNCLEAR = "two iterations may use the same element"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a transformation of a loop is refused."""

    reason: Reason
    detail: str = ""
    """Names and numbers."""

    def __str__(self) -> str:
        return f"{self.reason}{': ' if self.detail else ''}{self.detail}"


def find_dependence(
    loop: For,
    privatized: frozenset[int] = frozenset(),
    unobservable: frozenset[int] = frozenset(),
    outer: tuple[Range, ...] = (),
    bounds: Bounds = NO_BOUNDS,
) -> Refusal | None:
    """Return why the iterations of a loop may not run in any order, None where they may.

    `privatized` are the ids of nodes of which each iteration has a private copy, `unobservable`
    those of nodes whose values nobody sees after an error (temporaries, results): a loop that may
    fail a `Check` is refused where it writes others. `outer` are the ranges of symbols around the
    loop, `bounds` their bounds. Iterations may end early by a `Continue`, and may fail: which one
    fails first is for the caller to keep, see `parallel_band.has_checks`.
    """
    if bounds is not NO_BOUNDS:
        return _find_refusal(loop, privatized, unobservable, outer, bounds)
    key = (privatized, unobservable, outer)
    try:
        memo: dict[object, Refusal | None] = loop.refusals
    except AttributeError:
        memo = memoize(loop, "refusals", {})
    if key not in memo:
        memo[key] = _find_refusal(loop, privatized, unobservable, outer, bounds)
    return memo[key]


def _find_refusal(
    loop: For, privatized: frozenset[int], unobservable: frozenset[int], outer: tuple[Range, ...],
    bounds: Bounds,
) -> Refusal | None:  # fmt: skip
    if has_break(loop.body):
        return Refusal(Dependent.JUMPS)
    touched = collect_accesses((loop,))
    inside = statements(loop.body)
    for stmt in inside:
        match stmt:
            case Print():
                return Refusal(Dependent.PRINTS)
            case Permute():
                return Refusal(Dependent.STORAGE, f"`{stmt.nodes[0].label}`")
            case Alloc(node) if node.id not in privatized:
                return Refusal(Dependent.STORAGE, f"`{node.label}`")
            case _:
                pass
    if any(isinstance(stmt, Check) for stmt in inside):
        visible = [
            n for n, sites in touched.sites.items() if n not in unobservable and _is_written(sites)
        ]
        if visible:
            return Refusal(Dependent.CHECKS, f"`{touched.sites[visible[0]][0].node.label}`")
    for number, sites in touched.sites.items():
        node = sites[0].node
        if number not in privatized and _is_written(sites) and not _is_idempotent_marking(sites):
            if not node.rank:  # even with one iteration at most: its value must not be lost
                return Refusal(Dependent.SCALAR, f"`{node.label}`")
            refusal = _find_conflict(loop, sites, outer, bounds)
            if refusal is not None and not are_paired(loop, sites):
                return refusal
    return None


def has_carried_dependence(
    loop: For, source: Site, sink: Site, outer: tuple[Range, ...] = (), ranks: Ranks | None = None
) -> bool:
    """Whether there is a loop-carried dependence from the first access to the second: it may
    access, in a later iteration, an element that the first does. With ranks (index expressions at
    each access) only where that of the second is not greater.

    >>> program = lowered('''
    ... for i in range(1, 8):
    ...     y[i] = x[i] * 2
    ...     z[i] = y[i - 1]
    ... ''', y="f32[8]", x="f32[8]", z="f32[8]")
    >>> loop = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)][0]
    >>> write, read = collect_accesses((loop,)).of(program.parameters[0].node)
    >>> has_carried_dependence(loop, read, write), has_carried_dependence(loop, write, read)
    (False, True)
    """
    return _DependenceTest(loop, source, sink, outer, ranks).refusal() is not None


def loop_local_nodes(program: Program) -> Mapping[int, frozenset[int]]:
    """Return by the `id` of each loop the ids of the temporaries that only its body accesses."""
    totals, inside = count_uses(program)
    return {
        loop: frozenset(number for number, count in uses.items() if count == totals[number])
        for loop, uses in inside.items()
    }


def count_uses(program: Program) -> tuple[UseCounts, Mapping[int, UseCounts]]:
    """Return how often each temporary is accessed in all, and in the body of each loop by its
    `id`."""
    temporaries = {node.id for node in program.locals} - permuted_nodes(program)
    totals: UseCounts = {}
    inside: dict[int, UseCounts] = {}
    for kernel in program.kernels:
        for stmt in kernel.body:
            _add_counts(totals, _count_uses(stmt, temporaries, inside))
    return totals, inside


def find_privatizable(
    loop: For, only: frozenset[int], annotations: Iterable[tuple[int, Symbol]] = ()
) -> frozenset[int]:
    """Return the privatizable temporaries among those `only` this loop accesses: no iteration reads
    a value of another.

    `annotations` are from before loops were transformed, see `Program.private_annotations`.
    """
    touched = collect_accesses((loop,))
    nodes = (touched.sites[number][0].node for number in only if number in touched.sites)
    return frozenset(
        node.id for node in nodes
        if node.purpose in _FILLED_PURPOSES
        or _is_annotated(touched.of(node), {s for number, s in annotations if number == node.id})
        or not touched.is_read_before_written(node, 1)
    )  # fmt: skip


def _is_annotated(sites: tuple[Site, ...], symbols: set[Symbol]) -> bool:
    """Whether an array is only accessed in loops that are annotated with it as private."""
    return bool(symbols) and all(
        any(isinstance(stmt, For) and stmt.symbol in symbols for stmt in site.inside)
        for site in sites
    )


def _count_uses(stmt: Stmt, temporaries: set[int], inside: dict[int, UseCounts]) -> UseCounts:
    """Return how often a statement accesses each temporary; those of loops are put into `inside` by
    their `id`."""
    uses: UseCounts = {}
    for body in bodies(stmt):
        for nested in body:
            _add_counts(uses, _count_uses(nested, temporaries, inside))
    if isinstance(stmt, For):
        inside[id(stmt)] = {**uses}
    for node in (*direct_reads(stmt), *direct_writes(stmt)):
        if node.id in temporaries:
            uses[node.id] = uses.get(node.id, 0) + 1
    return uses


def _add_counts(total: UseCounts, more: UseCounts) -> None:
    for number, times in more.items():
        total[number] = total.get(number, 0) + times


def has_break(body: tuple[Stmt, ...]) -> bool:
    """Whether the loop with this body, not one nested in it, may be left by a `Break`."""
    return any(
        isinstance(stmt, Break)
        or (isinstance(stmt, If) and (has_break(stmt.then) or has_break(stmt.orelse)))
        for stmt in body
    )


def has_early_exit(body: tuple[Stmt, ...]) -> bool:
    """Whether an iteration of the loop with this body may end before its last statement."""
    return any(
        isinstance(stmt, Break | Continue)
        or (isinstance(stmt, If) and (has_early_exit(stmt.then) or has_early_exit(stmt.orelse)))
        for stmt in body
    )


def _is_written(sites: tuple[Site, ...]) -> bool:
    return any(site.writes for site in sites)


def _is_idempotent_marking(sites: tuple[Site, ...]) -> bool:
    """Whether iterations only mark elements of an array, each an idempotent update."""
    return sites[0].node.purpose == "marks" and all(site.kind == "update" for site in sites)


def _find_conflict(
    loop: For, sites: tuple[Site, ...], outer: tuple[Range, ...], bounds: Bounds
) -> Refusal | None:
    """Return why two iterations are in conflict over an element of a node; None where none are."""
    for first, second in combinations_with_replacement(_representatives(sites), 2):
        if (first.writes or second.writes) and not _has_nonzero_stride(loop, first, second, bounds):
            orders = ((first, second), (second, first)) if first is not second else ((first,) * 2,)
            for source, sink in orders:
                refusal = _DependenceTest(loop, source, sink, outer).refusal()
                if refusal is not None:
                    return refusal
    return None


def _representatives(sites: Iterable[Site]) -> Collection[Site]:
    """Return one representative of all sites that access a node alike: their dependences are the
    same."""
    representatives: dict[object, Site] = {}
    for site in sites:
        enclosing = tuple(map(id, site.inside))
        representatives.setdefault((site.index, site.writes, site.tests, enclosing), site)
    return representatives.values()


def _has_nonzero_stride(loop: For, first: Site, second: Site, bounds: Bounds) -> bool:
    """Whether two accesses have the same index, which each iteration moves by the same distance
    that is not zero but no constant: `y[a + d*j]` with `d` greater than zero.

    >>> program = lowered('''
    ... for i in range(2, 30):
    ...     for j in range(9):
    ...         y[i * j + i] = 0
    ... ''', y="f32[900]")
    >>> (outer,) = program.kernels[0].body
    >>> find_dependence(outer.body[0]) is None
    False
    >>> bounds = facts_of(program).bounds_outside(outer.body[0])
    >>> find_dependence(outer.body[0], bounds=bounds) is None
    True
    """
    if first.index != second.index or first.index is None:
        return False
    if any(isinstance(stmt, While) or binds(stmt) for stmt in statements(loop.body)):
        return False
    return any(
        _moves_by_positive(at, loop.symbol, bounds) for at in first.index if isinstance(at, Affine)
    )


def _moves_by_positive(index: Affine, symbol: Symbol, bounds: Bounds) -> bool:
    """Whether a subscript moves by one distance, a product with a factor that is known to be
    positive."""
    for atom, _ in index.terms:
        if isinstance(atom, Quasi) and atom.op == "mul":
            for factor, side in ((atom.left, atom.right), (atom.right, atom.left)):
                rest_symbols = _symbols_without(index, atom) | factor.symbols()
                if side.symbol == symbol and symbol not in rest_symbols:
                    return (bounds.least(factor) or 0) > 0
    return False


def _symbols_without(index: Affine, atom: Quasi) -> set[Symbol]:
    """Return the symbols of a subscript without those of one of its terms."""
    parts = (Affine(((candidate, 1),)) for candidate, _ in index.terms if candidate != atom)
    return {symbol for part in parts for symbol in part.symbols()}


_DISTANCE = Symbol("later", -(2**30))
"""The dependence distance in iterations."""
Names = dict[Symbol, Affine]
_FILLED_PURPOSES = ("tile", "panel", "lanes", "stage")
"""Purposes of arrays that each iteration fills before it reads them: the transformations that
create such arrays ensure that."""


def _later_values(loop: For) -> Names:
    """Return the values of the symbols that an iteration binds in the later iteration; memoized."""
    try:
        names: Names = loop.later
    except AttributeError:
        inner_symbols = [s.symbol for s in statements(loop.body) if isinstance(s, For | Let)]
        names = {symbol: var(Symbol(symbol.name, -2 - symbol.serial)) for symbol in inner_symbols}
        names[loop.symbol] = var(loop.symbol) + var(_DISTANCE) * loop.step
        memoize(loop, "later", names)
    return names


@dataclass(frozen=True, slots=True)
class _DependenceTest:
    """Two accesses of one node, the second in a later iteration."""

    loop: For
    one: Site
    other: Site
    outer: tuple[Range, ...]
    ranks: Ranks | None = None
    """Index expressions at each of them, of which the second is not greater."""

    def refusal(self) -> Refusal | None:
        """Return in which iterations both access one element; None where they never do."""
        node = self.one.node
        if self.one.index is None or self.other.index is None:
            return Refusal(Dependent.STORAGE, f"`{node.label}`")
        names = _later_values(self.loop)
        later = _substitute_index(self.other.index, names)
        if are_disjoint(self.one.index, later, self.all_ranges(names)):
            return None
        solution = presburger.solve(*self.system(names, later))
        if solution == "none":
            return None
        source, sink = _spell(self.one), _spell(self.other)
        if isinstance(solution, str) or not self.is_exact():
            return Refusal(Dependent.UNCLEAR, source if source == sink else f"{source} and {sink}")
        reason = Dependent.CELL if node.rank else Dependent.SCALAR
        name, first = self.loop.symbol.name, solution.get(self.loop.symbol, 0)
        second = first + self.loop.step * solution[_DISTANCE]
        detail = f"{source} in iteration {name} = {first} and {sink} in iteration {name} = {second}"
        return Refusal(reason, detail)

    def all_ranges(self, names: Names) -> tuple[Range, ...]:
        """Return the ranges of all symbols, outermost first."""
        step, symbol = self.loop.step, var(self.loop.symbol)
        gap = self.loop.hi - symbol if step > 0 else symbol - self.loop.hi
        return (
            *self.outer,
            *ranges(self.one.inside),
            Range(_DISTANCE, const(1), gap),
            *(
                Range(_renamed(r.symbol, names), substitute(r.lo, names), substitute(r.hi, names))
                for r in ranges(self.other.inside[1:])
            ),
        )

    def system(self, names: Names, later: tuple[Index, ...]) -> tuple[list[Affine], list[Affine]]:
        """Return the expressions that are zero, and those that are not negative, where both access
        one element."""
        zero: list[Affine] = []
        least = [var(_DISTANCE) - 1]
        if self.ranks is not None:
            least.append(self.ranks[0] - substitute(self.ranks[1], names))
        for r in self.outer:
            least += [var(r.symbol) - r.lo, r.hi - 1 - var(r.symbol)]
        for site, values in ((self.one, {}), (self.other, names)):
            loops = [stmt for stmt in site.inside if isinstance(stmt, For)]
            for number, loop in enumerate(loops):
                lattice = Symbol("round", _DISTANCE.serial - 1 - 2 * number - bool(values))
                at = substitute(var(loop.symbol), values)
                lo, hi = substitute(loop.lo, values), substitute(loop.hi, values)
                zero.append(at - lo - var(lattice) * loop.step)
                least += [var(lattice), hi - at - 1 if loop.step > 0 else at - hi - 1]
            least += [
                substitute(fact, values)
                for test in site.tests
                for fact in implied_inequalities(test)
            ]
        for left, right, size in zip(self.one.index or (), later, self.one.node.shape, strict=True):
            if isinstance(left, Affine) and isinstance(right, Affine):
                zero.append(left - right)
                least += [left, size - 1 - left]
        return zero, least

    def is_exact(self) -> bool:
        """Whether the system is equivalent to both accesses happening, not only implied by that."""
        data = {s.symbol for s in statements(self.loop.body) if isinstance(s, Let)}
        return all(
            not any(isinstance(stmt, While) for stmt in site.inside)
            and all(tuple(implied_inequalities(test)) for test in site.tests)
            and all(isinstance(i, Affine) and not i.symbols() & data for i in site.index or ())
            for site in (self.one, self.other)
        )


def _substitute_index(index: tuple[Index, ...], names: Names) -> tuple[Index, ...]:
    return tuple(substitute(i, names) if isinstance(i, Affine) else i for i in index)


def _renamed(symbol: Symbol, names: Names) -> Symbol:
    return names[symbol].symbol or symbol


def _spell(site: Site) -> str:
    index = ", ".join(affine_text(i) if isinstance(i, Affine) else "..." for i in site.index or ())
    return f"`{site.node.label}[{index}]`" if site.node.rank else f"`{site.node.label}`"
