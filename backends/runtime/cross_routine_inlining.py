"""Cross-routine inlining: rematerialization of one function's virtual tensors in another.

    second.compile(z, t, inline={t: first})

The backward slice of `first` for `t` is put in front of `second`, which gets the inputs of the
slice as well; see `lowering.recompute`. Each call checks that they hold the versions `first` read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...base.diagnostic import CdTypeError, Diagnostic, Label
from ...lowering.ir.assignments import Parameter, Procedure
from ...lowering.ir.memory_mode import VIRTUAL
from ...lowering.recompute import backward_slice, prepend_slice
from .code_variants import CodeVariants
from .parameter_slots import Argument, Resident, Slot, TransientField
from .routine import Compiled
from .signature import Provenance
from .tensor import Tensor


def inline_producers(
    compiled: Compiled, table: object, codes: Callable[[Procedure], CodeVariants]
) -> Compiled:
    """Return a compiled function that rematerializes virtual tensors, given a table of producers.

    `codes` creates the code variants of a procedure. Raises CdTypeError CD0855 for an invalid
    table, and CD0856 where a tensor cannot be rematerialized.
    """
    pairs_by_producer = _pairs_by_producer(compiled, table)
    procedure, slots, sources = compiled.procedure, list(compiled.slots), list[Provenance]()
    keys: list[object] = []
    for producer, fields in pairs_by_producer:
        labels = ", ".join(f"`{produced.label}`" for produced, _ in fields)
        recomputed = backward_slice(producer.procedure, [produced.node for produced, _ in fields])
        producer_slots = {input_.node.id: slot for slot, input_ in producer.parameters}
        for parameter in recomputed.parameters:
            _require_rematerializable(
                producer, labels, producer_slots[parameter.node.id], parameter
            )
        resident_nodes = {
            slot.field: input_.node
            for slot, input_ in zip(slots, procedure.parameters, strict=True)
            if isinstance(slot, Resident) and not slot.merged
        }
        node_slots = [
            (input_.node, producer_slots[input_.node.id]) for input_ in recomputed.parameters
        ]
        read = [(node, slot.field) for node, slot in node_slots if isinstance(slot, Resident)]
        substitution = {produced.node.id: consumed.node for produced, consumed in fields}
        substitution |= {
            node.id: resident_nodes[field] for node, field in read if field in resident_nodes
        }
        why = f"{labels}, as `{producer.name}` computes it"
        procedure, _ = prepend_slice(recomputed, why, procedure, substitution)
        keys.append(
            (producer.codes, why, tuple((old, node.id) for old, node in substitution.items()))
        )
        slots += [Resident(field) for node, field in read if field not in resident_nodes]
        sources.append(Provenance(producer, labels, tuple(field for _, field in read)))
    variants = compiled.codes.derived(tuple(keys), lambda: codes(procedure))
    return replace(compiled, codes=variants, slots=tuple(slots), sources=tuple(sources))


FieldPair = tuple[TransientField, TransientField]
"""A transient field of the producer, and that of the consumer."""


def _pairs_by_producer(compiled: Compiled, table: object) -> list[tuple[Compiled, list[FieldPair]]]:
    """Return a table as pairs of fields by producer; raises CdTypeError CD0855."""
    if not isinstance(table, Mapping):
        raise _invalid_table(
            compiled, f"`inline=` is a {type(table).__name__}",
            "give a table: `inline={t: first}`, where `first` is what `compile` returned",
        )  # fmt: skip
    pairs: dict[Compiled, list[FieldPair]] = {}
    for tensor, producer in table.items():
        if not isinstance(tensor, Tensor):
            description = f"`inline=` has a {type(tensor).__name__} on its left"
            raise _invalid_table(compiled, description, "give a tensor: `inline={t: first}`")
        if not isinstance(producer, Compiled):
            description = f"`inline=` has a {type(producer).__name__} beside `{tensor.label}`"
            raise _invalid_table(
                compiled,
                description,
                "give what `compile` returned, of a routine `routine.compiled`",
            )
        pairs.setdefault(producer, []).extend(_field_pairs(compiled, tensor, producer))
    return list(pairs.items())


def _field_pairs(compiled: Compiled, tensor: Tensor, producer: Compiled) -> list[FieldPair]:
    """Return the fields of a tensor that a function uses and its producer computes."""
    label = tensor.label
    if tensor.request is None or tensor.request.mode != VIRTUAL:
        mode = tensor.memory or "kept: its array is there for every routine"
        raise _invalid_table(
            compiled, f"`{label}` is {mode}, and only what is virtual is computed again",
            f"make `{label}` with `memory='virtual'`, or leave it out of `inline=`",
        )  # fmt: skip
    consumed = [fleeting for fleeting in compiled.fleeting if fleeting.tensor is tensor]
    if not consumed:
        raise _invalid_table(
            compiled, f"`{compiled.name}` does not use `{label}`", "leave it out of `inline=`"
        )
    produced = {fleeting.key: fleeting for fleeting in producer.computed}
    pairs = [
        (produced[fleeting.key], fleeting) for fleeting in consumed if fleeting.key in produced
    ]
    if not pairs:
        computed = (
            ", ".join(f"`{fleeting.label}`" for fleeting in produced.values())
            or "no virtual tensor"
        )
        raise _invalid_table(
            compiled, f"`{producer.name}` does not compute `{label}`",
            f"give the function that does; `{producer.name}` computes {computed}",
        )  # fmt: skip
    return pairs


def _invalid_table(compiled: Compiled, message: str, fix: str) -> CdTypeError:
    label = Label(compiled.procedure.span)
    return CdTypeError(Diagnostic("CD0855", message, (label,), helps=(fix,)))


def _require_rematerializable(
    producer: Compiled, labels: str, slot: Slot, parameter: Parameter
) -> None:
    """Raise CdTypeError CD0856 where a tensor depends on a value that does not outlive a call."""
    name = slot.field.label if isinstance(slot, Resident) else slot.name
    advice = f"make {labels} without `memory='virtual'`"
    if isinstance(slot, Argument):
        reason = f"`{name}`, which is no tensor, and nobody can tell whether it is the same"
        fix = f"make `{name}` a tensor, or {advice}"
    elif slot.merged:
        reason, fix = f"`{name}.merge`, which is in a merge buffer for one call", advice
    elif parameter.written:
        reason = f"`{name}`, which `{producer.name}` writes"
        fix = f"let `{producer.name}` write another tensor, or {advice}"
    else:
        return
    message = f"{labels} cannot be computed again: it needs {reason}"
    label = Label(producer.procedure.span)
    raise CdTypeError(Diagnostic("CD0856", message, (label,), helps=(fix,)))
