"""From a failed check to the error that is raised: one place, so all backends agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from .. import diagnostic
from ..diagnostic import CdError, Diagnostic, Label, Span
from .assignments import Fault


def raise_fault(fault: Fault, values: Sequence[object], span: Span) -> NoReturn:
    """Raise the error class that the fault names, its message filled with Python values."""
    message = fault.message.format(*values)
    problem = Diagnostic(fault.code, message, (Label(span),), helps=fault.helps)
    raise error_class(fault.kind)(problem)


def error_class(kind: str) -> type[CdError]:
    """Return the `CdError` class of that name. Raises KeyError where there is none.

    >>> error_class("CdIndexError").__mro__[2].__name__
    'IndexError'
    """
    found = vars(diagnostic)[kind]
    if not (isinstance(found, type) and issubclass(found, CdError)):
        raise KeyError(kind)
    return found
