"""Array contraction and scalar replacement: arrays as small as their use, sums in registers.

Changes: a local array loses every axis that all accesses subscript alike, by symbols of loops
around all of them. What is left is a scalar (a C local), a row or a tile. Where a loop accesses one
element of an array only, and writes it, a scalar replaces the element during the loop; it is loaded
before (or initialized, where the element was just initialized) and stored after.

Precondition: fused nests, else few candidates are found. Postcondition: operations and their order
stay as they are; an axis goes only where each read surely follows a write of the same iteration,
because the next iteration finds the values of the one before at the same location; no observable
write moves across a check or a print; no load may be out of bounds.

Array contraction: Sarkar and Gao, Optimization of array accesses by collective loop
transformations, 1991; scalar replacement: Callahan, Carr and Kennedy, Improving register allocation
for subscripted variables, 1990.

>>> from plusequals.lowering.passes.fuse import fuse
>>> show(lambda program: contract_arrays(fuse(program).program), '''
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
from ..analysis.accesses import Accesses, Site, collect_accesses, common_depth
from ..analysis.effects import change_touching, has_jumps
from ..analysis.subscripts import is_in_range, is_nonnegative, ranges
from ..ir.assignments import Access, Alloc, Let, Pair, Permute, Print
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Const, Expr, Index, Read, rebuild
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Range, Symbol
from ..ir.loops import Check, Comment, For, Kernel, Program, Stmt, Store, Update, While
from ..ir.memory_mode import admits_virtual
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement, with_bodies
from ..ir.walk import BODIES, binds, bodies, direct_reads, direct_writes, statements


class ContractionReason(Reason):
    """Why an array was contracted or an element kept in a register."""

    SCALAR = "each iteration of its loops writes the element before it reads it"
    PART = "each iteration of its loops writes that part before it reads it"
    REGISTER = "the loop touches no other element of it"


class NoContractionReason(Reason):
    """Why an array kept its shape."""

    MOVED = "it trades places with another array"
    INDICES = "no loop around all of its uses works on one part of it at a time"
    LOOP_CARRIED = "a read may be of an element that an earlier iteration wrote, or none"


def contract_arrays(program: Program) -> Decided:
    """Return the program with contracted arrays and accumulators in registers, and the
    decisions."""
    decisions: list[Decision] = []
    plans: dict[int, _Contraction] = {}
    kernels = program.kernels
    for kernel in kernels:
        others = collect_accesses(s for k in kernels if k is not kernel for s in k.body).sites
        arrays = [node for node in program.locals if node.rank and node.id not in others]
        plans |= _plan_contractions(kernel, arrays, decisions)
    kernels = tuple(
        replace(kernel, body=_apply_contractions(kernel.body, plans)) for kernel in kernels
    )
    locals_ = tuple(plans[n.id].node if n.id in plans else n for n in program.locals)
    program = replace(program, locals=locals_, kernels=kernels)
    return _replace_scalars(program, decisions)


# --------------------------------------------------------------------------- contracted arrays


@dataclass(frozen=True, slots=True)
class _Contraction:
    """A contracted node and the axes that it keeps."""

    node: Node
    axes: tuple[int, ...]


def _plan_contractions(
    kernel: Kernel, arrays: list[Node], decisions: list[Decision]
) -> dict[int, _Contraction]:
    sites_by_node = collect_accesses(kernel.body)
    lets = frozenset(s.symbol for s in statements(kernel.body) if isinstance(s, Let))
    permuted = {n.id for s in statements(kernel.body) if isinstance(s, Permute) for n in s.nodes}
    allocations = {s.node.id: s for s in statements(kernel.body) if isinstance(s, Alloc)}
    arg_targets = _find_arg_targets(kernel.body, sites_by_node)
    plans: dict[int, _Contraction] = {}
    for node in arrays:
        if node.id in allocations:
            sites_by_node = _without_allocations(sites_by_node, node)
        if not any(site.reads for site in sites_by_node.of(node)):
            continue
        if node.request is not None and not admits_virtual(node.request.mode):
            continue
        axes = (
            NoContractionReason.MOVED
            if node.id in permuted
            else _find_retained_axes(sites_by_node, node, lets, arg_targets)
        )
        if isinstance(axes, NoContractionReason):
            decisions.append(Decision("whole", axes, node))
            continue
        new = replace(node, shape=tuple(node.shape[axis] for axis in axes))
        reason = ContractionReason.PART if axes else ContractionReason.SCALAR
        decisions.append(Decision("shrunk", reason, new))
        plans[node.id] = _Contraction(new, axes)
    return plans


def _without_allocations(accesses: Accesses, node: Node) -> Accesses:
    """Return the accesses without the allocations of a node."""
    sites = tuple(s for s in accesses.of(node) if s.index is not None or s.kind == "update")
    return Accesses({**accesses.sites, node.id: sites})


def _find_arg_targets(body: tuple[Stmt, ...], accesses: Accesses) -> frozenset[int]:
    """Return the nodes that only argmin and argmax use, each time initialized by "nothing found".

    Their old values never matter: position -1 was stored in the same iteration.
    """
    updates = [s for s in statements(body) if isinstance(s, Update) and s.pair is not None]
    stores = [s for s in statements(body) if isinstance(s, Store)]
    eligible: set[int] = set()
    ineligible: set[int] = set()
    for update in updates:
        target, position = update.access.node, cast(Pair, update.pair).access.node
        nothing = Const(-1, position.dtype)
        starts = all(s.value == nothing for s in stores if s.access.node == position)
        sites = [site for site in accesses.of(position) if site.index is not None]
        position_accesses = Accesses({position.id: tuple(sites)})
        covered = all(
            position_accesses.is_covered(site, len(site.inside))
            for site in sites if site.kind == "update"
        )  # fmt: skip
        is_only = sum(candidate.access.node == target for candidate in updates) == len(
            accesses.of(target)
        )
        (eligible if starts and covered and is_only else ineligible).add(target.id)
    return frozenset(eligible - ineligible)


def _find_retained_axes(
    accesses: Accesses, node: Node, lets: frozenset[Symbol], arg_targets: frozenset[int]
) -> tuple[int, ...] | NoContractionReason:
    """Return the axes that a node keeps, or the reason why those are all."""
    levels = _find_removable_axes(accesses.of(node), node.rank, lets)
    if not levels:
        return NoContractionReason.INDICES
    deepest = max(levels.values())
    if deepest and node.id not in arg_targets:
        if not all(accesses.is_covered(s, deepest) for s in accesses.of(node) if s.reads):
            if 0 not in levels.values():
                return NoContractionReason.LOOP_CARRIED
            deepest = 0
    return tuple(a for a in range(node.rank) if levels.get(a, deepest + 1) > deepest)


def _find_removable_axes(
    sites: tuple[Site, ...], rank: int, lets: frozenset[Symbol]
) -> dict[int, int]:
    """Return the axes that may be removed, each with the nesting depth where its symbols are
    bound."""
    first = sites[0]
    depth = min(common_depth(first.route, site.route) for site in sites)
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
        depths = (depth if s in lets else bound.get(s, 0) for s in index.symbols())
        levels[axis] = max(depths, default=0)
    return levels


def _apply_contractions(body: tuple[Stmt, ...], plans: dict[int, _Contraction]) -> tuple[Stmt, ...]:
    """Return the body with nodes and their subscripts replaced."""

    def locate(node: Node, index: tuple[Index, ...]) -> tuple[Node, tuple[Index, ...]]:
        plan = plans.get(node.id)
        return (node, index) if plan is None else (plan.node, tuple(index[a] for a in plan.axes))

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Alloc) and stmt.node.id in plans:
            new = plans[stmt.node.id].node
            return () if new.static_shape is not None else (replace(stmt, node=new),)
        touched = any(n.id in plans for n in (*direct_reads(stmt), *direct_writes(stmt)))
        return (_replace_locations(stmt, locate) if touched else stmt,)

    return change_touching(plans, body, lambda part: map_statements(part, change))


MapLocation = Callable[[Node, tuple[Index, ...]], tuple[Node, tuple[Index, ...]]]


def _replace_locations(stmt: Stmt, locate: MapLocation) -> Stmt:
    """Return a statement with every location that it accesses itself replaced."""

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        if isinstance(value, Read):
            node, index = locate(value.node, value.index)
            if node is not value.node:
                return Read(node, index, value.span)
        return value

    def access(old: Access) -> Access:
        node, index = locate(old.node, old.index)
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


def _replace_scalars(program: Program, decisions: list[Decision]) -> Decided:
    scalars = frozenset(n.id for n in program.locals if n.rank == 0)
    fresh = fresh_for(program)
    replacement = _ScalarReplacement(scalars, fresh, decisions)
    kernels = tuple(replace(k, body=replacement.body(k.body, ())) for k in program.kernels)
    return Decided(fresh.declared(replace(program, kernels=kernels)), tuple(decisions))


@dataclass(slots=True)
class _ScalarReplacement:
    """Scalar replacement in loops that access one element; collects the decisions."""

    scalars: frozenset[int]
    """Nodes that are registers already."""
    fresh: Fresh
    decisions: list[Decision]

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return a list of statements with the accumulators of its loops in scalars."""
        return self.inside(body, outer, tuple(collect_accesses(body).sites.values()), 0)

    def inside(
        self,
        body: tuple[Stmt, ...],
        outer: tuple[Range, ...],
        site_groups: tuple[tuple[Site, ...], ...],
        depth: int,
    ) -> tuple[Stmt, ...]:
        """Do so for a list at that depth; `site_groups` are the accesses in it, node by node."""
        out: list[Stmt] = []
        inside = _group_by_position(site_groups, depth)
        for at, stmt in enumerate(body):
            here = inside.get((at, 0), ())
            after: list[Stmt] = []
            if isinstance(stmt, For):
                for sites in _single_elements(stmt, here, self.scalars):
                    element = Access(sites[0].node, sites[0].index or ())
                    start = _find_initialization(out, element)
                    if start is None and not _is_load_safe(element, sites, depth, outer):
                        continue
                    stmt = self.keep_in_scalar(stmt, element, out, start, after)
                    here = tuple(group for group in here if group is not sites)
            if type(stmt) in BODIES:
                domain = (*outer, *ranges((stmt,)))
                inner: list[tuple[Stmt, ...]] = []
                for number, nested in enumerate(bodies(stmt)):
                    there = inside.get((at, number), ()) if number else here
                    there = tuple([_nested_sites(sites, depth) for sites in there])
                    inner.append(self.inside(nested, domain, there, depth + 1))
                stmt = with_bodies(stmt, tuple(inner))
            out += (stmt, *after)
        return tuple(out)

    def keep_in_scalar(
        self, loop: For, element: Access, out: list[Stmt], start: int | None, after: list[Stmt]
    ) -> For:
        """Return the loop on a scalar; `out` gets what comes before it, `after` the store.

        `start` is the position in `out` where the element is stored just before the loop.
        """
        scalar = self.fresh.scalar(f"{element.node.label}_acc", element.node.dtype)
        self.decisions.append(
            Decision(
                "register", ContractionReason.REGISTER, element.node, span=loop.span, scalar=scalar
            )
        )
        if start is None:
            out.append(Store(Access(scalar, ()), Read(element.node, element.index), loop.span))
        else:
            store = cast(Store, out[start])
            out[start] = replace(store, access=Access(scalar, ()))
        span = next((s.span for s in statements(loop.body) if isinstance(s, Update)), NOWHERE)
        after.append(Store(element, Read(scalar, ()), span))

        def at(node: Node, index: tuple[Index, ...]) -> tuple[Node, tuple[Index, ...]]:
            return (scalar, ()) if node.id == element.node.id else (node, index)

        (new,) = map_statements((cast(Stmt, loop),), lambda stmt: (_replace_locations(stmt, at),))
        return cast(For, new)


