"""The operation table: one row for each scalar operation, with all that holds for it everywhere.

A row has the number of operands, the kinds of element it admits (`b i u f c`), the result type, its
NumPy meaning (the oracle's), its neutral element as an accumulator and the side on which that is
neutral, its spelling in C (an infix operator, or a function of the prelude that takes a type
suffix), and the name of its derivative rule. Operands and result of an `Apply` are already of one
compute type (`Cast` is explicit), so a row never converts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...base.dataclass import dataclass

Result = Literal["same", "bool", "real", "complex", "unsigned", "signed", "float"]
Side = Literal["both", "right", "none"]


@dataclass(frozen=True, slots=True)
class Op:
    """A scalar operation. Equal by name; the table holds the only instance of each."""

    name: str
    arity: int
    admits: str
    """Element kinds it works on, of `biufc`; the compute type of its operands is one of them."""
    meaning: Callable[..., Any]
    """What it computes on NumPy scalars of one type."""
    result: Result = "same"
    infix: str = ""
    """The C operator, where it is right for every admitted non-complex type."""
    infix_kinds: str = ""
    """The kinds for which `infix` is right; other kinds call `call`."""
    call: str = ""
    """The prelude function without its type suffix: `exp` becomes `exp_f32`."""
    neutral: float | bool | None = None
    """The element that an accumulation starts from, None where there is none."""
    side: Side = "none"
    """Where the neutral element is neutral: `x op e == x` is right, `e op x == x` too is both."""
    derivative: str = ""

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _relu(x: Any) -> Any:
    return x if x >= 0 else type(x)(0)


def _sat01(x: Any) -> Any:
    unit = type(x)(1)
    return unit if x > 1 else x if x > 0 else type(x)(0)


def _relu_gate(gate: Any, x: Any) -> Any:
    return x if gate > 0 else type(x)(0)


def _sat01_gate(gate: Any, x: Any) -> Any:
    return x if 0 < gate < 1 else type(x)(0)


def _max(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b  # the first of two zeros: NumPy's depends on the machine


def _min(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


def _fmax(a: Any, b: Any) -> Any:
    return a if a >= b or b != b else b


def _fmin(a: Any, b: Any) -> Any:
    return a if a <= b or b != b else b


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Fused multiply-add: one rounding of the exact result, in a wider type or in integers."""
    return _fma_in_doubles(a, b, c) if type(a) is np.float32 else _fma_exactly(a, b, c)


def _fma_in_doubles(a: Any, b: Any, c: Any) -> Any:
    """Round once: the product is exact in float64, and the error of its sum (Knuth's TwoSum)
    decides ties.

    Source: D. E. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
    """
    product, addend = float(a) * float(b), float(c)
    near = product + addend
    addend_part = near - product
    residual = (product - (near - addend_part)) + (addend - addend_part)
    if residual and not math.isnan(residual):
        rounded = float(np.float32(near))
        opposite = 2 * near - rounded
        if rounded != near and float(np.float32(opposite)) == opposite:  # halfway between two
            near = math.nextafter(near, math.copysign(math.inf, residual))
    return np.float32(near)


