"""Bring neighbouring nests together over their outer loops.

Changes: two nests with only comments between them, whose loops run through the same values, become
one loop around both bodies; so again with the loops inside. Branches with the same test become one.
Statements between them that the first nest has nothing to do with are moved in front of it.

Needs: symbols are unique in their scope. Guarantees: every cell gets its values in the same order,
so not a bit of a result changes. A round of the second nest then runs before the later rounds of
the first. That is refused wherever one of these may touch a cell that the other writes, for a
difference of their indices that may be zero; and wherever a check or a print would change places
with a write that can be seen.

>>> show(fuse, '''
... m[i] = max(x[i, j])
... e[i, j] = exp(x[i, j] - m[i])
... return e
... ''', x="f32[8, 9]")
for i in 0..8:
    m[i] = -inf
    for j in 0..9:
        m[i] max= x[i, j]
    for j in 0..9:
        e[i, j] = exp(x[i, j] - m[i])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.expressions import Position, walk
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Range, Symbol, const, substitute, var
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ..ir.rewrite import map_statements, rename, with_bodies
from ..ir.rewrite import substitute as substituted
from ..ir.walk import bodies, parts, statements
from .access import Accesses, Site, accesses, nodes_of
from .cells import are_apart, is_in_range, ranges
from .decision import Decided, Decision, Reason
from .products import tiled
from .summary import summary


class Together(Reason):
    """Why nests were fused."""

    SHARED = "they share arrays, and no round of one needs a later round of the other"


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
    RUNNING = "one accumulates over its innermost loop, the other can run in vectors"


def fuse(program: Program) -> Program:
    """Return the program with nests fused."""
    return fused(program).program


def fused(program: Program) -> Decided:
    """Return the program with nests fused, and which were and were not."""
    own = frozenset(node.id for node in program.locals)
    work = _Fusion(own, fresh_for(program))
    kernels = tuple(replace(k, body=work.body(k.body, ())) for k in program.kernels)
    return Decided(replace(program, kernels=kernels), tuple(work.decisions))


@dataclass(slots=True)
class _Fusion:
    """The work on one program; keeps the decisions."""

    own: frozenset[int]
    """The ids of nodes that nobody outside sees."""
    fresh: Fresh
    decisions: list[Decision] = field(default_factory=list)
    nests: dict[int, _Nest] = field(default_factory=dict)
    """What was found out about loops, by their `id`; it keeps them alive."""

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return a list of statements with neighbours fused, then the lists inside of them."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                self.nest(out, stmt, outer)
            elif isinstance(stmt, If):
                self.branch(out, stmt)
            else:
                out.append(stmt)
        return tuple(self.inside(stmt, outer) for stmt in out)

    def inside(self, stmt: Stmt, outer: tuple[Range, ...]) -> Stmt:
        lists = bodies(stmt)
        if not lists:
            return stmt
        known = (*outer, *ranges((stmt,)))
        inner = (self.body(one, known) for one in lists)
        return with_bodies(stmt, tuple(inner))

    def nest(self, out: list[Stmt], second: For, outer: tuple[Range, ...]) -> None:
        """Put a nest behind the statements in `out`, or into the last nest there."""
        at = max((n for n, stmt in enumerate(out) if isinstance(stmt, For)), default=-1)
        first = out[at] if out else None
        if at < 0 or not isinstance(first, For):
            out.append(second)
            return
        between = out[at + 1 :]
        moved = [stmt for stmt in between if not isinstance(stmt, Comment)]
        where = second.span, first.span, second.symbol.name
        if any(isinstance(stmt, If | While | Check | Permute | Print) for stmt in moved):
            self.decisions.append(Decision("apart", Apart.BETWEEN, None, "", *where))
            out.append(second)
            return
        if not _match(first, second):
            self.decisions.append(Decision("apart", Apart.RANGES, None, "", *where))
            out.append(second)
            return
        pair = _Pair(self.known(first), self.known(second), self.own, outer)
        refused, detail = pair.refusal(moved)
        if refused is not None:
            self.decisions.append(Decision("apart", refused, None, detail, *where))
            out.append(second)
            return
        self.decisions.append(Decision("fused", Together.SHARED, None, "", *where))
        comments = tuple(stmt for stmt in between if isinstance(stmt, Comment))
        both = (*first.body, *comments, *self.renamed(first, second))
        out[at:] = [*moved, replace(first, body=both)]

    def known(self, loop: For) -> _Nest:
        """Return what is asked of a loop more than once, found once."""
        if id(loop) not in self.nests:
            self.nests[id(loop)] = _nest(loop)
        return self.nests[id(loop)]

    def renamed(self, first: For, second: For) -> tuple[Stmt, ...]:
        """Return the body of the second nest with the first one's symbol in place of its own."""
        body = second.body
        taken = {first.symbol} | {s.symbol for s in statements(first.body) if isinstance(s, Let)}
        clashing = taken & {symbol for stmt in statements(body) for symbol in _bound(stmt)}
        if clashing:
            body = rename(body, {old: self.fresh.symbol(old.name) for old in clashing}, {})
        return substituted(body, {second.symbol: var(first.symbol)})

    def branch(self, out: list[Stmt], second: If) -> None:
        """Put a branch behind the statements in `out`, or together with one of the same test."""
        at = len(out) - 1
        while at >= 0 and isinstance(out[at], Comment):
            at -= 1
        first = out[at] if at >= 0 else None
        if not isinstance(first, If) or first.test != second.test:
            out.append(second)
            return
        found = accesses((first,))
        if any(found.is_written(node) for node in nodes_of(first.test)):
            out.append(second)
            return
        comments = tuple(out[at + 1 :])
        both = (*first.then, *comments, *second.then), (*first.other, *second.other)
        out[at:] = [replace(first, then=both[0], other=both[1])]


