"""Loop distribution with scalar expansion: accumulations in a loop after an independent one.

Changes: where nothing but accumulations is loop-carried, each iteration stores its terms in an
element of its own (scalar or array expansion), and a loop after it adds all terms in the order of
the iterations:

    for i: ...; total += f(i)    becomes    for i: ...; kept[i] = f(i)
                                            for i: total += kept[i]

A loop whose terms would take too much memory is split into several. `distribute_reductions` does it
before `vectorize_reductions`, where the terms can be combined after the loop as well as in it:
lanes in the loop would be a loop-carried dependence.

Precondition: iterations that do much more than their accumulations, several of them for each thread
in `MAX_DEFERRED_BYTES`, and inner loops that threads do not share as they are, at no cost.
Postcondition: bit-identical: the terms, and their order, stay the same.

>>> from plusequals.lowering.target import Target
>>> show(lambda program: distribute_accumulations(program, Target(threads=2, parallel_from=10_000)),
... '''
... s = 0.0
... for i in range(200):
...     s += max(x[i, j])
... return s
... ''', x="f32[200, 300]")
s = 0.0
for i in 0..200:
    largest = -inf
    for j in 0..300:
        largest max= x[i, j]
    s_kept[i] = largest
for i in 0..200:
    s = s + s_kept[i]
result = s
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, prod

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.cost import iteration_count, total_work, work_per_iteration
from ..analysis.dependence import find_dependence, find_privatizable, has_early_exit
from ..analysis.parallel_band import normalize
from ..analysis.reductions import can_reassociate, is_min_max
from ..analysis.subscripts import ranges
from ..ir.assignments import Access, Let
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Expr, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, minimum, var
from ..ir.loops import For, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_statements, rename
from ..ir.rewrite import substitute as substituted
from ..ir.walk import statements
from ..target import Target
from ..transform.outermost import OutermostRewriter
from .parallelize import is_worth_sharing

Body = tuple[Stmt, ...]


class DistributeReason(Reason):
    """Why accumulations are distributed."""

    THREADS = "nothing else keeps the iterations from running on several threads"


def distribute_accumulations(program: Program, target: Target) -> Decided:
    """Return the program with accumulations in loops after independent ones, and the decisions."""
    if target.threads < 2:
        return Decided(program, ())
    return _Distribution.on(program, target)


def distribute_reductions(program: Program, target: Target) -> Decided:
    """Return the program with reassociable reductions of whole loops distributed, and the
    decisions.

    The result is the same for any number of threads.
    """
    return _ReductionDistribution.on(program, target)


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """An accumulation whose terms each iteration of a loop stores."""

    stmt: Store | Update
    value: Expr
    """The term."""
    path: tuple[For, ...]
    """The inner loops around it, of static trip counts."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an iteration's terms."""
        return tuple((loop.hi - loop.lo).offset for loop in self.path)

    @property
    def size(self) -> int:
        """The number of an iteration's terms."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of an iteration's terms."""
        return self.size * self.value.dtype.itemsize

    @property
    def is_per_lane(self) -> bool:
        """Whether each lane of a vector is added to its own element."""
        if [loop.kind for loop in self.path] != ["vector"]:
            return False
        (lane,) = self.path
        return lane.lo == const(0) and self.stmt.access.index == (var(lane.symbol),)

    @property
    def node(self) -> Node:
        """The accumulator."""
        return self.stmt.access.node

    def symbols(self) -> frozenset[Symbol]:
        """Return the symbols in its subscripts, and in the bounds of the loops around it."""
        index = (at for at in self.stmt.access.index if isinstance(at, Affine))
        ends = (end for loop in self.path for end in (loop.lo, loop.hi))
        return frozenset(symbol for expr in (*index, *ends) for symbol in expr.symbols())

    def accumulate(self, access: Access, value: Expr) -> Store | Update:
        """Return the accumulation of a value in an element."""
        if isinstance(self.stmt, Update):
            return replace(self.stmt, access=access, value=value)
        assert isinstance(self.stmt.value, Apply)
        args = (value if arg == self.value else Read(access.node, access.index)
                for arg in self.stmt.value.args)  # fmt: skip
        return Store(access, replace(self.stmt.value, args=tuple(args)), self.stmt.span)


