"""What a function is given: arguments and captured objects, as specifications and as values.

A specification says what of an input the compiled code depends on: an array's layout, a number's
kind, a constant's value, an object's identity. Specifications are hashable and compared on every
call; a changed one means another specialisation, never a stale result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, TypeGuard

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdTypeError, Diagnostic, Span
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Let, Parameter
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Read
from ....lowering.ir.indexing import const
from ....lowering.ir.memory_mode import LOCAL, VIRTUAL
from ....lowering.ir.node import Node
from ...source import fingerprint
from ...source import surface as s
from ...values.array_types import ArrayType
from ...values.builder import Context, error
from ...values.call_site import Word
from ...values.types import Kind, cast, constant_text, kind_of_number, may_be_given
from ...values.values import (
    TABLE,
    Array,
    Group,
    Handle,
    Listed,
    Opaque,
    Path,
    Scalar,
    Static,
    TensorLike,
    Value,
)
from .instances import FUNCTIONS, fields_of, has_state, is_instance, is_method

LONGEST = 40
"""An attribute is called as it is written, where that is no longer."""
DEEPEST = 64
"""How deep lists and tuples of an input nest at most: as arrays have axes at most."""


def is_static(name: str, value: object, statics: frozenset[str]) -> bool:
    """Whether an argument is a constant of the code: integers make their parameters static, and
    floats that come to the same parameter are values of the run all the same."""
    return name in statics and not isinstance(value, float | complex | np.inexact)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array: element type, shape, strides in elements (None: C order).

    A size that is None is only known at run time, and at least 2. `nearest` is that of a `Node`.
    """

    dtype: DType
    shape: tuple[int | None, ...]
    strides: tuple[int, ...] | None
    listed: Listed = Listed.NO
    """Whether a list was given: `+` and `*` mean something else for those in Python."""
    placed: bool = False
    """Whether a device has it, in another order than that of C."""
    nearest: int | None = None


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """A number whose value is given at run time."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class ConstantSpec:
    """A constant: compared by type and by value, bit for bit."""

    type: type
    text: str
    value: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class ObjectSpec:
    """An object that is compared by identity: a function, a module, a class."""

    id: int
    value: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """An object that is compared by its type: what is read of it is an input of its own.

    It keeps none alive.
    """

    type: type


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A function taken from an object: its owner is an input of its own."""

    type: type
    id: int
    function: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A tuple or list of inputs."""

    kind: str
    items: tuple[Spec, ...]
    fields: tuple[str, ...] = ()
    made: type | None = None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A persistent tensor: its element type, shape and declared fields. It keeps none alive."""

    dtype: DType
    shape: tuple[int, ...]
    fields: tuple[str, ...]
    memory: str
    """The memory mode that was asked for, empty where none was."""


Spec = (
    ArraySpec | NumberSpec | ConstantSpec | ObjectSpec | InstanceSpec | MethodSpec | GroupSpec
    | TensorSpec
)  # fmt: skip


_PYTHON = (int, float, complex, bool)
_PLAIN = (str, bytes, type(None), type(...), slice, np.dtype, range)


def spec_of(
    value: object,
    describe: Callable[[object], ArraySpec | None],
    static: bool,
    is_tensor: Callable[[object], TypeGuard[TensorLike]],
    depth: int = DEEPEST,
) -> Spec:
    """Return the specification of an input. `static` numbers are constants.

    `describe` gives the layout of anything that is an array, None for what is not. Raises what it
    does, and CdTypeError CD0702 for lists and tuples that nest deeper than that.
    """
    if isinstance(value, np.ndarray):
        spec = describe(value)
        if spec is not None:
            return spec
    kind = kind_of_number(value)
    if kind is not None:
        _refuse_own_arithmetic(value)
        plain = static or kind.dtype.kind == "b" or not _fits(value)
        return ConstantSpec(type(value), constant_text(value), value) if plain else NumberSpec(kind)
    if isinstance(value, bytearray):
        raise _no_array(value)
    if isinstance(value, ArrayType) and value.sizes is None:
        value = Word(value.dtype.short)
    if isinstance(value, (*_PLAIN, DType, Word)):
        return ConstantSpec(type(value), repr(value), value)
    if is_tensor(value):
        return TensorSpec(value.dtype, value.shape, value.fields, _asked(value))
    if isinstance(value, tuple | list):
        if not depth:
            raise _too_deep(value)
        items = tuple(spec_of(item, describe, True, is_tensor, depth - 1) for item in value)
        numbers = isinstance(value, list) and not static and all(map(_is_numeric, items))
        if not (numbers and items):
            word = "list" if type(value) is list else "tuple"
            fields = fields_of(value)
            return GroupSpec(word, items, fields, type(value) if fields else None)
    if is_method(value):
        function = getattr(value, "__func__")  # noqa: B009 - a method by what it has
        return MethodSpec(type(value), id(function), function)
    if not isinstance(value, FUNCTIONS):
        spec = describe(value)
        if spec is not None:
            return replace(spec, listed=_listed(value))
    return InstanceSpec(type(value)) if is_instance(value) else ObjectSpec(id(value), value)


