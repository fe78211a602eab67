"""Complex arithmetic in terms of real and imaginary parts.

The formulas are those of the generated C, operation by operation, so that results are
bit-identical. A part that is used more than once becomes a scalar, stored before the statement that
uses it.

>>> from plusequals.base.diagnostic import NOWHERE
>>> from plusequals.lowering.ir.dtypes import complex64, float32
>>> from plusequals.lowering.ir.printer import print_expr
>>> x, y = (Read(Node(n, name, (), complex64), ()) for n, name in enumerate("xy"))
>>> parts = ComplexSplitter(Fresh(2, 0), frozenset((0, 1)))
>>> for part in parts.pair(Apply(OPS["mul"], (x, y), complex64), NOWHERE):
...     print(print_expr(part))
x_re * y_re - x_im * y_im
x_re * y_im + x_im * y_re
>>> print(print_expr(parts.real(Apply(OPS["abs"], (x,), float32), NOWHERE)))
hypot(x_re, x_im)
"""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Const, Dynamic, Expr, Index, Read, Select, rebuild, walk
from ..ir.fresh import Fresh
from ..ir.loops import Stmt, Store
from ..ir.node import Node
from ..ir.ops import OPS, Op

_COMPLEX_OPS = frozenset("add sub mul product div neg conj complex recip".split())
"""Operations with a complex result that have a formula in parts."""
_REAL_OPS = frozenset("real imag abs angle eq ne isnan isinf isfinite".split())
"""Operations with a real result of complex arguments that have a formula in parts."""


class ComplexPair(NamedTuple):
    """A complex value as its real and imaginary parts."""

    re: Expr
    im: Expr

    def joined(self) -> Expr:
        """Return the complex value."""
        is_short = self.re.dtype is dtypes.float32
        return Apply(OPS["complex"], tuple(self), _COMPLEX64 if is_short else _COMPLEX128)


def add_product(total: ComplexPair, left: ComplexPair, right: ComplexPair) -> ComplexPair:
    """Return a sum to which a product is added by fused multiply-adds: `total + one * two`."""
    re = _apply("fma", left.im, _apply("neg", right.im), _apply("fma", left.re, right.re, total.re))
    im = _apply("fma", left.im, right.re, _apply("fma", left.re, right.im, total.im))
    return ComplexPair(re, im)


_COMPLEX64, _COMPLEX128 = dtypes.complex64, dtypes.complex128


def parts_of(value: Expr) -> ComplexPair:
    """Return the parts of a value by `real` and `imag`, as the generated C extracts them."""
    return ComplexPair(_extract("real", value), _extract("imag", value))


def has_formula(value: Expr) -> bool:
    """Whether a value and all its subexpressions have a formula in parts."""
    for part in walk(value):
        match part:
            case Apply(op) if is_complex(part.dtype) and op.name not in _COMPLEX_OPS:
                return False
            case Apply(op, args) if not is_complex(part.dtype) and (
                op.name not in _REAL_OPS and any(is_complex(operand.dtype) for operand in args)
            ):
                return False
            case Apply(op, (_, second)) if op.name in ("and", "or") and not needs_no_temporaries(
                second
            ):
                return False
            case Select(_, yes, no) if not (needs_no_temporaries(yes) and needs_no_temporaries(no)):
                return False
            case Read(_, index) if has_complex_subscript(index):
                return False
            case _:
                pass
    return True


def needs_no_temporaries(value: Expr) -> bool:
    """Whether no part of a value is used twice, so that its formula needs no temporaries."""
    for part in walk(value):
        match part:
            case Apply(Op(name="mul"), args) if is_complex(part.dtype):
                if not all(isinstance(operand, Read | Const) for operand in args):
                    return False
            case Apply(Op(name="div" | "recip")) | Select() if is_complex(part.dtype):
                return False
            case _:
                pass
    return True


def has_complex_subscript(index: tuple[Index, ...]) -> bool:
    """Whether a subscript is computed from complex numbers."""
    return any(
        isinstance(at, Dynamic) and any(is_complex(part.dtype) for part in walk(at.value))
        for at in index
    )


def source_of_part(value: Expr) -> Read | None:
    """Return the element whose real or imaginary part a value is; None for other values."""
    match value:
        case Apply(op, (Read() as read,)) if op.name in ("real", "imag"):
            return read
        case _:
            return None


def reads_only_parts(value: Expr) -> bool:
    """Whether a value reads only the real or imaginary parts of complex elements; at the top it may
    combine two."""
    complex_parts = [part for part in walk(value) if is_complex(part.dtype)]
    if (
        complex_parts
        and complex_parts[0] is value
        and isinstance(value, Apply)
        and value.op.name == "complex"
    ):
        del complex_parts[0]
    parts = sum(source_of_part(part) is not None for part in walk(value))
    return len(complex_parts) == parts and all(isinstance(part, Read) for part in complex_parts)


