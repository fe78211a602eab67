"""Sinking of reductions to their single use.

Changes: a nest that accumulates each element of a local array, read by one statement with a
shifted, strided, mirrored or transposed subscript, is removed; the statement accumulates its
element in a scalar first.

Precondition: fused nests: where loops have the same iteration space, `fuse` has merged them, and
`contract_arrays` does the rest. Postcondition: each element is accumulated once, in the same order;
the iteration at which the statement's element was accumulated is known, and surely one of the
nest's; nothing that the sum reads is written between; sums that are tiled as products of matrices
stay.

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
from ...base.lazy_import import LazyModule
from ..analysis.accesses import Accesses, Site, collect_accesses, position_in
from ..analysis.effects import bound_symbols, summarize, touched_nodes
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import is_in_loops, ranges, solve_subscripts
from ..ir.assignments import Access
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Expr, Read, rebuild, walk
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Symbol
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import Rewrite, rename, rewrite, substitute, with_bodies
from ..ir.walk import binds, bodies, expressions_of, parts, statements

if TYPE_CHECKING:
    from ..analysis import product_loops
else:  # what few programs need
    product_loops = LazyModule("..analysis.product_loops", __package__)

Body = tuple[Stmt, ...]


class SinkReason(Reason):
    """Why a sum has no array."""

    ONCE = "each element is read once, so it is accumulated where it is read"


class NoSinkReason(Reason):
    """Why a sum that is read elsewhere than where it is computed stays an array."""

    AGAIN = "its elements are sums, and some may be read more than once"
    UNKNOWN_POINT = (
        "the point at which a read element was accumulated cannot be told from its index"
    )
    CHANGED = "what it is summed from is written before its last use"
    TILES = "it is a product of matrices, which runs faster in tiles than element by element"


def sink(program: Program) -> Decided:
    """Return the program with sums computed where they are read, and the decision for each."""
    decisions: list[Decision] = []
    kernels = list(program.kernels)
    removed: set[int] = set()
    fresh = fresh_for(program)
    for number, kernel in enumerate(kernels):
        others = (s for k in kernels if k is not kernel for s in k.body)
        outside = touched_nodes(others)
        candidates = {n.id for n in program.locals if n.rank and n.request is None} - outside
        body, sites = kernel.body, None
        for sum_ in [
            candidate for candidate in _find_sums(body) if candidate.target.id in candidates
        ]:
            node = sum_.target
            sites = sites or collect_accesses(body)
            result = _sink_sum(body, sites, sum_, fresh)
            if isinstance(result, NoSinkReason):
                decisions.append(Decision("stored", result, node))
            elif result is not None:
                body, sites = result, None
                removed.add(node.id)
                decisions.append(Decision("shrunk", SinkReason.ONCE, replace(node, shape=())))
        kernels[number] = replace(kernel, body=body)
    locals_ = tuple(replace(n, shape=()) if n.id in removed else n for n in program.locals)
    new = replace(program, locals=locals_, kernels=tuple(kernels))
    return Decided(new if removed else program, tuple(decisions))


@dataclass(frozen=True, slots=True)
class _Sum:
    """A nest that initializes each element of a node and accumulates it."""

    nest: For
    target: Node
    access: Access
    loops: tuple[For, ...]
    """The loops around the initialization."""
    body: Body
    """The initialization, and the nest around the update."""


def _find_sums(body: Body) -> list[_Sum]:
    """Return the nests in some statements that accumulate the elements of one node."""
    matches = (_match_sum(stmt) for stmt in statements(body) if isinstance(stmt, For))
    return [candidate for candidate in matches if candidate is not None]


def _match_sum(nest: For) -> _Sum | None:
    loops: list[For] = []
    inner_code: list[Stmt] = [nest]
    while len(inner_code) == 1 and isinstance(inner_code[0], For):
        loops.append(inner_code[0])
        inner_code = [stmt for stmt in inner_code[0].body if not isinstance(stmt, Comment)]
    if len(inner_code) != 2:
        return None
    start, inner = inner_code
    if not isinstance(start, Store):
        return None
    inner_statements = tuple(statements((inner,)))
    updates = [stmt for stmt in inner_statements if isinstance(stmt, Update)]
    if len(updates) != 1 or not all(
        isinstance(s, For | If | Update | Comment) for s in inner_statements
    ):
        return None
    (update,) = updates
    is_affine = all(isinstance(subscript, Affine) for subscript in start.access.index)
    if update.pair is not None or update.access != start.access or not is_affine:
        return None
    if any(e.node == start.access.node for s in (start, *inner_statements) for e in _reads(s)):
        return None
    return _Sum(nest, start.access.node, start.access, tuple(loops), (start, inner))


def _reads(stmt: Stmt) -> Iterable[Read]:
    return (e for expr in expressions_of(stmt) for e in walk(expr) if isinstance(e, Read))


def _sink_sum(
    body: Body, all_accesses: Accesses, sum_: _Sum, fresh: Fresh
) -> Body | NoSinkReason | None:
    """Return the body with a sum moved to its use; None where the pattern does not match."""
    sites = all_accesses.of(sum_.target)
    uses = [s for s in sites if s.kind == "read"]
    if len(sites) != len(uses) + 2 or not uses:
        return None
    first = sites[0]
    depth = next((at for at, stmt in enumerate(first.inside) if stmt is sum_.nest), None)
    if depth is None:
        return None
    route, at = first.route[:depth], first.route[depth][0]
    positions = [position_in(s.route, route) for s in uses]
    if any(position is None or position <= at for position in positions):
        return None
    use = uses[0]
    values = (
        None if use.index is None else solve_subscripts(sum_.access.index, use.index, sum_.loops)
    )
    if values is None:
        return NoSinkReason.UNKNOWN_POINT
    if all(value.symbol is not None for value in values.values()) and _has_equal_loops(
        sum_, values, use
    ):
        return None  # which `fuse` does better
    if not is_in_loops(values, sum_.loops, ranges(use.inside), ()):
        return NoSinkReason.UNKNOWN_POINT
    enclosing = use.inside[depth:]
    only_loops = all(isinstance(stmt, For | If) for stmt in enclosing)
    if len(uses) > 1 or not only_loops or not is_injective(use.index or (), ranges(enclosing)):
        return NoSinkReason.AGAIN
    if product_loops.tiled_symbols(sum_.nest):
        return NoSinkReason.TILES
    if _is_changed(all_accesses, sum_, use, depth):
        return NoSinkReason.CHANGED
    return _rebuild_body(body, _with_fresh_variables(use, sum_, fresh), values)


def _has_equal_loops(sum_: _Sum, values: dict[Symbol, Affine], use: Site) -> bool:
    """Whether the loops around the use have the same iteration space as those of the sum."""
    loops_around = {stmt.symbol: stmt for stmt in use.inside if isinstance(stmt, For)}
    for loop in sum_.loops:
        use_loop = loops_around.get(cast(Symbol, values[loop.symbol].symbol))
        if use_loop is None or (use_loop.lo, use_loop.hi, use_loop.step) != (
            loop.lo,
            loop.hi,
            loop.step,
        ):
            return False
    return True


def _is_changed(all_accesses: Accesses, sum_: _Sum, use: Site, depth: int) -> bool:
    """Whether what the sum reads may be written after the nest, up to the use."""
    sources = summarize(sum_.nest).reads - {sum_.target.id}
    first = next(s for s in all_accesses.of(sum_.target))
    at, last = first.route[depth][0], use.route[depth][0]
    written = (s for number in sources for s in all_accesses.sites.get(number, ()) if s.writes)
    positions = (position_in(site.route, first.route[:depth]) for site in written)
    return any(position is not None and at < position <= last for position in positions)


def _with_fresh_variables(use: Site, sum_: _Sum, fresh: Fresh) -> _Sum:
    """Return the sum with other variables for those of its inner loops that loops around the use
    have, too."""
    around = {symbol for stmt in use.inside for symbol in binds(stmt)}
    clashing = bound_symbols(sum_.body) & around
    names = {symbol: fresh.symbol(symbol.name) for symbol in sorted(clashing, key=str)}
    return replace(sum_, body=rename(sum_.body, names, {})) if names else sum_


def _rebuild_body(body: Body, sum_: _Sum, values: dict[Symbol, Affine]) -> Body | None:
    """Return the body without the nest, and with its sum before the statement that reads it."""
    scalar = replace(sum_.target, shape=())

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        is_ours = isinstance(value, Read) and value.node == sum_.target
        return Read(scalar, ()) if is_ours else value

    def replace_uses(stmts: Body) -> Body:
        out: list[Stmt] = []
        for stmt in stmts:
            if stmt is sum_.nest:
                continue
            reads = isinstance(stmt, Store | Update) and _nodes_read(stmt)
            if reads and sum_.target in reads:
                out += sunk_body
                out += rewrite((stmt,), Rewrite(expr=expr))
                continue
            inner = tuple(replace_uses(nested) for nested in bodies(stmt))
            out.append(with_bodies(stmt, inner) if inner else stmt)
        return tuple(out)

    def to_scalar(stmt: Stmt) -> Stmt:
        inner = tuple(tuple(map(to_scalar, nested)) for nested in bodies(stmt))
        if isinstance(stmt, Store | Update):
            return replace(stmt, access=Access(scalar, ()))
        return with_bodies(stmt, inner) if inner else stmt

    sunk_body = substitute(tuple(map(to_scalar, sum_.body)), values)
    new = replace_uses(body)
    is_still_used = any(node == sum_.target for s in statements(new) for node in _nodes(s))
    return None if is_still_used else new


def _nodes_read(stmt: Stmt) -> frozenset[Node]:
    return frozenset(read.node for read in _reads(stmt))


def _nodes(stmt: Stmt) -> Iterable[Node]:
    yield from (read.node for read in _reads(stmt))
    yield from (access.node for access in parts(stmt).targets)
