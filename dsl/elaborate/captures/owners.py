"""State of callables as inputs: owners of methods, bound arguments, code and default values.

All of it is mutable: a class gets another `__call__`, a function other default values. So each has
a path, and the object there is guarded in every call.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from ....base.diagnostic import Span
from ...source import surface as s
from ...values.values import KEYS, UNDER, Group, Opaque, Path, Step, Value
from ..scope import Frame
from .inputs import ObjectSpec

CALL = "__call__"


def owner_of(frame: Frame, method: Any, path: Path | None, span: Span) -> Value:
    """Return the owner of a bound method, an input whose path extends the method's."""
    if path is None:
        return held(frame, method.__self__, span)
    via = below(path, "__self__")
    owner = frame.inputs.wrap(frame.ctx, via, method.__self__, True, span)
    base = Path(path.root, path.steps[:-1], path.captured)
    name = str(path.steps[-1]) if path.steps else ""
    instance = frame.inputs.seen.get(name, {}).get(base)
    if instance is None or instance.value is not method.__self__ or not isinstance(owner, Opaque):
        return owner
    if name in getattr(instance.value, "__dict__", ()):  # stored in the instance, by anyone
        return owner
    frame.inputs.compare_paths(base, via)  # guard: the owner is the object whose attribute it is
    return instance


def partial_of(
    frame: Frame, part: functools.partial[Any], path: Path | None, span: Span
) -> tuple[tuple[Value, ...], dict[str, Value], Path]:
    """Return the bound arguments of a partial function, as inputs, by position and by name, and the
    path to the function that it calls."""
    if path is None:
        part_of = held(frame, part, span)
        assert isinstance(part_of, Opaque), "a partial function is known by which one it is"
        path = part_of.path
    wrap, func = functools.partial(frame.inputs.wrap, frame.ctx), below(path, "func")
    wrap(func, part.func, True, span)
    bound_args = wrap(below(path, "args"), part.args, True, span)
    assert isinstance(bound_args, Group), "they are a tuple"
    wrap(below(path, "keywords", KEYS), tuple(part.keywords), True, span)
    named = {
        name: wrap(below(path, "keywords", (name,)), value, True, span)
        for name, value in part.keywords.items()
    }
    return bound_args.items, named, func


def held(frame: Frame, value: object, span: Span) -> Value:
    """Return an object without a path as an input: the identical object in all calls."""
    path = Path(f"{id(value)}:{type(value).__name__}", captured=True)
    frame.inputs.constants[path.root] = value
    return frame.inputs.wrap(frame.ctx, path, value, True, span)


def created(frame: Frame, value: object, span: Span) -> Value:
    """Return an object that the function makes as an input: code of the user's decides what its
    attributes and operators give, and may change. It is the same in all calls: see `is_made`."""
    frame.inputs.made.add(id(value))
    return held(frame, value, span)


def called_by(frame: Frame, value: object, path: Path | None, span: Span) -> tuple[Value, Any]:
    """Return a callable object as an input, and the `__call__` function of its class."""
    owner = held(frame, value, span) if path is None else Opaque(value, path)
    called = getattr(type(value), CALL)
    if isinstance(owner, Opaque):
        compare(frame, below(owner.path, "__class__", CALL), called)
    return owner, called


def defaults_of(
    frame: Frame, function: s.Function, owner: object
) -> dict[str, tuple[Path, object]] | None:
    """Return the default values of an inlined function by parameter name, each with its path; None
    where its text determines them."""
    if owner is None or isinstance(owner, str):
        return None  # a nested function, or one of the library
    path, plain = way_to(frame, owner), owner
    while not isinstance(plain, FunctionType):  # like `source.plain_function`
        step = next((attribute for attribute in UNDER if hasattr(plain, attribute)), None)
        if step is None:
            return _signature_defaults(path, plain)
        path, plain = below(path, step), getattr(plain, step)
    compare(frame, below(path, "__code__"), plain.__code__)
    named = [p.name for p in function.params if p.kind in ("positional", "any")]
    defaults = plain.__defaults__ or ()
    result: dict[str, tuple[Path, object]] = {
        name: (below(path, "__defaults__", (-at, name)), value)
        for at, (name, value) in enumerate(zip(named[::-1], defaults[::-1], strict=False), 1)
    }
    for name, value in (plain.__kwdefaults__ or {}).items():
        result[name] = below(path, "__kwdefaults__", (name,)), value
    return result


def _signature_defaults(path: Path, function: Any) -> dict[str, tuple[Path, object]]:
    """Return the default values, with paths, of a function that a text defines."""
    return {
        name: (below(path, "__signature__", "parameters", (name,), "default"), parameter.default)
        for name, parameter in function.__signature__.parameters.items()
        if parameter.default is not parameter.empty
    }


def compare(frame: Frame, path: Path, value: object) -> None:
    """Add a guard on the object at a path."""
    frame.inputs.used[path] = ObjectSpec(id(value), value)


def way_to(frame: Frame, value: Any) -> Path:
    """Return the path by which a function or member was found, else a path to this object."""
    for path, spec in frame.inputs.used.items():
        if isinstance(spec, ObjectSpec) and spec.value is value:
            return path
    root = f"{id(value)}:{getattr(value, '__name__', type(value).__name__)}"
    frame.inputs.constants[root] = value
    return Path(root, captured=True)


def below(path: Path, *steps: Step) -> Path:
    """Return a path extended by steps."""
    return Path(path.root, (*path.steps, *steps), path.captured)