_ARITHMETIC = tuple(
    f"__{side}{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    for side in ("", "r")
)


def _refuse_own_arithmetic(value: object) -> None:
    """Refuse (CD0701) a number of a class of the user's that says itself what operators mean."""
    kind = type(value)
    if kind in _PYTHON or isinstance(value, np.generic):
        return
    base = next(one for one in _PYTHON if isinstance(value, one))
    for name in _ARITHMETIC:
        if getattr(kind, name, None) is not getattr(base, name, None):
            text = f"an object of type {kind.__name__} has arithmetic of its own: `{name}`"
            helps = (f"pass the number: `{base.__name__}(...)`",)
            raise CdTypeError(Diagnostic("CD0701", text, helps=helps))


def _no_array(value: bytearray) -> CdTypeError:
    """Return CdTypeError CD0701: what is a list of Python's numbers, and no array of them."""
    text = f"a bytearray of {len(value)} is no array"
    helps = ("pass its elements as an array: `np.frombuffer(b, np.uint8)`",)
    return CdTypeError(Diagnostic("CD0701", text, helps=helps))


def _too_deep(value: tuple[object, ...] | list[object]) -> CdTypeError:
    message = f"a {type(value).__name__} holds itself, or nests more than {DEEPEST} deep"
    return CdTypeError(Diagnostic("CD0702", message, helps=("pass its parts as arguments",)))


def _listed(value: object) -> Listed:
    """Return whether a value is a list, and whether all numbers in it are Python's own."""
    if not isinstance(value, list):
        return Listed.NO
    own = all(
        _listed(item) is Listed.NUMBERS if isinstance(item, list) else type(item) in _PYTHON
        for item in value
    )
    return Listed.NUMBERS if own else Listed.LIST


def _fits(value: object) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _is_numeric(spec: Spec) -> bool:
    match spec:
        case ConstantSpec():
            return kind_of_number(spec.value) is not None
        case GroupSpec("list", items):
            return all(map(_is_numeric, items))
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Noted:
    """A captured object, and what it was when it was met: None where there are no words for it."""

    value: object
    words: fingerprint.Description | None

    @classmethod
    def of(cls, value: object) -> Noted:
        """Return the object with what it is now."""
        return cls(value, fingerprint.try_describe(value))


@dataclass(frozen=True, slots=True)
class Assigned:
    """An attribute that the function assigns, and where it does so first."""

    owner: Opaque
    name: str
    span: Span

    @property
    def path(self) -> Path:
        """The way to it."""
        owner = self.owner.path
        return Path(owner.root, (*owner.steps, self.name), owner.captured)


MERGED = ".merge"
"""Ends the last step of a path that leads to a field's version in the merge buffer."""


