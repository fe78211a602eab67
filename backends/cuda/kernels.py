"""CUDA kernels as text: signatures, prologues and frames; `c_printer` prints their statements.

A kernel is an outermost loop of kind `block`. Its parameters have 64 bits each: the addresses of
its arrays, integers of the host, the counters of last-block detection, the fault record and the
number of the launch, the print record. Loops of the kinds `block` and `thread` are distributed
cyclically (grid-stride), so that the result does not depend on the size of the launch.
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
from ...lowering.ir.instructions import CopyVector, MatMul
from ...lowering.ir.intervals import UNKNOWN, tighter_lower, tighter_upper
from ...lowering.ir.loops import Barrier, Check, Comment, For, Stmt
from ...lowering.ir.node import Node
from ...lowering.ir.walk import binds, reads, statements, uses, writes
from ...lowering.transform.remap import Element, remap_accesses
from ..codegen import index_width, intrinsic_loops, prelude, records
from ..codegen.c_expression import Scope
from ..codegen.c_printer import print_body
from ..codegen.dialect import Dialect
from ..codegen.names import Names, identifier
from ..codegen.quirks.counter_overflow import LEAST, MAX_EXTENT, MOST
from ..codegen.source import BodyText, preamble
from ..codegen.text_layout import INDENT, comment_line, wrap_line
from .block_memory import layout_shared
from .dialect import CUDA, SPECIFIC
from .last_block_counters import COUNTERS_NAME, BlockCounters, find_block_counters
from .occupancy import launch_bounds

MAX_POSITION_LENGTH = 8
"""The length of the prefix of a fault's program position that is compared."""
FAULT_RECORD_SIZE = 2 + MAX_POSITION_LENGTH + 2 * records.SLOTS
"""The size of the fault record in 64-bit words; see `faults.h`."""
LOG_LINE_SLOTS = 16
"""The slots of a record that a device prints in one line; see `logs.h`."""
WARP = 32
"""The threads of a warp."""
THREAD_AXES: Mapping[Space | None, int] = {"rows": 2, "registers": 1}
"""The number of leading axes, of nodes with a row per thread, that are thread indices."""
WIDE_SUFFIX = "_wide"
"""The suffix of a 64-bit parameter whose value is narrowed to 32 bits."""
_RESERVED = frozenset(
    f"{COUNTERS_NAME} faults launch place turn failed met printed run"
    " blockIdx threadIdx blockDim gridDim".split()
)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """The launch shape of a kernel: blocks and threads along each axis, x first."""

    blocks: tuple[int, int, int]
    """0 where dynamic."""
    threads: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel function, and the arguments of its launch in this order."""

    name: str
    nodes: tuple[Node, ...]
    symbols: tuple[Symbol, ...]
    checks: bool
    """Whether the fault record is an argument."""
    prints: int
    """The slots of the print record argument; 0 for none."""
    logs: bool
    """Whether the device prints that record, and the number of the run is the argument instead."""
    loop: For
    shared: int
    """Bytes of shared memory of a block."""
    keeps: bool
    """Whether its threads keep rows across loops, which makes the number of threads of its shape
    mandatory."""
    shape: LaunchShape
    aligned: Mapping[int, bool] = field(default_factory=dict)
    """The arrays, by node id, that have to be aligned to 16 bytes, and whether each is written."""
    dynamic: int = 0
    """Bytes of dynamic shared memory; 0 where its shared memory is static."""
    arrivals: BlockCounters | None = None
    """The counters of last-block detection, if it uses that."""

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return prod(self.shape.threads)

    @property
    def span(self) -> Span:
        """The location of its first statement; barriers and comments have none."""
        spans = (getattr(stmt, "span", NOWHERE) for stmt in statements((self.loop,)))
        return next((span for span in spans if span is not NOWHERE), NOWHERE)

    @property
    def arguments(self) -> int:
        """The number of arguments of a launch."""
        more = (self.arrivals is not None) + 2 * self.checks + (self.prints > 0)
        return len(self.nodes) + len(self.symbols) + more


@dataclass(frozen=True, slots=True)
class KernelText:
    """The text of all kernels, with its tables of lines, faults and prints."""

    text: str
    kernels: tuple[Kernel, ...]
    line_map: Mapping[int, Span]
    faults: tuple[tuple[Fault, Span], ...]
    prints: tuple[Print, ...]
    above: int
    """The number of lines before the kernels: the header and the prelude."""
    specific: bool = False
    """Whether it uses architecture-specific features: it is compiled for `sm_90a`."""


@dataclass(frozen=True, slots=True)
class KernelFrame:
    """The names of one kernel, and how its threads report faults, print and synchronize."""

    scope: Scope
    names: Names
    meets: bool
    """Whether threads that fail have to notify those at barriers."""
    copies: bool
    """Whether a barrier has to wait for asynchronous copies."""
    logs: bool
    """Whether the device prints."""
    sizes: frozenset[Symbol] = frozenset()
    dialect: Dialect = CUDA
    arrivals: BlockCounters | None = None
    addresses: Mapping[int, str] = field(default_factory=dict)
    """The names of the parameters of scalars that are loaded in the prologue, by node id."""

    def failing(self, number: int, path: Sequence[str]) -> Iterator[str]:
        """Yield the lines before the values of a fault: the first in program order is recorded."""
        position = ", ".join(path[:MAX_POSITION_LENGTH])
        yield f"const int64_t place[] = {{{position}}};"
        yield f"for (int turn = 0; turn < {WARP}; turn++) {{"
        yield "if (turn != lane_of()) continue;"
        length = min(len(path), MAX_POSITION_LENGTH)
        yield f"int64_t *const fault = claimed(faults, launch, place, {length});"
        yield f"fault[0] = {number};"

    def leaving(self, status: int | str) -> Iterator[str]:
        """Yield the exit of a thread that failed; `released` has a fence after the record."""
        if self.meets:
            yield "failed = met + 1;"
        yield "released(faults);"
        yield "}"
        yield "return;"

    def printing(self, number: int, slots: int) -> Iterator[str]:
        """Yield the declaration of the record of a log line; other records are the host's."""
        if self.logs:
            assert slots <= LOG_LINE_SLOTS, "a line of a log has few values"
            yield f"int64_t printed[{LOG_LINE_SLOTS}] = {{{number}}};"

    def printed(self, number: int) -> Iterator[str]:
        """Yield the call that prints a log line; other prints are shown by the host."""
        if self.logs:
            yield "logged(run, printed);"

    def meeting(self, later: int) -> Iterator[str]:
        """Yield the barrier of a block, after which all threads return where one failed.

        All return at the same barrier: a late thread does not see failures after that barrier.
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
        """Return the test whether a block is the last to arrive."""
        return "" if self.arrivals is None else self.arrivals.test(self.scope)


def emit_kernels(
    name: str,
    loops: Sequence[For],
    spaces: Mapping[int, Space],
    checks: bool,
    shapes: Sequence[LaunchShape],
    bounds: Sequence[Bounds] = (),
    comments: Sequence[Sequence[Comment]] = (),
) -> KernelText:
    """Return the text of kernels: loops of kind `block`, in the order of their numbers.

    `checks` says whether the program has checks, `shapes` are the launch shapes of the kernels,
    `bounds` the facts about the host's integers there, `comments` the comments above each.
    """
    lines: list[str] = []
    spans: dict[int, Span] = {}
    kernels: list[Kernel] = []
    bodies: list[BodyText] = []
    for number, loop in enumerate(loops):
        kernel_name = f"pe_{identifier(name)}_{number}"
        kernel = _build_kernel(kernel_name, loop, spaces, checks, shapes[number])
        frame = _build_frame(kernel, spaces, bounds[number] if bounds else Bounds())
        node_spaces = {node: spaces.get(node.id) for node in _used_nodes(kernel.loop)}
        fills_multiprocessor = kernel.arrivals is not None and kernel.arrivals.is_light
        limits = launch_bounds(node_spaces, kernel.threads, kernel.dynamic, fills_multiprocessor)
        head = _signature(kernel, frame, limits)
        comment_lines = (
            [comment_line(remark.text, 0) for remark in comments[number]] if comments else []
        )
        prologue = [*comment_lines, *wrap_line(head, 0), "{", *_prologue(kernel, frame, spaces)]
        body = print_body(frame, (kernel.loop,), bodies)
        first_line = len(lines) + len(prologue)
        spans |= {first_line + line: span for line, span in body.spans.items()}
        lines += [*prologue, *body.lines, "}", ""]
        kernels.append(kernel)
        bodies.append(body)
    code = "\n".join(lines)
    head = preamble(code, CUDA)
    preamble_lines = head.count("\n")
    return KernelText(
        head + code,
        tuple(kernels),
        {preamble_lines + line: span for line, span in spans.items()},
        tuple(fault for body in bodies for fault in body.faults),
        tuple(print_ for body in bodies for print_ in body.prints),
        preamble_lines,
        any(re.search(rf"\b{name}\(", head) for name in SPECIFIC),
    )


def _build_kernel(
    name: str, loop: For, spaces: Mapping[int, Space], checks: bool, shape: LaunchShape
) -> Kernel:
    loop = _privatize_thread_rows(loop, spaces)
    stmts = statements(_as_body(loop))
    nodes_used = _used_nodes(loop)
    keeps = any(spaces.get(node.id) in THREAD_AXES for node in nodes_used)
    nodes = tuple(node for node in nodes_used if spaces.get(node.id, "device") == "device")
    bound = {symbol for stmt in stmts for symbol in binds(stmt)}
    used_symbols = {symbol for stmt in stmts for symbol in uses(stmt)}
    used_symbols |= {s for node in nodes_used for n in node.element_strides for s in n.symbols()}
    symbols = tuple(sorted(used_symbols - bound, key=lambda symbol: symbol.serial))
    slots = [_record_slots(stmt) for stmt in stmts if isinstance(stmt, Print)]
    shared_nodes = _shared_nodes(nodes_used, spaces)
    prints = max(slots, default=0)
    logs = any(isinstance(stmt, Print) and stmt.logs for stmt in stmts)
    shared, (_, dynamic) = sum(node.bytes for node in shared_nodes), layout_shared(shared_nodes)
    aligned_nodes = map(intrinsic_loops.aligned_array, stmts)
    written = {node.id for node in writes(_as_body(loop))}
    aligned = {node.id: node.id in written for node in aligned_nodes if node is not None}
    facts = shared, keeps, shape, aligned, dynamic, find_block_counters(loop)
    return Kernel(name, nodes, symbols, checks, prints, logs, loop, *facts)


def _shared_nodes(used: Iterable[Node], spaces: Mapping[int, Space]) -> tuple[Node, ...]:
    return tuple(node for node in used if spaces.get(node.id) == "shared")


def _record_slots(stmt: Print) -> int:
    values = (part for part in stmt.fragments if not isinstance(part, str))
    return 2 + sum(records.slot_count(value.dtype) for value in values)


def _build_frame(kernel: Kernel, spaces: Mapping[int, Space], bounds: Bounds) -> KernelFrame:
    """Return the frame of a kernel, with its names chosen."""
    loop = kernel.loop
    names = Names(
        lambda name: name in _RESERVED or name in prelude.prelude_definitions(CUDA.library)
    )
    nodes = _used_nodes(loop)
    by_id = {node.id: names.fresh(node.label) for node in nodes}
    scope = Scope(CUDA, by_id, frozenset(n.id for n in nodes if _is_value(n, kernel, spaces)))
    extents = (extent.symbol for node in nodes for extent in node.shape)
    sizes = frozenset(size for size in extents if size is not None)
    scope.bounds = _argument_ranges(kernel.symbols, sizes, bounds)
    for symbol in kernel.symbols:
        scope.symbols[symbol] = names.fresh(symbol.name)
        magnitude = index_width.symbol_magnitude(symbol, bounds)
        if magnitude is not None:
            scope.narrow[symbol] = magnitude
    stmts = statements(_as_body(loop))
    meets = any(isinstance(stmt, Barrier) for stmt in stmts) and _has_check(stmts)
    copies = any(isinstance(stmt, CopyVector) for stmt in stmts)
    products = [s for s in stmts if isinstance(s, MatMul) and s.unit == "warpgroup"]
    scope.swizzled = frozenset(n.id for n in reads(products) if spaces.get(n.id) == "shared")
    at = {n.id: names.fresh(f"{by_id[n.id]}_at") for n in nodes if n.id in scope.by_value}
    return KernelFrame(scope, names, meets, copies, kernel.logs, sizes, CUDA, kernel.arrivals, at)


def _argument_ranges(symbols: Iterable[Symbol], sizes: Set[Symbol], bounds: Bounds) -> Bounds:
    """Return the ranges of the integer arguments of a launch, at most those of 64 bits."""
    ranges = {}
    for symbol in symbols:
        low, high = (0, MAX_EXTENT) if symbol in sizes else (LEAST, MOST)
        bound_low, bound_high = bounds.intervals.get(symbol, UNKNOWN)
        ranges[symbol] = tighter_lower(low, bound_low), tighter_upper(high, bound_high)
    return Bounds({**bounds.intervals, **ranges}, bounds.ranges)


def _privatize_thread_rows(loop: For, spaces: Mapping[int, Space]) -> For:
    """Return a kernel in which nodes with a row per thread are reduced to the thread's row.

    The leading axes of such a node are thread indices; its block is as large as these.
    """
    axes = {
        n.id: THREAD_AXES[s] for n in _used_nodes(loop) if (s := spaces.get(n.id)) in THREAD_AXES
    }
    if not axes:
        return loop

    def drop_thread_axes(node: Node, index: tuple[Index, ...]) -> Element:
        count = axes.get(node.id, 0)
        return (replace(node, shape=node.shape[count:]), index[count:]) if count else (node, index)

    (kernel,) = remap_accesses(_as_body(loop), drop_thread_axes)
    assert isinstance(kernel, For)
    return kernel


def _as_body(loop: For) -> tuple[Stmt, ...]:
    return (loop,)


def _used_nodes(loop: For) -> tuple[Node, ...]:
    """Return the nodes that a kernel uses, in order of first use."""
    return tuple(dict.fromkeys((*reads((loop,)), *writes((loop,)))))


def _has_check(inside: Iterable[Stmt]) -> bool:
    return any(isinstance(stmt, Check) for stmt in inside)


def _is_value(node: Node, kernel: Kernel, spaces: Mapping[int, Space]) -> bool:
    """Whether a node is a scalar variable of a kernel: a register, or loaded in the prologue."""
    if node.rank:
        return False
    space = spaces.get(node.id, "device")
    return space == "private" or (space == "device" and node not in writes((kernel.loop,)))


def _signature(kernel: Kernel, frame: KernelFrame, limits: str) -> str:
    parameters = []
    written = {node.id for node in writes((kernel.loop,))}
    stmts = statements(_as_body(kernel.loop))
    synchronizes = kernel.arrivals is not None or any(isinstance(stmt, Barrier) for stmt in stmts)
    for node in kernel.nodes:
        const = "" if node.id in written else "const "
        # A thread may read after a barrier what another one writes before it: with `restrict` a
        # compiler would reuse the value loaded earlier.
        restrict = "" if node.id in written and synchronizes else CUDA.restrict
        name = frame.addresses.get(node.id, frame.scope.nodes[node.id])
        parameters.append(
            f"{const}{CUDA.types[node.dtype]} *{restrict}{' ' * bool(restrict)}{name}"
        )
    for symbol in kernel.symbols:
        suffix = WIDE_SUFFIX * (symbol in frame.scope.narrow)
        parameters.append(f"int64_t {frame.scope.symbols[symbol]}{suffix}")
    parameters += [f"uint32_t *{COUNTERS_NAME}"] * (kernel.arrivals is not None)
    parameters += ["int64_t *faults", "int64_t launch"] * kernel.checks
    if kernel.prints:
        parameters.append("int64_t run" if kernel.logs else "int64_t *printed")
    head = CUDA.entry.format(f"__launch_bounds__({limits}) {kernel.name}")
    return f"{head}({', '.join(parameters)})"


def _prologue(kernel: Kernel, frame: KernelFrame, spaces: Mapping[int, Space]) -> Iterator[str]:
    """Yield the prologue of a kernel: declarations, and its exit where an earlier one failed."""
    sizes = ", ".join(map(str, (*kernel.shape.blocks, *kernel.shape.threads)))
    yield f"{INDENT}launched<{sizes}>();"
    if kernel.checks:
        yield f"{INDENT}if (faults[0] && faults[0] != launch) return;"
    if frame.meets:
        yield f"{INDENT}int met = 0;"
        yield f"{INDENT}__shared__ int failed;"
        yield f"{INDENT}if (threadIdx.x == 0) failed = 0;"
        yield f"{INDENT}__syncthreads();"
    for symbol in kernel.symbols:
        if symbol in frame.scope.narrow:
            name = frame.scope.symbols[symbol]
            yield f"{INDENT}const int32_t {name} = (int32_t){name}{WIDE_SUFFIX};"
    offsets, _ = layout_shared(_shared_nodes(_used_nodes(kernel.loop), spaces))
    for node in _used_nodes(kernel.loop):
        name, ctype = frame.scope.nodes[node.id], CUDA.types[node.dtype]
        space = spaces.get(node.id, "device")
        if space == "device":
            if node.id in frame.scope.by_value:
                yield f"{INDENT}const {ctype} {name} = {frame.addresses[node.id]}[0];"
            continue
        count = max(1, node.bytes // node.dtype.itemsize)
        if node.id in offsets:
            start = f"block_bytes() + {offsets[node.id]}"
            yield f"{INDENT}{ctype} *const {name} = ({ctype} *)({start});"
        elif space == "shared":
            yield f"{INDENT}__shared__ __align__(16) {ctype} {name}[{count}];"
        elif node.rank:
            yield f"{INDENT}{ctype} {name}[{count}] = {{0}};"
        else:
            zero = "{0}" if node.dtype.kind == "c" else CUDA.literal(0, node.dtype)
            yield f"{INDENT}{ctype} {name} = {zero};"
