r"""Sums of several rows at once, so that memory is read at several places.

Changes: a loop over rows whose sums are taken in lanes takes some rows at a time. Loops over the
terms run once for all of them; what each row does before, between and after follows in its order.
Some processors fetch ahead for each place apart, so that several at once give more of memory than
one, and `Target.streams` says so; of others memory gives less then. Near caches give the same to
all: sums that wait for their last addition do so side by side; and what rows share is loaded once.

    for i: s = 0; for j: s += x[i, j]; y[i] = s
    for i step 2: s0 = 0; s1 = 0; for j: s0 += x[i, j]; s1 += x[i + 1, j]; y[i] = s0; y[i + 1] = s1

Needs: sums in lanes (`lanes`); rounds that may run in any order, or that need each other only in
statements which nothing else of a round touches. Guarantees: not a bit changes: each round does
what it did, in its order, and what several rounds write is written in theirs.

>>> from plusequals.lowering.ir.printer import print_program
>>> from plusequals.lowering.cpu.reductions.lanes import lanes
>>> program = lanes(lowered("y[i] = sum(x[i, j])", y="f32[9]", x="f32[9, 64]"))
>>> made = print_program(streams(program, Target(schedule=True, streams=4, l2_bytes=2048)))
>>> print("\n".join(line[8:] for line in made.split("\n") if "i in" in line or "x[" in line))
# y[i] = sum(x[i, j])
for i in 0..8 step 2:
            y_lanes[lane] += x[i, lane + j]
            y_lanes_2[lane] += x[i + 1, lane + j]
for i in 8..9:
            y_lanes[lane] += x[i, lane + j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...analysis.cost import DEAR
from ...analysis.dependence import independent, private
from ...analysis.expression_cost import cost
from ...analysis.subscripts import ranges
from ...ir.bounds import Bounds
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import reads
from ...ir.indexing import Affine, var
from ...ir.loops import Comment, For, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.rewrite import rename, substitute
from ...ir.walk import expressions_of, own_reads, own_writes, statements
from ...target import Target
from ...transform.outermost import Outermost

Body = tuple[Stmt, ...]
_Read = dict[int, int | None]
"""How many bytes of each array are read at most, by its id; None where that is not known."""
MOST = 4
"""How many rows are taken at once, at most."""
LARGEST = 60
"""A row of more statements than that stays alone: there would be much code."""


class Several(Reason):
    """Why rows are taken together."""

    STREAMS = "memory gives more where it is read at several places"
    SUMS = "sums that wait for their last addition do so side by side"


def streams(program: Program, target: Target) -> Program:
    """Return the program with sums of several rows at once."""
    return in_streams(program, target).program


def in_streams(program: Program, target: Target) -> Decided:
    """Return the program with sums of several rows at once, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop over rows with several at a time, None where it has to stay."""
        if loop.kind != "serial" or loop.step != 1 or not _is_plain(loop):
            return None
        mine = private(loop, self.only()[id(loop)])
        sums = [stmt for stmt in loop.body if _is_sum(stmt)]
        if not sums or not all(_is_apart(one, loop, mine) for one in sums):
            return None
        count = self.count(loop, outer, sums, mine)
        rounds = (loop.hi - loop.lo).constant
        if count < 2 or (rounds is not None and rounds < count):
            return None
        if independent(loop, mine, self.own, ranges(outer)) and not _is_in_order(loop, mine):
            return None
        node = next((n for n in _written(loop.body) if n.id not in mine), _written(loop.body)[0])
        why = Several.STREAMS if self.target.streams > 1 else Several.SUMS
        self.decisions.append(Decision("abreast", why, node, span=loop.span))
        made = partial(self.several, loop, mine)
        return self.cut(loop, self.end(loop, outer), (count,), made)

    def count(
        self, loop: For, outer: tuple[For, ...], sums: Sequence[Stmt], mine: frozenset[int]
    ) -> int:
        """Return how many rows are taken at once: their sums fit in half of the registers, and
        what is read again of them in half of the second cache."""
        bits = self.target.vector_bits
        most = MOST
        for one in _innermost(sums):
            nodes = {n.id: n for n in _written(one.body) if n.id in mine and n.rank}
            vectors = sum(-(-8 * node.bytes // bits) for node in nodes.values())
            most = min(most, self.target.vector_registers // (2 * max(vectors, 1)))
        known = self.known
        for one in (*outer, loop):
            known = known.inside(one)
        read = [_reads(stmt, known, 1) for stmt in loop.body]
        again = _again(read, mine)
        if again is None or again * most > self.target.l2_bytes // 2:
            return 0
        near = self.is_near(loop, read)
        if near and len(sums) == 1 or not near and self.target.streams < 2:
            return 0
        return 1 << max(most, 1).bit_length() - 1

    def is_near(self, loop: For, read: Sequence[_Read]) -> bool:
        """Whether all rows together are in the second cache, which gives one place after the other
        as fast."""
        rounds = (loop.hi - loop.lo).constant
        whole = {node.id: node for stmt in statements(loop.body) for node in own_reads(stmt)}
        total = 0
        for number, node in whole.items():
            sizes = [found[number] for found in read if number in found]
            if rounds is None or None in sizes:
                return False
            most = rounds * max((size or 0 for size in sizes), default=0)
            total += most if node.static_shape is None else min(most, node.bytes)
        return total < self.target.l2_bytes

    def several(
        self, loop: For, mine: frozenset[int], width: int, first: Affine, last: Affine
    ) -> Stmt:
        """Return the loop over some rows at a time."""
        at = self.fresh.symbol(loop.symbol.name)
        used = {n.id: n for s in statements(loop.body) for n in (*own_reads(s), *own_writes(s))}
        rows = [
            substitute(self.row(loop.body, [used[n] for n in mine if n in used], number),
                       {loop.symbol: var(at) + number})
            for number in range(width)
        ]  # fmt: skip
        return For(at, first, last, width, _together(rows), span=loop.span)

    def row(self, body: Body, own: Sequence[Node], number: int) -> Body:
        """Return what is done for a row, with temporaries of its own for all but the first."""
        if not number:
            return body
        made: dict[int, Node] = {}
        for node in sorted(own, key=lambda one: one.id):
            shape = node.static_shape
            assert shape is not None, "what a round has for itself has a size"
            if node.rank:
                made[node.id] = self.fresh.array(node.label, shape, node.dtype, node.purpose)
            else:
                made[node.id] = self.fresh.scalar(node.label, node.dtype)
        return rename(body, {}, made)


def _together(rows: Sequence[Body]) -> Body:
    """Return what is done for some rows, statement by statement; loops over terms for all."""
    out: list[Stmt] = []
    for same in zip(*rows, strict=True):
        first = same[0]
        if isinstance(first, Comment):
            out.append(first)
        elif isinstance(first, For) and _is_sum(first):
            inner = [stmt.body for stmt in same if isinstance(stmt, For)]
            out.append(replace(first, body=_together(inner)))
        else:
            out += same
    return tuple(out)


def _is_plain(loop: For) -> bool:
    """Whether all that a row does is plain, little, and cheap where no sums are taken."""
    inside = statements(loop.body)
    plain = all(isinstance(stmt, For | Store | Update | Comment) for stmt in inside)
    others = statements(stmt for stmt in loop.body if not _is_sum(stmt))
    cheap = all(cost(value) < DEAR for stmt in others for value in expressions_of(stmt))
    return plain and len(inside) <= LARGEST and cheap


def _is_sum(stmt: Stmt) -> bool:
    """Whether it is a loop that adds terms up in lanes; a few may be left that it adds alone."""
    if not isinstance(stmt, For) or stmt.kind != "serial":
        return False
    loops = [one for one in stmt.body if not isinstance(one, Comment)]
    in_lanes = [_is_vector(one) or _is_sum(one) for one in loops]
    others = [one for one, known in zip(loops, in_lanes, strict=True) if not known]
    return any(in_lanes) and all(map(_is_innermost, others))


def _is_vector(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "vector"


def _is_innermost(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and not any(isinstance(one, For) for one in stmt.body)


def _is_apart(stmt: Stmt, loop: For, mine: frozenset[int]) -> bool:
    """Whether rows may take the rounds of a loop by turns: it writes what each has for itself."""
    inside = statements((stmt,))
    bounds = [one for one in inside if isinstance(one, For)]
    same = all(loop.symbol not in one.lo.symbols() | one.hi.symbols() for one in bounds)
    own = all(node.id in mine and node.request is None for node in _written((stmt,)))
    near = any(
        isinstance(at, Affine) and loop.symbol in at.symbols()
        for one in inside for value in expressions_of(one) for read in reads(value)
        for at in read.index
    )  # fmt: skip
    return same and own and near


def _is_in_order(loop: For, mine: frozenset[int]) -> bool:
    """Whether rounds need each other only in statements that are alone with what they write."""
    touched: dict[int, set[int]] = {}
    changed: set[int] = set()
    for number, stmt in enumerate(loop.body):
        for one in statements((stmt,)):
            for node in (*own_reads(one), *own_writes(one)):
                touched.setdefault(node.id, set()).add(number)
            changed |= {node.id for node in own_writes(one)}
    return all(len(touched[number]) == 1 for number in changed - mine)


def _innermost(body: Sequence[Stmt]) -> list[For]:
    """Return the loops over terms in which there are only loops over lanes."""
    return [
        one for one in statements(body)
        if isinstance(one, For) and _is_sum(one) and not any(map(_is_sum, one.body))
    ]  # fmt: skip


def _written(body: Sequence[Stmt]) -> list[Node]:
    return [node for stmt in statements(body) for node in own_writes(stmt)]


def _again(read: Sequence[_Read], mine: frozenset[int]) -> int | None:
    """Return how many bytes of a row are read by several statements, None if that is not known."""
    sizes: dict[int, list[int | None]] = {}
    for found in read:
        for number, size in found.items():
            sizes.setdefault(number, []).append(size)
    several = [some for number, some in sizes.items() if number not in mine and len(some) > 1]
    if any(None in some for some in several):
        return None
    return sum(max(size or 0 for size in some) for some in several)


def _reads(stmt: Stmt, known: Bounds, rounds: int | None) -> _Read:
    """Return the bytes of arrays that are read, at most, by their ids; None where not known."""
    found: _Read = {}
    if not isinstance(stmt, For):
        for node in own_reads(stmt):
            found[node.id] = None if rounds is None else rounds * node.dtype.itemsize
        return found
    most, step = known.most(stmt.hi - stmt.lo), abs(stmt.step)
    count = None if most is None or rounds is None else rounds * -(-max(most, 0) // step)
    for one in stmt.body:
        for number, size in _reads(one, known.inside(stmt), count).items():
            before = found.get(number, 0)
            if size is None or before is None:
                found[number] = None
            else:  # loops one after the other read other elements, statements the same
                found[number] = before + size if isinstance(one, For) else max(before, size)
    return found
