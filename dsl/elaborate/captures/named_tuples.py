"""Construction of named tuples in a function: tuples with field names and a class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import getattr_static
from types import FunctionType
from typing import Any, NamedTuple

from ....backends.overrides import BY_SIGN, REFLECTED, overridden
from ....base.diagnostic import CdTypeError, Span
from ...values.builder import error
from ...values.values import Group, Value
from ..scope import Frame
from .instances import fields_of_class, is_library
from .owners import below, compare, held, way_to


def is_named_tuple(kind: object) -> bool:
    """Whether an object is a named-tuple class with the default constructor."""
    if not isinstance(kind, type) or not issubclass(kind, tuple) or not fields_of_class(kind):
        return False
    scope = getattr(kind.__new__, "__globals__", {})
    plain = scope.get("_tuple_new") is tuple.__new__  # that of `collections.namedtuple`
    return plain and kind.__init__ is tuple.__init__ and type(kind) is type


def named_tuple(
    frame: Frame, kind: type, args: tuple[Value, ...], keywords: Mapping[str, Value], span: Span
) -> Group:
    """Return the named tuple that a call of its class constructs.

    CdTypeError CD0429 where the arguments do not match the fields.
    """
    fields, name = fields_of_class(kind), kind.__name__
    if len(args) > len(fields):
        text = f"`{name}` is called with {len(args) - len(fields)} arguments too many"
        raise error("CD0429", CdTypeError, text, span)
    bound = dict(zip(fields, args, strict=False))
    for key, value in keywords.items():
        if key not in fields or key in bound:
            raise error("CD0429", CdTypeError, f"unknown argument `{key}` of `{name}`", span)
        bound[key] = value
    defaults: Mapping[str, object] = getattr(kind, "_field_defaults", {})
    for key in fields:
        if key not in bound:
            if key not in defaults:
                text = f"`{name}` is called without its argument `{key}`"
                raise error("CD0429", CdTypeError, text, span)
            bound[key] = held(frame, defaults[key], span)
    return Group(tuple(bound[key] for key in fields), "tuple", fields, kind)


class Member(NamedTuple):
    """A method or property that the user's class of a named tuple defines."""

    function: Any  # a `FunctionType`, of which a checker would make a method
    is_property: bool
    is_bound: bool
    """Whether it takes the tuple first: it is no static method."""


def own_member(frame: Frame, group: Group, name: str) -> Member | None:
    """Return what the user's class of a named tuple defines by a name, None for anything else.

    It is inlined, so that it is looked up and compared before each call.
    """
    kind: Any = group.named_tuple
    if kind is None or name in group.fields or isinstance(kind.__getattribute__, FunctionType):
        return None
    match getattr_static(kind, name, None):
        case property(fget=FunctionType() as function):
            member = Member(function, True, True)
        case staticmethod(__func__=FunctionType() as function):
            member = Member(function, False, False)
        case FunctionType() as function:
            member = Member(function, False, True)
        case _:
            return None
    if is_library(member.function):
        return None
    steps = (name, "fget") if member.is_property else (name,)
    compare(frame, below(way_to(frame, kind), *steps), member.function)
    return member


def require_plain_operator(op: str, left: Value, rights: Iterable[Value], span: Span) -> None:
    """Refuse (CD0402) an operator on named tuples whose class overrides it."""
    of = BY_SIGN[op]
    lefts = (f"__{of}__", f"__i{of}__", *(("__eq__",) if of == "ne" else ()))  # which it negates
    sides = [(left, lefts), *((right, (f"__{REFLECTED.get(of, 'r' + of)}__",)) for right in rights)]
    for value, names in sides:
        kind = value.named_tuple if isinstance(value, Group) else None
        if kind is not None and (name := overridden(kind, names)) is not None:
            text = f"`{op}` of `{kind.__name__}` is its own `{name}`, which would not be called"
            helps = ("write here what it does with the fields",)
            raise error("CD0402", CdTypeError, text, span, helps=helps)


def replaced(
    group: Group, args: tuple[Value, ...], changes: Mapping[str, Value], span: Span
) -> Group:
    """Return the result of a named tuple's `_replace`; CdTypeError CD0429 for unknown fields."""
    wrong = next((key for key in changes if key not in group.fields), None)
    if args or wrong is not None:
        text = f"unknown argument `{wrong}` of `_replace`" if wrong else "`_replace` takes names"
        raise error("CD0429", CdTypeError, text, span, helps=(f"it has {', '.join(group.fields)}",))
    pairs = zip(group.fields, group.items, strict=True)
    items = tuple(changes.get(key, value) for key, value in pairs)
    return Group(items, group.kind, group.fields, group.named_tuple)
