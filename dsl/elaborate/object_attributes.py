"""Attributes of objects that a function assigns, `self.t += dt`: state that is threaded through.

What such an attribute is bound to by now is in the frame under a name that no Python name can be,
`self.t`, so that branches merge it and loops carry it like any local; an inlined function gets it
from its caller and hands it back. What is bound at the end is set after the run (`Updating`).
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
from ...lowering.ir.walk import own_writes
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
from .captures.instances import has_plain, is_library
from .scope import Frame

SET = " is set"
"""Behind the name of an attribute: whether the function has assigned it by now."""
_BUILTIN = (int, float, complex, bool)
"""Types of which two equal values are as good as one."""


def current(frame: Frame, owner: Opaque, name: str, span: Span) -> Value | None:
    """Return what an attribute that was assigned is bound to by now, None of any other.

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
    """Bind an attribute of an object to a value from here on, as `owner.name op= ...` does.

    `span` is the statement. CdTypeError CD0418 where Python would do something else than bind it.
    """
    name, inputs = target.name, frame.inputs
    _require_bindable(frame, owner, value, target, op)
    inputs.seen.setdefault(name, {})[owner.path] = owner
    key = inputs.key_of(owner, name, target.span.text)
    inputs.assigned[key] = Assigned(owner, name, span)
    bind(frame, key, value, span)
    bind(frame, key + SET, Static(True), span)


def property_of(frame: Frame, owner: Opaque, name: str, span: Span) -> types.FunctionType | None:
    """Return the getter of a property that is inlined, because it may look at what the function
    writes; None for others, which are asked for their value before each call.

    CdTypeError CD0418 for what Python computes otherwise, where it may look at what was assigned.
    """
    kind = type(owner.value)
    found = getattr_static(kind, name, None)
    if is_library(kind):
        return None
    getter = getattr(found.fget, "__wrapped__", found.fget) if isinstance(found, property) else None
    if not isinstance(getter, types.FunctionType):  # a `@cd` function is inlined, too
        if _is_computed(owner.value, name, found):
            for one in frame.inputs.assigned.values():
                if one.owner.value is owner.value:
                    text = f"`{span.text}` is computed by Python, before `{one.name}` is assigned"
                    helps = ("make it a property that is a Python function",)
                    raise error("CD0418", CdTypeError, text, span, helps=helps)
        return None
    frame.inputs.properties = True
    if not frame.inputs.inlines_properties:
        return None
    owners.compare(frame, owners.below(owner.path, "__class__", name, "fget"), found.fget)
    return getter


def _is_computed(owner: object, name: str, found: object) -> bool:
    """Whether code of Python's finds an attribute: a descriptor of a class, or `__getattr__`."""
    if name in getattr(owner, "__dict__", ()):
        return isinstance(found, property)
    if found is None:
        return hasattr(type(owner), "__getattr__")
    getter = getattr(type(found), "__get__", None)
    return isinstance(found, property | cached_property) or (
        isinstance(getter, types.FunctionType) and not is_library(type(found))
    )


def before(frame: Frame, key: str) -> Value | None:
    """Return what an attribute is bound to before the function assigns it, and that it is not set;
    None for other names, and for an attribute that the object has not."""
    assigned = frame.inputs.assigned
    if key.endswith(SET) and key.removesuffix(SET) in assigned:
        return Static(False)
    if (one := assigned.get(key)) is None:
        return None
    found = getattr(one.owner.value, one.name, MISSING)
    if found is MISSING:
        return None
    return frame.inputs.wrap(frame.ctx, one.path, found, True, one.span)


