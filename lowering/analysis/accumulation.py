"""Nests that compute each element by one accumulation, split into the roles of their statements.

    for i, for j:  start;  for k: acc = acc + term(i, j, k);  rest

Scalars that are defined before the terms are substituted into them, so that a term depends only on
arrays and loop variables. An array element that is accumulated into directly becomes a scalar that
is loaded before and stored at the end. Analysis only.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> program = lowered("c[i] += w[i] * a[i, k]", c="f32[8]", w="f32[8]", a="f32[8, 5]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> found = find_accumulation(nest, fresh_for(program))
>>> [loop.symbol.name for loop in found.outer_loops], [loop.symbol.name for loop in found.depth]
(['i'], ['k'])
>>> found.acc.label, found.element.node.label
('c_sum', 'c')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.dtypes import DType
from ..ir.expressions import Expr, Read, reads, rebuild
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.walk import direct_reads, statements, writes
from .guarded_reads import nodes_of
from .reductions import is_min_max
from .self_dependence import symbols_of

Body = tuple[Stmt, ...]
ACCUMULATING_OPS = frozenset(("add", "max", "min", "mul"))
REAL_TYPES = frozenset((dtypes.float32, dtypes.float64))


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A nest whose innermost loops only accumulate."""

    outer_loops: tuple[For, ...]
    """The loops that are not reduced over, outermost first."""
    depth: tuple[For, ...]
    """The reduction loops, outermost first."""
    names: tuple[Store, ...]
    """Pure definitions of scalars, per iteration of the outer loops, before the innermost of these.
   """
    start: tuple[Store, ...]
    """Statements before the terms: they leave the initial value of the reduction in `acc`."""
    acc: Node
    update: Update
    """The accumulation into `acc`; scalars are substituted into its term."""
    rest: Body
    """Statements after the terms, with the result in `acc`."""
    element: Access | None
    """The element that the nest accumulates into directly: loaded first, stored at the end; None
    for a scalar."""

    @property
    def again(self) -> tuple[Store, ...]:
        """Definitions of scalars other than `acc` at the start, which every user recomputes."""
        return tuple(stmt for stmt in self.start if stmt.access.node != self.acc)

    def named(
        self, body: Body, inside: frozenset[Symbol]
    ) -> tuple[tuple[Store, ...], tuple[Store, ...]]:
        """Return the definitions that a body uses: those that depend on no symbol in `inside`, and
        the others."""
        used = {node.id for stmt in statements(body) for node in direct_reads(stmt)}
        needed: list[Store] = []
        for name in reversed(self.names):
            if name.access.node.id in used:
                needed.insert(0, name)
                used |= {read.node.id for read in reads(name.value)}
        outer = tuple(
            definition
            for definition in needed
            if not inside & _symbols_through(definition, self.names)
        )
        return outer, tuple(definition for definition in needed if definition not in outer)


def find_accumulation(
    loop: For, fresh: Fresh, reorders: bool = False, types: frozenset[DType] = REAL_TYPES
) -> Accumulation | None:
    """Return the roles of a nest that accumulates values of these types; None for other nests.

    The caller has to check whether its loops may be interchanged. Where `reorders`, reassociable
    sums that know the position of each term are refused: these are for `vectorize_reductions`,
    which fixes their order.
    """
    chain, names, body = _match_nest(loop)
    if body is None or body.update.op.name not in ACCUMULATING_OPS:
        return None
    node, span = body.update.access.node, body.update.span
    if node.dtype not in types:
        return None
    if reorders and node.dtype in REAL_TYPES and body.update.over and not is_min_max(body.update):
        return None
    written = frozenset(target.id for target in writes((loop,)) if target.rank)
    if any(node.id in written for name in names for node in nodes_of(name.value)):
        return None  # a recomputed definition would have another value
    definitions = (*names, *(s for s in body.before if s.access.node != node), *body.inner)
    values = {stmt.access.node.id: stmt.value for stmt in definitions}
    initial = [stmt for stmt in body.before if stmt.access.node == node]
    if len(values) != len(definitions) or node.id in values or len(initial) != (not node.rank):
        return None
    if not _are_before(definitions) or _reads_any(body.after, body.inner):
        return None
    term = _inline_scalars(body.update.value, values)
    acc, start, rest = node, body.before, body.after
    element = body.update.access if node.rank else None
    if element is not None:
        acc = fresh.scalar(f"{node.label}_sum", node.dtype)
        first = Read(node, element.index) if body.first is None else body.first
        start = (*start, Store(Access(acc, ()), first, span))
        rest = (Store(element, Read(acc, ()), span), *rest)
    if {acc.id, node.id} & {read.node.id for read in reads(term)}:
        return None  # the term depends on the sum so far
    update = replace(body.update, access=Access(acc, ()), value=term, over=())
    return Accumulation(tuple(chain), body.depth, names, start, acc, update, rest, element)


