"""Programs as kernels for a device of many threads.

    products of matrices and the like  tiles of them: `tensor_tiles`, `device_tiles`
                                       in parts where these are few: `device_parts`
    independent points                 each thread one: `points`
    points that have loops in them     each block one, its threads together: `team`
    sums over many rounds              in parts, by many blocks: `chunks`, `segments`; along columns
                                       by many threads: `columns`; the last block of those that find
                                       parts puts them together: `finish`
    running totals                     in pieces: `scan`, `prefix`
    writes to where data says          each thread its own elements, in pieces if exact: `owners`;
                                       where it is asked for by atomic operations: `scatter`
    loops in the order of the program  by the host, if what they do is worth kernels of its own,
                                       else by one block, or by one thread; front by front where
                                       the points of these are independent: `fronts`

What has to be decided between kernels - storage, prints, who trades places - is the host's, too.
A kernel is an outermost loop of the kind `block`; all that stands around kernels is the host's.

>>> made = grid(lowered("y[i] = x[i] * 2", y="f32[900]", x="f32[900]"), Target("cuda"))
>>> print_loops(made.program.kernels[0].body)
# y[i] = x[i] * 2
for tile in 0..4 block:
    for thread in 0..min(-256*tile + 900, 256) thread:
        y[256*tile + thread] = x[256*tile + thread] * 2.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..analysis.accesses import accesses
from ..analysis.accumulators import sums
from ..analysis.parallel_band import Band, Facts, band, facts_of, uses_of
from ..ir.bounds import Bounds
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Symbol, const
from ..ir.loops import Check, Comment, For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, reads, statements, writes
from ..target import Target
from ..transform.split_index_set import separated
from .atomic_scatter import scattered
from .gemm.rematerialize import anew
from .gemm.shared_tiles import tiles
from .gemm.split_k import divided
from .gemm.tensor_tiles import tensor_tiles
from .host_code import is_hosts, is_large
from .mapping_heuristic import is_by_steps, prefers_rows
from .nest_distribution import distributed
from .normalize import prepared
from .owner_computes import owners
from .reductions.column_reduction import columns
from .reductions.last_block import MOST_NODES, by_the_last
from .reductions.prefix import prefix
from .reductions.scan import rows_of, scan
from .reductions.segmented import Segment, segments
from .reductions.split_reduction import apart, blocks_for
from .scalar_rematerialization import scalars, with_copies
from .thread_block import is_shared, is_worth, one_block, rows
from .thread_points import PRIVATE_BYTES, Made, Space, points


@dataclass(frozen=True, slots=True)
class Grid:
    """A program whose outermost loops of the kind `block` are kernels."""

    program: Program
    spaces: Mapping[int, Space]
    """Of temporaries that are not the device's, who has them, by node id."""
    whole: Program
    """The loops before they were shared out."""
    computed: frozenset[int]
    """The arrays, by node id, that are gone since products compute their elements in tiles."""


def grid(program: Program, target: Target, exact: bool = False) -> Grid:
    """Return the program as kernels; with `exact` sums keep the order of the program."""
    before, _ = prepared(program)
    program = anew(before, target, exact)
    computed = frozenset(n.id for n in before.locals) - {n.id for n in program.locals}
    fresh = fresh_for(program)
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    copied = scalars(body, program.locals)
    alone = set(map(id, copied.values()))
    rest = tuple(stmt for stmt in body if id(stmt) not in alone)
    work = _Placing(
        facts_of(program, exact), fresh, {node.id: node for node in nodes}, uses_of(body),
        frozenset(node.id for node in program.locals), target,
        dict.fromkeys(copied, "private"),
    )  # fmt: skip
    made = with_copies(by_the_last(work.body(rest), work.spaces, fresh), copied)
    scheduled = replace(program, kernels=(replace(program.kernels[0], body=made),))
    scheduled = fresh.declared(scheduled)
    used = {node.id for node in (*reads(made), *writes(made))}
    kept = tuple(n for n in scheduled.locals if n.id in used)
    return Grid(replace(scheduled, locals=kept), work.spaces, program, computed)


