"""Make arrays as small as their use: scalars, rows, tiles; and keep running sums in registers.

Changes: a local array loses every axis that is indexed alike wherever the array is used, by symbols
of loops around all of those places. What is left is a scalar (a C local), a row or a tile. Where a
loop only ever touches one element of an array and writes it, a scalar stands for the element during
the loop, is loaded before (or started, where the element was just started) and stored after.

Needs: nests fused, or there is little to find. Guarantees: operations and their order stay as they
are; an axis goes only where each read surely follows a write of the same round, because the next
round finds the values of the one before in the same place; no write that can be seen moves across
a check or a print; nothing is loaded that may be outside of its array.

>>> from plusequals.lowering.passes.fuse import fuse
>>> show(lambda program: shrink(fuse(program)), '''
... m[i] = max(x[i, j])
... e[i, j] = exp(x[i, j] - m[i])
... y[i] = sum(e[i, j])
... ''', y="f32[8]", x="f32[8, 9]")
for i in 0..8:
    m = -inf
    for j in 0..9:
        m max= x[i, j]
    for j in 0..9:
        e[j] = exp(x[i, j] - m)
    y_acc = 0.0
    for j in 0..9:
        y_acc += e[j]
    y[i] = y_acc
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE
from ..analysis.accesses import Accesses, Site, accesses, common, has_jumps
from ..analysis.effects import changed_where
from ..analysis.subscripts import is_in_range, is_least, ranges
from ..ir.assignments import Access, Alloc, Let, Pair, Permute, Print
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Const, Expr, Index, Read, rebuild
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Range, Symbol
from ..ir.loops import Check, Comment, For, Kernel, Program, Stmt, Store, Update, While
from ..ir.memory_mode import admits_virtual
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement, with_bodies
from ..ir.walk import BODIES, binds, bodies, own_reads, own_writes, statements


class Smaller(Reason):
    """What became of an array that was not needed whole."""

    SCALAR = "each round of its loops writes the element before it reads it"
    PART = "each round of its loops writes that part before it reads it"
    REGISTER = "the loop touches no other element of it"


class Whole(Reason):
    """Why an array kept its shape."""

    MOVED = "it trades places with another array"
    INDICES = "no loop around all of its uses works on one part of it at a time"
    ROUNDS = "a read may see what an earlier round of its loops wrote, or nothing did"


def shrink(program: Program) -> Program:
    """Return the program with smaller arrays and with running sums in registers."""
    return shrunk(program).program


def shrunk(program: Program) -> Decided:
    """Return the program with smaller arrays and with running sums in registers, and why."""
    decisions: list[Decision] = []
    plans: dict[int, _Plan] = {}
    kernels = program.kernels
    for kernel in kernels:
        others = accesses(s for k in kernels if k is not kernel for s in k.body).sites
        own = [node for node in program.locals if node.rank and node.id not in others]
        plans |= _plans(kernel, own, decisions)
    kernels = tuple(replace(kernel, body=_applied(kernel.body, plans)) for kernel in kernels)
    kept = tuple(plans[n.id].node if n.id in plans else n for n in program.locals)
    program = replace(program, locals=kept, kernels=kernels)
    return _with_registers(program, decisions)


# ------------------------------------------------------------------------------ smaller arrays


@dataclass(frozen=True, slots=True)
class _Plan:
    """A node as it will be, and which of its axes are left."""

    node: Node
    axes: tuple[int, ...]


def _plans(kernel: Kernel, own: list[Node], decisions: list[Decision]) -> dict[int, _Plan]:
    found = accesses(kernel.body)
    lets = frozenset(s.symbol for s in statements(kernel.body) if isinstance(s, Let))
    moved = {n.id for s in statements(kernel.body) if isinstance(s, Permute) for n in s.nodes}
    storage = {s.node.id: s for s in statements(kernel.body) if isinstance(s, Alloc)}
    firsts = _started_by_pairs(kernel.body, found)
    plans: dict[int, _Plan] = {}
    for node in own:
        if node.id in storage:
            found = _without_storage(found, node)
        if not any(site.reads for site in found.of(node)):
            continue
        if node.request is not None and not admits_virtual(node.request.mode):
            continue
        axes = Whole.MOVED if node.id in moved else _axes_left(found, node, lets, firsts)
        if isinstance(axes, Whole):
            decisions.append(Decision("whole", axes, node))
            continue
        new = replace(node, shape=tuple(node.shape[axis] for axis in axes))
        reason = Smaller.PART if axes else Smaller.SCALAR
        decisions.append(Decision("shrunk", reason, new))
        plans[node.id] = _Plan(new, axes)
    return plans


def _without_storage(found: Accesses, node: Node) -> Accesses:
    """Return the accesses without the places where a node gets its storage."""
    sites = tuple(s for s in found.of(node) if s.index is not None or s.kind == "update")
    return Accesses({**found.sites, node.id: sites})


def _started_by_pairs(body: tuple[Stmt, ...], found: Accesses) -> frozenset[int]:
    """Return the nodes that only argmin and argmax use, each time from "nothing found".

    Their old values never matter: position -1 was stored in the same round.
    """
    updates = [s for s in statements(body) if isinstance(s, Update) and s.pair is not None]
    stores = [s for s in statements(body) if isinstance(s, Store)]
    good: set[int] = set()
    bad: set[int] = set()
    for update in updates:
        target, place = update.access.node, cast(Pair, update.pair).access.node
        nothing = Const(-1, place.dtype)
        starts = all(s.value == nothing for s in stores if s.access.node == place)
        sites = [site for site in found.of(place) if site.index is not None]
        alone = Accesses({place.id: tuple(sites)})
        covered = all(alone.is_covered(site) for site in sites if site.kind == "update")
        only = sum(one.access.node == target for one in updates) == len(found.of(target))
        (good if starts and covered and only else bad).add(target.id)
    return frozenset(good - bad)


def _axes_left(
    found: Accesses, node: Node, lets: frozenset[Symbol], firsts: frozenset[int]
) -> tuple[int, ...] | Whole:
    """Return the axes that a node needs; a reason where those are all."""
    levels = _levels(found.of(node), node.rank, lets)
    if not levels:
        return Whole.INDICES
    deepest = max(levels.values())
    if deepest and node.id not in firsts:
        if not all(found.is_covered(s) for s in found.of(node) if s.reads):
            if 0 not in levels.values():
                return Whole.ROUNDS
            deepest = 0
    return tuple(a for a in range(node.rank) if levels.get(a, deepest + 1) > deepest)


def _levels(sites: tuple[Site, ...], rank: int, lets: frozenset[Symbol]) -> dict[int, int]:
    """Return the axes that may go, each with how many lists deep its symbols are bound."""
    first = sites[0]
    depth = min(common(first.route, site.route) for site in sites)
    bound = {s.symbol: at for at, s in enumerate(first.inside[:depth], 1) if isinstance(s, For)}
    inner = {s for site in sites for stmt in site.inside[depth:] for s in binds(stmt)}
    repeated = any(isinstance(stmt, While) for site in sites for stmt in site.inside[depth:])
    levels: dict[int, int] = {}
    for axis in range(rank):
        indices = {None if site.index is None else site.index[axis] for site in sites}
        (index,) = indices if len(indices) == 1 else (None,)
        if not isinstance(index, Affine) or index.symbols() & inner:
            continue
        if index.symbols() & lets and repeated:
            continue
        of = (depth if s in lets else bound.get(s, 0) for s in index.symbols())
        levels[axis] = max(of, default=0)
    return levels


def _applied(body: tuple[Stmt, ...], plans: dict[int, _Plan]) -> tuple[Stmt, ...]:
    """Return the body with nodes and their indices replaced."""

    def place(node: Node, index: tuple[Index, ...]) -> tuple[Node, tuple[Index, ...]]:
        plan = plans.get(node.id)
        return (node, index) if plan is None else (plan.node, tuple(index[a] for a in plan.axes))

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Alloc) and stmt.node.id in plans:
            new = plans[stmt.node.id].node
            return () if new.static_shape is not None else (replace(stmt, node=new),)
        touched = any(n.id in plans for n in (*own_reads(stmt), *own_writes(stmt)))
        return (_replaced(stmt, place) if touched else stmt,)

    return changed_where(plans, body, lambda part: map_statements(part, change))


OnPlace = Callable[[Node, tuple[Index, ...]], tuple[Node, tuple[Index, ...]]]


def _replaced(stmt: Stmt, place: OnPlace) -> Stmt:
    """Return a statement with every place that it reads or writes itself exchanged."""

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        if isinstance(value, Read):
            node, index = place(value.node, value.index)
            if node is not value.node:
                return Read(node, index, value.span)
        return value

    def access(old: Access) -> Access:
        node, index = place(old.node, old.index)
        return old if node is old.node else Access(node, index)

    stmt = rebuild_statement(stmt, Rewrite(expr=expr))
    match stmt:
        case Store() | Update(pair=None):
            new = access(stmt.access)
            return stmt if new is stmt.access else replace(stmt, access=new)
        case Update(pair=Pair() as pair):
            pair = replace(pair, access=access(pair.access))
            return replace(stmt, access=access(stmt.access), pair=pair)
        case _:
            return stmt


# ----------------------------------------------------------------------------------- registers


def _with_registers(program: Program, decisions: list[Decision]) -> Decided:
    scalars = frozenset(n.id for n in program.locals if n.rank == 0)
    fresh = fresh_for(program)
    work = _Registers(scalars, fresh, decisions)
    kernels = tuple(replace(k, body=work.body(k.body, ())) for k in program.kernels)
    return Decided(fresh.declared(replace(program, kernels=kernels)), tuple(decisions))


@dataclass(slots=True)
class _Registers:
    """The search for loops that touch one element; keeps the decisions."""

    scalars: frozenset[int]
    """Nodes that are registers already."""
    fresh: Fresh
    decisions: list[Decision]

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return a list of statements in which loops keep the element that they run on."""
        return self.inside(body, outer, tuple(accesses(body).sites.values()), 0)

    def inside(
        self,
        body: tuple[Stmt, ...],
        outer: tuple[Range, ...],
        found: tuple[tuple[Site, ...], ...],
        depth: int,
    ) -> tuple[Stmt, ...]:
        """Do so for a list that is that deep; `found` is what happens in it, node by node."""
        out: list[Stmt] = []
        inside = _by_place(found, depth)
        for at, stmt in enumerate(body):
            here = inside.get((at, 0), ())
            after: list[Stmt] = []
            if isinstance(stmt, For):
                for sites in _single(stmt, here, self.scalars):
                    place = Access(sites[0].node, sites[0].index or ())
                    start = _start(out, place)
                    if start is None and not _may_be_loaded(place, sites, depth, outer):
                        continue
                    stmt = self.kept(stmt, place, out, start, after)
                    here = tuple(one for one in here if one is not sites)
            if type(stmt) in BODIES:
                known = (*outer, *ranges((stmt,)))
                inner: list[tuple[Stmt, ...]] = []
                for number, one in enumerate(bodies(stmt)):
                    there = inside.get((at, number), ()) if number else here
                    there = tuple([_deeper(sites, depth) for sites in there])
                    inner.append(self.inside(one, known, there, depth + 1))
                stmt = with_bodies(stmt, tuple(inner))
            out += (stmt, *after)
        return tuple(out)

    def kept(
        self, loop: For, place: Access, out: list[Stmt], start: int | None, after: list[Stmt]
    ) -> For:
        """Return the loop on a scalar; what comes before it is put in `out`, the store in `after`.

        `start` is where in `out` the element is stored just before the loop.
        """
        scalar = self.fresh.scalar(f"{place.node.label}_acc", place.node.dtype)
        self.decisions.append(Decision("register", Smaller.REGISTER, place.node, span=loop.span))
        if start is None:
            out.append(Store(Access(scalar, ()), Read(place.node, place.index), loop.span))
        else:
            store = cast(Store, out[start])
            out[start] = replace(store, access=Access(scalar, ()))
        span = next((s.span for s in statements(loop.body) if isinstance(s, Update)), NOWHERE)
        after.append(Store(place, Read(scalar, ()), span))

        def at(node: Node, index: tuple[Index, ...]) -> tuple[Node, tuple[Index, ...]]:
            return (scalar, ()) if node.id == place.node.id else (node, index)

        (new,) = map_statements((cast(Stmt, loop),), lambda stmt: (_replaced(stmt, at),))
        return cast(For, new)


