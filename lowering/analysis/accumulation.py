"""Nests that compute each of their elements by one accumulation: their parts, by what they are for.

    for i, for j:  start;  for k: acc = acc + term(i, j, k);  rest

What scalars name before the terms is put in its place there, so that a term says all by itself what
it is computed from. An array's element that is added to directly becomes a scalar that is read from
it before, and stored into it at the end. This changes nothing: it takes nests apart for others.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> program = lowered("c[i] += w[i] * a[i, k]", c="f32[8]", w="f32[8]", a="f32[8, 5]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> found = accumulation(nest, fresh_for(program))
>>> [loop.symbol.name for loop in found.chain], [loop.symbol.name for loop in found.depth]
(['i'], ['k'])
>>> found.acc.label, found.place.node.label
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
from ..ir.walk import own_reads, statements, writes
from .guarded_reads import nodes_of
from .reductions import is_extreme
from .self_dependence import symbols_of

Body = tuple[Stmt, ...]
ACCUMULATED = frozenset(("add", "max", "min", "mul"))
REALS = frozenset((dtypes.float32, dtypes.float64))


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A nest whose innermost loops do nothing but accumulate."""

    chain: tuple[For, ...]
    """The loops that do not count, outermost first."""
    depth: tuple[For, ...]
    """The loops that count the terms."""
    names: tuple[Store, ...]
    """Scalars that rounds of the chain name before its innermost loop: they are pure."""
    start: tuple[Store, ...]
    """What comes before the terms: it leaves in `acc` what they are added to."""
    acc: Node
    update: Update
    """The accumulation in `acc`; names are inlined in its term."""
    rest: Body
    """What comes after the terms, with the result in `acc`."""
    place: Access | None
    """The element that the nest adds to directly: it is read first, and stored at the end."""

    @property
    def again(self) -> tuple[Store, ...]:
        """What the start names besides `acc`."""
        return tuple(stmt for stmt in self.start if stmt.access.node != self.acc)

    def named(
        self, body: Body, inside: frozenset[Symbol]
    ) -> tuple[tuple[Store, ...], tuple[Store, ...]]:
        """Return the names that a body uses: those that depend on no such symbol, and the rest."""
        used = {node.id for stmt in statements(body) for node in own_reads(stmt)}
        needed: list[Store] = []
        for name in reversed(self.names):
            if name.access.node.id in used:
                needed.insert(0, name)
                used |= {read.node.id for read in reads(name.value)}
        outer = tuple(one for one in needed if not inside & _known(one, self.names))
        return outer, tuple(one for one in needed if one not in outer)


def accumulation(
    loop: For, fresh: Fresh, reorders: bool = False, types: frozenset[DType] = REALS
) -> Accumulation | None:
    """Return the parts of a nest that accumulates values of these types; None for others.

    Whether its loops may change places is for the caller to find out. Where `reorders`, sums that
    know where their terms stand are for `lanes`: they have its order wherever they are.
    """
    chain, names, body = _opened(loop)
    if body is None or body.update.op.name not in ACCUMULATED:
        return None
    node, span = body.update.access.node, body.update.span
    if node.dtype not in types:
        return None
    if reorders and node.dtype in REALS and body.update.over and not is_extreme(body.update):
        return None
    changed = frozenset(one.id for one in writes((loop,)) if one.rank)
    if any(node.id in changed for name in names for node in nodes_of(name.value)):
        return None  # where it is named again it would be another number
    named = (*names, *(s for s in body.before if s.access.node != node), *body.inner)
    known = {stmt.access.node.id: stmt.value for stmt in named}
    begun = [stmt for stmt in body.before if stmt.access.node == node]
    if len(known) != len(named) or node.id in known or len(begun) != (not node.rank):
        return None
    if not _are_before(named):
        return None
    value = _inlined(body.update.value, known)
    acc, start, rest = node, body.before, body.after
    place = body.update.access if node.rank else None
    if place is not None:
        acc = fresh.scalar(f"{node.label}_sum", node.dtype)
        first = Read(node, place.index) if body.first is None else body.first
        start = (*start, Store(Access(acc, ()), first, span))
        rest = (Store(place, Read(acc, ()), span), *rest)
    if acc.id in {read.node.id for read in reads(value)}:
        return None
    update = replace(body.update, access=Access(acc, ()), value=value, over=())
    return Accumulation(tuple(chain), body.depth, names, start, acc, update, rest, place)


