"""Derivative rules: the partial derivatives of each scalar operation, as expressions.

A rule is named in the op's row of the table (`Op.derivative`). It takes the operands and the
operation itself, whose value many derivatives contain, and returns one partial derivative for each
operand; None is zero everywhere. At points where a function has no derivative the rule says which
one-sided one is taken: that of `abs`, `relu` and the like is 0 at 0, that of `max` and `min` goes
to the operand that is returned.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., table 2.3 and section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...base.diagnostic import Span
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Const, Expr, Select
from ..ir.ops import OPS


class NotDifferentiable(Exception):
    """A statement that has no adjoint: the reason, and where it is."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


def source_name(op: str) -> str:
    """Return what an operation is called in the source."""
    return {"round_to": "np.round", "round_decimal": "np.round"}.get(op, op)


BY_RULE = "by_rule"
"""The operation whose value is its first operand, and whose others are operands and the partial
derivatives that a rule of the user says for them, in turn."""
Partials = tuple[Expr | None, ...]
Rule = Callable[[Apply], Partials]


def number(value: float, dtype: DType) -> Const:
    """Return a constant of a type."""
    return Const(complex(value) if dtype.kind == "c" else float(value), dtype)


def apply(name: str, *args: Expr) -> Expr:
    """Return an operation on operands of one type; products with one and sums with zero folded."""
    left, dtype = args[0], args[0].dtype
    if name in ("mul", "div") and _is(args[1], 1.0):
        return left
    if name == "mul" and _is(left, 1.0):
        return args[1]
    if name == "mul" and _is(left, -1.0):
        return apply("neg", args[1])
    if name == "mul" and _is(args[1], -1.0):
        return apply("neg", left)
    if name == "mul" and isinstance(args[1], Apply):
        op, inner = args[1].op.name, args[1].args
        if op == "div" and isinstance(inner[0], Const):
            return apply("div", apply("mul", left, inner[0]), inner[1])
        if op == "neg":
            return apply("neg", apply("mul", left, inner[0]))
    if name in ("mul", "div") and isinstance(left, Apply) and left.op is OPS["neg"]:
        return apply("neg", apply(name, left.args[0], args[1]))
    if name == "mul" and isinstance(args[1], Select):
        test, yes, no = args[1].test, args[1].yes, args[1].no
        if _is(yes, 1.0) and _is(no, 0.0):
            return Select(test, left, no)
        if _is(yes, 0.0) and _is(no, 1.0):
            return Select(test, yes, left)
    if name == "add" and isinstance(args[1], Apply) and args[1].op is OPS["neg"]:
        return apply("sub", left, args[1].args[0])
    if name == "neg" and isinstance(left, Apply) and left.op is OPS["neg"]:
        return left.args[0]
    if name == "neg" and isinstance(left, Const):
        return Const(-left.value, dtype)
    return Apply(OPS[name], args, dtypes.bool_ if OPS[name].result == "bool" else dtype)


def _is(expr: Expr, value: float) -> bool:
    return isinstance(expr, Const) and expr.dtype.kind in "fc" and expr.value == value


def partials(expr: Apply) -> Partials | None:
    """Return the partial derivatives of an operation, None where the table has no rule for it."""
    rule = _RULES.get(expr.op.derivative or expr.op.name)
    return None if rule is None else rule(expr)


def _of_one(derivative: Callable[[Expr, Expr], Expr]) -> Rule:
    """Return the rule of a function of one operand: its derivative by operand and value."""
    return lambda expr: (derivative(expr.args[0], expr),)


def _scaled(value: Expr, factor: float) -> Expr:
    return apply("mul", value, number(factor, value.dtype))


def _over(factor: float, value: Expr) -> Expr:
    return apply("div", number(factor, value.dtype), value)


def _square(x: Expr) -> Expr:
    return apply("mul", x, x)


def _one_and_square(x: Expr, sign: str) -> Expr:
    """Return `1 + x*x` or `1 - x*x`."""
    return apply(sign, number(1.0, x.dtype), _square(x))


def _where(test: str, left: Expr, right: Expr, yes: float, no: float, dtype: DType) -> Expr:
    return Select(apply(test, left, right), number(yes, dtype), number(no, dtype))


def _zero_of(x: Expr) -> Const:
    return number(0.0, x.dtype)


