r"""If-conversion of independent iterations, and SIMD lanes that leave an inner loop separately.

Changes: a loop with independent iterations. Branches in it that depend on data become selects
(`if_convert`), so that it can be vectorized; so do branches of a loop that only counts. Where an
iteration has an inner loop that it may leave early, adjacent iterations become lanes: each
statement of the iteration is one loop over lanes; the inner loop runs while one lane is active, and
what an inactive lane computed stays as it was when the lane left.

    for c:                               for c step 32:
        u = x[c]                             for l: u[l] = x[c + l]; on[l] = 1
        while u < 9: u = f(u)                while any of on:
        y[c] = u                                 for l: go = on[l] and u[l] < 9
                                                        u[l] = f(u[l]) if go else u[l]; on[l] = go
                                             for l: y[c + l] = u[l]

Precondition: iterations that may run in any order; guarded statements that can be executed
speculatively, which a read out of bounds cannot; inner loops that write nothing but private scalars
of an iteration. Postcondition: bit-identical: each iteration does what it did, in its order.

>>> show(lambda program: mask_lanes(program, Target(schedule=True)),
...      "for i in range(9):\n    if x[i] > 0.5:\n        y[i] = x[i] * 2", y="f32[9]", x="f32[9]")
for i in 0..9:
    y[i] = x[i] * 2.0 if x[i] > 0.5 else y[i]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from ...base.lazy_import import lazy_modules
from .. import thresholds
from ..analysis.dependence import find_dependence, find_privatizable
from ..analysis.effects import summarize
from ..analysis.expression_cost import cost
from ..analysis.guarded_reads import negate
from ..analysis.privatization import has_crossing_arrays
from ..analysis.subscripts import ranges, stride
from ..ir.assignments import Continue
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, reads, walk
from ..ir.indexing import Range, Symbol
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite, rewrite
from ..ir.walk import expressions_of, statements, writes
from ..target import Target
from ..transform.outermost import OutermostRewriter

if TYPE_CHECKING:
    from ..transform import if_convert
    from . import divergent_lanes
    from . import predicated_reduction as guarded
else:  # what few programs need
    guarded, divergent_lanes, if_convert = lazy_modules(
        __package__, ".predicated_reduction", ".divergent_lanes", "..transform.if_convert"
    )

Body = tuple[Stmt, ...]


class MaskReason(Reason):
    """Why iterations become lanes."""

    BRANCH = "what its branches guard is cheap, and can be computed where they are not taken"
    COUNT = "it only counts, and adds 0 where it does not"
    SUM = "it only adds up, and adds what changes no sum where it does not"
    LEAVE = "each iteration may leave an inner loop at another time, and needs no other one"


def mask_lanes(program: Program, target: Target) -> Decided:
    """Return the program with iterations that branch, or leave a loop early, as lanes, and the
    decisions."""
    return _IfConversion.on(program, target)


class _IfConversion(OutermostRewriter):
    """The if-conversion of the loops of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop without branches, or over lanes; None where it stays as it is."""
        kinds = summarize(loop).kinds
        if not kinds & {If, While} or loop.kind != "serial" or loop.step != 1:
            return None
        domain = ranges((*outer, loop))
        if not all(map(if_convert.writes_only_numbers, statements(loop.body))):
            return None
        if (counted := _predicate_counts(loop, domain)) is not None:
            self.record(MaskReason.COUNT, writes(loop.body)[0], loop)
            return (counted,)
        if (summed := guarded.predicate_sums(loop, domain)) is not None:
            self.record(MaskReason.SUM, writes(loop.body)[0], loop)
            return (summed,)
        is_divergent = any(divergent_lanes.may_exit_early(stmt) for stmt in loop.body)
        written = writes(loop.body)
        is_legal = divergent_lanes.can_be_lanes if is_divergent else _can_if_convert
        if not written or not is_legal(loop, domain):
            return None
        privates = find_privatizable(loop, self.only()[id(loop)])
        if (
            self.target.lanes(32) < 2
            or find_dependence(loop, privates, self.temporaries, ranges(outer)) is not None
        ):
            return None
        if is_divergent and has_crossing_arrays(divergent_lanes.lane_parts(loop.body), privates):
            return None  # only scalars have an element for each lane
        node = next((node for node in written if node.id not in privates), written[0])
        self.record(MaskReason.LEAVE if is_divergent else MaskReason.BRANCH, node, loop)
        if is_divergent:
            return (divergent_lanes.run_in_lockstep(loop, self.fresh, privates, domain),)
        return (replace(loop, body=if_convert.if_convert(loop.body, self.fresh, {}, domain).body),)

    def record(self, why: MaskReason, node: Node, loop: For) -> None:
        """Record the decision on a loop."""
        name = loop.symbol.name
        self.decisions.append(Decision("masked", why, node, span=loop.span, variable=name))


def _predicate_counts(loop: For, domain: tuple[Range, ...]) -> For | None:
    """Return a loop that only counts where tests hold, with 0 added where they do not; None for
    others. Zeros change no integer sum."""
    inside = [stmt for stmt in statements(loop.body) if not isinstance(stmt, Comment)]
    only_counts = all(isinstance(stmt, If) or _count_term(stmt) is not None for stmt in inside)
    counters = {stmt.access.node.id for stmt in inside if isinstance(stmt, Store)}
    values = [stmt.test for stmt in inside if isinstance(stmt, If)]
    values += [value for stmt in inside if (value := _count_term(stmt)) is not None]
    if (
        not only_counts
        or not counters
        or not _depend_on_data(inside)
        or any(read.node.id in counters for value in values for read in reads(value))
        or not if_convert.can_if_convert(loop.body, (), domain)
        or sum(map(cost, values)) > thresholds.MAX_MASKED_COST
    ):
        return None

    def body(stmts: Body, tests: tuple[Expr, ...]) -> Iterator[Stmt]:
        for stmt in stmts:
            if isinstance(stmt, If):
                yield from body(stmt.then, (*tests, stmt.test))
                yield from body(stmt.orelse, (*tests, negate(stmt.test)))
            elif isinstance(stmt, Store) and tests:
                yield replace(stmt, value=_predicated_sum(stmt, tests))
            else:
                yield stmt

    predicated = tuple(body(loop.body, ()))
    return replace(
        loop,
        body=rewrite(predicated, Rewrite(expr=partial(if_convert.evaluate_eagerly, domain=domain))),
    )


def _count_term(stmt: Stmt) -> Expr | None:
    """Return the term that a statement adds to an integer scalar; None for other statements."""
    match stmt:
        case Store(access, Apply(op, (Read() as old, value))) if (
            not access.index
            and old.node == access.node
            and op.name in ("add", "sub")
            and access.node.dtype.kind in "iu"
        ):
            return value
        case _:
            return None


def _predicated_sum(stmt: Store, tests: tuple[Expr, ...]) -> Expr:
    """Return the scalar with the term added where all tests hold.

    A term that is no constant is multiplied by the test: gcc 12 does not vectorize such selects.
    """
    assert isinstance(stmt.value, Apply)
    old, value = stmt.value.args
    test = reduce(lambda left, right: Apply(OPS["bitand"], (left, right), right.dtype), tests)
    term: Expr = Select(test, value, Const(0, value.dtype))
    if not isinstance(value, Const):
        term = Apply(OPS["mul"], (value, Cast(test, value.dtype)), value.dtype)
    return replace(stmt.value, args=(old, term))


def _can_if_convert(loop: For, domain: tuple[Range, ...]) -> bool:
    """Whether a loop has branches that are better as selects."""
    inside, trip_count = statements(loop.body), (loop.hi - loop.lo).constant
    guarded = (e for s in loop.body if isinstance(s, If) for e in _values((s,)))
    return (
        (trip_count is None or trip_count > thresholds.MAX_UNMASKED_ITERATIONS)
        and not any(isinstance(stmt, For | While) for stmt in inside)
        and _depend_on_data(inside)
        and all(_has_unit_strides(stmt, loop.symbol) for stmt in inside)
        and if_convert.can_if_convert(loop.body, (Continue,), domain)
        and sum(map(cost, guarded)) <= thresholds.MAX_MASKED_COST
    )


def _values(body: Body) -> Iterator[Expr]:
    return (value for stmt in statements(body) for value in expressions_of(stmt))


def _depend_on_data(inside: Iterable[Stmt]) -> bool:
    """Whether tests depend on data and not on positions, by which loops can be split."""
    tests = [stmt.test for stmt in inside if isinstance(stmt, If)]
    return all(
        reads(test) and not any(isinstance(part, Position) for part in walk(test))
        for test in tests
    )  # fmt: skip


def _has_unit_strides(stmt: Stmt, symbol: Symbol) -> bool:
    """Whether consecutive iterations access adjacent elements, or the same one."""
    accesses = [(r.node, r.index) for e in expressions_of(stmt) for r in reads(e)]
    accesses += [(s.access.node, s.access.index) for s in (stmt,) if isinstance(s, Store | Update)]
    return all(stride(node, index, symbol) in (0, 1) for node, index in accesses)
