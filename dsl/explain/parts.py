"""What an explanation is made of, before it becomes text or a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...backends.interface import KernelRow
from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.printer import Line
from ...lowering.operation_counts import OperationCounts


class ArrayRow(NamedTuple):
    """One array of the function: what it was written as, its mode now, and why."""

    name: str
    type: str
    mode: str
    why: str
    span: Span


class Told(NamedTuple):
    """A decision about a statement, as a sentence."""

    sentence: str
    span: Span


@dataclass(frozen=True, slots=True)
class Parts:
    """Every decision about one form of a function."""

    name: str
    called: str
    """What it was called with: a line for each argument and each captured value."""
    why: str
    """Why there was no code for such a call before."""
    origin: str
    """Where the code came from, and what that cost."""
    arrays: tuple[ArrayRow, ...]
    """Each array of the function, its memory mode and why; empty where nothing was lowered."""
    decisions: tuple[Told, ...]
    """What was decided about loops and values, in the order of the source."""
    counts: OperationCounts | None
    """What a call does and moves; None where nothing was lowered."""
    names: Mapping[int, str]
    """What each node is called, in all of it, by node id."""
    written: tuple[Line, ...]
    """The function as the user wrote it, each line with its place."""
    meaning: tuple[Line, ...]
    """What it means: accumulating assignments over index domains."""
    lowered: tuple[Line, ...]
    """What it became, after every pass; empty where the backend runs the assignments."""
    generated: tuple[Line, ...]
    """The generated code."""
    kernels: tuple[KernelRow, ...] = ()
    """What each kernel takes of a device; empty where there are none."""

    @property
    def home(self) -> Span:
        """The place of the function: lines of its source need no file name."""
        return self.written[0].span if self.written else NOWHERE


def text_of_lines(lines: tuple[Line, ...]) -> str:
    """Return lines as text, with a line end after the last; empty for no lines."""
    return "".join(f"{line.text}\n" for line in lines)


ROUNDS = "with one round of each loop whose rounds only the run knows: it may be many more"


def count_rows(counts: OperationCounts) -> list[tuple[str, str, str]]:
    """Return the totals as rows: what is counted, how much, and what that means."""
    about = "about " if counts.is_sampled else ""
    is_known = not any("one round is counted" in one.text for one in counts.assumed)

    def intensity(number: int) -> str:
        each = f"{counts.total / number:.3g} operations per byte" if number else ""
        return f"arithmetic intensity {each}" if each else ""

    held = f"{counts.allocated:,} bytes allocated, {counts.stack:,} bytes on the stack"
    return [
        ("operations", f"{about}{counts.total:,}", "" if is_known else ROUNDS),
        ("bytes moved, at least", f"{about}{counts.least:,}", intensity(counts.least)),
        ("bytes moved by the loops", f"{about}{counts.moved:,}", intensity(counts.moved)),
        ("peak temporary memory", f"{counts.temporary:,}", held if counts.temporary else "bytes"),
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
"""How operations of the table are called where their names are short forms."""


def operation_rows(counts: OperationCounts) -> list[tuple[str, str]]:
    """Return how often each operation is done, most frequent first."""
    return [(OPERATION_NAMES.get(name, name), f"{n:,}") for name, n in counts.operations.items()]


KERNEL_TITLES = (
    "kernel", "line", "threads", "registers", "spilled", "shared", "stack",
)  # fmt: skip
"""Registers are those of each thread; spilled, shared memory and stack are counted in bytes."""


def kernel_rows(parts: Parts, place: Callable[[Span, Span], str]) -> list[tuple[str, ...]]:
    """Return what each kernel takes; `place` writes the line of its first statement."""
    return [
        (one.name, place(one.span, parts.home), *(f"{n:,}" for n in one[2:]))
        for one in parts.kernels
    ]


TRAFFIC_TITLES = ("bytes of", "read once", "written once", "loaded", "stored")
"""Once counts each element once, loaded and stored count as often as the loops do it."""


def traffic_rows(parts: Parts, counts: OperationCounts) -> list[tuple[str, ...]]:
    """Return the bytes of each array that move: each element once, and as the loops stand."""
    return [
        (parts.names[one.node.id],)
        + tuple(f"{n:,}" for n in (one.reads, one.writes, one.loads, one.stores))
        for one in counts.arrays
    ]


def assumptions(counts: OperationCounts, home: Span) -> list[Told]:
    """Return what was taken for granted in counting, in the order of the source."""
    return in_order((Told(one.text, one.span) for one in counts.assumed), home)


def in_order(told: Iterable[Told], home: Span) -> list[Told]:
    """Return sentences in the order of the source, the home's first, each once for its line."""

    def place(one: Told) -> tuple[bool, str, int]:
        source = one.span.source
        return source != home.source, source.name, one.span.line

    once: dict[tuple[str, str, int], Told] = {}
    for one in told:
        once.setdefault((one.sentence, one.span.source.name, one.span.line), one)
    return sorted(once.values(), key=place)
