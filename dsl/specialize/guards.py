"""Guard programs of calls in symbolic form: guarded values, inputs of the code, and results.

    Step   := source, check      a value that is checked in every call
    source := (ARGUMENT, name) | (NAME, scope, name) | (CONSTANT, object)
            | (ATTRIBUTE, step, name) | (ITEM, step, key)
            | (MADE, step, function): the function's result for a value, such as the array of a
              list, of another package's array, of a tensor's field
    check  := (ANY,) | (SAME, object) | (TYPE, class) | (SIZED, class, length) | (EQUAL, int)
            | (ARRAY, dtype, shape, strides, flags[, class]) | (SHARED, step): an array of the
              same memory | (FLOAT,) | (INTEGER,) | (NUMBER, class) | (BITS, float) | (LISTED,)

`fast_path` builds one for compiled code, `persistent_cache` one from an entry on disk.
`pack_guards` translates them to the words that the compiled fast path interprets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...backends.call_entry import (
    FLAGS,
    CacheEntry,
    EntryWords,
    Guard,
    PartKind,
    ValueSource,
    pack_entry,
    pack_value,
)
from ...base.diagnostic import CdError
from ..source.function_source import MISSING, FunctionSnapshot, Scope

RaiseError = Callable[..., NoReturn]
"""Raises the error for a status of compiled code, with the details that the run wrote."""


class CallGuard:
    """A guarded value: its source, and the check that it has to pass."""

    __slots__ = ("check", "source")

    def __init__(self, source: tuple[Any, ...], check: tuple[Any, ...] = (Guard.ANY,)) -> None:
        self.source, self.check = source, check


class GuardProgram(NamedTuple):
    """The guards of a call and its results. Steps are referenced by their numbers."""

    steps: Sequence[CallGuard]
    pairs: Sequence[tuple[int, int]]
    """Pairs of arrays that may not overlap."""
    equals: Sequence[tuple[int, int]]
    """Pairs of values that have to be identical objects, or two objects where the first number is
    -1 minus that of the value."""
    inputs: Sequence[tuple[int, bool]]
    """The arguments of the code in order (step, whether it is an array)."""
    results: Sequence[tuple[int, Any, tuple[int, ...]]]
    """How each result is allocated (a `New`), its NumPy type and its shape."""
    whole: int
    """The kind of container that is returned, a `Whole`."""
    parts: Sequence[tuple[int, Any]]
    """The returned parts, each with a `PartKind`: an object, the number of a step or a result, or
    the words of a view: a result's number, or -1 minus a step's, the offset of its first element in
    bytes, flags, rank, shape, strides."""
    finish: Callable[..., object] | None = None
    """Builds the returned value from the parts, where it is nested or of a special class."""
    settle: Callable[..., None] | None = None
    """Called with the values of all steps after the run, also where it failed."""


class CallShape(NamedTuple):
    """The shape of a call: which arguments are positional, named, or defaults."""

    positional: int
    named: tuple[str, ...]
    defaults: Mapping[str, object]
    """The default values of all parameters, in their order."""
    parts: FunctionSnapshot | None = None
    """The function's code and defaults when it was defined, None for a text."""

    def current(self, at: int) -> list[CallGuard]:
        """Return the guards, numbered from `at`, that the function's code and the default values
        used by such calls are unchanged."""
        if self.parts is None:
            return []
        function, code, defaults, by_name = self.parts
        steps = [CallGuard((ValueSource.CONSTANT, function))]
        steps += [CallGuard((ValueSource.ATTRIBUTE, at, "__code__"), (Guard.SAME, code))]
        defaulted = [name for name in [*self.defaults][self.positional :] if name not in self.named]
        keyword_only = [name for name in defaulted if name in by_name]
        if len(defaulted) > len(keyword_only):
            steps += [
                CallGuard((ValueSource.ATTRIBUTE, at, "__defaults__"), (Guard.SAME, defaults))
            ]
        if keyword_only:
            steps += [CallGuard((ValueSource.ATTRIBUTE, at, "__kwdefaults__"))]
            kwdefaults = at + len(steps) - 1
            steps += [
                CallGuard((ValueSource.ITEM, kwdefaults, name), (Guard.SAME, by_name[name]))
                for name in keyword_only
            ]
        return steps


