"""Definite assignment of results: facts about them before the first statement runs.

Changes: only the annotations of the program. `whole` are the results all of whose elements are
written before they are read: their memory may hold anything at the start. `sized` are those whose
shape the sizes of the arguments determine: the caller can allocate them, as those of static shape.

Precondition: none. Postcondition: the facts stay true, since no later step reads what is not
written by then.

>>> program = lowered('''
... y[i] = x[i] + 1
... z[i] += x[i]
... ''', y="f32[8]", z="f32[8]", x="f32[8]")
>>> results = tuple(p.node for p in program.parameters if p.written)
>>> found = annotate_results(replace(program, results=results)).whole
>>> [node.label for node in results if node.id in found]
['y']
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.accesses import Accesses, Site, collect_accesses
from ..ir.dynamic_sizes import run_time_sizes
from ..ir.loops import Program
from ..ir.node import Node
from ..ir.walk import permuted_nodes


def annotate_results(program: Program) -> Program:
    """Return the program with the facts about its results."""
    arrays = [node for node in program.results if node.rank]
    if not arrays:
        return program
    sites = collect_accesses([stmt for kernel in program.kernels for stmt in kernel.body])
    static, moving = {size.symbol for size in run_time_sizes(program)}, permuted_nodes(program)
    sized = {
        node.id
        for node in arrays
        if node.static_shape is None and node.id not in moving
        and all(extent.symbols() <= static for extent in node.shape)
        and _is_allocated_first(sites.of(node))
    }  # fmt: skip
    whole = {
        node.id for node in arrays
        if (node.static_shape is not None or node.id in sized)
        and _is_definitely_written(node, sites.of(node))
    }  # fmt: skip
    return replace(program, whole=frozenset(whole), sized=frozenset(sized))


def _is_allocated_first(sites: tuple[Site, ...]) -> bool:
    """Whether an array is allocated once, before all its other accesses."""
    storage = [site for site in sites if _is_alloc(site)]
    return len(storage) == 1 and storage[0].inside == () and min(s.route for s in sites) == (
        storage[0].route
    )  # fmt: skip


def _is_definitely_written(node: Node, sites: tuple[Site, ...]) -> bool:
    """Whether every element is written, and before it is read."""
    written = Accesses({node.id: tuple(site for site in sites if not _is_alloc(site))})
    return written.is_overwritten(node) and not written.is_read_before_written(node)


def _is_alloc(site: Site) -> bool:
    return site.index is None and site.kind == "write" and site.node.static_shape is None