def _start(out: list[Stmt], place: Access) -> int | None:
    """Return where the last statement is that stores the place, if nothing came after it but
    comments and stores of other nodes."""
    for at in range(len(out) - 1, -1, -1):
        stmt = out[at]
        if isinstance(stmt, Store) and stmt.access == place:
            return at
        if isinstance(stmt, Comment):
            continue
        if not isinstance(stmt, Store) or place.node.id in accesses((stmt,)).sites:
            return None
    return None


def _by_place(
    found: tuple[tuple[Site, ...], ...], depth: int
) -> dict[tuple[int, int], tuple[tuple[Site, ...], ...]]:
    """Return the sites in each statement of a list, node by node, by the place in the list."""
    places: dict[tuple[int, int], tuple[tuple[Site, ...], ...]] = {}
    for sites in found:
        mine: dict[tuple[int, int], list[Site]] = {}
        for site in sites:
            mine.setdefault(site.route[depth], []).append(site)
        for place, those in mine.items():
            places[place] = (*places.get(place, ()), tuple(those))
    return places


def _deeper(sites: tuple[Site, ...], depth: int) -> tuple[Site, ...]:
    """Return those sites that are in a list inside of the statement, not in the statement."""
    return tuple([site for site in sites if len(site.route) > depth + 1])


