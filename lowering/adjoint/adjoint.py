"""The adjoint of a procedure: its statements, then those that propagate cotangents backward.

    forward                                     adjoint, in reverse order
    x[I] += v(a[J], ...)  for p                 d_a[J] += d_x[I] * dv/da      for p
    x[I]  = v(a[J], ...)  for p                 d_a[J] += d_x[I] * dv/da;  d_x[I] = 0
    for t in lo..hi: body                       for t in hi-1..lo-1 step -1: adjoint of the body
    if test: ... else: ...                      the same test, on the values that it read

Every array of floats that depends on an input which is asked for, and on which the output depends,
has a cotangent of its shape. What the adjoint statements read again is kept where it is overwritten
later (see `kept`).

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., section 3.3 and chapter 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from itertools import takewhile

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE
from ..analysis.self_dependence import is_injective
from ..ir import dtypes
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    For,
    Let,
    Parameter,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ..ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Expr,
    Position,
    Read,
    Select,
    reads,
)
from ..ir.indexing import Affine, Range, Symbol, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import direct_writes, free_symbols, statements, uses
from .activity import active_nodes, differentiable_reads, refuse_orders
from .dead_stores import without_dead_stores
from .kept import Kept, Names, index_symbols, places, trip_count, upper_bound, writes
from .normalize import normalized
from .rules import NotDifferentiable, apply, number, partials

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Adjoint:
    """A procedure that computes cotangents of inputs after what it computed before."""

    procedure: Procedure
    cotangents: tuple[Node, ...]
    """The results that are the cotangents of the inputs, in their order."""


def adjoint(
    procedure: Procedure, inputs: Sequence[Node], outputs: Sequence[Node], seeded: bool = True
) -> Adjoint:
    """Return the procedure with the cotangents of inputs, from those of outputs.

    Outputs are results, or parameters that are written. Their cotangents are further parameters,
    in the order of the outputs; where it is not `seeded` the output is one number, whose cotangent
    is 1.

    Precondition: no `Reduce`. Postcondition: the results are those of the procedure, then the
    cotangent of each input. Raises NotDifferentiable.
    """
    names = Names.above(procedure)
    body = normalized(procedure.body, names)
    active = active_nodes(body, inputs, outputs)
    refuse_orders(body, inputs)
    at = places(body)
    kept = Kept(names, at, writes(body, at))
    cotangents = {
        node.id: names.array(f"d_{node.label}", node.shape, node.dtype)
        for node in {**active, **{node.id: node for node in inputs}}.values()
    }
    writer = _Writer(names, kept, cotangents, active.keys())
    forward, backward = writer.body(body, is_outermost=True)
    outer = {s for p in procedure.parameters for e in p.node.shape for s in e.symbols()}
    outer |= {stmt.symbol for stmt in body if isinstance(stmt, Let)}
    allocated = [
        Alloc(n) for n in cotangents.values()
        if n.static_shape is None and _symbols_of(n) <= outer
    ]  # fmt: skip
    if lost := [n for n in writer.kept_allocated if not _symbols_of(n) <= outer]:
        text = f"`{lost[0].label}`, whose size is known only inside a loop"
        raise NotDifferentiable(text, procedure.span)
    results = tuple(cotangents[node.id] for node in inputs)
    given, seeds = _seeds(outputs, cotangents, names, seeded)
    new_locals = [n for n in names.nodes if n not in results and n not in given]
    made = {node.id for node in (*new_locals, *results)}
    whole = (*forward, *allocated, *seeds, *backward)
    needed = without_dead_stores(whole, made, (*procedure.results, *results))
    new = replace(
        procedure,
        name=f"{procedure.name}_gradient",
        parameters=(*procedure.parameters, *(Parameter(node, False) for node in given)),
        locals=(*procedure.locals, *new_locals),
        results=(*procedure.results, *results),
        body=needed,
    )
    return Adjoint(new, results)


def _seeds(
    outputs: Sequence[Node], cotangents: dict[int, Node], names: Names, seeded: bool
) -> tuple[list[Node], list[Statement]]:
    """Return the parameters that are cotangents of outputs, and what sets these from them."""
    given: list[Node] = []
    seeds: list[Statement] = []
    for node in outputs:
        ranges = names.axes(node.shape)
        index = tuple(var(r.symbol) for r in ranges)
        value: Expr = number(1.0, node.dtype)
        if seeded:
            given.append(names.array(f"d_{node.label}_given", node.shape, node.dtype))
            value = Read(given[-1], index)
        if node.id in cotangents:
            target = Access(cotangents[node.id], index)
            seeds.append(Assign(target, None, False, value, Domain(ranges)))
    return given, seeds


def _symbols_of(node: Node) -> set[Symbol]:
    return {symbol for extent in node.shape for symbol in extent.symbols()}


@dataclass(slots=True)
class _Writer:
    """Writes forward and adjoint statements."""

    names: Names
    kept: Kept
    cotangents: dict[int, Node]
    active: Collection[int]
    kept_allocated: list[Node] = field(default_factory=list)
    """What is allocated before the outermost loops."""

    def body(self, body: Body, is_outermost: bool = False) -> tuple[Body, Body]:
        """Return the forward statements of a body, and its adjoint ones."""
        forward: list[Statement] = []
        backward: list[Statement] = []
        for stmt in body:
            before: list[Statement] = []
            kept, reverse = self.statement(stmt, before)
            if is_outermost:
                forward += self.kept.allocations
                self.kept_allocated += [stmt.node for stmt in self.kept.allocations]
                self.kept.allocations.clear()
            forward += [*before, *kept]
            backward[:0] = reverse
        if not is_outermost and backward:
            created = [s.node for s in body if isinstance(s, Alloc) and s.node.id in self.active]
            backward[:0] = [Alloc(self.cotangents[node.id]) for node in created]
            backward[:0] = self._bound_again(body, backward, forward)
        return tuple(forward), tuple(backward)

    def _bound_again(
        self, body: Body, backward: Sequence[Statement], forward: list[Statement]
    ) -> list[Statement]:
        """Return the integers that a body binds, for its adjoint statements."""
        inside = statements(backward)
        used = {symbol for stmt in inside for symbol in uses(stmt)}
        used |= {s for stmt in inside if isinstance(stmt, Alloc) for s in _symbols_of(stmt.node)}
        again: list[Statement] = []
        for stmt in reversed(body):
            if isinstance(stmt, Let) and stmt.symbol in used:
                before: list[Statement] = []
                value = self.kept.reads(stmt.value, stmt, before)
                at = next(n for n, other in enumerate(forward) if other is stmt)
                forward[at:at] = before
                again.insert(0, replace(stmt, value=value))
                used |= free_symbols(value)
        return again

    def statement(self, stmt: Statement, before: list[Statement]) -> tuple[Body, Body]:
        """Return a statement and its adjoint; `before` receives what keeps values for that."""
        match stmt:
            case Assign():
                return (stmt,), tuple(self.assign(stmt, before))
            case For():
                return self.loop(stmt)
            case Branch(test, then, orelse):
                forward, backward = zip(self.body(then), self.body(orelse), strict=True)
                if not any(backward):
                    return (replace(stmt, then=forward[0], orelse=forward[1]),), ()
                again = self.kept.reads(test, stmt, before)
                reverse = Branch(again, *backward, stmt.span)
                return (replace(stmt, then=forward[0], orelse=forward[1]),), (reverse,)
            case Block():
                inside, reverse_body = self.body(stmt.body)
                reverse_block = replace(stmt, body=reverse_body)
                return (replace(stmt, body=inside),), (reverse_block,) if reverse_body else ()
            case Alloc():
                return (stmt,), ()
            case Permute(nodes, sources):
                pairs = [
                    (self.cotangents[n.id], self.cotangents[s.id])
                    for n, s in zip(nodes, sources, strict=True)
                    if n.id in self.active and s.id in self.active
                ]
                if not pairs:
                    return (stmt,), ()
                if len(pairs) < len(nodes):
                    raise NotDifferentiable(
                        "arrays change places of which some are inactive", stmt.span
                    )
                back = Permute(tuple(s for _, s in pairs), tuple(n for n, _ in pairs), stmt.span)
                return (stmt,), (back,)
            case While():
                if any(self._is_active(s) for s in statements((stmt,))):
                    raise NotDifferentiable("a `while` of unknown length", stmt.span)
                return (stmt,), ()
            case Break() | Continue():
                raise NotDifferentiable("a loop that is left early", NOWHERE)
            case Let() | Check() | Print():
                return (stmt,), ()

    def _is_active(self, stmt: Statement) -> bool:
        return any(node.id in self.active for node in direct_writes(stmt))

    def loop(self, stmt: For) -> tuple[Body, Body]:
        """Return a loop, and the loop that runs the adjoint of its body in reverse."""
        forward, backward = self.body(stmt.body)
        ahead = replace(stmt, body=forward)
        if not backward:
            return (ahead,), ()
        last = stmt.lo + (trip_count(stmt) - 1) * stmt.step
        end = stmt.lo - (1 if stmt.step > 0 else -1)
        return (ahead,), (For(stmt.symbol, last, end, -stmt.step, backward, stmt.span),)

    def assign(self, stmt: Assign, before: list[Statement]) -> list[Statement]:
        """Return the adjoint of an assignment."""
        target = stmt.target
        if target.node.id not in self.active:
            return []
        if target.node.dtype.kind == "c" or target.node.dtype.bits == 16:
            raise NotDifferentiable(f"values of {target.node.dtype}", stmt.span)
        replaces = stmt.op is None or stmt.initialize
        if replaces and not is_injective(target.index, stmt.free.ranges):
            raise NotDifferentiable("elements that are assigned more than once", stmt.span)
        if stmt.op is None and stmt.reduced.ranges:
            raise NotDifferentiable("elements that are assigned more than once", stmt.span)
        index = self.kept.index(target.index, stmt, before)
        cotangent: Expr = Read(self.cotangents[target.node.id], index)
        active_reads = [r for r in differentiable_reads(stmt.value) if r.node.id in self.active]
        out: list[Statement] = []
        zero = Assign(
            Access(self.cotangents[target.node.id], index), None, False,
            number(0.0, target.node.dtype), self._domain(stmt.free, stmt, before), span=stmt.span,
        )  # fmt: skip
        reads_itself = any(r.node == target.node for r in active_reads)
        if reads_itself:
            copy, cotangent = self._copy(stmt, cotangent, before)
            out.append(copy)
            if replaces:
                out.append(zero)
        if stmt.op is not None and stmt.op.name == "sub":
            cotangent = apply("neg", cotangent)
        selected = self._selected(stmt, before)
        terms = _Terms(self, stmt, before, selected)
        terms.add(stmt.value, cotangent, ())
        out += terms.statements()
        if replaces and not reads_itself:
            out.append(zero)
        return out

    def _domain(self, domain: Domain, stmt: Statement, before: list[Statement]) -> Domain:
        if domain.where is None:
            return domain
        return Domain(domain.ranges, self.kept.reads(domain.where, stmt, before))

    def _copy(self, stmt: Assign, cotangent: Expr, before: list[Statement]) -> tuple[Assign, Expr]:
        """Return the assignment that copies the cotangents of a statement's points, and a read."""
        target, read = stmt.target.node, cotangent
        assert isinstance(read, Read)
        node = self.names.array(f"{read.node.label}_new", target.shape, target.dtype)
        if node.static_shape is None:
            self.kept.allocations.append(Alloc(node))
        free = self._domain(stmt.free, stmt, before)
        copy = Assign(Access(node, read.index), None, False, cotangent, free, span=stmt.span)
        return copy, Read(node, read.index)

    def _selected(self, stmt: Assign, before: list[Statement]) -> Expr | None:
        """Return the test of the point whose value a maximum or minimum is; None for other
        statements."""
        if stmt.pair is None:
            return None
        access = stmt.pair.access
        found: Expr = Read(access.node, access.index)
        place = self.kept.places[id(stmt)]
        stable = sum(w.number != place.number for w in self.kept.written[access.node.id]) == 0
        if not (stable and not place.loops):
            raise NotDifferentiable("a maximum inside of a loop", stmt.span)
        return apply("eq", found, Position(stmt.pair.position))