@dataclass(frozen=True, slots=True)
class _Body:
    """The innermost of the loops that do not count: what it does."""

    before: tuple[Store, ...]
    depth: tuple[For, ...]
    inner: tuple[Store, ...]
    update: Update
    after: Body
    first: Expr | None
    """What is stored into the element of an array that the terms are added to."""


def _opened(loop: For) -> tuple[list[For], tuple[Store, ...], _Body | None]:
    """Return the loops down to the one that accumulates, what they name, and its body."""
    chain: list[For] = []
    names: list[Store] = []
    while True:
        if loop.step != 1 or loop.kind != "serial":
            return chain, (), None
        chain.append(loop)
        body = _body(loop)
        if body is not None:
            return chain, tuple(names), body
        *before, last = _code(loop.body) or [Comment("")]
        if not isinstance(last, For):
            return chain, (), None
        for stmt in before:
            if not isinstance(stmt, Store) or stmt.access.index:
                return chain, (), None
            names.append(stmt)
        loop = last


def _body(loop: For) -> _Body | None:
    """Return what a loop does where it accumulates in just one of its statements."""
    code = _code(loop.body)
    found = [(n, _terms(stmt)) for n, stmt in enumerate(code) if isinstance(stmt, For)]
    terms = found[0][1] if len(found) == 1 else None
    if terms is None:
        return None
    number, (depth, inner, update) = found[0][0], terms
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


def _terms(loop: For) -> tuple[tuple[For, ...], tuple[Store, ...], Update] | None:
    """Return the loops of a nest that only accumulates in one place, what they name, and that."""
    loops: list[For] = []
    names: list[Store] = []
    stmt: Stmt = loop
    while isinstance(stmt, For):
        if stmt.step != 1 or stmt.kind != "serial":
            return None
        loops.append(stmt)
        *before, stmt = _code(stmt.body) or [Comment("")]
        for one in before:
            if not isinstance(one, Store) or one.access.index:
                return None
            names.append(one)
    if not isinstance(stmt, Update) or stmt.pair is not None:
        return None
    bound = {one.symbol for one in loops}
    if any(not isinstance(at, Affine) or at.symbols() & bound for at in stmt.access.index):
        return None
    return tuple(loops), tuple(names), stmt


def _code(body: Body) -> list[Stmt]:
    return [stmt for stmt in body if not isinstance(stmt, Comment)]


def _are_before(named: Sequence[Store]) -> bool:
    """Whether no name has a value of an earlier iteration: each is made of names before it."""
    left = {stmt.access.node.id for stmt in named}
    for stmt in named:
        if not left.isdisjoint(read.node.id for read in reads(stmt.value)):
            return False
        left.discard(stmt.access.node.id)
    return True


def _inlined(value: Expr, names: Mapping[int, Expr]) -> Expr:
    """Return an expression with what scalars stand for in their place."""
    if isinstance(value, Read) and not value.index and value.node.id in names:
        return _inlined(names[value.node.id], names)
    return rebuild(value, lambda one: _inlined(one, names), lambda index: index)


def _known(name: Store, names: tuple[Store, ...]) -> frozenset[Symbol]:
    """Return the symbols that a name depends on, through others too."""
    own = symbols_of(name.value)
    used = {read.node.id for read in reads(name.value)}
    others = (other for other in names if other.access.node.id in used and other is not name)
    return own.union(*(_known(other, names) for other in others))
