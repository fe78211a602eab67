"""One record as people read it: the assignment in its own source form, filled in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Expr, Index, Read, Reduce, reads, walk
from ...lowering.ir.node import Node
from ...lowering.ir.ops import Op
from ...lowering.ir.text import INFIX, Scope, domain_text, element_text, expr_text, reduction_name
from ..instrument.sites import Site, called
from .points import Points

_SUMS = ("dot", "matmul", "einsum", "@")
"""Other names of sums."""


@dataclass(frozen=True, slots=True, repr=False)
class Operand:
    """Something that an assignment read: its text, and its value there."""

    text: str
    value: Any
    node: Node | None
    """The array that was read; None for a reduction."""
    index: tuple[int, ...]
    expr: Expr
    span: Span

    def __repr__(self) -> str:
        return f"<operand {self.text} = {shown(self.value)}>"


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One assignment to one element."""

    run: int
    row: int
    number: int
    """Which point of the statement it is."""
    site: Site
    array: str
    index: tuple[int, ...]
    before: Any
    after: Any
    at: Mapping[str, int]
    """What loop variables and indices stood for, by name; of two of one name the outer one."""
    axes: tuple[int, ...]
    """What the indices of the statement itself stood for, in order."""
    operands: tuple[Operand, ...]
    contribution: Any = None
    """What a reduction added to the target, None for other statements."""
    repeats: int = 1
    """How many points of the statement accumulate into this element."""

    @property
    def element(self) -> str:
        """`y[0, 3]`."""
        return element(self.array, self.index)

    @property
    def line(self) -> int:
        """The line of the statement."""
        return self.site.statement.span.line

    @property
    def text(self) -> str:
        """The statement with indices and values filled in: `y[0] += x[0]{=1.5} * t`."""
        return filled(self)

    @property
    def order(self) -> tuple[int, int, int]:
        """Its place in the program order of a trace."""
        return self.run, self.row, self.number

    def __str__(self) -> str:
        others = f" (with {self.repeats - 1} more)" if self.repeats > 1 else ""
        return f"{self.text}    {shown(self.before)} -> {shown(self.after)}{others}"

    def __repr__(self) -> str:
        return f"<record {self.order}: {self}>"


def shown(value: Any) -> str:
    """Return a number in the fewest digits that tell it apart in its type."""
    return str(bool(value)) if isinstance(value, np.bool_) else str(value)


def record_at(run: int, points: Points, at: int) -> Record:
    """Return a point of a site as a record."""
    site = points.site
    statement = site.statement
    assert isinstance(statement, Assign)
    own = tuple(int(points.symbols[axis.symbol][at]) for axis in site.axes)
    symbols = [axis.symbol for axis in site.axes if axis.symbol not in site.hidden]
    axes = {symbol.name: int(points.symbols[symbol][at]) for symbol in symbols}
    symbols = [symbol for symbol in site.symbols if symbol not in site.hidden]
    outer = {symbol.name: int(points.symbols[symbol][at]) for symbol in symbols}
    contribution = None
    for column, values in zip(site.columns, points.values, strict=True):
        if column.what == "contribution":
            contribution = values[at]
    repeats = 1 if points.repeats is None else int(points.repeats[at])
    return Record(
        run,
        int(points.row[at]),
        int(points.number[at]),
        site,
        called(statement.target.node, statement.names),
        _numbers(points, statement.target.index, at),
        points.column("before")[at],
        points.column("after")[at],
        {**outer, **{name: value for name, value in axes.items() if name not in outer}},
        own,
        tuple(operands(points, at)),
        contribution,
        repeats,
    )


def _numbers(points: Points, index: tuple[Index, ...], at: int) -> tuple[int, ...]:
    return points.index_at(index, at)


