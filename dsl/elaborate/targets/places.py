"""Locations that assignments and updates write: elements, selections and fields of arrays."""

from __future__ import annotations

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir.assignments import Statement
from ...source import surface as s
from ...values.arrays import describe
from ...values.builder import error
from ...values.evaluation_order import copied_before, saved_before, writes_views
from ...values.stores import no_array
from ...values.values import Array, Group, Handle, Masked, Value
from ..expressions import attribute, evaluate, located, subscript_value, with_subscripts
from ..index.subscript_rules import refuse_captured_letters
from ..scope import Frame


def place_of(frame: Frame, target: s.Subscript, rebinds: bool = False) -> Array | Masked:
    """Return the location that a subscript without index variables denotes.

    With `rebinds`, items of lists are refused, because `items[0] = x` rebinds them.
    """
    base = evaluate(frame, target.value)
    location = subscript_value(frame, base, target, target.value)
    return _writable_place(target, base, location, rebinds)


def place_with_operands(frame: Frame, target: s.Subscript) -> tuple[Array | Masked, list[Value]]:
    """Return the location that a subscript denotes, and the array and subscripts that give it."""
    base = evaluate(frame, target.value)
    if isinstance(base, Handle):
        base = frame.inputs.field(frame.ctx, base, "value", target.span)
    if not isinstance(base, Array):
        location = subscript_value(frame, base, target, target.value)
        return _writable_place(target, base, location), []
    refuse_captured_letters(frame, target, True)
    operands = with_subscripts(frame, base, target)
    location = located(frame, operands, target, target.value)
    return _writable_place(target, base, location), operands


def relocated(
    frame: Frame,
    target: s.Subscript,
    location: Array | Masked,
    operands: list[Value],
    out: list[Statement],
) -> tuple[Array | Masked, Array | Masked] | None:
    """Emit `out`, which computes the value of `target op= value`; return the location that is
    written and its old value, None (with nothing emitted) where `out` writes no subscript.

    Python reads the old elements before the value, and finds those that it writes after it, from
    the same operands: a mask or an array of positions has by then what `out` has stored in it.
    """
    ctx = frame.ctx
    if not writes_views(ctx, operands[1:], out):
        return None
    old = copied_before(ctx, location, target.span)
    operands = saved_before(ctx, operands, out, target.span)
    ctx.out += out
    place = located(frame, operands, target, target.value)
    assert isinstance(place, Array | Masked), "a location stays one"
    return place, old


def _writable_place(
    target: s.Subscript, base: Value, location: Value, rebinds: bool = False
) -> Array | Masked:
    """Return a location that may be assigned to. CdValueError CD0462, CdTypeError CD0451."""
    if isinstance(location, Array) and location.sealed:
        name = target.value.span.text
        written = f"`{name} = {name}.copy()`"
        if not isinstance(target.value, s.Name):
            written = f"`y = {name}.copy()`, and write `y`"
        raise error(
            "CD0462",
            CdValueError,
            f"`{name}` {location.sealed}; writing it would not write the original",
            target.span,
            helps=(f"take a copy to write on: {written}",),
        )
    if rebinds and isinstance(base, Array) and base.listed:
        raise no_array(target.value.span)
    if isinstance(location, Array | Masked) and not (rebinds and isinstance(base, Group)):
        return location
    raise error(
        "CD0451", CdTypeError, f"`{target.value.span.text}` cannot be assigned to", target.span,
        label=f"this is {describe(base)}",
        helps=_item_assignment_helps(target, base) if isinstance(base, Group) else (),
    )  # fmt: skip


def _item_assignment_helps(target: s.Subscript, group: Group) -> tuple[str, ...]:
    """Return the suggestions for the assignment of an item of a list or tuple."""
    name: s.Expr = target.value
    axes = 1
    while isinstance(name, s.Subscript):
        axes += len(name.items)
        name = name.value
    axes += any(isinstance(item, Group) for item in group.items)
    shape = "n" if axes == 1 else f"({', '.join('nmk'[:axes])})"
    why = "a tuple does not change" if group.kind == "tuple" else "lists keep their items here"
    return (f"{why}; make an array, whose elements can be assigned: "
            f"`{name.span.text} = np.zeros({shape})`",)  # fmt: skip


def field_location(frame: Frame, base: Value, target: s.Attribute) -> Array:
    """Return the array that `owner.name = value` writes, where the owner is no user-defined object.

    CdTypeError CD0418 where there is none.
    """
    match base:
        case Handle():
            return frame.inputs.field(frame.ctx, base, target.name, target.span)
        case Array() if target.name in ("real", "imag"):
            view = attribute(frame, base, target.name, target.span)
            assert isinstance(view, Array), "a part of an array is one"
            return view
    text = f"attributes of {describe(base)} cannot be assigned"
    raise error("CD0418", CdTypeError, text, target.span)
