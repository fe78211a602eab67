"""Outlining of parallel loops into functions that the run-time library calls on chunks.

    struct f_part { float *y; const float *x; };                the captured values
    static int f_part(float *restrict y, const float *restrict x, int64_t first, int64_t last)
    {
        float m = 0.0f;                                         private temporaries
        for (int64_t i = first; i < last; i++) { ... }
        return 0;
    }
    static int f_part_call(const void *with, int64_t first, int64_t last, int64_t *fault)
    {
        const struct f_part *const given = with;
        return f_part(given->y, given->x, first, last);
    }

and in place of the loop, `pe_lib->parallel(pe_lib, f_part_call, &given, iterations, work, fault)`.
Captured values are passed as parameters, since compilers honour `restrict` only on these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.analysis.cost import iteration_count
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.loops import For
from ...lowering.ir.node import Node
from ...lowering.ir.walk import direct_reads, direct_writes, statements
from .c_expression import Scope
from .frame import WORK, Frame, NamedValue, exit_lines
from .index_width import fits
from .quirks.counter_overflow import Binding, facts_in_scope
from .source import RegionLines
from .text_layout import INDENT, identifiers_in, indent_lines, wrap_line

MAX_STACK_BYTES = 32 * 1024
"""The bytes of private temporaries that a thread keeps on its stack, at most."""


@dataclass(frozen=True, slots=True)
class ParallelRegion:
    """A parallel region: the names of a parallel loop's function, and its private temporaries."""

    frame: Frame
    name: str
    caller: str
    """The name of the function that the library calls."""
    first: str
    last: str
    given: str
    buffer: str
    scalars: tuple[Node, ...]
    arrays: tuple[Node, ...]

    @property
    def bytes(self) -> int:
        """The size of the temporaries in bytes."""
        return sum(map(_padded_size, self.arrays))

    @property
    def frees(self) -> bool:
        """Whether the exit has to free memory."""
        return self.bytes > MAX_STACK_BYTES

    def opening(self) -> Iterator[str]:
        """Yield the declarations of the temporaries."""
        frame = self.frame
        for node in self.scalars:
            yield frame.register(node)
        if not self.frees:
            for node in self.arrays:
                yield f"{frame.dialect.array(node.dtype, frame.name(node), _element_count(node))};"
            return
        yield f"char *const {self.buffer} = aligned({self.bytes});"
        yield f"if (!{self.buffer}) {{"
        yield f"    fault[0] = {self.bytes};"
        yield "    return 2;"
        yield "}"
        offset = 0
        for node in self.arrays:
            ctype = frame.ctype(node)
            declared = f"{ctype} *{frame.dialect.restrict} {frame.name(node)}"
            yield f"{declared} = ({ctype} *)({self.buffer} + {offset});"
            offset += _padded_size(node)

    def leaving(self, status: int | str) -> Iterator[str]:
        """Yield the exit of the function, through the label if there is memory to free."""
        yield from exit_lines(status, self.frees)

    def closing(self, leaves: bool) -> Iterator[str]:
        """Yield the epilogue; `leaves` says whether the loop jumps to its label."""
        if leaves:
            yield "done:"
        if self.frees:
            yield f"free({self.buffer});"
        yield "return status;" if leaves else "return 0;"

    @property
    def names(self) -> tuple[str, ...]:
        """The identifiers that are reserved while the loop is printed."""
        return self.first, self.last, self.given, self.buffer

    def written(self, loop: Sequence[str]) -> RegionText:
        """Return the text of the function, given the lines of its loop."""
        leaves = any(line.lstrip() == "goto done;" for line in loop)
        opening, closing = indent_lines(self.opening()), indent_lines(self.closing(leaves))
        identifiers = identifiers_in([*opening, *loop, *closing])
        captured = [variable for variable in self.frame.within() if variable.name in identifiers]
        reports = "fault" in identifiers
        numbers = [f"int64_t {self.first}", f"int64_t {self.last}", *["int64_t *fault"] * reports]
        declarations = [f"int64_t {WORK} = 0;"] * (WORK in identifiers) + [
            "int status = 0;"
        ] * leaves
        struct = [
            f"struct {self.name} {{",
            *(f"{INDENT}{variable.field};" for variable in captured),
            "};",
            "",
        ]
        prologue = [
            *(struct if captured else ()),
            *self.head(self.name, [*(variable.local for variable in captured), *numbers]),
            *indent_lines(declarations),
            *opening,
        ]
        epilogue = [
            *closing,
            "}",
            "",
            *self.trampoline_lines([variable.name for variable in captured], reports),
            "}",
            "",
        ]
        lines = [*prologue, *loop, *epilogue]
        position = RegionLines(1, 1 + len(struct) * bool(captured), len(lines), self.caller)
        return RegionText(lines, len(prologue), captured, reports, position)

    def head(self, name: str, parameters: Sequence[str]) -> list[str]:
        """Return the head of a function."""
        text = f"{self.frame.dialect.function} int {name}({', '.join(parameters)})"
        return [*wrap_line(text, 0), "{"]

    def trampoline_lines(self, names: Sequence[str], reports: bool) -> list[str]:
        """Return the trampoline that the library calls, without its closing brace."""
        numbers = [f"int64_t {self.first}", f"int64_t {self.last}", "int64_t *fault"]
        captured = [f"{self.given}->{name}" for name in names]
        values = ", ".join([*captured, self.first, self.last, *["fault"] * reports])
        unused = f"const struct {self.name} *const {self.given} = with;" if names else "(void)with;"
        lines = [unused, *["(void)fault;"] * (not reports), f"return {self.name}({values});"]
        return [*self.head(self.caller, ["const void *with", *numbers]), *indent_lines(lines)]


