"""Where a function keeps the forms it has, and how many of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Access, Assign, Check, For, Let, Statement
from ...lowering.ir.expressions import Apply, Cast, Expr, Position, reads, walk
from ...lowering.ir.indexing import Affine, Quasi, Symbol, substitute
from ...lowering.ir.node import Node
from ...lowering.ir.walk import expressions_of, free_symbols, statements
from ..elaborate.captures.inputs import ArraySpec, ConstantSpec
from ..values.types import may_be_given
from ..values.values import Path
from .dynamic_sizes import SIZES, SizesSeen, Specs, any_of_sizes, fits
from .layout_copies import takes_copies
from .signature import describe_input
from .variants import Arguments, Getter, Specialisation

MOST = 64
"""How many forms are kept for arguments of one kind: they differ by what is read of objects and
around the function. The latest stay."""

_SMALL = 1 << 20
"""Integers of the run have 64 bits, those of Python any number: products by more are computed by
Python, so that they are right or refused."""
_GROWS = frozenset(["mul", "product"])
_ALIKE = frozenset("add sub mul product neg eq ne lt le gt ge and or not".split())
_DIVIDES = frozenset(["div", "floordiv", "mod"])
_NONE: frozenset[Node] = frozenset()

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
    alone: Forms = field(default_factory=dict)
    """Forms for one call, by cheap key with all constants, where one for many does not serve."""
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
    comparisons are the same in either way, and so are those divisions and products of integers
    whose operands are checked; see `Context.guard`.
    """
    pairs = zip(made.typed.passed, made.procedure.parameters, strict=True)
    given = {parameter.node: path for path, parameter in pairs if path in numbers}
    body = list(statements(made.procedure.body))
    facts = _facts(made, given, body)
    values = (e for s in body for e in expressions_of(s))
    asked = [node for value in values for part in walk(value) for node in _asked(part, facts)]
    first = {one.symbol: one.lo for one in body if isinstance(one, For)}
    for check in body:
        if isinstance(check, Check) and check.fault.code == "CD0601":
            index = check.values[0]
            if free_symbols(index).isdisjoint(check.over.symbols):
                asked += _counted(index, first, facts)
    return frozenset(given[node] for node in asked)


def _counted(index: Expr, first: Mapping[Symbol, Affine], facts: _Facts) -> frozenset[Node]:
    """Return the numbers that decide whether a position counts from the end: one that is known, and
    those of all iterations of its loops, do where they are negative."""
    match index:
        case Position(at):
            begin = substitute(at, first).constant
            return facts.of(index) if begin is None or begin < 0 else _NONE
        case _:
            return facts.of(index)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is computed of the given numbers alone, which would be known if they were."""

    origins: Mapping[Node | Symbol, frozenset[Node]]
    """Of nodes and symbols with such a value, the numbers that it is computed from."""
    guarded: frozenset[Expr]

    def of(self, expr: Expr) -> frozenset[Node]:
        """Return the given numbers in an expression."""
        return frozenset().union(*(self.origins.get(one, ()) for one in _leaves(expr)))

    def settled(self, expr: Expr) -> bool:
        """Whether nothing else that is known at run time only is in an expression."""
        return all(one in self.origins for one in _leaves(expr))


def _leaves(expr: Expr) -> Iterator[Node | Symbol]:
    """Yield the nodes that an expression reads, and the symbols in its indices."""
    yield from (read.node for read in reads(expr))
    for one in walk(expr):
        if isinstance(one, Position):
            yield from one.index.symbols()


def _facts(made: Specialisation, given: Mapping[Node, Path], body: list[Statement]) -> _Facts:
    """Return what is known of the values that symbols and numbers have in a form."""
    origins: dict[Node | Symbol, frozenset[Node]] = {node: frozenset((node,)) for node in given}
    known, changing = _Facts(origins, made.typed.guarded), set[Node | Symbol]()
    for one in body:
        match one:
            case Let(symbol, value):
                target: Node | Symbol = symbol
            case Assign(Access(node, ()), op, _, value) if node not in given:
                target = node
                if op is not None or not known.settled(value):
                    changing.add(node)
            case _:
                continue
        if known.settled(value):
            origins[target] = origins.get(target, frozenset()) | known.of(value)
    for changed in changing:
        origins.pop(changed, None)
    return known


def known_after_all(made: Specialisation, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the numbers that a form was to be given and has as constants."""
    used = made.typed.used
    return frozenset(path for path in numbers if isinstance(used.get(path), ConstantSpec))


def _asked(part: Expr, facts: _Facts) -> frozenset[Node]:
    """Return the numbers with which a step of an expression does what Python may do otherwise."""
    counts = facts.of(part)
    if not counts:
        return counts
    settled = facts.settled(part)
    match part:
        case Position(index) if _may_be_large(index, facts):
            return counts
        case Apply(op, (_, right)) if op.name in _DIVIDES and settled:
            return counts if facts.of(right) and not _is_safe(right, facts.guarded) else _NONE
        case Apply(op, operands) if op.name == "pow":
            return _NONE.union(*(facts.of(one) for one in operands if facts.settled(one)))
        case Apply(op) if settled and op.name not in _ALIKE:
            return counts
        case Apply(op, _, dtype) if settled and dtype.kind in "iu" and op.name in _GROWS:
            return _NONE if part in facts.guarded else counts
        case Cast(_, dtype) if settled and dtype.kind in "biu":
            return counts
        case _:
            return _NONE


def _is_safe(divisor: Expr, guarded: frozenset[Expr]) -> bool:
    """Whether a divisor is checked, or at least one whatever the numbers are."""
    while isinstance(divisor, Cast):
        divisor = divisor.value
    match divisor:
        case Position(Affine(((Quasi("max", one, other), 1),), offset)):
            return max(one.constant or 0, other.constant or 0) + offset >= 1
        case _:
            return divisor in guarded


def _may_be_large(index: Affine, facts: _Facts) -> bool:
    """Whether the given numbers of an index expression are multiplied by more than a small number,
    unchecked."""
    for atom, times in index.terms:
        if isinstance(atom, Symbol):
            large = atom in facts.origins and abs(times) > _SMALL
        else:
            whole = Affine(((atom, 1),))
            product = atom.op == "mul" and Position(whole) not in facts.guarded
            settled = facts.settled(Position(whole))
            inner = any(_may_be_large(side, facts) for side in (atom.left, atom.right))
            large = settled and (product or abs(times) > _SMALL) or inner
        if large:
            return True
    return False


def keep(forms: Forms, key: object, made: Specialisation) -> None:
    """Add a form as the first to be tried for a key, and forget the oldest of too many."""
    forms[key] = (made, *forms.get(key, ())[: MOST - 1])


def keep_open(
    forms: list[tuple[Specs, Specialisation]], specs: Specs, made: Specialisation
) -> None:
    """Add a form for more than one call as the last to be tried, and forget the oldest of many."""
    forms.append((specs, made))
    del forms[:-MOST]
