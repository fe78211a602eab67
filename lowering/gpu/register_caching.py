"""Rows in registers: what a thread has read or computed it keeps for its next loop.

    for t in 0..256 thread: for j in t..n step 256: m max= x[j]
    for j in 0..n thread: e[j] = exp(x[j] - m)
    becomes
    for t in 0..256 thread:
        for q in 0..n/256: x_row[t, q] = x[t + 256*q]
        for q in 0..n/256: m max= x_row[t, q]
    for t in 0..256 thread:
        for q in 0..n/256: e_row[t, q] = exp(x_row[t, q] - m)

Loops of a block that deal their rounds out in the same way give each thread the same elements
again. So memory is read once, before anything is done with it, and written once; a temporary that
only such loops use takes none. Each thread has its own row of what is kept, over whose elements
all loops are written out, so that they are registers; there is room for `BYTES` at once. Reads are
moved to the front only where they are done anyhow.

>>> program = lowered('''
... e[i] = x[i] * x[i]
... y[i] = e[i] + x[i]
... ''', y="f32[40]", x="f32[40]", e="f32[40]")
>>> loops = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> body = tuple(in_kind(loop, "thread") for loop in loops)
>>> (e,) = (p.node for p in program.parameters if p.node.label == "e")
>>> made = in_registers(Made(body, {e.id: "shared"}), fresh_for(program))
>>> print_loops(made.body)
for i in 0..40 thread:
    x_row[i, 0] = x[i]
    e_row[i, 0] = x_row[i, 0] * x_row[i, 0]
for i in 0..40 thread:
    y[i] = e_row[i, 0] + x_row[i, 0]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from ..analysis.parallel_band import accesses_of, fails, uses_of
from ..ir.assignments import Access
from ..ir.expressions import Dynamic, Index, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, substitute, var
from ..ir.loops import For, If, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import map_statements, with_bodies
from ..ir.walk import bodies, own_reads, own_writes, parts, statements, writes
from ..transform.remap import Place, elsewhere
from .barriers import leaves
from .cyclic_distribution import Dealt, counted, dealt
from .load_hoisting import sure_reads
from .thread_points import Made, Space

BYTES = 128
"""A thread keeps so many of rows at once: 32 registers."""
WORD = 4
"""Bytes of a register."""

Key = tuple[int, tuple[Affine, ...], tuple[int, int]]
"""A node, the index of its element in a round, and how rounds are dealt out."""


def in_registers(made: Made, fresh: Fresh) -> Made:
    """Return what a block does with the rounds of its loops counted, and rows in registers."""
    if fails(made.body):
        return made
    work = _Keeping(
        fresh, fresh.symbol("place"), uses_of(made.body),
        frozenset(node.id for node in writes(made.body)), dict(made.spaces),
    )  # fmt: skip
    return Made(work.body(made.body), work.spaces)


@dataclass(frozen=True, slots=True)
class _Use:
    """What one loop does with the elements of a row."""

    index: tuple[Index, ...]
    """Where its element is, in terms of the loop."""
    count: int
    """How often it uses the node, 0 where it uses other elements of it, too."""
    is_sure: bool
    """Whether every round uses its element."""
    fills: bool
    """Whether every round stores its element before it reads it."""
    writes: bool
    ends: bool
    """Whether every round writes its element."""


@dataclass(slots=True)
class _Row:
    """Elements that are the same thread's in several loops, which are told by their places."""

    node: Node
    dealing: tuple[int, int]
    rounds: int
    uses: dict[int, _Use]
    is_local: bool
    """Whether nobody but the block has them."""
    is_whole: bool
    """Whether all of the loops are done where one is."""
    held: Node | None = None

    @property
    def first(self) -> int:
        return min(self.uses)

    @property
    def last(self) -> int:
        return max(self.uses)

    @property
    def bytes(self) -> int:
        """What a thread keeps of it."""
        return self.rounds * max(self.node.dtype.itemsize, WORD)

    @property
    def storing(self) -> frozenset[int]:
        """The loops that write into memory what they write."""
        writing = sorted(at for at, use in self.uses.items() if use.writes)
        if self.is_local or not writing:
            return frozenset()
        is_last = self.is_whole and self.uses[writing[-1]].ends
        return frozenset(writing[-1:] if is_last else writing)


