"""Calls with constants of what is not inlined: computed now, asked for in each call, or refused.

A call that is computed now has to be pure. A method written in C of an object of the user's, which
may change, is called before each call of the function, like a property; see `Called`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.diagnostic import CdError, CdTypeError
from ..source import surface as s
from ..values.arrays import describe
from ..values.builder import error
from ..values.call_site import Word
from ..values.types import typed_text
from ..values.values import Called, Group, Path, Static, Value
from .captures.instances import c_method_of, is_library, is_of_user
from .captures.owners import below, compare, created, way_to
from .captures.pure_calls import changes, is_pure, is_value, reads_only
from .operators import as_python, now
from .scope import Frame

_OUTSIDE = "call it outside and pass its result in"


def call(
    frame: Frame,
    function: Any,
    path: Path | None,
    args: tuple[Value, ...],
    keywords: Mapping[str, Value],
    e: s.Call,
) -> Value:
    """Return the value of a call of an object without readable source.

    CdTypeError CD0427 or CD0412 where it is not callable, takes run-time values, or is not pure.
    """
    statics = [as_python(arg) for arg in (*args, *keywords.values())]
    given = [static.value for static in statics if static is not None]
    if not callable(function) or len(given) < len(statics):
        raise _not_callable(function, e)
    values, named = given[: len(args)], dict(zip(keywords, given[len(args) :], strict=True))
    if c_method_of(function) is not None and path is not None:
        return _asked_in_each_call(frame, function, path, values, named, e)
    if not is_pure(function, given):
        raise _not_callable(function, e)
    frame.inputs.steady = False  # `hash` of a text, for one
    if isinstance(function, type) and hasattr(function, "__dataclass_fields__"):
        owner = way_to(frame, function) if path is None else path
        compare(frame, below(owner, "__init__"), vars(function)["__init__"])
    result = now(lambda *values: function(*values, **named), tuple(values), e.span)
    if isinstance(result.value, list):  # a new one in each call
        return Group(tuple(map(Static, result.value)), "list")
    if isinstance(result.value, dict):
        raise _not_callable(function, e)
    return created(frame, result.value, e.span) if is_of_user(result.value) else result


def _asked_in_each_call(
    frame: Frame, method: Any, path: Path, args: list[object], named: dict[str, object], e: s.Call
) -> Value:
    """Return what a method of an object gives now, as an input that each call asks for."""
    if named or not reads_only(method) or not all(map(is_value, args)):
        raise _not_callable(method, e)
    frame.inputs.steady = False
    given = tuple(args)
    result = now(method, given, e.span).value
    step = below(path, Called(typed_text(given), given))
    return frame.inputs.wrap(frame.ctx, step, result, True, e.span)


def _not_callable(function: Any, e: s.Call) -> CdError:
    """Return CdTypeError CD0427 or CD0412, for an object that cannot be called while compiling."""
    name = getattr(function, "__name__", repr(function))
    code, text, helps = "CD0427", "", tuple[str, ...]((_OUTSIDE,))
    if isinstance(function, Word):
        code, helps = "CD0412", ()
        text = f"`{e.function.span.text}` stands only inside a subscript"
        if function.name == "memory":
            text = "`memory` is a statement of its own, and gives nothing back"
            helps = ('name the array, then ask: `z = x + 1`, and below `memory(z, "virtual")`',)
    elif not callable(function):
        text, helps = f"{describe(Static(function))} cannot be called", ()
    elif isinstance(function, type) and not is_library(function):
        text = f"`{name}` is not known to the language, nor can its objects be created here"
        helps = ("make it outside of the function, and pass it",)
    elif c_method_of(function) is not None and changes(function):
        kind = type(function.__self__).__name__
        text = f"`{e.function.span.text}` changes an object of type `{kind}`, and that would be "
        text += "done once, when the function is compiled"
    elif any(function is x for x in (zip, enumerate, reversed, map, filter)):
        text = f"what `{name}` gives is taken once, and is no value here"
        helps = (f"make it a list: `list({e.span.text})`",)
        if function is filter:
            helps = ("write it as a list: `[v for v in x if v > 0]`",)
    else:
        text = f"`{name}` is not known to the language and has no Python source"
    return error(code, CdTypeError, text, e.span, helps=helps)