class _Distribution(OutermostRewriter):
    """The distribution of the accumulations of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop that stores terms and one that adds them; the loop itself where it is
        parallel as it is; None where loops inside of it may be distributed."""
        if loop.kind != "serial" or not is_worth_sharing(loop, self.target.parallel_from):
            return None
        if not any(map(self.is_candidate, statements(loop.body))):
            return (loop,)  # before asking what takes longer
        privates = find_privatizable(loop, self.only()[id(loop)])
        if find_dependence(loop, privates, self.temporaries, ranges(outer)) is None:
            return (loop,)
        node_count = len(self.fresh.nodes)
        accumulations = self.sums(loop, privates)
        if not self.is_gain(loop, accumulations, outer):
            return None
        deferral = _Deferral.of(self.fresh, loop, accumulations)
        fewest = thresholds.MIN_DEFERRED_ITERATIONS_PER_THREAD * self.target.threads
        is_long_enough = deferral.chunk_size is None or deferral.chunk_size >= fewest
        if not is_long_enough or not self.is_legal(deferral, privates, outer):
            del self.fresh.nodes[node_count:]
            return None
        for acc in accumulations:
            name, span = loop.symbol.name, acc.stmt.span
            decision = Decision(
                "deferred", DistributeReason.THREADS, acc.node, span=span, variable=name
            )
            self.decisions.append(decision)
        return deferral.nests()

    def is_candidate(self, stmt: Stmt) -> bool:
        """Whether a statement may be an accumulation whose terms an enclosing loop can store."""
        if not isinstance(stmt, Store | Update) or stmt.access.node.id not in self.temporaries:
            return False
        return _term(stmt) is not None

    def is_gain(
        self, loop: For, accumulations: list[_Accumulation], outer: tuple[For, ...]
    ) -> bool:
        """Whether storing terms pays: not where these are arrays, and half of the work is in inner
        loops that threads share as they are."""
        work = work_per_iteration(loop).constant
        if work is None or not any(acc.path for acc in accumulations):
            return bool(accumulations)
        return 2 * self.shared_work(loop.body, (*outer, loop)) < work

    def shared_work(self, body: Body, outer: tuple[For, ...]) -> int:
        """Return how much of the work of statements is in loops that threads share as they are."""
        total = 0
        for stmt in body:
            if not isinstance(stmt, For) or stmt.kind != "serial":
                continue
            if is_worth_sharing(stmt, self.target.parallel_from) and self.is_free((stmt,), outer):
                total += total_work(stmt).constant or 0
            else:
                total += (iteration_count(stmt).constant or 0) * self.shared_work(
                    stmt.body, (*outer, stmt)
                )
        return total

    def is_legal(
        self, deferral: _Deferral, privates: frozenset[int], outer: tuple[For, ...]
    ) -> bool:
        """Whether the iterations are independent now; `privates` are the ids of their private
        nodes."""
        temporaries = self.temporaries | {node.id for node in deferral.terms.values()}
        return (
            find_dependence(
                deferral.store_loop(), privates, temporaries, ranges((*outer, *deferral.chunks))
            )
            is None
        )

    def sums(self, loop: For, privates: frozenset[int]) -> list[_Accumulation]:
        """Return the accumulations whose terms a loop may store; none if adding these is too much
        work in comparison with the loop's."""
        sites, work = collect_accesses((loop,)), work_per_iteration(loop).constant
        let_symbols = {stmt.symbol for stmt in statements(loop.body) if isinstance(stmt, Let)}
        accumulations = [
            acc for acc in _find_accumulations(loop.body, ())
            if acc.node.id in self.temporaries - privates and not acc.symbols() & let_symbols
            and len(sites.of(acc.node)) == (1 if isinstance(acc.stmt, Update) else 2)
        ]  # fmt: skip
        added_work = sum(
            acc.size * (1 if acc.is_per_lane else thresholds.SCALAR_WORK) for acc in accumulations
        )
        least = thresholds.MIN_DEFERRED_WORK_RATIO * added_work
        return accumulations if work is not None and work >= least else []


class _ReductionDistribution(_Distribution):
    """The distribution of the reductions of one program whose terms have positions."""

    __slots__ = ()

    def is_candidate(self, stmt: Stmt) -> bool:
        """Whether a statement may be a reduction whose terms an enclosing loop can store."""
        return isinstance(stmt, Update) and bool(stmt.over) and super().is_candidate(stmt)

    def sums(self, loop: For, privates: frozenset[int]) -> list[_Accumulation]:
        """Return the reductions of a loop if all of them add one term in each iteration, and all
        terms together fit."""
        accumulations, trip_count = super().sums(loop, privates), (loop.hi - loop.lo).constant
        is_reassociable = all(
            isinstance(acc.stmt, Update) and not acc.path and can_reassociate(acc.stmt)
            and not is_min_max(acc.stmt) and acc.stmt.over[-1:] == (var(loop.symbol) - loop.lo,)
            for acc in accumulations
        )  # fmt: skip
        fits = (
            trip_count is not None
            and trip_count * sum(acc.bytes for acc in accumulations)
            <= thresholds.MAX_DEFERRED_BYTES
        )
        return accumulations if is_reassociable and fits and loop.step == 1 else []


def _find_accumulations(body: Body, path: tuple[For, ...]) -> Iterator[_Accumulation]:
    """Yield the accumulations that every iteration reaches, in inner loops of static trip
    counts."""
    if has_early_exit(body):
        return
    for stmt in body:
        if isinstance(stmt, For):
            trip_count = (stmt.hi - stmt.lo).constant
            if stmt.step == 1 and trip_count is not None and trip_count > 0:
                yield from _find_accumulations(stmt.body, (*path, stmt))
        elif isinstance(stmt, Store | Update):
            value = _term(stmt)
            if value is not None and all(isinstance(at, Affine) for at in stmt.access.index):
                yield _Accumulation(stmt, value, path)


