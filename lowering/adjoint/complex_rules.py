"""Cotangents of the operands of operations on complex numbers.

A cotangent `d` of `z` says how a real number `L` changes: `dL = Re(conj(d) dz)`. So a small step
against it lowers `L`, as of a real number. That of the operand of a holomorphic function `f` is
`conj(f') d`, of the real operand of a complex value the real part of it.

Source: K. Kreutz-Delgado, The Complex Gradient Operator and the CR-Calculus, 2009.
"""

from __future__ import annotations

from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Const, Expr, Select
from ..ir.ops import OPS
from .rules import apply, number, partials

HOLOMORPHIC = frozenset((
    "neg", "add", "sub", "mul", "div", "recip", "exp", "log", "sqrt", "sin", "cos", "tan",
    "sinh", "cosh", "tanh",
))  # fmt: skip


def operand_cotangents(expr: Apply, cotangent: Expr) -> tuple[Expr | None, ...] | None:
    """Return the cotangent of each operand where one is complex, None where there is no rule."""
    name, x = expr.op.name, expr.args[0]
    if name in HOLOMORPHIC:
        derivatives = partials(expr)
        assert derivatives is not None, "they have rules"
        return tuple(
            None if part is None else apply("mul", cotangent, _conjugate(part))
            for part in derivatives
        )
    match name:
        case "conj":
            return (_conjugate(cotangent),)
        case "real":
            return (as_type(cotangent, x.dtype),)
        case "imag":
            return (apply("mul", as_type(cotangent, x.dtype), Const(1j, x.dtype)),)
        case "abs":
            ratio = apply("div", apply("mul", as_type(cotangent, x.dtype), x), Cast(expr, x.dtype))
            zero = number(0.0, x.dtype)
            return (Select(_is_zero(expr), zero, ratio),)
        case "angle":
            turned = apply("mul", x, Const(1j, x.dtype))
            size = Apply(OPS["abs"], (x,), expr.dtype)
            scale = apply("div", cotangent, apply("mul", size, size))
            return (apply("mul", as_type(scale, x.dtype), turned),)
        case _:
            return None


def as_type(value: Expr, dtype: DType) -> Expr:
    """Return a cotangent in the type of another operand: of a real one it is the real part."""
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = Apply(OPS["real"], (value,), value.dtype.real)
    return value if value.dtype == dtype else Cast(value, dtype)


def _is_zero(value: Expr) -> Expr:
    return Apply(OPS["eq"], (value, number(0.0, value.dtype)), dtypes.bool_)


def _conjugate(value: Expr) -> Expr:
    if isinstance(value, Const):
        return Const(value.value.conjugate(), value.dtype)
    return Apply(OPS["conj"], (value,), value.dtype)
