"""Where a function keeps the forms it has, and how many of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from ..lowering.dataclass import dataclass
from ..lowering.ir.assignments import Check, Let
from ..lowering.ir.expressions import Apply, Cast, Expr, Position, reads, walk
from ..lowering.ir.indexing import Affine, Quasi, Symbol
from ..lowering.ir.node import Node
from ..lowering.ir.walk import expressions_of, statements
from .copies import takes_copies
from .elaborate.inputs import ArraySpec, ConstantSpec
from .elaborate.types import may_be_given
from .elaborate.values import Path
from .forms import Arguments, Getter, Specialisation
from .keys import describe_input
from .sizes import SIZES, SizesSeen, Specs, any_of_sizes, fits

MOST = 64
"""How many forms are kept for arguments of one kind: they differ by what is read of objects and
around the function. The latest stay."""

_SMALL = 1 << 20
"""Integers of the run have 64 bits, those of Python any number: products by more are computed by
Python, so that they are right or refused."""
_GROWS = frozenset(["mul", "product"])
_ALIKE = frozenset("add sub mul product neg eq ne lt le gt ge and or not".split())
_DIVIDES = frozenset(["floordiv", "mod"])

Forms = dict[object, tuple[Specialisation, ...]]
Opened = dict[Path, tuple[Any, ArraySpec]]
"""Arrays by the ways to them, which are kept for as long as they are known by identity."""


@dataclass
class NumbersSeen:
    """The values that numbers came with that take part in what is compiled, by the ways to them:
    captured ones, attributes of what is given, and parameters that are static.

    Code is made for the values it is given. One that has come with three is given to the code by
    the next form, which takes any; but not one that it has to know.
    """

    seen: dict[Path, set[str]] = field(default_factory=dict)
    closed: set[Path] = field(default_factory=set)
    free: frozenset[str] = frozenset()
    """The parameters among the opened ones: their values are not compared any more."""

    def opened(self) -> frozenset[Path]:
        """Return the ways to those that are given to the code from now on."""
        many = {path for path, texts in self.seen.items() if len(texts) >= SIZES}
        return frozenset(many - self.closed)

    def note(self, made: Specialisation) -> None:
        """Remember the values that a form was made for."""
        for watch in made.watched:
            match watch.spec:
                case ConstantSpec(kind, text) if may_be_given(kind):
                    self.seen.setdefault(watch.path, set()).add(text)
        for name in made.typed.statics:
            match made.situation.arguments[name]:
                case ConstantSpec(kind, text) if kind is int or issubclass(kind, np.integer):
                    self.seen.setdefault(Path(name), set()).add(text)
        self._note_free()

    def close(self, paths: frozenset[Path]) -> None:
        """Remember that nothing can be compiled without these values."""
        self.closed |= paths
        self._note_free()

    def _note_free(self) -> None:
        """Parameters are opened when all the forms that are kept are told apart by their values."""
        self.free = frozenset(path.root for path in self.opened() if path.is_parameter)


@dataclass
class ShapesSeen:
    """The sizes that arrays came in which are no arguments, but attributes of those or captured.

    As of arguments, an axis that came in three sizes gets a run-time size by the next form.
    """

    seen: dict[tuple[Path, ArraySpec], dict[int, set[int]]] = field(default_factory=dict)
    """By the way to an array and what else it is like, and by axis."""
    ways: dict[Path, Getter] = field(default_factory=dict)
    closed: set[Path] = field(default_factory=set)

    def opened(self, arguments: Arguments) -> Opened:
        """Return the arrays of a call whose sizes it is time for, each with its specification."""
        found: Opened = {}
        for path, get in self.ways.items():
            with contextlib.suppress(AttributeError, LookupError, TypeError):
                value = get(arguments)
                spec = describe_input(value, True)
                if isinstance(spec, ArraySpec) and path not in self.closed:
                    sizes = self.seen.get((path, _loose(spec)), {})
                    axes = {axis for axis, many in sizes.items() if len(many) >= SIZES}
                    if (wanted := any_of_sizes(spec, axes)) != spec:
                        found[path] = value, wanted
        return found

    def note(self, made: Specialisation) -> None:
        """Remember the sizes that a form was made for."""
        for watch in made.watched:
            if isinstance(watch.spec, ArraySpec):
                self.ways[watch.path] = watch.get
                known = self.seen.setdefault((watch.path, _loose(watch.spec)), {})
                for axis, size in enumerate(watch.spec.shape):
                    if size is not None:
                        known.setdefault(axis, set()).add(size)

    def close(self, found: Opened) -> None:
        """Remember that nothing can be compiled without the sizes of these."""
        self.closed |= found.keys()


def _loose(spec: ArraySpec) -> ArraySpec:
    return replace(spec, shape=(None,) * len(spec.shape))


@dataclass
class Table:
    """The forms made under one choice of settings, by cheap key and by specifications."""

    quick: Forms = field(default_factory=dict)
    full: Forms = field(default_factory=dict)
    any_size: list[tuple[Specs, Specialisation]] = field(default_factory=list)
    """Forms with run-time sizes, and the specifications they were made for."""
    sizes: SizesSeen = field(default_factory=SizesSeen)
    numbers: NumbersSeen = field(default_factory=NumbersSeen)
    shapes: ShapesSeen = field(default_factory=ShapesSeen)
    apart: Forms = field(default_factory=dict)
    """Forms to be linked, which no call uses, by specifications."""

    def note(self, made: Specialisation) -> None:
        """Remember the numbers and sizes that a form was made for."""
        self.numbers.note(made)
        self.shapes.note(made)

    def of_many(self, specs: Specs) -> Iterator[Specialisation]:
        """Yield the forms with run-time sizes, and those that take copies, that fit a call."""
        packed = self.sizes.packed(specs)
        for wanted, known in list(self.any_size):
            if all(fits(specs[name], wanted[name]) for name in specs) or (
                packed is not None
                and all(fits(packed[name], wanted[name]) for name in specs)
                and takes_copies(known, specs, wanted)
            ):
                yield known


def to_be_known(made: Specialisation, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the numbers given to a form with which it may give something else than code
    that knows them.

    Python computes with two numbers that are known, and raises where it cannot. Sums, products and
    comparisons are the same in either way, but for products of integers, which may be too large.
    """
    pairs = zip(made.typed.passed, made.procedure.parameters, strict=True)
    given = {parameter.node: path for path, parameter in pairs if path in numbers}
    body = list(statements(made.procedure.body))
    whole = {
        let.symbol: node for let in body if isinstance(let, Let)
        for node in (read.node for read in reads(let.value)) if node in given
    }  # fmt: skip
    values = (e for s in body for e in expressions_of(s))
    asked = [node for value in values for part in walk(value) for node in _asked(part, whole)]
    for check in body:  # a negative position that is known counts from the end
        if isinstance(check, Check) and check.fault.code == "CD0601":
            asked += _counts(check.test, whole)
    return frozenset(given[node] for node in asked if node in given)


