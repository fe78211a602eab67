"""Host programs: the control flow around kernel launches, executed by the host.

    Step := Launch(kernel, grid)                launch a kernel
          | Repeat(symbol, lo, hi, step, body)  a counted loop of the host
          | Again(prelude, test, body) | Choose(test, then, orelse)
          | Bind(symbol, value)                 a value that the host computes
          | Learn(symbols, launch)              values that a kernel of one thread computes
          | Clear(node) | Give(node) | Exchange(nodes, sources) | Show(launch, print)
          | Break | Continue
    Asked := Known(expr)                        an expression over integers of the host
           | Launch                             the answer of a kernel of one thread

Everything outside the outermost loops of kind `block` is executed by the host. A value that depends
on data, such as a test or a loop bound, is computed by a kernel of one thread, which the host waits
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import CdInternalError, Diagnostic
from ...lowering import thresholds
from ...lowering.gpu.mapping import single_thread_kernel
from ...lowering.gpu.thread_points import Space
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access, Alloc, Break, Continue, Let, Permute, Print
from ...lowering.ir.bounds import Bounds, bounds_of
from ...lowering.ir.decision import Decision
from ...lowering.ir.expressions import Cast, Expr, Position, reads
from ...lowering.ir.indexing import Affine, Symbol, const, floordiv, var
from ...lowering.ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from ...lowering.ir.loops import (
    Barrier,
    Check,
    Comment,
    Fill,
    For,
    If,
    LastBlock,
    Program,
    Stmt,
    Store,
    Update,
    While,
)
from ...lowering.ir.node import Node
from ...lowering.ir.walk import bodies, statements
from .kernels import FAULT_RECORD_SIZE, WARP, KernelText, LaunchShape, emit_kernels

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""The maximum of blocks of a launch along each axis."""
MAX_LAST_AXIS_THREADS = 64
"""The maximum of threads of a block along its last axis."""
MAX_ANSWERS = 8
"""The maximum of values that one kernel answers."""
REPORT_BYTES = 8 * (MAX_ANSWERS + FAULT_RECORD_SIZE)
"""The size of a run's report in bytes: answers, then the fault record."""
COUNTER_BYTES = 4
"""The size of a last-block counter in bytes."""
ESTIMATED_BLOCKS = 1024
"""The estimated blocks of a launch along an axis whose extent depends on another one."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch of a kernel by its number; the grid is that of its loops, x first."""

    kernel: int
    grid: tuple[Affine, ...]
    threads: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class HostValue:
    """A value that the host computes from its integers."""

    value: Expr


Query = HostValue | Launch


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """A counted loop of the host."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class WhileLoop:
    """A while loop: execute the prelude, exit where the test is false, execute the body, repeat."""

    prelude: tuple[Step, ...]
    test: Query
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """A conditional."""

    test: Query
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a symbol to a value."""

    symbol: Symbol
    value: Expr


@dataclass(frozen=True, slots=True)
class BindAnswers:
    """Bind symbols to the answers of a kernel, in this order."""

    symbols: tuple[Symbol, ...]
    launch: Launch


