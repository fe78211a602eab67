"""In-place computation: an array computed cell by cell from another one takes over its memory.

Changes: where a nest reads an array for the last time, and stores each cell just after it has read
the same cell of that array, both become one: `e[j] = exp(s[j] - m)` is done in `s`. Where the array
that is written is the caller's or a result, its memory serves from the start.

Precondition: arrays have their final shape. Postcondition: the same values; no cell of either array
is read before it is written, so what the other left there is unobservable; the caller's array is
written earlier only where nothing can fail or print meanwhile, and where all of it is overwritten.

>>> show(compute_inplace, '''
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

from ..analysis.accesses import Accesses, Site, collect_accesses, common_depth
from ..analysis.effects import change_touching, has_effects, touched_nodes
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import ranges
from ..ir.assignments import Permute
from ..ir.decision import Decided, Decision, Reason
from ..ir.loops import Kernel, Program, Stmt, While
from ..ir.node import Node
from ..ir.rewrite import rename
from ..ir.walk import statements


class InplaceReason(Reason):
    """Why an array has no memory of its own."""

    CELLS = "each cell of it is computed where the same cell of another array is last read"


def compute_inplace(program: Program) -> Decided:
    """Return the program with arrays computed in place, and the decisions."""
    arrays = [
        node for node in program.locals
        if node.rank and node.static_shape is not None and node.request is None
    ]  # fmt: skip
    if not arrays:
        return Decided(program, ())
    replacements: dict[int, Node] = {}
    kernels: list[Kernel] = []
    for kernel in program.kernels:
        others = (s for k in program.kernels if k is not kernel for s in k.body)
        outside = touched_nodes(others)
        of_kernel = _find_replacements(
            program, kernel, [n for n in arrays if n.id not in outside], outside
        )
        replacements |= of_kernel
        body = change_touching(of_kernel, kernel.body, partial(rename, symbols={}, nodes=of_kernel))
        kernels.append(replace(kernel, body=body) if of_kernel else kernel)
    locals_ = tuple(node for node in program.locals if node.id not in replacements)
    removed = (node for node in (*program.locals, *program.results) if node.id in replacements)
    decisions = (
        Decision("reused", InplaceReason.CELLS, node, f"`{replacements[node.id].label}`")
        for node in removed
    )
    return Decided(replace(program, locals=locals_, kernels=tuple(kernels)), tuple(decisions))


def _find_replacements(
    program: Program, kernel: Kernel, arrays: list[Node], outside: frozenset[int]
) -> dict[int, Node]:
    """Return the nodes of a kernel that are merged into others, by id, with those whose memory they
    take."""
    permuted = {n.id for s in statements(kernel.body) if isinstance(s, Permute) for n in s.nodes}
    candidates = {node.id for node in arrays} - permuted
    shared = {p.node.id for p in program.parameters if p.written}
    shared = (shared | {node.id for node in program.results}) - outside - permuted
    sites = collect_accesses(kernel.body)
    replacements: dict[int, Node] = {}
    worklist = [node for node in arrays if node.id in candidates]
    while worklist:
        old = worklist.pop()
        pair = (
            None
            if old.id in replacements
            else _find_pair(kernel, sites, old, candidates - replacements.keys(), shared)
        )
        if pair is not None:
            removed, remaining = pair
            replacements = {
                id_: remaining if node == removed else node for id_, node in replacements.items()
            }
            replacements[removed.id] = remaining
            sites = sites.joined(removed, remaining)
            worklist += [remaining] if remaining.id in candidates else []
    return replacements


def _find_pair(
    kernel: Kernel, accesses: Accesses, old: Node, temporaries: set[int], shared: set[int]
) -> tuple[Node, Node] | None:
    """Return the node that is removed and the one that replaces it, where an array has a
    successor."""
    successors = list(_find_successors(accesses, old))
    sites = accesses.of(old)
    depth = min((common_depth(sites[0].route, site.route) for site in sites), default=0)
    if not successors or accesses.is_read_before_written(old, depth):
        return None
    for new in successors:
        if new.id in temporaries and not accesses.is_read_before_written(new, depth):
            return new, old
        if new.id in shared and _can_replace_visible(kernel, accesses, old, new):
            return old, new
    return None


def _find_successors(accesses: Accesses, old: Node) -> Iterator[Node]:
    """Yield the nodes that are written cell by cell where an array is read for the last time."""
    sites = accesses.of(old)
    if not sites:
        return
    depth = min(common_depth(sites[0].route, site.route) for site in sites)
    last = sites[-1].route[depth]
    reads = [site for site in sites if site.route[depth] == last]
    first = reads[0]
    if any(s.writes or s.index != first.index or s.route[:-1] != first.route[:-1] for s in reads):
        return
    loops = first.inside[depth:]
    no_while = not any(isinstance(stmt, While) for stmt in loops)
    if first.index is None or not no_while or not is_injective(first.index, ranges(loops)):
        return
    for stores in accesses.sites.values():
        new = stores[0].node
        if new.id != old.id and new.shape == old.shape and new.dtype == old.dtype:
            if _takes_over(stores, reads[-1], depth):
                yield new


def _takes_over(sites: tuple[Site, ...], read: Site, depth: int) -> bool:
    """Whether the first access of a node is the store of each cell just after the read."""
    route = read.route
    written = [s for s in sites if s.writes and s.route[: depth + 1] == route[: depth + 1]]
    if len(written) != 1 or (written[0].kind, written[0].index) != ("write", read.index):
        return False
    store = written[0]
    if store.route[:-1] != route[:-1] or store.route < route:
        return False
    return all(s.route[:depth] == route[:depth] and s.route >= store.route for s in sites)


def _can_replace_visible(kernel: Kernel, accesses: Accesses, old: Node, new: Node) -> bool:
    """Whether an externally visible array may hold the values of another one before it is
    overwritten.

    Nothing may read its old values before that, and all of it has to be overwritten.
    """
    sites = accesses.of(old)
    if min(common_depth(sites[0].route, site.route) for site in sites):
        return False  # a later iteration would overwrite final values of an earlier one
    first, last = sites[0].route[0][0], sites[-1].route[0][0]
    between: tuple[Stmt, ...] = kernel.body[first : last + 1]
    last_accesses = collect_accesses((kernel.body[last],))
    if any(map(has_effects, between)) or last_accesses.is_read_before_written(new):
        return False
    return last_accesses.is_overwritten(new)
