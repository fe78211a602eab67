"""Separate planes of real and imaginary parts, for complex arrays that a nest reads many times.

    for i: for j: for k:                   for i: for k: p[i, k] = real(x[i, k]); ...
        re += real(x[i, k]) * ...          for i: for j: for k: re += p[i, k] * ...

Changes: before a nest of `pairs`, the real and the imaginary parts of such an array are copied into
an array each (from an array of structures to a structure of arrays). Reads of one part of adjacent
elements then have stride 1: products of matrices become those of real ones.

Precondition: the nest does not write the array, reads nothing but its parts, and reads most of its
elements many times. Postcondition: each part is bit-identical.

>>> program, _ = optimize(lowered("y[i, j] = sum(x[i, k] * z[j, k])", y="c128[30, 30]",
...     x="c128[30, 30]", z="c128[30, 30]"), Target(schedule=True), stop_after="complex_to_pairs")
>>> [node.label for node in reads(program.kernels[0].body[-1:]) if node.rank]
['x_re', 'z_re', 'x_im', 'z_im']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod

from .. import thresholds
from ..analysis.accesses import Site, collect_accesses
from ..analysis.complex_parts import source_of_part
from ..ir.assignments import Access, Alloc
from ..ir.expressions import Apply, Expr, Read, rebuild, walk
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import For, If, Stmt, Store
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite, rewrite
from ..ir.walk import expressions_of, reads, statements, writes

Body = tuple[Stmt, ...]
Planes = dict[tuple[int, str], Node]
"""The arrays of real and of imaginary parts, by the id of the complex array and the name of the
part."""
_SIDES = ("re", "im")
_NAMES = {"real": "re", "imag": "im"}


def split_planes(nest: Stmt, fresh: Fresh) -> Body:
    """Return a nest that reads parts from planes, after the loops that copy parts into these."""
    if isinstance(nest, If):
        then, orelse = (
            tuple(new for stmt in body for new in split_planes(stmt, fresh))
            for body in (nest.then, nest.orelse)
        )
        return (replace(nest, then=then, orelse=orelse),)
    if not isinstance(nest, For):
        return (nest,)
    written = writes((nest,))
    nodes = [
        node for node in reads((nest,))
        if node.dtype.kind == "c" and node.rank and node not in written and _is_gain(nest, node)
    ]  # fmt: skip
    planes = {(node.id, part): _plane(node, part, fresh) for node in nodes for part in _SIDES}
    copies = (stmt for node in nodes for stmt in _copy_parts(node, planes, nest, fresh))
    return (*copies, *rewrite((nest,), Rewrite(expr=partial(_read_planes, planes=planes))))


def _is_gain(nest: For, node: Node) -> bool:
    """Whether a nest reads nothing but parts of an array, and at some site most of them often."""
    exprs = [part for s in statements((nest,)) for e in expressions_of(s) for part in walk(e)]
    read_count = sum(isinstance(part, Read) and part.node == node for part in exprs)
    parts = [read.node for part in exprs if (read := source_of_part(part)) is not None]
    sites = collect_accesses((nest,)).of(node)
    return read_count == parts.count(node) and any(_is_read_often(site, node) for site in sites)


def _is_read_often(site: Site, node: Node) -> bool:
    """Whether the loops around a site read most of an array's elements, and each of them often."""
    loops = [stmt for stmt in site.inside if isinstance(stmt, For)]
    if site.index is None or len(loops) != len(site.inside):
        return False
    axis_symbols = [
        subscript.symbols() if isinstance(subscript, Affine) else frozenset[Symbol]()
        for subscript in site.index
    ]
    used = frozenset[Symbol]().union(*axis_symbols)
    repeats = (_trip_count(loop) for loop in loops if loop.symbol not in used)
    extents = (_trip_count(loop) for loop in loops if loop.symbol in used)
    if node.static_shape is None:
        enclosing = {loop.symbol for loop in loops}
        is_most = all(symbols & enclosing for symbols in axis_symbols)
    else:
        is_most = 2 * prod(extents) >= prod(node.static_shape)
    return prod(repeats) >= thresholds.MIN_COMPLEX_READS and is_most


def _trip_count(loop: For) -> int:
    count = (loop.hi - loop.lo).constant
    return thresholds.MIN_COMPLEX_READS if count is None else max(0, -(-count // loop.step))


def _plane(node: Node, part: str, fresh: Fresh) -> Node:
    """Return a new array for one of the parts of an array's elements."""
    plane = replace(node, label=f"{node.label}_{part}", dtype=node.dtype.real, strides=None)
    return fresh.like(replace(plane, request=None, placed=False))


def _copy_parts(node: Node, planes: Planes, nest: For, fresh: Fresh) -> Iterator[Stmt]:
    """Yield the allocation of planes and the loops that copy the parts of an array into them."""
    if node.static_shape is None:
        yield from (Alloc(planes[node.id, part]) for part in _SIDES)
    symbols = [fresh.symbol(f"{node.label}_{n}") for n in range(node.rank)]
    index = tuple(var(symbol) for symbol in symbols)
    value, dtype = Read(node, index, nest.span), node.dtype.real
    body: Body = tuple(
        Store(Access(planes[node.id, part], index), Apply(OPS[name], (value,), dtype), nest.span)
        for name, part in _NAMES.items()
    )
    for symbol, extent in zip(reversed(symbols), reversed(node.shape), strict=True):
        body = (For(symbol, const(0), extent, 1, body, span=nest.span),)
    yield from body


def _read_planes(value: Expr, planes: Planes) -> Expr:
    """Return a value that reads parts from planes."""

    def rewritten(expr: Expr) -> Expr:
        match expr:
            case Apply(op, (Read(node, index, span),)) if (
                op.name in _NAMES and (node.id, _NAMES[op.name]) in planes
            ):
                return Read(planes[node.id, _NAMES[op.name]], index, span)
            case _:
                return rebuild(expr, rewritten, lambda index: index)

    return rewritten(value)