def is_complex(dtype: DType) -> bool:
    """Whether a type is complex."""
    return dtype.kind == "c"


@dataclass(slots=True)
class ComplexSplitter:
    """Splits complex scalars of a program into parts, and builds expressions of these."""

    fresh: Fresh
    split: frozenset[int]
    """The ids of the scalars that are split; of others, parts are extracted where they are read."""
    scalars: dict[int, tuple[Node, Node]] = field(default_factory=dict)
    before: list[Stmt] = field(default_factory=list)
    """Statements to insert before the one whose values are asked for."""

    def halves(self, node: Node) -> tuple[Node, Node]:
        """Return the real and imaginary scalars of a complex scalar."""
        if node.id not in self.scalars:
            re, im = (
                self.fresh.scalar(f"{node.label}_{part}", node.dtype.real) for part in ("re", "im")
            )
            self.scalars[node.id] = (re, im)
        return self.scalars[node.id]

    def named(self, value: Expr, label: str, span: Span) -> Expr:
        """Return a value that is used more than once: stored in a scalar unless it is a read or
        constant."""
        if isinstance(value, Read | Const) or source_of_part(value) is not None:
            return value
        return self.stored(value, label, span)

    def stored(self, value: Expr, label: str, span: Span) -> Expr:
        """Return a value stored in a new scalar, so that it stays what it is at this point."""
        node = self.fresh.scalar(label, value.dtype)
        self.before.append(Store(Access(node, ()), value, span))
        return Read(node, (), span)

    def parts(self, value: Expr, span: Span) -> ComplexPair:
        """Return the parts of a value that is used more than once."""
        re, im = self.pair(value, span)
        return ComplexPair(self.named(re, "re", span), self.named(im, "im", span))

    # ----------------------------------------------------------------------------------- values

    def real(self, value: Expr, span: Span) -> Expr:
        """Return a value that is not complex, its complex arguments being split."""
        match value:
            case Apply(op, (of, *_)) if is_complex(of.dtype):
                return self.apply_real(op, [self.pair(arg, span) for arg in value.args])
            case Cast(of, dtype) if is_complex(of.dtype):
                pair = self.pair(of, span)
                if dtype is dtypes.bool_:
                    return _or(Cast(pair.re, dtype), Cast(pair.im, dtype))
                return Cast(pair.re, dtype) if dtype is not pair.re.dtype else pair.re
            case _:
                return rebuild(value, lambda operand: self.real(operand, span), lambda index: index)

    def apply_real(self, op: Op, args: list[ComplexPair]) -> Expr:
        """Return the real result of an operation on complex arguments."""
        re, im = args[0]
        match op.name:
            case "real":
                return re
            case "imag":
                return im
            case "abs":
                return _apply("hypot", re, im)
            case "angle":
                return _apply("arctan2", im, re)
            case "eq":
                return _and(_test("eq", re, args[1].re), _test("eq", im, args[1].im))
            case "ne":
                return _or(_test("ne", re, args[1].re), _test("ne", im, args[1].im))
            case "isfinite":
                return _and(_test("isfinite", re), _test("isfinite", im))
            case name:
                return _or(_test(name, re), _test(name, im))

    def pair(self, value: Expr, span: Span) -> ComplexPair:
        """Return a complex value as its parts."""
        dtype = value.dtype.real
        match value:
            case Const(number):
                number = complex(number)
                return ComplexPair(Const(number.real, dtype), Const(number.imag, dtype))
            case Read(node, ()) if node.id in self.split:
                halves = (Read(half, (), value.span) for half in self.halves(node))
                return ComplexPair(*halves)
            case Select(test, yes, no):
                test = self.named(self.real(test, span), "test", span)
                if_true, if_false = self.pair(yes, span), self.pair(no, span)
                return ComplexPair(
                    Select(test, if_true.re, if_false.re), Select(test, if_true.im, if_false.im)
                )
            case Cast(of) if is_complex(of.dtype):
                re, im = self.pair(of, span)
                return ComplexPair(Cast(re, dtype), Cast(im, dtype))
            case Cast(of):
                of = self.real(of, span)
                return ComplexPair(of if of.dtype is dtype else Cast(of, dtype), Const(0.0, dtype))
            case Apply(op, args):
                return self.applied(op, args, span)
            case _:
                return parts_of(value)

    def applied(self, op: Op, args: tuple[Expr, ...], span: Span) -> ComplexPair:
        """Return the parts of an operation with a complex result."""
        match op.name:
            case "complex":
                re, im = (self.real(arg, span) for arg in args)
                return ComplexPair(re, im)
            case "neg":
                re, im = self.pair(args[0], span)
                return ComplexPair(_apply("neg", re), _apply("neg", im))
            case "conj":
                re, im = self.pair(args[0], span)
                return ComplexPair(re, _apply("neg", im))
            case "add" | "sub" as name:
                left, right = (self.pair(arg, span) for arg in args)
                return ComplexPair(_apply(name, left.re, right.re), _apply(name, left.im, right.im))
            case "mul" | "product":
                left, right = (self.parts(arg, span) for arg in args)
                return _multiply(left, right)
            case "div":
                left, right = (self.parts(arg, span) for arg in args)
                return self.quotient(left, right, span)
            case "recip":
                return self.inverse(self.parts(args[0], span), span)
            case name:
                raise AssertionError(f"`{name}` has no formula of parts")

    def quotient(self, a: ComplexPair, b: ComplexPair, span: Span) -> ComplexPair:
        """Return `a / b` by Smith's algorithm: scaled by the larger part of the divisor.

        (R. L. Smith, Algorithm 116: Complex division, 1962.)
        """
        dtype = a.re.dtype
        wide = _test("ge", _apply("abs", b.re), _apply("abs", b.im))
        zero = _and(_test("eq", b.re, Const(0.0, dtype)), _test("eq", b.im, Const(0.0, dtype)))
        if isinstance(b.re, Const) and isinstance(b.im, Const):
            re_magnitude, im_magnitude = abs(complex(b.re.value)), abs(complex(b.im.value))
            wide, zero = (
                Const(re_magnitude >= im_magnitude, dtypes.bool_),
                Const(re_magnitude == im_magnitude == 0, dtypes.bool_),
            )
        wide, zero = self.named(wide, "wide", span), self.named(zero, "zero", span)
        large = self.named(_select(wide, b.re, b.im), "large", span)
        small = self.named(_select(wide, b.im, b.re), "small", span)
        ratio = self.named(_apply("div", small, large), "ratio", span)
        scale = _apply("div", Const(1.0, dtype), _apply("add", large, _mul(small, ratio)))
        scale = self.named(scale, "scale", span)
        size = _apply("abs", b.re)
        re = _select(
            wide, _apply("add", a.re, _mul(a.im, ratio)), _apply("add", _mul(a.re, ratio), a.im)
        )
        im = _select(
            wide, _apply("sub", a.im, _mul(a.re, ratio)), _apply("sub", _mul(a.im, ratio), a.re)
        )
        return ComplexPair(
            _select(zero, _apply("div", a.re, size), _mul(re, scale)),
            _select(zero, _apply("div", a.im, size), _mul(im, scale)),
        )

    def inverse(self, a: ComplexPair, span: Span) -> ComplexPair:
        """Return `1 / a` by NumPy's formula, which differs from `quotient` in signs of zeros."""
        dtype = a.re.dtype
        wide = self.named(_test("le", _apply("abs", a.im), _apply("abs", a.re)), "wide", span)
        large = self.named(_select(wide, a.re, a.im), "large", span)
        small = self.named(_select(wide, a.im, a.re), "small", span)
        ratio = self.named(_apply("div", small, large), "ratio", span)
        whole = _apply("add", large, _mul(small, ratio))
        whole = self.named(whole, "whole", span)
        unit = Const(1.0, dtype)
        return ComplexPair(
            _apply("div", _select(wide, unit, ratio), whole),
            _apply("div", _apply("neg", _select(wide, ratio, unit)), whole),
        )


def _multiply(a: ComplexPair, b: ComplexPair) -> ComplexPair:
    re = _apply("sub", _mul(a.re, b.re), _mul(a.im, b.im))
    return ComplexPair(re, _apply("add", _mul(a.re, b.im), _mul(a.im, b.re)))


def _select(test: Expr, yes: Expr, no: Expr) -> Expr:
    if isinstance(test, Const):
        return yes if test.value else no
    return Select(test, yes, no)


def _extract(name: str, value: Expr) -> Expr:
    return Apply(OPS[name], (value,), value.dtype.real)


def _apply(name: str, *args: Expr) -> Expr:
    return Apply(OPS[name], args, args[0].dtype)


def _mul(left: Expr, right: Expr) -> Expr:
    return _apply("mul", left, right)


def _test(name: str, *args: Expr) -> Expr:
    return Apply(OPS[name], args, dtypes.bool_)


def _and(left: Expr, right: Expr) -> Expr:
    return Apply(OPS["and"], (left, right), dtypes.bool_)


def _or(left: Expr, right: Expr) -> Expr:
    return Apply(OPS["or"], (left, right), dtypes.bool_)
