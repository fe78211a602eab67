"""From a failed check to the error that is raised: one place, so all backends agree.

A fault names one of our classes, or says where another one is found, as `errors:NotConverged`: what
is raised then is of both, made of the message as `raise NotConverged("text")` makes it.
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
    """Raise the error class that the fault names, its message filled with Python values."""
    message = fault.message.format(*values)
    problem = Diagnostic(fault.code, message, (Label(span),), helps=fault.helps)
    raise _raised(fault.kind, problem) if ":" in fault.kind else error_class(fault.kind)(problem)


def error_class(kind: str) -> type[CdError]:
    """Return the `CdError` class of that name. Raises KeyError where there is none.

    >>> error_class("CdIndexError").__mro__[2].__name__
    'IndexError'
    """
    found = vars(diagnostic)[kind]
    if not (isinstance(found, type) and issubclass(found, CdError)):
        raise KeyError(kind)
    return found


def raised_as(kind: type[BaseException], number: bool) -> str:
    """Return what a fault says of another class, `CdValueError` where no other process finds it.

    Whether a number is its argument is said, too.

    >>> raised_as(SystemExit, True), raised_as(type("Local", (Exception,), {}), False)
    ('builtins:SystemExit:number', 'CdValueError')
    """
    where = f"{kind.__module__}:{kind.__qualname__}"
    return where + ":number" * number if _class_at(where) is kind else "CdValueError"


def _class_at(where: str) -> Any:
    """Return what is found there, None where there is nothing."""
    module, names, *_ = where.split(":")
    return reduce(
        lambda at, name: getattr(at, name, None), names.split("."), sys.modules.get(module)
    )


def _raised(where: str, problem: Diagnostic) -> CdError:
    """Return an error of the class that is found there, which says where it was raised, too."""
    kind = _class_at(where)
    text = problem.message.removeprefix(kind.__name__).removeprefix(": ") if kind else ""
    given = (_number(text) if where.endswith(":number") else text,) if text else ()
    code = [vars(base)["code"] for base in getattr(kind, "__mro__", ()) if "code" in vars(base)]
    names = {
        "__module__": kind.__module__,
        "__reduce__": lambda _: (_raised, (where, problem)),
        "code": code[0] if code else problem.code,  # which classes may have of their own
    }
    try:
        bases = (kind,) if issubclass(kind, CdError) else (CdError, kind)
        both: Any = type(kind.__name__, bases, names)
        made: CdError = both.__new__(both, *given)
        kind.__init__(made, *given)
    except Exception as why:
        said = f"`{where.split(':')[1]}` cannot be made of this message alone: {why}"
        return CdValueError(replace(problem, helps=(*problem.helps, said)))
    made.diagnostics = (problem,)
    return made


def _number(text: str) -> object:
    """Return the number that a text shows, the text where it is none."""
    kinds: tuple[Callable[[str], object], ...] = (int, float, complex)
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text
