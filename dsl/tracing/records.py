"""Records of a trace, and their text: the source of the assignment with values substituted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.assignments import Assign
from ...lowering.ir.dtypes import int64
from ...lowering.ir.expressions import Const, Expr, Index, Position, Read, Reduce, reads, walk
from ...lowering.ir.indexing import const
from ...lowering.ir.node import Node
from ...lowering.ir.ops import Op
from ...lowering.ir.text import INFIX, Scope, domain_text, element_text, expr_text, reduction_name
from ..instrument.recording import Ints
from ..instrument.sites import Site, array_name
from .points import Points

_SUM_NAMES = ("dot", "matmul", "einsum", "@")
"""Functions in source text that are sums."""


@dataclass(frozen=True, slots=True, repr=False)
class Operand:
    """A value that an assignment read, with its text."""

    text: str
    value: Any
    node: Node | None
    """The array that was read, None for a reduction."""
    index: tuple[int, ...]
    expr: Expr
    span: Span

    def __repr__(self) -> str:
        return f"<operand {self.text} = {to_text(self.value)}>"


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One execution of an assignment for one element."""

    run: int
    row: int
    number: int
    """The number of the point within the execution of the statement."""
    site: Site
    array: str
    index: tuple[int, ...]
    before: Any
    after: Any
    at: Mapping[str, int]
    """The values of loop and index variables by name; of equal names the outer one."""
    axes: tuple[int, ...]
    """The values of the statement's index variables, in order."""
    operands: tuple[Operand, ...]
    contribution: Any = None
    """The total that a reduction added to the target, None for other statements."""
    repeats: int = 1
    """The number of points of the statement that accumulate into this element."""

    @property
    def element(self) -> str:
        """`y[0, 3]`."""
        return format_element(self.array, self.index)

    @property
    def line(self) -> int:
        """The line of the statement."""
        return self.site.statement.span.line

    @property
    def text(self) -> str:
        """The statement with indices and values substituted: `y[0] += x[0]{=1.5} * t`."""
        return substituted_text(self)

    @property
    def order(self) -> tuple[int, int, int]:
        """Its position in the program order of a trace."""
        return self.run, self.row, self.number

    def __str__(self) -> str:
        others = f" (with {self.repeats - 1} more)" if self.repeats > 1 else ""
        return f"{self.text}    {to_text(self.before)} -> {to_text(self.after)}{others}"

    def __repr__(self) -> str:
        return f"<record {self.order}: {self}>"


def to_text(value: Any) -> str:
    """Return the shortest text that identifies a number in its type."""
    return str(bool(value)) if isinstance(value, np.bool_) else str(value)


def read_record(run: int, points: Points, at: int) -> Record:
    """Return a point of a site as a record."""
    site = points.site
    statement = site.statement
    assert isinstance(statement, Assign)
    axis_values = tuple(int(points.symbols[axis.symbol][at]) for axis in site.axes)
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
        array_name(statement.target.node, statement.names),
        _index_values(points, statement.target.index, at),
        points.column("before")[at],
        points.column("after")[at],
        {**outer, **{name: value for name, value in axes.items() if name not in outer}},
        axis_values,
        tuple(operands(points, at)),
        contribution,
        repeats,
    )


def _index_values(points: Points, index: tuple[Index, ...], at: int) -> tuple[int, ...]:
    return points.index_at(index, at)


def operands(points: Points, at: int) -> Iterator[Operand]:
    """Yield the values that a point read."""
    columns = zip(points.site.columns, points.values, points.valid, strict=True)
    statement = points.site.statement
    assert isinstance(statement, Assign)
    for column, values, evaluated in columns:
        if column.what == "before":
            target_read = next((x for x in reads(statement.value) if x == column.expr), None)
            if target_read is not None:
                index_values = _index_values(points, target_read.index, at)
                text = format_element(array_name(target_read.node, statement.names), index_values)
                yield Operand(
                    text, values[at], target_read.node, index_values, target_read, target_read.span
                )
        if column.what == "operand" and (evaluated is None or evaluated[at]):
            match column.expr:
                case Read(node, index, span):
                    numbers = _index_values(points, index, at)
                    text = format_element(array_name(node, statement.names), numbers)
                    yield Operand(text, values[at], node, numbers, column.expr, span)
                case Reduce(span=span) as reduce:
                    text = span.text if span is not NOWHERE else expr_text(reduce, Scope())
                    yield Operand(text, values[at], None, (), reduce, span)


