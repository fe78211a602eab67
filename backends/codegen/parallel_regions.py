"""Parallel loops as functions of their own, which the run-time library calls on some rounds.

    struct f_part { float *y; const float *x; };                what the rounds use
    static int f_part(float *restrict y, const float *restrict x, int64_t first, int64_t last)
    {
        float m = 0.0f;                                         temporaries of this thread
        for (int64_t i = first; i < last; i++) { ... }
        return 0;
    }
    static int f_part_call(const void *with, int64_t first, int64_t last, int64_t *fault)
    {
        const struct f_part *const given = with;
        return f_part(given->y, given->x, first, last);
    }

and where the loop stood, `pe_lib->parallel(pe_lib, f_part_call, &given, rounds, work, fault)`.
What a loop uses comes as parameters, since compilers believe only these that they are apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.loops import For
from ...lowering.ir.node import Node
from ...lowering.ir.walk import own_reads, own_writes, statements
from .frame import WORK, Frame, Held, way_out
from .source import Apart
from .text_layout import STEP, broken, laid_out, words

ROOM = 32 * 1024
"""How many bytes of temporaries a thread keeps on its stack."""


@dataclass(frozen=True, slots=True)
class Part:
    """The names that a parallel loop's function has for itself, and its temporaries."""

    frame: Frame
    name: str
    caller: str
    """The name of the function that the library calls."""
    first: str
    last: str
    given: str
    room: str
    scalars: tuple[Node, ...]
    arrays: tuple[Node, ...]

    @property
    def bytes(self) -> int:
        """How much memory the temporaries take."""
        return sum(map(_rounded, self.arrays))

    @property
    def frees(self) -> bool:
        """Whether there is something to free on the way out."""
        return self.bytes > ROOM

    def opening(self) -> Iterator[str]:
        """Yield the declarations of the temporaries."""
        frame = self.frame
        for node in self.scalars:
            yield frame.register(node)
        if not self.frees:
            for node in self.arrays:
                yield f"{frame.dialect.array(node.dtype, frame.name(node), _count(node))};"
            return
        yield f"char *const {self.room} = aligned({self.bytes});"
        yield f"if (!{self.room}) {{"
        yield f"    fault[0] = {self.bytes};"
        yield "    return 2;"
        yield "}"
        place = 0
        for node in self.arrays:
            ctype = frame.ctype(node)
            declared = f"{ctype} *{frame.dialect.restrict} {frame.name(node)}"
            yield f"{declared} = ({ctype} *)({self.room} + {place});"
            place += _rounded(node)

    def leaving(self, status: int | str) -> Iterator[str]:
        """Yield the way out of the function, through the label if there is something to free."""
        yield from way_out(status, self.frees)

    def closing(self, leaves: bool) -> Iterator[str]:
        """Yield what comes after the loop, which may leave for what has to be freed."""
        if leaves:
            yield "done:"
        if self.frees:
            yield f"free({self.room});"
        yield "return status;" if leaves else "return 0;"

    @property
    def names(self) -> tuple[str, ...]:
        """What nobody else may be called while the loop is written."""
        return self.first, self.last, self.given, self.room

    def written(self, loop: Sequence[str]) -> Written:
        """Return the function, given the lines of its loop."""
        leaves = any(line.lstrip() == "goto done;" for line in loop)
        opening, closing = laid_out(self.opening()), laid_out(self.closing(leaves))
        used = words([*opening, *loop, *closing])
        held = [one for one in self.frame.within() if one.name in used]
        reports = "fault" in used
        numbers = [f"int64_t {self.first}", f"int64_t {self.last}", *["int64_t *fault"] * reports]
        top = [f"int64_t {WORK} = 0;"] * (WORK in used) + ["int status = 0;"] * leaves
        struct = [f"struct {self.name} {{", *(f"{STEP}{one.field};" for one in held), "};", ""]
        before = [
            *(struct if held else ()),
            *self.head(self.name, [*(one.local for one in held), *numbers]),
            *laid_out(top),
            *opening,
        ]
        after = [*closing, "}", "", *self.calling([one.name for one in held], reports), "}", ""]
        lines = [*before, *loop, *after]
        apart = Apart(1, 1 + len(struct) * bool(held), len(lines), self.caller)
        return Written(lines, len(before), held, reports, apart)

    def head(self, name: str, parameters: Sequence[str]) -> list[str]:
        """Return the head of a function."""
        text = f"{self.frame.dialect.function} int {name}({', '.join(parameters)})"
        return [*broken(text, 0), "{"]

    def calling(self, names: Sequence[str], reports: bool) -> list[str]:
        """Return the function that the library calls, up to its last statement."""
        numbers = [f"int64_t {self.first}", f"int64_t {self.last}", "int64_t *fault"]
        given = [f"{self.given}->{name}" for name in names]
        values = ", ".join([*given, self.first, self.last, *["fault"] * reports])
        unused = f"const struct {self.name} *const {self.given} = with;" if names else "(void)with;"
        lines = [unused, *["(void)fault;"] * (not reports), f"return {self.name}({values});"]
        return [*self.head(self.caller, ["const void *with", *numbers]), *laid_out(lines)]


class Written(NamedTuple):
    """The function of a part as text."""

    lines: list[str]
    shift: int
    """How many lines come before those of the loop."""
    held: Sequence[Held]
    """What it is given."""
    reports: bool
    """Whether it may fail."""
    apart: Apart
    """Which of the lines are what."""


def stacked(
    every: Sequence[tuple[Written, Mapping[int, Span]]],
) -> tuple[list[str], dict[int, Span], list[Apart]]:
    """Return the lines of functions, the statements behind lines of their loops, counted from 0,
    as those that come with them are, and which lines are whose."""
    lines: list[str] = []
    spans: dict[int, Span] = {}
    places: list[Apart] = []
    for one, inside in every:
        spans |= {len(lines) + one.shift + at: span for at, span in inside.items()}
        places.append(one.apart.down(len(lines)))
        lines += one.lines
    return lines, spans, places


def part_of(loop: For, frame: Frame) -> Part:
    """Return the part that a parallel loop becomes, with names that nothing around it has."""
    inside = statements((loop,))
    used = {node.id for stmt in inside for node in (*own_reads(stmt), *own_writes(stmt))}
    own = [n for n in frame.privates if n.id in used and n.id not in frame.vectors.held]
    fresh = frame.names.fresh
    name = fresh(f"{frame.program.name}_part")
    return Part(
        frame, name, fresh(f"{name}_call"), fresh("first"), fresh("last"), fresh("given"),
        fresh("room"), tuple(node for node in own if not node.rank),
        tuple(node for node in own if node.rank),
    )  # fmt: skip


def _count(node: Node) -> int:
    return max(1, node.bytes // node.dtype.itemsize)


def _rounded(node: Node) -> int:
    return -(-max(1, node.bytes) // 64) * 64