def pack_guards(
    guards: GuardProgram,
    form: CallShape,
    settings: object,
    code: tuple[int, int, int],
    held: object,
    fail: RaiseError,
    general: bool = False,
) -> CacheEntry | None:
    """Return the packed guard program for calls of one shape under the settings; None if it is too
    long.

    `code` are the addresses that `pack_entry` takes, `held` keeps them alive, and `fail` raises
    the error of a run, without this module in its traceback. With `general` a size mismatch
    (CD0301) falls back to the slow path, which tries whether sizes broadcast.
    """
    encoder = _Encoder(form)
    steps = (*guards.steps, *form.current(len(guards.steps)))
    values = [pack_value(encoder.source(step.source), encoder.check(step.check)) for step in steps]
    results = [
        (program, encoder.address(dtype), dtype.itemsize * prod(shape), len(shape), *shape)
        for program, dtype, shape in guards.results
    ]
    parts, views = list[int](), list[int]()
    for kind, value in guards.parts:
        at = 2 + 2 * len(guards.parts) + len(views)
        parts += (kind, at) if kind == PartKind.VIEW else encoder.part(kind, value)
        views += value if kind == PartKind.VIEW else ()
    program = pack_entry(
        settings, (form.positional, len(form.named)), values, guards.pairs, guards.equals,
        guards.inputs, results, (guards.whole, len(guards.parts), *parts, *views),
        code,
    )  # fmt: skip

    def error(status: int, *fault: int) -> BaseException | None:
        try:
            fail(status, *fault)
        except CdError as problem:
            if general and problem.code == "CD0301":
                return None
            return problem.with_traceback(None)

    keep_alive = settings, held, *encoder.references
    return None if program is None else (program, keep_alive, error, guards.finish, guards.settle)


class _Encoder:
    """The encoder of sources and checks as words; it keeps the referenced objects alive."""

    __slots__ = ("form", "references")

    def __init__(self, form: CallShape) -> None:
        self.form = form
        self.references: list[object] = []

    def address(self, value: object) -> int:
        self.references.append(value)
        return id(value)

    def source(self, source: tuple[Any, ...]) -> EntryWords:
        match source:
            case (ValueSource.ARGUMENT, str() as name):
                return self.argument(name)
            case (ValueSource.NAME, Scope() as scope, str() as name) if name in scope.cells:
                return ValueSource.CELL, self.address(scope.cells[name]), 0, 0
            case (ValueSource.NAME, Scope() as scope, str() as name):
                namespaces = map(self.address, (scope.globals, scope.builtins))
                return (ValueSource.NAME, *namespaces, self.address(name))
            case (ValueSource.ATTRIBUTE | ValueSource.ITEM as kind, int() as base, key):
                return kind, base, 0, self.address(key)
            case (ValueSource.MADE, int() as base, function):
                return ValueSource.MADE, base, 0, self.address(function)
            case (_, constant):
                return ValueSource.CONSTANT, 0, 0, self.address(constant)
        raise AssertionError(f"no source: {source}")

    def argument(self, name: str) -> EntryWords:
        """Return the source of an argument, which may be a default."""
        if name in self.form.named:
            return ValueSource.KEYWORD, 0, 0, self.address(name)
        at = list(self.form.defaults).index(name)
        if at < self.form.positional:
            return ValueSource.ARGUMENT, at, 0, 0
        return ValueSource.CONSTANT, 0, 0, self.address(self.form.defaults[name])

    def check(self, check: tuple[Any, ...]) -> EntryWords:
        match check:
            case (Guard.SAME, value):
                return Guard.SAME, 0 if value is MISSING else self.address(value)
            case (Guard.ARRAY, dtype, shape, strides, flags, *kind):
                layout = self.array(dtype, shape, strides, flags)
                return Guard.ARRAY, self.address(kind[0] if kind else np.ndarray), *layout
            case (Guard.NUMBER, kind):
                return Guard.NUMBER, self.address(kind), np.dtype(kind).itemsize
            case (Guard.BITS, number):
                return (Guard.BITS, *struct.unpack("q", struct.pack("d", number)))
            case (Guard.TYPE | Guard.SIZED as wanted, kind, *length):
                return (wanted, self.address(kind), *length)
            case _:
                return check

    def array(
        self, dtype: Any, shape: Sequence[int], strides: Sequence[int], flags: int
    ) -> EntryWords:
        """Return the words of a layout; its memory extends from `low` to `high` around its data."""
        extents = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        low, high = sum(min(0, r) for r in extents), sum(max(0, r) for r in extents)
        header = self.address(dtype), len(shape), FLAGS, flags, low, high + dtype.itemsize
        return (*header, *shape, *strides)

    def part(self, kind: int, what: Any) -> EntryWords:
        """Return the words of one returned part."""
        return kind, self.address(what) if kind == PartKind.OBJECT else what
