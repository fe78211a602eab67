"""What the host does for a program on a device: a small program of its own, kernels and all.

    Step := Launch(kernel, grid)                run a kernel
          | Repeat(symbol, lo, hi, step, body)  a loop of the host
          | Again(prelude, test, body) | Choose(test, then, other)
          | Bind(symbol, value)                 the host knows a value
          | Learn(symbols, launch)              a kernel of one thread finds values
          | Clear(node) | Give(node) | Exchange(nodes, sources) | Show(launch, print)
          | Break | Continue
    Asked := Known(expr)                        the host knows all that it takes
           | Launch                             a kernel of one thread answers

Everything outside of the outermost loops of the kind `block` is the host's. What it has to know of
the data - a test, the bound of a loop - a kernel of one thread answers, and the host waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import CdInternalError, Diagnostic
from ...lowering.gpu.mapping import alone
from ...lowering.gpu.thread_points import THREADS, Space
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access, Alloc, Break, Continue, Let, Permute, Print
from ...lowering.ir.bounds import Bounds, bounds_of
from ...lowering.ir.decision import Decision
from ...lowering.ir.expressions import Cast, Expr, Position, reads
from ...lowering.ir.indexing import Affine, Symbol, const, floordiv, var
from ...lowering.ir.loops import (
    Barrier,
    Check,
    Comment,
    Fill,
    For,
    If,
    Program,
    Stmt,
    Store,
    Update,
    While,
)
from ...lowering.ir.node import Node
from ...lowering.ir.walk import bodies, statements
from .kernels import FAULTS, WARP, Shape, Text, emit_kernels

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""How many blocks a launch may have along each axis."""
DEEPEST = 64
"""How many threads a block may have along its last axis."""
ANSWERS = 8
"""So many values the host asks for at once."""
REPORTED = 8 * (ANSWERS + FAULTS)
"""Bytes of what a run reports: answers, and behind them whether it failed, and how."""
COUNTER = 4
"""Bytes of a number by which blocks count themselves."""
UNKNOWN_BLOCKS = 1024
"""Blocks of a launch along an axis whose size depends on another one."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel by its number; the grid is what its loops need, x first."""

    kernel: int
    grid: tuple[Affine, ...]
    threads: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Known:
    """A value that the host computes from the integers that it knows."""

    value: Expr


Asked = Known | Launch


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop of the host."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """Run the prelude, leave when the test is false, run the body, again."""

    prelude: tuple[Step, ...]
    test: Asked
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Choose:
    """One side or the other."""

    test: Asked
    then: tuple[Step, ...]
    other: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """The symbol is the value from now on."""

    symbol: Symbol
    value: Expr


@dataclass(frozen=True, slots=True)
class Learn:
    """The symbols are what a kernel answers, in this order."""

    symbols: tuple[Symbol, ...]
    launch: Launch


@dataclass(frozen=True, slots=True)
class Clear:
    """The array becomes zeros."""

    node: Node


@dataclass(frozen=True, slots=True)
class Give:
    """The array gets storage of its size now, filled with zeros."""

    node: Node


@dataclass(frozen=True, slots=True)
class Exchange:
    """The arrays trade places, as in `Permute`."""

    nodes: tuple[Node, ...]
    sources: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """A kernel writes the values of a print, and the host shows them; a line of a log it shows."""

    launch: Launch
    number: int


Step = (
    Launch | Repeat | Again | Choose | Bind | Learn | Clear | Give | Exchange | Show
    | Break | Continue
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """The host's part of a program, and the text of its kernels."""

    program: Program
    steps: tuple[Step, ...]
    text: Text
    answers: Node
    """Integers, into which kernels write what the host asks."""
    device: tuple[Node, ...]
    """The locals that are the device's, in the order of the program."""
    whole: Program | None = None
    """The program before its loops were shared out, where that is known."""
    decisions: tuple[Decision, ...] = ()
    """What became of each nest, and of arrays, and why."""
    computed: frozenset[int] = frozenset()
    """Arrays of that, by node id, which are none here: products compute elements in tiles."""

    @property
    def counted(self) -> int:
        """Bytes of the numbers by which blocks count themselves: the largest kernel's, since each
        leaves them as they were, zeros."""
        counts = (one.arrivals.count for one in self.text.kernels if one.arrivals is not None)
        return COUNTER * max(counts, default=0)


