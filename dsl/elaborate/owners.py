"""What a callable brings along, as inputs: the owner of a method, arguments that were given."""

from __future__ import annotations

from typing import Any

from ...lowering.diagnostic import Span
from .frame import Frame
from .values import Path, Value


def owner_of(frame: Frame, method: Any, path: Path | None, span: Span) -> Value:
    """Return what a method was taken from: an input that is found from it, by the path to it."""
    if path is None:
        return held(frame, method.__self__, span)
    path = Path(path.root, (*path.steps, "__self__"), path.captured)
    return frame.inputs.wrap(frame.ctx, path, method.__self__, True, span)


def held(frame: Frame, value: object, span: Span) -> Value:
    """Return an object that no path leads to as an input: it is this very object in all calls."""
    path = Path(f"{id(value)}:{type(value).__name__}", captured=True)
    frame.inputs.constants[path.root] = value
    return frame.inputs.wrap(frame.ctx, path, value, True, span)
