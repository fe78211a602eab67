"""Whether the rounds of a loop may run in any order, or at once: what every schedule asks first.

Two rounds of a loop depend on each other where both use one element of an array and one of them
writes it. For each two places that use an array the equations "the same element, in different
rounds" are solved in integers, sizes being unknowns. So the answer is exact for affine indices; a
loop is refused with the rounds that clash. Where data decides which element is meant, only the
other axes count. It changes nothing.

`confined` and `private` say which temporaries each round may have a copy of its own of.

>>> program = lowered("y[i] = x[i] * 2", y="f32[8]", x="f32[8]")
>>> loop = program.kernels[0].body[1]
>>> print(independent(loop))
None
>>> program = lowered('''
... for t in range(1, 8):
...     y[t] = y[t - 1] * x[t]
... ''', y="f32[8]", x="f32[8]")
>>> print(independent(program.kernels[0].body[0]))
two rounds use the same element: `y[t]` in the round t = 1 and `y[t - 1]` in the round t = 2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import Later
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.bounds import Bounds
from ..ir.decision import Reason
from ..ir.expressions import Index
from ..ir.indexing import Affine, Quasi, Range, Symbol, const, show, substitute, var
from ..ir.loops import Check, For, If, Program, Stmt, While
from ..ir.memo import keep
from ..ir.walk import binds, bodies, exchanged, own_reads, own_writes, statements
from .accesses import Site, accesses
from .involution import are_partners
from .subscripts import are_apart, facts, ranges

if TYPE_CHECKING:
    from . import presburger
else:  # what few programs need
    presburger = Later(".presburger", __package__)


NOTHING = Bounds()
Ranks = tuple[Affine, Affine]
Uses = dict[int, int]
"""How often nodes are used, by their ids."""


class Dependent(Reason):
    """Why the rounds of a loop have to run in their order."""

    JUMPS = "a round may end the loop"
    PRINTS = "the rounds print one after the other"
    CHECKS = "where a check fails, later rounds must not have written what can be seen"
    STORAGE = "the rounds give arrays storage, or exchange them"
    SCALAR = "every round uses the same element"
    CELL = "two rounds use the same element"
    UNCLEAR = "two rounds may use the same element"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something may not be done to a loop."""

    reason: Reason
    detail: str = ""
    """Names and numbers."""

    def __str__(self) -> str:
        return f"{self.reason}{': ' if self.detail else ''}{self.detail}"


def independent(
    loop: For,
    private: frozenset[int] = frozenset(),
    own: frozenset[int] = frozenset(),
    outer: tuple[Range, ...] = (),
    known: Bounds = NOTHING,
) -> Refusal | None:
    """Return why the rounds of a loop may not run in any order, None where they may.

    `private` are the ids of nodes of which each round gets its own, `own` those of what nobody sees
    after an error, temporaries and results, `outer` what is known of the symbols around the loop,
    `known` what these are between.
    Rounds may end early by a `Continue`, and may fail a `Check`: which round fails first, who runs
    them has to find out.
    """
    if known is not NOTHING:
        return _refusal(loop, private, own, outer, known)
    asked = (private, own, outer)
    try:
        found: dict[object, Refusal | None] = loop.refusals
    except AttributeError:
        found = keep(loop, "refusals", {})
    if asked not in found:
        found[asked] = _refusal(loop, private, own, outer, known)
    return found[asked]


def _refusal(
    loop: For, private: frozenset[int], own: frozenset[int], outer: tuple[Range, ...], known: Bounds
) -> Refusal | None:  # fmt: skip
    if is_left(loop.body):
        return Refusal(Dependent.JUMPS)
    found = accesses((loop,))
    inside = statements(loop.body)
    for stmt in inside:
        match stmt:
            case Print():
                return Refusal(Dependent.PRINTS)
            case Permute():
                return Refusal(Dependent.STORAGE, f"`{stmt.nodes[0].label}`")
            case Alloc(node) if node.id not in private:
                return Refusal(Dependent.STORAGE, f"`{node.label}`")
            case _:
                pass
    if any(isinstance(stmt, Check) for stmt in inside):
        seen = [n for n, sites in found.sites.items() if n not in own and _is_written(sites)]
        if seen:
            return Refusal(Dependent.CHECKS, f"`{found.sites[seen[0]][0].node.label}`")
    for number, sites in found.sites.items():
        node = sites[0].node
        if number not in private and _is_written(sites) and not _are_marks(sites):
            if not node.rank:  # even where there is one round at most: a round may not keep it
                return Refusal(Dependent.SCALAR, f"`{node.label}`")
            refusal = _clash(loop, sites, outer, known)
            if refusal is not None and not are_partners(loop, sites):
                return refusal
    return None


