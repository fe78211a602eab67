"""The parts of an explanation as data, and their table rows for the text and HTML renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...backends.interface import KernelRow
from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.printer import Line
from ...lowering.operation_counts import OperationCounts


class ArrayRow(NamedTuple):
    """One array of the function: its name and type, its memory mode, and the reason."""

    name: str
    type: str
    mode: str
    why: str
    span: Span


class Remark(NamedTuple):
    """A remark on a statement: a decision or an assumption, as a sentence."""

    sentence: str
    span: Span


@dataclass(frozen=True, slots=True)
class ExplanationParts:
    """Every decision about one specialization of a function."""

    name: str
    called: str
    """A line for each argument and each captured value of the call."""
    why: str
    """The reason for the compilation: why no earlier code served such a call."""
    origin: str
    """The origin of the code (compiled, disk or memory cache) and the time that it took."""
    arrays: tuple[ArrayRow, ...]
    """Each array of the function, its memory mode and the reason; empty if nothing was lowered."""
    decisions: tuple[Remark, ...]
    """The decisions about loops and values, in source order."""
    counts: OperationCounts | None
    """The operations and traffic of a call; None where nothing was lowered."""
    names: Mapping[int, str]
    """The name of each node in all parts, by node id."""
    written: tuple[Line, ...]
    """The source lines of the function, with their spans."""
    meaning: tuple[Line, ...]
    """Its semantics: accumulating assignments over index domains."""
    lowered: tuple[Line, ...]
    """The loops after all passes; empty where the backend runs the assignments."""
    generated: tuple[Line, ...]
    """The functions of the generated code."""
    prelude: tuple[Line, ...] = ()
    """What stands above them in the generated code: the header, and library functions they use."""
    kernels: tuple[KernelRow, ...] = ()
    """The device resources of each kernel; empty where there are none."""

    @property
    def home(self) -> Span:
        """The span of the function: lines of its source are shown without a file name."""
        return self.written[0].span if self.written else NOWHERE


def join_lines(lines: tuple[Line, ...]) -> str:
    """Return lines as text, each terminated by a newline."""
    return "".join(f"{line.text}\n" for line in lines)


ITERATIONS_NOTE = (
    "with one iteration of each loop whose length is known only at run time: it may be many more"
)


def count_rows(counts: OperationCounts) -> list[tuple[str, str, str]]:
    """Return the totals as rows: quantity, amount, and a note."""
    about = "about " if counts.is_sampled else ""
    has_static_counts = not any(
        "one iteration is counted" in assumption.text for assumption in counts.assumed
    )

    def intensity(number: int) -> str:
        text = f"{counts.total / number:.3g} operations per byte" if number else ""
        return f"arithmetic intensity {text}" if text else ""

    note = f"{counts.allocated:,} bytes allocated, {counts.stack:,} bytes on the stack"
    return [
        ("operations", f"{about}{counts.total:,}", "" if has_static_counts else ITERATIONS_NOTE),
        ("bytes moved, at least", f"{about}{counts.least:,}", intensity(counts.least)),
        ("bytes moved by the loops", f"{about}{counts.moved:,}", intensity(counts.moved)),
        ("peak temporary memory", f"{counts.temporary:,}", note if counts.temporary else "bytes"),
    ]


OPERATION_NAMES = {
    "add": "addition", "sub": "subtraction", "mul": "multiplication",
    "product": "multiplication of terms", "div": "division",
    "cast": "conversion", "max": "maximum", "min": "minimum", "neg": "negation",
    "floordiv": "floor division", "mod": "remainder", "pow": "power",
    "whole_pow": "power of a whole exponent", "half_pow": "power of half an odd exponent",
    "lt": "comparison <", "le": "comparison <=", "gt": "comparison >", "ge": "comparison >=",
    "eq": "comparison ==", "ne": "comparison !=",
}  # fmt: skip
"""Full names of operations whose names in the table are abbreviations."""


def operation_rows(counts: OperationCounts) -> list[tuple[str, str]]:
    """Return the number of executions of each operation, most frequent first."""
    return [(OPERATION_NAMES.get(name, name), f"{n:,}") for name, n in counts.operations.items()]


KERNEL_TITLES = (
    "kernel", "line", "threads", "registers", "spilled", "shared", "stack",
)  # fmt: skip
"""Registers per thread; spilled, shared memory and stack in bytes."""


def kernel_rows(
    parts: ExplanationParts, format_line: Callable[[Span, Span], str]
) -> list[tuple[str, ...]]:
    """Return the resources of each kernel; `format_line` gives the line of its first statement."""
    return [
        (kernel.name, format_line(kernel.span, parts.home), *(f"{n:,}" for n in kernel[2:]))
        for kernel in parts.kernels
    ]


TRAFFIC_TITLES = ("bytes of", "read once", "written once", "loaded", "stored")
"""`once` counts each element once; `loaded` and `stored` count each access of the loops."""


def traffic_rows(parts: ExplanationParts, counts: OperationCounts) -> list[tuple[str, ...]]:
    """Return the traffic of each array in bytes: each element once, and each access."""
    return [
        (parts.names[array.node.id],)
        + tuple(f"{n:,}" for n in (array.reads, array.writes, array.loads, array.stores))
        for array in counts.arrays
    ]


def assumptions(counts: OperationCounts, home: Span) -> list[Remark]:
    """Return the assumptions of the counts, in source order."""
    return sort_remarks(
        (Remark(assumption.text, assumption.span) for assumption in counts.assumed), home
    )


def sort_remarks(remarks: Iterable[Remark], home: Span) -> list[Remark]:
    """Return remarks in source order, without duplicates."""
    unique: dict[tuple[str, str, int], Remark] = {}
    for remark in remarks:
        unique.setdefault((remark.sentence, remark.span.source.name, remark.span.line), remark)
    return sorted(unique.values(), key=lambda remark: source_order(remark.span, home))


def source_order(span: Span, home: Span) -> tuple[bool, str, int, int]:
    """Return the position of a statement among those of all sources, the home source first."""
    return span.source != home.source, span.source.name, span.line, span.column