def largest_operands(points: Points, at: Ints) -> npt.NDArray[np.float64]:
    """Return the largest magnitude that each of the points read: infinity for a value that is not
    finite, 0 where nothing was read."""
    statement = points.site.statement
    assert isinstance(statement, Assign)
    result = np.zeros(len(at))
    for column, values, evaluated in zip(
        points.site.columns, points.values, points.valid, strict=True
    ):
        if (
            column.what == "operand"
            or column.what == "before"
            and column.expr in reads(statement.value)
        ):
            sizes = np.abs(values[at].astype(np.result_type(values, np.float64)))
            sizes = np.where(np.isfinite(sizes), sizes, np.inf)
            if evaluated is not None:
                sizes = np.where(evaluated[at], sizes, 0)
            result = np.maximum(result, sizes)
    return result


def _operand_text(operand: Operand) -> str:
    """Return `x[0]{=1.5}`; a reduction whose text does not name it, `x.mean()`, is labelled."""
    mark = ""
    if isinstance(operand.expr, Reduce):
        mark = _reduction_label(operand.expr)
        names = (mark, *_SUM_NAMES) if mark == "sum" else (mark,)
        mark = "" if any(name in operand.text for name in names) else mark
    return f"{operand.text}{{{mark}={to_text(operand.value)}}}"


def _reduction_label(reduce: Reduce) -> str:
    """Return the name of a reduction; a sum of ones is a count."""
    is_count = reduce.op.name == "add" and reduce.value in (Position(const(1)), Const(1, int64))
    return "count" if is_count else reduction_name(reduce.op)


def format_element(label: str, index: tuple[int, ...]) -> str:
    """Return `y[0, 3]`; only the name where there is no index."""
    return f"{label}[{', '.join(map(str, index))}]" if index else label


def substituted_text(record: Record) -> str:
    """Return the statement in the user's text, with the values read substituted.

    A generated statement (a part of the user's, a fill) is shown in the text of the IR.
    """
    statement = record.site.statement
    assert isinstance(statement, Assign)
    if record.site.reads is not None:
        return f"{record.element} = {statement.span.text}"
    value_start = _find_value(statement)
    if value_start is None:
        sign = "=" if statement.op is None or statement.initialize else f"{_op_sign(statement.op)}="
        return f"{record.element} {sign} {_value_text(record, statement)}"
    sign, start = value_start
    text = statement.span.text
    by_span: dict[tuple[int, int], list[Operand]] = {}
    unplaced: list[str] = []
    names = [item for item in _name_spans(text) if item[1] >= start]
    for operand in record.operands:
        spans = _operand_spans(operand, statement, start, names)
        for span in spans:
            by_span.setdefault(span, []).append(operand)
        unplaced += () if spans else (f"{operand.text}={to_text(operand.value)}",)
    replacements = [
        (a, b, _replacement(text[a:b], operands)) for (a, b), operands in by_span.items()
    ]
    named = {symbol.name for symbol in record.site.named_symbols}
    replacements += [
        (a, b, str(record.at[name])) for name, a, b in names if name in named & {*record.at}
    ]
    out, at = "", start
    for begin, end, instead in sorted(replacements, key=lambda item: (item[0], -item[1])):
        if begin >= at:  # else it is inside a replaced span
            out, at = out + text[at:begin] + instead, end
    tail = f"    with {', '.join(unplaced)}" if unplaced else ""
    if record.contribution is not None and statement.op is not None:
        name = "sum" if statement.op.name == "sub" else reduction_name(statement.op)
        tail = f"{{{name}={to_text(record.contribution)}}}{tail}"
    return f"{record.element} {sign} {out}{text[at:]}{tail}"


