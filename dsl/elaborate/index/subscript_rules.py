"""What subscripts hold as written, and what not: captured letters, slices beside letters."""

from __future__ import annotations

import types

import numpy as np

from ....base.diagnostic import CdError, CdNameError, CdSyntaxError  # fmt: skip
from ...source import surface as s
from ...source.function_source import MISSING, is_number
from ...source.idx import Letter
from ...values.arrays import describe
from ...values.builder import error
from ...values.values import Section, Static, Value
from ..names import is_letter
from ..scope import LETTER, Frame


def refuse_captured_letters(frame: Frame, e: s.Subscript, array: bool) -> None:
    """Refuse (CD0203) bare subscripts that look like letters and are no index around the function.

    That are numbers, `i = 3` left in a notebook, and for an array functions and modules.
    """
    for item in e.items:
        if not isinstance(item, s.Name) or not LETTER.fullmatch(item.id) or _is_own(frame, item):
            continue
        captured = frame.lookup(item.id)
        if is_number(captured):
            raise _looks_like_a_letter(
                item, f"the number {captured!r}",
                f"rename the outside variable, or `del {item.id}`, to use it as an index",
                f"pass it as an argument, or write `{item.id} + 0`, to use the number",
            )  # fmt: skip
        if array and _is_function_or_module(captured):
            what = describe(Static(captured))
            raise _looks_like_a_letter(
                item, what, f"use another letter: `{_other_letter(frame, e)}`",
                f"or give {what} another name outside",
            )  # fmt: skip


def _is_own(frame: Frame, item: s.Name) -> bool:
    """Whether a name is one of the function, or of a function around it that is compiled, too."""
    owner: Frame | None = frame
    while owner is not None:
        if item.id in owner.names or item.id in owner.locals:
            return True
        owner = owner.parent
    return False


def _looks_like_a_letter(item: s.Name, what: str, *helps: str) -> CdError:
    text = f"`{item.id}` looks like an index letter, but is {what} around the function"
    return error("CD0203", CdNameError, text, item.span, helps=helps)


def _is_function_or_module(captured: object) -> bool:
    if captured is MISSING or isinstance(captured, Letter | np.ndarray):
        return False
    known = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)
    return isinstance(captured, known) or hasattr(captured, "__cd_function__")


def _other_letter(frame: Frame, e: s.Subscript) -> str:
    """Return a letter that is nothing around the function and not in the subscript."""
    used = {item.id for item in e.items if isinstance(item, s.Name)}
    names = (s.Name(x, e.span) for x in "ijklmnopqrstuvwxyz" if x not in used)
    return next((name.id for name in names if is_letter(frame, name)), "i2")


def refuse_mixed(frame: Frame, e: s.Subscript, items: list[Value]) -> None:
    """Refuse (CD0508) slices and index letters in one subscript."""
    if frame.letters is None or not any(isinstance(item, Section) for item in items):
        return
    names = [name for item in e.items for name in _bare(item) if is_letter(frame, name)]
    if names:
        raise error(
            "CD0508", CdSyntaxError,
            f"`{e.span.text}` mixes a slice with the index letter `{names[0].id}`", e.span,
            helps=_both_ways(e, items),
        )  # fmt: skip


def _both_ways(e: s.Subscript, items: list[Value]) -> tuple[str, str]:
    """Return a mixed subscript written with letters only, and with slices only."""
    used = {item.id for item in e.items if isinstance(item, s.Name)}
    spare = iter(x for x in "jklmnpqr" if x not in used)
    cut = [isinstance(item, Section) for item in items]
    pairs = list(zip(e.items, cut, strict=True))
    lettered = [next(spare) if is_cut else x.span.text for x, is_cut in pairs]
    sliced = [x.span.text if is_cut else ":" for x, is_cut in pairs]
    name = e.value.span.text
    return (
        f"use a letter for every axis: `{name}[{', '.join(lettered)}]`, ranges by an `if` on it",
        f"or slices for every axis: `{name}[{', '.join(sliced)}]`",
    )


def _bare(item: s.Expr) -> list[s.Name]:
    return [item] if isinstance(item, s.Name) else []