@dataclass(slots=True)
class _Terms:
    """The contributions of a statement to the cotangents of what it reads."""

    writer: _Writer
    stmt: Assign
    before: list[Statement]
    selected: Expr | None
    found: dict[tuple[Read, tuple[tuple[Expr, bool], ...]], list[Expr]] = field(
        default_factory=dict
    )
    """The cotangents of each element that is read, by the tests that select it."""

    def add(self, expr: Expr, cotangent: Expr, tests: tuple[tuple[Expr, bool], ...]) -> None:
        """Add what an expression contributes, whose value has a cotangent; `tests` select it."""
        active = self.writer.active
        if not any(r.node.id in active for r in differentiable_reads(expr)):
            return
        if expr.dtype.kind == "c" or expr.dtype.bits == 16:
            raise NotDifferentiable(f"a value of {expr.dtype}", self.stmt.span)
        match expr:
            case Read():
                self.found.setdefault((expr, tests), []).append(cotangent)
            case Cast(value, _):
                self.add(value, Cast(cotangent, value.dtype), tests)
            case Select(test, yes, no):
                self.add(yes, cotangent, (*tests, (test, True)))
                self.add(no, cotangent, (*tests, (test, False)))
            case Apply(op, args):
                derivatives = partials(expr)
                if derivatives is None:
                    raise NotDifferentiable(f"`{op.name}`", self.stmt.span)
                for arg, derivative in zip(args, derivatives, strict=True):
                    if derivative is not None:
                        self.add(arg, apply("mul", cotangent, derivative), tests)
            case _:
                raise AssertionError(expr)

    def statements(self) -> Iterator[Statement]:
        """Yield the statements that add to the cotangents of the elements."""
        kept, stmt, before = self.writer.kept, self.stmt, self.before
        where = [d.where for d in (stmt.free, stmt.reduced) if d.where is not None]
        tests = [kept.reads(test, stmt, before) for test in where]
        if self.selected is not None:
            tests.append(self.selected)
        condition = all_of(tests)
        for (read, choices), cotangents in self.found.items():
            value = self._at_time(_sum_of(cotangents))
            index = kept.index(read.index, stmt, before)
            chosen = [
                test if wanted else apply("logical_not", test)
                for test, wanted in ((kept.reads(t, stmt, before), w) for t, w in choices)
            ]
            target = Access(self.writer.cotangents[read.node.id], index)
            used = {symbol for at in index for symbol in index_symbols(at)}
            ranges, bounds = _independent((*stmt.free.ranges, *stmt.reduced.ranges), used, stmt)
            free = tuple(r for r in ranges if r.symbol in used)
            reduced = tuple(r for r in ranges if r.symbol not in used)
            conditions = [*bounds, *([condition] if condition is not None else []), *chosen]
            first, rest = _parted(conditions, {r.symbol for r in reduced})
            domains = Domain(free, all_of(first)), Domain(reduced, all_of(rest))
            yield Assign(target, OPS["add"], False, value, *domains, span=stmt.span)

    def _at_time(self, expr: Expr) -> Expr:
        """Return a cotangent with the forward values that it had at the statement."""
        return self.writer.kept.reads(expr, self.stmt, self.before)


