"""Rules of subscripts in index notation: no captured numbers, no slices with index variables."""

from __future__ import annotations

import types

import numpy as np

from ....base.diagnostic import CdSyntaxError  # fmt: skip
from ...source import surface as s
from ...source.function_source import MISSING, LateNumber, is_number
from ...source.idx import Letter
from ...values.arrays import describe
from ...values.builder import error
from ...values.values import Section, Static, Value
from ..names import captured_letter_error, captured_number_error, is_letter
from ..scope import LETTER, Frame


def refuse_captured_letters(frame: Frame, e: s.Subscript, array: bool) -> None:
    """Refuse (CD0203) subscripts that look like index variables and are captured values.

    These are numbers, `i = 3` left in a notebook, and for an `array` functions and modules, too.
    """
    for item in e.items:
        if not isinstance(item, s.Name) or not LETTER.fullmatch(item.id) or _is_local(frame, item):
            continue
        captured = frame.lookup(item.id)
        if isinstance(captured, LateNumber) or is_number(captured):
            number = captured.value if isinstance(captured, LateNumber) else captured
            raise captured_number_error(item, number)
        if array and _is_function_or_module(captured):
            what = describe(Static(captured))
            raise captured_letter_error(
                item, what, f"use another letter: `{_unused_letter(frame, e)}`",
                f"or give {what} another name outside",
            )  # fmt: skip


def _is_local(frame: Frame, item: s.Name) -> bool:
    """Whether a name is local to the function, or to an enclosing compiled function."""
    scope: Frame | None = frame
    while scope is not None:
        if item.id in scope.names or item.id in scope.locals:
            return True
        scope = scope.parent
    return False


def _is_function_or_module(captured: object) -> bool:
    """Whether a captured object is a module, function, type, ufunc or compiled function."""
    if captured is MISSING or isinstance(captured, Letter | np.ndarray):
        return False
    kinds = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)
    return isinstance(captured, kinds) or hasattr(captured, "__cd_function__")


def _unused_letter(frame: Frame, e: s.Subscript) -> str:
    """Return an unused letter: not captured, and not in the subscript."""
    used = {item.id for item in e.items if isinstance(item, s.Name)}
    names = (s.Name(x, e.span) for x in "ijklmnopqrstuvwxyz" if x not in used)
    return next((name.id for name in names if is_letter(frame, name)), "i2")


def refuse_mixed(frame: Frame, e: s.Subscript, items: list[Value]) -> None:
    """Refuse (CD0508) slices and index variables in one subscript."""
    if frame.letters is None or not any(isinstance(item, Section) for item in items):
        return
    names = [name for item in e.items for name in _plain_names(item) if is_letter(frame, name)]
    if names:
        raise error(
            "CD0508", CdSyntaxError,
            f"`{e.span.text}` mixes a slice with the index letter `{names[0].id}`", e.span,
            helps=_unmixed_helps(e, items),
        )  # fmt: skip


def _unmixed_helps(e: s.Subscript, items: list[Value]) -> tuple[str, str]:
    """Return the help texts for a mixed subscript: index variables only, or slices only."""
    used = {item.id for item in e.items if isinstance(item, s.Name)}
    unused = iter(x for x in "jklmnpqr" if x not in used)
    slice_flags = [isinstance(item, Section) for item in items]
    pairs = list(zip(e.items, slice_flags, strict=True))
    lettered = [next(unused) if is_slice else x.span.text for x, is_slice in pairs]
    sliced = [x.span.text if is_slice else ":" for x, is_slice in pairs]
    name = e.value.span.text
    return (
        f"use a letter for every axis: `{name}[{', '.join(lettered)}]`, ranges by an `if` on it",
        f"or slices for every axis: `{name}[{', '.join(sliced)}]`",
    )


def _plain_names(item: s.Expr) -> list[s.Name]:
    """Return an item that is a name, nothing for others."""
    return [item] if isinstance(item, s.Name) else []