def known_after_all(made: Specialisation, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the numbers that a form was to be given and has as constants."""
    used = made.typed.used
    return frozenset(path for path in numbers if isinstance(used.get(path), ConstantSpec))


def _asked(part: Expr, whole: Mapping[Symbol, Node]) -> list[Node]:
    """Return the numbers with which a step of an expression does what Python may do otherwise;
    `whole` are those of integers, by what stands for them in indices."""
    found = [read.node for read in reads(part)]
    counts = _counts(part, whole)
    alone = not any(node.rank for node in found)
    match part:
        case Position(index) if _may_be_large(index):
            return counts
        case Apply(op, (_, right), dtype) if op.name in _DIVIDES and dtype.kind == "i":
            below = [read.node for read in reads(right)]  # Python raises where that is zero
            return [*below, *_counts(right, whole)] if alone else []
        case Apply(op) if op.name == "pow" or (alone and op.name not in _ALIKE):
            return found + counts
        case Apply(op, _, dtype) if alone and counts and dtype.kind in "iu" and op.name in _GROWS:
            return counts
        case Cast(_, dtype) if alone and dtype.kind in "biu":
            return found + counts
        case _:
            return []


def _counts(part: Expr, whole: Mapping[Symbol, Node]) -> list[Node]:
    """Return the integers that stand in the indices of an expression."""
    indices = [one.index for one in walk(part) if isinstance(one, Position)]
    return [whole[x] for index in indices for x in index.symbols() if x in whole]


def _may_be_large(index: Affine) -> bool:
    """Whether an index expression multiplies by more than a small number."""
    return any(
        abs(times) > _SMALL
        or (isinstance(atom, Quasi)
            and (atom.op == "mul" or _may_be_large(atom.left) or _may_be_large(atom.right)))
        for atom, times in index.terms
    )  # fmt: skip


def keep(forms: Forms, key: object, made: Specialisation) -> None:
    """Add a form as the first to be tried for a key, and forget the oldest of too many."""
    forms[key] = (made, *forms.get(key, ())[: MOST - 1])


def keep_open(
    forms: list[tuple[Specs, Specialisation]], specs: Specs, made: Specialisation
) -> None:
    """Add a form for more than one call as the last to be tried, and forget the oldest of many."""
    forms.append((specs, made))
    del forms[:-MOST]