@dataclass
class Inputs:
    """The inputs of one elaboration: how to describe objects, aliases, and what was used.

    `used` maps each path that the compiled code depends on to its specification; `nodes` maps
    the paths that are passed to it to their nodes, in order.
    """

    describe: Callable[[object, bool], Spec]
    alias: Mapping[Path, Path]
    numbers: frozenset[Path] = frozenset()
    """The ways to numbers that are given in each call though they are attributes."""
    given: frozenset[Path] = frozenset()
    """The ways to attributes that the function assigns: numbers there are given in each call."""
    inlines_properties: bool = False
    """Whether properties of objects are inlined: they look at what the function writes."""
    properties: bool = False
    """Whether any was looked at."""
    used: dict[Path, Spec] = field(default_factory=dict)
    nodes: dict[Path, Node] = field(default_factory=dict)
    handles: dict[Path, Handle] = field(default_factory=dict)
    """The tensors among the inputs."""
    fleeting: dict[Path, Node] = field(default_factory=dict)
    """The local arrays that stand for tensors without an array of their own."""
    parsed: dict[object, s.Function] = field(default_factory=dict)
    """Functions already parsed in this elaboration, by object or text."""
    roots: dict[str, Callable[[str], object]] = field(default_factory=dict)
    """How captured names of inlined functions are looked up, by the prefix of their paths."""
    owners: dict[str, object] = field(default_factory=dict)
    constants: dict[str, object] = field(default_factory=dict)
    """Captured roots that are no names: default values of inlined functions."""
    tables: dict[object, str] = field(default_factory=dict)
    """The roots of tables of constants, by what is in them."""
    read: dict[tuple[str, str], Noted] = field(default_factory=dict)
    """What each name was that was looked up around a function, by the function's prefix."""
    asked: dict[tuple[int, str], tuple[Noted, str, Noted]] = field(default_factory=dict)
    """The attributes that were taken for constant: whose, and what they were."""
    compared: dict[Path, None] = field(default_factory=dict)
    """The ways to objects of which it matters which are one, though they are known by type."""
    alone: set[str] = field(default_factory=set)
    """Names that are written in parts alone, and are nothing around the function."""
    assigned: dict[str, Assigned] = field(default_factory=dict)
    """The attributes that the function assigns, by the names of `keys`, in order."""
    keys: dict[tuple[int, str], str] = field(default_factory=dict)
    """What they are called in frames, by the object's identity and the attribute's name."""
    seen: dict[str, dict[Path, Opaque]] = field(default_factory=dict)
    """Whose attributes were looked at, by the attribute's name and the way to the object."""
    steady: bool = True
    """Whether nothing was asked that another process could answer otherwise for equal inputs."""

    def noting(self, prefix: str, lookup: Callable[[str], object]) -> Callable[[str], object]:
        """Return the lookup of a function's names, which notes what they are."""

        def noted(name: str) -> object:
            found = lookup(name)
            known = self.read.get((prefix, name))
            if known is None:
                self.read[prefix, name] = Noted.of(found)
            elif known.value is not found:
                self.steady = False  # another thread changed it meanwhile
            return found

        return noted

    def ask(self, owner: object, name: str, found: object) -> None:
        """Note an attribute that was found and is taken for constant."""
        if not fingerprint.is_immutable(owner):
            self.asked[id(owner), name] = Noted.of(owner), name, Noted.of(found)

    def compare(self, one: Opaque, other: Opaque) -> None:
        """Note that it matters whether two objects are one, where no specification says."""
        if is_instance(one.value) and is_instance(other.value):
            self.compare_paths(one.path, other.path)

    def compare_paths(self, one: Path, other: Path) -> None:
        """Note that it matters whether two inputs are one, of which no specification says so."""
        if one != other:
            self.compared |= {one: None, other: None}

    def key_of(self, owner: Opaque, name: str, text: str) -> str:
        """Return what an attribute is called in frames, one name for one object's; like the text of
        the source if there is none yet."""
        known = id(owner.value), name
        if known not in self.keys:
            key = text if len(text) <= LONGEST else f"{owner.path.label}.{name}"
            self.keys[known] = f"{key}'{len(self.keys)}" if key in self.assigned else key
        return self.keys[known]

    def root(self, owner: object, lookup: Callable[[str], object]) -> str:
        """Return the prefix of captured paths of an inlined function; the same for the same one."""
        for prefix, known in self.owners.items():
            if known is owner:
                return prefix
        prefix = f"{getattr(owner, '__name__', 'function')}:{len(self.owners)}:"
        self.owners[prefix] = owner
        self.roots[prefix] = lookup
        return prefix

    def is_tensor(self, value: object) -> bool:
        """Whether an object is a persistent tensor."""
        return isinstance(self.describe(value, True), TensorSpec)

    def wrap(self, ctx: Context, path: Path, value: object, static: bool, span: Span) -> Value:
        """Return an input as a value; `static` numbers are constants of the specialisation."""
        may_be = may_be_given(type(value)) or (path.is_parameter and isinstance(value, np.integer))
        given = path in self.given or (path in self.numbers and may_be)
        spec = self.describe(value, static and not given)
        if not (isinstance(spec, GroupSpec) and path in self.used):
            self.used[path] = spec
        return self._value(ctx, path, spec, value, span)

    def _value(self, ctx: Context, path: Path, spec: Spec, given: Any, span: Span) -> Value:
        """Return the value of an input that is given, and of its specification."""
        match spec:
            case ArraySpec(dtype, shape, strides, listed, placed, nearest):
                more = dtype, shape, strides, placed, nearest
                node = self.node(ctx, path, path.label, *more)
                return replace(ctx.whole(node, span), listed=listed, given=(id(given), path))
            case NumberSpec(kind):
                return self._number(ctx, path, kind, span)
            case ConstantSpec(_, _, value):
                return Static(value)
            case ObjectSpec(_, value):
                return Opaque(value, path) if has_state(value) else Static(value)
            case InstanceSpec() | MethodSpec():
                return Opaque(given, path)
            case GroupSpec(kind, items, fields, made):
                parts = []
                for n, (item, one) in enumerate(zip(items, given, strict=True)):
                    inner = Path(path.root, (*path.steps, n), path.captured)
                    parts.append(self._value(ctx, inner, item, one, span))
                return Group(tuple(parts), kind, fields, made, path)
            case TensorSpec():
                return self.handles.setdefault(path, Handle(given, path))

    def node(
        self,
        ctx: Context,
        path: Path,
        label: str,
        dtype: DType,
        shape: tuple[int | None, ...],
        strides: tuple[int, ...] | None,
        placed: bool = False,
        nearest: int | None = None,
    ) -> Node:
        """Return the parameter node of a path, that of its alias where it has one."""
        while path in self.alias:
            path = self.alias[path]
        if path not in self.nodes:
            ctx.serial += 1
            extents = tuple(
                const(n) if n is not None else ctx.size(f"{label}_{axis}")
                for axis, n in enumerate(shape)
            )
            node = Node(ctx.serial, label, extents, dtype, strides, None, "", placed, nearest)
            self.nodes[path] = node
            ctx.parameters[path] = Parameter(node, False)
        return self.nodes[path]

    def constant(self, ctx: Context, data: np.ndarray[Any, Any], dtype: DType) -> Node:
        """Return the hidden input that is a table of constants, one for equal tables."""
        known = data.dtype.str, data.shape, data.tobytes()
        root = self.tables.setdefault(known, f"{TABLE}{len(self.tables)}")
        if root not in self.constants:
            data.setflags(write=False)
            self.constants[root] = data
        node = self.node(ctx, Path(root, (), True), "table", dtype, data.shape, None)
        ctx.tables[node] = data
        return node

    def field(
        self, ctx: Context, handle: Handle, name: str, span: Span, merged: bool = False
    ) -> Array:
        """Return a field of a tensor as an array, `merged` for another stream's version of it.

        CdTypeError CD0803 where it is not declared.
        """
        tensor = handle.tensor
        if name not in tensor.fields:
            declared = ", ".join(tensor.fields)
            raise error(
                "CD0803", CdTypeError, f"tensor `{handle.path}` has no field `{name}`", span,
                label=f"declared fields: {declared}",
                helps=(f"declare it: `pe.tensor(..., fields=({name!r},))`",),
            )  # fmt: skip
        label = handle.path.label
        label = label if name == "value" else f"{label}_{name}"
        if merged:
            name, label = name + MERGED, f"{label}_merge"
        path = Path(handle.path.root, (*handle.path.steps, "@" + name), handle.path.captured)
        node = self._of_tensor(ctx, path, label, tensor)
        return ctx.whole(node, span)

    def _of_tensor(self, ctx: Context, path: Path, label: str, tensor: TensorLike) -> Node:
        """Return the node of a field: a parameter, or a local array where that was asked for."""
        asked = tensor.request
        if asked is None:
            return self.node(ctx, path, label, tensor.dtype, tensor.shape, None)
        if not _is_nowhere(tensor):
            node = self.node(ctx, path, label, tensor.dtype, tensor.shape, None)
            known = path
            while known in self.alias:
                known = self.alias[known]
            parameter = ctx.parameters[known]
            if parameter.node.request is None:  # later ones are joined to it, see `requests`
                new = replace(parameter.node, request=asked)
                ctx.parameters[known] = replace(parameter, node=new)
            return node
        path = self._first_path(path, tensor)
        if path not in self.fleeting:
            node = ctx.node(label, tuple(map(const, tensor.shape)), tensor.dtype)
            self.fleeting[path] = ctx.locals[-1] = replace(node, request=asked)
        node = self.fleeting[path]
        if all(one.id != node.id for one in ctx.locals):  # its first use is being elaborated again
            ctx.locals.append(node)
        return node

    def _first_path(self, path: Path, tensor: TensorLike) -> Path:
        """Return the first path that led to a field: a tensor that is given twice is one."""
        for known in self.fleeting:
            owner = known.owner
            same = owner is not None and self.handles[owner].tensor is tensor
            if same and known.steps[-1] == path.steps[-1]:
                return known
        return path

    def nowhere(self) -> tuple[Path, ...]:
        """Return the ways to tensors without an array of their own."""
        return tuple(path for path, one in self.handles.items() if _is_nowhere(one.tensor))

    def _number(self, ctx: Context, path: Path, kind: Kind, span: Span) -> Scalar:
        name = path.label
        node = self.node(ctx, path, name, kind.dtype, (), None)
        if kind.dtype.kind not in "iu":
            return Scalar(Read(node, (), span), kind)
        symbol = ctx.symbol(name)
        read = Read(node, (), span)
        ctx.prologue.append(Let(symbol, cast(read, dtypes.int64), span))
        ctx.origin[symbol] = str(path)
        return Scalar(cast(ctx.scalar_index(symbol).expr, kind.dtype), kind)


def _is_nowhere(tensor: TensorLike) -> bool:
    return tensor.request is not None and tensor.request.mode in (VIRTUAL, LOCAL)


def _asked(tensor: TensorLike) -> str:
    return "" if tensor.request is None else str(tensor.request.mode)