@dataclass(frozen=True, slots=True)
class _Nest:
    """A loop and what is asked of it more than once."""

    loop: For
    inside: tuple[Stmt, ...]
    """Every statement in it, at any depth."""
    found: Accesses
    kinds: frozenset[type]
    """Of what statements are in it."""

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
        return _is_visible(self.found, own)

    @property
    def runs(self) -> bool:
        """Whether rounds of an innermost loop write the same cell, or check something."""
        return self.effects or any(
            not any(isinstance(i, Affine) and self.loop.symbol in i.symbols() for i in access.index)
            for stmt in self.inside
            if isinstance(stmt, Store | Update)
            for access in parts(stmt).targets
        )


def _nest(loop: For) -> _Nest:
    inside = tuple(statements(loop.body))
    return _Nest(loop, inside, accesses((loop,)), frozenset(map(type, inside)))


def _match(first: For, second: For) -> bool:
    """Whether two loops run through the same values."""
    return (first.lo, first.hi, first.step, first.kind) == (
        second.lo, second.hi, second.step, second.kind,
    )  # fmt: skip


def _is_visible(found: Accesses, own: frozenset[int]) -> bool:
    return any(
        number not in own and any(site.writes for site in sites)
        for number, sites in found.sites.items()
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two neighbouring nests whose loops run through the same values."""

    first: _Nest
    second: _Nest
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
        return None, ""

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
        if summary(stmt).touches.isdisjoint(before.sites) and not self.first.effects:
            return True
        alone = accesses((stmt,))
        if self.first.effects and (
            _is_visible(alone, self.own) or any(s[0].node.rank for s in alone.sites.values())
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
            (cast(Stmt, self.first.loop),), lambda stmt: (stmt,) if isinstance(stmt, kept) else ()
        )
        tests = [stmt.test for stmt in statements(checks) if isinstance(stmt, Check)]
        if self._clash(accesses(checks), checked=True) is not None:
            return True
        of_positions = any(
            isinstance(e, Position) and e.index.terms for test in tests for e in walk(test)
        )
        return of_positions and not all(
            is_in_range(site.node, site.index, (*self.outer, *ranges(site.inside)))
            for sites in self.second.found.sites.values()
            for site in sites
        )

    def _clash(self, before: Accesses, checked: bool = False) -> str | None:
        """Return the label of a node by which the order of rounds matters; None if there is none.

        `before` is what the first nest does; with `checked` any two accesses are a clash.
        A later round of the first is `second.symbol + step * later`, with `later >= 1`.
        """
        first, second = self.first.loop, self.second.loop
        step, symbol = first.step, var(second.symbol)
        later = Symbol("later", -1)
        gap = second.hi - symbol if step > 0 else symbol - second.hi
        values = {first.symbol: symbol + var(later) * step}
        bound = {s for stmt in self.second.inside for s in _bound(stmt)}
        for stmt in self.first.inside:
            for name in _bound(stmt):
                if name in bound:
                    values[name] = var(Symbol(name.name, -2 - name.serial))
        known = (*self.outer, *ranges((second,)), Range(later, const(1), gap))
        for number, sites in before.sites.items():
            for one in sites:
                for other in self.second.found.sites.get(number, ()):
                    matters = checked or one.writes or other.writes
                    if matters and not _never_meet(one, other, values, known):
                        return one.node.label
        return None

    def _breaks_tiles(self) -> bool:
        """Whether a product of matrices would lose one of the loops over which it is tiled."""
        summing = [n for n in (self.first, self.second) if Update in n.kinds]
        products = [n for n in summing if n.loop.symbol in tiled(n.loop)]
        depth = max((len(_chain(nest.loop)) for nest in products), default=0)
        return len(products) == 2 or (depth > 0 and not self._reaches(depth))

    def _reaches(self, depth: int) -> bool:
        """Whether that many loops of both nests can be fused, one inside the other."""
        if depth == 1:
            return True
        one, other = _code(self.first.loop.body), _code(self.second.loop.body)
        if len(one) != 1 or len(other) != 1:
            return False
        same = {self.second.loop.symbol: var(self.first.loop.symbol)}
        (second,) = substituted(other, same)
        first = one[0]
        if not isinstance(first, For) or not isinstance(second, For) or not _match(first, second):
            return False
        known = (*self.outer, *ranges((self.first.loop,)))
        pair = _Pair(_nest(first), _nest(second), self.own, known)
        return pair._clash(pair.first.found) is None and pair._reaches(depth - 1)


def _never_meet(
    one: Site, other: Site, values: dict[Symbol, Affine], known: tuple[Range, ...]
) -> bool:
    """Whether a site of the first nest, its symbols replaced, and one of the second are apart."""
    if one.index is None:
        return False
    index = tuple(substitute(i, values) if isinstance(i, Affine) else i for i in one.index)
    inner = tuple(
        Range(_renamed(r.symbol, values), substitute(r.lo, values), substitute(r.hi, values))
        for r in ranges(one.inside[1:])
    )
    return are_apart(index, other.index, (*known, *inner, *ranges(other.inside[1:])))


def _renamed(symbol: Symbol, values: dict[Symbol, Affine]) -> Symbol:
    return values[symbol].symbol or symbol if symbol in values else symbol


def _bound(stmt: Stmt) -> tuple[Symbol, ...]:
    return (stmt.symbol,) if isinstance(stmt, For | Let) else ()


def _code(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(stmt for stmt in body if not isinstance(stmt, Comment))


def _chain(loop: For) -> tuple[For, ...]:
    """Return the loops of a nest down to the first that holds anything but one loop."""
    inner = _code(loop.body)
    if len(inner) == 1 and isinstance(inner[0], For):
        return (loop, *_chain(inner[0]))
    return (loop,)