def operands(points: Points, at: int) -> Iterator[Operand]:
    """Yield what a point read, each with its value there."""
    columns = zip(points.site.columns, points.values, points.known, strict=True)
    statement = points.site.statement
    assert isinstance(statement, Assign)
    for column, values, known in columns:
        if column.what == "before":
            own = next((x for x in reads(statement.value) if x == column.expr), None)
            if own is not None:
                here = _numbers(points, own.index, at)
                told = element(called(own.node, statement.names), here)
                yield Operand(told, values[at], own.node, here, own, own.span)
        if column.what == "operand" and (known is None or known[at]):
            match column.expr:
                case Read(node, index, span):
                    numbers = _numbers(points, index, at)
                    text = element(called(node, statement.names), numbers)
                    yield Operand(text, values[at], node, numbers, column.expr, span)
                case Reduce(span=span) as reduce:
                    text = span.text if span is not NOWHERE else expr_text(reduce, Scope())
                    yield Operand(text, values[at], None, (), reduce, span)


def _with_value(operand: Operand) -> str:
    """Return `x[0]{=1.5}`; a sum inside of something else, `x.mean()`, tells what it is."""
    mark = ""
    if isinstance(operand.expr, Reduce):
        mark = reduction_name(operand.expr.op)
        names = (mark, *_SUMS) if mark == "sum" else (mark,)
        mark = "" if any(name in operand.text for name in names) else mark
    return f"{operand.text}{{{mark}={shown(operand.value)}}}"


def element(label: str, index: tuple[int, ...]) -> str:
    """Return `y[0, 3]`; the name alone where there is no index."""
    return f"{label}[{', '.join(map(str, index))}]" if index else label


def filled(record: Record) -> str:
    """Return the statement in the user's own text, what it read replaced by what that was.

    What is no statement of the user's (a part of one, a fill) is told in the text of the IR.
    """
    statement = record.site.statement
    assert isinstance(statement, Assign)
    if record.site.reads is not None:
        return f"{record.element} = {statement.span.text}"
    parts = _sides(statement)
    if parts is None:
        sign = "=" if statement.op is None or statement.initialize else f"{_sign(statement.op)}="
        return f"{record.element} {sign} {_value(record, statement)}"
    sign, start = parts
    text = statement.span.text
    at_place: dict[tuple[int, int], list[Operand]] = {}
    left: list[str] = []
    names = [one for one in _names(text) if one[1] >= start]
    for operand in record.operands:
        places = _places(operand, statement, start, names)
        for place in places:
            at_place.setdefault(place, []).append(operand)
        left += () if places else (f"{operand.text}={shown(operand.value)}",)
    found = [(a, b, _instead(text[a:b], here)) for (a, b), here in at_place.items()]
    named = {symbol.name for symbol in record.site.own}
    found += [(a, b, str(record.at[name])) for name, a, b in names if name in named & {*record.at}]
    out, at = "", start
    for begin, end, instead in sorted(found, key=lambda one: (one[0], -one[1])):
        if begin >= at:  # or it is part of what was replaced
            out, at = out + text[at:begin] + instead, end
    tail = f"    with {', '.join(left)}" if left else ""
    if record.contribution is not None and statement.op is not None:
        name = "sum" if statement.op.name == "sub" else reduction_name(statement.op)
        tail = f"{{{name}={shown(record.contribution)}}}{tail}"
    return f"{record.element} {sign} {out}{text[at:]}{tail}"


def _sides(statement: Assign) -> tuple[str, int] | None:
    """Return the sign of the user's assignment and where its value begins in the text.

    None where the text is no assignment to the array that is written.
    """
    span = statement.span
    if span is NOWHERE or span.line != span.end_line:
        return None
    text = span.text
    try:
        (tree,) = ast.parse(text.removeprefix("return ").strip()).body
    except (SyntaxError, ValueError):
        return None
    lead = len(text) - len(text.removeprefix("return "))
    match tree:
        case ast.Expr() if lead:
            return "=", lead
        case ast.Assign([ast.Tuple() | ast.List()], _):
            return None  # each gets a part of the value
        case ast.Assign([one], _) | ast.AnnAssign(one, _, ast.expr()) | ast.AugAssign(one, _, _):
            target = ast.unparse(one)
            end = len(text.encode()[: one.end_col_offset].decode())
        case _:
            return None
    if called(statement.target.node, statement.names) not in re.split(
        r"\W+", target.replace(".", "_")
    ):
        return None
    equals = text.index("=", end)
    sign = "=" if isinstance(tree, ast.AnnAssign) else text[end : equals + 1].strip()
    rest = text[equals + 1 :]
    return sign, len(text) - len(rest.lstrip())


