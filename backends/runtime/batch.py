"""Several compiled functions linked together: one text, compiled once, and one map of arrays.

routines = pe.Batch(step.compile(p, x), update.compile(p)).link(stream.context())
"""

from __future__ import annotations

from .device import Context
from .parameter_slots import Resident
from .routine import Compiled, Routine
from .state import RUNTIME
from .transfer import scheduling


class Batch:
    """Compiled functions that are linked into one context. Each routine keeps its own name."""

    def __init__(self, *compiled: Compiled) -> None:
        self.compiled = compiled

    def link(self, context: Context) -> tuple[Routine, ...]:
        """Return their routines, in order, in one new child of a context.

        What has no code for the backend yet is compiled together. A field that any of them writes
        has an array for writing from the start, whatever the order. Raises what linking each of
        them raises; then nothing is linked.
        """
        for one in self.compiled:
            one.require_context(context)
            one.require_kept(context)  # before anything is compiled
        backend = context.device.code
        distinct = {id(one.codes): one.codes for one in self.compiled}
        missing = [codes for codes in distinct.values() if not codes.has(backend)]
        made = RUNTIME.compile_all([codes.procedure for codes in missing], backend)
        for codes, code in zip(missing, made, strict=True):
            codes.keep(backend, code)
        with scheduling(context.stream):
            child = Context(context.stream, context)
            for one in self.compiled:
                one.require_writable(child)
            for one in self.compiled:
                for slot, parameter in one.parameters:
                    if isinstance(slot, Resident) and parameter.written and not slot.merged:
                        child.adopt(slot.field, True)
            return tuple(Routine(one, child) for one in self.compiled)

    def __repr__(self) -> str:
        return f"<batch of {', '.join(one.name for one in self.compiled)}>"
