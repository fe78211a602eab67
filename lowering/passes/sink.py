"""Sink: a sum that is read once, but not where it is computed, is computed where it is read.

Changes: a nest that accumulates each element of a local array, read by one statement at a shifted,
strided, mirrored or transposed place, goes; the statement computes its element in a scalar first.

Needs: fused nests: where loops run through the same values, `fuse` has put them together, and
`shrink` does the rest. Guarantees: each element is accumulated once, in the same order; the point
at which the statement's element was accumulated is known, and surely one of the nest's; nothing
that the sum reads is written between; sums that are tiled as products of matrices stay.

>>> show(sink, '''
... t[i] = sum(x[i, j])
... y[i] = t[7 - i] * 2
... ''', y="f32[8]", x="f32[8, 9]")
for i in 0..8:
    t = 0.0
    for j in 0..9:
        t += x[-i + 7, j]
    y[i] = t * 2.0
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ...base.dataclass import dataclass
from ...base.lazy_import import Later
from ..analysis.accesses import Accesses, Site, accesses, place_in
from ..analysis.effects import summary, touched
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import is_inside, ranges, solve
from ..ir.assignments import Access
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Expr, Read, rebuild, walk
from ..ir.indexing import Affine, Symbol
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import Rewrite, rewrite, substitute, with_bodies
from ..ir.walk import bodies, expressions_of, parts, statements

if TYPE_CHECKING:
    from ..analysis import product_loops
else:  # what few programs need
    product_loops = Later("..analysis.product_loops", __package__)

Body = tuple[Stmt, ...]


class Sunk(Reason):
    """Why a sum has no array."""

    ONCE = "each element is read once, so it is accumulated where it is read"


class Kept(Reason):
    """Why a sum that is read elsewhere than where it is computed stays an array."""

    AGAIN = "its elements are sums, and some may be read more than once"
    PLACE = "the point at which a read element was accumulated cannot be told from its index"
    CHANGED = "what it is summed from is written before its last use"
    TILES = "it is a product of matrices, which runs faster in tiles than element by element"


def sink(program: Program) -> Program:
    """Return the program with sums computed where they are read."""
    return sunk(program).program


def sunk(program: Program) -> Decided:
    """Return the program with sums computed where they are read, and why each was or was not."""
    decisions: list[Decision] = []
    kernels = list(program.kernels)
    gone: set[int] = set()
    for number, kernel in enumerate(kernels):
        others = (s for k in kernels if k is not kernel for s in k.body)
        outside = touched(others)
        own = {n.id for n in program.locals if n.rank and n.request is None} - outside
        body, found = kernel.body, None
        for made in [one for one in _sums(body) if one.target.id in own]:
            node = made.target
            found = found or accesses(body)
            result = _moved(body, found, made)
            if isinstance(result, Kept):
                decisions.append(Decision("stored", result, node))
            elif result is not None:
                body, found = result, None
                gone.add(node.id)
                decisions.append(Decision("shrunk", Sunk.ONCE, replace(node, shape=())))
        kernels[number] = replace(kernel, body=body)
    locals_ = tuple(replace(n, shape=()) if n.id in gone else n for n in program.locals)
    new = replace(program, locals=locals_, kernels=tuple(kernels))
    return Decided(new if gone else program, tuple(decisions))


@dataclass(frozen=True, slots=True)
class _Sum:
    """A nest that starts each element of a node and accumulates it."""

    nest: For
    target: Node
    access: Access
    loops: tuple[For, ...]
    """The loops around the start."""
    body: Body
    """The start, and the nest around the update."""


def _sums(body: Body) -> list[_Sum]:
    """Return the nests in some statements that accumulate the elements of one node."""
    found = (_sum(stmt) for stmt in statements(body) if isinstance(stmt, For))
    return [one for one in found if one is not None]


def _sum(nest: For) -> _Sum | None:
    loops: list[For] = []
    code: list[Stmt] = [nest]
    while len(code) == 1 and isinstance(code[0], For):
        loops.append(code[0])
        code = [stmt for stmt in code[0].body if not isinstance(stmt, Comment)]
    if len(code) != 2:
        return None
    start, inner = code
    if not isinstance(start, Store):
        return None
    inside = tuple(statements((inner,)))
    updates = [stmt for stmt in inside if isinstance(stmt, Update)]
    if len(updates) != 1 or not all(isinstance(s, For | If | Update | Comment) for s in inside):
        return None
    (update,) = updates
    plain = all(isinstance(one, Affine) for one in start.access.index)
    if update.pair is not None or update.access != start.access or not plain:
        return None
    if any(e.node == start.access.node for s in (start, *inside) for e in _reads(s)):
        return None
    return _Sum(nest, start.access.node, start.access, tuple(loops), (start, inner))


def _reads(stmt: Stmt) -> Iterable[Read]:
    return (e for expr in expressions_of(stmt) for e in walk(expr) if isinstance(e, Read))


def _moved(body: Body, found: Accesses, made: _Sum) -> Body | Kept | None:
    """Return the body with a sum where it is read; None where that is not our case."""
    sites = found.of(made.target)
    uses = [s for s in sites if s.kind == "read"]
    if len(sites) != len(uses) + 2 or not uses:
        return None
    first = sites[0]
    depth = next((at for at, stmt in enumerate(first.inside) if stmt is made.nest), None)
    if depth is None:
        return None
    route, at = first.route[:depth], first.route[depth][0]
    places = [place_in(s.route, route) for s in uses]
    if any(place is None or place <= at for place in places):
        return None
    use = uses[0]
    values = None if use.index is None else solve(made.access.index, use.index, made.loops)
    if values is None:
        return Kept.PLACE
    if all(value.symbol is not None for value in values.values()) and _alike(made, values, use):
        return None  # which `fuse` knows better
    if not is_inside(values, made.loops, ranges(use.inside), ()):
        return Kept.PLACE
    around = use.inside[depth:]
    whole = all(isinstance(stmt, For | If) for stmt in around)
    if len(uses) > 1 or not whole or not is_injective(use.index or (), ranges(around)):
        return Kept.AGAIN
    if product_loops.tiled(made.nest):
        return Kept.TILES
    if _is_changed(found, made, use, depth):
        return Kept.CHANGED
    return _rebuilt(body, made, use, values)


def _alike(made: _Sum, values: dict[Symbol, Affine], use: Site) -> bool:
    """Whether the loops around the use run through the same values as those of the sum."""
    around = {stmt.symbol: stmt for stmt in use.inside if isinstance(stmt, For)}
    for loop in made.loops:
        other = around.get(cast(Symbol, values[loop.symbol].symbol))
        if other is None or (other.lo, other.hi, other.step) != (loop.lo, loop.hi, loop.step):
            return False
    return True


def _is_changed(found: Accesses, made: _Sum, use: Site, depth: int) -> bool:
    """Whether what the sum reads may be written after the nest, up to the use."""
    sources = summary(made.nest).reads - {made.target.id}
    first = next(s for s in found.of(made.target))
    at, last = first.route[depth][0], use.route[depth][0]
    written = (s for number in sources for s in found.sites.get(number, ()) if s.writes)
    places = (place_in(site.route, first.route[:depth]) for site in written)
    return any(place is not None and at < place <= last for place in places)


def _rebuilt(body: Body, made: _Sum, use: Site, values: dict[Symbol, Affine]) -> Body | None:
    """Return the body without the nest, and with its sum before the statement that reads it."""
    scalar = replace(made.target, shape=())

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        is_ours = isinstance(value, Read) and value.node == made.target
        return Read(scalar, ()) if is_ours else value

    def changed(stmts: Body) -> Body:
        out: list[Stmt] = []
        for stmt in stmts:
            if stmt is made.nest:
                continue
            reads = isinstance(stmt, Store | Update) and _nodes_read(stmt)
            if reads and made.target in reads:
                out += moved
                out += rewrite((stmt,), Rewrite(expr=expr))
                continue
            inner = tuple(changed(one) for one in bodies(stmt))
            out.append(with_bodies(stmt, inner) if inner else stmt)
        return tuple(out)

    def on_scalar(stmt: Stmt) -> Stmt:
        inner = tuple(tuple(map(on_scalar, one)) for one in bodies(stmt))
        if isinstance(stmt, Store | Update):
            return replace(stmt, access=Access(scalar, ()))
        return with_bodies(stmt, inner) if inner else stmt

    moved = substitute(tuple(map(on_scalar, made.body)), values)
    new = changed(body)
    left = any(node == made.target for s in statements(new) for node in _nodes(s))
    return None if left else new


def _nodes_read(stmt: Stmt) -> frozenset[Node]:
    return frozenset(read.node for read in _reads(stmt))


def _nodes(stmt: Stmt) -> Iterable[Node]:
    yield from (read.node for read in _reads(stmt))
    yield from (access.node for access in parts(stmt).targets)
