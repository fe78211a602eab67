"""What the threads of a block do together: loops of threads one after the other.

    for i in 0..n: body    becomes    for i in 0..n:                   blocks
                                          what all threads do alike: tests, loops, scalars
                                          loops of threads, barriers between them

A loop whose rounds are independent is dealt out; one that accumulates is shared out, see `tree`;
what writes an array in no such loop is done by one thread. Scalars that all threads compute alike
are in registers of each, other temporaries in memory that the block shares, unless each thread
needs its own elements only: see `registers`.

>>> program = lowered('''
... m[i] = max(x[i, j])
... y[i, j] = x[i, j] - m[i]
... ''', y="f32[8, 40]", x="f32[8, 40]", m="f32[8]")
>>> facts = facts_of(program)
>>> rows(band(program.kernels[0].body[1], facts), facts, fresh_for(program), {}) is not None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..analysis.accumulators import sums
from ..analysis.parallel_band import (
    Band,
    Facts,
    around,
    band,
    fails,
    favours,
    found_in,
    nest_of,
    trips,
)
from ..ir.assignments import Break, Continue, Let
from ..ir.fresh import Fresh
from ..ir.indexing import const
from ..ir.loops import Check, Comment, Fill, For, If, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, parts, statements, writes
from ..thresholds import WORTH
from ..transform.remap import filling
from .barriers import leaves, met
from .reductions.block_reduction import reduced
from .register_caching import in_registers
from .thread_points import PRIVATE_BYTES, Made, Space, normalised

SHARED_BYTES = 47 * 1024
"""So much memory a block has for itself without asking for more; a little is kept for faults."""
LONG = 32
"""A loop inside of points is worth a block with at least so many rounds."""


def rows(found: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]) -> Made | None:
    """Return the kernel in which each block does a point of a band; None where it has no room."""
    made = together(found.inner, found.private, facts, fresh, nodes)
    if made is None:
        return None
    blocks = [replace(loop, kind="block") for loop in found.free[:3]]
    body = around(found.free[3:], made.body)
    return Made(around(blocks, met(body, made.threads, loops=True)), made.spaces)


def one_block(
    body: tuple[Stmt, ...], own: frozenset[int], facts: Facts, fresh: Fresh,
    nodes: Mapping[int, Node],
) -> Made | None:  # fmt: skip
    """Return the kernel of one block that does statements; None where it has no room."""
    made = together(body, own, facts, fresh, nodes)
    if made is None:
        return None
    inside = met(made.body, made.threads)
    block = For(fresh.symbol("block"), const(0), const(1), 1, inside, "block")
    return Made((block,), made.spaces)


def together(
    body: tuple[Stmt, ...], own: frozenset[int], facts: Facts, fresh: Fresh,
    nodes: Mapping[int, Node],
) -> Made | None:  # fmt: skip
    """Return what a block does, without barriers; `own` are the temporaries that it may have.

    Scalars that only one thread can know are shared; as long as there are more of them, all is
    decided again.
    """
    shared: frozenset[int] = frozenset()
    while True:
        scalars = frozenset(n for n in own if not nodes[n].rank) - shared
        work = _Team(facts, fresh, nodes, own, scalars)
        made = work.body(body)
        if work.unknown <= shared:
            break
        shared |= work.unknown
    for number in own:
        if number not in work.spaces:
            space: Space = "private" if number in scalars else "shared"
            work.spaces[number] = space
    kept = in_registers(Made(made, work.spaces), fresh)
    held = {**nodes, **{node.id: node for node in fresh.nodes}}
    theirs = [held[number] for number, space in kept.spaces.items() if space == "shared"]
    return kept if fits_block(theirs) else None


def fits_block(nodes: Sequence[Node]) -> bool:
    """Whether a block has room for arrays."""
    known = all(node.static_shape is not None for node in nodes)
    return known and sum(node.bytes for node in nodes) <= SHARED_BYTES


@dataclass(slots=True)
class _Team:
    """Makes loops of threads of statements."""

    facts: Facts
    fresh: Fresh
    nodes: Mapping[int, Node]
    own: frozenset[int]
    scalars: frozenset[int]
    """Those of its own temporaries that every thread computes for itself."""
    spaces: dict[int, Space] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()
    """Scalars that only one thread knows, and should be shared."""

    def body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """Return what all threads go through; what one thread does stands together."""
        out: list[Stmt] = []
        alone: list[Stmt] = []
        for stmt in body:
            for one, is_alone in self.statement(stmt):
                if is_alone:
                    alone.append(one)
                    continue
                if alone and not isinstance(one, Comment):
                    out.append(self.alone(alone))
                    alone = []
                out.append(one)
        return (*out, *([self.alone(alone)] if alone else []))

    def alone(self, body: Sequence[Stmt]) -> Stmt:
        """Return what the first thread of a block does by itself."""
        self.unknown |= {n.id for n in writes(body) if n.id in self.scalars}
        return For(self.fresh.symbol("thread"), const(0), const(1), 1, tuple(body), "thread")

    def statement(self, stmt: Stmt) -> Iterable[tuple[Stmt, bool]]:
        """Yield what becomes of a statement, each part with whether one thread does it."""
        match stmt:
            case Comment() | Let() | Check() | Break() | Continue():
                yield stmt, False
            case Store() | Update():
                targets = [access.node.id for access in parts(stmt).targets]
                yield stmt, not self.scalars.issuperset(targets)
            case Fill():
                for loop in filling(stmt):
                    yield from self.statement(loop)
            case For():
                yield from self.loop(stmt)
            case While() | If():
                yield from self.inside(stmt)
            case _:
                raise AssertionError(f"a {type(stmt).__name__} is the host's")

    def inside(self, stmt: For | While | If) -> Iterable[tuple[Stmt, bool]]:
        """Yield a loop or branch that all threads go through, or that one does by itself."""
        if is_worth(stmt, self.facts) or leaves(stmt):
            yield with_bodies(stmt, tuple(self.body(part) for part in bodies(stmt))), False
        else:
            only_scalars = all(node.id in self.scalars for node in writes((stmt,)))
            yield stmt, not only_scalars

    def loop(self, loop: For) -> Iterable[tuple[Stmt, bool]]:
        """Yield a loop dealt out, shared out, or as it is."""
        found = band(loop, self.facts)
        dealt = None if found is None or not is_long(found.free) else self.dealt(found)
        if dealt is not None:
            yield dealt, False
            return
        own = self.facts.private(loop)
        accumulators = sums(loop, own, self.facts) if is_long((loop,)) else ()
        inside = is_worth(loop, self.facts) and reads_inside(loop, self.facts)
        if accumulators and not inside and self.holds(own):
            made = reduced(loop, accumulators, self.facts, self.fresh, self.spaces)
            for stmt in made.threads:
                yield stmt, False
            own = self.scalars | {n for n, space in self.spaces.items() if space == "private"}
            for stmt in made.all:
                yield stmt, not own.issuperset(node.id for node in writes((stmt,)))
            return
        yield from self.inside(loop)

    def holds(self, own: frozenset[int]) -> bool:
        """Whether each thread may have those temporaries; from now on it has them."""
        for number in own:
            node = self.nodes[number]
            if node.static_shape is None or (node.rank and node.bytes > PRIVATE_BYTES):
                return False
        self.spaces |= dict.fromkeys(own, "private")
        return True

    def dealt(self, found: Band) -> Stmt | None:
        """Return a loop of threads; None where its temporaries are too large for each of them."""
        if not self.holds(found.private):
            return None
        free, body = normalised(found, self.fresh)
        at = 0 if fails(body) else longest(free)
        others = (*free[:at], *free[at + 1 :])
        (made,) = around((replace(free[at], kind="thread"), *others), body)
        return made


def longest(free: Sequence[For]) -> int:
    """Return which of some loops to deal out, of those that need no other: the last of all, unless
    it does, or has few rounds and another one more."""
    names, last = {loop.symbol for loop in free}, len(free) - 1
    ends = [loop.lo.symbols() | loop.hi.symbols() for loop in free]
    apart = [at for at, used in enumerate(ends) if not names & used]
    if last in apart and trips(free[last]) not in range(LONG):
        return last
    first = [last] if last in apart else []
    return max(first + apart, key=lambda at: 2**40 if (n := trips(free[at])) is None else n)


def is_long(loops: Sequence[For]) -> bool:
    """Whether loops together have enough rounds to be dealt out."""
    total = 1
    for loop in loops:
        count = trips(loop)
        if count is None:
            return True
        total *= count
    return total >= WORTH


def is_worth(stmt: Stmt, facts: Facts) -> bool:
    """Whether there is a loop in a statement that threads would share."""
    return any(
        isinstance(inner, For) and is_shared(inner, facts)
        for part in bodies(stmt)
        for inner in statements(part)
    )


def reads_inside(loop: For, facts: Facts) -> bool:
    """Whether neighbours in memory are neighbouring rounds of long loops inside of a nest, which
    find what it adds, rather than of the nest itself."""
    loops, body = nest_of(loop)
    inner = [
        stmt for stmt in statements(found_in(body))
        if isinstance(stmt, For) and trips(stmt) not in range(LONG) and is_shared(stmt, facts)
    ]  # fmt: skip
    if not inner:
        return False
    outside = max(favours(inner, one.symbol) for one in loops)
    return max(favours(one.body, one.symbol) for one in inner) > outside


def is_shared(loop: For, facts: Facts) -> bool:
    """Whether threads would share a loop."""
    found = band(loop, facts)
    if found is not None and is_long(found.free):
        return True
    return is_long((loop,)) and bool(sums(loop, facts.private(loop), facts))
