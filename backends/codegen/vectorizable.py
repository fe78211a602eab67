"""Vectorizability: whether each statement of a loop over lanes maps to vector operations.

Values are vectors of numbers; tests are masks, whose lanes have all bits set where they hold. A
select evaluates both sides, so its test must not guard an access against leaving its array: it
tests floats, or data from which no index follows.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...lowering.analysis.reductions import initial_value
from ...lowering.analysis.subscripts import stride
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    reads,
    walk,
)
from ...lowering.ir.indexing import Symbol, var
from ...lowering.ir.loops import Comment, Stmt, Store, Update
from ...lowering.ir.node import Node
from ...lowering.ir.walk import free_symbols
from .operator_forms import is_zero_product, subtracted_from_zero
from .speculation import implies_no_range

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
LOGIC = {"bitand": "&", "bitor": "|", "bitxor": "^", "and": "&", "or": "|"}
_VECTOR_OPS = frozenset((*INFIX, "max", "min", "fma"))
"""Operations on vectors, by an operator or by a function of the prelude."""
_REALS = (dtypes.float32, dtypes.float64)
_TRUE, _FALSE = Const(True, dtypes.bool_), Const(False, dtypes.bool_)


class LaneBound(NamedTuple):
    """A test of a lane's index against an upper bound: `lane + offset < terms`."""

    terms: Expr
    offset: int

    def left(self, first: int) -> int | None:
        """Return how many lanes pass the test from lane `first` on, None where it is dynamic."""
        limit = self.terms.value if isinstance(self.terms, Const) else None
        return limit - self.offset - first if isinstance(limit, int) else None


