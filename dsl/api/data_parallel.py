"""Data-parallel training: a batch split over streams, a tree reduction of gradients, one update.

For n streams and a batch of m rows, in this order:

    stream s    step(rows s*m/n to (s+1)*m/n)                  concurrently
    tree        field of stream i += field of stream i + n/2   half as many streams each time
    stream 0    update()
    stream s    copies of the updated fields, where it has separate arrays

The split and the tree depend only on the numbers of streams and rows, so that repeated runs are
bit-identical. Sums are merged unscaled: divide by the size of the whole batch.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...backends.runtime.argument_checks import field_of
from ...backends.runtime.arrays import as_array
from ...backends.runtime.device import Stream
from ...backends.runtime.field import Field
from ...backends.runtime.routine import Compiled, Routine
from ...backends.runtime.tensor import Tensor
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from ..specialize.signature import has_arrays, looks_like_array
from .cd import CdFunction, cd_from_source

_ROOT = re.compile(r"[.\[]")
_MERGE = "def merge_{label}(t):\n    t.{name} += t.{name}.merge\n"


class DataParallel:
    """A training step on several streams. Call it with the arguments of a step; it is asynchronous.

    `step` writes the fields to merge, of tensors that are arguments or captured; `update` is run
    once on the first stream, with the arguments `with_update`. `merge` are the fields that every
    stream accumulates into: `(w.grad, loss)`; a tensor means its value.
    """

    def __init__(
        self,
        step: CdFunction[..., Any],
        update: CdFunction[..., Any],
        streams: Sequence[Stream],
        merge: Sequence[Tensor | Field],
        with_update: Sequence[Any] = (),
    ) -> None:
        if not streams:
            helps = ("give it one or more: `[pe.device().stream(), pe.device().stream()]`",)
            raise CdValueError(Diagnostic("CD0827", "there is no stream to run on", helps=helps))
        self.step = step
        self._signature = inspect.signature(step)
        self.merged = tuple(map(field_of, merge))
        self._contexts = [stream.context() for stream in streams]
        self._routines: dict[object, Routine] = {}
        """The linked steps and updates by stream, code and tensors."""
        self._mergers: dict[tuple[int, Field], Routine] = {}
        self._update: tuple[CdFunction[..., Any], Sequence[Any]] = (update, with_update)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Queue one step: arrays are split along their first axis, other arguments are broadcast.

        Lists of numbers are arrays. Raises CdTypeError CD0828 where there is no array, the first
        axes differ, or an array is inside a container, and what compiling, linking and inline
        streams raise.
        """
        chunks = self._split_arguments(
            [_as_argument(value, f"argument {at}") for at, value in enumerate(args)],
            {name: _as_argument(value, name) for name, value in kwargs.items()},
        )
        for at, (positional, named) in enumerate(chunks):
            routine, arguments = self._step_routine(at, positional, named)
            routine(**arguments)
        active = len(chunks)
        while active > 1:
            half = (active + 1) // 2
            for at in range(half, active):
                self._merge(at, at - half)
            active = half
        self._queue_update()

    def synchronize(self) -> None:
        """Wait until every stream is done; raises the exception of a failed step, once."""
        for context in self._contexts:
            context.stream.synchronize()

    def _split_arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[tuple[list[Any], dict[str, Any]]]:
        """Return the arguments for each stream with a chunk of rows."""
        values = [*args, *kwargs.values()]
        rows = {len(value) for value in values if _is_split(value)}
        if len(rows) != 1:
            row_counts = " and ".join(map(str, sorted(rows))) or "no array at all"
            raise CdTypeError(
                Diagnostic(
                    "CD0828", f"the arrays of a batch need one number of rows, not {row_counts}",
                    helps=("give NumPy arrays whose first axes agree",),
                )
            )  # fmt: skip
        (count,) = rows
        streams = min(len(self._contexts), max(count, 1))
        bounds = [count * at // streams for at in range(streams + 1)]
        slices = [slice(lo, hi) for lo, hi in zip(bounds, bounds[1:], strict=False)]
        return [
            (
                [value[chunk] if _is_split(value) else value for value in args],
                {k: value[chunk] if _is_split(value) else value for k, value in kwargs.items()},
            )
            for chunk in slices
        ]

    def _step_routine(
        self, at: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Routine, dict[str, Any]]:
        """Return the routine of a step for a stream, linked if it is new there, and the arguments
        of its call: tensors and static values are bound."""
        named = self._signature.bind(*args, **kwargs).arguments
        compiled = self.step.compile(*args, **kwargs)
        for name in compiled.names:
            if name not in named and _ROOT.split(name)[0] in named:
                raise _split_error(f"`{name}` is reached by an argument, and is not split")
        given = {name: named[name] for name in compiled.names if name in named}
        return self._routine(at, compiled), compiled.given | given

    def _routine(self, at: int, compiled: Compiled) -> Routine:
        """Return the routine of a compiled function for a stream, linked if it is new there.

        Functions are compiled for each call, as calls of them are: what they capture, and static
        values in objects, may have changed. Where nothing has, that is a look-up.
        """
        key = at, compiled.link_key
        if key not in self._routines:
            self._routines[key] = self._link(at, compiled)
        return self._routines[key]

    def _link(self, at: int, compiled: Compiled) -> Routine:
        routine = compiled.link(self._contexts[at])
        self._contexts[at] = routine.context
        return routine

    def _merge(self, source: int, target: int) -> None:
        """Queue the accumulation of one stream's fields into those of another."""
        for field in self.merged:
            key = target, field
            if key not in self._mergers:
                tensor, name = field.tensor, field.name
                label = f"{tensor.label}_{name}"
                text = _MERGE.format(label=label if label.isidentifier() else "field", name=name)
                self._mergers[key] = self._link(target, cd_from_source(text).compile(tensor))
            merger = self._mergers[key]
            self._contexts[source].merge_into(merger, field, mode="streaming")
            merger()

    def _queue_update(self) -> None:
        """Queue the update, and copies of its results for streams with separate arrays."""
        function, arguments = self._update
        compiled = function.compile(*arguments)
        updater = self._routine(0, compiled)
        updater(**compiled.given)
        first = self._contexts[0]
        for context in self._contexts[1:]:
            for field in updater.outputs:
                if context.find(field) not in (None, first.find(field)):
                    context.copy_from(first, field)


def _as_argument(value: Any, name: str) -> Any:
    """Return an argument, converted to an array where it is array-like.

    Raises CdTypeError CD0828 for a container of arrays.
    """
    if has_arrays(value) or (type(value) is tuple and any(map(_is_split, value))):
        raise _split_error(f"`{name}` holds arrays, which are not split")
    if isinstance(value, Tensor | Field) or not looks_like_array(value):
        return value
    array = as_array(value, name)
    return array if array.ndim else value


def _split_error(message: str) -> CdTypeError:
    helps = ("give each array as an argument of its own",)
    return CdTypeError(Diagnostic("CD0828", message, helps=helps))


def _is_split(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0
