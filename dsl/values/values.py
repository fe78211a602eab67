"""What an expression of a `@cd` function is while it is elaborated.

    Value := Static(object)              known now: numbers, strings, None, functions, modules
           | Scalar(expr, kind)          one run-time number
           | Array(axes, shape, body)    a function of index symbols: `body` with `axes` in `shape`
           | Masked(array, mask)         the elements of an array under a mask
           | Group(items)                a tuple or list of values
           | Bound(value, method)        a method taken from a value, not called yet
           | Handle(tensor, path)        a persistent tensor, whose fields are arrays
           | Opaque(object, path)        an object of the user's: its attributes are looked up
           | Lazy(function, scope)       a function or lambda whose body will be inlined
           | Edge | Section | Unset      inside subscripts; a name that may not be read

An `Array` whose body is a `Read` with affine indices is a view: names bound to it alias its node,
and it can be written. Any other body is a value that exists only as an expression until a name,
a contraction or a result needs it as an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from enum import IntEnum
from typing import Protocol

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Dynamic, Expr, Index, Read, rebuild
from ...lowering.ir.indexing import Affine, Range, Symbol, const, substitute
from ...lowering.ir.memory_mode import Decision
from ...lowering.ir.node import Node
from ...lowering.ir.ops import Op
from ..source import surface as s
from .types import Kind

OF_FUNCTIONS = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
"""What a Python function consists of: attributes of its own, which may be replaced."""
UNDER = ("__wrapped__", "__func__")
"""What leads to the Python function that another one is made of."""

KEYS = "<keys>"
"""The step of a path from a dictionary to the tuple of its keys; no attribute has such a name."""
TABLE = "<table>"
"""Begins the root of a path to a table of constants; no Python name can."""


@dataclass(frozen=True, slots=True)
class Path:
    """Where an input is found at call time: a root name, then attributes and items.

    `captured` roots are looked up in the function's scope, others among its arguments. A step is
    the name of an attribute, an item's number, or any other item's key in a tuple of its own; there
    is a name behind where the item has one.
    """

    root: str
    steps: tuple[str | int | tuple[object, ...], ...] = ()
    captured: bool = False

    @property
    def owner(self) -> Path | None:
        """The path of the tensor whose field it leads to, None where it leads to no field."""
        if self.steps and isinstance(self.steps[-1], str) and self.steps[-1].startswith("@"):
            return Path(self.root, self.steps[:-1], self.captured)
        return None

    @property
    def is_parameter(self) -> bool:
        """Whether it leads to an argument itself."""
        return not self.steps and not self.captured

    @property
    def is_table(self) -> bool:
        """Whether it leads to a table of constants, which is the same in every call."""
        return self.captured and self.root.startswith(TABLE)

    @property
    def is_field(self) -> bool:
        """Whether it leads to a field of a tensor."""
        return bool(self.steps) and str(self.steps[-1]).startswith("@")

    @property
    def label(self) -> str:
        """What the array at its end is called: the last name on it, with the numbers behind."""
        label = self.root
        for step in self.steps:
            match step:
                case str():
                    label = step
                case (str(key),) | (_, str(key)):
                    label = key
                case (key,) | key:
                    label = f"{label}_{key}"
        return label

    def __str__(self) -> str:
        return self.root + "".join(map(_step_text, self.steps))


def _step_text(step: str | int | tuple[object, ...]) -> str:
    match step:
        case str():
            return f".{step.removeprefix('@')}"
        case tuple():
            return f"[{step[0]!r}]"
        case _:
            return f"[{step}]"


@dataclass(frozen=True, slots=True)
class Static:
    """A Python object known while compiling: 1 and 1.0 are two, and 0.0 and -0.0."""

    value: object

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        if isinstance(self.value, float | complex | tuple | list):
            return repr(self.value) == repr(other.value)
        return self.value is other.value or self.value == other.value


@dataclass(frozen=True, slots=True)
class Scalar:
    """One run-time number; `expr` is of the kind's element type or its compute type."""

    expr: Expr
    kind: Kind


class Listed(IntEnum):
    """Whether an array stands for a list of Python, whose operators mean something else."""

    NO = 0
    LIST = 1
    NUMBERS = 2
    """A list of Python's own numbers: each of them adapts to the types of arrays beside it."""


Order = tuple[int, ...] | None
"""The axes of an array from the outermost in memory on, `()` for C order, None where the run
decides."""


