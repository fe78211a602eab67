"""Value representation of elaboration: what an expression of a `@cd` function evaluates to.

    Value := Static(object)              static: numbers, strings, None, functions, modules
           | Scalar(expr, kind)          one run-time number
           | Array(axes, shape, body)    a function of index symbols: `body` with `axes` in `shape`
           | Masked(array, mask)         the elements of an array under a mask
           | Group(items)                a tuple or list of values
           | Bound(value, method)        a method taken from a value, not called yet
           | Handle(tensor, path)        a persistent tensor, whose fields are arrays
           | Opaque(object, path)        a user object, whose attributes are looked up
           | Lazy(function, scope)       a function or lambda whose body will be inlined
           | Edge | Section | Unset      inside subscripts; a name that may not be read

An `Array` whose body is a `Read` with affine subscripts is a view: names bound to it alias its
node, and it can be written. Any other body is a virtual value, an expression until a name, a
contraction or a result materializes it.
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
from ...lowering.ir.indexing import Affine, Range, Symbol, const, substitute, var
from ...lowering.ir.memory_mode import Decision
from ...lowering.ir.node import Node
from ...lowering.ir.ops import Op
from ..source import surface as s
from .types import Kind, constant_text

OF_FUNCTIONS = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
"""The attributes that define a Python function, all of which may be reassigned."""
UNDER = ("__wrapped__", "__func__")
"""The attributes that lead to the Python function inside a wrapper or a bound method."""

KEYS = "<keys>"
"""The path step from a dictionary to the tuple of its keys; not a valid attribute name."""
TABLE = "<table>"
"""The prefix of the root of a path to a constant table; not a valid Python name."""


@dataclass(frozen=True, slots=True)
class Called:
    """A step of a path: what a function gives for constant arguments, asked in each call.

    `text` has the type and the bits of each argument, by which steps are compared.
    """

    text: str
    args: tuple[object, ...] = field(compare=False)

    def __call__(self, function: Callable[..., object]) -> object:
        """Return what the function gives. LookupError where it raises."""
        try:
            return function(*self.args)
        except Exception as problem:
            raise LookupError(f"{problem}") from problem

    def __str__(self) -> str:
        return f"({', '.join(map(repr, self.args))})"


Step = str | int | tuple[object, ...] | Called
"""A step of a path."""


@dataclass(frozen=True, slots=True)
class Path:
    """The access path of an input at call time: a root name, then attributes and items.

    `captured` roots are looked up in the function's scope, others among its arguments. A step is
    the name of an attribute, an item's number, or any other item's key as a 1-tuple, with the name
    of the item as a second element where it has one; or a call with constants.
    """

    root: str
    steps: tuple[Step, ...] = ()
    captured: bool = False

    @property
    def owner(self) -> Path | None:
        """The path of the tensor whose field this is, None for other paths."""
        if self.steps and isinstance(self.steps[-1], str) and self.steps[-1].startswith("@"):
            return Path(self.root, self.steps[:-1], self.captured)
        return None

    @property
    def is_parameter(self) -> bool:
        """Whether this is the path of an argument itself."""
        return not self.steps and not self.captured

    @property
    def is_table(self) -> bool:
        """Whether this is the path of a constant table, which is the same in every call."""
        return self.captured and self.root.startswith(TABLE)

    @property
    def is_field(self) -> bool:
        """Whether this is the path of a field of a tensor."""
        return bool(self.steps) and str(self.steps[-1]).startswith("@")

    @property
    def label(self) -> str:
        """The label of the array at this path: its last name, with the item numbers that follow."""
        label = self.root
        for step in self.steps:
            match step:
                case str():
                    label = step
                case Called():
                    pass
                case (str(key),) | (_, str(key)):
                    label = key
                case (key,) | key:
                    label = f"{label}_{key}"
        return label

    def __str__(self) -> str:
        return self.root + "".join(map(_format_step, self.steps))


def _format_step(step: Step) -> str:
    match step:
        case Called():
            return str(step)
        case str():
            return f".{step.removeprefix('@')}"
        case tuple():
            return f"[{step[0]!r}]"
        case _:
            return f"[{step}]"


@dataclass(frozen=True, slots=True)
class Static:
    """A static Python object; 1 and 1.0 are different ones, and so are 0.0 and -0.0."""

    value: object

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        if isinstance(self.value, float | complex):
            return constant_text(self.value) == constant_text(other.value)
        if isinstance(self.value, tuple | list) and isinstance(other.value, tuple | list):
            pairs = zip(self.value, other.value, strict=False)
            return len(self.value) == len(other.value) and all(
                Static(left) == Static(right) for left, right in pairs
            )
        return self.value is other.value or self.value == other.value


@dataclass(frozen=True, slots=True)
class Scalar:
    """One run-time number; `expr` is of the kind's element type or its compute type."""

    expr: Expr
    kind: Kind


