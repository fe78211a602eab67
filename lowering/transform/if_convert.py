r"""Branches as choices: both sides are computed, and one is kept (if-conversion).

    if t: u = a; y[i] = u                 u_2 = a; y[i] = u_2 if t else y[i]
    else: u = b                    ->     u_3 = b; u_4 = u_2 if t else u_3
    z[i] = u                              z[i] = u_4

Compilers make vectors only of loops without branches. Every store to a scalar makes a new one, and
where branches meet there is a choice between what each has left, as in static single assignment; a
store to an array keeps the old element where it does not happen. A branch that ends in a jump has
all that follows on its other side.

Needs: statements for which `fits` holds: what a test guards can be done where it does not hold.
Guarantees: what is kept has the same bits.

>>> show(lambda program: masks(program, Target(schedule=True)),
...      "for i in range(9):\n    if x[i] > 1:\n        u = x[i] * 3\n    else:\n"
...      "        u = x[i] / 2\n    y[i] = u", x="f32[9]", y="f32[9]")
for i in 0..9:
    test = x[i] > 1.0
    u_4 = x[i] * 3.0
    u_5 = x[i] / 2.0
    u_6 = u_4 if test else u_5
    y[i] = u_6
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ..analysis.subscripts import is_in_range
from ..analysis.vectorizable import can_be_vector
from ..ir import dtypes
from ..ir.algebra import FALSE, TRUE
from ..ir.assignments import Access, Break, Continue
from ..ir.expressions import Apply, Expr, Read, Select, reads, rebuild
from ..ir.fresh import Fresh
from ..ir.indexing import Range
from ..ir.loops import Comment, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite, rewrite
from ..ir.walk import expressions_of, own_writes

Body = tuple[Stmt, ...]
Values = Mapping[int, Expr]
"""What each scalar is now, by its id."""


class Straight(NamedTuple):
    """Statements without branches."""

    body: Body
    values: Values
    """What each scalar is behind them."""
    goes_on: Expr
    """Whether no `Break` was met."""


def fits(body: Body, jumps: tuple[type, ...], known: tuple[Range, ...], sure: bool = True) -> bool:
    """Whether statements can be done without branches, `jumps` being those that may be there.

    `known` is what is known of symbols whatever tests say. Without `sure`, the statements are
    themselves done where they should not be.
    """
    for number, stmt in enumerate(body):
        match stmt:
            case Comment():
                pass
            case Store(access) | Update(access, pair=None):
                if isinstance(stmt, Update) and stmt.over:
                    return False
                found = (*expressions_of(stmt), Read(access.node, access.index))
                if not is_made_of_numbers(stmt) or not all(_can(e, known, sure) for e in found):
                    return False
            case If(test, then, other):
                jumped = ends(then) or ends(other)
                lists = (_without_end(then), _without_end(other))
                inner = all(fits(one, (), known, sure=False) for one in lists)
                if not inner or not set(map(type, (*then[-1:], *other[-1:]))) & _JUMPS <= set(
                    jumps
                ):
                    return False
                if not _can(test, known, sure):
                    return False
                sure = sure and not jumped
            case Break() | Continue():
                return type(stmt) in jumps and number == len(body) - 1
            case _:
                return False
    return True


_JUMPS = {Break, Continue}


def ends(body: Body) -> bool:
    """Whether nothing is done behind a list of statements."""
    return bool(body) and type(body[-1]) in _JUMPS


def is_number(node: Node) -> bool:
    """Whether C computes with the elements as they are stored, and vectors can hold them."""
    return node.dtype.compute is node.dtype and node.dtype.kind != "c"


def is_made_of_numbers(stmt: Stmt) -> bool:
    """Whether all that a statement itself changes are numbers, or pairs of them, see `pairs`."""
    match stmt:
        case Store(_, Apply(op)) if op.name == "complex":
            return True
        case _:
            return all(map(is_number, own_writes(stmt)))


def straight(body: Body, fresh: Fresh, values: Values, known: tuple[Range, ...]) -> Straight:
    """Return statements without branches; `values` are the scalars that are not what they say."""
    work = _Work(fresh)
    body = rewrite(body, Rewrite(expr=partial(eager, known=known)))
    found = work.run(body, {_ON: TRUE, **values}, None)
    return Straight(
        tuple(work.out), {key: value for key, value in found.items() if key != _ON}, found[_ON]
    )


_ON = -1
"""Among the values: whether the round goes on; no node has this id."""


def _can(expr: Expr, known: tuple[Range, ...], sure: bool) -> bool:
    """Whether an expression can be computed on vectors, and where a test does not hold."""
    return (sure or is_inside(expr, known)) and can_be_vector(eager(expr, known))


def is_inside(expr: Expr, known: tuple[Range, ...]) -> bool:
    """Whether an expression reads inside of arrays, whatever tests say."""
    return all(is_in_range(read.node, read.index, known) for read in reads(expr))


def eager(expr: Expr, known: tuple[Range, ...]) -> Expr:
    """Return an expression whose `and` and `or` compute both sides, where that reads no further."""

    def value(one: Expr) -> Expr:
        one = rebuild(one, value, lambda index: index)
        if isinstance(one, Select) and one.dtype is dtypes.bool_ and is_inside(one, known):
            return choice(one.test, one.yes, one.no)
        return one

    return value(expr)


def _without_end(body: Body) -> Body:
    return body[:-1] if ends(body) else body


@dataclass(slots=True)
class _Work:
    """The work on one list of statements."""

    fresh: Fresh
    out: list[Stmt] = field(default_factory=list)
    labels: dict[int, Node] = field(default_factory=dict)
    """The scalars that were met."""
    made: set[int] = field(default_factory=set)
    """The ids of those that were made, each stored once."""

    def run(self, body: Body, values: Values, mask: Expr | None) -> Values:
        """Do statements where a mask holds; return what scalars are behind them."""
        for number, stmt in enumerate(body):
            match stmt:
                case Store(Access(node, ()), value):
                    values = {**values, node.id: self.named(node, now(value, values), stmt.span)}
                case Update(Access(node, ()), op, value):
                    old = now(Read(node, ()), values)
                    new = Apply(op, (old, now(value, values)), node.dtype)
                    values = {**values, node.id: self.named(node, new, stmt.span)}
                case Store(access, value) | Update(access, _, value):
                    self.store(stmt, access, now(value, values), mask)
                case If(test, then, other):
                    rest = body[number + 1 :] if ends(then) or ends(other) else ()
                    then, other = (then, (*other, *rest)) if ends(then) else ((*then, *rest), other)
                    values = self.branch(stmt, then, other, now(test, values), values, mask)
                    if rest:
                        return values
                case Break():
                    return {**values, _ON: FALSE}
                case Continue():
                    return values
                case _:
                    self.out.append(stmt)
        return values

    def store(self, stmt: Store | Update, access: Access, value: Expr, mask: Expr | None) -> None:
        """Store an element of an array where a mask holds."""
        old = Read(access.node, access.index)
        if isinstance(stmt, Update):
            value = Apply(stmt.op, (old, value), access.node.dtype)
        if mask is not None:
            value = _kept(mask, value, old)
        self.out.append(Store(access, value, stmt.span))

    def branch(
        self, stmt: If, then: Body, other: Body, test: Expr, values: Values, mask: Expr | None
    ) -> Values:
        """Do both sides of a branch; return what scalars are behind it."""
        if not isinstance(test, Read) and not _is_alone((*then, *other)):
            test = self.named(Node(-1, "test", (), dtypes.bool_), test, stmt.span)
        one = self.run(then, values, both(mask, test))
        two = self.run(other, values, both(mask, _inverse(test)))
        return self.merged(test, one, two, stmt.span)

    def merged(self, test: Expr, one: Values, two: Values, span: Span) -> Values:
        """Return what scalars are where branches meet; what one has set alone is its own."""
        out: dict[int, Expr] = {}
        for key in dict.fromkeys((*one, *two)):
            yes, no = one.get(key), two.get(key)
            if yes is None or no is None or yes == no:
                out[key] = one[key] if key in one else two[key]
            elif key == _ON:
                out[key] = self.named(Node(-1, "on", (), dtypes.bool_), choice(test, yes, no), span)
            else:
                out[key] = self.named(self.labels[key], choice(test, yes, no), span)
        return out

    def named(self, node: Node, value: Expr, span: Span) -> Expr:
        """Return a value as a new scalar; constants, and what is one, as they are."""
        self.labels[node.id] = node
        if not reads(value) or (isinstance(value, Read) and value.node.id in self.made):
            return value
        scalar = self.fresh.scalar(node.label, value.dtype)
        self.made.add(scalar.id)
        self.out.append(Store(Access(scalar, ()), value, span))
        return Read(scalar, ())


def now(expr: Expr, values: Values) -> Expr:
    """Return an expression with scalars being what they are now."""

    def value(one: Expr) -> Expr:
        if isinstance(one, Read) and not one.node.rank:
            return values.get(one.node.id, one)
        return rebuild(one, value, lambda index: index)

    return value(expr)


def _kept(mask: Expr, value: Expr, old: Expr) -> Expr:
    """Return a value where a mask holds, else what was there; of a pair each part by itself."""
    match value:
        case Apply(op, (re, im), dtype) if op.name == "complex":
            real, imag = (Apply(OPS[part], (old,), dtype.real) for part in ("real", "imag"))
            return Apply(op, (Select(mask, re, real), Select(mask, im, imag)), dtype)
        case _:
            return Select(mask, value, old)


def choice(test: Expr, yes: Expr, no: Expr) -> Expr:
    """Return one of two values; of truth values that are known as plain logic."""
    if yes == FALSE:
        return both(_inverse(test), no)
    if no == FALSE:
        return both(test, yes)
    if yes == TRUE:
        return Apply(OPS["or"], (test, no), dtypes.bool_)
    return Select(test, yes, no)


def both(first: Expr | None, second: Expr) -> Expr:
    """Return whether two tests hold, the first of which may be none."""
    if first is None or first == TRUE:
        return second
    return first if second == TRUE else Apply(OPS["and"], (first, second), dtypes.bool_)


def _inverse(test: Expr) -> Expr:
    return Apply(OPS["logical_not"], (test,), dtypes.bool_)


def _is_alone(body: Iterable[Stmt]) -> bool:
    """Whether a test decides about one store only."""
    done = [stmt for stmt in body if not isinstance(stmt, Comment)]
    return len(done) == 1 and isinstance(done[0], Store | Update)