@dataclass(slots=True)
class _Keeping:
    fresh: Fresh
    place: Symbol
    """Stands for the number of a round where loops are compared."""
    total: Counter[int]
    """How often each node is used by the block."""
    written: frozenset[int]
    spaces: dict[int, Space]

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements with rounds counted, and rows kept from one of them to the next."""
        loops = {
            at: found for at, stmt in enumerate(body)
            if isinstance(stmt, For) and (found := dealt(stmt)) is not None
        }  # fmt: skip
        rows = self.chosen(self.rows(loops, not any(map(leaves, body))))
        for row in rows:
            size = min(dealing for dealing in row.dealing if dealing)
            row.held = self.fresh.array(f"{row.node.label}_row", (size, row.rounds), row.node.dtype)
            self.spaces[row.held.id] = "registers"
            if self.spaces.get(row.node.id) == "shared":
                del self.spaces[row.node.id]
        out: list[Stmt] = []
        for at, stmt in enumerate(body):
            if at in loops:
                out.append(self.kept(loops[at], at, [row for row in rows if at in row.uses]))
            elif isinstance(stmt, If | While) or (isinstance(stmt, For) and stmt.kind != "thread"):
                out.append(with_bodies(stmt, tuple(self.body(part) for part in bodies(stmt))))
            else:
                out.append(stmt)
        return tuple(out)

    def rows(self, loops: Mapping[int, Dealt], is_whole: bool) -> list[_Row]:
        """Return the rows of all loops whose elements each thread may have of its own; the loops
        are all done, or some are left out."""
        found: dict[Key, _Row] = {}
        for at, loop in loops.items():
            for node, index in accesses_of(loop.body) if not loop.around else ():
                key = self.key(loop, node, index)
                if key is None:
                    continue
                is_local = self.spaces.get(node.id) == "shared"
                new = _Row(node, loop.dealing, loop.rounds, {}, is_local, is_whole)
                row = found.setdefault(key, new)
                if at not in row.uses:
                    row.uses[at] = use_of(loop.body, node, index)
        return [row for row in found.values() if self.is_kept(row)]

    def key(self, loop: Dealt, node: Node, index: tuple[Index, ...]) -> Key | None:
        """Return what the element of a node is in a round; None where rounds may share it."""
        symbol = loop.shared.symbol
        if self.spaces.get(node.id, "device") not in ("device", "shared"):
            return None
        places: list[Affine] = []
        for one in index:
            if isinstance(one, Dynamic) or loop.loop.symbol in one.symbols() - {symbol}:
                return None
            if symbol in (one - var(symbol) * one.coefficient(symbol)).symbols():
                return None
            places.append(substitute(one, {symbol: loop.at(var(self.place))}))
        used = any(self.place in one.symbols() for one in places)
        return (node.id, tuple(places), loop.dealing) if used else None

    def is_kept(self, row: _Row) -> bool:
        """Whether elements of a row may be kept from loop to loop; loops before the first that
        surely reads or stores them have to do without."""
        if row.is_local or row.node.id in self.written:
            first, counts = row.uses[row.first], [use.count for use in row.uses.values()]
            is_all = 0 not in counts and sum(counts) == self.total[row.node.id]
            begins = first.fills or (first.is_sure and not row.is_local)
            return begins and is_all and len(counts) > 1
        while row.uses and not row.uses[row.first].is_sure:
            del row.uses[row.first]
        return len(row.uses) > 1

    def chosen(self, rows: Sequence[_Row]) -> list[_Row]:
        """Return the rows that there is room for, those first that save most."""
        out: list[_Row] = []
        for row in sorted(rows, key=lambda row: -len(row.uses)):
            held = [*out, row]
            most = max(
                sum(one.bytes for one in held if one.first <= at < one.last)
                for at in range(row.first, row.last)
            )
            if most <= BYTES:
                out = held
        return out

    def kept(self, loop: Dealt, at: int, rows: Sequence[_Row]) -> Stmt:
        """Return a loop with counted rounds that has rows of its threads."""
        if not rows:
            is_plain = loop.rounds == 1 and loop.inner is None
            return loop.loop if is_plain else counted(loop, loop.body, self.fresh)
        symbol = self.fresh.symbol("q")
        round_ = const(0) if loop.rounds == 1 else var(symbol)
        thread = var(loop.loop.symbol)
        if loop.inner is None and loop.rounds == 1:
            thread -= loop.lo
        elif loop.inner is None:
            # the thread of a round, until the loop is that of the threads
            thread = var(loop.shared.symbol) - loop.lo - round_ * loop.size
        held = {row.held.id: row for row in rows if row.held is not None}
        mine = {(row.node.id, row.uses[at].index): row.held for row in held.values()}

        def moved(node: Node, index: tuple[Index, ...]) -> Place:
            made = mine.get((node.id, index))
            return (node, index) if made is None else (made, (thread, round_))

        def stored(stmt: Stmt) -> Iterator[Stmt]:
            yield stmt
            for access in parts(stmt).targets:
                row = held.get(access.node.id)
                if row is not None and at in row.storing:
                    value = Read(access.node, access.index)
                    yield Store(Access(row.node, row.uses[at].index), value)

        body = map_statements(elsewhere(loop.body, moved), stored)
        before = tuple(
            Store(Access(row.held, (thread, round_)), Read(row.node, row.uses[at].index))
            for row in rows
            if row.held is not None and at == row.first and not row.uses[at].fills
        )
        return counted(loop, body, self.fresh, before, symbol, "unrolled")


def use_of(body: tuple[Stmt, ...], node: Node, index: tuple[Index, ...]) -> _Use:
    """Return what a round does with an element."""
    all_places = all(at == index for one, at in accesses_of(body) if one == node)
    here = Access(node, index)
    is_read = any((read.node, read.index) == (node, index) for read in sure_reads(body))
    stored = [isinstance(stmt, Store) and stmt.access == here for stmt in body]
    is_written = any(here in parts(stmt).targets for stmt in body)
    first = next(at for at, stmt in enumerate(body) if node.id in uses_of((stmt,)))
    return _Use(
        index,
        uses_of(body)[node.id] if all_places else 0,
        is_read or is_written,
        stored[first] and node not in own_reads(body[first]),
        any(node in own_writes(stmt) for stmt in statements(body)),
        is_written,
    )
