"""Where a function keeps the forms it has, and how many of them."""

from __future__ import annotations

from dataclasses import field

from ..lowering.dataclass import dataclass
from ..lowering.ir.expressions import Apply, Cast, Expr, reads, walk
from ..lowering.ir.node import Node
from ..lowering.ir.walk import expressions_of, statements
from .elaborate.inputs import ConstantSpec, is_float
from .elaborate.values import Path
from .forms import Specialisation
from .sizes import SIZES, SizesSeen, Specs

MOST = 64
"""How many forms are kept for arguments of one kind: they differ by what is read of objects and
around the function. The latest stay."""

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


def takes_any(made: Specialisation, numbers: frozenset[Path]) -> bool:
    """Whether code gives what it would if it knew the numbers that it is given.

    Python computes with two numbers that are known, and raises where it cannot: that a form for
    any number has nothing else than sums and products of them says that it has the same results.
    """
    parameters = zip(made.typed.passed, made.procedure.parameters, strict=True)
    given = {parameter.node for path, parameter in parameters if path in numbers}
    values = (e for s in statements(made.procedure.body) for e in expressions_of(s))
    return not any(_asks(part, given) for value in values for part in walk(value))


_ALIKE = frozenset("add sub mul product neg eq ne lt le gt ge select".split())


def _asks(part: Expr, given: set[Node]) -> bool:
    """Whether a step of an expression does with some numbers what Python may do otherwise."""
    found = [read.node for read in reads(part)]
    if given.isdisjoint(found):
        return False
    alone = not any(node.rank for node in found)
    match part:
        case Apply(op):
            return op.name == "pow" or (alone and op.name not in _ALIKE)
        case Cast(_, dtype):
            return alone and dtype.kind in "biu"
        case _:
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