def _term(stmt: Stmt) -> Expr | None:
    """Return the term that a statement adds to an element; None where it does something else."""
    match stmt:
        case Update(value=value, pair=None):
            return value
        case Store(access, Apply(_, (left, right), _)):
            old = Read(access.node, access.index)
            return right if left == old else left if right == old else None
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Deferral:
    """The two loops, and the arrays of terms."""

    fresh: Fresh
    loop: For
    """The loop, normalized to begin at zero."""
    sums: tuple[_Accumulation, ...]
    terms: Mapping[int, Node]
    """The array of terms, by the id of the accumulator."""
    chunks: tuple[For, ...]
    """The loop over chunks of iterations, where it is split."""

    @classmethod
    def of(cls, fresh: Fresh, loop: For, sums: list[_Accumulation]) -> _Deferral:
        """Return the deferral of a loop's accumulations, with new arrays for their terms."""
        targets = {acc.node.id for acc in sums}
        plain, value = normalize(loop, fresh.symbol(loop.symbol.name))
        plain = replace(plain, body=substituted(loop.body, {loop.symbol: value}))
        accumulations = [
            acc for acc in _find_accumulations(plain.body, ()) if acc.node.id in targets
        ]
        most = max(
            1, thresholds.MAX_DEFERRED_BYTES // max(1, sum(acc.bytes for acc in accumulations))
        )
        trip_count = plain.hi.constant
        count = (
            min(most, thresholds.MAX_DYNAMIC_DEFERRED_ITERATIONS)
            if trip_count is None
            else ceil(trip_count / ceil(trip_count / most))
        )
        terms: dict[int, Node] = {}
        for acc in accumulations:
            shape, dtype = (count, *acc.shape), acc.value.dtype
            terms[acc.node.id] = fresh.array(f"{acc.node.label}_kept", shape, dtype, "kept")
        chunks: tuple[For, ...] = ()
        if trip_count is None or trip_count > count:
            at = fresh.symbol("piece")
            chunks = (For(at, const(0), plain.hi, count, (), span=loop.span),)
            end = var(at) + count
            even = trip_count is not None and trip_count % count == 0
            plain = replace(plain, lo=var(at), hi=end if even else minimum(end, plain.hi))
        return cls(fresh, plain, tuple(accumulations), terms, chunks)

    @property
    def chunk_size(self) -> int | None:
        """How many iterations store terms between two loops that add them; None where all do."""
        return self.chunks[0].step if self.chunks else None

    def nests(self) -> Body:
        """Return the loop that stores terms, and those that add them."""
        additions = (stmt for acc in self.sums for stmt in self.add_loops(acc))
        body: Body = (self.store_loop(), *additions)
        return tuple(replace(loop, body=body) for loop in self.chunks) or body

    def store_loop(self) -> For:
        """Return the loop whose iterations store their terms."""
        term_accesses = {acc.node.id: self.term_access(acc) for acc in self.sums}

        def change(stmt: Stmt) -> Body:
            value = _term(stmt)
            if value is None or not isinstance(stmt, Store | Update):
                return (stmt,)
            access = term_accesses.get(stmt.access.node.id)
            return (stmt if access is None else Store(access, value, stmt.span),)

        return replace(self.loop, body=map_statements(self.loop.body, change))

    def add_loops(self, acc: _Accumulation) -> Body:
        """Return the loops that add the terms of an accumulation, in the order of iterations."""
        target, term, span = acc.stmt.access, self.term_access(acc), acc.stmt.span
        value = Read(term.node, term.index)
        if not acc.is_per_lane:
            return (self.term_loops(acc, acc.accumulate(target, value)),)
        (lane,) = acc.path
        sums = self.fresh.array(acc.node.label, acc.shape, acc.node.dtype, "lanes")  # registers
        element = Access(sums, target.index)
        load = Store(element, Read(target.node, target.index), span)
        store = Store(target, Read(sums, element.index), span)
        return (
            self.rename(replace(lane, body=(load,))),
            self.term_loops(acc, acc.accumulate(element, value)),
            self.rename(replace(lane, body=(store,))),
        )

    def term_loops(self, acc: _Accumulation, stmt: Stmt) -> Stmt:
        """Return a statement in loops over all stored terms."""
        for loop in reversed((self.loop, *acc.path)):
            stmt = replace(loop, body=(stmt,))
        return self.rename(stmt)

    def rename(self, stmt: Stmt) -> Stmt:
        """Return a statement whose loops have new index variables."""
        loops = (nested.symbol for nested in statements((stmt,)) if isinstance(nested, For))
        names = {symbol: self.fresh.symbol(symbol.name) for symbol in loops}
        return rename((stmt,), names, {})[0]

    def term_access(self, acc: _Accumulation) -> Access:
        """Return the element in which an iteration stores a term."""
        index = (var(loop.symbol) - loop.lo for loop in (self.loop, *acc.path))
        return Access(self.terms[acc.node.id], tuple(index))