class Listed(IntEnum):
    """Whether an array represents a Python list, whose operators differ from those of arrays."""

    NO = 0
    LIST = 1
    NUMBERS = 2
    """A list of Python numbers: each of them adapts to the element types of array operands."""
    ARRAYS = 3
    """A list of arrays of one shape: its items are arrays along its first axis, not lists."""


COPIED_RESHAPE = "is a copy, because this reshape cannot be a view"
"""Why a reshape that copied is read-only here: unlike NumPy's, which could be told from a view."""

Order = tuple[int, ...] | None
"""The axes of an array from the outermost in memory to the innermost, `()` for C order, None where
that is known at run time only."""


@dataclass(frozen=True, slots=True)
class Array:
    """A function of index symbols: `body` over `axes`, each from 0 to its extent in `shape`."""

    axes: tuple[Symbol, ...]
    shape: tuple[Affine, ...]
    body: Expr
    kind: Kind
    copied: bool = False
    """Whether NumPy creates a new array although the body has the form of a view."""
    sealed: str = ""
    """Why the array is read-only, empty where it is not: `a reshape that copied`."""
    listed: Listed = field(default=Listed.NO, compare=False)
    """Whether the argument is a Python list: its `+` is concatenation."""
    chosen: bool = field(default=False, compare=False)
    """Whether it is indexed by an array: a store writes the base, a read copies."""
    given: tuple[int, Path] | None = field(default=None, compare=False)
    """The `id` and path of the caller's object that it is; None for derived arrays, such as `x[:]`.
    An `id`, so that results of elaboration keep no memory of the caller alive."""
    order: Order = field(default=(), compare=False)
    """The memory order that NumPy gives it, where it is no view."""

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The axes as ranges from 0."""
        return tuple(
            Range(axis, const(0), extent)
            for axis, extent in zip(self.axes, self.shape, strict=True)
        )

    @property
    def read_only(self) -> bool:
        """Whether NumPy's array is read-only, too, as a diagonal is."""
        return self.sealed not in ("", COPIED_RESHAPE)

    @property
    def element(self) -> Read | None:
        """The body where it is assignable: elements of a node, gathered ones too; else None."""
        return self.body if isinstance(self.body, Read) and not self.copied else None

    @property
    def view(self) -> Read | None:
        """The body where it is a view of a node, as in NumPy, else None."""
        element = self.element
        if element is None or any(isinstance(i, Dynamic) for i in element.index):
            return None
        return element

    @property
    def part(self) -> tuple[str, Read] | None:
        """The name and the complex elements of an assignable real or imaginary part; else None."""
        match self.body:
            case Apply(Op(name="real" | "imag" as name), (Read() as read,), _) if not self.copied:
                return name, read
            case _:
                return None

    @property
    def base(self) -> Read | None:
        """The elements that a store writes, for a part the complex ones; else None."""
        part = self.part
        return self.element if part is None else part[1]

    @property
    def aliased(self) -> Read | None:
        """The elements that it is a view of, as in NumPy, of a part the complex ones, or None."""
        base = self.base
        if base is None or any(isinstance(i, Dynamic) for i in base.index):
            return None
        return base

    def at(self, index: tuple[Affine, ...]) -> Expr:
        """Return the element at an index, one subscript per axis, as an expression."""
        return replace_symbols(self.body, dict(zip(self.axes, index, strict=True)))


@dataclass(frozen=True, slots=True)
class Masked:
    """The elements of `array` where `mask` holds, in order; their number is dynamic.

    The mask spans as many axes of `array` as it has, from the axis `start` on. They are one axis of
    the selection, the selected one, as in NumPy; the other axes of `array` are its other axes.
    `held`: the mask is a private copy, taken when a name was bound to the selection.
    """

    array: Array
    mask: Array
    held: bool = False
    start: int = 0

    @property
    def rank(self) -> int:
        """The number of axes of the selection."""
        return self.array.rank - self.mask.rank + 1

    @property
    def trailing(self) -> int:
        """The number of axes after the selected one."""
        return self.array.rank - self.mask.rank - self.start

    @property
    def spanned(self) -> range:
        """The axes of `array` that the mask spans."""
        return range(self.start, self.start + self.mask.rank)

    @property
    def where(self) -> Expr:
        """The mask over the axes of `array`."""
        return self.mask.at(tuple(var(self.array.axes[axis]) for axis in self.spanned))

    @property
    def wide_mask(self) -> Array:
        """The mask, broadcast to the shape of `array`."""
        return Array(self.array.axes, self.array.shape, self.where, self.mask.kind, copied=True)


