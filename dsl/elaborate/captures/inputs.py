"""Inputs of a function: arguments and captured objects, as specifications and as values.

A specification is the guarded property of an input, on which compiled code depends: an array's
layout, a number's kind, a constant's value, an object's identity. Specifications are hashable and
compared on every call; a changed one means another specialisation, never a stale result.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, TypeGuard

import numpy as np

from ....backends.overrides import ITEMS, OF_NUMBERS, OF_SEQUENCES, overridden
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
from .instances import FUNCTIONS, c_method_of, fields_of, has_state, is_instance, is_method

LONGEST = 40
"""Maximum length of an attribute's source text that serves as its key."""
DEEPEST = 64
"""Maximum nesting of lists and tuples in an input: the maximum number of axes of an array."""


def is_static(name: str, value: object, statics: frozenset[str]) -> bool:
    """Whether an argument is a constant of the code: an integer for a static parameter; floats
    passed for the same parameter stay run-time values."""
    return name in statics and not isinstance(value, float | complex | np.inexact)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array: element type, shape, strides in elements (None: C order).

    A size of None is dynamic, and at least 2. `nearest` is that of a `Node`.
    """

    dtype: DType
    shape: tuple[int | None, ...]
    strides: tuple[int, ...] | None
    listed: Listed = Listed.NO
    """Whether a list was passed: `+` and `*` of lists differ from those of arrays."""
    placed: bool = False
    """Whether it resides on a device, in a layout other than C order."""
    nearest: int | None = None
    swapped: bool = False
    """Whether it is in another byte order than this machine's."""


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """A run-time number."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class ConstantSpec:
    """A constant, compared by type and by bit-identical value."""

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
    """An object that is compared by its type; each attribute read of it is a separate input.

    It holds no reference to the object.
    """

    type: type


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """The function of a bound method, in Python or C; its owner is a separate input."""

    type: type
    id: int
    function: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A tuple or list of inputs."""

    kind: str
    items: tuple[Spec, ...]
    fields: tuple[str, ...] = ()
    named_tuple: type | None = None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A persistent tensor: its element type, shape and declared fields. It holds no reference."""

    dtype: DType
    shape: tuple[int, ...]
    fields: tuple[str, ...]
    memory: str
    """The requested memory mode, empty where none was."""


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

    `describe` returns the layout of an array, None for other objects. Raises what it does, and
    CdTypeError CD0702 for lists and tuples that nest too deeply.
    """
    if isinstance(value, np.ndarray):
        spec = describe(value)
        if spec is not None:
            return spec
    if isinstance(value, int | float | complex | np.generic):
        _refuse_overridden_operators(value)
    kind = kind_of_number(value)
    if kind is not None:
        is_member = isinstance(value, enum.Enum)  # which has an identity
        plain = static or is_member or kind.dtype.kind == "b" or not _fits_int64(value)
        return ConstantSpec(type(value), constant_text(value), value) if plain else NumberSpec(kind)
    if isinstance(value, bytearray):
        raise _bytearray_error(value)
    if isinstance(value, ArrayType) and value.sizes is None:
        value = Word(value.dtype.short)
    if isinstance(value, (*_PLAIN, DType, Word)):
        _refuse_overridden_text(value)
        return ConstantSpec(type(value), constant_text(value), value)
    if is_tensor(value):
        return TensorSpec(value.dtype, value.shape, value.fields, _requested_mode(value))
    if isinstance(value, tuple | list):
        if not depth:
            raise _depth_error(value)
        _refuse_overridden_items(value)
        items = tuple(spec_of(item, describe, True, is_tensor, depth - 1) for item in value)
        numbers = isinstance(value, list) and not static and all(map(_is_numeric, items))
        if not (numbers and items):
            word = "list" if type(value) is list else "tuple"
            fields = fields_of(value)
            return GroupSpec(word, items, fields, type(value) if fields else None)
    if is_method(value):
        function = getattr(value, "__func__")  # noqa: B009 - any method-like object
        return MethodSpec(type(value), id(function), function)
    if (function := c_method_of(value)) is not None:
        return MethodSpec(type(value), id(function), function)
    if not isinstance(value, FUNCTIONS):
        spec = describe(value)
        if spec is not None:
            return replace(spec, listed=_list_kind(value))
    return InstanceSpec(type(value)) if is_instance(value) else ObjectSpec(id(value), value)


