"""Where a function keeps the forms it has, and how many of them."""

from __future__ import annotations

from dataclasses import field

from ..lowering.dataclass import dataclass
from ..lowering.ir.expressions import Apply, Cast, Expr, reads, walk
from ..lowering.ir.node import Node
from ..lowering.ir.walk import expressions_of, statements
from .elaborate.inputs import ConstantSpec
from .elaborate.types import is_float
from .elaborate.values import Path
from .forms import Specialisation
from .sizes import SIZES, SizesSeen, Specs

MOST = 64
"""How many forms are kept for arguments of one kind: they differ by what is read of objects and
around the function. The latest stay."""

_ALIKE = frozenset("add sub mul product neg eq ne lt le gt ge".split())

Forms = dict[object, tuple[Specialisation, ...]]


@dataclass
class NumbersSeen:
    """The values that floats came with that are attributes of what is given, by the ways to them.

    Code is made for the values it is given. One that has come with three is given to the code by
    the next form, which takes any; but not one that it has to know.
    """

    seen: dict[Path, set[str]] = field(default_factory=dict)
    closed: set[Path] = field(default_factory=set)

    def opened(self) -> frozenset[Path]:
        """Return the ways to those that are given to the code from now on."""
        many = {path for path, texts in self.seen.items() if len(texts) >= SIZES}
        return frozenset(many - self.closed)

    def note(self, made: Specialisation) -> None:
        """Remember the values that a form was made for."""
        for watch in made.watched:
            match watch.spec:
                case ConstantSpec(kind, text) if is_float(kind) and not watch.path.captured:
                    self.seen.setdefault(watch.path, set()).add(text)

    def close(self, paths: frozenset[Path]) -> None:
        """Remember that nothing can be compiled without these values."""
        self.closed |= paths


@dataclass
class Table:
    """The forms made under one choice of settings, by cheap key and by specifications."""

    quick: Forms = field(default_factory=dict)
    full: Forms = field(default_factory=dict)
    any_size: list[tuple[Specs, Specialisation]] = field(default_factory=list)
    """Forms with run-time sizes, and the specifications they were made for."""
    sizes: SizesSeen = field(default_factory=SizesSeen)
    numbers: NumbersSeen = field(default_factory=NumbersSeen)
    apart: Forms = field(default_factory=dict)
    """Forms to be linked, which no call uses, by specifications."""


def to_be_known(made: Specialisation, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the numbers given to a form with which it may give something else than code
    that knows them.

    Python computes with two numbers that are known, and raises where it cannot. Sums, products and
    comparisons are the same in either way.
    """
    pairs = zip(made.typed.passed, made.procedure.parameters, strict=True)
    given = {parameter.node: path for path, parameter in pairs if path in numbers}
    values = (e for s in statements(made.procedure.body) for e in expressions_of(s))
    asked = (node for value in values for part in walk(value) for node in _asked(part))
    return frozenset(given[node] for node in asked if node in given)


def _asked(part: Expr) -> list[Node]:
    """Return the numbers with which a step of an expression does what Python may do otherwise."""
    found = [read.node for read in reads(part)]
    alone = not any(node.rank for node in found)
    match part:
        case Apply(op) if op.name == "pow" or (alone and op.name not in _ALIKE):
            return found
        case Cast(_, dtype) if alone and dtype.kind in "biu":
            return found
        case _:
            return []


def keep(forms: Forms, key: object, made: Specialisation) -> None:
    """Add a form as the first to be tried for a key, and forget the oldest of too many."""
    forms[key] = (made, *forms.get(key, ())[: MOST - 1])


def keep_open(
    forms: list[tuple[Specs, Specialisation]], specs: Specs, made: Specialisation
) -> None:
    """Add a form for more than one call as the last to be tried, and forget the oldest of many."""
    forms.append((specs, made))
    del forms[:-MOST]
