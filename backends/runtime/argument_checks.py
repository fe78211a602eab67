"""Argument checks of transfers and merges: fields, contexts and routines."""

from __future__ import annotations

from typing import Any

from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from .field import Field


def expect_merge(consumer: Any, field: Field) -> None:
    """Raise CdValueError CD0844 where a routine does not merge a field.

    Raises CdTypeError CD0852 for anything but a routine.
    """
    if not hasattr(consumer, "merge_input"):
        raise wrong_argument("routine", consumer, "give what merges: `code.link(context)`")
    expected: Field | None = consumer.merge_input
    if expected is not field:
        reason = "merges nothing" if expected is None else f"merges `{expected.label}`"
        raise CdValueError(
            Diagnostic(
                "CD0844", f"the routine `{consumer.name}` {reason}, and is given `{field.label}`",
                helps=("give it the field whose `.merge` it reads",),
            )
        )  # fmt: skip


def field_of(given: Any) -> Field:
    """Return a field, given as such or as a tensor, which denotes its value.

    Raises CdTypeError CD0852 for anything else.
    """
    if isinstance(given, Field):
        return given
    if not callable(getattr(given, "field", None)):
        raise wrong_argument("field", given, "give a tensor, or a field of it: `p.grad`")
    value: Field = given.field("value")
    return value


def device_name(name: Any) -> str:
    """Return the name of a device, "" for None; raises CdTypeError CD0852 for another type."""
    if name is not None and not isinstance(name, str):
        raise wrong_argument("name of a device", name, 'give one: `pe.device("cc:1")`')
    return name or ""


def wrong_argument(wanted: str, given: Any, fix: str) -> CdTypeError:
    """Return the error CD0852 for an argument of the wrong type."""
    message = f"this is about a {wanted}, and is given a {type(given).__name__}"
    return CdTypeError(Diagnostic("CD0852", message, helps=(fix,)))