def _fma_exactly(a: Any, b: Any, c: Any) -> Any:
    """Round the exact quotient of integers, which Python rounds once, also below 2**-1022.

    A float64 that is rounded again to a narrower type keeps in its last bit that it is inexact
    (round to odd).
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    ratios = [float(x).as_integer_ratio() for x in (a, b, c)]
    (a_over, a_under), (b_over, b_under), (c_over, c_under) = ratios
    under = a_under * b_under
    over, under = a_over * b_over * c_under + c_over * under, under * c_under
    if over == 0:
        return a * b + c
    try:
        near = over / under
    except OverflowError:
        return type(a)(math.inf if over > 0 else -math.inf)
    if type(a) is not np.float64:
        over_near, under_near = near.as_integer_ratio()
        residual = over * under_near - over_near * under
        if residual and np.float64(near).view(np.int64) % 2 == 0:
            near = math.nextafter(near, math.copysign(math.inf, residual))
    return type(a)(near)


def _through_math(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: type(x)(function(float(x)))


def _complex(re: Any, im: Any) -> Any:
    # not re + 1j * im: an infinite im would make re NaN
    return (np.complex64 if re.dtype.itemsize == 4 else np.complex128)(complex(re, im))


def _round_to(x: Any, digits: Any) -> Any:
    return np.round(x, int(digits))


def _round_decimal(x: Any, digits: Any) -> Any:
    return type(x)(round(float(x), int(digits)))


def _ordinal(x: Any) -> Any:
    """Return the rank of a number in its type: NaN is next to infinity, and -0 is 0."""
    bits, unsigned = 8 * x.itemsize, np.dtype(f"u{x.itemsize}").type
    if x.dtype.kind != "f":
        return unsigned(int(x) + (2 ** (bits - 1) if x.dtype.kind == "i" else 0))
    top = int(type(x)(math.inf).view(unsigned))
    size = int(abs(x).view(unsigned))
    return unsigned(2 * top + 1 if x != x else top - size if x < 0 else top + size)


def _rank(x: Any) -> Any:
    """Return the bits as an integer in the order of the numbers: -0 before 0, NaN last."""
    signed = np.dtype(f"i{x.itemsize}").type
    bits = int((abs(x) if x != x else x).view(signed))
    return signed(bits if bits >= 0 else bits ^ int(np.iinfo(signed).max))


def _of_rank(x: Any) -> Any:
    bits = int(x)
    return type(x)(bits if bits >= 0 else bits ^ int(np.iinfo(x).max)).view(f"f{x.itemsize}")


# fmt: off
_ROWS: tuple[Op, ...] = (
    # one operand
    Op("neg", 1, "iufc", np.negative, infix="-", infix_kinds="iuf", call="neg", derivative="neg"),
    Op("abs", 1, "iufc", np.abs, "real", call="abs", derivative="abs"),
    Op("sign", 1, "iufc", np.sign, call="sign", derivative="zero"),
    Op("floor", 1, "f", np.floor, call="floor", derivative="zero"),
    Op("ceil", 1, "f", np.ceil, call="ceil", derivative="zero"),
    Op("trunc", 1, "f", np.trunc, call="trunc", derivative="zero"),
    Op("rint", 1, "fc", np.rint, call="rint", derivative="zero"),
    Op("sqrt", 1, "fc", np.sqrt, call="sqrt", derivative="sqrt"),
    Op("cbrt", 1, "f", np.cbrt, call="cbrt", derivative="cbrt"),
    Op("recip", 1, "fc", np.reciprocal, call="recip", derivative="recip"),
    Op("recip_sqrt", 1, "f", lambda x: type(x)(1) / np.sqrt(x), call="recip_sqrt",
       derivative="recip_sqrt"),
    Op("exp", 1, "fc", np.exp, call="exp", derivative="exp"),
    Op("exp2", 1, "f", np.exp2, call="exp2", derivative="exp2"),
    Op("expm1", 1, "f", np.expm1, call="expm1", derivative="expm1"),
    Op("log", 1, "fc", np.log, call="log", derivative="log"),
    Op("log2", 1, "f", np.log2, call="log2", derivative="log2"),
    Op("log10", 1, "fc", np.log10, call="log10", derivative="log10"),
    Op("log1p", 1, "f", np.log1p, call="log1p", derivative="log1p"),
    Op("sin", 1, "fc", np.sin, call="sin", derivative="sin"),
    Op("cos", 1, "fc", np.cos, call="cos", derivative="cos"),
    Op("tan", 1, "fc", np.tan, call="tan", derivative="tan"),
    Op("arcsin", 1, "f", np.arcsin, call="arcsin", derivative="arcsin"),
    Op("arccos", 1, "f", np.arccos, call="arccos", derivative="arccos"),
    Op("arctan", 1, "f", np.arctan, call="arctan", derivative="arctan"),
    Op("sinh", 1, "fc", np.sinh, call="sinh", derivative="sinh"),
    Op("cosh", 1, "fc", np.cosh, call="cosh", derivative="cosh"),
    Op("tanh", 1, "fc", np.tanh, call="tanh", derivative="tanh"),
    Op("arcsinh", 1, "f", np.arcsinh, call="arcsinh", derivative="arcsinh"),
    Op("arccosh", 1, "f", np.arccosh, call="arccosh", derivative="arccosh"),
    Op("arctanh", 1, "f", np.arctanh, call="arctanh", derivative="arctanh"),
    Op("erf", 1, "f", _through_math(math.erf), call="erf", derivative="erf"),
    Op("erfc", 1, "f", _through_math(math.erfc), call="erfc", derivative="erfc"),
    Op("relu", 1, "iuf", _relu, call="relu", derivative="relu"),
    Op("sat01", 1, "f", _sat01, call="sat01", derivative="sat01"),
    Op("logical_not", 1, "b", np.logical_not, "bool", infix="!", infix_kinds="b"),
    Op("invert", 1, "biu", np.invert, infix="~", infix_kinds="iu", call="invert"),
    Op("real", 1, "c", np.real, "real", call="real"),
    Op("imag", 1, "c", np.imag, "real", call="imag"),
    Op("conj", 1, "c", np.conj, call="conj"),
    Op("angle", 1, "c", np.angle, "real", call="angle"),
    Op("isnan", 1, "fc", np.isnan, "bool", call="isnan"),
    Op("isinf", 1, "fc", np.isinf, "bool", call="isinf"),
    Op("isfinite", 1, "fc", np.isfinite, "bool", call="isfinite"),
    Op("signbit", 1, "f", np.signbit, "bool", call="signbit"),
    # an integer that compares as x does, with NaN above all
    Op("ordinal", 1, "iuf", _ordinal, "unsigned", call="ordinal"),
    # a total order of the numbers as an integer, and its inverse
    Op("rank", 1, "f", _rank, "signed", call="rank"),
    Op("of_rank", 1, "i", _of_rank, "float", call="of_rank"),
    # two operands
    Op("add", 2, "iufc", np.add, infix="+", infix_kinds="iuf", call="add", neutral=0, side="both",
       derivative="add"),
    Op("sub", 2, "iufc", np.subtract, infix="-", infix_kinds="iuf", call="sub", neutral=0,
       side="right", derivative="sub"),
    Op("mul", 2, "iufc", np.multiply, infix="*", infix_kinds="iuf", call="mul", neutral=1,
       side="both", derivative="mul"),
    # a product that is contracted with the sum that it is added to (fma), if there is one
    Op("product", 2, "fc", np.multiply, infix="*", infix_kinds="f", call="mul", neutral=1,
       side="both", derivative="mul"),
    Op("div", 2, "fc", np.divide, infix="/", infix_kinds="f", call="div", neutral=1, side="right",
       derivative="div"),
    Op("floordiv", 2, "iuf", np.floor_divide, call="floordiv", neutral=1, derivative="zero"),
    Op("mod", 2, "iuf", np.remainder, call="mod", derivative="mod"),
    Op("fmod", 2, "iuf", np.fmod, call="fmod", derivative="fmod"),
    Op("pow", 2, "iufc", np.power, call="pow", neutral=1, side="right", derivative="pow"),
    # to an integer constant: from 9 to 64, from -2 to -64
    Op("whole_pow", 2, "f", np.power, call="whole_pow", derivative="pow"),
    # to half of an odd integer constant: from -63.5 to 63.5, but not 0.5
    Op("half_pow", 2, "f", np.power, call="half_pow", derivative="pow"),
    Op("max", 2, "biuf", _max, call="max", neutral=-math.inf, side="both", derivative="max"),
    Op("min", 2, "biuf", _min, call="min", neutral=math.inf, side="both", derivative="min"),
    Op("fmax", 2, "f", _fmax, call="fmax", derivative="fmax"),
    Op("fmin", 2, "f", _fmin, call="fmin", derivative="fmin"),
    Op("arctan2", 2, "f", np.arctan2, call="arctan2", derivative="arctan2"),
    Op("hypot", 2, "f", np.hypot, call="hypot", derivative="hypot"),
    Op("copysign", 2, "f", np.copysign, call="copysign"),
    Op("logaddexp", 2, "f", np.logaddexp, call="logaddexp", derivative="logaddexp"),
    Op("heaviside", 2, "f", np.heaviside, call="heaviside"),
    Op("round_to", 2, "f", _round_to, call="round_to"),
    Op("round_decimal", 2, "f", _round_decimal, call="round_decimal"),  # Python's, exact
    Op("relu_gate", 2, "iuf", _relu_gate, call="relu_gate", neutral=1, derivative="relu_gate"),
    Op("sat01_gate", 2, "f", _sat01_gate, call="sat01_gate", neutral=0.5,
       derivative="sat01_gate"),
    Op("eq", 2, "biufc", np.equal, "bool", infix="==", infix_kinds="biuf", call="eq"),
    Op("ne", 2, "biufc", np.not_equal, "bool", infix="!=", infix_kinds="biuf", call="ne"),
    Op("lt", 2, "biuf", np.less, "bool", infix="<", infix_kinds="biuf"),
    Op("le", 2, "biuf", np.less_equal, "bool", infix="<=", infix_kinds="biuf"),
    Op("gt", 2, "biuf", np.greater, "bool", infix=">", infix_kinds="biuf"),
    Op("ge", 2, "biuf", np.greater_equal, "bool", infix=">=", infix_kinds="biuf"),
    Op("and", 2, "b", np.logical_and, "bool", infix="&&", infix_kinds="b", neutral=True,
       side="both"),
    Op("or", 2, "b", np.logical_or, "bool", infix="||", infix_kinds="b", neutral=False,
       side="both"),
    Op("bitand", 2, "biu", np.bitwise_and, infix="&", infix_kinds="biu", neutral=-1, side="both"),
    Op("bitor", 2, "biu", np.bitwise_or, infix="|", infix_kinds="biu", neutral=0, side="both"),
    Op("bitxor", 2, "biu", np.bitwise_xor, infix="^", infix_kinds="biu", neutral=0, side="both"),
    Op("shl", 2, "iu", np.left_shift, call="shl", neutral=0, side="right"),
    Op("shr", 2, "iu", np.right_shift, call="shr", neutral=0, side="right"),
    Op("complex", 2, "f", _complex, "complex", call="complex"),
    # three operands
    Op("fma", 3, "f", _fma, call="fma", derivative="fma"),
)
# fmt: on
OPS: dict[str, Op] = {row.name: row for row in _ROWS}

# Pair accumulators: they keep the best value and its first position.
ARGMIN = Op("argmin", 2, "biuf", lambda best, value: best if best <= value else value)
ARGMAX = Op("argmax", 2, "biuf", lambda best, value: best if best >= value else value)
PAIR_OPS: dict[str, Op] = {"argmin": ARGMIN, "argmax": ARGMAX}


def neutral_of(op: Op, kind: str, bits: int) -> float | int | bool:
    """Return the neutral element of an accumulator for an element kind and size.

    Integer max and min start from the limits of their type, bool ones from False and True.

    >>> neutral_of(OPS["max"], "i", 8), neutral_of(OPS["min"], "u", 8)
    (-128, 255)
    """
    assert op.neutral is not None, f"{op} is not an accumulator"
    if op.name in ("max", "min") and kind != "f":
        if kind == "b":
            return op.name == "min"
        lo, hi = (0, 2**bits - 1) if kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return lo if op.name == "max" else hi
    if op.name == "bitand":
        return True if kind == "b" else 2**bits - 1 if kind == "u" else -1
    return bool(op.neutral) if kind == "b" else op.neutral