def _find_value(statement: Assign) -> tuple[str, int] | None:
    """Return the operator of the user's assignment and the offset of its value in the text.

    None where the text is no assignment to the written array.
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
            return None  # each target gets a part of the value
        case ast.Assign([node], _) | ast.AnnAssign(node, _, ast.expr()) | ast.AugAssign(node, _, _):
            target = ast.unparse(node)
            end = len(text.encode()[: node.end_col_offset].decode())
        case _:
            return None
    if array_name(statement.target.node, statement.names) not in re.split(
        r"\W+", target.replace(".", "_")
    ):
        return None
    equals = text.index("=", end)
    sign = "=" if isinstance(tree, ast.AnnAssign) else text[end : equals + 1].strip()
    value_text = text[equals + 1 :]
    return sign, len(text) - len(value_text.lstrip())


def _replacement(text: str, operands: list[Operand]) -> str:
    """Return the replacement of a span of the user's text by the operands read there."""
    if len(operands) == 1:
        return _operand_text(operands[0])
    labels = [
        _reduction_label(operand.expr) if isinstance(operand.expr, Reduce) else operand.text
        for operand in operands
    ]
    texts = dict.fromkeys(
        f"{label}={to_text(operand.value)}" for label, operand in zip(labels, operands, strict=True)
    )
    return f"{text}{{{', '.join(texts)}}}"


def _name_spans(text: str) -> list[tuple[str, int, int]]:
    """Return the names in a statement's text, with begin and end of each."""
    lead = len(text) - len(text.removeprefix("return "))
    data = text[lead:].encode()

    def at(column: int) -> int:
        return lead + len(data[:column].decode())

    return [
        (node.id, at(node.col_offset), at(node.end_col_offset or 0))
        for node in ast.walk(ast.parse(text[lead:]))
        if isinstance(node, ast.Name)
    ]


def _operand_spans(
    operand: Operand, statement: Assign, start: int, names: list[tuple[str, int, int]]
) -> list[tuple[int, int]]:
    """Return the spans of a statement's text, from `start` on, where an operand is read."""
    span = statement.span
    spans = [operand.span, *(part.span for part in _equal_parts(operand.expr, statement))]
    read_spans = [
        (inner.column - span.column, inner.end_column - span.column)
        for inner in dict.fromkeys(spans)
        if inner.source is span.source
        and inner.line == inner.end_line == span.line
        and span.column + start <= inner.column < inner.end_column <= span.end_column
    ]
    if read_spans or operand.node is None:
        return read_spans
    array = array_name(operand.node, statement.names)
    name_spans = [(a, b) for name, a, b in names if name == array]
    return [(a, b) for a, b in name_spans if span.text[b : b + 1] not in ("[", "(", ".")]


def _equal_parts(expr: Expr, statement: Assign) -> Iterator[Read | Reduce]:
    """Yield the equal subexpressions of a statement, which are recorded once."""
    for part in walk(statement.value):
        if isinstance(part, Read | Reduce) and part == expr:
            yield part


def ir_text(record: Record) -> str:
    """Return the new value of an element as an expression of its old value and the operands."""
    statement = record.site.statement
    assert isinstance(statement, Assign)
    if record.site.reads is not None:
        return statement.span.text
    text = _value_text(record, statement)
    if statement.op is None or statement.initialize:
        return text
    sign, previous = _op_sign(statement.op), to_text(record.before)
    return f"{sign}({previous}, {text})" if sign.isalpha() else f"{previous} {sign} ({text})"


def _op_sign(op: Op) -> str:
    return INFIX[op.name][0] if op.name in INFIX else op.name


def _value_text(record: Record, statement: Assign) -> str:
    """Return the value of a statement in the text of the IR, with operands substituted."""
    scope = Scope()
    element_text(statement.target.node, statement.target.index, scope)
    if statement.reduced.ranges and statement.op is not None:
        inner = scope.inner()
        over = domain_text(statement.reduced, inner)
        name = reduction_name(statement.op)
        total = "" if record.contribution is None else f"{{={to_text(record.contribution)}}}"
        return f"{name}[{over}]({expr_text(statement.value, inner)}){total}"
    return _substitute(statement.value, scope, record.operands)


def term_text(statement: Assign, reduce: Reduce, substitutes: tuple[Operand, ...]) -> str:
    """Return a term of a reduction in the text of the IR, with operands substituted."""
    scope = Scope()
    element_text(statement.target.node, statement.target.index, scope)
    inner = scope.inner()
    domain_text(reduce.domain, inner)
    return _substitute(reduce.value, inner, substitutes)


def _substitute(expr: Expr, scope: Scope, operands: tuple[Operand, ...]) -> str:
    """Return an expression as text, with operands substituted."""
    text = expr_text(expr, scope)
    texts = {expr_text(operand.expr, scope): _operand_text(operand) for operand in operands}
    if not texts:
        return text
    parts = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.])(?:{parts})(?!\w)", lambda match: texts[match[0]], text)
