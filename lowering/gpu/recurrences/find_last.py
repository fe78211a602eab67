"""Last-value recurrences: values of the last, or first, iteration that passes a test, by reduction.

    for i: if t(i): b = f(i)                   for i: if b < 0 and t(i): b = i
    becomes                                    becomes
    at = -1                                    at = the greatest number
    for i: if t(i): at max= i                  for i: if t(i): at min= i
    if at >= 0: i = at; b = f(i)               if b < 0: if at is less: i = at; b = i

Precondition: elements that a loop accesses in no other way, and values that are loop-invariant, or
recomputed in each iteration. It is the first iteration where the test reads what is kept, too, and
does not hold any more after the store.

>>> program, _ = optimize(lowered('''
... b = -1
... for i in range(len(x)):
...     if b < 0 and x[i] > 3:
...         b = i
... y[0] = b
... ''', y="i64[1]", x="f32[900]"), Target("cuda"))
>>> rewritten = rewrite_find_last(program, facts_of(program), fresh_for(program))
>>> print_loops(rewritten.kernels[0].body[2:-2])
b_at = 9223372036854775807
for i in 0..900:
    if x[i] > 3.0:
        # b = i
        b_at min= i
if b < 0:
    if b_at < 9223372036854775807:
        let i = b_at
        b = i
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.conjunctions import conjunction, split_conjunction
from ...analysis.dependence import has_break, has_early_exit
from ...analysis.linear_iteration import LinearIterations, linearize
from ...analysis.parallel_band import Facts, has_checks, nest_loops, perfect_nest
from ...analysis.predicate_facts import is_never, scalar_values_after
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.algebra import TRUE
from ...ir.assignments import Access
from ...ir.expressions import Apply, Const, Dynamic, Expr, Position, Read, reads, rebuild
from ...ir.fresh import Fresh
from ...ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, substitute_expr, with_bodies
from ...ir.walk import binds, bodies, direct_reads, direct_writes, free_symbols, statements
from .find_first import LAST

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class _GuardedList:
    """A list of statements in a nest that is executed under tests, and these, outermost first."""

    body: Body
    tests: tuple[If, ...]


@dataclass(frozen=True, slots=True)
class _SelectedValue:
    """The values that a list of statements in a nest keeps."""

    list: Body
    originals: Body
    stores: tuple[Store, ...]
    """The same, with values that can be recomputed from the variables of the loops."""
    open_tests: tuple[Expr, ...] = ()
    """The tests that hold as long as nothing was found, where the first iteration counts."""
    new_tests: tuple[tuple[If, Expr], ...] = ()
    """The replacements of tests of enclosing branches that read what is kept, too."""


def rewrite_find_last(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program in which loops that keep values of one iteration reduce its number."""
    temporaries = frozenset(node.id for node in program.locals)

    def rewrite_body(stmts: Iterable[Stmt]) -> Body:
        return tuple(rewritten for stmt in stmts for rewritten in rewrite_statement(stmt))

    def rewrite_statement(stmt: Stmt) -> Body:
        if isinstance(stmt, For):
            loops, inner = perfect_nest(stmt)
            selected_values = _find_selected_values(loops, inner, temporaries)
            numbering = linearize(loops) if selected_values else None
            if numbering is not None:
                return _build_nest(selected_values, numbering, inner, fresh)
        return (with_bodies(stmt, tuple(map(rewrite_body, bodies(stmt)))),)

    return map_kernels(program, rewrite_body)


def _find_selected_values(
    loops: tuple[For, ...], body: Body, temporaries: frozenset[int]
) -> tuple[_SelectedValue, ...]:
    """Return the values that a nest keeps."""
    if any(loop.kind != "serial" for loop in loops) or has_break(body):
        return ()
    facts = _NestFacts(loops, body, temporaries)
    selected_values = (
        selected
        for part in _guarded_lists(body, ())
        if (selected := facts.match_last(part)) is not None
    )
    return tuple({selected.list: selected for selected in selected_values}.values())


