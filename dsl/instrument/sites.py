"""Record layout of a function: its sites, and the positions of their numbers in the buffers.

    Layout := sites, names, width, ...     width: numbers in a row of the table
    Site   := number, statement, path, symbols, reduction, ranges, columns
    Row    := [site, first float, first int, symbols...]      one for each execution of a site
    Column := kind, expr, dtype, place, guard                  one number of each point of a row

The points of a row are contiguous in the order of its ranges, each with `floats` numbers in one
buffer and `ints` in another: floats are stored as float64, all other values as int64, both without
loss. Where not all points of the ranges are recorded, an int of each is the mask.
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

ColumnKind = Literal["before", "after", "operand", "contribution", "subscript"]

BLOCK_PREFIXES = "for ", "while ", "if "
"""Prefixes of the texts of loops and branches."""
FIRST_SYMBOL = 3
"""The first column of symbol values in a row: after the site and the two offsets."""
ROWS, FLOATS, INTS, POINTS, DROPPED, LIMIT, STOPPED, RANK = range(8)
"""Positions in the counters: the used size of each buffer, recorded and dropped points, the limit
of points, which the host sets. `STOPPED` is nonzero after the first NaN; `RANK` counts within one
row."""
COUNTERS = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a point."""

    what: ColumnKind
    expr: Expr | None
    """The recorded expression; None for a guard."""
    dtype: DType
    position: int
    """Its position among the floats or the ints of a point; a complex number takes two."""
    guard: int | None = None
    """The position of the int that says whether it was evaluated, None where it always is."""

    @property
    def is_float(self) -> bool:
        """Whether it is stored among the floats."""
        return self.dtype.kind in "fc"


@dataclass(frozen=True, slots=True)
class BranchSide:
    """One side of a branch, as an enclosing level."""

    branch: Branch
    holds: bool


Level = Block | For | While | BranchSide
"""A construct that encloses a statement."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the box of a row's points: symbol, first value, extent."""

    symbol: Symbol
    first: Affine
    extent: Affine


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A statement that is executed before a row of a site, and is not recorded itself."""

    error: float
    """How much two backends may differ in its elementary functions, relatively."""
    epsilon: float
    """The same in its arithmetic: the epsilon of its type."""
    loops: tuple[tuple[Affine, Affine, int], ...] = ()
    """Start, end and step of the loops around it that hold no site."""


@dataclass(frozen=True, slots=True)
class Site:
    """A statement that is recorded."""

    number: int
    statement: Assign | Permute
    path: tuple[Level, ...]
    """The enclosing levels, outermost first."""
    symbols: tuple[Symbol, ...]
    """The loop variables and other scalars stored in a row, in order."""
    reduce: Reduce | None = None
    """The reduction in the statement whose terms are recorded, None for the assignment itself."""
    axes: tuple[Axis, ...] = ()
    columns: tuple[Column, ...] = ()
    floats: int = 0
    ints: int = 0
    is_masked: bool = False
    """Whether the first int is the mask of recorded points."""
    named_symbols: frozenset[Symbol] = frozenset()
    """The index and loop variables that the source names."""
    hidden: frozenset[Symbol] = frozenset()
    """Index variables shown without a name, since the source uses it for something else."""
    reads: tuple[tuple[Domain, Read], ...] | None = None
    """The reads of a recorded library call, None for other statements."""
    is_part: bool = False
    """Whether such a call may leave elements unchanged: these are no records."""
    spare: tuple[int, int] = (0, 0)
    """The number of floats and ints of a point with a backup position after the row."""
    unrecorded: tuple[Unrecorded, ...] = ()
    """The statements since the last site, and those that a library call consists of."""

    @property
    def is_assignment(self) -> bool:
        """Whether its points are records, that is assignments to elements."""
        return isinstance(self.statement, Assign) and self.reduce is None

    @property
    def is_phi_copy(self) -> bool:
        """Whether it is only a phi copy: of a loop-carried name, or of one that a branch sets."""
        match self.statement:
            case Assign(Access(node), None, _, Read(source), span=span) if self.reduce is None:
                is_inner = (
                    span.text.startswith(BLOCK_PREFIXES) or not node.rank
                )  # `r = r` is generated
                return node.label == source.label and is_inner
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Layout:
    """The sites of a function, by number."""

    sites: tuple[Site, ...]
    names: Names = ()
    """The names of arrays at the end of the function."""
    arrays: frozenset[str] = frozenset()
    """The names of all assigned arrays, also of those that are not recorded."""
    indices: frozenset[str] = frozenset()
    """The names of their index variables and of loop variables."""
    statements: frozenset[int | str] = frozenset()
    """The requested statements that exist."""

    @property
    def width(self) -> int:
        """The number of columns of the table."""
        return FIRST_SYMBOL + max((len(site.symbols) for site in self.sites), default=0)


Counting = Literal["no", "much", "often"]
"""When a run counts NaNs before it records the statement that creates the first."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """The filters of a trace: everything is recorded unless something is named."""

    arrays: frozenset[str] = frozenset()
    """Names of written arrays."""
    statements: tuple[int | str, ...] = ()
    """Line numbers, or parts of the text of statements."""
    where: str = ""
    """A test of loop and index variables by name."""
    first_nan: bool = False
    """Whether only the statement that first creates a NaN is recorded."""
    sample: int = 1
    """Every n-th point of each statement."""
    is_limited: bool = False
    """Whether a single statement may exceed the limit of points."""
    terms: bool = False
    """Whether each term of a reduction is recorded."""
    printed: bool = False
    """Whether each row is printed when it is complete; the next one overwrites it."""
    scarce: bool = False
    """Whether the buffers may be too small, so that a row may be truncated."""
    counts: Counting = "no"
    """Whether NaNs are only counted, see `nan_counts`: where a call is expensive, or frequent."""


def array_name(node: Node, names: Names) -> str:
    """Return the name of an array at a statement, its label where it has none there."""
    return next((name for named, name in names if named.id == node.id), node.label)


def matches_label(name: str, label: str) -> bool:
    """Whether a label matches a name as users write it: `p_grad` for `p.grad`, `model.p.grad`.

    The last parts of a path suffice, and a tensor's `value` is not part of its label.
    """
    components = [
        component for component in re.split(r"\W+", name.removesuffix(".value")) if component
    ]
    return any("_".join(components[at:]) == label for at in range(len(components)))