@dataclass(frozen=True, slots=True)
class Clear:
    """Fill an array with zeros."""

    node: Node


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocate an array of run-time size, filled with zeros."""

    node: Node


@dataclass(frozen=True, slots=True)
class Exchange:
    """Permute the addresses of arrays, as in `Permute`."""

    nodes: tuple[Node, ...]
    sources: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ShowPrint:
    """Print the values that a kernel writes to a record, or have it print a log line itself."""

    launch: Launch
    number: int


Step = (
    Launch | CountedLoop | WhileLoop | Conditional | Bind | BindAnswers | Clear | Allocate
    | Exchange | ShowPrint | Break | Continue
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostProgram:
    """A host program, with the text of its kernels."""

    program: Program
    steps: tuple[Step, ...]
    text: KernelText
    answers: Node
    """The integers into which kernels write answers for the host."""
    device: tuple[Node, ...]
    """The locals in device memory, in the order of the program."""
    whole: Program | None = None
    """The program before its mapping to blocks and threads, where that is known."""
    decisions: tuple[Decision, ...] = ()
    """What became of each nest, and of arrays, and why."""
    computed: frozenset[int] = frozenset()
    """Arrays of `whole`, by node id, that are not materialized: products recompute their elements
    in tiles."""

    @property
    def counted(self) -> int:
        """The size of the last-block counters in bytes: the maximum over kernels, which share them
        as each leaves them zero."""
        counts = (
            kernel.arrivals.count for kernel in self.text.kernels if kernel.arrivals is not None
        )
        return COUNTER_BYTES * max(counts, default=0)


def plan_host(program: Program, spaces: Mapping[int, Space], zeroed: frozenset[int]) -> HostProgram:
    """Return the host program of a program whose kernels are the outermost loops of kind `block`.

    `spaces` are the memory spaces of temporaries, such as private to a thread or shared by a block;
    `zeroed` are the nodes that need zeros as initial values.
    """
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    number = max((n.id for n in nodes), default=0) + 1
    answers = Node(number, "answers", (const(MAX_ANSWERS),), dtypes.int64)
    builder = _Builder(answers, bounds_of(p.node for p in program.parameters))
    steps = builder.steps(body)
    device = tuple(n for n in program.locals if spaces.get(n.id, "device") == "device")
    cleared = tuple(
        Clear(node) for node in (*device, *program.results)
        if node.static_shape is not None and node.id in zeroed
    )  # fmt: skip
    checks = any(isinstance(stmt, Check) for stmt in statements(body))
    text = emit_kernels(
        program.name,
        builder.loops,
        spaces,
        checks,
        builder.shapes,
        builder.bounds_by_launch,
        builder.comments,
    )
    return HostProgram(program, (*cleared, *steps), text, answers, device)


@dataclass(slots=True)
class _Builder:
    """The construction of a host program: the kernels so far, and the facts at this point."""

    answers: Node
    bounds: Bounds
    loops: list[For] = field(default_factory=list)
    shapes: list[LaunchShape] = field(default_factory=list)
    bounds_by_launch: list[Bounds] = field(default_factory=list)
    """The ranges of the host's integers at each launch."""
    pending_comments: list[Comment] = field(default_factory=list)
    """The comments since the last kernel."""
    last: tuple[Comment, ...] = ()
    """The last comment of the last kernel."""
    comments: list[tuple[Comment, ...]] = field(default_factory=list)
    """The comments above each kernel."""
    prints: int = 0

    def steps(self, body: Iterable[Stmt]) -> tuple[Step, ...]:
        """Return the steps of statements."""
        return tuple(
            step for part in _group_queries(body)
            for step in (self.step(part) if not isinstance(part, tuple) else self.learned(part))
        )  # fmt: skip

    def learned(self, lets: tuple[Let, ...]) -> tuple[Step, ...]:
        """Return the step that binds symbols to answers of one kernel."""
        answers = (
            Store(Access(self.answers, (const(at),)), Position(var(let.symbol)))
            for at, let in enumerate(lets)
        )
        launch = self.launch(single_thread_kernel((*lets, *answers)))
        return (BindAnswers(tuple(let.symbol for let in lets), launch),)

    def step(self, stmt: Stmt) -> Iterable[Step]:
        match stmt:
            case Comment():
                self.pending_comments.append(stmt)
                return ()
            case For(kind="block"):
                return (self.launch(stmt, self.taken(stmt)),)
            case For(symbol, lo, hi, step, body):
                outer_bounds, self.bounds = self.bounds, self.bounds.inside(stmt)
                inner = self.steps(body)
                self.bounds = outer_bounds
                return (CountedLoop(symbol, lo, hi, step, inner),)
            case While(prelude, test, body):
                return (WhileLoop(self.steps(prelude), self.query(test), self.steps(body)),)
            case If(test, then, orelse):
                return (Conditional(self.query(test), self.steps(then), self.steps(orelse)),)
            case Let(symbol, value):
                return (Bind(symbol, value),)
            case Alloc(node):
                return (Allocate(node),)
            case Permute(nodes, sources):
                return (Exchange(nodes, sources),)
            case Print():
                self.prints += 1
                return (ShowPrint(self.launch(single_thread_kernel((stmt,))), self.prints - 1),)
            case Break() | Continue():
                return (stmt,)
            case Store() | Update() | Check() | Fill():
                raise _unscheduled(stmt)
            case (
                CopyVector() | StoreVector() | MatMul() | AwaitProducts() | Barrier() | LastBlock()
            ):
                raise _unscheduled(stmt)
            case _:
                assert_never(stmt)

    def query(self, value: Expr) -> Query:
        """Return the query of a value: an expression of the host, or a kernel."""
        if not reads(value):
            return HostValue(value)
        number = value if value.dtype is dtypes.int64 else Cast(value, dtypes.int64)
        return self.launch(
            single_thread_kernel((Store(Access(self.answers, (const(0),)), number),))
        )

    def taken(self, kernel: For) -> tuple[Comment, ...]:
        """Return the comments before a kernel; one without any continues the last statement, or
        starts the first one."""
        new_comments, self.pending_comments = tuple(self.pending_comments), []
        body: tuple[Stmt, ...] = (kernel,)
        all_comments = (
            *new_comments,
            *(stmt for stmt in statements(body) if isinstance(stmt, Comment)),
        )
        if all_comments and not self.last:
            self.comments[:] = [
                comments_above or all_comments[:1] for comments_above in self.comments
            ]
        self.last = all_comments[-1:] or self.last
        return new_comments if all_comments else self.last

    def launch(self, loop: For, comments: tuple[Comment, ...] = ()) -> Launch:
        """Add a kernel with comments; return its launch."""
        self.loops.append(loop)
        self.comments.append(comments)
        self.bounds_by_launch.append(self.bounds)
        loops = _grid_loops(loop)
        grid = tuple(
            _trip_count(grid_loop, loops[:at:-1], self.bounds) for at, grid_loop in enumerate(loops)
        )
        threads = _block_threads(loop, self.bounds)
        self.shapes.append(LaunchShape(_static_blocks(grid), threads))
        return Launch(len(self.loops) - 1, grid, threads)


