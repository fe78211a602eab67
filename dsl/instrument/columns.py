"""Record columns of an assignment: its target before and after, and all values that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access, Assign
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Dynamic,
    Expr,
    Read,
    Reduce,
    Select,
    children,
)
from ...lowering.ir.ops import OPS, PAIR_OPS
from ..values.types import negate
from .sites import Column, ColumnKind

Cell = tuple[bool, int, Expr]
"""One stored number: whether it is a float, its position, and its expression."""


@dataclass
class Columns:
    """The columns of one statement while they are collected, and the cells of each."""

    entries: list[Column] = field(default_factory=list)
    cells: list[tuple[Column, tuple[Cell, ...]]] = field(default_factory=list)
    floats: int = 0
    ints: int = 0
    guarded: list[tuple[Column, Expr | None]] = field(default_factory=list)
    """The columns, each with the test under which it is evaluated (None: always)."""
    _guards: dict[Expr, int] = field(default_factory=dict)

    def of(self, statement: Assign, reduce: Reduce | None, masked: bool) -> None:
        """Collect the columns of a statement, or of a term of a reduction in it; where `masked`,
        the first int is reserved for the mask."""
        self.ints = int(masked)
        if reduce is not None:
            self.operands(reduce.value, None)
            return
        target = Read(statement.target.node, statement.target.index, statement.span)
        self.add("before", target)
        for index in statement.target.index:
            if isinstance(index, Dynamic):
                self.operands(index.value, None)
                self.add("subscript", index.value)
        op, value = statement.op, statement.value
        if (added := statement_reduction(statement)) is not None:
            if not statement.initialize and _has_contribution(added.op.name, value.dtype):
                self.add("contribution", added)
        elif op not in PAIR_OPS.values() and not isinstance(value, Reduce):
            self.operands(statement.value, None)

    def operands(self, expr: Expr, guard: Expr | None) -> None:
        """Add the operands of an expression, each once, with the tests that guard them."""
        match expr:
            case Select(test, yes, no):
                self.operands(test, guard)
                self.operands(yes, _conjunction(guard, test))
                self.operands(no, _conjunction(guard, negate(test)))
                return
            case Apply(op, (left, right), _) if op.name in ("and", "or"):
                self.operands(left, guard)
                self.operands(
                    right, _conjunction(guard, left if op.name == "and" else negate(left))
                )
                return
            case Reduce():
                self.add("operand", expr, guard)
                return
            case Read(_, index):
                for subscript in index:
                    if isinstance(subscript, Dynamic):
                        self.operands(subscript.value, guard)
                        self.add("subscript", subscript.value, guard)
                self.add("operand", expr, guard)
                return
        for child in children(expr):
            self.operands(child, guard)

    def add(self, what: ColumnKind, expr: Expr, guard: Expr | None = None) -> None:
        """Add a column for the value of an expression unless it exists."""
        dtype = expr.dtype
        for existing in self.entries:
            if (
                existing.expr == expr
                and existing.what in (what, "before")
                and existing.guard is None
            ):
                return
        guard_position = None if guard is None else self._guard(guard)
        is_float = dtype.kind in "fc"
        position = self.floats if is_float else self.ints
        column = Column(what, expr, dtype, position, guard_position)
        self.entries.append(column)
        self.guarded.append((column, guard))
        self.cells.append((column, tuple(self._cells(column, expr, guard))))

    def subscript_positions(self, target: Access) -> tuple[int | None, ...]:
        """Return the position of each recorded subscript of a target, None for affine ones."""
        values = [i.value if isinstance(i, Dynamic) else None for i in target.index]
        position_of_value = {c.expr: c.position for c in self.entries if c.what == "subscript"}
        return tuple(None if value is None else position_of_value[value] for value in values)

    def after(self, expr: Expr) -> tuple[Column, tuple[Cell, ...]]:
        """Return the column of the target after the statement, and its cells."""
        position = self.floats if expr.dtype.kind in "fc" else self.ints
        column = Column("after", expr, expr.dtype, position)
        return column, tuple(self._cells(column, expr, None))

    def _guard(self, guard: Expr) -> int:
        if guard not in self._guards:
            position = self._guards[guard] = self.ints
            self.ints += 1
            truth = Column("subscript", None, dtypes.bool_, position)
            self.cells.append((truth, ((False, position, Cast(guard, dtypes.int64)),)))
        return self._guards[guard]

    def _cells(self, column: Column, expr: Expr, guard: Expr | None) -> Iterator[Cell]:
        if expr.dtype.kind == "c":
            for part in ("real", "imag"):
                component = Apply(OPS[part], (expr,), expr.dtype.real)
                yield True, self.floats, _select(guard, _convert(component, dtypes.float64))
                self.floats += 1
        elif column.is_float:
            yield True, self.floats, _select(guard, _convert(expr, dtypes.float64))
            self.floats += 1
        else:
            yield False, self.ints, _select(guard, _convert(expr, dtypes.int64))
            self.ints += 1


def statement_reduction(statement: Assign) -> Reduce | None:
    """Return the reduction of a statement over index variables of its right-hand side, None if
    there are none."""
    op, value = statement.op, statement.value
    if op is None or not statement.reduced.ranges:
        return None
    op_of_sum = OPS["add"] if op.name == "sub" else op
    return Reduce(op_of_sum, statement.reduced, value, value.dtype, span=statement.span)


def find_reductions(statement: Assign) -> Iterator[tuple[Reduce, Expr | None]]:
    """Yield each reduction of a statement once, with the test under which it is evaluated."""
    whole, columns = statement_reduction(statement), Columns()
    if whole is not None:
        yield whole, None
        return
    columns.operands(statement.value, None)
    for column, guard in columns.guarded:
        if isinstance(column.expr, Reduce):
            yield column.expr, guard


def _has_contribution(name: str, dtype: DType) -> bool:
    """Whether the total contribution of an accumulation is a value, also for zero terms."""
    return name in ("add", "mul", "and", "or") or (name in ("max", "min") and dtype.kind == "f")


def _conjunction(guard: Expr | None, test: Expr) -> Expr:
    """Return the short-circuit conjunction of a guard and a test."""
    return test if guard is None else Select(guard, test, Const(False, dtypes.bool_))


def _select(guard: Expr | None, value: Expr) -> Expr:
    return value if guard is None else Select(guard, value, Const(0, value.dtype))


def _convert(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype is dtype else Cast(expr, dtype)