def plan(program: Program, spaces: Mapping[int, Space], zeroed: frozenset[int]) -> Plan:
    """Return the plan of a program whose kernels are the outermost loops of the kind `block`.

    `spaces` says of temporaries whether each thread, or each block, has its own; `zeroed` are the
    nodes that rely on the zeros they start from.
    """
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    number = max((n.id for n in nodes), default=0) + 1
    answers = Node(number, "answers", (const(ANSWERS),), dtypes.int64)
    made = _Making(answers, bounds_of(p.node for p in program.parameters))
    steps = made.steps(body)
    device = tuple(n for n in program.locals if spaces.get(n.id, "device") == "device")
    cleared = tuple(
        Clear(node) for node in (*device, *program.results)
        if node.static_shape is not None and node.id in zeroed
    )  # fmt: skip
    checks = any(isinstance(stmt, Check) for stmt in statements(body))
    text = emit_kernels(
        program.name, made.loops, spaces, checks, made.shapes, made.known, made.comments
    )
    return Plan(program, (*cleared, *steps), text, answers, device)


@dataclass(slots=True)
class _Making:
    """The kernels found so far."""

    answers: Node
    bounds: Bounds
    loops: list[For] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    known: list[Bounds] = field(default_factory=list)
    """What the host's numbers are between where kernels are launched."""
    told: list[Comment] = field(default_factory=list)
    """The comments since the last kernel."""
    last: tuple[Comment, ...] = ()
    """The last one of the last kernel."""
    comments: list[tuple[Comment, ...]] = field(default_factory=list)
    """What each kernel is under."""
    prints: int = 0

    def steps(self, body: Iterable[Stmt]) -> tuple[Step, ...]:
        """Return what the host does for statements."""
        return tuple(
            step for part in _together(body)
            for step in (self.step(part) if not isinstance(part, tuple) else self.learned(part))
        )  # fmt: skip

    def learned(self, lets: tuple[Let, ...]) -> tuple[Step, ...]:
        """Return how the host gets to know the values of symbols, all at once."""
        answers = (
            Store(Access(self.answers, (const(at),)), Position(var(let.symbol)))
            for at, let in enumerate(lets)
        )
        launch = self.launch(alone((*lets, *answers)))
        return (Learn(tuple(let.symbol for let in lets), launch),)

    def step(self, stmt: Stmt) -> Iterable[Step]:
        match stmt:
            case Comment():
                self.told.append(stmt)
                return ()
            case For(kind="block"):
                return (self.launch(stmt, self.taken(stmt)),)
            case For(symbol, lo, hi, step, body):
                before, self.bounds = self.bounds, self.bounds.inside(stmt)
                inner = self.steps(body)
                self.bounds = before
                return (Repeat(symbol, lo, hi, step, inner),)
            case While(prelude, test, body):
                return (Again(self.steps(prelude), self.asked(test), self.steps(body)),)
            case If(test, then, other):
                return (Choose(self.asked(test), self.steps(then), self.steps(other)),)
            case Let(symbol, value):
                return (Bind(symbol, value),)
            case Alloc(node):
                return (Give(node),)
            case Permute(nodes, sources):
                return (Exchange(nodes, sources),)
            case Print():
                self.prints += 1
                return (Show(self.launch(alone((stmt,))), self.prints - 1),)
            case Break() | Continue():
                return (stmt,)
            case Store() | Update() | Check() | Fill() | Barrier():
                raise _unscheduled(stmt)
            case _:
                assert_never(stmt)

    def asked(self, value: Expr) -> Asked:
        """Return how the host gets to know a value."""
        if not reads(value):
            return Known(value)
        number = value if value.dtype is dtypes.int64 else Cast(value, dtypes.int64)
        return self.launch(alone((Store(Access(self.answers, (const(0),)), number),)))

    def taken(self, kernel: For) -> tuple[Comment, ...]:
        """Return the comments before a kernel; one without any goes on with the last statement, or
        is the beginning of the first one."""
        told, self.told = tuple(self.told), []
        body: tuple[Stmt, ...] = (kernel,)
        found = (*told, *(stmt for stmt in statements(body) if isinstance(stmt, Comment)))
        if found and not self.last:
            self.comments[:] = [one or found[:1] for one in self.comments]
        self.last = found[-1:] or self.last
        return told if found else self.last

    def launch(self, loop: For, comments: tuple[Comment, ...] = ()) -> Launch:
        """Return the launch of a kernel under comments, which joins the others."""
        self.loops.append(loop)
        self.comments.append(comments)
        self.known.append(self.bounds)
        loops = _grid(loop)
        grid = tuple(_rounds(one, loops[:at:-1], self.bounds) for at, one in enumerate(loops))
        threads = _threads(loop, self.bounds)
        self.shapes.append(Shape(_known(grid), threads))
        return Launch(len(self.loops) - 1, grid, threads)


