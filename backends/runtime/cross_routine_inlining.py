"""Virtual tensors of one compiled function computed again in another, as a table says.

    second.compile(z, t, inline={t: first})

What `first` does to compute `t` is put in front of `second`, whose inputs are then those of `t` as
well; see `lowering.recompute`. That they hold what `first` read is found out by each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...base.diagnostic import CdTypeError, Diagnostic, Label
from ...lowering.ir.assignments import Parameter, Procedure
from ...lowering.ir.memory_mode import VIRTUAL
from ...lowering.recompute import deciding, in_front
from .code_variants import Codes
from .parameter_slots import Fleeting, Given, Resident, Slot
from .routine import Compiled
from .signature import Source
from .tensor import Tensor


def inlined(compiled: Compiled, table: object, codes: Callable[[Procedure], Codes]) -> Compiled:
    """Return a compiled function that computes virtual tensors as others do, by a table.

    `codes` makes what a procedure becomes. Raises CdTypeError CD0855 where the table is wrong, and
    CD0856 where a tensor cannot be computed again.
    """
    wanted = _by_compiled(compiled, table)
    procedure, slots, sources = compiled.procedure, list(compiled.slots), list[Source]()
    how: list[object] = []
    for first, fields in wanted:
        labels = ", ".join(f"`{there.label}`" for there, _ in fields)
        what = deciding(first.procedure, [there.node for there, _ in fields])
        places = {one.node.id: slot for slot, one in first.parameters}
        for parameter in what.parameters:
            _require_again(first, labels, places[parameter.node.id], parameter)
        here = {
            slot.field: one.node
            for slot, one in zip(slots, procedure.parameters, strict=True)
            if isinstance(slot, Resident) and not slot.merged
        }
        used = [(one.node, places[one.node.id]) for one in what.parameters]
        read = [(node, slot.field) for node, slot in used if isinstance(slot, Resident)]
        same = {there.node.id: own.node for there, own in fields}
        same |= {node.id: here[field] for node, field in read if field in here}
        why = f"{labels}, as `{first.name}` computes it"
        procedure, _ = in_front(what, why, procedure, same)
        how.append((first.codes, why, tuple((old, node.id) for old, node in same.items())))
        slots += [Resident(field) for node, field in read if field not in here]
        sources.append(Source(first, labels, tuple(field for _, field in read)))
    made = compiled.codes.derived(tuple(how), lambda: codes(procedure))
    return replace(compiled, codes=made, slots=tuple(slots), sources=tuple(sources))


Pair = tuple[Fleeting, Fleeting]
"""A field as one function computes it, and as the other one has it."""


def _by_compiled(compiled: Compiled, table: object) -> list[tuple[Compiled, list[Pair]]]:
    """Return a table as what is computed again of each function; raises CdTypeError CD0855."""
    if not isinstance(table, Mapping):
        raise _wrong(
            compiled, f"`inline=` is a {type(table).__name__}",
            "give a table: `inline={t: first}`, where `first` is what `compile` returned",
        )  # fmt: skip
    found: dict[Compiled, list[Pair]] = {}
    for tensor, first in table.items():
        if not isinstance(tensor, Tensor):
            what = f"`inline=` has a {type(tensor).__name__} on its left"
            raise _wrong(compiled, what, "give a tensor: `inline={t: first}`")
        if not isinstance(first, Compiled):
            what = f"`inline=` has a {type(first).__name__} beside `{tensor.label}`"
            raise _wrong(
                compiled, what, "give what `compile` returned, of a routine `routine.compiled`"
            )
        found.setdefault(first, []).extend(_fields(compiled, tensor, first))
    return list(found.items())


def _fields(compiled: Compiled, tensor: Tensor, first: Compiled) -> list[Pair]:
    """Return the fields of a tensor that a function uses and another one computes."""
    label = tensor.label
    if tensor.request is None or tensor.request.mode != VIRTUAL:
        mode = tensor.memory or "kept: its array is there for every routine"
        raise _wrong(
            compiled, f"`{label}` is {mode}, and only what is virtual is computed again",
            f"make `{label}` with `memory='virtual'`, or leave it out of `inline=`",
        )  # fmt: skip
    own = [one for one in compiled.fleeting if one.tensor is tensor]
    if not own:
        raise _wrong(
            compiled, f"`{compiled.name}` does not use `{label}`", "leave it out of `inline=`"
        )
    there = {one.key: one for one in first.computed}
    pairs = [(there[one.key], one) for one in own if one.key in there]
    if not pairs:
        known = ", ".join(f"`{one.label}`" for one in there.values()) or "no virtual tensor"
        raise _wrong(
            compiled, f"`{first.name}` does not compute `{label}`",
            f"give the function that does; `{first.name}` computes {known}",
        )  # fmt: skip
    return pairs


def _wrong(compiled: Compiled, message: str, fix: str) -> CdTypeError:
    label = Label(compiled.procedure.span)
    return CdTypeError(Diagnostic("CD0855", message, (label,), helps=(fix,)))


def _require_again(first: Compiled, labels: str, slot: Slot, parameter: Parameter) -> None:
    """Raise CdTypeError CD0856 where a tensor needs what is not there after a routine."""
    name = slot.field.label if isinstance(slot, Resident) else slot.name
    keep = f"make {labels} without `memory='virtual'`"
    if isinstance(slot, Given):
        what = f"`{name}`, which is no tensor, and nobody can tell whether it is the same"
        fix = f"make `{name}` a tensor, or {keep}"
    elif slot.merged:
        what, fix = f"`{name}.merge`, which is in a merge buffer for one call", keep
    elif parameter.written:
        what = f"`{name}`, which `{first.name}` writes"
        fix = f"let `{first.name}` write another tensor, or {keep}"
    else:
        return
    message = f"{labels} cannot be computed again: it needs {what}"
    label = Label(first.procedure.span)
    raise CdTypeError(Diagnostic("CD0856", message, (label,), helps=(fix,)))