@dataclass(slots=True)
class _Placing:
    """Decides who does what."""

    facts: Facts
    fresh: Fresh
    nodes: dict[int, Node]
    uses: Counter[int]
    """How often each node is used in all."""
    locals: frozenset[int]
    target: Target
    spaces: dict[int, Space] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=lambda: Bounds({}))
    """What the numbers of the loops of the host are between."""

    def body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """Return statements with all that the host does not have to do inside of kernels."""
        out: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Comment):
                run.append(stmt)
                continue
            made = None if is_hosts(stmt) else self.kernels(stmt)
            if made is None and not is_hosts(stmt) and not self.is_hosts_loop(stmt):
                made = (stmt,)
            for one in self.around(stmt) if made is None else made:
                if _is_left(one):
                    run.append(one)
                    continue
                told = _told(run)
                if not _is_kernel(one) or meets(run, one):
                    out += self.grouped(run)
                    run = []
                elif told:
                    run, out = run[: -len(told)], [*out, *told]
                out.append(one)
        return (*out, *self.grouped(run))

    def around(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return a loop or branch of the host, with kernels in it."""
        before, self.bounds = self.bounds, self.inside(stmt)
        made = with_bodies(stmt, tuple(self.body(part) for part in bodies(stmt)))
        self.bounds = before
        return (made,)

    def inside(self, stmt: Stmt) -> Bounds:
        """Return what is known of numbers in a statement of the host."""
        return self.bounds.inside(stmt) if isinstance(stmt, For) else self.bounds

    def kernels(self, stmt: Stmt) -> tuple[Stmt, ...] | None:
        """Return kernels of their own for a nest, None where it has none.

        What stands between and behind them is left: it may share a kernel with its neighbours.
        """
        if not isinstance(stmt, For):
            return None
        found = band(stmt, self.facts)
        made = None
        if found is not None and is_by_steps(found, stmt, self.facts):
            return None
        if found is not None:
            parts = segments(found, self.facts, self.fresh, self.nodes)
            if parts is not None:
                return self.apart(parts)
            halves = divided(found, self.facts, self.fresh)
            if halves is not None:
                return self.in_order(halves)
            made = self.tiled(found)
            if made is None:
                pieces = rows_of(found, self.fresh, self.facts.exact)
                if pieces is not None:
                    return tuple(kernel for piece in pieces for kernel in self.new_nest(piece))
                nests = self.several(found)
                if nests is not None:
                    return self.in_order(nests)
                made = self.of_band(found)
        else:
            own = self.facts.private(stmt)
            accumulators = sums(stmt, own, self.facts)
            if accumulators and blocks_for(stmt, known=self.bounds) > 1:
                made = apart(stmt, accumulators, self.facts, self.fresh, self.nodes)
                if made is not None:
                    return self.first(made)
            elif not accumulators:
                pieces = scan(stmt, self.fresh, self.facts.exact)
                if pieces is not None:
                    return tuple(kernel for piece in pieces for kernel in self.new_nest(piece))
                made = prefix(stmt, self.facts, self.fresh, self.nodes)
                if made is not None:
                    return self.pieces(made)
                if self.target.atomics:
                    made = scattered(stmt, self.facts, self.fresh, self.nodes)
                made = made or owners(stmt, self.facts, self.fresh, self.nodes)
                if made is not None and len(made.body) > 1:
                    return self.first(made)
                if made is None:
                    return self.separated(stmt)
        if made is None:
            return None
        self.spaces |= made.spaces
        return made.body

    def apart(self, parts: Sequence[Segment]) -> tuple[Stmt, ...]:
        """Return the kernels of the parts of a band; the others wait for what adds the sums."""
        out: list[Stmt] = []
        run: list[Stmt] = []
        only = frozenset(n for part in parts for n in self.facts.only_in(part.point))
        for part in parts:
            made = None
            if part.sums:
                nodes = self.nodes | self.known()
                made = apart(part.loop, part.sums, self.facts, self.fresh, nodes, part.point)
            if made is None and not part.wide:
                run += part.point.body
                continue
            if meets(run, part.point if made is None else made.body[0]):
                out += self.over(part.point, run, only)
                run = []
            if made is None:
                out += self.nest(part.point)
                continue
            self.spaces |= made.spaces
            out.append(made.body[0])
            run += [stmt for loop in made.body[1:] for stmt in bodies(loop)[0]]
        return (*out, *self.over(parts[0].point, run, only))

    def over(self, point: For, body: Sequence[Stmt], only: frozenset[int]) -> tuple[Stmt, ...]:
        """Return the kernels of statements for each of some points; `only` they use some nodes."""
        if all(isinstance(stmt, Comment) for stmt in body):
            return tuple(body)
        loop = replace(point, body=tuple(body))
        made = self.known()
        new = {number for number in uses_of(body) if number in made and not made[number].rank}
        self.nodes |= made
        self.facts.tell((loop,), only | new)
        return self.nest(loop)

    def separated(self, loop: For) -> tuple[Stmt, ...] | None:
        """Return the kernels of a loop part by part; None where these have none of their own."""
        parts = separated(loop, self.facts) or ()
        found = [self.kernels(part) for part in parts]
        if all(kernels is None for kernels in found):
            return None
        return tuple(
            stmt for part, kernels in zip(parts, found, strict=True) for stmt in kernels or (part,)
        )

    def first(self, made: Made, count: int = 1) -> tuple[Stmt, ...]:
        """Return so many kernels of parts, and what puts the parts together."""
        self.spaces |= made.spaces
        last = made.body[count:]
        found = [self.kernels(stmt) for stmt in last]
        rest = [stmt for stmt, kernels in zip(last, found, strict=True) if kernels is None]
        return (*made.body[:count], *(stmt for one in found for stmt in one or ()), *rest)

    def pieces(self, made: Made) -> tuple[Stmt, ...]:
        """Return kernels, and those of the nests between and behind them."""
        self.spaces |= made.spaces
        parts = [
            self.new_nest(stmt) if isinstance(stmt, For) and not _is_kernel(stmt) else (stmt,)
            for stmt in made.body
        ]
        return tuple(stmt for part in parts for stmt in part)

    def nest(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return the kernels of a nest, or what is left to do, whatever it does."""
        made = self.kernels(stmt)
        return (stmt,) if made is None else made

    def new_nest(self, stmt: For) -> tuple[Stmt, ...]:
        """Return the kernels of a nest that was made here, with scalars of its own."""
        made = self.known()
        self.nodes |= made
        used = uses_of((stmt,)).keys() & made.keys()
        self.facts.tell((stmt,), frozenset(n for n in used if not made[n].rank))
        return self.nest(stmt)

    def several(self, found: Band) -> Sequence[Made | For] | None:
        """Return the nests that a band becomes, None where it stays one."""
        nests = distributed(found, self.facts, self.fresh, self.nodes)
        return nests or columns(found, self.facts, self.fresh, self.nodes)

    def in_order(self, nests: Sequence[Made | For]) -> tuple[Stmt, ...]:
        """Return the kernels of nests, some of which are kernels already."""
        out: list[Stmt] = []
        self.nodes |= self.known()
        for nest in nests:
            if isinstance(nest, Made):
                self.spaces |= nest.spaces
                out += nest.body
            else:
                out += self.nest(nest)
        return tuple(out)

    def tiled(self, found: Band) -> Made | None:
        """Return the kernel of a band by tiles, None where it has none."""
        made = tensor_tiles(found, self.facts, self.fresh, self.target)
        return made or tiles(found, self.facts, self.fresh)

    def of_band(self, found: Band) -> Made | None:
        """Return the kernel of a band: by blocks or by threads."""
        by_block = prefers_rows(found, self.facts, self.nodes)
        made = None if by_block else points(found, self.fresh, self.nodes)
        made = made or rows(found, self.facts, self.fresh, self.nodes)
        return made or (points(found, self.fresh, self.nodes) if by_block else None)

    def is_hosts_loop(self, stmt: Stmt) -> bool:
        """Whether what a loop in the order of the program does is worth kernels of its own."""
        if not isinstance(stmt, For | While | If) or not is_worth(stmt, self.facts):
            return False
        return any(is_large(one, self.inside(stmt)) for part in bodies(stmt) for one in part)

    def grouped(self, run: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return statements as kernels of one block, or of one thread."""
        out: list[Stmt] = []
        part: list[Stmt] = []
        used: set[int] = set()
        for stmt in run:
            theirs = {node.id for node in (*reads((stmt,)), *writes((stmt,)))}
            if len(used | theirs) > MOST_NODES and used:
                out += self.group(part)
                part, used = [], set()
            part.append(stmt)
            used |= theirs
        return (*out, *self.group(part))

    def group(self, part: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return statements as one kernel."""
        body = tuple(part)
        if all(isinstance(stmt, Comment) for stmt in body):
            return body
        own, facts = self.own_of(body), self.facts
        if any(is_worth(s, facts) or (isinstance(s, For) and is_shared(s, facts)) for s in body):
            made = one_block(body, own, self.facts, self.fresh, self.nodes | self.known())
            if made is not None:
                self.spaces |= made.spaces
                return made.body
        for number in own:
            node = (self.nodes | self.known())[number]
            if not node.rank or node.bytes <= PRIVATE_BYTES:
                self.spaces[number] = "private"
        return (alone(body),)

    def known(self) -> dict[int, Node]:
        """Return the nodes that were made here."""
        return {node.id: node for node in self.fresh.nodes}

    def own_of(self, body: tuple[Stmt, ...]) -> frozenset[int]:
        """Return the temporaries that only these statements use, and fill before they read."""
        here, found = uses_of(body), accesses(body)
        return frozenset(
            number for number, times in here.items()
            if number in self.locals and times == self.uses[number]
            and self.nodes[number].static_shape is not None
            and not found.read_before_written(self.nodes[number])
        )  # fmt: skip


def _told(run: Sequence[Stmt]) -> Sequence[Stmt]:
    """Return the comments at the end of statements: they are about what comes next."""
    last = next((at for at in range(len(run), 0, -1) if not isinstance(run[at - 1], Comment)), 0)
    return run[last:]


def _is_kernel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "block"


def _is_left(stmt: Stmt) -> bool:
    """Whether a statement is neither a kernel nor the host's."""
    return not _is_kernel(stmt) and not (
        is_hosts(stmt) or any(_is_kernel(inner) for inner in statements((stmt,)))
    )


def meets(run: Sequence[Stmt], kernel: Stmt) -> bool:
    """Whether a kernel has to come behind statements before it, and not before them.

    Where something may fail, on either side, all that stands before it is done, and no more.
    """
    if any(isinstance(stmt, Check) for stmt in statements((*run, kernel))):
        return True
    before, there = {n.id for n in writes(run)}, {n.id for n in writes((kernel,))}
    used, given = {n.id for n in reads((kernel,))}, {n.id for n in reads(run)}
    return bool(before & (there | used) or there & given)


def alone(body: tuple[Stmt, ...]) -> For:
    """Return statements as a kernel of one thread."""
    thread = For(Symbol("thread", -(2**20)), const(0), const(1), 1, body, "thread")
    return For(Symbol("block", -(2**20) - 1), const(0), const(1), 1, (thread,), "block")
