r"""Unroll-and-jam of reductions over rows, which read several streams of memory at a time.

Changes: a loop over rows whose reductions are in lanes is unrolled by a few rows. Loops over terms
are jammed; what each row does before, between and after them follows in its order. Some hardware
prefetchers serve each stream separately, so that several streams give more bandwidth than one
(`Target.streams`); others give less then. For data in near caches the gain is another: reductions
that wait for their last addition overlap; and what rows share is loaded once.

    for i: s = 0; for j: s += x[i, j]; y[i] = s
    for i step 2: s0 = 0; s1 = 0; for j: s0 += x[i, j]; s1 += x[i + 1, j]; y[i] = s0; y[i + 1] = s1

Precondition: reductions in lanes (`vectorize_reductions`); iterations that may run in any order, or
whose dependences are confined to statements that share no node with the others of an iteration.
Postcondition: bit-identical: each iteration does what it did, in its order, and what several
iterations write is written in theirs.

>>> from plusequals.lowering.ir.printer import print_program
>>> from plusequals.lowering.cpu.reductions.lanes import vectorize_reductions
>>> program = lowered("y[i] = sum(x[i, j])", y="f32[9]", x="f32[9, 64]")
>>> program = vectorize_reductions(program).program
>>> target = Target(schedule=True, streams=4, l2_bytes=2048)
>>> text = print_program(jam_row_reductions(program, target).program)
>>> print("\n".join(line[8:] for line in text.split("\n") if "i in" in line or "x[" in line))
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

from ... import thresholds
from ...analysis.dependence import find_dependence, find_privatizable
from ...analysis.expression_cost import cost
from ...analysis.subscripts import ranges
from ...ir.bounds import Bounds
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import reads
from ...ir.indexing import Affine, var
from ...ir.loops import Comment, For, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.rewrite import rename, substitute
from ...ir.walk import direct_reads, direct_writes, expressions_of, statements
from ...target import Target
from ...transform.outermost import OutermostRewriter

Body = tuple[Stmt, ...]
_BytesRead = dict[int, int | None]
"""The most bytes of each array that are read, by its id; None where that is not static."""


class RowJamReason(Reason):
    """Why rows are jammed."""

    STREAMS = "memory is read faster at several addresses at a time"
    SUMS = "while one sum waits for its last addition, others are added to"


def jam_row_reductions(program: Program, target: Target) -> Decided:
    """Return the program with reductions over rows jammed, and the decisions."""
    return _RowJam.on(program, target)


class _RowJam(OutermostRewriter):
    """The unroll-and-jam of the rows of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop over rows, several at a time; None where it stays as it is."""
        if loop.kind != "serial" or loop.step != 1 or not _is_plain(loop):
            return None
        privates = find_privatizable(loop, self.only()[id(loop)])
        sums = [stmt for stmt in loop.body if _is_reduction(stmt)]
        if not sums or not all(_can_jam(reduction, loop, privates) for reduction in sums):
            return None
        count = self.count(loop, outer, sums, privates)
        trip_count = (loop.hi - loop.lo).constant
        if count < 2 or (trip_count is not None and trip_count < count):
            return None
        if find_dependence(
            loop, privates, self.temporaries, ranges(outer)
        ) and not _has_separate_dependences(loop, privates):
            return None
        node = next(
            (n for n in _written_nodes(loop.body) if n.id not in privates),
            _written_nodes(loop.body)[0],
        )
        why = RowJamReason.STREAMS if self.target.streams > 1 else RowJamReason.SUMS
        self.decisions.append(Decision("vectorized", why, node, span=loop.span))
        jam = partial(self.jam_rows, loop, privates)
        return self.strip_mine(loop, self.end(loop, outer), (count,), jam)

    def count(
        self, loop: For, outer: tuple[For, ...], sums: Sequence[Stmt], privates: frozenset[int]
    ) -> int:
        """Return how many rows are jammed: their partial results fit in half of the registers, and
        what they read again in half of the L2 cache."""
        bits = self.target.vector_bits
        most = thresholds.MAX_JAMMED_ROWS
        for level in _innermost(sums):
            nodes = {n.id: n for n in _written_nodes(level.body) if n.id in privates and n.rank}
            vectors = sum(-(-8 * node.bytes // bits) for node in nodes.values())
            most = min(most, self.target.vector_registers // (2 * max(vectors, 1)))
        bounds = self.bounds
        for level in (*outer, loop):
            bounds = bounds.inside(level)
        read = [_bytes_read(stmt, bounds, 1) for stmt in loop.body]
        reread = _reread_bytes(read, privates)
        if reread is None or reread * most > self.target.l2_bytes // 2:
            return 0
        is_cached = self.fits_cache(loop, read)
        if is_cached and len(sums) == 1 or not is_cached and self.target.streams < 2:
            return 0
        return 1 << max(most, 1).bit_length() - 1

    def fits_cache(self, loop: For, read: Sequence[_BytesRead]) -> bool:
        """Whether all rows together fit in the L2 cache, where one stream is as fast."""
        trip_count = (loop.hi - loop.lo).constant
        nodes = {node.id: node for stmt in statements(loop.body) for node in direct_reads(stmt)}
        total = 0
        for number, node in nodes.items():
            sizes = [array_bytes[number] for array_bytes in read if number in array_bytes]
            if trip_count is None or None in sizes:
                return False
            most = trip_count * max((size or 0 for size in sizes), default=0)
            total += most if node.static_shape is None else min(most, node.bytes)
        return total < self.target.l2_bytes

    def jam_rows(
        self, loop: For, privates: frozenset[int], width: int, first: Affine, last: Affine
    ) -> Stmt:
        """Return the loop over some rows at a time."""
        at = self.fresh.symbol(loop.symbol.name)
        used = {
            n.id: n for s in statements(loop.body) for n in (*direct_reads(s), *direct_writes(s))
        }
        rows = [
            substitute(self.row(loop.body, [used[n] for n in privates if n in used], number),
                       {loop.symbol: var(at) + number})
            for number in range(width)
        ]  # fmt: skip
        return For(at, first, last, width, _jam(rows), span=loop.span)

    def row(self, body: Body, privates: Sequence[Node], number: int) -> Body:
        """Return the statements of a row, with new private nodes for all but the first."""
        if not number:
            return body
        copies: dict[int, Node] = {}
        for node in sorted(privates, key=lambda private: private.id):
            shape = node.static_shape
            assert shape is not None, "what an iteration has for itself has a size"
            if node.rank:
                copies[node.id] = self.fresh.array(node.label, shape, node.dtype, node.purpose)
            else:
                copies[node.id] = self.fresh.scalar(node.label, node.dtype)
        return rename(body, {}, copies)


def _jam(rows: Sequence[Body]) -> Body:
    """Return the statements of some rows in turn, with their loops over terms jammed."""
    out: list[Stmt] = []
    for stmts in zip(*rows, strict=True):
        first = stmts[0]
        if isinstance(first, Comment):
            out.append(first)
        elif isinstance(first, For) and _is_reduction(first):
            bodies = [stmt.body for stmt in stmts if isinstance(stmt, For)]
            out.append(replace(first, body=_jam(bodies)))
        else:
            out += stmts
    return tuple(out)


def _is_plain(loop: For) -> bool:
    """Whether a row has few statements, all of them plain, and cheap outside of reductions."""
    inside = statements(loop.body)
    is_plain = all(isinstance(stmt, For | Store | Update | Comment) for stmt in inside)
    others = statements(stmt for stmt in loop.body if not _is_reduction(stmt))
    is_cheap = all(
        cost(value) < thresholds.LIBRARY_CALL_COST
        for stmt in others
        for value in expressions_of(stmt)
    )
    return is_plain and len(inside) <= thresholds.MAX_JAMMED_STATEMENTS and is_cheap


def _is_reduction(stmt: Stmt) -> bool:
    """Whether a statement is a loop over terms in lanes, with a scalar remainder at most."""
    if not isinstance(stmt, For) or stmt.kind != "serial":
        return False
    loops = [nested for nested in stmt.body if not isinstance(nested, Comment)]
    in_lanes = [_is_lane_loop(nested) or _is_reduction(nested) for nested in loops]
    others = [
        nested for nested, is_in_lanes in zip(loops, in_lanes, strict=True) if not is_in_lanes
    ]
    return any(in_lanes) and all(map(_is_innermost, others))


def _is_lane_loop(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "vector"


def _is_innermost(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and not any(isinstance(nested, For) for nested in stmt.body)


def _can_jam(stmt: Stmt, loop: For, privates: frozenset[int]) -> bool:
    """Whether the iterations of a loop can be jammed with those of other rows: it writes private
    nodes only."""
    inside = statements((stmt,))
    bounds = [nested for nested in inside if isinstance(nested, For)]
    is_rectangular = all(
        loop.symbol not in nested.lo.symbols() | nested.hi.symbols() for nested in bounds
    )
    is_private = all(
        node.id in privates and node.request is None for node in _written_nodes((stmt,))
    )
    follows_rows = any(
        isinstance(at, Affine) and loop.symbol in at.symbols()
        for nested in inside for value in expressions_of(nested) for read in reads(value)
        for at in read.index
    )  # fmt: skip
    return is_rectangular and is_private and follows_rows


def _has_separate_dependences(loop: For, privates: frozenset[int]) -> bool:
    """Whether dependences between iterations are confined to statements that alone use what they
    write."""
    users: dict[int, set[int]] = {}
    written: set[int] = set()
    for number, stmt in enumerate(loop.body):
        for nested in statements((stmt,)):
            for node in (*direct_reads(nested), *direct_writes(nested)):
                users.setdefault(node.id, set()).add(number)
            written |= {node.id for node in direct_writes(nested)}
    return all(len(users[number]) == 1 for number in written - privates)


def _innermost(body: Sequence[Stmt]) -> list[For]:
    """Return the loops over terms that contain loops over lanes only."""
    return [
        stmt for stmt in statements(body)
        if isinstance(stmt, For) and _is_reduction(stmt) and not any(map(_is_reduction, stmt.body))
    ]  # fmt: skip


def _written_nodes(body: Sequence[Stmt]) -> list[Node]:
    return [node for stmt in statements(body) for node in direct_writes(stmt)]


def _reread_bytes(read: Sequence[_BytesRead], privates: frozenset[int]) -> int | None:
    """Return how many bytes of a row are read by several statements; None if that is not static."""
    sizes: dict[int, list[int | None]] = {}
    for array_bytes in read:
        for number, size in array_bytes.items():
            sizes.setdefault(number, []).append(size)
    reread = [some for number, some in sizes.items() if number not in privates and len(some) > 1]
    if any(None in some for some in reread):
        return None
    return sum(max(size or 0 for size in some) for some in reread)


def _bytes_read(stmt: Stmt, bounds: Bounds, repeats: int | None) -> _BytesRead:
    """Return the most bytes of arrays that are read, by their ids; None where that is not
    static."""
    sizes: _BytesRead = {}
    if not isinstance(stmt, For):
        for node in direct_reads(stmt):
            sizes[node.id] = None if repeats is None else repeats * node.dtype.itemsize
        return sizes
    most, step = bounds.most(stmt.hi - stmt.lo), abs(stmt.step)
    count = None if most is None or repeats is None else repeats * -(-max(most, 0) // step)
    for nested in stmt.body:
        for number, size in _bytes_read(nested, bounds.inside(stmt), count).items():
            before = sizes.get(number, 0)
            if size is None or before is None:
                sizes[number] = None
            else:  # loops one after the other read other elements, statements the same
                sizes[number] = before + size if isinstance(nested, For) else max(before, size)
    return sizes
