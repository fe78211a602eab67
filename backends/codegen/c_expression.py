"""C text of expressions, parenthesized only where precedence requires it.

Operands of `Apply` are of one compute type; C promotes integers narrower than `int`, so results
that may leave their type's range are cast back to it. Floating-point operations keep the order of
the expression tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.bounds import COMPARISONS, Bounds
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
    Reduce,
    Select,
)
from ...lowering.ir.indexing import Affine, Quasi, Symbol, const, recombine_quotients
from ...lowering.ir.loops import For
from ...lowering.ir.node import Node
from ...lowering.ir.ops import Op
from . import c_index, index_width, prelude
from .c_index import ONE
from .c_text import ADD, EQUAL, MUL, OR, POSTFIX, RELATE, SELECT, UNARY, CText, infix
from .dialect import Dialect
from .operator_forms import (
    intermediate_type,
    is_int,
    is_power_of_two,
    is_zero_product,
    subtracted_from_zero,
    widen_operation,
)
from .quirks.contraction import is_product
from .quirks.counter_overflow import LEAST, MOST
from .speculation import (
    Storage,
    has_select,
    has_short_dependence,
    is_speculatable,
    may_be_vectorized,
)

_STRAIGHT = {"&&": "&", "||": "|"}
"""The branch-free operator for each logical one, both of whose operands are evaluated."""
_WIDENED = ("+", "-", "*", "~")
"""Operators whose result, computed in `int`, may not fit a narrower type."""


@dataclass(slots=True)
class Scope:
    """The scope at a point of the text: names of nodes and index symbols, nodes held by value."""

    dialect: Dialect
    nodes: Mapping[int, str]
    by_value: frozenset[int]
    symbols: dict[Symbol, str] = field(default_factory=dict)
    storage: Storage | None = None
    """Where given: selects are printed without branches where that is safe and pays."""
    branch_free: bool = False
    """Whether the text is inside a loop that the C compiler may vectorize."""
    has_dependence: bool = False
    """Whether the loop carries a short dependence through an array."""
    rounds_products: bool = False
    """Whether products are rounded by a call before their use, see `quirks.contraction`."""
    narrow: dict[Symbol, int] = field(default_factory=dict)
    """The symbols that are 32-bit variables, with bounds of their magnitude, see `index_width`."""
    swizzled: frozenset[int] = frozenset()
    """The tiles of swizzled layout, as the tensor cores of a device read them."""
    bounds: Bounds = field(default_factory=Bounds)
    """The value ranges of symbols, where these decide the width of index arithmetic."""

    def enter_loop(self, loop: For) -> tuple[bool, bool]:
        """Enter the scope of a loop's body; return the state that `left` restores."""
        saved = self.branch_free, self.has_dependence
        if self.storage is not None:
            self.branch_free = self.branch_free or may_be_vectorized(loop, self.storage)
            self.has_dependence = has_short_dependence(loop)
        return saved

    def left(self, saved: tuple[bool, bool]) -> None:
        """Leave the scope of a loop's body."""
        self.branch_free, self.has_dependence = saved

    def loop_variable_type(self, loop: For) -> str:
        """Return the C type of a loop's variable, and record its range."""
        if not self.dialect.has_narrow_indices:
            return "int64_t"
        magnitude, self.bounds = (
            index_width.loop_magnitude(loop, self.bounds),
            self.bounds.inside(loop),
        )
        if magnitude is None:
            return "int64_t"
        self.narrow[loop.symbol] = magnitude
        return "int32_t"

    def held(self, symbol: Symbol, value: Expr) -> CText:
        """Return the text of a symbol's value, and record its range."""
        if self.dialect.has_narrow_indices:
            low, high = self.bounds.value(value)
            if low is None or high is None or low < LEAST or high > MOST:
                low, high = LEAST, MOST
            self.bounds = self.bounds.with_interval(symbol, (low, high))
        return self.expression(value)

    def expression(self, expr: Expr) -> CText:
        """Return the C text of an expression."""
        match expr:
            case Const(value, dtype):
                text = self.dialect.literal(value, dtype)
                return CText(text, UNARY if text[0] in "-(" else POSTFIX)
            case Read(node, index):
                return CText(self.element(node, index), POSTFIX)
            case Position(index):
                number_text = self.number(index)
                if not index.terms or index_width.magnitude(index, self.narrow) is None:
                    return number_text
                return CText(f"(int64_t){number_text.within(UNARY)}", UNARY)
            case Apply():
                return self._apply(expr)
            case Cast(value, dtype):
                return self._cast(self.expression(value), value.dtype, dtype)
            case Select(test, yes, no):
                return self._select(test, yes, no)
            case Reduce():
                raise AssertionError("a Reduce does not outlive build")
            case _:
                assert_never(expr)

    def element(self, node: Node, index: tuple[Index, ...]) -> str:
        """Return an element as an lvalue."""
        name = self.nodes[node.id]
        if node.id in self.by_value:
            return name
        offset = self.offset(node, index)
        return f"{name}[swizzled({offset})]" if node.id in self.swizzled else f"{name}[{offset}]"

    def affine(self, index: Affine) -> CText:
        """Return an index expression that cannot overflow."""
        return c_index.affine(index, self)

    def number(self, index: Affine) -> CText:
        """Return an index expression that may overflow, and then wraps around."""
        return c_index.number(index, self)

    def _has_wide_offset(self, node: Node, index: tuple[Index, ...]) -> bool:
        """Whether the linear offset of an element may exceed 32 bits."""
        if not self.narrow:
            return True
        total = 0
        for subscript, stride in zip(index, node.element_strides, strict=True):
            bound = (
                index_width.magnitude(subscript, self.narrow)
                if isinstance(subscript, Affine)
                else None
            )
            if bound is None or stride.constant is None:
                return True
            total += bound * abs(stride.constant)
        return total >= index_width.NARROW_LIMIT

    def offset(self, node: Node, index: tuple[Index, ...]) -> str:
        """Return the linear offset of an element in its array."""
        out, constant, is_wide = "", 0, self._has_wide_offset(node, index)
        for subscript, stride in linear_terms(index, node.element_strides):
            match subscript:
                case Affine():
                    if stride.constant is not None:
                        constant += subscript.offset * stride.constant
                        subscript = Affine(subscript.terms)
                    if subscript == const(0):
                        continue
                    text = c_index.affine(subscript, self, stride, is_wide)
                case Dynamic(value):
                    text = self.expression(value)
                    if stride != ONE:
                        step = self.affine(stride)
                        text = CText(f"{text.within(MUL)}*{step.within(UNARY)}", MUL)
                case _:
                    assert_never(subscript)
            term = text.within(ADD)
            if not out:
                out = term
            else:
                out += f" - {term[1:]}" if term[0] == "-" else f" + {term}"
        if not out:
            return str(constant)
        if constant > 0 and out[0] == "-" and " " not in out:
            return f"{constant} - {out[1:]}"
        return out if not constant else f"{out} {'-' if constant < 0 else '+'} {abs(constant)}"

    def _apply(self, expr: Apply) -> CText:
        operand = expr.args[0].dtype
        if operand.compute is not operand:
            return self.expression(widen_operation(expr))
        op = expr.op
        if is_power_of_two(expr):
            return self._shift_or_mask(expr)
        negated = subtracted_from_zero(expr)
        if negated is not None:
            return CText(f"from_zero_{operand.short}({self.expression(negated).text})", POSTFIX)
        if is_zero_product(expr):
            factors = ", ".join(self.expression(arg).text for arg in expr.args)
            return CText(f"zero_product_{operand.short}({factors})", POSTFIX)
        if not self.dialect.is_infix(op, operand):
            assert op.call, f"{op.name} has no spelling for {operand}"
            args = ", ".join(self.expression(arg).text for arg in expr.args)
            return CText(f"{self._function_variant(f'{op.call}_{operand.short}')}({args})", POSTFIX)
        texts = self._narrow_comparison(expr) or [self.expression(arg) for arg in expr.args]
        if self.rounds_products and op.name in ("add", "sub", "neg"):
            texts = [_round_product(arg, text) for arg, text in zip(expr.args, texts, strict=True)]
        if operand is dtypes.int64 and all(is_int(arg) for arg in expr.args):
            texts[0] = CText(f"(int64_t){texts[0].within(UNARY)}", UNARY)
        out = infix(self._operator(op.infix), texts)
        narrow = operand.kind in "iu" and operand.bits < 32
        if narrow and op.infix in _WIDENED:
            return CText(f"({self.dialect.types[operand]}){out.within(UNARY)}", UNARY)
        return out

    def _narrow_comparison(self, expr: Apply) -> list[CText]:
        """Return both sides of a comparison of 32-bit index expressions, [] for any other."""
        sides = [arg.index for arg in expr.args if isinstance(arg, Position)]
        if not self.narrow or expr.op.name not in COMPARISONS or len(sides) != len(expr.args):
            return []
        if any(index_width.magnitude(side, self.narrow) is None for side in sides):
            return []
        return [self.affine(side) for side in sides]

    def _shift_or_mask(self, expr: Apply) -> CText:
        """Return a floor division or remainder by a power of two as a shift or mask.

        Both round down, as arithmetic shifts of negative numbers do.
        """
        dtype, by = expr.dtype, expr.args[1]
        assert isinstance(by, Const) and isinstance(by.value, int), "the caller has looked"
        value = self.expression(expr.args[0])
        if expr.op.name == "mod":
            out = infix("&", [value, CText(self.dialect.literal(by.value - 1, dtype), POSTFIX)])
        else:
            out = infix(">>", [value, CText(str(by.value.bit_length() - 1), POSTFIX)])
        if dtype.bits < 32:
            return CText(f"({self.dialect.types[dtype]}){out.within(UNARY)}", UNARY)
        return out

    def stored(self, value: Expr) -> CText:
        """Return a value to be stored, which a compiler may contract with a later addition."""
        text = self.expression(value)
        return _round_product(value, text) if self.rounds_products else text

    def accumulated(self, access: Access, op: Op, value: Expr) -> CText:
        """Return the new value of an element into which a value is accumulated."""
        node = access.node
        dtype = value.dtype
        previous = _convert(Read(node, access.index), dtype)
        if node.id in self.by_value and op.name in ("max", "min") and dtype.compute is dtype:
            # a loop-carried dependence: a branch would let the processor predict it
            args = f"{self.expression(previous).text}, {self.expression(value).text}"
            new = CText(f"{op.call}_{dtype.short}({args})", POSTFIX)
            return self._cast(new, dtype, node.dtype)
        return self.expression(_convert(Apply(op, (previous, value), dtype), node.dtype))

    def _function_variant(self, name: str) -> str:
        """Return the variant of a prelude function that suits the loop."""
        prefix = "straight_" if self.branch_free else "quick_" if self.has_dependence else ""
        return prefix + name if prelude.is_prelude_name(prefix + name) else name

    def _operator(self, infix: str) -> str:
        return _STRAIGHT.get(infix, infix) if self.branch_free else infix

    def _select(self, test: Expr, yes: Expr, no: Expr) -> CText:
        first = self.expression(test)
        dtype = yes.dtype
        branch_free = (
            (self.branch_free or self.has_dependence)
            and self.storage is not None
            and has_select(dtype)
            and is_speculatable(test, yes, no, self.storage)
        )
        if dtype is dtypes.bool_:
            if no == Const(False, dtypes.bool_):
                return infix("&" if branch_free else "&&", [first, self.expression(yes)])
            if yes == Const(True, dtypes.bool_):
                return infix("|" if branch_free else "||", [first, self.expression(no)])
        if branch_free:
            args = f"{first.text}, {self.expression(yes).text}, {self.expression(no).text}"
            return CText(
                f"{'' if self.branch_free else 'quick_'}pick_{dtype.short}({args})", POSTFIX
            )
        sides = self.expression(yes).within(OR), self.expression(no).within(SELECT)
        return CText(f"{first.within(OR)} ? {sides[0]} : {sides[1]}", SELECT)

    def _cast(self, value: CText, source: DType, to: DType) -> CText:
        """Return a conversion: a function of the prelude, a comparison with zero, or a C cast."""
        if source is to:
            return value
        function = self.dialect.casts.get((source, to))
        if function is not None:
            return CText(f"{self._function_variant(function)}({value.text})", POSTFIX)
        intermediate = intermediate_type(source, to, self.dialect.halves)
        if intermediate is not None:
            return self._cast(self._cast(value, source, intermediate), intermediate, to)
        if to.kind == "c":
            re = self._cast(value, source, to.real).text
            zero = self.dialect.literal(0.0, to.real)
            return CText(f"complex_{to.real.short}({re}, {zero})", POSTFIX)
        if to.kind == "b":
            return CText(f"{value.within(RELATE)} != 0", EQUAL)
        return CText(f"({self.dialect.types[to]}){value.within(UNARY)}", UNARY)


def linear_terms(
    index: tuple[Index, ...], strides: tuple[Affine, ...]
) -> list[tuple[Index, Affine]]:
    """Return the subscripts of an element with their strides: one of both where quotients and
    remainders of an index variable simplify in the linear offset."""
    terms = list(zip(index, strides, strict=True))
    if len(index) < 2:
        return terms
    linear, is_divided = const(0), False
    for subscript, stride in terms:
        if not isinstance(subscript, Affine) or stride.constant is None:
            return terms
        is_divided |= any(isinstance(atom, Quasi) for atom, _ in subscript.terms)
        linear += subscript * stride.constant
    if not is_divided:
        return terms
    simplified = recombine_quotients(linear)
    return [(simplified, ONE)] if len(simplified.terms) < len(linear.terms) else terms


def _round_product(expr: Expr, text: CText) -> CText:
    """Return an expression that no compiler contracts with the operation that uses it."""
    return CText(f"rounded({text.text})", POSTFIX) if is_product(expr) else text


def _convert(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype is dtype else Cast(expr, dtype)