def _guarded_lists(body: Body, tests: tuple[If, ...]) -> Iterator[_GuardedList]:
    """Yield the lists that are executed under a test."""
    for stmt in body:
        if isinstance(stmt, If):
            for part in bodies(stmt):
                yield _GuardedList(part, (*tests, stmt))
                yield from _guarded_lists(part, (*tests, stmt))


class _NestFacts:
    """The facts of a nest from which its kept values follow."""

    def __init__(self, loops: tuple[For, ...], body: Body, temporaries: frozenset[int]) -> None:
        """Collect the facts of a nest with the given `temporaries`."""
        self.temporaries, self.has_checks, self.bounds = (
            temporaries,
            has_checks(body),
            ranges(loops),
        )
        self.indices = frozenset(loop.symbol for loop in loops)
        stmts = statements(body)
        self.bound = {symbol for stmt in stmts for symbol in binds(stmt)}
        self.uses = Counter(n for s in stmts for n in (*direct_reads(s), *direct_writes(s)))
        self.written = Counter(n for s in stmts for n in direct_writes(s))
        self.values: dict[Node, Expr] = {}
        for stmt in body:
            if isinstance(stmt, Store):
                self.record_value(stmt)
            elif not isinstance(stmt, Comment):
                break

    def record_value(self, store: Store) -> None:
        """Record the invariant value of a scalar that every iteration stores once."""
        node, value = store.access.node, self.inline_values(store.value)
        if node.rank or self.written[node] > 1 or node.dtype is not value.dtype:
            return
        if self.is_invariant(value):
            self.values[node] = value

    def inline_values(self, value: Expr) -> Expr:
        """Return an expression with the recorded values of scalars inlined."""
        if isinstance(value, Read) and value.node in self.values:
            return self.values[value.node]
        return rebuild(value, self.inline_values, lambda index: index)

    def is_invariant(self, value: Expr) -> bool:
        """Whether an expression does not depend on what the loops write or bind."""
        varying = free_symbols(value) & self.bound
        return not varying and not any(read.node in self.written for read in reads(value))

    def match_last(self, part: _GuardedList) -> _SelectedValue | None:
        """Return the values that a list keeps, None where it keeps none."""
        fixed = [store for store in part.body if isinstance(store, Store) and self.is_fixed(store)]
        store_counts = Counter(store.access.node for store in fixed)
        tested = Counter(n for test in part.tests for n in direct_reads(test) if not n.rank)
        originals = tuple(
            s for s in fixed
            if store_counts[s.access.node] + tested[s.access.node] == self.uses[s.access.node]
        )  # fmt: skip
        stores = tuple(replace(store, value=self.inline_values(store.value)) for store in originals)
        if _has_jump_between(part.body, originals):
            return None
        if not any(tested[store.access.node] for store in originals):
            fits = any(free_symbols(store.value) & self.indices for store in stores)
            return _SelectedValue(part.body, originals, stores) if fits else None
        return self.match_first(part, originals, stores)

    def match_first(
        self, part: _GuardedList, originals: Body, stores: tuple[Store, ...]
    ) -> _SelectedValue | None:
        """Return the values that a list keeps once, None where its tests may hold again."""
        if len(originals) < sum(not isinstance(stmt, Comment) for stmt in part.body):
            return None
        nodes = {store.access.node for store in stores}
        open_tests, new_tests = list[Expr](), list[tuple[If, Expr]]()
        inside = part.body
        for branch in reversed(part.tests):
            tests = split_conjunction(branch.test)
            target_tests = [
                test for test in tests if any(read.node in nodes for read in reads(test))
            ]
            if target_tests and (branch.orelse or inside is not branch.then):
                return None
            if not all(self.is_invariant_test(test, nodes) for test in target_tests):
                return None
            rest = [test for test in tests if test not in target_tests]
            if target_tests:
                new_tests.append((branch, conjunction(rest) if rest else TRUE))
                open_tests = [*target_tests, *open_tests]
                if not self.is_only_effect(branch, part.body):
                    return None
            inside = self.enclosing_list(branch, part.tests)
        values = scalar_values_after(stores)
        if not any(is_never(test, values, self.bounds) for test in open_tests):
            return None
        return _SelectedValue(part.body, originals, stores, tuple(open_tests), tuple(new_tests))

    def enclosing_list(self, branch: If, tests: tuple[If, ...]) -> Body:
        """Return the list of another branch, or of the nest, that contains a branch."""
        at = next(n for n, enclosing in enumerate(tests) if enclosing is branch)
        if not at:
            return ()
        lists = bodies(tests[at - 1])
        return next(body for body in lists if any(stmt is branch for stmt in body))

    def is_invariant_test(self, test: Expr, nodes: set[Node]) -> bool:
        """Whether a test reads only what is kept, and what the loops do not write."""
        others = [read.node for read in reads(test) if read.node not in nodes]
        return not free_symbols(test) and not any(node in self.written for node in others)

    def is_only_effect(self, branch: If, part: Body) -> bool:
        """Whether a list is the only effect of a branch."""
        rest = branch.then
        while rest is not part:
            plain = [stmt for stmt in rest if not isinstance(stmt, Comment)]
            if len(plain) != 1 or not isinstance(plain[0], If) or plain[0].orelse:
                return False
            rest = plain[0].then
        return True

    def is_fixed(self, store: Store) -> bool:
        """Whether a store writes the same element in each iteration, a recomputable value."""
        if self.has_checks and store.access.node.id not in self.temporaries:
            return False
        varying = self.bound | self.indices
        is_static = not any(
            isinstance(at, Dynamic) or at.symbols() & varying for at in store.access.index
        )
        return is_static and self.is_invariant(self.inline_values(store.value))


