"""Idempotent scatters: iterations that store equal values in unset elements, as marks and a fill.

    for e: if level[u[e]] == k and level[v[e]] < 0: level[v[e]] = k + 1
    becomes
    marks = 0
    for e: if level[u[e]] == k and level[v[e]] < 0: marks[v[e]] max= 1
    for c: if marks[c]: level[c] = k + 1

The same elements are stored in any order of iterations. Where it is known, or checked before, that
the stored value (`k+1`) is neither negative nor `k`, and that `k` is not negative, no iteration
changes what another one tests, but for the element that both may store. Precondition: iterations
that do nothing but store elements at one location, which they test, and set flags.

>>> program, _ = optimize(lowered('''
... for k in range(5):
...     for e in range(len(u)):
...         if level[u[e]] == k and level[v[e]] < 0:
...             level[v[e]] = k + 1
... ''', level="i64[90]", u="i64[900]", v="i64[900]"), Target("cuda"))
>>> rewritten = rewrite_idempotent_scatters(program, facts_of(program), fresh_for(program))
>>> [type(stmt).__name__ for stmt in rewritten.kernels[0].body[-1].body[-3:]]
['For', 'For', 'For']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.conjunctions import conjunction, split_conjunction
from ...analysis.dependence import has_break
from ...analysis.guarded_reads import negate
from ...analysis.involution import IterationValues, iteration_values
from ...analysis.parallel_band import Facts, nest_loops
from ...analysis.predicate_facts import OVERFLOW_SAFE, Values, is_never
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.algebra import TRUE
from ...ir.assignments import Access, Alloc, Continue, Let, Permute, Print
from ...ir.expressions import (
    Apply,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    reads,
    rebuild,
)
from ...ir.fresh import Fresh
from ...ir.indexing import Range, Symbol, const, var
from ...ir.loops import Check, Fill, For, If, Program, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, rename, with_bodies
from ...ir.walk import binds, bodies, direct_reads, direct_writes, statements, writes
from .monotonic import monotonic_bounds

Body = tuple[Stmt, ...]
ONE = Const(1, dtypes.int32)


def rewrite_idempotent_scatters(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose iterations mark what they store, and become independent."""

    lower_bounds = {
        node_id: (fresh.symbol("n"), bound) for node_id, bound in monotonic_bounds(program).items()
    }
    values: Values = {
        node_id: Position(var(symbol)) for node_id, (symbol, _) in lower_bounds.items()
    }
    counts = tuple(
        Range(symbol, const(bound), const(OVERFLOW_SAFE)) for symbol, bound in lower_bounds.values()
    )

    def rewrite_body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(rewritten for stmt in stmts for rewritten in rewrite_statement(stmt, outer))

    def rewrite_statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            scatter = _match_scatter(stmt, facts, values, (*counts, *ranges(outer)))
            if scatter is not None and fresh.fits(scatter.node.shape):
                return scatter.rewrite(fresh)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(rewrite_body(part, outer) for part in bodies(stmt))),)

    return map_kernels(program, lambda stmts: rewrite_body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Scatter:
    """A loop that stores equal values in elements."""

    loop: For
    list: Body
    """The list with the stores."""
    stores: tuple[Store, ...]
    flags: tuple[Store, ...]
    forbidden: tuple[Expr, ...]
    """The conditions that must not hold, as far as that is not known."""

    @property
    def node(self) -> Node:
        """The array that is written, one of several of the same shape."""
        return self.stores[0].access.node

    def rewrite(self, fresh: Fresh) -> Body:
        """Return the loops that mark elements, and those that store the marked ones."""
        node = self.node
        mark_array = fresh.array(f"{node.label}_marks", node.shape, dtypes.int32, "marks")
        target = Access(mark_array, self.stores[0].access.index)
        update = Update(target, OPS["max"], ONE, span=self.loop.span, atomic=True)
        removed = {id(store) for store in (*self.stores, *self.flags)}
        others = tuple(stmt for stmt in self.list if id(stmt) not in removed)
        body = _replace_list(self.loop.body, self.list, (*others, update))
        marking = replace(self.loop, body=body)
        if self.forbidden:
            copies = {n.id: fresh.like(n) for n in writes((marking,)) if n != mark_array}
            names = {
                s: fresh.symbol(s.name) for nested in statements((marking,)) for s in binds(nested)
            }
            (marking,) = rename((marking,), names, copies)
        axes = [fresh.symbol("at") for _ in node.shape]
        index = tuple(map(var, axes))
        fills = (replace(store, access=Access(store.access.node, index)) for store in self.stores)
        is_flagged = Apply(OPS["eq"], (Read(mark_array, index), ONE), dtypes.bool_)
        clear = Store(Access(mark_array, index), Const(0, dtypes.int32))
        filling = self.element_loops(axes, node, If(is_flagged, (*fills, *self.flags)))
        rewritten: Body = (*self.element_loops(axes, node, clear), marking, *filling)
        if not self.forbidden:
            return rewritten
        return (
            If(
                conjunction([negate(condition) for condition in self.forbidden]),
                rewritten,
                (self.loop,),
            ),
        )

    def element_loops(self, axes: Sequence[Symbol], node: Node, stmt: Stmt) -> Body:
        """Return the loops over all elements."""
        loops = [
            For(symbol, const(0), size, 1, (), span=self.loop.span)
            for symbol, size in zip(axes, node.shape, strict=True)
        ]
        return nest_loops(loops, (stmt,))


def _replace_list(body: Body, old: Body, new: Body) -> Body:
    """Return statements with one list in them replaced."""
    if body is old:
        return new
    return tuple(
        with_bodies(stmt, tuple(_replace_list(part, old, new) for part in bodies(stmt)))
        for stmt in body
    )


# ---------------------------------------------------------------- recognition


def _match_scatter(
    loop: For, facts: Facts, values: Values, outer: tuple[Range, ...]
) -> _Scatter | None:
    """Return the scatter of a loop, None where it has no dependence, or another one."""
    stmts = statements(loop.body)
    private = facts.private(loop)
    halts = Print, Permute, Alloc, While, Continue, Fill
    effects = [
        effect for effect in stmts if any(node.id not in private for node in direct_writes(effect))
    ]
    if loop.kind != "serial" or has_break(loop.body) or not effects:
        return None
    if any(isinstance(stmt, halts) for stmt in stmts) or facts.is_free(loop, private):
        return None
    target = next(
        ((part, path) for part, path in _lists_with_path(loop.body, ()) if effects[0] in part), None
    )
    if target is None or not all(any(effect is stmt for stmt in target[0]) for effect in effects):
        return None
    stores = [effect for effect in effects if isinstance(effect, Store)]
    if len(stores) < len(effects):
        return None
    scatter = _TestAnalysis(loop, iteration_values(loop), target[1], private).match(
        target[0], stores
    )
    if scatter is None:
        return None
    return replace(
        scatter, forbidden=tuple(e for e in scatter.forbidden if not is_never(e, values, outer))
    )


def _lists_with_path(body: Body, path: tuple[Stmt, ...]) -> Iterator[tuple[Body, tuple[Stmt, ...]]]:
    """Yield the lists inside statements, with the statements around them."""
    for stmt in body:
        for part in bodies(stmt):
            yield part, (*path, stmt)
            yield from _lists_with_path(part, (*path, stmt))


@dataclass(frozen=True, slots=True)
class _TestAnalysis:
    """The tests of a loop's iterations before they store anything."""

    loop: For
    iteration: IterationValues
    path: tuple[Stmt, ...]
    private: frozenset[int]

    def match(self, part: Body, stores: Sequence[Store]) -> _Scatter | None:
        """Return the scatter of a list, None where iterations depend on each other in it."""
        arrays = tuple(store for store in stores if store.access.node.rank)
        flags = tuple(store for store in stores if not store.access.node.rank)
        nodes = [store.access.node for store in arrays]
        locations = {self.locate(store.access.index) for store in arrays}
        is_invariant = all(self.iteration.stays(store.value) for store in stores)
        sizes = {node.shape for node in nodes}
        if (
            len(locations) != 1
            or not is_invariant
            or len(set(nodes)) < len(nodes)
            or len(sizes) > 1
        ):
            return None
        (location,) = locations
        written = writes((self.loop,))
        if any(read.node in written for expr in location for read in reads(expr)):
            return None
        values = {store.access.node: store.value for store in arrays}
        if self.reads_any({store.access.node for store in flags}) or not self.has_only_tests(
            values, location
        ):
            return None
        forbidden = self.find_forbidden(values, location)
        if forbidden is None or not all(map(self.iteration.stays, forbidden)):
            return None
        return _Scatter(self.loop, part, arrays, flags, tuple(forbidden))

    def locate(self, index: tuple[Index, ...]) -> tuple[Expr, ...]:
        """Return the location of an element, with known values inlined."""
        return tuple(
            self.iteration.resolve(at.value if isinstance(at, Dynamic) else Position(at))
            for at in index
        )

    def conjuncts(self) -> list[Expr]:
        """Return the conjuncts of all tests; none where a branch has an `else`."""
        tests = [stmt for stmt in self.path if isinstance(stmt, If)]
        lists = [stmt.body for stmt in self.path if isinstance(stmt, For)]
        if any(stmt.orelse for stmt in tests) or len(tests) + len(lists) < len(self.path):
            return []
        return [
            part
            for branch in tests
            for part in split_conjunction(self.iteration.resolve(branch.test))
        ]

    def reads_any(self, nodes: set[Node]) -> bool:
        """Whether iterations read some nodes."""
        return any(
            node in nodes for stmt in statements(self.loop.body) for node in direct_reads(stmt)
        )

    def find_forbidden(
        self, values: Mapping[Node, Expr], location: tuple[Expr, ...]
    ) -> list[Expr] | None:
        """Return sufficient conditions that must not hold for the stored values, None where
        unknown."""
        local: dict[Node, list[tuple[Expr, Read]]] = {node: [] for node in values}
        others: list[tuple[Expr, Read]] = []
        for part in self.conjuncts():
            array_reads = [read for read in reads(part) if read.node in values]
            if len(array_reads) > 1:
                return None
            for read in array_reads:
                is_here = self.locate(read.index) == location
                (local[read.node] if is_here else others).append((part, read))
        tests = [
            _replace_read(part, read, values[node])
            for node, pairs in local.items()
            for part, read in pairs
        ]
        if not tests:
            return None
        out = [conjunction(tests)]
        for part, read in others:
            number = self.only_value(part, read)
            if number is None or not local[read.node]:
                return None
            out.append(_replace_read(part, read, values[read.node]))
            out.append(
                conjunction(
                    [
                        _replace_read(conjunct, element, number)
                        for conjunct, element in local[read.node]
                    ]
                )
            )
        return out

    def only_value(self, part: Expr, read: Read) -> Expr | None:
        """Return the only integer for which a test of an element holds, else None."""
        match part:
            case Apply(op, (left, right)) if op.name == "eq" and read in (left, right):
                operand = right if left == read else left
                is_integer = read.dtype.kind in "iu" and operand.dtype is read.dtype
                return operand if is_integer and self.iteration.stays(operand) else None
            case _:
                return None

    def has_only_tests(self, values: Mapping[Node, Expr], location: tuple[Expr, ...]) -> bool:
        """Whether only the tests, and checks of the same location, read the arrays."""
        path_ids = {id(stmt) for stmt in self.path}
        is_guarded = False
        for stmt in statements(self.loop.body):
            is_guarded = is_guarded or (
                isinstance(stmt, If) and self.reads_array(stmt.test, values, location)
            )
            if isinstance(stmt, Check):
                if not self.is_order_independent(stmt, values, location, is_guarded):
                    return False
                continue
            reads_values = any(node in values for node in direct_reads(stmt))
            is_substituted = (
                isinstance(stmt, Store) and stmt.access.node.id in self.iteration.values
            )
            if reads_values and id(stmt) not in path_ids and not is_substituted:
                return False
            if (
                isinstance(stmt, If)
                and id(stmt) not in path_ids
                and self.reads_array(stmt.test, values, ())
            ):
                return False
            if isinstance(stmt, Let) and self.reads_array(stmt.value, values, ()):
                return False
        return True

    def is_order_independent(
        self,
        check: Check,
        values: Mapping[Node, Expr],
        location: tuple[Expr, ...],
        is_guarded: bool,
    ) -> bool:
        """Whether a check fails in the same iterations whatever was stored before: or, if it is
        executed only as long as nothing was, depends on the location alone, so that it would have
        failed before."""
        array_tests = [expr for expr in self.conjuncts() if self.reads_array(expr, values, ())]
        array_tests += [expr.args[0] for expr in array_tests
                  if isinstance(expr, Apply) and expr.op.name == "logical_not"]  # fmt: skip

        def without(expr: Expr) -> Expr:
            return TRUE if expr in array_tests else rebuild(expr, without, lambda index: index)

        tests = [self.iteration.resolve(expr) for expr in (check.test, *check.values)]
        rest = [without(expr) for expr in tests]
        if self.repeats_check(check):
            return True
        if any(self.reads_array(expr, values, ()) for expr in rest):
            return False
        is_guarded = is_guarded or any(self.reads_array(expr, values, location) for expr in tests)
        return not is_guarded or all(self.depends_only_on(expr, location) for expr in rest)

    def repeats_check(self, check: Check) -> bool:
        """Whether a check repeats one at the start of the iteration, whose tests hold here."""
        enclosing = [s for s in self.path if any(nested is check for nested in statements((s,)))]
        tests = [s.test for s in enclosing if isinstance(s, If)]
        facts = [
            part
            for condition in tests
            for part in split_conjunction(self.iteration.resolve(condition))
        ]
        for stmt in self.loop.body:
            if any(nested is check for nested in statements((stmt,))):
                break
            if isinstance(stmt, Check):
                test = self.iteration.resolve(stmt.test)
                if isinstance(test, Select) and test.no == TRUE and test.test in facts:
                    test = test.yes
                if test == self.iteration.resolve(check.test):
                    return True
        return False

    def reads_array(
        self, expr: Expr, values: Mapping[Node, Expr], location: tuple[Expr, ...]
    ) -> bool:
        """Whether an expression reads an element of the arrays: at a location, if one is given."""
        array_reads = [read for read in reads(self.iteration.resolve(expr)) if read.node in values]
        return any(not location or self.locate(read.index) == location for read in array_reads)

    def depends_only_on(self, expr: Expr, location: tuple[Expr, ...]) -> bool:
        """Whether an expression depends only on the location of an element."""

        def without(expr: Expr) -> Expr:
            if expr in location:
                return Const(0, dtypes.int64)
            return rebuild(expr, without, lambda index: index)

        return self.iteration.stays(without(self.iteration.resolve(expr)))


def _replace_read(part: Expr, read: Read, value: Expr) -> Expr:
    """Return a test with an element replaced by a value."""
    if part == read:
        return value
    return rebuild(part, lambda operand: _replace_read(operand, read, value), lambda index: index)