@dataclass(slots=True)
class VectorBody:
    """The analysis of the body of a loop over lanes, statement by statement."""

    lane: Symbol
    data: AbstractSet[int] = frozenset()
    """The ids of arrays whose elements carry no facts about indices."""
    bits: set[int] = field(default_factory=set)
    """The widths of the types of values that vary over lanes."""
    named: set[int] = field(default_factory=set)
    """The ids of scalars that are expanded to a vector."""

    def fits(self, stmt: Stmt) -> bool:
        """Whether a statement can be vectorized; it is recorded."""
        match stmt:
            case Comment():
                return True
            case Store(Access(node, ()), value):
                self.note(stmt)
                return self.is_real(node.dtype) and self.can(value)
            case Store(Access(node, index), value) if has_integer_lanes(node):
                return self.step(node, index) == 1 and not self.varies(value)
            case Store(Access(node, index), value):
                return self.is_real(node.dtype) and self.step(node, index) == 1 and self.can(value)
            case Update(Access(node, index), op, value, None) if has_integer_lanes(node):
                return (
                    op.name == "add"
                    and self.step(node, index) == 1
                    and self.counts(value, node.dtype)
                )
            case Update(Access(node, index), op, value, None) if op.name in _VECTOR_OPS:
                return self.is_real(node.dtype) and self.step(node, index) == 1 and self.can(value)
            case _:
                return False

    def note(self, stmt: Stmt) -> None:
        """Record the scalar that a vectorizable statement assigns, without checking it."""
        if isinstance(stmt, Store) and not stmt.access.index:
            self.named.add(stmt.access.node.id)

    def is_real(self, dtype: DType) -> bool:
        """Whether a type is a float of vectors; its width is recorded."""
        self.bits.add(dtype.bits)
        return dtype in _REALS

    def counts(self, value: Expr, dtype: DType) -> bool:
        """Whether a value is 1 where a test holds and 0 elsewhere, or a vector of counts."""
        self.bits.add(dtype.bits)
        match value:
            case Read(node, index) if node.dtype is dtype:
                return has_integer_lanes(node) and self.step(node, index) == 1
            case Cast(test) if test.dtype is dtypes.bool_:
                return implies_no_range(test, self.data) and self.is_mask(test)
            case _:
                return False

    def can(self, expr: Expr) -> bool:
        """Whether an expression is uniform over the lanes, or vectorizable."""
        if not self.varies(expr):
            return True
        match expr:
            case Read(node, ()):
                return True
            case Read(node, index):
                return self.is_real(node.dtype) and self.step(node, index) == 1
            case Apply(op, args, dtype) if op.name in _VECTOR_OPS:
                return (
                    self.is_real(dtype)
                    and subtracted_from_zero(expr) is None
                    and not is_zero_product(expr)
                    and all(arg.dtype is dtype and self.can(arg) for arg in args)
                )
            case Cast(Read(_, (_, *_)) as byte, _) if byte.dtype.bits < 32:
                return False  # compilers widen bytes better in a loop
            case Cast(test, dtype) if test.dtype is dtypes.bool_:
                alone = isinstance(test, Apply) and test.op.name in COMPARISONS  # it guards nothing
                about = alone or implies_no_range(test, self.data)
                return self.is_real(dtype) and about and self.is_mask(test)
            case Cast(value, dtype):
                is_widening = value.dtype is dtypes.float32 and dtype is dtypes.float64
                return is_widening and self.is_real(dtype) and self.can(value)
            case Select(test, yes, no) if self.bound(test) is not None:
                has_no_select = not any(isinstance(part, Select) for part in walk(yes))
                is_padding = has_no_select and not self.varies(no)
                return is_padding and self.is_real(expr.dtype) and self.can(yes)
            case Select(test, yes, no):
                return (
                    self.is_real(expr.dtype) and implies_no_range(test, self.data)
                    and self.is_mask(test) and self.can(yes) and self.can(no)
                )  # fmt: skip
            case _:
                return False

    def bound(self, test: Expr) -> LaneBound | None:
        """Return the bound of a test that selects the first lanes, None for any other test.

        Where it fails nothing may be read, so a value under it has no selects of its own, and the
        other lanes are padded with one number.
        """
        match test:
            case Apply(op, (Position(at), (Const() | Read(_, ())) as count)) if op.name == "lt":
                offset = (at - var(self.lane)).constant
                return None if offset is None else LaneBound(count, offset)
            case _:
                return None

    def changes(self, stmt: Stmt, first: int) -> bool:
        """Whether a statement has an effect in lanes from `first` on: not only neutral elements."""
        match stmt:
            case Comment():
                return False
            case Store(Access(_, ()), Select(test)):
                pass
            case Update(Access(node), op, Select(test, _, Const(otherwise))):
                if repr(otherwise) != repr(initial_value(op, node)):
                    return True
            case Store(access, Apply(op, (Select(test, _, Const(a)), Select(), Read() as old))):
                is_update = access == Access(old.node, old.index)
                if not is_update or op.name != "fma" or repr(a) != "-0.0":
                    return True
            case _:
                return True
        bound = self.bound(test)
        remaining = None if bound is None else bound.left(first)
        return remaining is None or remaining > 0

    def is_mask(self, test: Expr) -> bool:
        """Whether a varying test is a comparison of vectors, or a logical operation on such."""
        if not self.varies(test):
            return False
        match test:
            case Apply(op, args) if op.name in COMPARISONS and args[0].dtype is args[1].dtype:
                return all(self.is_comparable(arg) for arg in args)
            case Apply(op, args) if op.name in LOGIC or op.name == "logical_not":
                return all(arg.dtype is dtypes.bool_ and self.is_mask(arg) for arg in args)
            case Select(first, yes, no) if test.dtype is dtypes.bool_:
                operand = no if yes == _TRUE else yes if no == _FALSE else None
                return operand is not None and self.is_mask(first) and self.is_mask(operand)
            case Read(node, index) if index and node.dtype is dtypes.bool_:
                return self.step(node, index) == 1
            case _:
                return False

    def is_comparable(self, expr: Expr) -> bool:
        """Whether an expression may be an operand of a vector comparison."""
        if expr.dtype in _REALS:
            return self.can(expr)
        self.bits.add(expr.dtype.bits)
        is_wide_integer = expr.dtype.kind in "iu" and expr.dtype.bits >= 32
        if not self.varies(expr):
            return is_wide_integer
        return is_wide_integer and isinstance(expr, Read) and self.step(expr.node, expr.index) == 1

    def varies(self, expr: Expr) -> bool:
        """Whether an expression may vary over the lanes."""
        is_expanded = any(not read.index and read.node.id in self.named for read in reads(expr))
        return is_expanded or self.lane in free_symbols(expr)

    def step(self, node: Node, index: tuple[Index, ...]) -> int | None:
        """Return the stride of an access in the lane's index, None where it is unknown."""
        if any(isinstance(at, Dynamic) and self.varies(at.value) for at in index):
            return None
        return stride(node, index, self.lane)


def has_integer_lanes(node: Node) -> bool:
    """Whether a node holds integer accumulators in lanes that vectors can add."""
    return node.purpose == "lanes" and node.dtype.kind in "iu" and node.dtype.bits >= 32


def mask_operation(test: Select) -> tuple[str, Expr]:
    """Return the bitwise operator of a select of truth values, and its other operand."""
    return ("|", test.no) if test.yes == _TRUE else ("&", test.yes)