def _group_queries(body: Iterable[Stmt]) -> Iterable[Stmt | tuple[Let, ...]]:
    """Yield statements, with consecutive data-dependent values grouped for one kernel."""
    group: list[Let] = []
    for stmt in body:
        if isinstance(stmt, Let) and (group or reads(stmt.value)):
            group.append(stmt)
            if len(group) < MAX_ANSWERS:
                continue
        if group:
            yield tuple(group)
        if stmt not in group:
            yield stmt
        group = []
    if group:
        yield tuple(group)


def _unscheduled(stmt: Stmt) -> CdInternalError:
    text = f"a {type(stmt).__name__} stands outside of every kernel"
    helps = ("this is a fault of plusequals, not of your function; please report this text",)
    return CdInternalError(Diagnostic("CD0901", text, helps=helps))


def _grid_loops(loop: For) -> list[For]:
    """Return the loops of the grid, innermost first."""
    loops = [loop]
    while len(loops) < 3:
        inner = next((s for s in loops[0].body if isinstance(s, For)), None)
        if inner is None or inner.kind != "block":
            break
        loops.insert(0, inner)
    return loops


def _trip_count(loop: For, outer: Iterable[For], bounds: Bounds) -> Affine:
    """Return the trip count of a loop over symbols of the host; an estimate where it depends on
    other loops.

    Any size of a grid is correct, since loops are distributed cyclically.
    """
    distance = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    if distance.symbols() & {outer_loop.symbol for outer_loop in outer}:
        for outer_loop in outer:
            bounds = bounds.inside(outer_loop)
        upper_bound = bounds.most(distance)
        distance = const(ESTIMATED_BLOCKS if upper_bound is None else upper_bound)
    return floordiv(distance + (abs(loop.step) - 1), const(abs(loop.step)))


def _static_blocks(grid: tuple[Affine, ...]) -> tuple[int, int, int]:
    """Return the static blocks of a launch along each axis, 0 where dynamic."""
    x, y, z = (
        0 if (size := extent.constant) is None else min(max(size, 0), limit)
        for extent, limit in zip((*grid, *[const(1)] * (3 - len(grid))), MOST_BLOCKS, strict=True)
    )
    return x, y, z


def _block_threads(loop: For, bounds: Bounds) -> tuple[int, int, int]:
    """Return the threads of a block along each axis, x first."""
    threads = [1, 1, 1]
    _enlarge_block(loop, bounds, threads)
    if threads[0] > 1 == threads[1]:
        threads[0] = -(-threads[0] // WARP) * WARP
    threads[2] = min(threads[2], MAX_LAST_AXIS_THREADS)
    while threads[0] * threads[1] * threads[2] > 1024:
        axis = threads.index(max(threads))
        threads[axis] = (threads[axis] + 1) // 2
    return threads[0], threads[1], threads[2]


def _enlarge_block(loop: For, bounds: Bounds, threads: list[int]) -> int:
    """Enlarge a block for the trip counts of thread loops; return the depth of their nest."""
    inner_bounds, depth = bounds.inside(loop), 0
    for stmt in _outermost_loops(loop.body):
        depth = max(depth, _enlarge_block(stmt, inner_bounds, threads))
    if loop.kind == "thread":
        distance = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
        trip_count = bounds.most(floordiv(distance + (abs(loop.step) - 1), const(abs(loop.step))))
        most = thresholds.BLOCK_THREADS
        count = most if trip_count is None else min(max(trip_count, 1), most)
        threads[depth] = max(threads[depth], count)
        depth += 1
    return depth


def _outermost_loops(body: Iterable[Stmt]) -> Iterable[For]:
    """Yield the outermost loops of statements."""
    for stmt in body:
        if isinstance(stmt, For):
            yield stmt
        else:
            for inner in bodies(stmt):
                yield from _outermost_loops(inner)