def _refuse_overridden_operators(value: object) -> None:
    """Refuse (CD0701) a number of a user's class that overrides operators or conversions."""
    kind = type(value)
    if kind in _PYTHON or (name := overridden(kind, OF_NUMBERS)) is None:
        return
    bases = (base.__name__ for base in _PYTHON if isinstance(value, base))
    base = "np.asarray" if isinstance(value, np.generic) else next(bases)
    raise _override_error(kind, name, f"pass the number: `{base}(...)`")


def _refuse_overridden_items(value: tuple[object, ...] | list[object]) -> None:
    """Refuse (CD0701) a tuple or list of a user's class that yields other items than it holds, or
    overrides operators; those of named tuples are refused where they are used."""
    kind = type(value)
    names = ITEMS if fields_of(value) else (*ITEMS, *OF_SEQUENCES)
    if kind is tuple or kind is list or (name := overridden(kind, names)) is None:
        return
    base = "list" if isinstance(value, list) else "tuple"
    raise _override_error(kind, name, f"pass what it holds: `{base}(...)`")


def _refuse_overridden_text(value: object) -> None:
    """Refuse (CD0701) a text of a user's class that overrides operators, items or its length."""
    if not isinstance(value, str | bytes) or type(value) in (str, bytes):
        return
    if (name := overridden(type(value), (*ITEMS, *OF_SEQUENCES, "__hash__"))) is not None:
        base = "str" if isinstance(value, str) else "bytes"
        raise _override_error(type(value), name, f"pass what it holds: `{base}(...)`")


def _override_error(kind: type, name: str, way_out: str) -> CdTypeError:
    text = f"an object of type {kind.__name__} overrides `{name}`, which would not be called"
    return CdTypeError(Diagnostic("CD0701", text, helps=(way_out,)))


def _bytearray_error(value: bytearray) -> CdTypeError:
    """Return CdTypeError CD0701 for a bytearray: a list of Python integers, no array of them."""
    text = f"a bytearray of {len(value)} is no array"
    helps = ("pass its elements as an array: `np.frombuffer(b, np.uint8)`",)
    return CdTypeError(Diagnostic("CD0701", text, helps=helps))


def _depth_error(value: tuple[object, ...] | list[object]) -> CdTypeError:
    message = f"a {type(value).__name__} holds itself, or nests more than {DEEPEST} deep"
    return CdTypeError(Diagnostic("CD0702", message, helps=("pass its parts as arguments",)))


def _list_kind(value: object) -> Listed:
    """Return whether a value is a list, and whether all numbers in it are Python numbers."""
    if not isinstance(value, list):
        return Listed.NO
    all_python = all(
        _list_kind(item) is Listed.NUMBERS if isinstance(item, list) else type(item) in _PYTHON
        for item in value
    )
    return Listed.NUMBERS if all_python else Listed.LIST


def _fits_int64(value: object) -> bool:
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
class CapturedValue:
    """A captured object with its fingerprint at first lookup: None where it has none."""

    value: object
    words: fingerprint.Description | None

    @classmethod
    def of(cls, value: object) -> CapturedValue:
        """Return the object with its present fingerprint."""
        return cls(value, fingerprint.try_describe(value))


@dataclass(frozen=True, slots=True)
class Assigned:
    """An attribute that the function assigns, and the location of its first assignment."""

    owner: Opaque
    name: str
    span: Span

    @property
    def path(self) -> Path:
        """The path to the attribute."""
        owner = self.owner.path
        return Path(owner.root, (*owner.steps, self.name), owner.captured)


