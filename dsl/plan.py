"""A call written down as a plan: what to compare, then what to run and return.

All that the long way compares for a form is in it: the keys of the arguments and of what the
form watches, which arrays may not overlap, which are one and the same. It is made of those keys,
not of what the objects are by now, so it never says more of a form than the form was made for.
What has no place in a plan, such as tensors and what only Python can compare, goes the long way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..backends.cc.backend import CompiledC
from ..backends.cc.code import CompiledCode
from ..backends.cc.warm import RANK, Check, New, Packed, Part, Plan, Source, Value, Whole, Words
from ..backends.runtime.state import RUNTIME
from ..lowering import settings
from ..lowering.diagnostic import CdError
from ..lowering.ir import dtypes
from ..lowering.ir.node import Node
from .elaborate import typed as t
from .elaborate.inputs import ConstantSpec, ObjectSpec
from .elaborate.types import Kind
from .elaborate.values import Path
from .forms import Arguments, Lookup, Match, Specialisation
from .keys import FLAGS, describe_input
from .source import MISSING, Scope

_FIXED = (bool, str, bytes, int, float, complex, type(None), type(...), np.dtype, np.generic)
"""Types of constants that never change: the same object means the same value."""
_WEAK = {
    dtypes.float64: New.FLOAT, dtypes.int64: New.INTEGER, dtypes.bool_: New.BOOL,
    dtypes.complex128: New.COMPLEX,
}  # fmt: skip


class _Unfit(Exception):
    """What a call needs has no place in a plan."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the parameters of a function were given: by place, by name, or by their defaults."""

    positional: int
    named: tuple[str, ...]
    defaults: Mapping[str, object]


def short_way(match: Match) -> type | None:
    """Return the class whose objects are called in the short way; None where there is none, or
    not for this code."""
    backend = RUNTIME.backend(match.known.situation.backend)
    routine = match.known.routine
    if routine is None or not isinstance(routine.code, CompiledCode):
        return None
    if not isinstance(backend, CompiledC):
        return None
    try:
        return backend.short_way.wanted(backend.toolchain, RUNTIME.watching)
    except CdError:
        return None


def plan_of(match: Match, form: Form, arguments: Arguments, lookup: Lookup) -> Packed | None:
    """Return the plan for calls like one that a form fits without a look, None where there is none.

    The settings are those that the form was found under.
    """
    try:
        return _plan(match, form, arguments, lookup)
    except (_Unfit, CdError):
        return None


def _plan(match: Match, form: Form, arguments: Arguments, lookup: Lookup) -> Packed | None:
    known, routine = match.known, match.known.routine
    assert routine is not None, "a form that is called has code"
    code, now = routine.code, settings.current()
    if now != known.situation.settings or now.debug_log_from_routines:  # another thread may `use`
        return None
    if not isinstance(code, CompiledCode):
        return None
    values = _Values(known, form, lookup)
    values.arguments(arguments, match.key)
    for watch in known.watched:
        values.check(values.place(watch.path), watch.key, watch.get(arguments), watch.path)
    inputs = [
        values.input(path, dtype)
        for path, dtype in zip(known.typed.passed, known.scalars, strict=True)
    ]
    short = code.short(match.given)
    if short is None:
        return None
    plan = Plan(
        settings=now,
        positional=form.positional,
        named=len(form.named),
        values=values.found,
        pairs=[
            pair for one, two in known.pairs
            if values.full.issuperset(pair := (inputs[one][0], inputs[two][0]))
        ],
        equals=[
            (values.array(one), values.array(two)) for one, two in known.situation.alias.items()
        ],
        inputs=inputs,
        results=[
            values.result(node, _kinds(known.typed.returns, at))
            for at, node in enumerate(routine.results)
        ],
        returned=values.returned(known.typed.returns),
        function=short.function,
        sizes=short.sizes,
    )  # fmt: skip
    packed = plan.pack()
    kept = (now, known, short, *values.kept)
    return None if packed is None else (packed, kept, code.fail)