@dataclass(frozen=True, slots=True)
class _Body:
    """The body of the innermost outer loop: what it does around the reduction loops."""

    before: tuple[Store, ...]
    depth: tuple[For, ...]
    inner: tuple[Store, ...]
    update: Update
    after: Body
    first: Expr | None
    """The value stored into the array element just before terms are added to it."""


def _match_nest(loop: For) -> tuple[list[For], tuple[Store, ...], _Body | None]:
    """Return the outer loops, the scalars defined in them, and the body that accumulates."""
    chain: list[For] = []
    names: list[Store] = []
    while True:
        if loop.step != 1 or loop.kind != "serial":
            return chain, (), None
        chain.append(loop)
        body = _match_body(loop)
        if body is not None:
            return chain, tuple(names), body
        *before, last = _without_comments(loop.body) or [Comment("")]
        if not isinstance(last, For):
            return chain, (), None
        for stmt in before:
            if not isinstance(stmt, Store) or stmt.access.index:
                return chain, (), None
            names.append(stmt)
        loop = last


def _match_body(loop: For) -> _Body | None:
    """Return the roles in a loop's body where just one of its statements accumulates."""
    code = _without_comments(loop.body)
    nests = [(n, _match_terms(stmt)) for n, stmt in enumerate(code) if isinstance(stmt, For)]
    terms = nests[0][1] if len(nests) == 1 else None
    if terms is None:
        return None
    number, (depth, inner, update) = nests[0][0], terms
    before: list[Store] = []
    first: Expr | None = None
    for stmt in code[:number]:
        if not isinstance(stmt, Store) or update.access.node in nodes_of(stmt.value):
            return None
        if stmt.access.index and stmt.access == update.access and first is None:
            first = stmt.value
        elif stmt.access.index:
            return None
        else:
            before.append(stmt)
    after = code[number + 1 :]
    if any(not isinstance(s, Store | Update | If | Comment) for s in statements(after)):
        return None
    last = next(n for n, stmt in enumerate(loop.body) if stmt is code[number])
    return _Body(tuple(before), depth, inner, update, loop.body[last + 1 :], first)


def _match_terms(loop: For) -> tuple[tuple[For, ...], tuple[Store, ...], Update] | None:
    """Return the loops of a nest that only accumulates into one element, the scalars that it
    defines, and the update."""
    loops: list[For] = []
    names: list[Store] = []
    stmt: Stmt = loop
    while isinstance(stmt, For):
        if stmt.step != 1 or stmt.kind != "serial":
            return None
        loops.append(stmt)
        *before, stmt = _without_comments(stmt.body) or [Comment("")]
        for definition in before:
            if not isinstance(definition, Store) or definition.access.index:
                return None
            names.append(definition)
    if not isinstance(stmt, Update) or stmt.pair is not None:
        return None
    bound = {level.symbol for level in loops}
    if any(not isinstance(at, Affine) or at.symbols() & bound for at in stmt.access.index):
        return None
    return tuple(loops), tuple(names), stmt


def _without_comments(body: Body) -> list[Stmt]:
    return [stmt for stmt in body if not isinstance(stmt, Comment)]


def _are_before(named: Sequence[Store]) -> bool:
    """Whether no name has a value of an earlier iteration: each is made of names before it."""
    left = {stmt.access.node.id for stmt in named}
    for stmt in named:
        if not left.isdisjoint(read.node.id for read in reads(stmt.value)):
            return False
        left.discard(stmt.access.node.id)
    return True


def _reads_any(body: Body, named: Sequence[Store]) -> bool:
    """Whether statements after the terms read the value that a name has in the last one of them:
    names are substituted, and have no value afterwards."""
    ids = {stmt.access.node.id for stmt in named}
    return any(node.id in ids for stmt in statements(body) for node in direct_reads(stmt))


def _inline_scalars(value: Expr, names: Mapping[int, Expr]) -> Expr:
    """Return an expression with scalars replaced by their definitions."""
    if isinstance(value, Read) and not value.index and value.node.id in names:
        return _inline_scalars(names[value.node.id], names)
    return rebuild(value, lambda operand: _inline_scalars(operand, names), lambda index: index)


def _symbols_through(name: Store, names: tuple[Store, ...]) -> frozenset[Symbol]:
    """Return the symbols that a definition depends on, transitively."""
    direct = symbols_of(name.value)
    used = {read.node.id for read in reads(name.value)}
    dependencies = (
        definition
        for definition in names
        if definition.access.node.id in used and definition is not name
    )
    return direct.union(*(_symbols_through(definition, names) for definition in dependencies))