def _find_initialization(out: list[Stmt], element: Access) -> int | None:
    """Return the position of the last statement that stores the element, if only comments and
    stores of other nodes follow."""
    for at in range(len(out) - 1, -1, -1):
        stmt = out[at]
        if isinstance(stmt, Store) and stmt.access == element:
            return at
        if isinstance(stmt, Comment):
            continue
        if not isinstance(stmt, Store) or element.node.id in collect_accesses((stmt,)).sites:
            return None
    return None


def _group_by_position(
    site_groups: tuple[tuple[Site, ...], ...], depth: int
) -> dict[tuple[int, int], tuple[tuple[Site, ...], ...]]:
    """Return the sites in each statement of a list, node by node, by the position in the list."""
    result: dict[tuple[int, int], tuple[tuple[Site, ...], ...]] = {}
    for sites in site_groups:
        grouped: dict[tuple[int, int], list[Site]] = {}
        for site in sites:
            grouped.setdefault(site.route[depth], []).append(site)
        for position, group in grouped.items():
            result[position] = (*result.get(position, ()), tuple(group))
    return result


def _nested_sites(sites: tuple[Site, ...], depth: int) -> tuple[Site, ...]:
    """Return the sites nested inside the statement, without those of the statement itself."""
    return tuple([site for site in sites if len(site.route) > depth + 1])