def _pow(expr: Apply) -> Partials:
    """`p * x**(p - 1)`, zero where `p` is zero; `log(x) * x**p`, zero where that is zero."""
    x, p = expr.args
    one, zero = number(1.0, p.dtype), _zero_of(p)
    lower = Apply(OPS["pow"], (x, apply("sub", p, one)), expr.dtype)
    by_base: Expr
    if isinstance(p, Const):
        by_base = (
            number(0.0, x.dtype) if p.value == 0
            else _scaled(_power(x, p.value - 1), p.value.real)
        )  # fmt: skip
        return by_base, None
    by_base = Select(apply("eq", p, zero), zero, apply("mul", p, lower))
    logarithm = apply("mul", expr, Apply(OPS["log"], (x,), x.dtype))
    return by_base, Select(apply("eq", x, _zero_of(x)), zero, logarithm)


def _power(x: Expr, exponent: complex) -> Expr:
    """Return a power by a constant: small ones as products."""
    if exponent == 0:
        return number(1.0, x.dtype)
    if exponent == 1:
        return x
    if exponent == 2:
        return _square(x)
    if exponent == 0.5:
        return Apply(OPS["sqrt"], (x,), x.dtype)
    return Apply(OPS["pow"], (x, Const(exponent, x.dtype)), x.dtype)


def _extremum(expr: Apply) -> Partials:
    """One for the operand that is returned, zero for the other."""
    left, right = expr.args
    takes_left: Expr = apply("ge" if expr.op.name in ("max", "fmax") else "le", left, right)
    if expr.op.name in ("fmax", "fmin"):  # the other operand of a NaN
        no_right = Apply(OPS["isnan"], (right,), dtypes.bool_)
        takes_left = Apply(OPS["or"], (takes_left, no_right), dtypes.bool_)
    one, zero = number(1.0, expr.dtype), number(0.0, expr.dtype)
    return Select(takes_left, one, zero), Select(takes_left, zero, one)


def _remainder(quotient: str) -> Rule:
    def rule(expr: Apply) -> Partials:
        x, y = expr.args
        whole = Apply(OPS[quotient], (apply("div", x, y),), expr.dtype)
        return number(1.0, expr.dtype), apply("neg", whole)

    return rule


def _arctan2(expr: Apply) -> Partials:
    y, x = expr.args
    total = apply("add", _square(x), _square(y))
    return apply("div", x, total), apply("neg", apply("div", y, total))


def _copysign(expr: Apply) -> Partials:
    x, y = expr.args
    one = number(1.0, x.dtype)
    return apply("mul", _call("sign", x), Apply(OPS["copysign"], (one, y), x.dtype)), None


def _heaviside(expr: Apply) -> Partials:
    x, at_zero = expr.args
    return None, _where("eq", x, _zero_of(x), 1.0, 0.0, at_zero.dtype)


def _logaddexp(expr: Apply) -> Partials:
    return tuple(Apply(OPS["exp"], (apply("sub", side, expr),), expr.dtype) for side in expr.args)


def _gate(inside: Callable[[Expr], Expr]) -> Rule:
    def rule(expr: Apply) -> Partials:
        gate, x = expr.args
        one, zero = number(1.0, x.dtype), number(0.0, x.dtype)
        return None, Select(inside(gate), one, zero)

    return rule


def _between(x: Expr) -> Expr:
    above = apply("gt", x, number(0.0, x.dtype))
    return Apply(OPS["and"], (above, apply("lt", x, number(1.0, x.dtype))), dtypes.bool_)


def _between_ones(x: Expr) -> Expr:
    """Return `1 - x*x` as a product, which keeps its digits near one."""
    one = number(1.0, x.dtype)
    return apply("mul", apply("sub", one, x), apply("add", one, x))


def _inverse_sine(factor: float) -> Rule:
    """The derivative of the inverse sine and cosine."""
    return _of_one(lambda x, y: _over(factor, _call("sqrt", _between_ones(x))))


def _inverse_sinh(x: Expr, _: Expr) -> Expr:
    """One over the root of `1 + x*x`, which overflows for no real number."""
    one = number(1.0, x.dtype)
    if x.dtype.kind == "c":
        return _over(1.0, _call("sqrt", _one_and_square(x, "add")))
    return _over(1.0, Apply(OPS["hypot"], (one, x), x.dtype))


def _inverse_cosh(x: Expr, _: Expr) -> Expr:
    """One over the root of `x*x - 1`, by factors: it keeps its digits near one."""
    one = number(1.0, x.dtype)
    roots = [_call("sqrt", apply(sign, x, one)) for sign in ("sub", "add")]
    return _over(1.0, apply("mul", *roots))