def all_of(tests: Sequence[Expr]) -> Expr | None:
    """Return the conjunction of tests, of which a later one is evaluated where the others hold."""
    whole: Expr | None = None
    for test in tests:
        whole = test if whole is None else Select(whole, test, Const(False, dtypes.bool_))
    return whole


def _parted(tests: Sequence[Expr], inner: set[Symbol]) -> tuple[list[Expr], list[Expr]]:
    """Return the tests without some symbols that may be evaluated first, and the others."""
    first = list(takewhile(lambda test: not free_symbols(test) & inner, tests))
    later = tests[len(first) :]
    first += [test for test in later if not free_symbols(test) & inner and not reads(test)]
    return first, [test for test in later if test not in first]


def _sum_of(values: Sequence[Expr]) -> Expr:
    """Return a sum of values, equal ones as a product."""
    counts: dict[Expr, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    terms = [
        value if count == 1 else apply("mul", number(count, value.dtype), value)
        for value, count in counts.items()
    ]
    whole = terms[0]
    for term in terms[1:]:
        whole = apply("add", whole, term)
    return whole


def _independent(
    ranges: Sequence[Range], used: set[Symbol], stmt: Assign
) -> tuple[list[Range], list[Expr]]:
    """Return ranges of which those of `used` symbols depend on each other alone, as the target's
    have to, and the tests that restrict them to the given ones."""
    out = list(ranges)
    tests: list[Expr] = []
    for at, r in enumerate(ranges):
        others = [o for o in reversed(ranges[:at]) if o.symbol not in used]
        if r.symbol not in used or not any(
            o.symbol in r.lo.symbols() | r.hi.symbols() for o in others
        ):
            continue
        lo: Affine | None = -r.lo
        hi: Affine | None = r.hi
        for other in others:
            ends = other.lo, other.hi - 1
            lo = None if lo is None else upper_bound(lo, other.symbol, *ends)
            hi = None if hi is None else upper_bound(hi, other.symbol, *ends)
        if lo is None or hi is None:
            raise NotDifferentiable("ranges that depend on each other in no linear way", stmt.span)
        out[at] = Range(r.symbol, -lo, hi)
        here = Position(var(r.symbol))
        tests.append(apply("le", Position(r.lo), here))
        tests.append(apply("lt", here, Position(r.hi)))
    return out, tests
