"""Generated source text with its tables: line map, faults and prints; merging of sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.assignments import Fault, Print
from ...lowering.passes.buffer_sharing import MemoryPlan
from . import prelude
from .dialect import C, Dialect


class BodyText(NamedTuple):
    """The text of statements, with its tables of lines, faults and prints."""

    lines: list[str]
    spans: dict[int, Span]
    faults: list[tuple[Fault, Span]]
    prints: list[Print]


class RegionLines(NamedTuple):
    """The lines, counted from 1, of a parallel region's functions, for a separate file."""

    first: int
    """Where the struct of its captured values is declared."""
    functions: int
    """Where its functions begin."""
    last: int
    name: str
    """The function that the run-time library calls."""

    def down(self, lines: int) -> RegionLines:
        """Return the same lines below so many more."""
        first, functions, last, name = self
        return RegionLines(first + lines, functions + lines, last + lines, name)


@dataclass(frozen=True, slots=True)
class Source:
    """Generated text, with its tables of lines, faults and prints."""

    text: str
    entry: str
    """The name of the function to call."""
    line_map: Mapping[int, Span]
    """The source statement of each line of the text, by line number from 1."""
    faults: tuple[tuple[Fault, Span], ...]
    prints: tuple[Print, ...]
    memory: MemoryPlan
    """The run-time sizes that the caller passes, and the temporaries laid out by them."""
    above: int
    """The number of lines before the functions: the header and the prelude."""
    asks: bool = False
    """Whether it needs the run-time library."""
    whole: frozenset[int] = frozenset()
    """The indices of results that need no initial value: they are written completely."""
    allocated_results: frozenset[int] = frozenset()
    """The indices of results of run-time shape, which it allocates itself."""
    parts: tuple[RegionLines, ...] = ()
    """The parallel regions, which may be separate translation units, in the order of the text."""


def preamble(code: str, dialect: Dialect = C) -> str:
    """Return the preamble of functions: the header and the pieces of the prelude they name."""
    texts = prelude.required_definitions(code, dialect.library)
    for old, new in dialect.spellings:
        texts = tuple(text.replace(old, new) for text in texts)
    return "\n".join([dialect.header + "\n", *texts]) + "\n"


def merge_sources(sources: Sequence[Source], dialect: Dialect = C) -> tuple[Source, ...]:
    """Return sources merged into one text, each with its entry point.

    Precondition: their entry points have different names. The parts of each are those of all.
    """
    codes = [source.text.split("\n", source.above)[-1] for source in sources]
    shared_preamble = preamble("\n".join(codes), dialect)
    text, position, merged = shared_preamble + "\n".join(codes), shared_preamble.count("\n"), []
    parts: list[RegionLines] = []
    for source, code in zip(sources, codes, strict=True):
        shift = position - source.above
        spans = {line + shift: span for line, span in source.line_map.items()}
        merged.append(replace(source, text=text, line_map=spans, above=shared_preamble.count("\n")))
        parts += [part.down(shift) for part in source.parts]
        position += code.count("\n") + 1
    return tuple(replace(source, parts=tuple(parts)) for source in merged)
