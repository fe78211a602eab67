"""Data-parallel training: a batch split over streams, a tree reduction of gradients, one update.

For n streams and a batch of m rows, in this order:

    stream s    step(rows s*m/n to (s+1)*m/n)                  concurrently
    tree        field of stream i += field of stream i + n/2   half as many streams each time
    stream 0    update()
    stream s    copies of the updated fields, where it has separate arrays

All of this is recorded once for the code that it runs, and queued again from then on. The split and
the tree depend only on the numbers of streams and rows, so that repeated runs are bit-identical.
Sums are merged unscaled: divide by the size of the whole batch.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ...backends.runtime.argument_checks import field_of
from ...backends.runtime.arrays import as_array
from ...backends.runtime.device import Stream
from ...backends.runtime.field import Field
from ...backends.runtime.plan.replay import Replay, ReplayRecorder
from ...backends.runtime.routine import Compiled, Routine
from ...backends.runtime.state import RUNTIME
from ...backends.runtime.tensor import Tensor
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from ..specialize.signature import has_arrays, looks_like_array
from .cd import CdFunction, cd_from_source

_ROOT = re.compile(r"[.\[]")
_Call: TypeAlias = tuple[Routine, Mapping[str, Any], tuple[int, Field] | None]
"""A routine, its arguments, and the number of a stream with a field of it that it merges."""
_MERGE = "def merge_{label}(t):\n    t.{name} += t.{name}.merge\n"


class DataParallel:
    """A training step on several streams. Call it with the arguments of a step; it is asynchronous.

    `step` writes the fields to merge, of tensors that are arguments or captured; what it returns is
    dropped. `update` is run once on the first stream, with the arguments `with_update`. `merge` are
    the fields that every stream accumulates into: `(w.grad, loss)`; a tensor means its value.
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
        self._routines: dict[tuple[int, object], Routine] = {}
        """The linked functions by stream, code and tensors."""
        self._update: tuple[CdFunction[..., Any], Sequence[Any]] = (update, with_update)
        self._has_threads = all(stream.threaded for stream in streams)
        self._recorder = ReplayRecorder()
        self._replays: dict[tuple[Routine, ...], Replay] = {}
        """The recorded calls, for the routines that they call."""

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
        calls = [self._step_call(at, *chunk) for at, chunk in enumerate(chunks)]
        calls += self._merge_calls(len(chunks))
        function, given = self._update
        calls.append(self._linked(0, function.compile(*given), {}))
        if RUNTIME.planned() is not None or not self._has_threads:
            self._call_all(calls)
            return
        key = tuple(routine for routine, _, _ in calls)
        if key not in self._replays:
            self._replays[key] = self._recorder.record(lambda: self._call_all(calls))
        self._replays[key].queue([arguments for _, arguments, _ in calls])

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
            ([_part(v, chunk) for v in args], {k: _part(v, chunk) for k, v in kwargs.items()})
            for chunk in slices
        ]

    def _step_call(self, at: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Call:
        """Return the call of a step on a stream, linked if it is new there: tensors and static
        values are bound."""
        named = self._signature.bind(*args, **kwargs).arguments
        compiled = self.step.compile(*args, **kwargs)
        for name in compiled.names:
            if name not in named and _ROOT.split(name)[0] in named:
                raise _split_error(f"`{name}` is reached by an argument, and is not split")
        given = {name: named[name] for name in compiled.names if name in named}
        return self._linked(at, compiled, given)

    def _linked(self, at: int, compiled: Compiled, given: Mapping[str, Any]) -> _Call:
        """Return the call of a compiled function on a stream, linked if it is new there.

        Functions are compiled for each call, as calls of them are: what they capture, and static
        values in objects, may have changed. Where nothing has, that is a look-up.
        """
        key = at, compiled.link_key
        if key not in self._routines:
            self._replays.clear()  # a new array may be one that updates are copied into
            self._routines[key] = compiled.link(self._contexts[at])
            self._contexts[at] = self._routines[key].context
        return self._routines[key], {**compiled.given, **given}, None

    @cached_property
    def _mergers(self) -> dict[Field, Compiled]:
        """What adds another stream's version of a field to that of its own."""
        return {field: _compiled_merger(field) for field in self.merged}

    def _merge_calls(self, active: int) -> Iterator[_Call]:
        """Yield the calls that merge the fields of so many streams, linked where they are new."""
        while active > 1:
            half = (active + 1) // 2
            for at in range(half, active):
                for field, compiled in self._mergers.items():
                    merger, given, _ = self._linked(at - half, compiled, {})
                    yield merger, given, (at, field)
            active = half

    def _call_all(self, calls: Sequence[_Call]) -> None:
        """Call everything in order; then copy what is updated to streams with separate arrays."""
        for routine, arguments, merged in calls:
            if merged is not None:
                source, field = merged
                self._contexts[source].merge_into(routine, field, mode="streaming")
            routine(**arguments)
        first, (updater, _, _) = self._contexts[0], calls[-1]
        for context in self._contexts[1:]:
            for field in updater.outputs:
                if context.find(field) not in (None, first.find(field)):
                    context.copy_from(first, field)


def _compiled_merger(field: Field) -> Compiled:
    tensor, name = field.tensor, field.name
    label = f"{tensor.label}_{name}"
    text = _MERGE.format(label=label if label.isidentifier() else "field", name=name)
    return cd_from_source(text).compile(tensor)


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


def _part(value: Any, chunk: slice) -> Any:
    return value[chunk] if _is_split(value) else value


def _is_split(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0
