"""Batches: compiled functions that are compiled as one text and linked into one context.

routines = pe.Batch(step.compile(p, x), update.compile(p)).link(stream.context())
"""

from __future__ import annotations

from .device import Context
from .parameter_slots import Resident
from .routine import Compiled, Routine
from .state import RUNTIME
from .transfer import decide


class Batch:
    """Compiled functions that are linked into one context."""

    def __init__(self, *compiled: Compiled) -> None:
        self.compiled = compiled

    def link(self, context: Context) -> tuple[Routine, ...]:
        """Return their routines, in order, in one new child of a context.

        Functions without code for the backend are compiled together. A field that any of them
        writes has a writable array from the start, whatever the order. Raises the errors of
        `Compiled.link`; then nothing is linked.
        """
        for function in self.compiled:
            function.require_context(context)
            function.require_retained_inputs(context)  # before anything is compiled
        backend = context.device.code
        distinct = {id(function.codes): function.codes for function in self.compiled}
        missing = [codes for codes in distinct.values() if not codes.has(backend)]
        compiled_codes = RUNTIME.compile_all([codes.procedure for codes in missing], backend)
        for codes, code in zip(missing, compiled_codes, strict=True):
            codes.keep(backend, code)

        for function in self.compiled:
            function.note_link(context)

        def decision() -> tuple[Routine, ...]:
            child = Context(context.stream, context)
            for function in self.compiled:
                function.require_writable(child)
            for function in self.compiled:
                for slot, parameter in function.parameters:
                    if isinstance(slot, Resident) and parameter.written and not slot.merged:
                        child.adopt(slot.field, True)
            return tuple(Routine(function, child) for function in self.compiled)

        return decide(decision, context.stream)

    def __repr__(self) -> str:
        return f"<batch of {', '.join(function.name for function in self.compiled)}>"
