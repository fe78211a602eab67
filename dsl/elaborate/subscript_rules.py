"""What a subscript may not hold: numbers that look like letters, slices beside letters."""

from __future__ import annotations

import numpy as np

from ...lowering.diagnostic import (
    CdNameError,
    CdSyntaxError,
)  # fmt: skip
from .. import surface as s
from .context import error
from .frame import LETTER, Frame
from .names import is_letter
from .values import (
    Section,
    Value,
)


def refuse_captured_letter(frame: Frame, item: s.Expr) -> None:
    """Refuse (CD0203) a bare subscript that is a captured number: `i = 3` left in a notebook."""
    if not isinstance(item, s.Name) or not LETTER.fullmatch(item.id):
        return
    owner: Frame | None = frame
    while owner is not None:
        if item.id in owner.names or item.id in owner.locals:
            return
        owner = owner.parent
    captured = frame.lookup(item.id)
    if isinstance(captured, int | float | np.number) and not isinstance(captured, bool):
        raise error(
            "CD0203",
            CdNameError,
            f"`{item.id}` looks like an index letter, but is the number {captured!r} "
            "around the function",
            item.span,
            helps=(
                f"rename the outside variable, or `del {item.id}`, to use it as an index",
                f"pass it as an argument, or write `{item.id} + 0`, to use the number",
            ),
        )


def refuse_mixed(frame: Frame, e: s.Subscript, items: list[Value]) -> None:
    """Refuse (CD0508) slices and index letters in one subscript."""
    if frame.letters is None or not any(isinstance(item, Section) for item in items):
        return
    names = [name for item in e.items for name in _bare(item) if is_letter(frame, name)]
    if names:
        raise error(
            "CD0508", CdSyntaxError,
            f"`{e.span.text}` mixes a slice with the index letter `{names[0].id}`", e.span,
            helps=_both_ways(e),
        )  # fmt: skip


def _both_ways(e: s.Subscript) -> tuple[str, str]:
    """Return a mixed subscript written with letters only, and with slices only."""
    used = {item.id for item in e.items if isinstance(item, s.Name)}
    spare = iter(x for x in "jklmnpqr" if x not in used)
    lettered = [next(spare) if isinstance(x, s.Slice) else x.span.text for x in e.items]
    sliced = [x.span.text if isinstance(x, s.Slice) else ":" for x in e.items]
    name = e.value.span.text
    return (
        f"use a letter for every axis: `{name}[{', '.join(lettered)}]`, ranges by an `if` on it",
        f"or slices for every axis: `{name}[{', '.join(sliced)}]`",
    )


def _bare(item: s.Expr) -> list[s.Name]:
    return [item] if isinstance(item, s.Name) else []
