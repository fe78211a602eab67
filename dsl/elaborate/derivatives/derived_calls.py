"""Calls of functions that are made for the kinds of their arguments: derivatives.

Such a function is asked for its source with arguments that stand in for the values of the call:
arrays and numbers of their types and sizes, and objects as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ....base.diagnostic import CdTypeError, Span
from ...source import surface as s
from ...values.builder import NeedStatic, error
from ...values.types import Kind
from ...values.values import Array, Group, Handle, Opaque, Path, Scalar, Static, Value
from ..captures.owners import below, compare, way_to
from ..scope import Frame
from ..typed import Typed

_STEPS = ("derived_from", "__wrapped__")
"""The attributes that lead from a derivative to the function of Python that it is made of."""
Lookup = Callable[[str], object]


def source_of_call(
    frame: Frame, function: Any, args: Sequence[Value], keywords: Mapping[str, Value], span: Span
) -> tuple[s.Function, Lookup]:
    """Return the source of a function under `@cd`, for the arguments of a call where it is made for
    these, and its scope.

    Raises NeedStatic where the size of an array is dynamic, CdTypeError CD0480 for what no argument
    stands in for, and what making it raises.
    """
    source: tuple[s.Function, Lookup]
    if not hasattr(function, "__cd_for_values__"):
        source = function.__cd_function__()
        return source
    given, named, numbers = _stand_ins(args, keywords, span)
    path, origin = way_to(frame, function), function
    for step in _STEPS:
        while hasattr(origin, step):
            path, origin = below(path, step), getattr(origin, step)
    if isinstance(origin, FunctionType):  # replaced code is derived again
        compare(frame, below(path, "__code__"), origin.__code__)
    surface, lookup, typed = function.__cd_for_values__(given, named, numbers)
    _adopt_guards(frame, typed, function, function.derived_lookup)
    return surface, lookup


def rules_of_call(
    function: Any, args: Sequence[Value], keywords: Mapping[str, Value], span: Span
) -> Any:
    """Return the derivatives of a derivative that uses rules of the user, which its source does not
    have: as rules of its own; None for any other function.

    CdTypeError CD0480 for one of several kinds of outputs.
    """
    if not hasattr(function, "__cd_for_values__"):
        return None
    given, named, numbers = _stand_ins(args, keywords, span)
    if not function.__cd_for_values__(given, named, numbers)[2].has_rules:
        return None
    names = [*function.__signature__.parameters]
    values = {**dict(zip(names, args, strict=False)), **keywords}
    floats = [name for name in names if name in values and _is_of_floats(values[name])]
    rules = function.__cd_rules__(tuple(floats))
    if rules is None:
        text = f"`{function.__name__}` is differentiated again here, and uses derivative rules"
        helps = ("call `pe.gradient(f, ...)` or `pe.vjp(f, ...)`, of arrays and numbers",)
        raise error("CD0480", CdTypeError, text, span, helps=helps)
    return rules


def _is_of_floats(value: Value) -> bool:
    return isinstance(value, Array | Scalar) and value.kind.dtype.kind == "f"


def _stand_ins(
    args: Sequence[Value], keywords: Mapping[str, Value], span: Span
) -> tuple[list[object], dict[str, object], list[object]]:
    """Return arguments that stand in for values, and which of them are run-time numbers."""
    numbers: list[object] = []
    given = [_stand_in(value, numbers, span) for value in args]
    return given, {n: _stand_in(value, numbers, span) for n, value in keywords.items()}, numbers


def _adopt_guards(frame: Frame, typed: Typed, function: Any, lookup: Lookup) -> None:
    """Have calls compare what a derivative depends on besides its arguments: what its function
    captures, and the functions that this calls."""
    inputs = frame.inputs
    while hasattr(function, "derived_from"):  # the source of a derivative has names of its own
        path, function = below(way_to(frame, function), "derived_from"), function.derived_from
        compare(frame, path, function)
    prefixes: dict[str, str] = {}

    def here(path: Path) -> Path:
        if path.root in typed.constants:
            inputs.constants[path.root] = typed.constants[path.root]
            return path
        prefix, colon, name = path.root.rpartition(":")
        prefix += colon
        if prefix not in prefixes:
            owner = typed.owners[prefix] if prefix else function
            prefixes[prefix] = inputs.root(owner, typed.roots[prefix] if prefix else lookup)
        own = prefixes[prefix]
        inputs.noting(own, inputs.roots[own])(name)
        return Path(f"{own}{name}", path.steps, True)

    for path, spec in typed.used.items():
        if path.captured:
            inputs.used.setdefault(here(path), spec)
    inputs.compared |= {here(path): None for path in typed.compared if path.captured}
    for owner, name, value in typed.asked:
        inputs.asked[id(owner.value), name] = owner, name, value


def _stand_in(value: Value, numbers: list[object], span: Span) -> object:
    """Return an argument of the kind of a value; of a run-time number one that `numbers` gets."""
    match value:
        case Static(given) | Opaque(given, _):
            return given
        case Handle(tensor, _):
            return tensor
        case Scalar(_, kind) if kind.dtype.kind == "b":
            text = "a derivative is called with a test that is known at run time only"
            helps = ("call it on both sides of an `if`: `g(x, True) if flag else g(x, False)`",)
            raise error("CD0480", CdTypeError, text, span, helps=helps)
        case Scalar(_, kind):
            numbers.append(_number(kind))
            return numbers[-1]
        case Array(shape=shape, kind=kind):
            sizes = [extent.constant for extent in shape]
            if None in sizes:
                symbols = frozenset(symbol for extent in shape for symbol in extent.symbols())
                raise NeedStatic(frozenset(), symbols)
            return np.zeros([size for size in sizes if size is not None], kind.dtype.numpy)
        case Group(items, kind, _, named_tuple):
            parts = [_stand_in(item, numbers, span) for item in items]
            if named_tuple is not None:
                return tuple.__new__(named_tuple, parts)
            return parts if kind == "list" else tuple(parts)
        case _:
            text = (
                "a derivative is called with arrays, numbers, tensors, objects and tuples of these"
            )
            raise error("CD0480", CdTypeError, text, span)


def _number(kind: Kind) -> object:
    """Return a number of a kind that is no other object."""
    if not kind.weak:
        return np.array(1, kind.dtype.numpy)[()]
    numbers = {"i": int("1000003"), "f": float("1.5"), "c": complex("1.5")}
    return numbers[kind.dtype.kind]