@dataclass(frozen=True, slots=True)
class Array:
    """`body` for each value of `axes` within `shape` (each axis from 0)."""

    axes: tuple[Symbol, ...]
    shape: tuple[Affine, ...]
    body: Expr
    kind: Kind
    copied: bool = False
    """True where NumPy made a new array although the body reads like a view."""
    sealed: str = ""
    """Why the array may not be written, empty where it may: `a reshape that copied`."""
    listed: Listed = field(default=Listed.NO, compare=False)
    """Whether the caller gave a list: its `+` is another one."""
    chosen: bool = field(default=False, compare=False)
    """Whether an array of positions chose it: to write there writes the base, to read copies."""
    given: tuple[int, Path] | None = field(default=None, compare=False)
    """Which object of the caller's it is, and the way to it; None for what is made of one, `x[:]`.
    By its `id`: what elaboration leaves behind must not keep the caller's memory."""
    order: Order = field(default=(), compare=False)
    """Where it is no view: the order in memory that NumPy gives it."""

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The axes as ranges from 0."""
        return tuple(
            Range(axis, const(0), extent)
            for axis, extent in zip(self.axes, self.shape, strict=True)
        )

    @property
    def place(self) -> Read | None:
        """The body where it can be written: elements of a node, gathered ones too; else None."""
        return self.body if isinstance(self.body, Read) and not self.copied else None

    @property
    def view(self) -> Read | None:
        """The body where it is a view of a node in NumPy's sense, else None."""
        place = self.place
        if place is None or any(isinstance(i, Dynamic) for i in place.index):
            return None
        return place

    @property
    def part(self) -> tuple[str, Read] | None:
        """For the real or imaginary part of a complex place: its name and the place; else None."""
        match self.body:
            case Apply(Op(name="real" | "imag" as name), (Read() as read,), _) if not self.copied:
                return name, read
            case _:
                return None

    @property
    def base(self) -> Read | None:
        """The elements that a write goes to, those of a part's whole numbers too; else None."""
        part = self.part
        return self.place if part is None else part[1]

    @property
    def aliased(self) -> Read | None:
        """The elements that it is a view of in NumPy's sense, those of a part too; else None."""
        base = self.base
        if base is None or any(isinstance(i, Dynamic) for i in base.index):
            return None
        return base

    def at(self, index: tuple[Affine, ...]) -> Expr:
        """Return the element at an index, as an expression."""
        return replace_symbols(self.body, dict(zip(self.axes, index, strict=True)))


@dataclass(frozen=True, slots=True)
class Masked:
    """The elements of `array` where `mask` holds, in order; their number is a run-time matter.

    `held`: the mask is an array of its own, which nobody writes, as it was when a name was bound.
    """

    array: Array
    mask: Array
    held: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An index that may leave its axis: `clamp`, `wrap`, or `pad` with what is read outside."""

    mode: str
    index: Scalar
    fill: Value | None


@dataclass(frozen=True, slots=True)
class Section:
    """A slice with evaluated parts."""

    lower: Value | None
    upper: Value | None
    step: Value | None


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple or list of values; `kind` is `tuple` or `list`."""

    items: tuple[Value, ...]
    kind: str = "tuple"
    fields: tuple[str, ...] = ()
    """The names of the items of a named tuple."""
    made: type | None = None
    """Its class."""
    one: object = field(default_factory=object, compare=False, repr=False)
    """Which tuple or list it is: one that two names have is the same."""

    def of(self, items: Iterable[Value]) -> Group:
        """Return the same tuple or list with its items as they are kept elsewhere."""
        return Group(tuple(items), self.kind, self.fields, self.made, self.one)


@dataclass(frozen=True, slots=True)
class Bound:
    """`value.method`, waiting for its call."""

    value: Value
    method: str


class TensorLike(Protocol):
    """What elaboration knows of a persistent tensor."""

    @property
    def dtype(self) -> DType:
        """The element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, that of every field."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the declared fields."""

    @property
    def request(self) -> Decision | None:
        """What was asked of its memory."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A persistent tensor found at `path`."""

    tensor: TensorLike
    path: Path


@dataclass(frozen=True, slots=True)
class Opaque:
    """An object of the user's whose attributes and items are looked up now and at every call."""

    value: object = field(compare=False)
    path: Path


class Scope(Protocol):
    """The names among which a function was defined; a `Frame` is one."""

    @property
    def lookup(self) -> Callable[[str], object]:
        """How objects captured from further out are found."""


@dataclass(frozen=True, slots=True)
class Lazy:
    """A function defined inside or a lambda: its surface and the names it was defined among."""

    function: s.Function | s.Lambda
    scope: Scope
    defaults: tuple[tuple[str, Value], ...] = ()
    """The values of parameters that have one, as they were where the function was defined."""


@dataclass(frozen=True, slots=True)
class Unset:
    """A name that may not be read: why, in words, and where."""

    reason: str
    span: Span = field(compare=False, repr=False)
    helps: tuple[str, ...] = ()
    reserved: bool = False
    """Whether the loop at `span` sets it, whichever way it is left."""
    failed: bool = False
    """Whether the statement that binds it is wrong: reading it is no error of its own."""


Value = (
    Static
    | Scalar
    | Array
    | Masked
    | Group
    | Bound
    | Handle
    | Opaque
    | Lazy
    | Unset
    | Edge
    | Section
)


def replace_symbols(expr: Expr, values: Mapping[Symbol, Affine]) -> Expr:
    """Return the expression with index symbols replaced everywhere."""
    if not values:
        return expr
    return rebuild(
        expr,
        lambda child: replace_symbols(child, values),
        lambda index: substitute(index, values),
    )


def replace_in_index(index: Index, values: Mapping[Symbol, Affine]) -> Index:
    """Return an index with symbols replaced, dynamic ones inside their expression."""
    if isinstance(index, Dynamic):
        return Dynamic(replace_symbols(index.value, values))
    return substitute(index, values)


def as_new(value: Value) -> Value:
    """Return what a subscript, an attribute or a method makes of an array: another object."""
    if isinstance(value, Array) and value.given is not None:
        return replace(value, given=None)
    return value


def whole(node: Node, axes: tuple[Symbol, ...], kind: Kind, span: Span) -> Array:
    """Return the array of a whole node."""
    return Array(
        axes, node.shape, Read(node, tuple(Affine(((a, 1),), 0) for a in axes), span), kind
    )
