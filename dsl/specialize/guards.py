"""A plan before it has addresses: what it compares, where each value is found, what it returns.

    Step   := source, check      something that is looked at in every call
    source := (ARGUMENT, name) | (NAME, scope, name) | (CONSTANT, object)
            | (ATTRIBUTE, step, name) | (ITEM, step, key)
            | (MADE, step, function): what the function makes of a value, such as the array of a
              list, of another package's array, of a tensor's field
    check  := (ANY,) | (SAME, object) | (TYPE, class) | (SIZED, class, length) | (EQUAL, int)
            | (ARRAY, dtype, shape, strides, flags[, class]) | (SHARED, step): an array of the
              same memory | (FLOAT,) | (INTEGER,) | (NUMBER, class) | (BITS, float) | (LISTED,)

`plan` makes one of compiled code, `front` one of an entry on disk; here they become what the
compiled function reads.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...backends.cc import fast_call
from ...backends.cc.fast_call import FLAGS, CacheEntry, EntryWords, Guard, PartKind, ValueSource
from ...base.diagnostic import CdError
from ..source.function_source import MISSING, Parts, Scope

Fail = Callable[..., NoReturn]
"""Raises the error that a status of compiled code means, with what the run wrote of it."""


class Step:
    """A value that is looked at: where it is found, and what it has to be."""

    __slots__ = ("check", "source")

    def __init__(self, source: tuple[Any, ...], check: tuple[Any, ...] = (Guard.ANY,)) -> None:
        self.source, self.check = source, check


class Recipe(NamedTuple):
    """What a call is compared with and what it returns. Steps are named by their numbers."""

    steps: Sequence[Step]
    pairs: Sequence[tuple[int, int]]
    """Arrays that may not overlap."""
    equals: Sequence[tuple[int, int]]
    """Values that have to be one and the same object."""
    inputs: Sequence[tuple[int, bool]]
    """What the code gets, in order, and whether that is an array."""
    results: Sequence[tuple[int, Any, tuple[int, ...]]]
    """How each result is made (a `New`), its NumPy type and its shape."""
    whole: int
    """How the parts are returned, a `Whole`."""
    parts: Sequence[tuple[int, Any]]
    """What is returned, each with a `PartKind`: an object, the number of a step or a result, or the
    words of a view: a result's number, or -1 minus a step's, bytes to its first element, flags,
    rank, shape, strides."""
    finish: Callable[..., object] | None = None
    """What makes of the parts what is returned, where it is nested, or of a class of its own."""
    settle: Callable[..., None] | None = None
    """What is called with the values of all steps once the code has run, however that ended."""


class Form(NamedTuple):
    """How the parameters of a function were given: by place, by name, or by their defaults."""

    positional: int
    named: tuple[str, ...]
    defaults: Mapping[str, object]
    """Of all parameters, in their order."""
    parts: Parts | None = None
    """What Python runs of the function, None for a text."""

    def current(self, at: int) -> list[Step]:
        """Return steps, the first with this number, that hold while the function's code and the
        default values that such calls take are the same."""
        if self.parts is None:
            return []
        function, code, defaults, by_name = self.parts
        steps = [Step((ValueSource.CONSTANT, function))]
        steps += [Step((ValueSource.ATTRIBUTE, at, "__code__"), (Guard.SAME, code))]
        missing = [name for name in [*self.defaults][self.positional :] if name not in self.named]
        own = [name for name in missing if name in by_name]
        if len(missing) > len(own):
            steps += [Step((ValueSource.ATTRIBUTE, at, "__defaults__"), (Guard.SAME, defaults))]
        if own:
            steps += [Step((ValueSource.ATTRIBUTE, at, "__kwdefaults__"))]
            place = at + len(steps) - 1
            steps += [
                Step((ValueSource.ITEM, place, name), (Guard.SAME, by_name[name])) for name in own
            ]
        return steps


def packed(
    recipe: Recipe,
    form: Form,
    settings: object,
    code: tuple[int, int, int],
    held: object,
    fail: Fail,
    general: bool = False,
) -> CacheEntry | None:
    """Return the plan of a recipe for calls of one form under the settings; None if it is long.

    `code` are the addresses that `warm.pack` takes, `held` keeps them good, and `fail` raises the
    error of a run, which is to be raised without the way here. With `general` the long way looks
    whether sizes that differ broadcast in code for the call alone.
    """
    words = _Words(form)
    steps = (*recipe.steps, *form.current(len(recipe.steps)))
    values = [
        fast_call.pack_value(words.source(one.source), words.check(one.check)) for one in steps
    ]
    results = [
        (made, words.address(dtype), dtype.itemsize * prod(shape), len(shape), *shape)
        for made, dtype, shape in recipe.results
    ]
    parts, views = list[int](), list[int]()
    for kind, what in recipe.parts:
        at = 2 + 2 * len(recipe.parts) + len(views)
        parts += (kind, at) if kind == PartKind.VIEW else words.part(kind, what)
        views += what if kind == PartKind.VIEW else ()
    made = fast_call.pack_entry(
        settings, (form.positional, len(form.named)), values, recipe.pairs, recipe.equals,
        recipe.inputs, results, (recipe.whole, len(recipe.parts), *parts, *views),
        code,
    )  # fmt: skip

    def error(status: int, *fault: int) -> BaseException | None:
        try:
            fail(status, *fault)
        except CdError as problem:
            if general and problem.code == "CD0301":
                return None
            return problem.with_traceback(None)

    kept = settings, held, *words.kept
    return None if made is None else (made, kept, error, recipe.finish, recipe.settle)


class _Words:
    """Turns what names objects into words; keeps the objects whose addresses are among them."""

    __slots__ = ("form", "kept")

    def __init__(self, form: Form) -> None:
        self.form = form
        self.kept: list[object] = []

    def address(self, value: object) -> int:
        self.kept.append(value)
        return id(value)

    def source(self, source: tuple[Any, ...]) -> EntryWords:
        match source:
            case (ValueSource.ARGUMENT, str() as name):
                return self.argument(name)
            case (ValueSource.NAME, Scope() as scope, str() as name) if name in scope.cells:
                return ValueSource.CELL, self.address(scope.cells[name]), 0, 0
            case (ValueSource.NAME, Scope() as scope, str() as name):
                around = map(self.address, (scope.globals, scope.builtins))
                return (ValueSource.NAME, *around, self.address(name))
            case (ValueSource.ATTRIBUTE | ValueSource.ITEM as kind, int() as base, key):
                return kind, base, 0, self.address(key)
            case (ValueSource.MADE, int() as base, function):
                return ValueSource.MADE, base, 0, self.address(function)
            case (_, constant):
                return ValueSource.CONSTANT, 0, 0, self.address(constant)
        raise AssertionError(f"no source: {source}")

    def argument(self, name: str) -> EntryWords:
        """Return where an argument is, which may be a default."""
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
        """Return the words of a layout; its memory goes from `low` to `high` around its data."""
        reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
        head = self.address(dtype), len(shape), FLAGS, flags, low, high + dtype.itemsize
        return (*head, *shape, *strides)

    def part(self, kind: int, what: Any) -> EntryWords:
        """Return one thing of what comes back."""
        return kind, self.address(what) if kind == PartKind.OBJECT else what
