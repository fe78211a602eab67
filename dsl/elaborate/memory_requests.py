"""`memory(t, "virtual")`: what the user asks of the memory of an array."""

from __future__ import annotations

from dataclasses import replace

from ...base.diagnostic import CdTypeError, Span
from ...lowering.ir.memory_mode import Request, join, parse_mode
from ...lowering.ir.node import Node
from ..source import surface as s
from ..values.arrays import describe
from ..values.builder import Context, error
from ..values.call_site import Word
from ..values.values import Array, Handle, Static
from .expressions import evaluate
from .scope import Frame


def is_request(frame: Frame, call: s.Call) -> bool:
    """Return whether a call is of the word `memory`, by its name or as an attribute."""
    match call.function:
        case s.Name() | s.Attribute(s.Name(), "memory") as function:
            return evaluate(frame, function) == Static(Word("memory"))
        case _:
            return False


def request(frame: Frame, call: s.Call, span: Span) -> None:
    """Note a request on the node of an array; the passes and the placement consult it.

    Raises CdTypeError CD0574 for what is no array, CdValueError CD0573 for what is no mode, and
    CdTypeError CD0571 where an earlier request excludes it.
    """
    if len(call.args) != 2 or call.keywords:
        raise error("CD0574", CdTypeError, "`memory` takes an array and a memory mode", span)
    value = evaluate(frame, call.args[0])
    mode = evaluate(frame, call.args[1])
    name = call.args[0].span.text
    if isinstance(value, Handle):
        raise error(
            "CD0574", CdTypeError, "`memory` takes an array by its name, and a memory mode",
            call.args[0].span, label=f"this is {describe(value)}",
            helps=(f'name one of its fields: `memory({name}.value, "on-device")`',
                   'or ask where the tensor is made: `pe.tensor("t", (3,), memory="on-device")`'),
        )  # fmt: skip
    if not isinstance(value, Array) or value.place is None:
        raise error(
            "CD0574", CdTypeError, "`memory` takes an array by its name, and a memory mode",
            call.args[0].span, label=f"this is {describe(value)}",
        )  # fmt: skip
    where = call.args[1].span
    asked = Request(
        parse_mode(mode.value if isinstance(mode, Static) else None, where), span.text, span
    )
    _ask(frame.ctx, value.place.node, asked, name)


def _ask(ctx: Context, node: Node, asked: Request, name: str) -> None:
    """Put a request on a node where it is declared; its uses know it by its number."""
    for at, known in enumerate(ctx.locals):
        if known.id == node.id:
            decision = join(known.request, asked, f"`{name}`")
            ctx.locals[at] = replace(known, request=decision)
            return
    for path, parameter in ctx.parameters.items():
        if parameter.node.id == node.id:
            decision = join(parameter.node.request, asked, f"`{name}`")
            new = replace(parameter.node, request=decision)
            ctx.parameters[path] = replace(parameter, node=new)
            return