def overtakes(
    loop: For, one: Site, other: Site, outer: tuple[Range, ...] = (), ranks: Ranks | None = None
) -> bool:
    """Whether the second of two places may use, in a later round, an element that the first does;
    with ranks, numbers in the symbols at each place, where that of the second is not greater.

    >>> program = lowered('''
    ... for i in range(1, 8):
    ...     y[i] = x[i] * 2
    ...     z[i] = y[i - 1]
    ... ''', y="f32[8]", x="f32[8]", z="f32[8]")
    >>> loop = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)][0]
    >>> write, read = accesses((loop,)).of(program.parameters[0].node)
    >>> overtakes(loop, read, write), overtakes(loop, write, read)
    (False, True)
    """
    return _Meeting(loop, one, other, outer, ranks).refusal() is not None


def confined(program: Program) -> Mapping[int, frozenset[int]]:
    """Return by the `id` of each loop the ids of the temporaries that only its body uses."""
    total, inside = uses_of(program)
    return {
        loop: frozenset(number for number, times in uses.items() if times == total[number])
        for loop, uses in inside.items()
    }


def uses_of(program: Program) -> tuple[Uses, Mapping[int, Uses]]:
    """Return how often each temporary is used in all, and by the `id` of each loop in its body."""
    own = {node.id for node in program.locals} - exchanged(program)
    total: Uses = {}
    inside: dict[int, Uses] = {}
    for kernel in program.kernels:
        for stmt in kernel.body:
            _add(total, _uses(stmt, own, inside))
    return total, inside


def private(
    loop: For, only: frozenset[int], noted: Iterable[tuple[int, Symbol]] = ()
) -> frozenset[int]:
    """Return those temporaries, of which `only` the loop uses, that no round has from another.

    `noted` is what is known of them from before, see `Program.rounds`.
    """
    found = accesses((loop,))
    nodes = (found.sites[number][0].node for number in only if number in found.sites)
    return frozenset(
        node.id for node in nodes
        if node.purpose in _FILLED
        or _is_of_rounds(found.of(node), {symbol for number, symbol in noted if number == node.id})
        or not found.read_before_written(node)
    )  # fmt: skip


def _is_of_rounds(sites: tuple[Site, ...], symbols: set[Symbol]) -> bool:
    """Whether an array is only used in rounds of loops that have it for themselves."""
    return bool(symbols) and all(
        any(isinstance(stmt, For) and stmt.symbol in symbols for stmt in site.inside)
        for site in sites
    )


def _uses(stmt: Stmt, own: set[int], inside: dict[int, Uses]) -> Uses:
    """Return how often statements use each temporary; what loops do is kept by their `id`."""
    uses: Uses = {}
    for body in bodies(stmt):
        for one in body:
            _add(uses, _uses(one, own, inside))
    if isinstance(stmt, For):
        inside[id(stmt)] = {**uses}
    for node in (*own_reads(stmt), *own_writes(stmt)):
        if node.id in own:
            uses[node.id] = uses.get(node.id, 0) + 1
    return uses


def _add(total: Uses, more: Uses) -> None:
    for number, times in more.items():
        total[number] = total.get(number, 0) + times


def is_left(body: tuple[Stmt, ...]) -> bool:
    """Whether the loop with this body, not one inside of it, may be left by a `Break`."""
    return any(
        isinstance(stmt, Break)
        or (isinstance(stmt, If) and (is_left(stmt.then) or is_left(stmt.other)))
        for stmt in body
    )