def _single(
    loop: For, found: tuple[tuple[Site, ...], ...], scalars: frozenset[int]
) -> Iterator[tuple[Site, ...]]:
    """Yield the sites of each node of which a loop touches one element, and writes it."""
    candidates = [
        sites for sites in found
        if sites[0].node.id not in scalars and any(site.writes for site in sites)
        and all(site.index == sites[0].index for site in sites)
    ]  # fmt: skip
    if not candidates:
        return
    inside = statements((loop,))
    bound = {stmt.symbol for stmt in inside if isinstance(stmt, For | Let)}
    if any(isinstance(stmt, Check | Print) for stmt in inside):
        return  # what was summed so far would be missing after a fault
    for sites in candidates:
        index = sites[0].index
        if index is None:
            continue
        if all(isinstance(i, Affine) and bound.isdisjoint(i.symbols()) for i in index):
            yield sites


def _may_be_loaded(
    place: Access, sites: tuple[Site, ...], depth: int, outer: tuple[Range, ...]
) -> bool:
    """Whether a loop may keep an element that every round accesses: it is surely in its array,
    since an access surely happens, or by the loops around. A loop of no rounds stores what was
    loaded: of what no round reads first, there may be nothing yet."""
    for site in sites:
        around = site.inside[depth:]
        if any(not isinstance(stmt, For) or has_jumps(stmt) for stmt in around):
            continue
        if site is sites[0] and site.reads and is_in_range(place.node, place.index, outer):
            return True
        known = outer
        for loop in around:
            assert isinstance(loop, For)
            gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
            if not is_least(gap - 1, known):
                break
            known = (*known, *ranges((loop,)))
        else:
            return True
    return False
