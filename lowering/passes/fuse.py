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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import cast

from ..clash import symbols_of
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.expressions import Apply, Cast, Expr
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Range, Symbol, const, substitute, var
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ..ir.walk import binds, bodies, parts, rename, statements, with_bodies
from ..ir.walk import substitute as substituted
from .access import Accesses, Site, accesses, nodes_of
from .cells import are_apart, ranges
from .decision import Decided, Decision, Reason

TILED = 4096
"""From how many points on a product of matrices is worth tiling over both of its outer axes."""


class Together(Reason):
    """Why nests were fused."""

    SHARED = "they share arrays, and no round of one needs a later round of the other"


class Apart(Reason):
    """Why two neighbouring nests were not fused."""

    RANGES = "their loops do not run through the same values"
    JUMPS = "one of them may be left before its last round"
    ORDER = "a round of the second touches what a later round of the first does"
    EFFECTS = "a check or a print would change places with a write that can be seen"
    SEPARATED = "a statement between them needs what the first one does"
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
        inner = (self.body(cast("tuple[Stmt, ...]", one), known) for one in lists)
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
        if any(isinstance(stmt, If | While | Check | Permute | Print) for stmt in moved):
            out.append(second)
            return
        if not _match(first, second):
            self.decisions.append(Decision("apart", Apart.RANGES, span=second.span))
            out.append(second)
            return
        pair = _Pair(_nest(first), _nest(second), self.own, outer)
        refused, detail = pair.refusal(moved)
        if refused is not Apart.NOTHING:
            outcome, reason = ("apart", refused) if refused else ("fused", Together.SHARED)
            self.decisions.append(
                Decision(outcome, reason, None, detail, second.span)  # type: ignore[arg-type]
            )
        if refused:
            out.append(second)
            return
        comments = tuple(stmt for stmt in between if isinstance(stmt, Comment))
        both = (*first.body, *comments, *self.renamed(first, second))
        out[at:] = [*moved, replace(first, body=both)]

    def renamed(self, first: For, second: For) -> tuple[Stmt, ...]:
        """Return the body of the second nest with the first one's symbol in place of its own."""
        body = second.body
        if any(first.symbol in binds(stmt) for stmt in statements(body)):
            body = rename(body, {first.symbol: self.fresh.symbol(first.symbol.name)}, {})
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
    jumps: bool
    effects: bool
    """Whether it may raise or print."""
    is_innermost: bool

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
    return _Nest(
        loop,
        inside,
        accesses((loop,)),
        any(isinstance(stmt, Break | Continue) for stmt in inside),
        any(isinstance(stmt, Check | Print) for stmt in inside),
        not any(isinstance(stmt, For | While) for stmt in inside),
    )


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
        clash = self._clash()
        if clash is not None:
            return Apart.ORDER, clash
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
        alone = accesses((stmt,))
        if self.first.effects and _is_visible(alone, self.own):
            return False
        before = self.first.found
        return not any(
            site.writes or before.is_written(site.node)
            for number, sites in alone.sites.items()
            if number in before.sites
            for site in sites
        )

    def _clash(self) -> str | None:
        """Return the label of a node by which the order of rounds matters; None if there is none.

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
        for number, sites in self.first.found.sites.items():
            for one in sites:
                for other in self.second.found.sites.get(number, ()):
                    if (one.writes or other.writes) and not _never_meet(one, other, values, known):
                        return one.node.label
        return None

    def _breaks_tiles(self) -> bool:
        """Whether a product of matrices would lose one of the loops over which it is tiled."""
        tiled = [nest for nest in (self.first, self.second) if nest.loop.symbol in _tiled(nest)]
        depth = max((len(_chain(nest.loop)) for nest in tiled), default=0)
        return len(tiled) == 2 or (depth > 0 and not self._reaches(depth))

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
        return pair._clash() is None and pair._reaches(depth - 1)


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


def _tiled(nest: _Nest) -> frozenset[Symbol]:
    """Return the symbols over which a large product of matrices in the nest is tiled.

    That is what indexes its target and just one of its factors.
    """
    out: frozenset[Symbol] = frozenset()
    for update, loops in _updates((nest.loop,), ()):
        match update.value:
            case Apply(op, (left, right), _) if op.name == "mul" and update.op.name == "add":
                out |= _sides(update, _under(left), _under(right), loops)
            case _:
                pass
    return out


def _sides(update: Update, left: Expr, right: Expr, loops: tuple[For, ...]) -> frozenset[Symbol]:
    bound = {loop.symbol for loop in loops}
    target = {s for i in update.access.index if isinstance(i, Affine) for s in i.symbols()} & bound
    rows = target & (symbols_of(left) - symbols_of(right))
    columns = target & (symbols_of(right) - symbols_of(left))
    sizes = ((loop.hi - loop.lo).constant for loop in loops)
    points = prod(64 if size is None else size for size in sizes)
    if rows and columns and bound - target and points >= TILED:
        return frozenset(rows | columns)
    return frozenset()


def _under(expr: Expr) -> Expr:
    return _under(expr.value) if isinstance(expr, Cast) else expr


def _updates(
    body: tuple[Stmt, ...], loops: tuple[For, ...]
) -> Iterator[tuple[Update, tuple[For, ...]]]:
    for stmt in body:
        if isinstance(stmt, Update):
            yield stmt, loops
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        for one in bodies(stmt):
            yield from _updates(cast("tuple[Stmt, ...]", one), inner)
