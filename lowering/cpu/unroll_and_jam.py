"""Unroll-and-jam of short loops, and fusion of the long loop inside with its producer.

    for j: w[j] = f(j)                                for j:
    for k in 0..2:                                        w = f(j)
        s = 0                                             s0 = s0 + w * g(0, j)
        for j: s = s + w[j] * g(k, j)                     s1 = s1 + w * g(1, j)
        y[k] = s                                      y[0] = s0; y[1] = s1

Changes: in the body of a loop, loops of a few independent iterations. They are unrolled with
private scalars for each iteration; what starts these comes first, then one long loop for all, then
the rest. So several reductions are in flight at once, and what they share is loaded once (Callahan,
Cocke and Kennedy, Estimating interlock and improving balance, 1988). An array that only carries
elements from one long loop to the next is contracted to a scalar afterwards.

Precondition: plain statements. Postcondition: bit-identical: each iteration does what it did, in
its order.

>>> program, _ = optimize(lowered('''
... w[i, j] = exp(x[j] * x[i])
... y[i, k] = sum(w[i, j] * (z[j, k] - z[i, k]))
... ''', y="f32[70, 2]", x="f32[70]", z="f32[70, 2]"), Target(), stop_after="eliminate_dead_code 2")
>>> (loop,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> only, own = loop_local_nodes(program), frozenset(node.id for node in program.locals)
>>> result, _ = unroll_and_jam(loop, fresh_for(program), own, only, own)
>>> print_loops((result,))
for i in 0..70:
    # y[i, k] = sum(w[i, j] * (z[j, k] - z[i, k]))
    y_acc = 0.0
    y_acc_2 = 0.0
    for j in 0..70:
        w_at = exp(x[j] * x[i])
        y_acc += w_at * (z[j, 0] - z[i, 0])
        y_acc_2 += w_at * (z[j, 1] - z[i, 1])
    y[i, 0] = y_acc
    y[i, 1] = y_acc_2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.dependence import find_dependence, find_privatizable
from ..analysis.effects import summarize
from ..analysis.fusion import NestPair, has_same_range
from ..analysis.fusion import analyze_nest as nest_with_facts
from ..analysis.subscripts import ranges
from ..ir.assignments import Access
from ..ir.expressions import Expr, Read, rebuild
from ..ir.fresh import Fresh
from ..ir.indexing import Range, const, var
from ..ir.loops import Comment, For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import rename, substitute
from ..ir.walk import direct_reads, direct_writes, statements

Body = tuple[Stmt, ...]


def unroll_and_jam(
    loop: For, fresh: Fresh, privates: frozenset[int], exclusive: Mapping[int, frozenset[int]],
    temporaries: frozenset[int], outer: tuple[For, ...] = (),
) -> tuple[For, frozenset[int]]:  # fmt: skip
    """Return a loop with the short ones in its body unrolled and jammed, and the ids of its private
    nodes.

    `privates` are the private nodes of each iteration, `exclusive` those that only a loop uses, by
    the loop's `id`. The loop itself comes back where there is no short one.
    """
    jam, before = (
        _Jam(fresh, privates, exclusive, temporaries, ranges((*outer, loop))),
        len(fresh.nodes),
    )
    out: list[Stmt] = []
    for stmt in loop.body:
        unrolled = jam.unroll(stmt) if isinstance(stmt, For) else None
        out += (stmt,) if unrolled is None else unrolled
    if len(out) == len(loop.body):
        return loop, privates
    result = replace(loop, body=jam.fuse_producers(out))
    return result, privates | {node.id for node in fresh.nodes[before:]}


@dataclass(frozen=True, slots=True)
class _Jam:
    """The unrolling of the short loops in the body of one loop."""

    fresh: Fresh
    privates: frozenset[int]
    exclusive: Mapping[int, frozenset[int]]
    temporaries: frozenset[int]
    domain: tuple[Range, ...]

    def unroll(self, loop: For) -> Body | None:
        """Return the statements that replace a short loop; None where it stays."""
        trip_count, first = (loop.hi - loop.lo).constant, loop.lo.constant
        inner = [stmt for stmt in loop.body if isinstance(stmt, For)]
        if (
            trip_count is None
            or first is None
            or not 2 <= trip_count <= thresholds.MAX_JAMMED_ITERATIONS
            or loop.step != 1
        ):
            return None
        if len(inner) != 1 or loop.kind != "serial" or not all(map(_is_plain, loop.body)):
            return None
        (long,) = inner
        privates = find_privatizable(loop, self.exclusive[id(loop)])
        nodes = {
            n.id: n for s in statements(loop.body) for n in (*direct_reads(s), *direct_writes(s))
        }
        is_variant = loop.symbol in long.lo.symbols() | long.hi.symbols()
        if (
            is_variant
            or not _is_innermost(long)
            or any(nodes[n].rank for n in privates if n in nodes)
        ):
            return None
        if find_dependence(loop, privates, self.temporaries, self.domain) is not None:
            return None
        scalars = [nodes[number] for number in sorted(privates) if number in nodes]
        copies = [
            self.iteration(loop, first + at, scalars if at else []) for at in range(trip_count)
        ]
        at = loop.body.index(long)
        inside = [stmt for body in copies for stmt in _loop_body(body[at])]
        before = [stmt for body in copies for stmt in body[:at]]
        after = [stmt for body in copies for stmt in body[at + 1 :]]
        return (*before, replace(long, body=tuple(inside)), *after)

    def iteration(self, loop: For, value: int, scalars: list[Node]) -> Body:
        """Return an iteration of a loop, with new nodes for the given scalars."""
        copies = {node.id: self.fresh.scalar(node.label, node.dtype) for node in scalars}
        return substitute(rename(loop.body, {}, copies), {loop.symbol: const(value)})

    def fuse_producers(self, body: list[Stmt]) -> Body:
        """Return statements with each loop fused into the one before that computes an array for
        it."""
        out: list[Stmt] = []
        for stmt in body:
            at = max((n for n, earlier in enumerate(out) if isinstance(earlier, For)), default=-1)
            first = out[at] if at >= 0 else None
            if isinstance(stmt, For) and isinstance(first, For):
                between = out[at + 1 :]
                if self.can_fuse(first, between, stmt):
                    second = substitute(stmt.body, {stmt.symbol: var(first.symbol)})
                    out[at:] = [*between, replace(first, body=(*first.body, *second))]
                    continue
            out.append(stmt)
        for number in self.privates:
            out = self.contract(out, number)
        return tuple(out)

    def can_fuse(self, first: For, between: list[Stmt], second: For) -> bool:
        """Whether two long loops can be fused, and the first computes an array for the second."""
        if not (has_same_range(first, second) and _is_innermost(first) and _is_innermost(second)):
            return False
        first_effects, second_effects = summarize(first), summarize(second)
        arrays = {n.id for s in statements(first.body) for n in direct_writes(s) if n.rank}
        if not arrays & second_effects.reads & self.privates:
            return False
        for stmt in between:
            effects = summarize(stmt)
            if effects.touches & first_effects.writes or effects.writes & first_effects.touches:
                return False
        pair = NestPair(nest_with_facts(first), nest_with_facts(second), frozenset(), self.domain)
        return pair.is_in_order()

    def contract(self, body: list[Stmt], number: int) -> list[Stmt]:
        """Return statements with an array contracted to a scalar, if each element is used at
        once."""
        sites = collect_accesses(body).sites.get(number, ())
        node = sites[0].node if sites else None
        if node is None or not node.rank or node.request is not None or not sites[0].inside:
            return body
        (loop, *deeper), index = sites[0].inside, sites[0].index
        is_uniform = all(s.inside == (loop,) and s.index == index for s in sites)
        first = min(sites, key=lambda site: (site.route, not site.reads))
        if deeper or not is_uniform or first.kind != "write" or not isinstance(loop, For):
            return body
        scalar = self.fresh.scalar(f"{node.label}_at", node.dtype)
        return [_contract_to_scalar(stmt, number, scalar) for stmt in body]


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, For | Store | Update | Comment)


def _is_innermost(loop: For) -> bool:
    return all(isinstance(stmt, Store | Update | Comment) for stmt in loop.body)


def _loop_body(stmt: Stmt) -> Body:
    assert isinstance(stmt, For), "iterations of one loop have their loops at one position"
    return stmt.body


def _contract_to_scalar(stmt: Stmt, number: int, scalar: Node) -> Stmt:
    """Return a statement, and what is inside, with a scalar in place of an array."""

    def value(expr: Expr) -> Expr:
        if isinstance(expr, Read) and expr.node.id == number:
            return Read(scalar, (), expr.span)
        return rebuild(expr, value, lambda index: index)

    match stmt:
        case For():
            return replace(
                stmt, body=tuple(_contract_to_scalar(s, number, scalar) for s in stmt.body)
            )
        case Store() | Update():
            is_target = stmt.access.node.id == number
            access = Access(scalar, ()) if is_target else stmt.access
            return replace(stmt, access=access, value=value(stmt.value))
        case _:
            return stmt
