"""Assigned attributes of objects, `self.t += dt`: mutable state in value-passing style.

The current binding of such an attribute is in the frame under a key that is no Python name,
`self.t`, so that branches merge it and loops carry it like any local; an inlined function takes it
from its caller and hands it back. The final binding is stored after the run (`Updating`).
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from inspect import getattr_static

import numpy as np

from ...base.diagnostic import CdError, CdNameError, CdTypeError, Span
from ...lowering.ir.assignments import Statement
from ...lowering.ir.rewrite import map_statements
from ...lowering.ir.walk import direct_writes
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.arrays import describe
from ..values.builder import error
from ..values.types import Kind, kind_of_number
from ..values.values import Array, Bound, Lazy, Opaque, Path, Scalar, Static, Unset, Value
from .aliasing import seeing
from .bindings import bind
from .captures import owners
from .captures.inputs import Assigned, ConstantSpec
from .captures.instances import computes_attributes, has_plain, is_library
from .scope import Frame

SET = " is set"
"""Suffix of an attribute's key: the flag whether the function has assigned it so far."""
_BUILTIN = (int, float, complex, bool)
"""Value types: equal objects are interchangeable."""


def current(frame: Frame, owner: Opaque, name: str, span: Span) -> Value | None:
    """Return the current binding of an assigned attribute, None for any other.

    CdNameError CD0202 where it has no value on some paths.
    """
    inputs = frame.inputs
    inputs.seen.setdefault(name, {})[owner.path] = owner
    value = frame.names.get(inputs.keys.get((id(owner.value), name), ""))
    if isinstance(value, Unset):
        raise error("CD0202", CdNameError, f"`{span.text}` {value.reason}", span, helps=value.helps)
    return value


def assign(
    frame: Frame,
    owner: Opaque,
    target: s.Attribute,
    value: Value,
    span: Span,
    op: str = "",
) -> None:
    """Bind an attribute of an object to a value, as `owner.name op= ...` does.

    `span` is the statement. CdTypeError CD0418 where the assignment is no plain binding in Python.
    """
    name, inputs = target.name, frame.inputs
    _require_bindable(frame, owner, value, target, op)
    inputs.seen.setdefault(name, {})[owner.path] = owner
    key = inputs.key_of(owner, name, target.span.text)
    inputs.assigned[key] = Assigned(owner, name, span)
    bind(frame, key, value, span)
    bind(frame, key + SET, Static(True), span)


def property_of(frame: Frame, owner: Opaque, name: str, span: Span) -> types.FunctionType | None:
    """Return the getter of a property that is inlined, because it may read state that the function
    writes; None for others, which are evaluated before each call.

    CdTypeError CD0418 for other computed attributes that may read assigned state.
    """
    kind = type(owner.value)
    member = getattr_static(kind, name, None)
    if is_library(kind):
        return None
    getter = (
        getattr(member.fget, "__wrapped__", member.fget) if isinstance(member, property) else None
    )
    if computes_attributes(owner.value):
        getter = None
    if not isinstance(getter, types.FunctionType):  # a `@cd` function is inlined as well
        if _is_computed(owner.value, name, member):
            for attr in frame.inputs.assigned.values():
                if attr.owner.value is owner.value:
                    text = f"`{span.text}` is computed by Python, before `{attr.name}` is assigned"
                    helps = ("make it a property that is a Python function",)
                    raise error("CD0418", CdTypeError, text, span, helps=helps)
        return None
    frame.inputs.properties = True
    if not frame.inputs.inlines_properties:
        return None
    owners.compare(frame, owners.below(owner.path, "__class__", name, "fget"), member.fget)
    return getter


def _is_computed(owner: object, name: str, member: object) -> bool:
    """Whether an attribute is computed by Python code: a descriptor, `__getattr__`, or
    `__getattribute__`."""
    if computes_attributes(owner):
        return True
    if name in getattr(owner, "__dict__", ()):
        return isinstance(member, property)
    if member is None:
        return hasattr(type(owner), "__getattr__")
    getter = getattr(type(member), "__get__", None)
    return isinstance(member, property | cached_property) or (
        isinstance(getter, types.FunctionType) and not is_library(type(member))
    )


def before(frame: Frame, key: str) -> Value | None:
    """Return the initial binding of an attribute, or of its flag (false), by its key; None for
    other names, and for an attribute that the object lacks."""
    assigned = frame.inputs.assigned
    if key.endswith(SET) and key.removesuffix(SET) in assigned:
        return Static(False)
    if (attribute := assigned.get(key)) is None:
        return None
    initial = getattr(attribute.owner.value, attribute.name, MISSING)
    if initial is MISSING:
        return None
    return frame.inputs.wrap(frame.ctx, attribute.path, initial, True, attribute.span)


