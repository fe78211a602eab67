"""Memory requests of tensors, with their locations in the user's program."""

from __future__ import annotations

import linecache
import sys
from types import FrameType

from ...base.diagnostic import CdTypeError, Diagnostic, Label, Source, Span
from ...lowering.ir.memory_mode import (
    HOSTED_CONSTANT,
    LOCAL,
    VIRTUAL,
    Decision,
    Request,
    join,
    parse_mode,
)

_PACKAGE = __name__.partition(".")[0]


def memory_request(
    label: str, memory: str | None, is_constant: bool, has_value: bool
) -> Decision | None:
    """Return the memory request of a new tensor, None where there is none.

    Raises CdValueError CD0573 for an unknown mode, CdTypeError CD0571 or CD0575 where the tensor
    cannot be constant, or have a value, in that mode.
    """
    location = _caller()
    if memory is None:
        constant = Request(HOSTED_CONSTANT, f"`{label}` was made with constant=True", location)
        return join(None, constant) if is_constant else None
    mode = parse_mode(memory, location)
    request = join(None, Request(mode, f"`{label}` was made with memory={memory!r}", location))
    if is_constant:
        request = join(
            request, Request(HOSTED_CONSTANT, "it is constant", location), f"tensor `{label}`"
        )
    if is_transient(request) and has_value:
        raise CdTypeError(
            Diagnostic(
                "CD0575", f"tensor `{label}` is {mode}: it has no array that `init` could fill",
                (Label(location, f"asks for {mode}"),),
                helps=("leave out `init`: it is zeros at the start of every call",),
            )
        )  # fmt: skip
    return request


def is_transient(asked: Decision | None) -> bool:
    """Return whether a tensor is transient: it has an array during calls at most."""
    return asked is not None and asked.mode in (VIRTUAL, LOCAL)


def no_host_array(label: str, asked: Decision) -> CdTypeError:
    """Return the error CD0575 of reading or writing a transient tensor on the host."""
    return CdTypeError(
        Diagnostic(
            "CD0575", f"tensor `{label}` is {asked.mode}: between calls it has no array",
            (Label(asked.requests[-1].span, f"asks for {asked.mode}"),),
            helps=(
                "make it without `memory=`, or have the function write what you want to see to "
                "another array",
            ),
        )
    )  # fmt: skip


def _caller() -> Span:
    """Return the source line that called the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        frame = frame.f_back
    name, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("?", 1)
    text = linecache.getline(name, line).rstrip()
    start = len(text) - len(text.lstrip())
    return Span(Source(name, line, text), line, start, line, max(len(text), start + 1))
