"""Arrays of complex numbers as two of real ones, where a nest reads each element many times.

    for i: for j: for k:                   for i: for k: p[i, k] = real(x[i, k]); ...
        re += real(x[i, k]) * ...          for i: for j: for k: re += p[i, k] * ...

Changes: a nest of `pairs`, before which the parts of such an array are put apart. What reads one
part of neighbouring elements then reads neighbours: products of matrices are those of real ones.

Needs: arrays that the nest does not change, and of which it reads nothing but parts, at some place
most of them often. Guarantees: each part has the bits it had.

>>> program, _ = optimize(lowered("y[i, j] = sum(x[i, k] * z[j, k])", y="c128[30, 30]",
...     x="c128[30, 30]", z="c128[30, 30]"), Target(schedule=True), stop_after="pairs")
>>> [node.label for node in reads(program.kernels[0].body[-1:]) if node.rank]
['x_re', 'z_re', 'x_im', 'z_im']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod

from ..analysis.accesses import Site, accesses
from ..analysis.complex_parts import part_of
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
"""What has the real and the imaginary parts of an array, by its id and the name of the part."""
_SIDES = ("re", "im")
_NAMES = {"real": "re", "imag": "im"}
OFTEN = 16
"""An element that is read so many times is worth being copied; so are arrays if the sizes of loops
are known only in the run."""


def with_planes(nest: Stmt, fresh: Fresh) -> Body:
    """Return a nest that reads the parts of arrays apart, behind the loops that put them there."""
    if isinstance(nest, If):
        then, other = (
            tuple(new for stmt in body for new in with_planes(stmt, fresh))
            for body in (nest.then, nest.other)
        )
        return (replace(nest, then=then, other=other),)
    if not isinstance(nest, For):
        return (nest,)
    changed = writes((nest,))
    found = [
        node for node in reads((nest,))
        if node.dtype.kind == "c" and node.rank and node not in changed and _is_worth(nest, node)
    ]  # fmt: skip
    planes = {(node.id, part): _plane(node, part, fresh) for node in found for part in _SIDES}
    before = (stmt for node in found for stmt in _apart(node, planes, nest, fresh))
    return (*before, *rewrite((nest,), Rewrite(expr=partial(_parted, planes=planes))))


def _is_worth(nest: For, node: Node) -> bool:
    """Whether a nest reads nothing but parts of an array, and somewhere most of them often."""
    values = [part for s in statements((nest,)) for e in expressions_of(s) for part in walk(e)]
    whole = sum(isinstance(part, Read) and part.node == node for part in values)
    parts = [read.node for part in values if (read := part_of(part)) is not None]
    sites = accesses((nest,)).of(node)
    return whole == parts.count(node) and any(_is_read_often(site, node) for site in sites)


def _is_read_often(site: Site, node: Node) -> bool:
    """Whether loops around a site read most of an array's elements, and each of them often."""
    loops = [stmt for stmt in site.inside if isinstance(stmt, For)]
    if site.index is None or len(loops) != len(site.inside):
        return False
    axes = [at.symbols() if isinstance(at, Affine) else frozenset[Symbol]() for at in site.index]
    followed = frozenset[Symbol]().union(*axes)
    again = (_rounds(loop) for loop in loops if loop.symbol not in followed)
    reached = (_rounds(loop) for loop in loops if loop.symbol in followed)
    if node.static_shape is None:
        around = {loop.symbol for loop in loops}
        is_most = all(symbols & around for symbols in axes)
    else:
        is_most = 2 * prod(reached) >= prod(node.static_shape)
    return prod(again) >= OFTEN and is_most


def _rounds(loop: For) -> int:
    rounds = (loop.hi - loop.lo).constant
    return OFTEN if rounds is None else max(0, -(-rounds // loop.step))


def _plane(node: Node, part: str, fresh: Fresh) -> Node:
    """Return an array for the parts of another one."""
    made = replace(node, label=f"{node.label}_{part}", dtype=node.dtype.real, strides=None)
    return fresh.like(replace(made, request=None, placed=False))


def _apart(node: Node, planes: Planes, nest: For, fresh: Fresh) -> Iterator[Stmt]:
    """Yield what puts the parts of an array apart."""
    if node.static_shape is None:
        yield from (Alloc(planes[node.id, part]) for part in _SIDES)
    symbols = [fresh.symbol(f"{node.label}_{n}") for n in range(node.rank)]
    index = tuple(var(symbol) for symbol in symbols)
    whole, dtype = Read(node, index, nest.span), node.dtype.real
    body: Body = tuple(
        Store(Access(planes[node.id, part], index), Apply(OPS[name], (whole,), dtype), nest.span)
        for name, part in _NAMES.items()
    )
    for symbol, extent in zip(reversed(symbols), reversed(node.shape), strict=True):
        body = (For(symbol, const(0), extent, 1, body, span=nest.span),)
    yield from body


def _parted(value: Expr, planes: Planes) -> Expr:
    """Return a value that reads parts where they are apart."""

    def on(one: Expr) -> Expr:
        match one:
            case Apply(op, (Read(node, index, span),)) if (
                op.name in _NAMES and (node.id, _NAMES[op.name]) in planes
            ):
                return Read(planes[node.id, _NAMES[op.name]], index, span)
            case _:
                return rebuild(one, on, lambda index: index)

    return on(value)