@dataclass(slots=True)
class _Values:
    """The values of a plan so far, by path, and what has to be kept alive for their words."""

    known: Specialisation
    form: Form
    lookup: Lookup
    found: list[Value] = field(default_factory=list)
    places: dict[Path, int] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)
    full: set[int] = field(default_factory=set)
    """The arrays that have elements."""
    numbers: dict[int, Any] = field(default_factory=dict)
    """The types of the numbers that are given in each call."""

    def arguments(self, arguments: Arguments, key: Any) -> None:
        """Add all arguments, as their keys say."""
        for at, ((name, value), one) in enumerate(zip(arguments.items(), key, strict=True)):
            path = Path(name)
            if name in self.form.named:
                self.add(path, Source.KEYWORD, name)
            elif at < self.form.positional:
                self.add(path, Source.ARGUMENT, None, at)
            else:
                self.add(path, Source.CONSTANT, self.form.defaults[name])
            self.check(self.places[path], one, value, path)

    def add(self, path: Path, source: Source, named: object, first: int = 0, last: int = 0) -> int:
        """Add a value that may be anything; return its number."""
        self.places[path] = len(self.found)
        self.found.append(Value((source, first, last, 0 if named is None else self.address(named))))
        return self.places[path]

    def address(self, value: object) -> int:
        """Return an object's address, which is kept for it from now on."""
        self.kept.append(value)
        return id(value)

    def place(self, path: Path) -> int:
        """Return the number of the value that a path leads to, added where there is none."""
        if path in self.places:
            return self.places[path]
        if not path.steps:
            return self.captured(path)
        base = self.place(Path(path.root, path.steps[:-1], path.captured))
        match path.steps[-1]:
            case str() as name:
                if name.startswith("@"):
                    raise _Unfit
                return self.add(path, Source.ATTRIBUTE, name, base)
            case (key,) | key:
                return self.add(path, Source.ITEM, key, base)

    def captured(self, path: Path) -> int:
        """Add a captured name, as `forms.getter` finds it."""
        typed = self.known.typed
        if path.root in typed.constants:
            return self.add(path, Source.CONSTANT, typed.constants[path.root])
        prefix, _, name = path.root.rpartition(":")
        lookup = typed.roots[prefix + ":"] if prefix else self.lookup
        scope = getattr(lookup, "__self__", None)
        if not isinstance(scope, Scope):
            raise _Unfit
        if name in scope.cells:
            return self.add(path, Source.CELL, name, self.address(scope.cells[name]))
        around = scope.globals, scope.builtins
        if not all(type(names) is dict for names in around):
            raise _Unfit
        return self.add(path, Source.NAME, name, *map(self.address, around))

    def check(self, at: int, key: Any, value: Any, path: Path) -> None:
        """Have a value compared with a key; see `keys.quick_key`."""
        match key:
            case (np.dtype() as dtype, tuple() as shape, strides, flags):
                words = self.layout(at, dtype, shape, strides, flags)
            case (type() as kind, int() as number) if kind is int:
                words = Check.EQUAL, number
                if not -(2**63) <= number < 2**63:
                    raise _Unfit
            case (type() as kind, *keys) if kind in (tuple, list):
                words = Check.SIZED, id(kind), len(keys)
                for number, one in enumerate(keys):
                    inner = Path(path.root, (*path.steps, number), path.captured)
                    self.check(self.place(inner), one, value[number], inner)
            case (type() as kind,):
                words = self.number(at, kind)
            case _:
                words = self.constant(at, key, value, path)
        self.found[at].check = words

    def layout(
        self, at: int, dtype: Any, shape: Sequence[int], strides: Sequence[int], flags: int
    ) -> Words:
        """Return the check of an array."""
        reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
        if len(shape) > RANK:
            raise _Unfit
        if 0 not in shape:
            self.full.add(at)
        head = self.address(dtype), len(shape), FLAGS, flags, low, high + dtype.itemsize
        return (Check.ARRAY, *head, *shape, *strides)

    def number(self, at: int, kind: type) -> Words:
        """Return the check of a number whose value is given in each call."""
        if kind not in (float, int, complex) and not issubclass(kind, np.number):
            raise _Unfit
        self.numbers[at] = np.dtype(kind)
        if kind is float or kind is int:
            return (Check.FLOAT if kind is float else Check.INTEGER,)
        return Check.NUMBER, id(kind), self.numbers[at].itemsize

    def constant(self, at: int, key: Any, value: Any, path: Path) -> Words:
        """Return the check of what has to be the very object that it is now."""
        if value is MISSING:
            return Check.SAME, 0
        match key:
            case ObjectSpec(number, _) if number != id(value):  # a method, made when asked for
                for name in ("__self__", "__func__"):
                    inner = Path(path.root, (*path.steps, name), path.captured)
                    part = self.found[self.place(inner)]
                    part.check = Check.SAME, self.address(getattr(value, name))
                return Check.TYPE, self.address(type(value))
            case ObjectSpec():
                pass
            case ConstantSpec():
                if not isinstance(value, _FIXED) or describe_input(value, True) != key:
                    raise _Unfit
            case (kind, constant) if kind in (bool, str):
                value = constant
            case _ if key is not value:
                raise _Unfit
        return Check.SAME, self.address(value)

    def input(self, path: Path, dtype: Any) -> tuple[int, bool]:
        """Return the number of what the code gets, and whether it is an array."""
        at = self.place(path)
        is_array = self.found[at].check[0] == Check.ARRAY
        if not is_array and (at not in self.numbers or self.numbers[at] != dtype):
            raise _Unfit
        return at, is_array

    def array(self, path: Path) -> int:
        """Return the number of an array."""
        at, is_array = self.input(path, None)
        if not is_array:
            raise _Unfit
        return at

    def result(self, node: Node, kinds: set[Kind | None]) -> Words:
        """Return how a result is made: as an array, or as a number of these kinds."""
        shape = node.static_shape
        if shape is None or len(kinds) != 1 or len(shape) > RANK:
            raise _Unfit
        (kind,) = kinds
        made = New.ARRAY if kind is None else _WEAK.get(node.dtype) if kind.weak else New.NUMBER
        if made is None or (made != New.ARRAY and shape):
            raise _Unfit
        return made, self.address(node.dtype.numpy), len(shape), *shape

    def returned(self, returns: t.Return) -> Words:
        """Return what comes back, as a plan says it."""
        if not isinstance(returns, t.Many):
            return (Whole.ONE, 1, *self.part(returns))
        whole = Whole.LIST if returns.kind == "list" else Whole.TUPLE
        parts = [word for item in returns.items for word in self.part(item)]
        return (whole, len(returns.items), *parts)

    def part(self, returns: t.Return) -> Words:
        """Return one thing of what comes back."""
        match returns:
            case t.Constant(value):
                return Part.OBJECT, self.address(value)
            case t.Argument(path, None):
                return Part.VALUE, self.place(path)
            case t.New(number, None, _):
                return Part.RESULT, number
            case _:
                raise _Unfit


def _kinds(returns: t.Return, number: int) -> set[Kind | None]:
    """Return what a result is returned as: kinds of numbers, None for an array."""
    match returns:
        case t.New(at, _, kind) if at == number:
            return {kind}
        case t.Many(items):
            return {kind for item in items for kind in _kinds(item, number)}
        case _:
            return set()
