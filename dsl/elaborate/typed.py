"""Where both notations meet: a function as accumulating assignments, every name and size known.

    Typed  := procedure, returns, inputs
    Return := Constant(value) | Argument(path, view) | New(number, view, kind) | Many(items)
            | Part(item, name) | Updating(item, updates)

The procedure is IR 1 except that values may still hold `Reduce` (reductions in the middle of an
expression); `build` takes those out. Nothing after this knows which notation was written.
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
from .captures.inputs import Noted, NumberSpec, Spec


@dataclass(frozen=True, slots=True)
class Strided:
    """A view of an array: offset and strides in elements of the array's own layout."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sliced:
    """A view of an argument with run-time ends, by a slice or position on each axis."""

    axes: tuple[tuple[Number, Number, Number] | tuple[Number], ...]
    """Of each axis of the array the start, the step and how many elements; or one position."""
    order: tuple[int, ...]
    """Of each axis of the view which it is of those that are left."""

    @property
    def results(self) -> tuple[Result, ...]:
        """The numbers in it that the code gives back."""
        return tuple(one for axis in self.axes for one in axis if isinstance(one, Result))


@dataclass(frozen=True, slots=True)
class Result:
    """A number that the code gives back, by its place among the results."""

    number: int


Number = int | Result


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known when compiling, `None` included."""

    value: object


@dataclass(frozen=True, slots=True)
class Argument:
    """An input, the same object as was given, or a view of it."""

    path: Path
    view: Strided | Sliced | None


@dataclass(frozen=True, slots=True)
class New:
    """A new array by its number among the results; a number where `kind` is given."""

    number: int
    view: Strided | None
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class Many:
    """A tuple or list of returned things; of a named tuple, what it is `made` of is its class."""

    items: tuple[Return, ...]
    kind: str
    made: type | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The `real` or `imag` of a returned array of complex numbers."""

    item: Return
    name: str


@dataclass(frozen=True, slots=True)
class Update:
    """An attribute of an input that is set after the run, where `given` holds if there is one."""

    owner: Path
    name: str
    value: Return
    given: Return | None


@dataclass(frozen=True, slots=True)
class Updating:
    """What is returned of a function that assigns attributes of objects."""

    item: Return
    updates: tuple[Update, ...]


Return = Constant | Argument | New | Many | Part | Updating


@dataclass(frozen=True, slots=True)
class Typed:
    """A function for one specialisation.

    `passed` are the paths of the parameters in order; `used` what the specialisation depends on;
    `roots` how captured names of inlined functions are found; `statics` the integer parameters
    whose values are part of the specialisation. What another process needs to know whether it
    would elaborate alike: `read` is what names around the functions were, by the prefixes of the
    functions, which `owners` are; `asked` attributes that were taken for constant, whose and what;
    `steady` whether these and the inputs were all that was asked.
    """

    procedure: Procedure
    returns: Return
    passed: tuple[Path, ...]
    used: Mapping[Path, Spec]
    roots: Mapping[str, Callable[[str], object]]
    constants: Mapping[str, object]
    statics: frozenset[str]
    fleeting: Mapping[Path, Node]
    """The local arrays that stand for fields of tensors without an array of their own."""
    nowhere: tuple[Path, ...]
    """Every way to such a tensor: two may lead to one."""
    read: Mapping[tuple[str, str], Noted] = field(default_factory=dict)
    owners: Mapping[str, object] = field(default_factory=dict)
    asked: tuple[tuple[Noted, str, Noted], ...] = ()
    steady: bool = True
    compared: tuple[Path, ...] = ()
    """The ways to objects of which it matters which are one."""
    alone: frozenset[str] = frozenset()
    """Names that are written in parts alone, and were nothing around the function."""
    asks_layout: bool = False
    """Whether the results depend on how arguments lie in memory."""
    needed: Mapping[str, Span] = field(default_factory=dict)
    """The statements for which integer parameters are static."""
    guarded: frozenset[Expr] = frozenset()
    """Divisors and products of numbers that came with many values, which are checked."""

    @property
    def constant(self) -> frozenset[str]:
        """Those of `statics` that are constants of the code, and not given to it in each call."""
        given = (name for name in self.statics if isinstance(self.used.get(Path(name)), NumberSpec))
        return self.statics.difference(given)
