"""Exceptions of failed checks: from a fault to the error raised, in one place for all backends.

A fault names one of the project's classes, or the location of another one, as
`errors:NotConverged`: the exception is then of both classes, constructed from the message as `raise
NotConverged("text")` does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any, NoReturn

from ...base import diagnostic
from ...base.diagnostic import CdError, CdValueError, Diagnostic, Label, Span
from .assignments import Fault


def raise_fault(fault: Fault, values: Sequence[object], span: Span) -> NoReturn:
    """Raise the error class that the fault names, with its message filled in."""
    message = fault.message.format(*values)
    problem = Diagnostic(fault.code, message, (Label(span),), helps=fault.helps)
    raise (
        _external_error(fault.kind, problem)
        if ":" in fault.kind
        else error_class(fault.kind)(problem)
    )


def error_class(kind: str) -> type[CdError]:
    """Return the `CdError` class of that name. Raises KeyError where there is none.

    >>> error_class("CdIndexError").__mro__[2].__name__
    'IndexError'
    """
    class_ = vars(diagnostic)[kind]
    if not (isinstance(class_, type) and issubclass(class_, CdError)):
        raise KeyError(kind)
    return class_


def fault_kind(kind: type[BaseException], number: bool) -> str:
    """Return the `kind` of a fault for another class, `CdValueError` where other processes cannot
    find it.

    A suffix says whether its argument is a number.

    >>> fault_kind(SystemExit, True), fault_kind(type("Local", (Exception,), {}), False)
    ('builtins:SystemExit:number', 'CdValueError')
    """
    location = f"{kind.__module__}:{kind.__qualname__}"
    return location + ":number" * number if _class_at(location) is kind else "CdValueError"


def _class_at(location: str) -> Any:
    """Return the object at a location, None where there is none."""
    module, names, *_ = location.split(":")
    return reduce(
        lambda at, name: getattr(at, name, None), names.split("."), sys.modules.get(module)
    )


def _external_error(location: str, problem: Diagnostic) -> CdError:
    """Return an error of the class at a location, which also carries the span of the check."""
    kind = _class_at(location)
    text = problem.message.removeprefix(kind.__name__).removeprefix(": ") if kind else ""
    arguments = (_parse_number(text) if location.endswith(":number") else text,) if text else ()
    code = [vars(base)["code"] for base in getattr(kind, "__mro__", ()) if "code" in vars(base)]
    names = {
        "__module__": kind.__module__,
        "__reduce__": lambda _: (_external_error, (location, problem)),
        "code": code[0] if code else problem.code,  # a class may define its own
    }
    try:
        bases = (kind,) if issubclass(kind, CdError) else (CdError, kind)
        joint_class: Any = type(kind.__name__, bases, names)
        error: CdError = joint_class.__new__(joint_class, *arguments)
        kind.__init__(error, *arguments)
    except Exception as why:
        note = f"`{location.split(':')[1]}` cannot be made of this message alone: {why}"
        return CdValueError(replace(problem, helps=(*problem.helps, note)))
    error.diagnostics = (problem,)
    return error


def _parse_number(text: str) -> object:
    """Return the number that a text denotes, the text where it is none."""
    kinds: tuple[Callable[[str], object], ...] = (int, float, complex)
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text