def _has_jump_between(body: Body, stores: Body) -> bool:
    """Whether an iteration may end between the first and the last of some stores of a list."""
    positions = [at for at, stmt in enumerate(body) if any(stmt is store for store in stores)]
    return bool(positions) and has_early_exit(body[positions[0] : positions[-1]])


def _build_nest(
    selected_values: Sequence[_SelectedValue], numbering: LinearIterations, body: Body, fresh: Fresh
) -> Body:
    """Return a nest that reduces iteration numbers, between their initialization and the stores."""
    starts, ends = list[Stmt](), list[Stmt]()
    for selected in selected_values:
        at = fresh.scalar(f"{selected.stores[0].access.node.label}_at", dtypes.int64)
        sentinel, operation, comparison = (
            (LAST, "min", "lt") if selected.open_tests else (-1, "max", "gt")
        )
        update = Update(Access(at, ()), OPS[operation], Position(numbering.number))
        removed = {id(stmt) for stmt in selected.originals}
        first = next(n for n, stmt in enumerate(selected.list) if id(stmt) in removed)
        rest = (stmt for stmt in selected.list[first:] if id(stmt) not in removed)
        body = _replace_list(body, selected, (*selected.list[:first], update, *rest))
        starts.append(Store(Access(at, ()), Const(sentinel, dtypes.int64)))
        has_match = Apply(
            OPS[comparison], (Read(at, ()), Const(sentinel, dtypes.int64)), dtypes.bool_
        )
        lets, names = numbering.named(Read(at, ()), fresh)
        stores = (
            replace(store, value=substitute_expr(store.value, names)) for store in selected.stores
        )
        end = If(has_match, (*lets, *stores))
        ends.append(If(conjunction(selected.open_tests), (end,)) if selected.open_tests else end)
    return (*starts, *nest_loops(numbering.loops, body), *ends)


def _replace_list(body: Body, selected: _SelectedValue, new: Body) -> Body:
    """Return statements with one list in them replaced."""
    if body is selected.list:
        return new
    out: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, If):
            out.append(stmt)
            continue
        rewritten = with_bodies(
            stmt, tuple(_replace_list(part, selected, new) for part in bodies(stmt))
        )
        test = next(
            (new_test for branch, new_test in selected.new_tests if branch is stmt), stmt.test
        )
        out += rewritten.then if test == TRUE else (replace(rewritten, test=test),)
    return tuple(out)
