"""What is recorded of a function: sites, and how the numbers of a record lie in memory.

    Layout := sites, names, width, ...     width: numbers in a row of the table
    Site   := number, statement, path, symbols, reduction, ranges, columns
    Row    := [site, first float, first int, symbols...]      one for each time a site is reached
    Column := kind, expr, dtype, place, guard                  one number of each point of a row

The points of a row lie one after another in the order of its ranges, each with `floats` numbers in
one buffer and `ints` in another: floats are kept as float64, everything else as int64, which loses
nothing. Where not all points of the ranges are recorded, an int says which are.
"""

from __future__ import annotations

import re
from typing import Literal

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Access, Assign, Block, Branch, For, Names, Permute, While
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Domain, Expr, Read, Reduce
from ...lowering.ir.indexing import Affine, Symbol
from ...lowering.ir.node import Node

What = Literal["before", "after", "operand", "contribution", "subscript"]

HEADS = "for ", "while ", "if "
"""How the texts of loops and branches begin."""
FIRST = 3
"""Where the values of symbols begin in a row: after the site and the two places."""
ROWS, FLOATS, INTS, POINTS, DROPPED, LIMIT, STOPPED, RANK = range(8)
"""Places in the counters: what is used of each buffer, points recorded and left out; the host says
how many points may be recorded. `STOPPED` is not zero when the first NaN was found; `RANK` counts
within one row."""
COUNTERS = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a point."""

    what: What
    expr: Expr | None
    """What it is the value of; None for what a reduction adds to the target."""
    dtype: DType
    place: int
    """Its place among the floats or the ints of a point; a complex number takes two."""
    guard: int | None = None
    """The place of the int that says whether it was evaluated, None where it always is."""

    @property
    def is_float(self) -> bool:
        """Whether it is kept among the floats."""
        return self.dtype.kind in "fc"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a branch, as a level of the tree."""

    branch: Branch
    holds: bool


Level = Block | For | While | Side
"""What a statement stands in, as a level of the tree."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of points of a row, as wide as it ever gets: symbol, first value, number."""

    symbol: Symbol
    first: Affine
    extent: Affine


@dataclass(frozen=True, slots=True)
class Site:
    """A statement that is recorded."""

    number: int
    statement: Assign | Permute
    path: tuple[Level, ...]
    """What it stands in, outermost first."""
    symbols: tuple[Symbol, ...]
    """The loop variables and numbers of a row, in order."""
    reduce: Reduce | None = None
    """The reduction in the statement whose terms are recorded, None for the assignment itself."""
    axes: tuple[Axis, ...] = ()
    columns: tuple[Column, ...] = ()
    floats: int = 0
    ints: int = 0
    masked: bool = False
    """Whether the first int says which points are recorded."""
    own: frozenset[Symbol] = frozenset()
    """The indices and loop variables that the source names."""
    hidden: frozenset[Symbol] = frozenset()
    """Those that no name stands for: it would be that of something else in the source."""
    reads: tuple[tuple[Domain, Read], ...] | None = None
    """All that a function of the library reads, where it is a call of one that is recorded."""
    is_part: bool = False
    """Whether such a call may leave elements as they are: these are no records."""
    spare: tuple[int, int] = (0, 0)
    """How many floats and ints of a point have a second place behind the row while it runs."""

    @property
    def is_assignment(self) -> bool:
        """Whether its points are records: assignments to elements."""
        return isinstance(self.statement, Assign) and self.reduce is None

    @property
    def is_handed_on(self) -> bool:
        """Whether it only gives a name that a loop changes, or a branch sets, its value there."""
        match self.statement:
            case Assign(Access(node), None, _, Read(other), span=span) if self.reduce is None:
                is_inner = span.text.startswith(HEADS) or not node.rank  # `r = r` is nobody's
                return node.label == other.label and is_inner
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Layout:
    """The sites of a function, by number."""

    sites: tuple[Site, ...]
    names: Names = ()
    """What arrays are called at the end of the function."""
    arrays: frozenset[str] = frozenset()
    """What the arrays are called that statements assign, also those that are not recorded."""
    indices: frozenset[str] = frozenset()
    """The names of their indices and of loop variables."""
    statements: frozenset[int | str] = frozenset()
    """Which of the statements that were asked for there are."""

    @property
    def width(self) -> int:
        """Numbers in a row of the table."""
        return FIRST + max((len(site.symbols) for site in self.sites), default=0)


Counting = Literal["no", "much", "often"]
"""When a run counts NaNs in place of recording what makes the first."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a trace asks for: everything unless something is named."""

    arrays: frozenset[str] = frozenset()
    """Names of arrays that are written."""
    statements: tuple[int | str, ...] = ()
    """Line numbers, or parts of the text of statements."""
    where: str = ""
    """A test of loop variables and indices by name."""
    first_nan: bool = False
    """Only what first makes a NaN."""
    sample: int = 1
    """Every n-th point of each statement."""
    limited: bool = False
    """Whether there is a limit that a single statement may pass."""
    terms: bool = False
    """Whether each term of a reduction is recorded."""
    printed: bool = False
    """Whether each row is printed when it is complete; then the next one takes its place."""
    scarce: bool = False
    """Whether there may be too little room, so that a row ends where the room does."""
    counts: Counting = "no"
    """Whether NaNs are only counted, see `nans`: where a call computes much, or often."""


def called(node: Node, names: Names) -> str:
    """Return the name of an array among those of a place, its label where it is not one of them."""
    return next((name for one, name in names if one.id == node.id), node.label)


def means(name: str, label: str) -> bool:
    """Whether a label stands for a name as people write it: `p_grad` for `p.grad`, `model.p.grad`.

    Of a path the last parts may be enough, and a tensor's own `value` is not in its label.
    """
    parts = [part for part in re.split(r"\W+", name.removesuffix(".value")) if part]
    return any("_".join(parts[at:]) == label for at in range(len(parts)))
