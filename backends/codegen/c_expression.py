"""Expressions as C text, with as few brackets as their precedence needs.

Operands of `Apply` are of one compute type; C promotes integers narrower than `int`, so results
that could leave their type are cast back to it. Floating operators keep the order of the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.bounds import COMPARED, Bounds
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
from ...lowering.ir.indexing import Affine, Quasi, Symbol, const, recombined
from ...lowering.ir.loops import For
from ...lowering.ir.node import Node
from ...lowering.ir.ops import Op
from . import c_index, index_width, prelude
from .c_index import ONE
from .c_text import ADD, CHOOSE, EQUAL, MUL, OR, POSTFIX, RELATE, UNARY, Text, infix
from .dialect import Dialect
from .operator_forms import behind_zero, detour, is_int, is_power_of_two, is_zero_product, widened
from .quirks.contraction import is_product
from .quirks.counter_overflow import LEAST, MOST
from .speculation import Storage, has_pick, may_be_vectors, waits, without_branch

_STRAIGHT = {"&&": "&", "||": "|"}
"""Logical operators, of operands that are computed in any case, without a branch."""
_WIDENED = ("+", "-", "*", "~")
"""Operators whose result, computed in `int`, may not fit a narrower type."""


@dataclass(slots=True)
class Scope:
    """What names mean at a place in the text: nodes, index symbols, and nodes held by value."""

    dialect: Dialect
    nodes: Mapping[int, str]
    by_value: frozenset[int]
    symbols: dict[Symbol, str] = field(default_factory=dict)
    storage: Storage | None = None
    """Where given: choices are computed without branches where that is harmless and helps."""
    straight: bool = False
    """Whether the text is inside of a loop that may become vectors."""
    waits: bool = False
    """Whether rounds of the loop wait for what those before them leave in an array."""
    alternates: bool = False
    """Whether products are rounded by a call before anything is done to them, see `products`."""
    narrow: dict[Symbol, int] = field(default_factory=dict)
    """The symbols that are numbers of 32 bits, see `widths`."""
    swizzled: frozenset[int] = frozenset()
    """The tiles whose pieces are exchanged, as units of a device read them."""
    known: Bounds = field(default_factory=Bounds)
    """What symbols are between, where that decides how many bits they have."""

    def entered(self, loop: For) -> tuple[bool, bool]:
        """Note that the text of a loop's body begins; return what is to be told at its end."""
        before = self.straight, self.waits
        if self.storage is not None:
            self.straight = self.straight or may_be_vectors(loop, self.storage)
            self.waits = waits(loop)
        return before

    def left(self, before: tuple[bool, bool]) -> None:
        """Note that the text of a loop's body has ended."""
        self.straight, self.waits = before

    def narrowed(self, loop: For) -> str:
        """Return the type of a loop's variable, and know what it is between from now on."""
        if not self.dialect.narrows:
            return "int64_t"
        most, self.known = index_width.of_loop(loop, self.known), self.known.inside(loop)
        if most is None:
            return "int64_t"
        self.narrow[loop.symbol] = most
        return "int32_t"

    def held(self, symbol: Symbol, value: Expr) -> Text:
        """Return the text of what a symbol stands for, and know what that is between."""
        if self.dialect.narrows:
            low, high = self.known.value(value)
            if low is None or high is None or low < LEAST or high > MOST:
                low, high = LEAST, MOST
            self.known = self.known.holding(symbol, (low, high))
        return self.expression(value)

    def expression(self, expr: Expr) -> Text:
        """Return the C text of an expression."""
        match expr:
            case Const(value, dtype):
                text = self.dialect.literal(value, dtype)
                return Text(text, UNARY if text[0] in "-(" else POSTFIX)
            case Read(node, index):
                return Text(self.element(node, index), POSTFIX)
            case Position(index):
                place = self.number(index)
                if not index.terms or index_width.size(index, self.narrow) is None:
                    return place
                return Text(f"(int64_t){place.within(UNARY)}", UNARY)
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
        """Return an element as something that can be read or assigned to."""
        name = self.nodes[node.id]
        if node.id in self.by_value:
            return name
        place = self.offset(node, index)
        return f"{name}[swizzled({place})]" if node.id in self.swizzled else f"{name}[{place}]"

    def affine(self, index: Affine) -> Text:
        """Return an index expression that surely fits."""
        return c_index.affine(index, self)

    def number(self, index: Affine) -> Text:
        """Return an index expression that may be any number, and wraps around as all do."""
        return c_index.number(index, self)

    def _is_wide(self, node: Node, index: tuple[Index, ...]) -> bool:
        """Whether the place of an element among those of its array may not fit into 32 bits."""
        if not self.narrow:
            return True
        total = 0
        for at, stride in zip(index, node.element_strides, strict=True):
            part = index_width.size(at, self.narrow) if isinstance(at, Affine) else None
            if part is None or stride.constant is None:
                return True
            total += part * abs(stride.constant)
        return total >= index_width.LIMIT

    def offset(self, node: Node, index: tuple[Index, ...]) -> str:
        """Return where an element lies among all of its array."""
        out, constant, wide = "", 0, self._is_wide(node, index)
        for at, stride in joined(index, node.element_strides):
            match at:
                case Affine():
                    if stride.constant is not None:
                        constant += at.offset * stride.constant
                        at = Affine(at.terms)
                    if at == const(0):
                        continue
                    text = c_index.affine(at, self, stride, wide)
                case Dynamic(value):
                    text = self.expression(value)
                    if stride != ONE:
                        step = self.affine(stride)
                        text = Text(f"{text.within(MUL)}*{step.within(UNARY)}", MUL)
                case _:
                    assert_never(at)
            body = text.within(ADD)
            if not out:
                out = body
            else:
                out += f" - {body[1:]}" if body[0] == "-" else f" + {body}"
        if not out:
            return str(constant)
        return out if not constant else f"{out} {'-' if constant < 0 else '+'} {abs(constant)}"

    def _apply(self, expr: Apply) -> Text:
        operand = expr.args[0].dtype
        if operand.compute is not operand:
            return self.expression(widened(expr))
        op = expr.op
        if is_power_of_two(expr):
            return self._in_bits(expr)
        behind = behind_zero(expr)
        if behind is not None:
            return Text(f"from_zero_{operand.short}({self.expression(behind).text})", POSTFIX)
        if is_zero_product(expr):
            factors = ", ".join(self.expression(arg).text for arg in expr.args)
            return Text(f"zero_product_{operand.short}({factors})", POSTFIX)
        if not self.dialect.is_infix(op, operand):
            assert op.call, f"{op.name} has no spelling for {operand}"
            args = ", ".join(self.expression(arg).text for arg in expr.args)
            return Text(f"{self._called(f'{op.call}_{operand.short}')}({args})", POSTFIX)
        args_ = self._compared(expr) or [self.expression(arg) for arg in expr.args]
        if self.alternates and op.name in ("add", "sub", "neg"):
            args_ = [_rounded(arg, text) for arg, text in zip(expr.args, args_, strict=True)]
        if operand is dtypes.int64 and all(is_int(arg) for arg in expr.args):
            args_[0] = Text(f"(int64_t){args_[0].within(UNARY)}", UNARY)
        out = infix(self._operator(op.infix), args_)
        narrow = operand.kind in "iu" and operand.bits < 32
        if narrow and op.infix in _WIDENED:
            return Text(f"({self.dialect.types[operand]}){out.within(UNARY)}", UNARY)
        return out

    def _compared(self, expr: Apply) -> list[Text]:
        """Return the two sides of a comparison of index expressions of 32 bits; none for others."""
        sides = [arg.index for arg in expr.args if isinstance(arg, Position)]
        if not self.narrow or expr.op.name not in COMPARED or len(sides) != len(expr.args):
            return []
        if any(index_width.size(one, self.narrow) is None for one in sides):
            return []
        return [self.affine(one) for one in sides]

    def _in_bits(self, expr: Apply) -> Text:
        """Return an integer divided by a power of two, or what remains of it, by its bits alone.

        Both are rounded down, as shifts of negative numbers are: those keep their sign.
        """
        dtype, by = expr.dtype, expr.args[1]
        assert isinstance(by, Const) and isinstance(by.value, int), "the caller has looked"
        value = self.expression(expr.args[0])
        if expr.op.name == "mod":
            out = infix("&", [value, Text(self.dialect.literal(by.value - 1, dtype), POSTFIX)])
        else:
            out = infix(">>", [value, Text(str(by.value.bit_length() - 1), POSTFIX)])
        if dtype.bits < 32:
            return Text(f"({self.dialect.types[dtype]}){out.within(UNARY)}", UNARY)
        return out

    def stored(self, value: Expr) -> Text:
        """Return what is stored somewhere, to which a compiler may see that something is added."""
        text = self.expression(value)
        return _rounded(value, text) if self.alternates else text

    def accumulated(self, access: Access, op: Op, value: Expr) -> Text:
        """Return what an element becomes when a value is accumulated into it."""
        node = access.node
        dtype = value.dtype
        before = _converted(Read(node, access.index), dtype)
        if node.id in self.by_value and op.name in ("max", "min") and dtype.compute is dtype:
            # the next round waits for this one, and a processor guesses branches
            args = f"{self.expression(before).text}, {self.expression(value).text}"
            new = Text(f"{op.call}_{dtype.short}({args})", POSTFIX)
            return self._cast(new, dtype, node.dtype)
        return self.expression(_converted(Apply(op, (before, value), dtype), node.dtype))

    def _called(self, name: str) -> str:
        """Return the function of that name, or one that does the same and suits the loop."""
        prefix = "straight_" if self.straight else "quick_" if self.waits else ""
        return prefix + name if prelude.is_piece(prefix + name) else name

    def _operator(self, infix: str) -> str:
        return _STRAIGHT.get(infix, infix) if self.straight else infix

    def _select(self, test: Expr, yes: Expr, no: Expr) -> Text:
        first = self.expression(test)
        dtype = yes.dtype
        picked = (
            (self.straight or self.waits)
            and self.storage is not None
            and has_pick(dtype)
            and without_branch(test, yes, no, self.storage)
        )
        if dtype is dtypes.bool_:
            if no == Const(False, dtypes.bool_):
                return infix("&" if picked else "&&", [first, self.expression(yes)])
            if yes == Const(True, dtypes.bool_):
                return infix("|" if picked else "||", [first, self.expression(no)])
        if picked:
            args = f"{first.text}, {self.expression(yes).text}, {self.expression(no).text}"
            return Text(f"{'' if self.straight else 'quick_'}pick_{dtype.short}({args})", POSTFIX)
        sides = self.expression(yes).within(OR), self.expression(no).within(CHOOSE)
        return Text(f"{first.within(OR)} ? {sides[0]} : {sides[1]}", CHOOSE)

    def _cast(self, value: Text, source: DType, to: DType) -> Text:
        """Return a conversion: a function of the prelude, a comparison with zero, or a C cast."""
        if source is to:
            return value
        function = self.dialect.casts.get((source, to))
        if function is not None:
            return Text(f"{self._called(function)}({value.text})", POSTFIX)
        through = detour(source, to, self.dialect.halves)
        if through is not None:
            return self._cast(self._cast(value, source, through), through, to)
        if to.kind == "c":
            re = self._cast(value, source, to.real).text
            zero = self.dialect.literal(0.0, to.real)
            return Text(f"complex_{to.real.short}({re}, {zero})", POSTFIX)
        if to.kind == "b":
            return Text(f"{value.within(RELATE)} != 0", EQUAL)
        return Text(f"({self.dialect.types[to]}){value.within(UNARY)}", UNARY)


def joined(index: tuple[Index, ...], strides: tuple[Affine, ...]) -> list[tuple[Index, Affine]]:
    """Return the parts of the place of an element, each with its stride: one where what they are
    of a loop's variable, its quotients and remainders, is simpler taken together."""
    parts = list(zip(index, strides, strict=True))
    if len(index) < 2:
        return parts
    whole, is_divided = const(0), False
    for at, stride in parts:
        if not isinstance(at, Affine) or stride.constant is None:
            return parts
        is_divided |= any(isinstance(atom, Quasi) for atom, _ in at.terms)
        whole += at * stride.constant
    if not is_divided:
        return parts
    made = recombined(whole)
    return [(made, ONE)] if len(made.terms) < len(whole.terms) else parts


def _rounded(expr: Expr, text: Text) -> Text:
    """Return an expression that no compiler rounds together with what is done to it."""
    return Text(f"rounded({text.text})", POSTFIX) if is_product(expr) else text


def _converted(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype is dtype else Cast(expr, dtype)
