r"""If-conversion: branches as selects; both sides are computed, and one result is kept.

    if t: u = a; y[i] = u                 u_2 = a; y[i] = u_2 if t else y[i]
    else: u = b                    ->     u_3 = b; u_4 = u_2 if t else u_3
    z[i] = u                              z[i] = u_4

Compilers vectorize only loops without branches (J. R. Allen, K. Kennedy, C. Porterfield and J.
Warren, Conversion of control dependence to data dependence, 1983). Every store to a scalar makes a
new one, and where branches meet a select takes one of their values, as in static single assignment;
a store to an array keeps the old element where its predicate does not hold. For a branch that ends
in a jump, all that follows is its other side.

Precondition: statements for which `can_if_convert` holds: predicated statements may be executed
speculatively. Postcondition: results are bit-identical.

>>> show(lambda program: mask_lanes(program, Target(schedule=True)),
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
from ..ir.walk import direct_writes, expressions_of, writes

Body = tuple[Stmt, ...]
Values = Mapping[int, Expr]
"""The current value of each scalar, by its id."""


class IfConverted(NamedTuple):
    """If-converted statements."""

    body: Body
    values: Values
    """The values of scalars after them."""
    goes_on: Expr
    """The predicate that no `Break` was met."""


def can_if_convert(
    body: Body, jumps: tuple[type, ...], domain: tuple[Range, ...], sure: bool = True
) -> bool:
    """Whether statements can be if-converted, `jumps` being the jumps that may be there.

    `domain` are the ranges of symbols whatever tests say. Without `sure`, the statements are
    speculative: they are executed where they should not be.
    """
    for number, stmt in enumerate(body):
        match stmt:
            case Comment():
                pass
            case Store(access) | Update(access, pair=None):
                if isinstance(stmt, Update) and stmt.over:
                    return False
                operands = (*expressions_of(stmt), Read(access.node, access.index))
                if not writes_only_numbers(stmt) or not all(
                    _is_vectorizable(e, domain, sure) for e in operands
                ):
                    return False
            case If(test, then, orelse):
                has_jump = ends_in_jump(then) or ends_in_jump(orelse)
                branches = (_without_jump(then), _without_jump(orelse))
                inner = all(can_if_convert(branch, (), domain, sure=False) for branch in branches)
                if not inner or not set(map(type, (*then[-1:], *orelse[-1:]))) & _JUMPS <= set(
                    jumps
                ):
                    return False
                if not _is_vectorizable(test, domain, sure):
                    return False
                sure = sure and not has_jump
            case Break() | Continue():
                return type(stmt) in jumps and number == len(body) - 1
            case _:
                return False
    return True


_JUMPS = {Break, Continue}


def ends_in_jump(body: Body) -> bool:
    """Whether a list of statements ends in a jump."""
    return bool(body) and type(body[-1]) in _JUMPS


def is_number(node: Node) -> bool:
    """Whether elements are computed with in the type in which they are stored, and vectors support
    it."""
    return node.dtype.compute is node.dtype and node.dtype.kind != "c"


def writes_only_numbers(stmt: Stmt) -> bool:
    """Whether all that a statement itself changes are numbers, or complex values from parts, see
    `complex_pairs`."""
    match stmt:
        case Store(_, Apply(op)) if op.name == "complex":
            return True
        case _:
            return all(map(is_number, direct_writes(stmt)))


def if_convert(body: Body, fresh: Fresh, values: Values, domain: tuple[Range, ...]) -> IfConverted:
    """Return statements if-converted; `values` are the scalars with a current value other than
    their own."""
    converter = _IfConverter(fresh)
    body = rewrite(body, Rewrite(expr=partial(evaluate_eagerly, domain=domain)))
    result = converter.run(body, {_ACTIVE: TRUE, **values}, None)
    return IfConverted(
        tuple(converter.out),
        {key: value for key, value in result.items() if key != _ACTIVE},
        result[_ACTIVE],
    )


_ACTIVE = -1
"""The key in `Values` of the predicate that the iteration goes on; no node has this id."""


def _is_vectorizable(expr: Expr, domain: tuple[Range, ...], sure: bool) -> bool:
    """Whether an expression can be computed on vectors, and speculatively unless `sure`."""
    return (sure or reads_in_bounds(expr, domain)) and can_be_vector(evaluate_eagerly(expr, domain))


def reads_in_bounds(expr: Expr, domain: tuple[Range, ...]) -> bool:
    """Whether all reads of an expression are in bounds, whatever tests say."""
    return all(is_in_range(read.node, read.index, domain) for read in reads(expr))


def evaluate_eagerly(expr: Expr, domain: tuple[Range, ...]) -> Expr:
    """Return an expression whose `and` and `or` evaluate both operands, where all reads are in
    bounds."""

    def value(part: Expr) -> Expr:
        part = rebuild(part, value, lambda index: index)
        if (
            isinstance(part, Select)
            and part.dtype is dtypes.bool_
            and reads_in_bounds(part, domain)
        ):
            return select(part.test, part.yes, part.no)
        return part

    return value(expr)


def _without_jump(body: Body) -> Body:
    return body[:-1] if ends_in_jump(body) else body


@dataclass(slots=True)
class _IfConverter:
    """The state of if-conversion of one list of statements."""

    fresh: Fresh
    out: list[Stmt] = field(default_factory=list)
    labels: dict[int, Node] = field(default_factory=dict)
    """The scalars that were stored, by id."""
    made: set[int] = field(default_factory=set)
    """The ids of new scalars, each stored once."""

    def run(self, body: Body, values: Values, mask: Expr | None) -> Values:
        """Convert statements under a predicate; return the values of scalars after them."""
        for number, stmt in enumerate(body):
            match stmt:
                case Store(Access(node, ()), value):
                    values = {
                        **values,
                        node.id: self.named(node, substitute_values(value, values), stmt.span),
                    }
                case Update(Access(node, ()), op, value):
                    old = substitute_values(Read(node, ()), values)
                    new = Apply(op, (old, substitute_values(value, values)), node.dtype)
                    values = {**values, node.id: self.named(node, new, stmt.span)}
                case Store(access, value) | Update(access, _, value):
                    self.store(stmt, access, substitute_values(value, values), mask)
                case If(test, then, orelse):
                    rest = body[number + 1 :] if ends_in_jump(then) or ends_in_jump(orelse) else ()
                    then, orelse = (
                        (then, (*orelse, *rest)) if ends_in_jump(then) else ((*then, *rest), orelse)
                    )
                    values = self.branch(
                        stmt, then, orelse, substitute_values(test, values), values, mask
                    )
                    if rest:
                        return values
                case Break():
                    return {**values, _ACTIVE: FALSE}
                case Continue():
                    return values
                case _:
                    self.out.append(stmt)
        return values

    def store(self, stmt: Store | Update, access: Access, value: Expr, mask: Expr | None) -> None:
        """Store an element of an array under a predicate."""
        old = Read(access.node, access.index)
        if isinstance(stmt, Update):
            value = Apply(stmt.op, (old, value), access.node.dtype)
        if mask is not None:
            value = _masked(mask, value, old)
        self.out.append(Store(access, value, stmt.span))

    def branch(
        self, stmt: If, then: Body, orelse: Body, test: Expr, values: Values, mask: Expr | None
    ) -> Values:
        """Convert both sides of a branch; return the values of scalars after it."""
        if not _keeps_value(test, (*then, *orelse)) and not _is_single_store((*then, *orelse)):
            test = self.named(Node(-1, "test", (), dtypes.bool_), test, stmt.span)
        then_values = self.run(then, values, conjoin(mask, test))
        else_values = self.run(orelse, values, conjoin(mask, _negate(test)))
        return self.merged(test, then_values, else_values, stmt.span)

    def merged(self, test: Expr, then_values: Values, else_values: Values, span: Span) -> Values:
        """Return the values of scalars where branches meet: selects where both sides have one."""
        out: dict[int, Expr] = {}
        for key in dict.fromkeys((*then_values, *else_values)):
            yes, no = then_values.get(key), else_values.get(key)
            if yes is None or no is None or yes == no:
                out[key] = then_values[key] if key in then_values else else_values[key]
            elif key == _ACTIVE:
                out[key] = self.named(Node(-1, "on", (), dtypes.bool_), select(test, yes, no), span)
            else:
                out[key] = self.named(self.labels[key], select(test, yes, no), span)
        return out

    def named(self, node: Node, value: Expr, span: Span) -> Expr:
        """Return a value as a new scalar; constants and new scalars as they are."""
        self.labels[node.id] = node
        if not reads(value) or (isinstance(value, Read) and value.node.id in self.made):
            return value
        scalar = self.fresh.scalar(node.label, value.dtype)
        self.made.add(scalar.id)
        self.out.append(Store(Access(scalar, ()), value, span))
        return Read(scalar, ())


def substitute_values(expr: Expr, values: Values) -> Expr:
    """Return an expression with the current values of scalars substituted."""

    def value(part: Expr) -> Expr:
        if isinstance(part, Read) and not part.node.rank:
            return values.get(part.node.id, part)
        return rebuild(part, value, lambda index: index)

    return value(expr)


def _masked(mask: Expr, value: Expr, old: Expr) -> Expr:
    """Return a value selected by a mask, else the old one; of a complex value part by part."""
    match value:
        case Apply(op, (re, im), dtype) if op.name == "complex":
            real, imag = (Apply(OPS[part], (old,), dtype.real) for part in ("real", "imag"))
            return Apply(op, (Select(mask, re, real), Select(mask, im, imag)), dtype)
        case _:
            return Select(mask, value, old)


def select(test: Expr, yes: Expr, no: Expr) -> Expr:
    """Return a select; of constant truth values as boolean logic."""
    if yes == FALSE:
        return conjoin(_negate(test), no)
    if no == FALSE:
        return conjoin(test, yes)
    if yes == TRUE:
        return Apply(OPS["or"], (test, no), dtypes.bool_)
    return Select(test, yes, no)


def conjoin(first: Expr | None, second: Expr) -> Expr:
    """Return the conjunction of two tests, the first of which may be absent."""
    if first is None or first == TRUE:
        return second
    return first if second == TRUE else Apply(OPS["and"], (first, second), dtypes.bool_)


def _negate(test: Expr) -> Expr:
    return Apply(OPS["logical_not"], (test,), dtypes.bool_)


def _keeps_value(test: Expr, body: Body) -> bool:
    """Whether a test is a scalar, or an element of an array that statements leave as it is: stores
    of scalars go to new ones."""
    return isinstance(test, Read) and not (test.node.rank and test.node in writes(body))


def _is_single_store(body: Iterable[Stmt]) -> bool:
    """Whether statements are a single store, the only one that a test predicates."""
    effective = [stmt for stmt in body if not isinstance(stmt, Comment)]
    return len(effective) == 1 and isinstance(effective[0], Store | Update)
