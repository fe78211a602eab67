"""Kernels as CUDA text: what stands around the statements of each, written by the one walk.

A kernel is an outermost loop of the kind `block`. Its parameters are 64 bits each: the addresses of
the arrays that it uses, the integers that the host knows, where blocks count themselves, where
faults go and the number of the launch, where prints go. Loops of the kinds `block` and `thread` are
dealt out with a stride, so that every size of a launch computes the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from math import prod

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.gpu.thread_points import Space
from ...lowering.ir.assignments import Fault, Print
from ...lowering.ir.bounds import Bounds
from ...lowering.ir.expressions import Index
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.intervals import UNKNOWN, greater, smaller
from ...lowering.ir.loops import Barrier, Check, Comment, For, Stmt
from ...lowering.ir.node import Node
from ...lowering.ir.walk import binds, reads, statements, uses, writes
from ...lowering.transform.remap import Place, elsewhere
from ..codegen import index_width, intrinsic_loops, prelude, records
from ..codegen.c_expression import Scope
from ..codegen.c_printer import emit_body
from ..codegen.dialect import Dialect
from ..codegen.names import Names, identifier
from ..codegen.quirks.counter_overflow import LEAST, MOST, SIZE
from ..codegen.source import Body, above
from ..codegen.text_layout import STEP, broken, comment
from .block_memory import laid_out
from .dialect import CUDA, SPECIFIC
from .last_block_counters import ARRIVED, Arrivals, arrivals_of
from .occupancy import bounds

PLACES = 8
"""Numbers of a fault's place in the program that are compared."""
FAULTS = 2 + PLACES + 2 * records.SLOTS
"""Numbers that the record of faults takes; see `faults.h`."""
LINE = 16
"""Numbers of a record that a device shows in one line; see `logs.h`."""
WARP = 32
"""Threads that go on together."""
THREADED: Mapping[Space | None, int] = {"rows": 2, "registers": 1}
"""How many axes of what each thread has a row of are the threads."""
WIDE = "_wide"
"""What stands behind the name of a number that a launch gives in more bits than it needs."""
_OURS = frozenset(
    f"{ARRIVED} faults launch place turn failed met printed run"
    " blockIdx threadIdx blockDim gridDim".split()
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How many blocks and threads run a kernel, along each axis, x first."""

    blocks: tuple[int, int, int]
    """Zero where only the run knows."""
    threads: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of the text, and what a launch gives it, in this order."""

    name: str
    nodes: tuple[Node, ...]
    symbols: tuple[Symbol, ...]
    checks: bool
    """Whether it is given where faults are recorded."""
    prints: int
    """The slots of a print's record that it is given; 0 for none."""
    logs: bool
    """Whether it shows that record itself, and is given the number of the run instead."""
    loop: For
    shared: int
    """Bytes of memory that a block of it has."""
    keeps: bool
    """Whether its threads keep rows from one of its loops to the next: another number of them than
    that of its shape would not have all."""
    shape: Shape
    aligned: Mapping[int, bool] = field(default_factory=dict)
    """The arrays, by their nodes' numbers, that it needs at multiples of 16 bytes, and whether it
    writes each."""
    dynamic: int = 0
    """Bytes that a launch gives to each block; 0 where it declares what its threads share."""
    arrivals: Arrivals | None = None
    """What its blocks count themselves with, if they do."""

    @property
    def threads(self) -> int:
        """Threads that a block of it has."""
        return prod(self.shape.threads)

    @property
    def span(self) -> Span:
        """Where the first statement is that it does; barriers and comments have no place."""
        inside = (getattr(stmt, "span", NOWHERE) for stmt in statements((self.loop,)))
        return next((span for span in inside if span is not NOWHERE), NOWHERE)

    @property
    def arguments(self) -> int:
        """How many arguments a launch gives it."""
        more = (self.arrivals is not None) + 2 * self.checks + (self.prints > 0)
        return len(self.nodes) + len(self.symbols) + more


@dataclass(frozen=True, slots=True)
class Text:
    """The text of all kernels, and what its numbers mean."""

    text: str
    kernels: tuple[Kernel, ...]
    line_map: Mapping[int, Span]
    faults: tuple[tuple[Fault, Span], ...]
    prints: tuple[Print, ...]
    above: int
    """How many lines of the text come before the kernels: the header and the prelude."""
    specific: bool = False
    """Whether only devices of the very architecture run it: it is compiled for `sm_90a`."""


@dataclass(frozen=True, slots=True)
class KernelFrame:
    """The names of one kernel, and how its threads fail, print and wait."""

    scope: Scope
    names: Names
    meets: bool
    """Whether threads that fail have to tell those that wait for them."""
    copies: bool
    """Whether threads copy what has to be there when they have met."""
    logs: bool
    """Whether prints are shown by the device."""
    sizes: frozenset[Symbol] = frozenset()
    dialect: Dialect = CUDA
    arrivals: Arrivals | None = None

    def failing(self, number: int, path: Sequence[str]) -> Iterator[str]:
        """Yield what comes before the values of a fault: the first in the program records it."""
        place = ", ".join(path[:PLACES])
        yield f"const int64_t place[] = {{{place}}};"
        yield f"for (int turn = 0; turn < {WARP}; turn++) {{"
        yield "if (turn != lane_of()) continue;"
        yield f"int64_t *const fault = claimed(faults, launch, place, {min(len(path), PLACES)});"
        yield f"fault[0] = {number};"

    def leaving(self, status: int | str) -> Iterator[str]:
        """Yield how a thread ends that failed; `released` has a fence behind what it tells."""
        if self.meets:
            yield "failed = met + 1;"
        yield "released(faults);"
        yield "}"
        yield "return;"

    def printing(self, number: int, slots: int) -> Iterator[str]:
        """Yield the room for the record of a line of a log; other records are the host's."""
        if self.logs:
            assert slots <= LINE, "a line of a log has few values"
            yield f"int64_t printed[{LINE}] = {{{number}}};"

    def printed(self, number: int) -> Iterator[str]:
        """Yield how a line of a log is shown; the host shows what is none."""
        if self.logs:
            yield "logged(run, printed);"

    def meeting(self, later: int) -> Iterator[str]:
        """Yield how the threads of a block wait for each other, and end where one failed.

        All end at the same barrier: one that is late does not see who fails behind it.
        """
        if self.copies:
            yield f"arrived<{later}>();"
        if self.scope.swizzled:
            yield "published();"
        yield "__syncthreads();"
        if self.meets:
            yield "met++;"
            yield "if (failed && failed <= met) return;"

    def coming_last(self) -> str:
        """Return the test whether a block is the last one of those that come here."""
        return "" if self.arrivals is None else self.arrivals.test(self.scope)


def emit_kernels(
    name: str,
    loops: Sequence[For],
    spaces: Mapping[int, Space],
    checks: bool,
    shapes: Sequence[Shape],
    known: Sequence[Bounds] = (),
    comments: Sequence[Sequence[Comment]] = (),
) -> Text:
    """Return the text of kernels: loops of the kind `block`, in the order of their numbers.

    `checks` says whether anything in the program may fail, `shapes` how many blocks and threads run
    each kernel, `known` what the host's numbers are between there, `comments` what is above each.
    """
    lines: list[str] = []
    spans: dict[int, Span] = {}
    kernels: list[Kernel] = []
    bodies: list[Body] = []
    for number, loop in enumerate(loops):
        called = f"pe_{identifier(name)}_{number}"
        kernel = _kernel(called, loop, spaces, checks, shapes[number])
        frame = _frame(kernel, spaces, known[number] if known else Bounds())
        held = {node: spaces.get(node.id) for node in _used(kernel.loop)}
        full = kernel.arrivals is not None and kernel.arrivals.is_light
        limits = bounds(held, kernel.threads, kernel.dynamic, full)
        head = _head(kernel, frame, limits)
        told = [comment(one.text, 0) for one in comments[number]] if comments else []
        top = [*told, *broken(head, 0), "{", *_opening(kernel, frame, spaces)]
        body = emit_body(frame, (kernel.loop,), bodies)
        at = len(lines) + len(top)
        spans |= {at + line: span for line, span in body.spans.items()}
        lines += [*top, *body.lines, "}", ""]
        kernels.append(kernel)
        bodies.append(body)
    code = "\n".join(lines)
    head = above(code, CUDA)
    skipped = head.count("\n")
    return Text(
        head + code,
        tuple(kernels),
        {skipped + line: span for line, span in spans.items()},
        tuple(fault for body in bodies for fault in body.faults),
        tuple(print_ for body in bodies for print_ in body.prints),
        skipped,
        any(re.search(rf"\b{name}\(", head) for name in SPECIFIC),
    )


def _kernel(
    name: str, loop: For, spaces: Mapping[int, Space], checks: bool, shape: Shape
) -> Kernel:
    loop = _of_one_thread(loop, spaces)
    inside = statements(_body(loop))
    used = _used(loop)
    keeps = any(spaces.get(node.id) in THREADED for node in used)
    nodes = tuple(node for node in used if spaces.get(node.id, "device") == "device")
    bound = {symbol for stmt in inside for symbol in binds(stmt)}
    wanted = {symbol for stmt in inside for symbol in uses(stmt)}
    wanted |= {s for node in used for n in node.element_strides for s in n.symbols()}
    symbols = tuple(sorted(wanted - bound, key=lambda symbol: symbol.serial))
    slots = [_slots(stmt) for stmt in inside if isinstance(stmt, Print)]
    held = _shared(used, spaces)
    prints = max(slots, default=0)
    logs = any(isinstance(stmt, Print) and stmt.logs for stmt in inside)
    shared, (_, dynamic) = sum(node.bytes for node in held), laid_out(held)
    pieces = (intrinsic_loops.aligned(stmt) for stmt in inside if isinstance(stmt, For))
    written = {node.id for node in writes(_body(loop))}
    aligned = {node.id: node.id in written for node in pieces if node is not None}
    facts = shared, keeps, shape, aligned, dynamic, arrivals_of(loop)
    return Kernel(name, nodes, symbols, checks, prints, logs, loop, *facts)


def _shared(used: Iterable[Node], spaces: Mapping[int, Space]) -> tuple[Node, ...]:
    return tuple(node for node in used if spaces.get(node.id) == "shared")


def _slots(stmt: Print) -> int:
    values = (piece for piece in stmt.pieces if not isinstance(piece, str))
    return 2 + sum(records.width(value.dtype) for value in values)


def _frame(kernel: Kernel, spaces: Mapping[int, Space], known: Bounds) -> KernelFrame:
    """Return the frame of a kernel: every name chosen."""
    loop = kernel.loop
    names = Names(lambda name: name in _OURS or name in prelude.pieces(CUDA.library))
    nodes = _used(loop)
    by_id = {node.id: names.fresh(node.label) for node in nodes}
    scope = Scope(CUDA, by_id, frozenset(n.id for n in nodes if _is_value(n, kernel, spaces)))
    extents = (extent.symbol for node in nodes for extent in node.shape)
    sizes = frozenset(size for size in extents if size is not None)
    scope.known = _between(kernel.symbols, sizes, known)
    for symbol in kernel.symbols:
        scope.symbols[symbol] = names.fresh(symbol.name)
        most = index_width.of_symbol(symbol, known)
        if most is not None:
            scope.narrow[symbol] = most
    inside = statements(_body(loop))
    meets = any(isinstance(stmt, Barrier) for stmt in inside) and _checks(inside)
    copies = any(isinstance(stmt, For) and stmt.kind == "packed" for stmt in inside)
    wide = tuple(stmt for stmt in inside if isinstance(stmt, For) and stmt.kind == "warpgroup")
    scope.swizzled = frozenset(n.id for n in reads(wide) if spaces.get(n.id) == "shared")
    return KernelFrame(scope, names, meets, copies, kernel.logs, sizes, CUDA, kernel.arrivals)


def _between(symbols: Iterable[Symbol], sizes: Set[Symbol], known: Bounds) -> Bounds:
    """Return what the numbers are between that a launch gives: 64 bits hold each of them."""
    ends = {}
    for symbol in symbols:
        low, high = (0, SIZE) if symbol in sizes else (LEAST, MOST)
        least, most = known.intervals.get(symbol, UNKNOWN)
        ends[symbol] = greater(low, least), smaller(high, most)
    return Bounds({**known.intervals, **ends}, known.ranges)


def _of_one_thread(loop: For, spaces: Mapping[int, Space]) -> For:
    """Return a kernel in which a thread has its own row only of what each thread has a row of.

    The first axes of such a node are the threads; its block is as large as they are.
    """
    axes = {n.id: THREADED[s] for n in _used(loop) if (s := spaces.get(n.id)) in THREADED}
    if not axes:
        return loop

    def moved(node: Node, index: tuple[Index, ...]) -> Place:
        count = axes.get(node.id, 0)
        return (replace(node, shape=node.shape[count:]), index[count:]) if count else (node, index)

    (made,) = elsewhere(_body(loop), moved)
    assert isinstance(made, For)
    return made


def _body(loop: For) -> tuple[Stmt, ...]:
    return (loop,)


def _used(loop: For) -> tuple[Node, ...]:
    """Return the arrays that a kernel uses, in order of first use."""
    return tuple(dict.fromkeys((*reads((loop,)), *writes((loop,)))))


def _checks(inside: Iterable[Stmt]) -> bool:
    return any(isinstance(stmt, Check) for stmt in inside)


def _is_value(node: Node, kernel: Kernel, spaces: Mapping[int, Space]) -> bool:
    """Whether a node is a variable of its own in a kernel: a register, or read once before."""
    if node.rank:
        return False
    space = spaces.get(node.id, "device")
    return space == "private" or (space == "device" and node not in writes((kernel.loop,)))


def _head(kernel: Kernel, frame: KernelFrame, limits: str) -> str:
    parameters = []
    written = {node.id for node in writes((kernel.loop,))}
    inside = statements(_body(kernel.loop))
    waits = kernel.arrivals is not None or any(isinstance(stmt, Barrier) for stmt in inside)
    for node in kernel.nodes:
        const = "" if node.id in written else "const "
        # What another thread writes before a barrier, this one may read behind it: a compiler that
        # is told that nobody else writes there keeps what it has read before.
        alone = "" if node.id in written and waits else CUDA.restrict
        name = frame.scope.nodes[node.id]
        name = f"{name}_at" if node.id in frame.scope.by_value else name
        parameters.append(f"{const}{CUDA.types[node.dtype]} *{alone}{' ' * bool(alone)}{name}")
    for symbol in kernel.symbols:
        wide = WIDE * (symbol in frame.scope.narrow)
        parameters.append(f"int64_t {frame.scope.symbols[symbol]}{wide}")
    parameters += [f"uint32_t *{ARRIVED}"] * (kernel.arrivals is not None)
    parameters += ["int64_t *faults", "int64_t launch"] * kernel.checks
    if kernel.prints:
        parameters.append("int64_t run" if kernel.logs else "int64_t *printed")
    head = CUDA.entry.format(f"__launch_bounds__({limits}) {kernel.name}")
    return f"{head}({', '.join(parameters)})"


def _opening(kernel: Kernel, frame: KernelFrame, spaces: Mapping[int, Space]) -> Iterator[str]:
    """Yield the declarations of a kernel, and its end where an earlier one failed."""
    sizes = ", ".join(map(str, (*kernel.shape.blocks, *kernel.shape.threads)))
    yield f"{STEP}launched<{sizes}>();"
    if kernel.checks:
        yield f"{STEP}if (faults[0] && faults[0] != launch) return;"
    if frame.meets:
        yield f"{STEP}int met = 0;"
        yield f"{STEP}__shared__ int failed;"
        yield f"{STEP}if (threadIdx.x == 0) failed = 0;"
        yield f"{STEP}__syncthreads();"
    for symbol in kernel.symbols:
        if symbol in frame.scope.narrow:
            name = frame.scope.symbols[symbol]
            yield f"{STEP}const int32_t {name} = (int32_t){name}{WIDE};"
    places, _ = laid_out(_shared(_used(kernel.loop), spaces))
    for node in _used(kernel.loop):
        name, ctype = frame.scope.nodes[node.id], CUDA.types[node.dtype]
        space = spaces.get(node.id, "device")
        if space == "device":
            if node.id in frame.scope.by_value:
                yield f"{STEP}const {ctype} {name} = {name}_at[0];"
            continue
        count = max(1, node.bytes // node.dtype.itemsize)
        if node.id in places:
            yield f"{STEP}{ctype} *const {name} = ({ctype} *)(block_bytes() + {places[node.id]});"
        elif space == "shared":
            yield f"{STEP}__shared__ __align__(16) {ctype} {name}[{count}];"
        elif node.rank:
            yield f"{STEP}{ctype} {name}[{count}] = {{0}};"
        else:
            zero = "{0}" if node.dtype.kind == "c" else CUDA.literal(0, node.dtype)
            yield f"{STEP}{ctype} {name} = {zero};"
