"""Handlers of Python's built-in and `math` functions, and of the words of the language."""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.diagnostic import CdTypeError
from ....base.lazy_import import lazy_modules
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Apply, Const, Domain, Select
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, describe
from ...values.builder import error
from ...values.call_site import (
    NONE,
    NOT_CONSTANT,
    Handler,
    Site,
    Word,
    called,
    constant,
    folds,
    is_long_range,
    is_none,
    items_of,
    needs,
    position_of,
    takes,
    too_many_items,
)
from ...values.types import WEAK_BOOL, WEAK_FLOAT, WEAK_INT, both, cast
from ...values.values import Group, Scalar, Static, Value
from . import casts
from . import elementwise as e
from . import python_reductions as p
from .reductions import position_reducer, reducer
from .ufuncs import OP_OF, PYTHON_NAMES

if TYPE_CHECKING:
    from ..library import definitions
    from . import averages, contraction, sort_strategy
else:  # imported at the first use
    averages, definitions, contraction, sort_strategy = lazy_modules(
        __package__, ".averages", "..library.definitions", ".contraction", ".sort_strategy"
    )

OWN_OPS = (
    "erf", "erfc", "relu", "sat01", "recip", "recip_sqrt", "relu_gate", "sat01_gate", "fma",
)  # fmt: skip
"""Operations of `OPS` that are no NumPy function."""

_UFUNC_WORDS: dict[str, np.ufunc] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "arcsinh": np.arcsinh, "arccosh": np.arccosh,
    "arctanh": np.arctanh, "sqrt": np.sqrt, "cbrt": np.cbrt, "sign": np.sign,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "arctan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "pow": np.power,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "conj": np.conjugate,
    "minimum": np.minimum, "maximum": np.maximum, "square": np.square,
}  # fmt: skip
_REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin")
_ELEMENTWISE_WORDS = ("abs", "where", "real", "imag", "angle", "clip")
_HANDLED_ELSEWHERE = ("pad", "clamp", "wrap", "comment", "memory")

DTYPE_WORDS: dict[str, object] = {
    "bool_": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16,
    "bf16": Word("bf16"), "f32": np.float32, "f64": np.float64, "c64": np.complex64,
    "c128": np.complex128,
}  # fmt: skip
"""The words for element types -> the object that each denotes."""


def words() -> dict[str, Value]:
    """Return the words of the language with their values, for names that nothing else defines."""
    table: dict[str, Value] = {name: Static(Word(name)) for name in (*OWN_OPS, *_UFUNC_WORDS)}
    table |= {name: Static(Word(name)) for name in (*_REDUCTIONS, *_HANDLED_ELSEWHERE)}
    table |= {name: Static(Word(name)) for name in _ELEMENTWISE_WORDS}
    table |= {name: Static(value) for name, value in DTYPE_WORDS.items()}
    table |= {"inf": Static(math.inf), "nan": Static(math.nan), "pi": Static(math.pi)}
    return table


def handlers() -> Iterator[tuple[object, Handler]]:
    """Yield each callable object of Python and each word, with its handler."""
    yield from _python_handlers()
    yield from _math_handlers()
    yield from _word_handlers()


def _python_handlers() -> Iterator[tuple[object, Handler]]:
    for name in ("max", "min"):
        python = getattr(builtins, name)
        handler = folds(python, takes(name, p.python_extreme(name)))
        yield python, handler
        yield Word(name), handler
    for name in ("any", "all"):
        handler = takes(name, p.python_truth(name))
        yield getattr(builtins, name), handler
        yield Word(name), handler
    total = folds(builtins.sum, takes("sum", p.python_sum))
    yield builtins.sum, total
    yield Word("sum"), total
    yield len, takes("len", p.python_len)
    yield round, folds(round, takes("round", casts.python_round))
    integer = casts.python_cast("int", WEAK_INT, "x.astype(int)")
    yield int, folds(int, takes("int", integer))
    yield operator.index, folds(operator.index, takes("index", integer))
    floating = casts.python_cast("float", WEAK_FLOAT, "x.astype(float)")
    yield float, folds(float, takes("float", floating))
    yield bool, folds(bool, takes("bool", casts.python_cast("bool", WEAK_BOOL, "x.astype(bool)")))
    yield complex, folds(complex, takes("complex", casts.python_complex))
    yield divmod, folds(divmod, takes("divmod", e.division_pair))
    for function in (repr, str, ascii):
        yield function, folds(function, _refuse_text)
    yield operator.matmul, _lazy_handler("matmul", lambda: contraction.matmul)
    yield slice, takes("slice", _slice)
    yield range, _range
    for kind in ("tuple", "list"):
        yield getattr(builtins, kind), takes(kind, _sequence(kind))