def without_unread(frame: Frame, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return a function's body without the flags of attributes that may be stored
    unconditionally; their variables are removed, too."""
    certain = {key + SET for key in frame.inputs.assigned if is_certain(frame, key)}
    unread = {node for node in frame.ctx.locals if node.label in certain}
    if not unread:
        return body
    frame.ctx.locals[:] = [node for node in frame.ctx.locals if node not in unread]
    return map_statements(
        body,
        lambda statement: () if unread.intersection(direct_writes(statement)) else (statement,),
    )


def kind_of(value: Value) -> Kind | None:
    """Return the kind of a number, None for anything else."""
    if isinstance(value, Static):
        return kind_of_number(value.value)
    return value.kind if isinstance(value, Scalar) else None


def states(frame: Frame, names: Mapping[str, Value]) -> dict[str, Value]:
    """Return the bindings that are attributes of objects."""
    if not frame.inputs.assigned:
        return {}
    return {key: value for key, value in names.items() if is_state(frame, key)}


def is_state(frame: Frame, key: str) -> bool:
    """Whether a name of a frame is the key of an attribute, or of its flag."""
    return key.removesuffix(SET) in frame.inputs.assigned


def hand_on(frame: Frame, inner: Frame) -> None:
    """Bind attributes in an inlined function as in its caller; loop-carried numbers keep their
    variables."""
    inner.names = states(frame, frame.names)
    numbers = (key for key in inner.names if isinstance(frame.slots.get(key), Scalar))
    inner.slots = {key: frame.slots[key] for key in numbers}


def hand_back(frame: Frame, inner: Frame, result: Value, span: Span) -> None:
    """Take over the bindings of attributes from an inlined function with that result.

    CdTypeError CD0418 where the result is the array in which a loop carries an attribute.
    """
    for key, value in states(inner, inner.names).items():
        if value == frame.names.get(key):
            continue
        if key in frame.slots:
            slot = frame.slots[key]
            if isinstance(slot, Array) and slot.base is not None:
                if seeing({"": result}, {slot.base.node}):
                    why = "gets another array here, and the call gives the one that it was"
                    text = f"`{key}` {why}"
                    raise error("CD0418", CdTypeError, text, span, helps=("return a copy",))
                frame.ctx.rebound.add(slot.base.node)
            bind(frame, key, value, span)
            continue
        frame.names[key] = value
        if key in inner.variables:
            frame.variables[key] = inner.variables[key]


def to_be_given(frame: Frame) -> frozenset[Path]:
    """Return the paths of the numbers that the function assigns and that were read as constants."""
    specs = frame.inputs.used
    return frozenset(
        path
        for key, attribute in frame.inputs.assigned.items()
        for path in (attribute.path, *_read_paths(frame, key, attribute))
        if isinstance(spec := specs.get(path), ConstantSpec)
        and spec.type is not bool
        and kind_of_number(spec.value) is not None
    )


def _read_paths(frame: Frame, key: str, attribute: Assigned) -> Iterator[Path]:
    """Yield the paths by which an assigned attribute was read."""
    for path, owner in frame.inputs.seen.get(attribute.name, {}).items():
        if frame.inputs.keys.get((id(owner.value), attribute.name)) == key:
            yield Path(path.root, (*path.steps, attribute.name), path.captured)


def compare_owners(frame: Frame) -> None:
    """Add guards on which owners of an assigned attribute are the same object."""
    for attribute in frame.inputs.assigned.values():
        for owner in frame.inputs.seen[attribute.name].values():
            if type(owner.value) is type(attribute.owner.value):
                frame.inputs.compare(attribute.owner, owner)


def is_certain(frame: Frame, key: str) -> bool:
    """Whether an attribute may be stored unconditionally: it is assigned on every path, or its
    stored value is the initial one where it is not."""
    if frame.names.get(key + SET, Static(True)) == Static(True):
        return True
    attribute = frame.inputs.assigned[key]
    owner, now = attribute.owner.value, frame.names[key]
    initial = getattr(owner, attribute.name, MISSING)
    alike = type(initial) in _BUILTIN or isinstance(initial, np.generic)
    return alike and has_plain(owner, attribute.name) and kind_of(now) == kind_of_number(initial)


def refused(span: Span, why: str, helps: tuple[str, ...], op: str = "") -> CdError:
    """Return CdTypeError CD0418 of `owner.name op= ...`."""
    return error("CD0418", CdTypeError, f"`{span.text} {op}= ...` {why}", span, helps=helps)


def _require_bindable(
    frame: Frame, owner: Opaque, value: Value, target: s.Attribute, op: str
) -> None:
    """Refuse (CD0418) assignments that are no plain binding in the object's `__dict__` or slots."""
    name, span = target.name, target.span
    ctx, kind = frame.ctx, type(owner.value)
    what, outside = f"of `{kind.__name__}`", "return the new value, and assign it outside"
    descriptor = getattr_static(kind, name, MISSING)
    slot = isinstance(descriptor, types.MemberDescriptorType)
    if isinstance(owner.value, type | types.ModuleType):
        why, way = f"would rebind an attribute {what}, which other names lead to", outside
    elif id(owner.value) in frame.inputs.made:
        why = f"would change an object {what} that the function makes, which is one in all calls"
        way = "make it with the new value, or outside of the function"
    elif ctx.pointwise or ctx.conditions:
        where = "at every point" if ctx.pointwise else "where a test inside an expression holds"
        why, way = f"would run {where}", "write it as a statement of the function"
    elif isinstance(kind.__setattr__, types.FunctionType):
        why = f"would rebind an attribute {what}, whose `__setattr__` says what that does"
        way = outside
    elif computes_attributes(owner.value):
        why = f"would rebind an attribute {what}, whose `__getattribute__` says what it then is"
        way = outside
    elif not slot and hasattr(type(descriptor), "__set__"):
        why, way = f"would rebind a property {what}", "assign the attributes that it sets"
    elif not slot and not hasattr(owner.value, "__dict__"):
        why, way = f"would rebind an attribute {what}, which can have none of that name", outside
    elif _is_tensor(frame, getattr(owner.value, name, None)):
        why = "would rebind an attribute that is a tensor"
        way = f"to write the array in place: `{span.text}[...] {op}= ...`"
    elif isinstance(value, Lazy | Bound):
        why, way = f"would rebind an attribute to {describe(value)}", "assign it outside"
    else:
        return
    raise refused(span, why, (way,), op)


def _is_tensor(frame: Frame, value: object) -> bool:
    with suppress(CdTypeError):
        return frame.inputs.is_tensor(value)
    return False
