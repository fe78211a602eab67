"""C text of index expressions: with operators, or with functions of wrap-around semantics.

A CUDA compiler assumes that signed integers do not overflow: it folds `a + b > a` to true. Sums and
products that may overflow 64 bits are therefore function calls there, as user values are unlimited.
Expressions of sizes and of loops over them fit, and so do offsets of elements, whose subscripts are
checked before. C is compiled with `-fwrapv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...lowering.ir import dtypes
from ...lowering.ir.bounds import Bounds
from ...lowering.ir.indexing import Affine, Atom, Quasi, Symbol, const, wrap_64_bits
from . import index_width
from .c_text import ADD, MUL, POSTFIX, UNARY, CText
from .dialect import Dialect

ONE = const(1)


class IndexScope(Protocol):
    """The scope at a point of the text."""

    @property
    def dialect(self) -> Dialect:
        """The language of the text."""

    @property
    def symbols(self) -> Mapping[Symbol, str]:
        """The names of symbols."""

    @property
    def narrow(self) -> Mapping[Symbol, int]:
        """The symbols that are 32-bit variables, see `index_width`."""

    @property
    def bounds(self) -> Bounds:
        """The value ranges of symbols."""


def number(index: Affine, scope: IndexScope) -> CText:
    """Return an index expression that wraps around where it overflows 64 bits."""
    narrow = index_width.magnitude(index, scope.narrow) is not None
    if narrow or "add" not in scope.dialect.wrapping or index_width.fits(index, scope.bounds):
        return affine(index, scope)
    index, out = wrap_64_bits(index), ""
    if not index.terms:
        return affine(index, scope)
    for atom, k in index_width.text_order(index):
        text = _wrapped_atom(atom, scope)
        if abs(k) != 1:
            factor = scope.dialect.literal(abs(k) if k > -(2**63) else k, dtypes.int64)
            text = f"mul_i64({text}, {factor})"
        if not out:
            out = text if k > 0 or k == -(2**63) else f"neg_i64({text})"
        else:
            out = f"{'sub' if -(2**63) < k < 0 else 'add'}_i64({out}, {text})"
    if index.offset:
        sign, offset = _signed(index.offset, scope.dialect)
        out = f"{'add' if sign == '+' else 'sub'}_i64({out}, {offset})"
    return CText(out, POSTFIX)


def _wrapped_atom(atom: Atom, scope: IndexScope) -> str:
    match atom:
        case Symbol():
            return scope.symbols[atom]
        case Quasi(op, left, right):
            return f"{op}_i64({number(left, scope).text}, {number(right, scope).text})"


def affine(
    index: Affine, scope: IndexScope, factor: Affine = ONE, wide: bool | None = None
) -> CText:
    """Return the product of an index expression and a factor, folded into a single term.

    It is `wide`, evaluated in 64 bits, where it may not fit into 32.
    """
    if factor.constant is not None and len(index.terms) <= 1:
        index, factor = index * factor.constant, ONE
    if wide is None:
        wide = factor != ONE or index_width.magnitude(index, scope.narrow) is None
    sum_ = _sum(index, wide, scope)
    if factor == ONE:
        return sum_
    product = f"{sum_.within(MUL)}*{_sum(factor, wide, scope).within(MUL)}"
    return CText(product, MUL)


def _sum(index: Affine, is_wide: bool, scope: IndexScope) -> CText:
    out, index = "", wrap_64_bits(index)
    for atom, k in index_width.text_order(index):
        text = _atom(atom, k == 1 or k == -1, is_wide, scope)
        sign, factor = _signed(k, scope.dialect)
        body = text if abs(k) == 1 else f"{text}*{factor}"
        if not out and sign == "-" and body[0] == "-":
            body = f"({body})"  # `--i` is a decrement
        out += (f" {sign} " if out else "-" if sign == "-" else "") + body
    if out[:1] == "-" and len(index.terms) == 1 and index.offset > 0:
        out = f"{index.offset} - {out[1:]}"
    elif index.offset and out:
        out += " {} {}".format(*_signed(index.offset, scope.dialect))
    if not out:
        text = scope.dialect.literal(index.offset, dtypes.int64)
        return CText(text, UNARY if index.offset < 0 else POSTFIX)
    if len(index.terms) > 1 or index.offset:
        return CText(out, ADD)
    atom, k = index.terms[0]
    level = UNARY if is_wide and _is_narrow_atom(atom, scope) else _precedence(atom)
    if k == 1:
        return CText(out, level)
    return CText(out, min(level, UNARY) if k == -1 else MUL)  # `-i*j` is `(-i)*j`


def _signed(number: int, dialect: Dialect) -> tuple[str, str]:
    """Return a sign and what follows it; the least number is what no sign is taken from."""
    if number == -(2**63):
        return "+", dialect.literal(number, dtypes.int64)
    return "-" if number < 0 else "+", str(abs(number))


def _atom(atom: Atom, alone: bool, wide: bool, scope: IndexScope) -> str:
    if wide and _is_narrow_atom(atom, scope):
        text = _atom(atom, False, False, scope)
        return f"(int64_t){text}"
    match atom:
        case Symbol():
            return scope.symbols[atom]
        case Quasi("mul", left, right):
            sides = affine(left, scope, wide=wide), affine(right, scope, wide=wide)
            text = f"{sides[0].within(MUL)}*{sides[1].within(UNARY)}"
            return text if alone else f"({text})"
        case Quasi(op, left, right):
            kind = "i64" if wide else "i32"
            return f"{op}_{kind}({number(left, scope).text}, {number(right, scope).text})"


def _is_narrow_atom(atom: Atom, scope: IndexScope) -> bool:
    return bool(scope.narrow) and index_width.atom_magnitude(atom, scope.narrow) is not None


def _precedence(atom: Atom) -> int:
    return MUL if isinstance(atom, Quasi) and atom.op == "mul" else POSTFIX
