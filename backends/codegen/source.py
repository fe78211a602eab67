"""Generated text with what its numbers mean, and several such texts as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.assignments import Fault, Print
from ...lowering.passes.buffer_sharing import Memory
from . import prelude
from .dialect import C, Dialect


class Body(NamedTuple):
    """The text of statements, and what its numbers mean."""

    lines: list[str]
    spans: dict[int, Span]
    faults: list[tuple[Fault, Span]]
    prints: list[Print]


class Apart(NamedTuple):
    """The lines of text, from 1, of a parallel loop's functions, which only its caller is told."""

    first: int
    """Where what it is given is declared."""
    functions: int
    """Where its functions begin."""
    last: int
    name: str
    """The function that the run-time library calls."""

    def down(self, lines: int) -> Apart:
        """Return the same with lines added above."""
        first, functions, last, name = self
        return Apart(first + lines, functions + lines, last + lines, name)


@dataclass(frozen=True, slots=True)
class Source:
    """Generated text, and what its numbers mean."""

    text: str
    entry: str
    """The name of the function to call."""
    line_map: Mapping[int, Span]
    """The user's statement behind a line of the text, by line number from 1."""
    faults: tuple[tuple[Fault, Span], ...]
    prints: tuple[Print, ...]
    memory: Memory
    """The run-time sizes that the caller passes, and the temporaries whose places follow them."""
    above: int
    """How many lines of the text come before the functions: the header and the prelude."""
    asks: bool = False
    """Whether it needs the run-time library."""
    whole: frozenset[int] = frozenset()
    """The numbers of the results that may be anything before: it writes all of them."""
    makes: frozenset[int] = frozenset()
    """The numbers of the results that it makes itself, whose shape only the run knows."""
    parts: tuple[Apart, ...] = ()
    """What may stand in a file of its own, in the order of the text."""


def above(code: str, dialect: Dialect = C) -> str:
    """Return what functions need above them: the header and the pieces of the prelude they name."""
    pieces = prelude.needed(code, dialect.library)
    for old, new in dialect.spellings:
        pieces = tuple(piece.replace(old, new) for piece in pieces)
    return "\n".join([dialect.header + "\n", *pieces]) + "\n"


def joined(sources: Sequence[Source], dialect: Dialect = C) -> tuple[Source, ...]:
    """Return sources that share one text, in which each has the functions that it had before.

    Their entries have different names; the parts of each are those of all.
    """
    codes = [source.text.split("\n", source.above)[-1] for source in sources]
    top = above("\n".join(codes), dialect)
    text, line, out = top + "\n".join(codes), top.count("\n"), []
    parts: list[Apart] = []
    for source, code in zip(sources, codes, strict=True):
        shift = line - source.above
        spans = {at + shift: span for at, span in source.line_map.items()}
        out.append(replace(source, text=text, line_map=spans, above=top.count("\n")))
        parts += [part.down(shift) for part in source.parts]
        line += code.count("\n") + 1
    return tuple(replace(source, parts=tuple(parts)) for source in out)
