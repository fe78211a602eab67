"""What a callable brings along, as inputs: the owner of a method, arguments that were given, what
a function's code and its default values are.

All of it may be replaced: a class gets another `__call__`, a function other default values. So
there are ways to them, and what they lead to is compared on every call.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from ....base.diagnostic import Span
from ...source import surface as s
from ...values.values import KEYS, UNDER, Group, Opaque, Path, Value
from ..scope import Frame
from .inputs import ObjectSpec

CALL = "__call__"


def owner_of(frame: Frame, method: Any, path: Path | None, span: Span) -> Value:
    """Return what a method was taken from: an input that is found from it, by the path to it."""
    if path is None:
        return held(frame, method.__self__, span)
    way = below(path, "__self__")
    found = frame.inputs.wrap(frame.ctx, way, method.__self__, True, span)
    base = Path(path.root, path.steps[:-1], path.captured)
    name = str(path.steps[-1]) if path.steps else ""
    asked = frame.inputs.seen.get(name, {}).get(base)
    if asked is None or asked.value is not method.__self__ or not isinstance(found, Opaque):
        return found
    if name in getattr(asked.value, "__dict__", ()):  # it has been put there, from anywhere
        return found
    frame.inputs.compare_paths(base, way)  # the object that the method was asked of, in all calls
    return asked


def partial_of(
    frame: Frame, part: functools.partial[Any], path: Path | None, span: Span
) -> tuple[tuple[Value, ...], dict[str, Value], Path]:
    """Return the arguments that a partial function brings along, as inputs, by place and by name,
    and the way to the function that it calls."""
    if path is None:
        part_of = held(frame, part, span)
        assert isinstance(part_of, Opaque), "a partial function is known by which one it is"
        path = part_of.path
    wrap, func = functools.partial(frame.inputs.wrap, frame.ctx), below(path, "func")
    wrap(func, part.func, True, span)
    given = wrap(below(path, "args"), part.args, True, span)
    assert isinstance(given, Group), "they are a tuple"
    wrap(below(path, "keywords", KEYS), tuple(part.keywords), True, span)
    named = {
        name: wrap(below(path, "keywords", (name,)), one, True, span)
        for name, one in part.keywords.items()
    }
    return given.items, named, func


def held(frame: Frame, value: object, span: Span) -> Value:
    """Return an object that no path leads to as an input: it is this very object in all calls."""
    path = Path(f"{id(value)}:{type(value).__name__}", captured=True)
    frame.inputs.constants[path.root] = value
    return frame.inputs.wrap(frame.ctx, path, value, True, span)


def called_by(frame: Frame, value: object, path: Path | None, span: Span) -> tuple[Value, Any]:
    """Return an object that is called as an input, and the function of its class that is run."""
    owner = held(frame, value, span) if path is None else Opaque(value, path)
    called = getattr(type(value), CALL)
    if isinstance(owner, Opaque):
        compare(frame, below(owner.path, "__class__", CALL), called)
    return owner, called


def defaults_of(
    frame: Frame, function: s.Function, owner: object
) -> dict[str, tuple[Path, object]] | None:
    """Return the default values of a function that is inlined by the names of its parameters, each
    with the way to it; None where they are those of its text."""
    if owner is None or isinstance(owner, str):
        return None  # inside another function, or the library's
    path, plain = way_to(frame, owner), owner
    while not isinstance(plain, FunctionType):  # as `source.plain_function` does
        step = next((one for one in UNDER if hasattr(plain, one)), None)
        if step is None:
            return _of_signature(path, plain)
        path, plain = below(path, step), getattr(plain, step)
    compare(frame, below(path, "__code__"), plain.__code__)
    named = [p.name for p in function.params if p.kind in ("positional", "any")]
    given = plain.__defaults__ or ()
    found: dict[str, tuple[Path, object]] = {
        name: (below(path, "__defaults__", (-at, name)), value)
        for at, (name, value) in enumerate(zip(named[::-1], given[::-1], strict=False), 1)
    }
    for name, value in (plain.__kwdefaults__ or {}).items():
        found[name] = below(path, "__kwdefaults__", (name,)), value
    return found


def _of_signature(path: Path, function: Any) -> dict[str, tuple[Path, object]]:
    """Return the default values of a function that a text defines."""
    return {
        name: (below(path, "__signature__", "parameters", (name,), "default"), one.default)
        for name, one in function.__signature__.parameters.items()
        if one.default is not one.empty
    }


def compare(frame: Frame, path: Path, value: object) -> None:
    """Have it noticed when a way leads to another object."""
    frame.inputs.used[path] = ObjectSpec(id(value), value)


def way_to(frame: Frame, function: Any) -> Path:
    """Return the way by which a function was found, or that to this very one."""
    for path, spec in frame.inputs.used.items():
        if isinstance(spec, ObjectSpec) and spec.value is function:
            return path
    root = f"{id(function)}:{function.__name__}"
    frame.inputs.constants[root] = function
    return Path(root, captured=True)


def below(path: Path, *steps: str | tuple[object, ...]) -> Path:
    """Return the way on from what a path leads to."""
    return Path(path.root, (*path.steps, *steps), path.captured)
