"""Attributes of Python objects, looked up while compiling."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ....base.diagnostic import CdAttributeError, Span, class_of, nearest
from ...values.arrays import describe
from ...values.builder import error
from ...values.types import kind_of_number
from ...values.values import Array, Scalar, Static, Value
from .instances import is_instance


def get_attribute(owner: object, name: str, span: Span) -> object:
    """Return an attribute of a Python object. CD0414 where reading it raises."""
    try:
        return getattr(owner, name)
    except AttributeError:
        text = f"{describe(Static(owner))} has no attribute `{name}`"
        helps = _attribute_helps(owner, name, span)
        raise error("CD0414", CdAttributeError, text, span, helps=helps) from None
    except Exception as problem:  # a user's property may raise anything
        text = f"reading `{name}` of {describe(Static(owner))} raises {type(problem).__name__}: "
        helps = ("read it before the call, and pass what it gives as an argument",)
        raise error("CD0414", class_of(problem), f"{text}{problem}", span, helps=helps) from None


def _attribute_helps(owner: object, name: str, span: Span) -> tuple[str, ...]:
    """Return the fix hints for an unknown attribute; those of arrays for a number."""
    if (near := nearest(name, dir(owner))) is not None:
        return (f"did you mean `{near}`?",)
    if isinstance(owner, ModuleType):
        return ("import what has it, or pass it as an argument",)
    if is_instance(owner):
        return (f"set it before the call: `{span.text} = ...`",)
    if kind_of_number(owner) is not None:
        return ()
    return (
        f"outside of the function this lists what it has: `dir({span.text.rpartition('.')[0]})`",
    )


def has_in_python(value: Value, name: str) -> bool:
    """Whether the value has such an attribute in Python and NumPy."""
    match value:
        case Array():
            return hasattr(np.ndarray, name)
        case Scalar(_, kind):
            number = kind.dtype.numpy.type()
            return hasattr(number.item() if kind.weak else number, name)
        case Static(inner):
            return hasattr(inner, name)
        case _:
            return False
