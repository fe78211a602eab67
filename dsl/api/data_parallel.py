"""Data parallel training: a batch split over streams, gradients merged as a tree, one update.

For n streams and a batch of m rows, in this order:

    stream s    step(rows s*m/n to (s+1)*m/n)                  all at once
    tree        field of stream i += field of stream i + n/2   half as many streams each time
    stream 0    update()
    stream s    the updated fields, where it has arrays of its own

The split and the tree depend on the number of streams and rows only, so that the same run gives
the same bits every time. Sums are merged as they are: divide by the size of the whole batch.
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
from ...backends.runtime.routine import Routine
from ...backends.runtime.tensor import Tensor
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from ..specialize.signature import has_arrays, looks_like_array
from .cd import CdFunction, cd_from_source

_ROOT = re.compile(r"[.\[]")
_MERGE = "def merge_{label}(t):\n    t.{name} += t.{name}.merge\n"


class DataParallel:
    """A training step on several streams. Call it with what one step takes; it does not wait.

    `step` writes the fields to merge, of the tensors given or captured; `update` is run once on
    the first stream, with the arguments `with_update`. `merge` are the fields that every stream
    adds to: `(w.grad, loss)`; a tensor stands for its value.
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
        self._steps: dict[object, list[tuple[dict[str, Any], Routine]]] = {}
        """The linked steps by stream and kinds of arguments, with the numbers that they hold."""
        self._mergers: dict[tuple[int, Field], Routine] = {}
        self._update: tuple[CdFunction[..., Any], Sequence[Any]] = (update, with_update)
        self._updater: Routine | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Queue one step: arrays are split along their first axis, all else goes to every stream.

        Lists of numbers are arrays. Raises CdTypeError CD0828 where no array is given, their first
        axes differ, or one is within something else, and what compiling, linking and inline
        streams raise.
        """
        parts = self._parts(
            [_as_given(value, f"argument {at}") for at, value in enumerate(args)],
            {name: _as_given(value, name) for name, value in kwargs.items()},
        )
        for at, (part, named) in enumerate(parts):
            routine, arguments = self._routine(at, part, named)
            routine(**arguments)
        active = len(parts)
        while active > 1:
            half = (active + 1) // 2
            for at in range(half, active):
                self._merge(at, at - half)
            active = half
        self._updated()

    def synchronize(self) -> None:
        """Return when every stream is done; raises what failed, once."""
        for context in self._contexts:
            context.stream.synchronize()

    def _parts(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[tuple[list[Any], dict[str, Any]]]:
        """Return the arguments for each stream that has rows to work on."""
        every = [*args, *kwargs.values()]
        rows = {len(value) for value in every if _is_split(value)}
        if len(rows) != 1:
            found = " and ".join(map(str, sorted(rows))) or "no array at all"
            raise CdTypeError(
                Diagnostic(
                    "CD0828", f"the arrays of a batch need one number of rows, not {found}",
                    helps=("give NumPy arrays whose first axes agree",),
                )
            )  # fmt: skip
        (count,) = rows
        streams = min(len(self._contexts), max(count, 1))
        ends = [count * at // streams for at in range(streams + 1)]
        cuts = [slice(lo, hi) for lo, hi in zip(ends, ends[1:], strict=False)]
        return [
            (
                [value[cut] if _is_split(value) else value for value in args],
                {k: value[cut] if _is_split(value) else value for k, value in kwargs.items()},
            )
            for cut in cuts
        ]

    def _routine(
        self, at: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Routine, dict[str, Any]]:
        """Return the step for a stream and some arguments, linked where it is new there.

        With it comes what a call of it gives: tensors and what is known when compiling are bound.
        """
        named = self._signature.bind(*args, **kwargs).arguments

        def given(routine: Routine) -> dict[str, Any]:
            return {name: named[name] for name in routine.compiled.names if name in named}

        key = (at, *((name, _kind(value)) for name, value in named.items()))
        steps = self._steps.setdefault(key, [])
        for known, routine in steps:
            if all(named[name] == value for name, value in known.items()):
                return routine, given(routine)
        routine = self._linked(at, self.step.compile(*args, **kwargs))
        for name in routine.compiled.names:
            if name not in named and _ROOT.split(name)[0] in named:
                raise _unsplit(f"`{name}` is reached by an argument, and is not split")
        bound = named.keys() - set(routine.compiled.names)
        known = {n: named[n] for n in bound if not isinstance(named[n], Tensor | np.ndarray)}
        steps.append((known, routine))
        return routine, given(routine)

    def _linked(self, at: int, compiled: Any) -> Routine:
        routine: Routine = compiled.link(self._contexts[at])
        self._contexts[at] = routine.context
        return routine

    def _merge(self, source: int, target: int) -> None:
        """Queue the addition of one stream's fields to those of another."""
        for field in self.merged:
            key = target, field
            if key not in self._mergers:
                tensor, name = field.tensor, field.name
                label = f"{tensor.label}_{name}"
                text = _MERGE.format(label=label if label.isidentifier() else "field", name=name)
                self._mergers[key] = self._linked(target, cd_from_source(text).compile(tensor))
            merger = self._mergers[key]
            self._contexts[source].merge_into(merger, field, mode="streaming")
            merger()

    def _updated(self) -> None:
        """Queue the update, and its results for the streams with arrays of their own."""
        if self._updater is None:
            function, arguments = self._update
            self._updater = self._linked(0, function.compile(*arguments))
        self._updater()
        first = self._contexts[0]
        for context in self._contexts[1:]:
            for field in self._updater.outputs:
                if context.find(field) not in (None, first.find(field)):
                    context.copy_from(first, field)


def _as_given(value: Any, name: str) -> Any:
    """Return an argument, a list of numbers or whatever else makes an array as that array.

    Raises CdTypeError CD0828 for a list of arrays.
    """
    if has_arrays(value) or (type(value) is tuple and any(map(_is_split, value))):
        raise _unsplit(f"`{name}` holds arrays, which are not split")
    if isinstance(value, Tensor | Field) or not looks_like_array(value):
        return value
    array = as_array(value, name)
    return array if array.ndim else value


def _unsplit(message: str) -> CdTypeError:
    helps = ("give each array as an argument of its own",)
    return CdTypeError(Diagnostic("CD0828", message, helps=helps))


def _is_split(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _kind(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.strides
    return id(value) if isinstance(value, Tensor) else type(value)