def ends_early(body: tuple[Stmt, ...]) -> bool:
    """Whether an iteration of the loop with this body may end before its last statement."""
    return any(
        isinstance(stmt, Break | Continue)
        or (isinstance(stmt, If) and (ends_early(stmt.then) or ends_early(stmt.other)))
        for stmt in body
    )


def _is_written(sites: tuple[Site, ...]) -> bool:
    return any(site.writes for site in sites)


def _are_marks(sites: tuple[Site, ...]) -> bool:
    """Whether rounds do nothing to an array but to mark elements, each of which they do as one."""
    return sites[0].node.purpose == "marks" and all(site.kind == "update" for site in sites)


def _clash(
    loop: For, sites: tuple[Site, ...], outer: tuple[Range, ...], known: Bounds
) -> Refusal | None:
    """Return how two rounds use one element of a node, which one of them writes."""
    for first, second in combinations_with_replacement(_distinct(sites), 2):
        if (first.writes or second.writes) and not _keeps_apart(loop, first, second, known):
            orders = ((first, second), (second, first)) if first is not second else ((first,) * 2,)
            for one, other in orders:
                refusal = _Meeting(loop, one, other, outer).refusal()
                if refusal is not None:
                    return refusal
    return None


def _distinct(sites: Iterable[Site]) -> Collection[Site]:
    """Return the first of all sites that use a node alike: what meets one meets the others."""
    found: dict[object, Site] = {}
    for site in sites:
        around = tuple(map(id, site.inside))
        found.setdefault((site.index, site.writes, site.tests, around), site)
    return found.values()


def _keeps_apart(loop: For, one: Site, other: Site, known: Bounds) -> bool:
    """Whether two places are one that each round moves by the same distance, which is not zero but
    no number: `y[a + d*j]` with `d` greater than zero.

    >>> program = lowered('''
    ... for i in range(2, 30):
    ...     for j in range(9):
    ...         y[i * j + i] = 0
    ... ''', y="f32[900]")
    >>> (outer,) = program.kernels[0].body
    >>> independent(outer.body[0]) is None
    False
    >>> independent(outer.body[0], known=facts_of(program).around(outer.body[0])) is None
    True
    """
    if one.index != other.index or one.index is None:
        return False
    if any(isinstance(stmt, While) or binds(stmt) for stmt in statements(loop.body)):
        return False
    return any(_moves(at, loop.symbol, known) for at in one.index if isinstance(at, Affine))


def _moves(index: Affine, symbol: Symbol, known: Bounds) -> bool:
    """Whether an index moves by one distance, a product of which is known that it is not zero."""
    for atom, _ in index.terms:
        if isinstance(atom, Quasi) and atom.op == "mul":
            for by, side in ((atom.left, atom.right), (atom.right, atom.left)):
                rest = _others(index, atom) | by.symbols()
                if side.symbol == symbol and symbol not in rest:
                    return (known.least(by) or 0) > 0
    return False


def _others(index: Affine, atom: Quasi) -> set[Symbol]:
    """Return the symbols of an index but for those of one part of it."""
    parts = (Affine(((one, 1),)) for one, _ in index.terms if one != atom)
    return {symbol for part in parts for symbol in part.symbols()}


_LATER = Symbol("later", -(2**30))
"""By how many rounds one round is behind another."""
Names = dict[Symbol, Affine]
_FILLED = ("tile", "panel", "lanes", "stage")
"""What each round fills before it uses it: the schedules that make such arrays see to that."""


