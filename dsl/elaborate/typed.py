"""Typed functions: the common form of both notations, with every name and size resolved.

    Typed  := procedure, returns, inputs
    Return := Constant(value) | Argument(path, view) | New(number, view, kind) | Many(items)
            | Part(item, name) | Items(item, plain, depth) | Updating(item, updates)

The procedure is IR 1 except that values may still hold `Reduce` (reductions in the middle of an
expression); `build` hoists those. Nothing downstream depends on which notation was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.assignments import Procedure
from ...lowering.ir.expressions import Expr
from ...lowering.ir.node import Node
from ..values.types import Kind
from ..values.values import Path
from .captures.inputs import CapturedValue, NumberSpec, Spec


@dataclass(frozen=True, slots=True)
class Strided:
    """A view of an array: offset and strides in elements of the array's own layout."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Sliced:
    """A view of an array with run-time ends, by a slice or position on each axis."""

    axes: tuple[tuple[Number, Number, Number] | tuple[Number], ...]
    """For each axis of the array start, step and number of elements; or a single position."""
    order: tuple[int, ...]
    """For each axis of the view its number among the axes that are kept."""
    writable: bool = True

    @property
    def results(self) -> tuple[Result, ...]:
        """The numbers in the view that the code returns."""
        return tuple(item for axis in self.axes for item in axis if isinstance(item, Result))


@dataclass(frozen=True, slots=True)
class Result:
    """A number that the code returns, by its position among the results."""

    number: int


Number = int | Result


@dataclass(frozen=True, slots=True)
class Constant:
    """A static value, `None` included."""

    value: object


@dataclass(frozen=True, slots=True)
class Argument:
    """An input, the identical object, or a view of it."""

    path: Path
    view: Strided | Sliced | None


@dataclass(frozen=True, slots=True)
class New:
    """A new array by its number among the results; a number where `kind` is given."""

    number: int
    view: Strided | Sliced | None
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class Many:
    """A tuple or list of returned values; `named_tuple` is the class of a named tuple."""

    items: tuple[Return, ...]
    kind: str
    named_tuple: type | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The `real` or `imag` of a returned array of complex numbers."""

    item: Return
    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of the items along the first axis of a returned array: of Python's numbers where it is
    `plain`, else of NumPy's scalars, of arrays, or of lists in as many levels as `depth` says."""

    item: New
    plain: bool
    depth: int


@dataclass(frozen=True, slots=True)
class Update:
    """An attribute of an input that is set after the run, if `given`, where present, is true."""

    owner: Path
    name: str
    value: Return
    given: Return | None


@dataclass(frozen=True, slots=True)
class Updating:
    """The result of a function that assigns attributes of objects."""

    item: Return
    updates: tuple[Update, ...]


Return = Constant | Argument | New | Many | Part | Items | Updating


@dataclass(frozen=True, slots=True)
class Typed:
    """A function for one specialisation.

    `passed` are the paths of the parameters in order; `used` the guarded specifications by path;
    `roots` the lookups of captured names of inlined functions; `statics` the integer parameters
    whose values are part of the specialisation. For the persistent cache, to decide whether another
    process would elaborate alike: `read` are the values of captured names, by the prefixes of the
    functions, which `owners` are; `asked` the attributes that were read as constants, with owner
    and value; `steady` whether elaboration depends on these and the inputs only.
    """

    procedure: Procedure
    returns: Return
    passed: tuple[Path, ...]
    used: Mapping[Path, Spec]
    roots: Mapping[str, Callable[[str], object]]
    constants: Mapping[str, object]
    statics: frozenset[str]
    fleeting: Mapping[Path, Node]
    """The local arrays that represent fields of tensors that are virtual or local."""
    nowhere: tuple[Path, ...]
    """All paths to such tensors; two may lead to the same one."""
    read: Mapping[tuple[str, str], CapturedValue] = field(default_factory=dict)
    owners: Mapping[str, object] = field(default_factory=dict)
    asked: tuple[tuple[CapturedValue, str, CapturedValue], ...] = ()
    steady: bool = True
    compared: tuple[Path, ...] = ()
    """The paths of objects whose identity relations are guarded."""
    alone: frozenset[str] = frozenset()
    """Names that are written by elements only, and were unbound in the enclosing scope."""
    asks_layout: bool = False
    """Whether the results depend on the layout of arguments."""
    needed: Mapping[str, Span] = field(default_factory=dict)
    """The statements that require static values of integer parameters."""
    guarded: frozenset[Expr] = frozenset()
    """Divisors and products of run-time integer parameters, which are checked."""
    preferred: frozenset[str] = frozenset()
    """The dynamic numbers that would be static if they were not dynamic."""
    whole: tuple[tuple[str, Span], ...] = ()
    """Of a derivative: the loops that keep all states though fewer were asked for, and why."""
    has_rules: bool = False
    """Of a derivative: whether rules that the user wrote stand for statements of functions."""

    @property
    def constant(self) -> frozenset[str]:
        """Those of `statics` that are constants of the code, not passed in each call."""
        given = (name for name in self.statics if isinstance(self.used.get(Path(name)), NumberSpec))
        return self.statics.difference(given)