def _together(body: Iterable[Stmt]) -> Iterable[Stmt | tuple[Let, ...]]:
    """Yield statements, and values that the host has to ask for in groups."""
    held: list[Let] = []
    for stmt in body:
        if isinstance(stmt, Let) and (held or reads(stmt.value)):
            held.append(stmt)
            if len(held) < ANSWERS:
                continue
        if held:
            yield tuple(held)
        if stmt not in held:
            yield stmt
        held = []
    if held:
        yield tuple(held)


def _unscheduled(stmt: Stmt) -> CdInternalError:
    text = f"a {type(stmt).__name__} stands outside of every kernel"
    helps = ("this is a fault of plusequals, not of your function; please report this text",)
    return CdInternalError(Diagnostic("CD0901", text, helps=helps))


def _grid(loop: For) -> list[For]:
    """Return the loops that make the grid, innermost first."""
    found = [loop]
    while len(found) < 3:
        inner = next((s for s in found[0].body if isinstance(s, For)), None)
        if inner is None or inner.kind != "block":
            break
        found.insert(0, inner)
    return found


def _rounds(loop: For, outer: Iterable[For], known: Bounds) -> Affine:
    """Return how many rounds a loop has, in what the host knows; a guess where it does not.

    Every size of a grid is right, since loops are dealt out with a stride.
    """
    gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    if gap.symbols() & {one.symbol for one in outer}:
        for one in outer:
            known = known.inside(one)
        most = known.most(gap)
        gap = const(UNKNOWN_BLOCKS if most is None else most)
    return floordiv(gap + (abs(loop.step) - 1), const(abs(loop.step)))


def _known(grid: tuple[Affine, ...]) -> tuple[int, int, int]:
    """Return how many blocks each launch with a grid has, along each axis."""
    x, y, z = (
        0 if (size := one.constant) is None else min(max(size, 0), most)
        for one, most in zip((*grid, *[const(1)] * (3 - len(grid))), MOST_BLOCKS, strict=True)
    )
    return x, y, z


def _threads(loop: For, known: Bounds) -> tuple[int, int, int]:
    """Return how many threads a block has along each axis, x first."""
    most = [1, 1, 1]
    _widen(loop, known, most)
    if most[0] > 1 == most[1]:
        most[0] = -(-most[0] // WARP) * WARP
    most[2] = min(most[2], DEEPEST)
    while most[0] * most[1] * most[2] > 1024:
        at = most.index(max(most))
        most[at] = (most[at] + 1) // 2
    return most[0], most[1], most[2]


def _widen(loop: For, known: Bounds, most: list[int]) -> int:
    """Make room for the rounds of thread loops; return how many of them are inside each other."""
    inside, depth = known.inside(loop), 0
    for stmt in _loops_in(loop.body):
        depth = max(depth, _widen(stmt, inside, most))
    if loop.kind == "thread":
        gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
        rounds = known.most(floordiv(gap + (abs(loop.step) - 1), const(abs(loop.step))))
        count = THREADS if rounds is None else min(max(rounds, 1), THREADS)
        most[depth] = max(most[depth], count)
        depth += 1
    return depth


def _loops_in(body: Iterable[Stmt]) -> Iterable[For]:
    """Yield the outermost loops of statements."""
    for stmt in body:
        if isinstance(stmt, For):
            yield stmt
        else:
            for inner in bodies(stmt):
                yield from _loops_in(inner)