def _instead(text: str, found: list[Operand]) -> str:
    """Return what stands for a part of the user's text: what was read there, or all that was."""
    if len(found) == 1:
        return _with_value(found[0])
    told = dict.fromkeys(f"{operand.text}={shown(operand.value)}" for operand in found)
    return f"{text}{{{', '.join(told)}}}"


def _names(text: str) -> list[tuple[str, int, int]]:
    """Return the names in a statement's text, with where each begins and ends."""
    lead = len(text) - len(text.removeprefix("return "))
    data = text[lead:].encode()

    def at(column: int) -> int:
        return lead + len(data[:column].decode())

    return [
        (one.id, at(one.col_offset), at(one.end_col_offset or 0))
        for one in ast.walk(ast.parse(text[lead:]))
        if isinstance(one, ast.Name)
    ]


def _places(
    operand: Operand, statement: Assign, start: int, names: list[tuple[str, int, int]]
) -> list[tuple[int, int]]:
    """Return where in a statement's text something is read, from `start` on."""
    span = statement.span
    spans = [operand.span, *(one.span for one in _equals(operand.expr, statement))]
    found = [
        (inner.column - span.column, inner.end_column - span.column)
        for inner in dict.fromkeys(spans)
        if inner.source is span.source
        and inner.line == inner.end_line == span.line
        and span.column + start <= inner.column < inner.end_column <= span.end_column
    ]
    if found or operand.node is None:
        return found
    array = called(operand.node, statement.names)
    whole = [(a, b) for name, a, b in names if name == array]
    return [(a, b) for a, b in whole if span.text[b : b + 1] not in ("[", "(", ".")]


def _equals(expr: Expr, statement: Assign) -> Iterator[Read | Reduce]:
    """Yield what a statement reads where it reads the same: it is recorded once."""
    for one in walk(statement.value):
        if isinstance(one, Read | Reduce) and one == expr:
            yield one


def in_ir(record: Record) -> str:
    """Return what an element became as an expression of what it was and of what was read."""
    statement = record.site.statement
    assert isinstance(statement, Assign)
    if record.site.reads is not None:
        return statement.span.text
    text = _value(record, statement)
    if statement.op is None or statement.initialize:
        return text
    sign, old = _sign(statement.op), shown(record.before)
    return f"{sign}({old}, {text})" if sign.isalpha() else f"{old} {sign} ({text})"


def _sign(op: Op) -> str:
    return INFIX[op.name][0] if op.name in INFIX else op.name


def _value(record: Record, statement: Assign) -> str:
    """Return the value of a statement in the text of the IR, what it read filled in."""
    scope = Scope()
    element_text(statement.target.node, statement.target.index, scope)
    if statement.reduced.ranges and statement.op is not None:
        inner = scope.inner()
        over = domain_text(statement.reduced, inner)
        name = reduction_name(statement.op)
        total = "" if record.contribution is None else f"{{={shown(record.contribution)}}}"
        return f"{name}[{over}]({expr_text(statement.value, inner)}){total}"
    return _with_values(statement.value, scope, record.operands)


def term_text(statement: Assign, reduce: Reduce, found: tuple[Operand, ...]) -> str:
    """Return a term of a reduction in the text of the IR, what it read filled in."""
    scope = Scope()
    element_text(statement.target.node, statement.target.index, scope)
    inner = scope.inner()
    domain_text(reduce.domain, inner)
    return _with_values(reduce.value, inner, found)


def _with_values(expr: Expr, scope: Scope, found: tuple[Operand, ...]) -> str:
    """Return an expression as text, what it read filled in."""
    text = expr_text(expr, scope)
    told = {expr_text(operand.expr, scope): _with_value(operand) for operand in found}
    if not told:
        return text
    parts = "|".join(map(re.escape, sorted(told, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.])(?:{parts})(?!\w)", lambda match: told[match[0]], text)
