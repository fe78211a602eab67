"""In place: an array that is computed cell by cell from another one takes its memory.

Changes: where a nest reads an array for the last time, and stores each cell just after it has read
the same cell of that array, both become one: `e[j] = exp(s[j] - m)` is done in `s`. Where the array
that is written belongs to the caller or is a result, its memory serves from the start.

Needs: arrays that have their final shape. Guarantees: the same values; no cell of either array is
read before it is written, so nobody sees what the other left in it; the caller's array is written
earlier only where nothing can fail or print meanwhile, and where all of it is overwritten.

>>> show(inplace, '''
... t[i, j] = x[i, j] + 1
... y[i, j] = t[i, j] / max[k](t[k, j])
... ''', y="f32[8, 9]", x="f32[8, 9]")
for i in 0..8:
    for j in 0..9:
        y[i, j] = x[i, j] + 1.0
for j in 0..9:
    largest[j] = -inf
    for k in 0..8:
        largest[j] max= y[k, j]
for i in 0..8:
    for j in 0..9:
        y[i, j] = y[i, j] / largest[j]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ..analysis.accesses import Accesses, Site, accesses, common, has_effects
from ..analysis.effects import changed_where, touched
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import ranges
from ..ir.assignments import Permute
from ..ir.decision import Decided, Decision, Reason
from ..ir.loops import Kernel, Program, Stmt, While
from ..ir.node import Node
from ..ir.rewrite import rename
from ..ir.walk import statements


class Sharing(Reason):
    """Why an array has no memory of its own."""

    CELLS = "each cell of it is computed where the same cell of another array is last read"


def inplace(program: Program) -> Program:
    """Return the program with arrays computed in the memory of those they are computed from."""
    return decide_inplace(program).program


def decide_inplace(program: Program) -> Decided:
    """Return the program with arrays computed in place, and which ones."""
    arrays = [
        node for node in program.locals
        if node.rank and node.static_shape is not None and node.request is None
    ]  # fmt: skip
    if not arrays:
        return Decided(program, ())
    taken: dict[int, Node] = {}
    kernels: list[Kernel] = []
    for kernel in program.kernels:
        others = (s for k in program.kernels if k is not kernel for s in k.body)
        outside = touched(others)
        found = _found(program, kernel, [n for n in arrays if n.id not in outside], outside)
        taken |= found
        body = changed_where(found, kernel.body, partial(rename, symbols={}, nodes=found))
        kernels.append(replace(kernel, body=body) if found else kernel)
    kept = tuple(node for node in program.locals if node.id not in taken)
    gone = (node for node in (*program.locals, *program.results) if node.id in taken)
    decisions = (
        Decision("reused", Sharing.CELLS, node, f"`{taken[node.id].label}`") for node in gone
    )
    return Decided(replace(program, locals=kept, kernels=tuple(kernels)), tuple(decisions))


def _found(
    program: Program, kernel: Kernel, arrays: list[Node], outside: frozenset[int]
) -> dict[int, Node]:
    """Return the nodes of a kernel that go, by id, with those whose memory they take."""
    moved = {n.id for s in statements(kernel.body) if isinstance(s, Permute) for n in s.nodes}
    own = {node.id for node in arrays} - moved
    shared = {p.node.id for p in program.parameters if p.written}
    shared = (shared | {node.id for node in program.results}) - outside - moved
    found = accesses(kernel.body)
    taken: dict[int, Node] = {}
    waiting = [node for node in arrays if node.id in own]
    while waiting:
        old = waiting.pop()
        pair = None if old.id in taken else _pair(kernel, found, old, own - taken.keys(), shared)
        if pair is not None:
            gone, kept = pair
            taken = {one: kept if node == gone else node for one, node in taken.items()}
            taken[gone.id] = kept
            found = found.joined(gone, kept)
            waiting += [kept] if kept.id in own else []
    return taken


def _pair(
    kernel: Kernel, found: Accesses, old: Node, own: set[int], shared: set[int]
) -> tuple[Node, Node] | None:
    """Return the node that goes and the one that takes its place, where an array has an heir."""
    heirs = list(_heirs(found, old))
    if not heirs or found.read_before_written(old):
        return None
    for new in heirs:
        if new.id in own and not found.read_before_written(new):
            return new, old
        if new.id in shared and _is_free(kernel, found, old, new):
            return old, new
    return None


def _heirs(found: Accesses, old: Node) -> Iterator[Node]:
    """Yield the nodes that are written cell by cell where an array is read for the last time."""
    sites = found.of(old)
    if not sites:
        return
    depth = min(common(sites[0].route, site.route) for site in sites)
    last = sites[-1].route[depth]
    reads = [site for site in sites if site.route[depth] == last]
    first = reads[0]
    if any(s.writes or s.index != first.index or s.route[:-1] != first.route[:-1] for s in reads):
        return
    loops = first.inside[depth:]
    once = not any(isinstance(stmt, While) for stmt in loops)
    if first.index is None or not once or not is_injective(first.index, ranges(loops)):
        return
    for stores in found.sites.values():
        new = stores[0].node
        if new.id != old.id and new.shape == old.shape and new.dtype == old.dtype:
            if _takes_over(stores, reads[-1], depth):
                yield new


def _takes_over(sites: tuple[Site, ...], read: Site, depth: int) -> bool:
    """Whether the first that happens to a node is the store of each cell just after the read."""
    route = read.route
    written = [s for s in sites if s.writes and s.route[: depth + 1] == route[: depth + 1]]
    if len(written) != 1 or (written[0].kind, written[0].index) != ("write", read.index):
        return False
    store = written[0]
    if store.route[:-1] != route[:-1] or store.route < route:
        return False
    return all(s.route[:depth] == route[:depth] and s.route >= store.route for s in sites)


def _is_free(kernel: Kernel, found: Accesses, old: Node, new: Node) -> bool:
    """Whether an array that others see may hold what another one did, before it is overwritten.

    Nobody may read what it held before that, nor not all of it be overwritten.
    """
    sites = found.of(old)
    if min(common(sites[0].route, site.route) for site in sites):
        return False  # a later round would write over what an earlier one has left there for good
    first, last = sites[0].route[0][0], sites[-1].route[0][0]
    between: tuple[Stmt, ...] = kernel.body[first : last + 1]
    alone = accesses((kernel.body[last],))
    if any(map(has_effects, between)) or alone.read_before_written(new):
        return False
    return alone.is_overwritten(new)