class RegionText(NamedTuple):
    """The function of a parallel region as text."""

    lines: list[str]
    shift: int
    """The number of lines before those of the loop."""
    held: Sequence[NamedValue]
    """The values that it captures."""
    reports: bool
    """Whether it may report a fault."""
    positions: RegionLines
    """The positions of its lines."""


def concatenate(
    every: Sequence[tuple[RegionText, Mapping[int, Span]]],
) -> tuple[list[str], dict[int, Span], list[RegionLines]]:
    """Return the concatenated lines of functions, the source statements of lines of their loops,
    counted from 0 as in `every`, and the positions of each function."""
    lines: list[str] = []
    spans: dict[int, Span] = {}
    positions: list[RegionLines] = []
    for text, loop_spans in every:
        spans |= {len(lines) + text.shift + at: span for at, span in loop_spans.items()}
        positions.append(text.positions.down(len(lines)))
        lines += text.lines
    return lines, spans, positions


def outline_loop(loop: For, frame: Frame) -> ParallelRegion:
    """Return the region of a parallel loop, with fresh names."""
    stmts = statements((loop,))
    used_ids = {node.id for stmt in stmts for node in (*direct_reads(stmt), *direct_writes(stmt))}
    private = [n for n in frame.privates if n.id in used_ids and n.id not in frame.vectors.held]
    fresh = frame.names.fresh
    name = fresh(f"{frame.program.name}_part")
    return ParallelRegion(
        frame, name, fresh(f"{name}_call"), fresh("first"), fresh("last"), fresh("given"),
        fresh("room"), tuple(node for node in private if not node.rank),
        tuple(node for node in private if node.rank),
    )  # fmt: skip


def iterations_text(
    loop: For, scope: Scope, bound: Mapping[Symbol, Binding], sizes: Set[Symbol]
) -> str:  # fmt: skip
    """Return the text of the number of iterations of a loop: zero or less where it has none, even
    if the difference of its ends overflows; `bound` and `sizes` are those of `may_overflow`."""
    count = iteration_count(loop)
    if fits(count, facts_in_scope(bound, scope.bounds, sizes)):
        return scope.affine(count).text
    low, high = (loop.lo, loop.hi) if loop.step > 0 else (loop.hi, loop.lo)
    ends = scope.number(low).text, scope.number(high).text
    return f"trip_count({', '.join(ends)}, {abs(loop.step)})"


def _element_count(node: Node) -> int:
    return max(1, node.bytes // node.dtype.itemsize)


def _padded_size(node: Node) -> int:
    return -(-max(1, node.bytes) // 64) * 64