def _later(loop: For) -> Names:
    """Return what the symbols that a round binds are in the later round."""
    try:
        known: Names = loop.later
    except AttributeError:
        bound = [s.symbol for s in statements(loop.body) if isinstance(s, For | Let)]
        known = {symbol: var(Symbol(symbol.name, -2 - symbol.serial)) for symbol in bound}
        known[loop.symbol] = var(loop.symbol) + var(_LATER) * loop.step
        keep(loop, "later", known)
    return known


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two places that use one node, the second in a later round."""

    loop: For
    one: Site
    other: Site
    outer: tuple[Range, ...]
    ranks: Ranks | None = None
    """Numbers at each of them, of which the second is not greater."""

    def refusal(self) -> Refusal | None:
        """Return in which rounds both use one element; None where they never do."""
        node = self.one.node
        if self.one.index is None or self.other.index is None:
            return Refusal(Dependent.STORAGE, f"`{node.label}`")
        names = _later(self.loop)
        later = _at(self.other.index, names)
        if are_apart(self.one.index, later, self.known(names)):
            return None
        found = presburger.solve(*self.system(names, later))
        if found == "none":
            return None
        one, other = _spelled(self.one), _spelled(self.other)
        if isinstance(found, str) or not self.is_exact():
            return Refusal(Dependent.UNCLEAR, one if one == other else f"{one} and {other}")
        reason = Dependent.CELL if node.rank else Dependent.SCALAR
        name, first = self.loop.symbol.name, found.get(self.loop.symbol, 0)
        second = first + self.loop.step * found[_LATER]
        detail = f"{one} in the round {name} = {first} and {other} in the round {name} = {second}"
        return Refusal(reason, detail)

    def known(self, names: Names) -> tuple[Range, ...]:
        """Return through what all symbols run, outermost first."""
        step, symbol = self.loop.step, var(self.loop.symbol)
        gap = self.loop.hi - symbol if step > 0 else symbol - self.loop.hi
        return (
            *self.outer,
            *ranges(self.one.inside),
            Range(_LATER, const(1), gap),
            *(
                Range(_renamed(r.symbol, names), substitute(r.lo, names), substitute(r.hi, names))
                for r in ranges(self.other.inside[1:])
            ),
        )

    def system(self, names: Names, later: tuple[Index, ...]) -> tuple[list[Affine], list[Affine]]:
        """Return what is zero, and what is not negative, where both use one element."""
        zero: list[Affine] = []
        least = [var(_LATER) - 1]
        if self.ranks is not None:
            least.append(self.ranks[0] - substitute(self.ranks[1], names))
        for r in self.outer:
            least += [var(r.symbol) - r.lo, r.hi - 1 - var(r.symbol)]
        for site, values in ((self.one, {}), (self.other, names)):
            loops = [stmt for stmt in site.inside if isinstance(stmt, For)]
            for number, loop in enumerate(loops):
                lattice = Symbol("round", _LATER.serial - 1 - 2 * number - bool(values))
                at = substitute(var(loop.symbol), values)
                lo, hi = substitute(loop.lo, values), substitute(loop.hi, values)
                zero.append(at - lo - var(lattice) * loop.step)
                least += [var(lattice), hi - at - 1 if loop.step > 0 else at - hi - 1]
            least += [substitute(fact, values) for test in site.tests for fact in facts(test)]
        for left, right, size in zip(self.one.index or (), later, self.one.node.shape, strict=True):
            if isinstance(left, Affine) and isinstance(right, Affine):
                zero.append(left - right)
                least += [left, size - 1 - left]
        return zero, least

    def is_exact(self) -> bool:
        """Whether the system says all that there is to say about when both happen."""
        data = {s.symbol for s in statements(self.loop.body) if isinstance(s, Let)}
        return all(
            not any(isinstance(stmt, While) for stmt in site.inside)
            and all(tuple(facts(test)) for test in site.tests)
            and all(isinstance(i, Affine) and not i.symbols() & data for i in site.index or ())
            for site in (self.one, self.other)
        )


def _at(index: tuple[Index, ...], names: Names) -> tuple[Index, ...]:
    return tuple(substitute(i, names) if isinstance(i, Affine) else i for i in index)


def _renamed(symbol: Symbol, names: Names) -> Symbol:
    return names[symbol].symbol or symbol


def _spelled(site: Site) -> str:
    index = ", ".join(show(i) if isinstance(i, Affine) else "..." for i in site.index or ())
    return f"`{site.node.label}[{index}]`" if site.node.rank else f"`{site.node.label}`"
