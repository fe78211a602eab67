"""Settled: what is sure of results before the first statement runs.

Changes: nothing but what is noted of the program. `whole` are the results that are written
everywhere, and before they are read: their memory may hold anything. `sized` are those of which the
sizes of arguments tell the shape: whoever calls can make them, as those whose shape is fixed.

Needs: nothing. Guarantees: it stays true, since no later step reads what is not written by then.

>>> program = lowered('''
... y[i] = x[i] + 1
... z[i] += x[i]
... ''', y="f32[8]", z="f32[8]", x="f32[8]")
>>> results = tuple(p.node for p in program.parameters if p.written)
>>> found = settled(replace(program, results=results)).whole
>>> [node.label for node in results if node.id in found]
['y']
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.accesses import Accesses, Site, accesses
from ..ir.dynamic_sizes import sizes_of
from ..ir.loops import Program
from ..ir.node import Node
from ..ir.walk import exchanged


def settled(program: Program) -> Program:
    """Return the program with what is noted of its results."""
    arrays = [node for node in program.results if node.rank]
    if not arrays:
        return program
    found = accesses([stmt for kernel in program.kernels for stmt in kernel.body])
    known, moving = {size.symbol for size in sizes_of(program)}, exchanged(program)
    sized = {
        node.id
        for node in arrays
        if node.static_shape is None and node.id not in moving
        and all(extent.symbols() <= known for extent in node.shape)
        and _is_made_first(found.of(node))
    }  # fmt: skip
    whole = {
        node.id for node in arrays
        if (node.static_shape is not None or node.id in sized) and _is_whole(node, found.of(node))
    }  # fmt: skip
    return replace(program, whole=frozenset(whole), sized=frozenset(sized))


def _is_made_first(sites: tuple[Site, ...]) -> bool:
    """Whether an array gets its storage once, before all else that is done with it."""
    storage = [site for site in sites if _is_alloc(site)]
    return len(storage) == 1 and storage[0].inside == () and min(s.route for s in sites) == (
        storage[0].route
    )  # fmt: skip


def _is_whole(node: Node, sites: tuple[Site, ...]) -> bool:
    """Whether every element is written, and before it is read."""
    own = Accesses({node.id: tuple(site for site in sites if not _is_alloc(site))})
    return own.is_overwritten(node) and not own.read_before_written(node)


def _is_alloc(site: Site) -> bool:
    return site.index is None and site.kind == "write" and site.node.static_shape is None
