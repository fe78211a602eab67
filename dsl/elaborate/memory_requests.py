"""Memory-mode requests: `memory(t, "virtual")` annotates the node of an array."""

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
    """Return whether a call is one of `memory`, by its bare name or as an attribute."""
    match call.function:
        case s.Name() | s.Attribute(s.Name(), "memory") as function:
            return evaluate(frame, function) == Static(Word("memory"))
        case _:
            return False


def request(frame: Frame, call: s.Call, span: Span) -> None:
    """Annotate the node of an array with a request, which passes and memory placement consult.

    Raises CdTypeError CD0574 for a value that is no array, CdValueError CD0573 for an unknown
    mode, and CdTypeError CD0571 where an earlier request excludes it.
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
    if not isinstance(value, Array) or value.element is None:
        raise error(
            "CD0574", CdTypeError, "`memory` takes an array by its name, and a memory mode",
            call.args[0].span, label=f"this is {describe(value)}",
        )  # fmt: skip
    mode_span = call.args[1].span
    memory_request = Request(
        parse_mode(mode.value if isinstance(mode, Static) else None, mode_span), span.text, span
    )
    _annotate_node(frame.ctx, value.element.node, memory_request, name)


def _annotate_node(ctx: Context, node: Node, asked: Request, name: str) -> None:
    """Set a request on the declaration of a node; its uses refer to it by id."""
    for at, local in enumerate(ctx.locals):
        if local.id == node.id:
            decision = join(local.request, asked, f"`{name}`")
            ctx.locals[at] = replace(local, request=decision)
            return
    for path, parameter in ctx.parameters.items():
        if parameter.node.id == node.id:
            decision = join(parameter.node.request, asked, f"`{name}`")
            new = replace(parameter.node, request=decision)
            ctx.parameters[path] = replace(parameter, node=new)
            return