DynamicArrays = Mapping[Path, tuple[object, ArraySpec]]
"""Arrays with dynamic sizes by their paths, each with the specification to compile it for: the
same array may be at another path, with static sizes."""

MERGED = ".merge"
"""Suffix of the last step of a path to a field's version in the merge buffer."""


@dataclass
class Inputs:
    """The inputs of one elaboration: specifications, aliases, and the paths that were used.

    `used` maps each path that the compiled code depends on to its specification; `nodes` maps
    the paths that are passed to the code to their nodes, in order.
    """

    describe: Callable[[object, bool], Spec]
    alias: Mapping[Path, Path]
    numbers: frozenset[Path] = frozenset()
    """The paths of numeric attributes that are passed in each call."""
    given: frozenset[Path] = frozenset()
    """The paths of attributes that the function assigns: their numbers are passed in each call."""
    inlines_properties: bool = False
    """Whether properties of objects are inlined, because they read what the function writes."""
    dynamic: DynamicArrays = field(default_factory=dict)
    properties: bool = False
    """Whether any property was read."""
    used: dict[Path, Spec] = field(default_factory=dict)
    nodes: dict[Path, Node] = field(default_factory=dict)
    handles: dict[Path, Handle] = field(default_factory=dict)
    """The tensors among the inputs."""
    fleeting: dict[Path, Node] = field(default_factory=dict)
    """The local arrays that represent tensors that are virtual or local to a call."""
    parsed: dict[object, s.Function] = field(default_factory=dict)
    """Memo of functions parsed in this elaboration, by object or text."""
    roots: dict[str, Callable[[str], object]] = field(default_factory=dict)
    """The lookups of captured names of inlined functions, by the prefix of their paths."""
    owners: dict[str, object] = field(default_factory=dict)
    constants: dict[str, object] = field(default_factory=dict)
    """Captured roots that are no names: default values of inlined functions."""
    tables: dict[object, str] = field(default_factory=dict)
    """The roots of constant tables, by contents."""
    read: dict[tuple[str, str], CapturedValue] = field(default_factory=dict)
    """The value of each captured name that was looked up, by the function's prefix and the name."""
    asked: dict[tuple[int, str], tuple[CapturedValue, str, CapturedValue]] = field(
        default_factory=dict
    )
    """The attributes that were read as constants: their owners and values."""
    compared: dict[Path, None] = field(default_factory=dict)
    """The paths of objects that are specified by type, but whose identity relations are guarded."""
    number_ids: dict[Path, int] = field(default_factory=dict)
    """The identity, in this call, of each number that it passes."""
    group_ids: dict[Path, int] = field(default_factory=dict)
    """The identity, in this call, of each tuple or list that was unpacked."""
    made: set[int] = field(default_factory=set)
    """The identities of objects that the function makes, which are among `constants`."""
    alone: set[str] = field(default_factory=set)
    """Names that are written by elements only, and are unbound in the enclosing scope."""
    assigned: dict[str, Assigned] = field(default_factory=dict)
    """The attributes that the function assigns, by their `keys`, in order."""
    keys: dict[tuple[int, str], str] = field(default_factory=dict)
    """Their keys in frames, by the object's identity and the attribute's name."""
    seen: dict[str, dict[Path, Opaque]] = field(default_factory=dict)
    """The objects whose attributes were read, by the attribute's name and the object's path."""
    steady: bool = True
    """Whether elaboration is reproducible in another process for equal inputs."""

    def noting(self, prefix: str, lookup: Callable[[str], object]) -> Callable[[str], object]:
        """Return the lookup of a function's names, which records their values in `read`."""

        def recording_lookup(name: str) -> object:
            value = lookup(name)
            recorded = self.read.get((prefix, name))
            if recorded is None:
                self.read[prefix, name] = CapturedValue.of(value)
            elif recorded.value is not value:
                self.steady = False  # another thread rebound it meanwhile
            return value

        return recording_lookup

    def ask(self, owner: object, name: str, value: object) -> None:
        """Record an attribute that is read as a constant."""
        if not fingerprint.is_immutable(owner):
            self.asked[id(owner), name] = CapturedValue.of(owner), name, CapturedValue.of(value)

    def compare(self, first: Opaque, second: Opaque) -> None:
        """Guard on whether two objects are identical, where no specification implies it."""
        if is_instance(first.value) and is_instance(second.value):
            self.compare_paths(first.path, second.path)

    def compare_paths(self, first: Path, second: Path) -> None:
        """Guard on whether two inputs are identical, where no specification implies it."""
        if first != second:
            self.compared |= {first: None, second: None}

    def compare_groups(self, first: object, second: object) -> bool:
        """Return whether two tuples or lists are one object, guarded where they are inputs."""
        if not (isinstance(first, Path) and isinstance(second, Path)):
            return first is second
        self.compare_paths(first, second)
        return self.group_ids[first] == self.group_ids[second]

    def key_of(self, owner: Opaque, name: str, text: str) -> str:
        """Return the key of an object's attribute in frames, the same for every path to the object;
        the first is `text`, as in the source, made unique."""
        attribute_id = id(owner.value), name
        if attribute_id not in self.keys:
            key = text if len(text) <= LONGEST else f"{owner.path.label}.{name}"
            self.keys[attribute_id] = f"{key}'{len(self.keys)}" if key in self.assigned else key
        return self.keys[attribute_id]

    def root(self, owner: object, lookup: Callable[[str], object]) -> str:
        """Return the prefix of captured paths of an inlined function, one for each function."""
        for prefix, existing in self.owners.items():
            if existing is owner:
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
        array, dynamic_spec = self.dynamic.get(path, (None, None))
        is_dynamic = array is value and not (static and path.is_parameter)
        if dynamic_spec is not None and is_dynamic:  # else another thread replaced it
            spec: Spec = dynamic_spec
        else:
            spec = self.describe(value, static and not given)
        if not (isinstance(spec, GroupSpec) and path in self.used):
            self.used[path] = spec
        return self._value(ctx, path, spec, value, span)

    def _value(self, ctx: Context, path: Path, spec: Spec, given: Any, span: Span) -> Value:
        """Return the value of an input that is given, by its specification."""
        match spec:
            case ArraySpec(dtype, shape, strides, listed, placed, nearest, swapped):
                layout = dtype, shape, strides, placed, nearest
                node = self.node(ctx, path, path.label, *layout)
                if swapped:
                    ctx.swapped[node] = np.asarray(given).dtype
                return replace(ctx.whole(node, span), listed=listed, given=(id(given), path))
            case NumberSpec(kind):
                self.number_ids[path] = id(given)
                return self._number(ctx, path, kind, span)
            case ConstantSpec(_, _, value):
                return Static(value)
            case ObjectSpec(_, value):
                return Opaque(value, path) if has_state(value) else Static(value)
            case InstanceSpec() | MethodSpec():
                return Opaque(given, path)
            case GroupSpec(kind, items, fields, named_tuple):
                parts = []
                for n, (item, element) in enumerate(zip(items, given, strict=True)):
                    inner = Path(path.root, (*path.steps, n), path.captured)
                    parts.append(self._value(ctx, inner, item, element, span))
                self.group_ids[path] = id(given)
                return Group(tuple(parts), kind, fields, named_tuple, path)
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
        """Return the parameter node of a path, or of the path that it is an alias of."""
        path = self._represented(path)
        if path not in self.nodes:
            ctx.serial += 1
            sizes = enumerate(shape)
            extents = tuple(ctx.size(f"{label}_{at}") if n is None else const(n) for at, n in sizes)
            node = Node(ctx.serial, label, extents, dtype, strides, None, "", placed, nearest)
            self.nodes[path] = node
            ctx.parameters[path] = Parameter(node, False)
        return self.nodes[path]

    def node_at(self, path: Path) -> Node | None:
        """Return the parameter node that stores the input at a path, None where there is none."""
        return self.nodes.get(self._represented(path))

    def _represented(self, path: Path) -> Path:
        """Return the path whose node represents an input: of the one that it is an alias of."""
        while path in self.alias:
            path = self.alias[path]
        return path

    def constant(self, ctx: Context, data: np.ndarray[Any, Any], dtype: DType) -> Node:
        """Return the hidden input for a constant table, shared by equal tables."""
        contents = data.dtype.str, data.shape, data.tobytes()
        root = self.tables.setdefault(contents, f"{TABLE}{len(self.tables)}")
        if root not in self.constants:
            data.setflags(write=False)
            self.constants[root] = data
        node = self.node(ctx, Path(root, (), True), "table", dtype, data.shape, None)
        ctx.tables[node] = data
        return node

    def field(
        self, ctx: Context, handle: Handle, name: str, span: Span, merged: bool = False
    ) -> Array:
        """Return a field of a tensor as an array, with `merged` another stream's version of it.

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
        node = self._field_node(ctx, path, label, tensor)
        return ctx.whole(node, span)

    def _field_node(self, ctx: Context, path: Path, label: str, tensor: TensorLike) -> Node:
        """Return the node of a field: a parameter, or a local array for a nonpersistent tensor."""
        request = tensor.request
        if request is None:
            return self.node(ctx, path, label, tensor.dtype, tensor.shape, None)
        if not _is_nonpersistent(tensor):
            node = self.node(ctx, path, label, tensor.dtype, tensor.shape, None)
            canonical = path
            while canonical in self.alias:
                canonical = self.alias[canonical]
            parameter = ctx.parameters[canonical]
            if parameter.node.request is None:  # later requests are merged into it, see `requests`
                new = replace(parameter.node, request=request)
                ctx.parameters[canonical] = replace(parameter, node=new)
            return node
        path = self._first_path(path, tensor)
        if path not in self.fleeting:
            node = ctx.node(label, tuple(map(const, tensor.shape)), tensor.dtype)
            self.fleeting[path] = ctx.locals[-1] = replace(node, request=request)
        node = self.fleeting[path]
        if all(local.id != node.id for local in ctx.locals):  # its first use is being re-elaborated
            ctx.locals.append(node)
        return node

    def _first_path(self, path: Path, tensor: TensorLike) -> Path:
        """Return the first path that led to a field: a tensor passed twice is one input."""
        for first in self.fleeting:
            owner = first.owner
            is_same_tensor = owner is not None and self.handles[owner].tensor is tensor
            if is_same_tensor and first.steps[-1] == path.steps[-1]:
                return first
        return path

    def nowhere(self) -> tuple[Path, ...]:
        """Return the paths of tensors that are virtual or local to a call."""
        return tuple(
            path for path, handle in self.handles.items() if _is_nonpersistent(handle.tensor)
        )

    def _number(self, ctx: Context, path: Path, kind: Kind, span: Span) -> Scalar:
        name = path.label
        node = self.node(ctx, path, name, kind.dtype, (), None)
        if kind.dtype.kind not in "iu":
            return Scalar(Read(node, (), span), kind)
        value = cast(Read(node, (), span), dtypes.int64)
        known = (s.symbol for s in ctx.prologue if isinstance(s, Let) and s.value == value)
        symbol = next(known, None)
        if symbol is None:
            symbol = ctx.symbol(name)
            ctx.prologue.append(Let(symbol, value, span))
            ctx.origin[symbol] = str(path)
        return Scalar(cast(ctx.scalar_index(symbol).expr, kind.dtype), kind)


def _is_nonpersistent(tensor: TensorLike) -> bool:
    return tensor.request is not None and tensor.request.mode in (VIRTUAL, LOCAL)


def _requested_mode(tensor: TensorLike) -> str:
    return "" if tensor.request is None else str(tensor.request.mode)