def without_unread(frame: Frame, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return a function's body without what says whether an attribute is set, and forget its
    variables, where it is right to set the attribute in any case."""
    certain = {key + SET for key in frame.inputs.assigned if is_certain(frame, key)}
    unread = {node for node in frame.ctx.locals if node.label in certain}
    if not unread:
        return body
    frame.ctx.locals[:] = [node for node in frame.ctx.locals if node not in unread]
    return map_statements(body, lambda one: () if unread.intersection(own_writes(one)) else (one,))


def kind_of(value: Value) -> Kind | None:
    """Return the kind of a number, None for anything else."""
    if isinstance(value, Static):
        return kind_of_number(value.value)
    return value.kind if isinstance(value, Scalar) else None


def states(frame: Frame, names: Mapping[str, Value]) -> dict[str, Value]:
    """Return those of some bindings that are attributes of objects."""
    if not frame.inputs.assigned:
        return {}
    return {key: value for key, value in names.items() if is_state(frame, key)}


def is_state(frame: Frame, key: str) -> bool:
    """Whether a name of a frame is that of an attribute, or says whether that is set."""
    return key.removesuffix(SET) in frame.inputs.assigned


def hand_on(frame: Frame, inner: Frame) -> None:
    """Have attributes be bound in an inlined function as they are where it is called; numbers that
    a loop carries stay where it keeps them."""
    inner.names = states(frame, frame.names)
    numbers = (key for key in inner.names if isinstance(frame.slots.get(key), Scalar))
    inner.slots = {key: frame.slots[key] for key in numbers}


def hand_back(frame: Frame, inner: Frame, result: Value, span: Span) -> None:
    """Bind attributes as an inlined function has left them, whose result is that.

    CdTypeError CD0418 where a loop keeps an attribute in an array that the result is.
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
    """Return the ways to the numbers that the function assigns and that were taken as constants."""
    used = frame.inputs.used
    return frozenset(
        path
        for key, one in frame.inputs.assigned.items()
        for path in (one.path, *_ways(frame, key, one))
        if isinstance(spec := used.get(path), ConstantSpec)
        and spec.type is not bool
        and kind_of_number(spec.value) is not None
    )


def _ways(frame: Frame, key: str, one: Assigned) -> Iterator[Path]:
    """Yield the ways by which an assigned attribute was looked at."""
    for path, owner in frame.inputs.seen.get(one.name, {}).items():
        if frame.inputs.keys.get((id(owner.value), one.name)) == key:
            yield Path(path.root, (*path.steps, one.name), path.captured)


def compare_owners(frame: Frame) -> None:
    """Note that it matters which of the objects are one of which an assigned attribute is seen."""
    for one in frame.inputs.assigned.values():
        for other in frame.inputs.seen[one.name].values():
            if type(other.value) is type(one.owner.value):
                frame.inputs.compare(one.owner, other)


def is_certain(frame: Frame, key: str) -> bool:
    """Whether setting an attribute is right whether or not the function has assigned it: it surely
    has, or what is set is what was there."""
    if frame.names.get(key + SET, Static(True)) == Static(True):
        return True
    one = frame.inputs.assigned[key]
    owner, now = one.owner.value, frame.names[key]
    found = getattr(owner, one.name, MISSING)
    alike = type(found) in _BUILTIN or isinstance(found, np.generic)
    return alike and has_plain(owner, one.name) and kind_of(now) == kind_of_number(found)


def refused(span: Span, why: str, helps: tuple[str, ...], op: str = "") -> CdError:
    """Return CdTypeError CD0418 of `owner.name op= ...`."""
    return error("CD0418", CdTypeError, f"`{span.text} {op}= ...` {why}", span, helps=helps)


def _require_bindable(
    frame: Frame, owner: Opaque, value: Value, target: s.Attribute, op: str
) -> None:
    """Refuse (CD0418) what Python would not do by binding a name in the object."""
    name, span = target.name, target.span
    ctx, kind = frame.ctx, type(owner.value)
    what, outside = f"of `{kind.__name__}`", "return the new value, and assign it outside"
    found = getattr_static(kind, name, MISSING)
    slot = isinstance(found, types.MemberDescriptorType)
    if isinstance(owner.value, type | types.ModuleType):
        why, way = f"would rebind an attribute {what}, which other names lead to", outside
    elif ctx.pointwise or ctx.conditions:
        where = "at every point" if ctx.pointwise else "where a test inside an expression holds"
        why, way = f"would run {where}", "write it as a statement of the function"
    elif isinstance(kind.__setattr__, types.FunctionType):
        why = f"would rebind an attribute {what}, whose `__setattr__` says what that does"
        way = outside
    elif not slot and hasattr(type(found), "__set__"):
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