@dataclass(frozen=True, slots=True)
class Edge:
    """A subscript with a boundary mode: `clamp`, `wrap`, or `pad` with the fill value outside."""

    mode: str
    index: Scalar
    fill: Value | None


@dataclass(frozen=True, slots=True)
class Section:
    """A slice with evaluated bounds and step."""

    lower: Value | None
    upper: Value | None
    step: Value | None


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple or list of values; `kind` is `tuple` or `list`."""

    items: tuple[Value, ...]
    kind: str = "tuple"
    fields: tuple[str, ...] = ()
    """The field names of a named tuple."""
    named_tuple: type | None = None
    """The class of a named tuple."""
    identity: object = field(default_factory=object, compare=False, repr=False)
    """The identity of the tuple or list: shared by all names that are bound to it."""

    def of(self, items: Iterable[Value]) -> Group:
        """Return the same tuple or list (by identity) with other values for its items."""
        return Group(tuple(items), self.kind, self.fields, self.named_tuple, self.identity)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The identity of a tuple or list that is one of several objects, which the run decides."""

    identities: tuple[object, ...]


class AnyObject:
    """The identity of a tuple or list that a loop carries: an object of some iteration."""

    __slots__ = ()


def identities_of(group: Group) -> tuple[object, ...]:
    """Return the identities of the objects of which a tuple or list is one."""
    identity = group.identity
    return identity.identities if isinstance(identity, OneOf) else (identity,)


def joined_identity(first: Group, second: Group) -> object:
    """Return the identity of a tuple or list that is the first or the second on different paths."""
    objects = tuple(dict.fromkeys((*identities_of(first), *identities_of(second))))
    return first.identity if len(objects) == 1 else OneOf(objects)


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound method `value.method`, not called yet."""

    value: Value
    method: str


class TensorLike(Protocol):
    """The interface of a persistent tensor to elaboration."""

    @property
    def dtype(self) -> DType:
        """The element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which every field has."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the declared fields."""

    @property
    def request(self) -> Decision | None:
        """The memory mode requested for it, None for no request."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A persistent tensor, and its access path."""

    tensor: TensorLike
    path: Path


@dataclass(frozen=True, slots=True)
class Opaque:
    """A user object, whose attributes and items are looked up now and at every call."""

    value: object = field(compare=False)
    path: Path


class Scope(Protocol):
    """The scope that a function was defined in; `Frame` implements it."""

    @property
    def lookup(self) -> Callable[[str], object]:
        """The lookup of objects captured from enclosing scopes."""


@dataclass(frozen=True, slots=True)
class Lazy:
    """A nested function or a lambda, to be inlined: its syntax and its defining scope."""

    function: s.Function | s.Lambda
    scope: Scope
    defaults: tuple[tuple[str, Value], ...] = ()
    """The default values of parameters, evaluated at the definition."""


@dataclass(frozen=True, slots=True)
class Unset:
    """A name that may not be read: the reason, in words for users, and the location."""

    reason: str
    span: Span = field(compare=False, repr=False)
    helps: tuple[str, ...] = ()
    reserved: bool = False
    """Whether the loop at `span` assigns it on every exit."""
    failed: bool = False
    """Whether its defining statement is in error: reading it is not reported again."""


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
    """Return the expression with index symbols substituted everywhere."""
    if not values:
        return expr
    return rebuild(
        expr,
        lambda child: replace_symbols(child, values),
        lambda index: substitute(index, values),
    )


def replace_in_index(index: Index, values: Mapping[Symbol, Affine]) -> Index:
    """Return a subscript with symbols substituted, in the expression of a dynamic one too."""
    if isinstance(index, Dynamic):
        return Dynamic(replace_symbols(index.value, values))
    return substitute(index, values)


def as_new(array: Array) -> Array:
    """Return a view of a whole array that is another object in NumPy, such as `x[:]`."""
    return array if array.given is None else replace(array, given=None)


def whole(node: Node, axes: tuple[Symbol, ...], kind: Kind, span: Span) -> Array:
    """Return the array of all elements of a node, over `axes`."""
    return Array(
        axes, node.shape, Read(node, tuple(Affine(((a, 1),), 0) for a in axes), span), kind
    )
