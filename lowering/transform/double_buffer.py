"""Double buffering of loops with anti-dependences: all new values first, then their stores.

    for i in 0..n: x[i] = f(x[i + d])
    becomes
    for i in 0..n: new[i] = f(x[i + d])
    for i in 0..n: x[i] = new[i]

Precondition: iterations whose only effect is to change one element each, which no later iteration
reads or changes. Where the distance `d` depends on data, it is tested at run time: where it is not
as needed, the loop runs in order.

>>> program = lowered('''
... for i in range(899):
...     x[i] = x[i + 1] * 2
... ''', x="f32[900]")
>>> print_loops(double_buffer(program, facts_of(program), fresh_for(program)).kernels[0].body)
for i in 0..899:
    # x[i] = x[i + 1] * 2
    x_new[i] = x[i + 1] * 2.0
for i in 0..899:
    x[i] = x_new[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.accesses import Site, collect_accesses
from ..analysis.accumulators import find_accumulators
from ..analysis.conjunctions import conjunction
from ..analysis.dependence import has_carried_dependence
from ..analysis.involution import iteration_values
from ..analysis.parallel_band import Facts, nest_loops, perfect_nest
from ..analysis.predicate_facts import is_never
from ..analysis.subscripts import is_in_range, ranges
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, substitute, var
from ..ir.loops import Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ..ir.ops import OPS
from ..ir.rewrite import map_kernels, map_statements, rename, with_bodies
from ..ir.walk import binds, bodies, direct_writes, statements, writes

Body = tuple[Stmt, ...]


def double_buffer(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program with loops double-buffered that are independent but for
    anti-dependences."""

    def body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(replaced for stmt in stmts for replaced in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            change = _match_change(stmt, outer, facts, fresh)
            if change is not None:
                return change.apply(fresh)
            outer = (*outer, stmt)
            if facts.is_free(stmt, facts.private(stmt), ranges(outer[:-1])):
                return (stmt,)
        return (with_bodies(stmt, tuple(body(part, outer) for part in bodies(stmt))),)

    return map_kernels(program, lambda stmts: body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Change:
    """A nest whose iterations change one element each."""

    loops: tuple[For, ...]
    body: Body
    change: Store | Update
    tests: tuple[Expr, ...]
    """Run-time conditions, as far as they are not proven."""

    def apply(self, fresh: Fresh) -> Body:
        """Return the nest that computes the new elements, and the one that stores them."""
        node, index = self.change.access.node, self.change.access.index
        new = fresh.array(f"{node.label}_new", node.shape, node.dtype)
        here, old = Access(new, index), Read(node, index)
        compute = Store(here, new_value(self.change), self.change.span)

        def replace_change(stmt: Stmt) -> Body:
            return (compute,) if stmt is self.change else (stmt,)

        body = map_statements(self.body, replace_change)
        if not any(stmt is self.change for stmt in self.body):
            body = (Store(here, old, self.change.span), *body)
        if self.tests:
            copies = {n.id: fresh.like(n) for n in writes(body) if n != new}
            names = {s: fresh.symbol(s.name) for stmt in statements(body) for s in binds(stmt)}
            body = rename(body, names, copies)
        back = Store(self.change.access, Read(new, index), self.change.span)
        nests = (*self.nest(body, fresh), *self.nest((back,), fresh))
        if not self.tests:
            return nests
        return (If(conjunction(self.tests), nests, nest_loops(self.loops, self.body)),)

    def nest(self, body: Body, fresh: Fresh) -> Body:
        """Return a copy of the nest around another body, with fresh symbols."""
        names = {loop.symbol: fresh.symbol(loop.symbol.name) for loop in self.loops}
        values = {old: var(symbol) for old, symbol in names.items()}
        loops = [
            replace(loop, lo=substitute(loop.lo, values), hi=substitute(loop.hi, values))
            for loop in self.loops
        ]
        return rename(nest_loops(loops, body), names, {})


def new_value(change: Store | Update) -> Expr:
    """Return the value that a statement stores into its element."""
    if isinstance(change, Store):
        return change.value
    old = Read(change.access.node, change.access.index)
    return Apply(change.op, (old, change.value), change.access.node.dtype)


def _match_change(loop: For, outer: tuple[For, ...], facts: Facts, fresh: Fresh) -> _Change | None:
    """Return the change of a nest, None where it has other effects, is already independent, or
    cannot be double-buffered."""
    loops, body = perfect_nest(loop)
    private = facts.private(loops[-1])
    inside = statements(body)
    visible = [
        effect for effect in inside if any(node.id not in private for node in direct_writes(effect))
    ]
    blocking = Print, Permute, Alloc, Break, Continue, While, Fill
    if len(visible) != 1 or any(isinstance(stmt, blocking) for stmt in inside):
        return None
    (change,) = visible
    if not isinstance(change, Store | Update) or any(level.kind != "serial" for level in loops):
        return None
    node, index = change.access.node, change.access.index
    is_special = isinstance(change, Update) and (change.pair is not None or change.atomic)
    if (
        not node.rank
        or is_special
        or node.bytes >= thresholds.MAX_EXPANDED_BYTES
        or not fresh.fits(node.shape)
    ):
        return None
    bound = {symbol for stmt in inside for symbol in binds(stmt)}
    if any(isinstance(at, Dynamic) or at.symbols() & bound for at in index):
        return None
    domain = ranges((*outer, *loops))
    is_unconditional = any(stmt is change for stmt in body)
    if not _is_last(body, change) or not (is_unconditional or is_in_range(node, index, domain)):
        return None
    if facts.is_free(loop, facts.private(loop), ranges(outer)) or find_accumulators(
        loop, private, facts
    ):
        return None
    tests = _run_time_tests(loops, change, outer)
    return None if tests is None else _Change(loops, body, change, tests)


def _is_last(body: Body, change: Stmt) -> bool:
    """Whether a statement is the last of an iteration, and runs at most once."""
    plain = [stmt for stmt in body if not isinstance(stmt, Comment)]
    last = plain[-1] if plain else None
    if isinstance(last, If):
        return _is_last(last.then, change) or _is_last(last.orelse, change)
    return last is change


def _run_time_tests(
    loops: tuple[For, ...], change: Store | Update, outer: tuple[For, ...]
) -> tuple[Expr, ...] | None:
    """Return the conditions under which no iteration reads or changes what an earlier one has
    changed, None where that cannot be expressed."""
    node, tests = change.access.node, dict[Expr, None]()
    for at, loop in enumerate(loops):
        domain = ranges((*outer, *loops[:at]))
        sites = collect_accesses((loop,)).of(node)
        writes = [site for site in sites if site.writes]
        if any(
            has_carried_dependence(loop, source, sink, domain)
            for source in writes
            for sink in writes
        ):
            return None
        for site in sites:
            if not site.writes and any(
                has_carried_dependence(loop, source, site, domain) for source in writes
            ):
                test = _distance_test(loop, site, writes[0]) if len(loops) == 1 else None
                if test is None or is_never(test, {}, ranges((*outer, loop))):
                    return None
                tests[test] = None
    return tuple(tests)


def _distance_test(loop: For, site: Site, change: Site) -> Expr | None:
    """Return the test that an iteration reads an element of its own or of a later iteration, None
    where the distance varies."""
    iteration = iteration_values(loop)
    distances: list[Expr] = []
    for at, written in zip(site.index or (), change.index or (), strict=True):
        if at == written:
            continue
        expr = iteration.resolve(at.value if isinstance(at, Dynamic) else Position(at))
        distance = _subscript_distance(expr, written, loop.symbol)
        if distance is None or not iteration.stays(distance):
            return None
        distances.append(distance)
    if len(distances) != 1:
        return None
    name = "ge" if loop.step > 0 else "le"
    return Apply(OPS[name], (distances[0], Const(0, dtypes.int64)), dtypes.bool_)


def _subscript_distance(expr: Expr, written: Index, symbol: Symbol) -> Expr | None:
    """Return the distance from a subscript that moves by one with each iteration to another, None
    where it is not known."""
    if not isinstance(written, Affine) or written.coefficient(symbol) != 1:
        return None
    here = Position(written)
    match expr:
        case Position(at):
            return Position(at - written)
        case Apply(op, (left, right), dtype) if op.name == "add" and here in (left, right):
            return right if left == here else left
        case Apply(op, (left, right), dtype) if op.name == "sub" and left == here:
            return Apply(OPS["neg"], (right,), dtype)
        case _:
            return None