def _refuse_text(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
    """Refuse (CdTypeError CD0126) `repr(x)`, `str(x)` and `f"{x!r}"` of dynamic values."""
    for at in filter(None, map(position_of, args)):
        site.ctx.require_static(at)
    raise error(
        "CD0126", CdTypeError, "the text of a value of the run does not exist in compiled code",
        site.span, helps=('write the name and the value: `f"x = {x}"`',),
    )  # fmt: skip


def _lazy_handler(name: str, body: Callable[[], Callable[..., Value]]) -> Handler:
    """Return the handler `takes` of a body that is imported at the first call."""
    return lambda site, args, keywords: takes(name, body())(site, args, keywords)


def _slice(site: Site, *ends: Value) -> Value:
    """Return a slice object; integer parameters among its ends become static."""
    if not 1 <= len(ends) <= 3:
        text = f"`slice` takes one to three arguments, not {len(ends)}"
        raise error("CD0440", CdTypeError, text, site.span, helps=("write `slice(1, 3)`",))
    constants = [constant(end) for end in ends]
    for end, value in zip(ends, constants, strict=True):
        if value is NOT_CONSTANT:
            at = position_of(end)
            if at is not None:
                site.ctx.require_static(at)
            raise needs(site, "an end of `slice`", end, "write the slice in place: `x[a:b]`")
    return Static(slice(*constants))


def _range(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
    """Return a range as a value, not as a loop's header; integer parameters in it become static."""
    constants = [constant(end) for end in args]
    for end, value in zip(args, constants, strict=True):
        if value is NOT_CONSTANT:
            if (at := position_of(end)) is not None:
                site.ctx.require_static(at)
            raise needs(site, "an end of this `range`", end, "loop over it where it is written")
    ends: Any = constants
    try:
        return Static(range(*ends, **keywords))
    except (TypeError, ValueError) as problem:
        raise error("CD0424", CdTypeError, f"{problem}", site.span) from None


def _sequence(kind: str) -> Callable[..., Value]:
    def body(site: Site, iterable: Value = Static(())) -> Value:
        items = items_of(iterable)
        if items is None:
            value = constant(iterable)
            if value is NOT_CONSTANT or not isinstance(value, range | str):
                raise needs(site, f"what `{kind}` is made of", iterable)
            if is_long_range(value):
                raise too_many_items(iterable, site.span)
            items = tuple(Static(item) for item in value)
        return Group(items, kind)

    return body


def _math_handlers() -> Iterator[tuple[object, Handler]]:
    for function, handler in _dynamic_handlers():
        yield function, folds(function, _convert_operands(function, handler))
    for name in ("floor", "ceil", "trunc"):
        function = getattr(math, name)
        yield function, folds(function, takes(name, casts.to_integer(name)))
    yield math.prod, folds(math.prod, takes("prod", p.python_product))
    power_handler = e.ufunc_handler(np.power, python=True)
    yield pow, folds(pow, takes("pow", partial(_power, power_handler)))
    for name in ("gcd", "lcm", "isqrt", "factorial", "comb", "perm", "gamma", "lgamma", "dist",
                 "fsum", "remainder", "ldexp", "frexp", "modf", "isclose", "ulp"):  # fmt: skip
        function = getattr(math, name)
        yield function, folds(function, _require_constants(f"math.{name}"))
    for ufunc in (np.gcd, np.lcm):
        yield ufunc, folds(ufunc, _require_constants(f"np.{ufunc.__name__}"))


def _power(plain: Handler, site: Site, base: Value, exp: Value, mod: Value = NONE) -> Value:
    """Return Python's `pow`; with a modulus, modular exponentiation by repeated squaring.

    CdTypeError CD0404 where one of three arguments is no Python integer, CdValueError CD0442 where
    the modulus is 0, or the base of a negative power has no inverse.
    """
    if is_none(mod):
        return plain(site, (base, exp), {})
    args = base, exp, mod
    if not all(isinstance(arg, Scalar | Static) for arg in args):
        numbers = []
    else:
        numbers = [as_scalar(arg, site.span) for arg in args]
    if not numbers or any(n.kind not in (WEAK_INT, WEAK_BOOL) for n in numbers):
        shown_args = ", ".join(describe(arg) for arg in args)
        raise error(
            "CD0404", CdTypeError, f"`pow` with a modulus takes three Python integers (here: "
            f"{shown_args})", site.span, helps=("convert them: `pow(int(a), int(b), int(m))`",),
        )  # fmt: skip
    residue = as_scalar(sort_strategy.inlined(site, definitions.POWER_MODULO, *args), site.span)
    modulus, zero = numbers[2].expr, Const(0, dtypes.int64)
    shown = tuple(cast(n.expr, dtypes.int64) for n in numbers)
    text = "pow({0}, {1}, {2}) is not defined: the modulus is 0, or the base has no inverse"
    fault = Fault("CD0442", "CdValueError", text)
    is_defined = Apply(OPS["ge"], (residue.expr, zero), dtypes.bool_)
    site.ctx.check(is_defined, fault, shown, site.span, Domain(site.ctx.domain))
    differs_in_sign = both(
        Apply(OPS["lt"], (cast(modulus, dtypes.int64), zero), dtypes.bool_),
        Apply(OPS["gt"], (residue.expr, zero), dtypes.bool_),
    )
    assert differs_in_sign is not None, "two tests"
    signed = Apply(OPS["add"], (residue.expr, shown[2]), dtypes.int64)
    return Scalar(Select(differs_in_sign, signed, residue.expr), WEAK_INT)


def _dynamic_handlers() -> Iterator[tuple[Any, Handler]]:
    """Yield Python's functions that accept dynamic operands, with their handlers."""
    for function, ufunc in PYTHON_NAMES.items():
        yield function, e.ufunc_handler(ufunc, python=True)
    yield math.log, takes("log", e.logarithm)
    yield cmath.log, takes("log", e.logarithm)
    yield cmath.phase, takes("phase", lambda site, z: e.angle(site, z))
    for name in ("erf", "erfc"):
        yield getattr(math, name), e.word_handler(name)
    if hasattr(math, "fma"):
        yield math.fma, e.word_handler("fma")


def _convert_operands(function: Any, handler: Handler) -> Handler:
    """Return the handler of a function; `math` and `cmath` first convert to Python numbers."""
    to = {"math": casts.to_float, "cmath": casts.to_complex}.get(function.__module__)
    name = f"{function.__module__}.{function.__name__}"

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        return handler(site, args if to is None else to(site, args, name), keywords)

    return handle


def _require_constants(name: str) -> Handler:
    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        operands = [*args, *keywords.values()]
        dynamic = [value for value in operands if constant(value) is NOT_CONSTANT]
        for at in filter(None, map(position_of, dynamic)):
            site.ctx.require_static(at)
        hint = "compute it outside, and pass the result in"
        raise needs(site, f"each argument of `{name}`", (*dynamic, NONE)[0], hint)

    return handle


def _word_handlers() -> Iterator[tuple[object, Handler]]:
    for name in OWN_OPS:
        yield Word(name), e.word_handler(name)
    for name in ("ordinal", "rank", "of_rank"):  # used by the definitions of the library
        yield Word(name), e.word_handler(name)
    for name, ufunc in _UFUNC_WORDS.items():
        yield Word(name), _folding_handler(ufunc)
    yield Word("abs"), _folding_handler(np.absolute)
    yield Word("where"), takes("where", e.where)
    yield Word("clip"), takes("clip", e.clip)
    yield Word("real"), takes("real", e.real)
    yield Word("imag"), takes("imag", e.imag)
    yield Word("angle"), takes("angle", e.angle)
    yield Word("prod"), takes("prod", reducer("prod"))
    yield Word("mean"), _lazy_handler("mean", lambda: averages.mean)
    for name in ("argmax", "argmin"):
        yield Word(name), takes(name, position_reducer(name))
    for dtype in dtypes.ALL:
        yield Word(dtype.short), casts.cast_handler(dtype)
        yield dtype, casts.cast_handler(dtype)


def _folding_handler(ufunc: np.ufunc) -> Handler:
    """Return the handler of a ufunc as a word: static Python numbers fold to Python numbers."""
    general = e.ufunc_handler(ufunc, python=True)

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        plain = [constant(value) for value in args]
        if not keywords and args and all(type(x) in (int, float, complex) for x in plain):
            result = called(site, ufunc, plain)
            if isinstance(result, Static) and isinstance(result.value, np.generic):
                return Static(result.value.item())
        return general(site, args, keywords)

    return handle


_REDUCTION_OBJECTS: tuple[tuple[object, str], ...] = (
    (builtins.sum, "sum"), (builtins.max, "max"), (builtins.min, "min"), (builtins.any, "any"),
    (builtins.all, "all"), (math.prod, "prod"), (np.sum, "sum"), (np.prod, "prod"),
    (np.max, "max"), (np.min, "min"), (np.amax, "max"), (np.amin, "min"), (np.any, "any"),
    (np.all, "all"), (np.mean, "mean"), (np.argmax, "argmax"), (np.argmin, "argmin"),
    *((Word(name), name) for name in _REDUCTIONS),
)  # fmt: skip
REDUCTIONS: dict[object, str] = dict(_REDUCTION_OBJECTS)
"""The objects that reduce over index variables -> the name of the reduction."""

ELEMENTWISE: dict[object, str] = {
    **{ufunc: name for ufunc, name in OP_OF.items() if name in ("add", "mul", "sub", "div", "max",
       "min", "and", "or", "bitand", "bitor", "bitxor", "shl", "shr", "floordiv", "mod", "pow")},
    **{function: OP_OF[ufunc] for function, ufunc in PYTHON_NAMES.items()},
    builtins.pow: "pow", builtins.max: "max", builtins.min: "min",
    Word("max"): "max", Word("min"): "min",
    Word("maximum"): "max", Word("minimum"): "min", Word("pow"): "pow",
    **{Word(name): name for name in OWN_OPS},
}  # fmt: skip
"""The objects whose call `f(t[...], e)` is an accumulation -> the name of its operation."""