def _single_elements(
    loop: For, site_groups: tuple[tuple[Site, ...], ...], scalars: frozenset[int]
) -> Iterator[tuple[Site, ...]]:
    """Yield the sites of each node of which a loop accesses one element only, and writes it."""
    candidates = [
        sites for sites in site_groups
        if sites[0].node.id not in scalars and any(site.writes for site in sites)
        and all(site.index == sites[0].index for site in sites)
    ]  # fmt: skip
    if not candidates:
        return
    inside = statements((loop,))
    bound = {stmt.symbol for stmt in inside if isinstance(stmt, For | Let)}
    if any(isinstance(stmt, Check | Print) for stmt in inside):
        return  # the partial sum would be lost after a fault
    for sites in candidates:
        index = sites[0].index
        if index is None:
            continue
        if all(isinstance(i, Affine) and bound.isdisjoint(i.symbols()) for i in index):
            yield sites


def _is_load_safe(
    element: Access, sites: tuple[Site, ...], depth: int, outer: tuple[Range, ...]
) -> bool:
    """Whether a loop may keep an element that every iteration accesses in a register: it is surely
    in bounds, since an access surely happens, or by the enclosing loops. A loop of no iterations
    stores what was loaded; where no iteration reads first, there may be nothing to load yet."""
    for site in sites:
        enclosing = site.inside[depth:]
        if any(not isinstance(stmt, For) or has_jumps(stmt) for stmt in enclosing):
            continue
        if site is sites[0] and site.reads and is_in_range(element.node, element.index, outer):
            return True
        domain = outer
        for loop in enclosing:
            assert isinstance(loop, For)
            trip_count = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
            if not is_nonnegative(trip_count - 1, domain):
                break
            domain = (*domain, *ranges((loop,)))
        else:
            return True
    return False