def _call(name: str, x: Expr) -> Expr:
    return Apply(OPS[name], (x,), x.dtype)


_LOG2, _LOG10, _ROOT_PI = math.log(2.0), math.log(10.0), 2.0 / math.sqrt(math.pi)


def _gauss(x: Expr, factor: float) -> Expr:
    return _scaled(_call("exp", apply("neg", _square(x))), factor)


def _given(expr: Apply) -> Partials:
    """Return the partial derivatives that are operands themselves."""
    factors = expr.args[2::2]
    return (None, *(one for factor in factors for one in (factor, None)))


_RULES: dict[str, Rule] = {
    BY_RULE: _given,
    "neg": _of_one(lambda x, y: number(-1.0, x.dtype)),
    "abs": _of_one(lambda x, y: _call("sign", x)),
    **dict.fromkeys(("zero", "round_to", "round_decimal"), lambda expr: (None,) * len(expr.args)),
    "sqrt": _of_one(lambda x, y: _over(0.5, y)),
    "cbrt": _of_one(lambda x, y: _over(1.0 / 3.0, _square(y))),
    "recip": _of_one(lambda x, y: apply("neg", _square(y))),
    "recip_sqrt": _of_one(lambda x, y: _scaled(apply("div", y, x), -0.5)),
    "exp": _of_one(lambda x, y: y),
    "exp2": _of_one(lambda x, y: _scaled(y, _LOG2)),
    "expm1": _of_one(lambda x, y: apply("add", y, number(1.0, x.dtype))),
    "log": _of_one(lambda x, y: _over(1.0, x)),
    "log2": _of_one(lambda x, y: _over(1.0 / _LOG2, x)),
    "log10": _of_one(lambda x, y: _over(1.0 / _LOG10, x)),
    "log1p": _of_one(lambda x, y: _over(1.0, apply("add", x, number(1.0, x.dtype)))),
    "sin": _of_one(lambda x, y: _call("cos", x)),
    "cos": _of_one(lambda x, y: apply("neg", _call("sin", x))),
    "tan": _of_one(lambda x, y: _one_and_square(y, "add")),
    "arcsin": _inverse_sine(1.0),
    "arccos": _inverse_sine(-1.0),
    "arctan": _of_one(lambda x, y: _over(1.0, _one_and_square(x, "add"))),
    "sinh": _of_one(lambda x, y: _call("cosh", x)),
    "cosh": _of_one(lambda x, y: _call("sinh", x)),
    "tanh": _of_one(lambda x, y: _one_and_square(y, "sub")),
    "arcsinh": _of_one(_inverse_sinh),
    "arccosh": _of_one(_inverse_cosh),
    "arctanh": _of_one(lambda x, y: _over(1.0, _between_ones(x))),
    "erf": _of_one(lambda x, y: _gauss(x, _ROOT_PI)),
    "erfc": _of_one(lambda x, y: _gauss(x, -_ROOT_PI)),
    "relu": _of_one(lambda x, y: _where("gt", x, _zero_of(x), 1.0, 0.0, x.dtype)),
    "sat01": _of_one(lambda x, y: Select(_between(x), number(1.0, x.dtype), number(0.0, x.dtype))),
    "add": lambda expr: (number(1.0, expr.dtype), number(1.0, expr.dtype)),
    "sub": lambda expr: (number(1.0, expr.dtype), number(-1.0, expr.dtype)),
    "mul": lambda expr: (expr.args[1], expr.args[0]),
    "div": lambda expr: (
        _over(1.0, expr.args[1]),
        apply("neg", apply("div", expr, expr.args[1])),
    ),
    "mod": _remainder("floor"),
    "fmod": _remainder("trunc"),
    "pow": _pow,
    "max": _extremum,
    "min": _extremum,
    "fmax": _extremum,
    "fmin": _extremum,
    "arctan2": _arctan2,
    "hypot": lambda expr: tuple(apply("div", side, expr) for side in expr.args),
    "logaddexp": _logaddexp,
    "copysign": _copysign,
    "heaviside": _heaviside,
    "relu_gate": _gate(lambda gate: apply("gt", gate, _zero_of(gate))),
    "sat01_gate": _gate(_between),
    "fma": lambda expr: (expr.args[1], expr.args[0], number(1.0, expr.dtype)),
}
