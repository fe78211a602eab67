"""Call sites of NumPy functions: argument binding, and conversion of arguments to static values.

A handler is written as a Python function of values with NumPy's parameter names; `takes` binds a
call to it, so that a wrong argument is refused in NumPy's words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdIndexError, CdTypeError, CdValueError, Span, class_of
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Domain, Position
from ...lowering.ir.indexing import Affine, const, floordiv, maximum, multiply, var
from .arrays import as_array, as_scalar, describe
from .builder import Context, compare, error
from .constant_tables import require_static_reads
from .fix_hints import WAYS_OUT
from .folding import fold
from .stores import assign
from .types import WEAK_FLOAT, cast, kind_of_number
from .values import Array, Group, Listed, Masked, Scalar, Static, Value


@dataclass(frozen=True, slots=True)
class Site:
    """A call site: the IR builder, and the location in the source."""

    ctx: Context
    span: Span


Handler = Callable[[Site, tuple[Value, ...], dict[str, Value]], Value]
Body = Callable[..., Value]

LIBRARY = "<library>"
"""Name of the source from which library functions are parsed."""
NONE = Static(None)
NO = Static(False)
YES = Static(True)
ZERO = Static(0)
ONE = Static(1)


def is_none(value: Value) -> bool:
    """Whether a value is None (by identity: a NumPy dtype equals None)."""
    return isinstance(value, Static) and value.value is None


def is_numpy_scalar(value: Value) -> bool:
    """Whether a value is a scalar of NumPy: no number of Python's, and no array without axes."""
    if isinstance(value, Static):
        return isinstance(value.value, np.generic)
    return isinstance(value, Scalar) and not value.kind.weak


@dataclass(frozen=True, slots=True)
class Word:
    """A keyword of the language for which no Python or NumPy object exists."""

    name: str

    def __repr__(self) -> str:
        return self.name


def takes(name: str, body: Body) -> Handler:
    """Return a handler that binds its arguments to the parameters of `body`.

    `np._NoValue`, by which functions of NumPy pass on what they were not given, is no argument. The
    handler raises CdTypeError CD0440 where the arguments do not fit.
    """

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        signature = _signature(body)
        try:
            bound = signature.bind(site, *args, **keywords)
        except TypeError as problem:
            parameters = [p for p in signature.parameters if p != "site"]
            raise error(
                "CD0440", CdTypeError, f"`{name}`: {problem}", site.span,
                helps=(f"supported here: {name}({', '.join(parameters)})",),
            ) from None  # fmt: skip
        for parameter in [name for name, given in bound.arguments.items() if _is_missing(given)]:
            del bound.arguments[parameter]
        return body(*bound.args, **bound.kwargs)

    return handle


def _is_missing(value: object) -> bool:
    return isinstance(value, Static) and value.value is np._NoValue


@cache
def _signature(body: Body) -> inspect.Signature:
    """Return the signature of a handler's body, computed lazily: there are many handlers."""
    return inspect.signature(body)


Into = Callable[[Site, Array, tuple[Value, ...], dict[str, Value]], Value]
"""A call that writes an array, and its arguments -> what it returns."""


def with_out(handler: Handler, position: int | None = None, into: Into | None = None) -> Handler:
    """Return the handler with NumPy's `out=`, also as the positional argument at `position`.

    It is written by `into`, by default as the target of an assignment.
    """

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        keywords = dict(keywords)
        out = keywords.pop("out", NONE)
        if position is not None and len(args) > position:
            out, args = args[position], args[:position] + args[position + 1 :]
        if isinstance(out, Group) and len(out.items) == 1:
            out = out.items[0]
        if is_none(out):
            return handler(site, args, keywords)
        if into is None:
            return stored(site, out, handler(site, args, keywords))
        if not isinstance(out, Array):
            raise _no_output(site, out)
        return into(site, out, args, keywords)

    return handle


def _no_output(site: Site, out: Value) -> CdError:
    text = f"`out` has to be an array, and is {describe(out)}"
    return error("CD0441", CdTypeError, text, site.span)


def stored(site: Site, out: Value, result: Value) -> Value:
    """Store a result in `out` and return that. CdTypeError CD0441 where it is no array."""
    if not isinstance(out, Array | Masked):
        raise _no_output(site, out)
    if isinstance(out, Masked) and not out.held:
        text = "this selection is a copy; writing it would not write the original"
        helps = ("assign to it: `x[mask] = ...`",)
        raise error("CD0462", CdValueError, text, site.span, helps=helps)
    assign(site.ctx, out, result, site.span)
    return out


MAX_ITEMS = 1 << 16
"""The most items of a value that is unpacked."""
MAX_FOLDED = 10**7
"""The most numbers of a range that a function goes through when compiling: about a second."""


def is_long_range(value: object, most: int = MAX_ITEMS) -> bool:
    """Whether a constant is a range of more than so many numbers."""
    return isinstance(value, range) and bool(value[most:])


def too_many_items(value: Value, span: Span) -> CdError:
    """Return CdTypeError CD0406 for a value with more items than are written out."""
    what = "a range" if isinstance(value, Static) else describe(value)
    text = f"{what} has more items than can be written out, or gone through when compiling"
    return error("CD0406", CdTypeError, text, span, helps=("loop over it: `for v in x:`",))


def folds(function: Callable[..., Any], handler: Handler) -> Handler:
    """Return the handler with constant folding: calls on constants run `function` itself."""

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        constants = [constant(value) for value in args]
        keyword_constants = {name: constant(value) for name, value in keywords.items()}
        for value, item in zip(args, constants, strict=True):
            if is_long_range(item, MAX_FOLDED):
                raise too_many_items(value, site.span)
        if any(item is NOT_CONSTANT for item in (*constants, *keyword_constants.values())):
            return handler(site, args, keywords)
        result = called(site, function, constants, keyword_constants)
        return handler(site, args, keywords) if result is None else result

    return handle


def called(
    site: Site,
    function: Callable[..., Any],
    args: Sequence[object],
    keywords: Mapping[str, object] | None = None,
) -> Value | None:
    """Return the folded value of a call on constants, None unless numbers, strings, groups of them.

    CD0442, of the class of the exception, where the call raises.
    """
    if function in (int, float):  # NumPy's complex numbers: the real part is taken, with a warning
        args = [arg.real if isinstance(arg, np.complexfloating) else arg for arg in args]
    try:
        with np.errstate(all="ignore"):
            result = fold(function, args, keywords)
    except Warning:  # under a filter that raises warnings: computed at run time
        return None
    except Exception as problem:
        name = getattr(function, "__name__", "the call")
        shown = ", ".join(repr(arg) for arg in args)
        text = f"{name}({shown}) is not defined: {problem}"
        raise error("CD0442", class_of(problem), text, site.span) from None
    return from_constant(result)


def from_constant(result: object) -> Value | None:
    """Return a Python object as a value, None unless a number, string, or tuple or list of them."""
    if isinstance(result, tuple | list):
        items = [from_constant(item) for item in result]
        if any(item is None for item in items):
            return None
        return Group(tuple(item for item in items if item is not None), type(result).__name__)
    if isinstance(result, str | np.dtype) or kind_of_number(result) is not None:
        return Static(result)
    return None


NOT_CONSTANT = Word("a value not known while compiling")


def constant(value: Value) -> object:
    """Return the Python object of a static value, else `NOT_CONSTANT`."""
    match value:
        case Static(inner):
            return inner
        case Scalar(Position(index), kind) if kind.weak and index.constant is not None:
            return index.constant
        case Group(items, kind):
            inner = [constant(item) for item in items]
            if any(item is NOT_CONSTANT for item in inner):
                return NOT_CONSTANT
            return tuple(inner) if kind == "tuple" else inner
        case _:
            return NOT_CONSTANT


_STATIC_HINT = "pass it as a plain Python number, or write it in the source"


def needs(site: Site, what: str, value: Value, fix: str = _STATIC_HINT) -> Exception:
    """Return CdTypeError CD0443: an argument has to be static."""
    return error(
        "CD0443", CdTypeError,
        f"{what} has to be known while compiling, and is {describe(value)}", site.span,
        helps=(fix,),
    )  # fmt: skip


def static_int(site: Site, value: Value, what: str) -> int:
    """Return a static integer; restarts elaboration (NeedStatic, NeedUnroll) if that makes it one.

    CdTypeError CD0443 where it is not static, CD0444 where it is no integer.
    """
    literal = constant(value)
    if isinstance(literal, int | np.integer) and not isinstance(literal, bool):
        return int(literal)
    at = position_of(value)
    if at is not None:
        if at.constant is not None:
            return at.constant
        site.ctx.require_static(at)
    if literal is not NOT_CONSTANT:
        text = f"{what} has to be an integer, and is {describe(value)}"
        raise error("CD0444", CdTypeError, text, site.span, helps=("write a whole number: `0`",))
    raise needs(site, what, value)


def integer_of(site: Site, value: Value, what: str) -> Affine:
    """Return an integer as an index expression: a constant while it came with few values, of the
    run then. Loop variables are static: their loops are unrolled.

    CdTypeError CD0443 for what is no integer known before, CD0444 for other static numbers.
    """
    at = position_of(value)
    if at is None or at.constant is not None:
        return const(static_int(site, value, what))
    site.ctx.prefer_static(at)
    site.ctx.require_unrolled((at,))
    return at


def real_of(site: Site, value: Value, what: str) -> Static | Scalar:
    """Return a real number as a Python float, of the run where it is a float of the run, or an
    integer that came with many values.

    CdTypeError CD0443 for what is no number, CD0444 for other static ones.
    """
    if isinstance(value, Scalar) and value.kind.dtype.kind == "f":
        return Scalar(cast(value.expr, dtypes.float64), WEAK_FLOAT)
    at = position_of(value)
    if at is None or at.constant is not None:
        return Static(static_number(site, value, what))
    number = Position(integer_of(site, value, what))
    return Scalar(cast(number, dtypes.float64), WEAK_FLOAT)


def static_bool(site: Site, value: Value, what: str) -> bool:
    """Return a static flag; an integer parameter is made static.

    CdTypeError CD0443 where it is not.
    """
    literal = constant(value)
    if literal is NOT_CONSTANT:
        if (at := position_of(value)) is not None:
            site.ctx.require_static(at)
        raise needs(site, what, value)
    return bool(literal)


def static_number(site: Site, value: Value, what: str) -> float:
    """Return a static real number. CdTypeError CD0443 where it is not static."""
    literal = constant(value)
    if isinstance(literal, int | float | np.integer | np.floating):
        return float(literal)
    return float(static_int(site, value, what))


def position_of(value: Value) -> Affine | None:
    """Return the affine index expression of an integer value, None where it has none."""
    match value:
        case Static(int() | np.integer() as number) if not isinstance(number, bool):
            return const(int(number))
        case Scalar(Position(index), _):
            return index
        case Array(_, (), Position(index), _):
            return index
        case _:
            return None


def extent_of(site: Site, value: Value, what: str) -> Affine:
    """Return a size: a constant, or affine in loop variables and integers read once.

    Integer parameters in it become static. CdTypeError CD0444 where it is no integer,
    CdValueError CD0445 where it is negative.
    """
    at = position_of(value)
    if at is None:
        at = _read_once(site, value, what)
    site.ctx.prefer_static(at)
    if at.constant is not None and at.constant < 0:
        raise error("CD0445", CdValueError, f"{what} is negative: {at.constant}", site.span)
    if not site.ctx.assumptions.nonnegative(at):
        fault = Fault("CD0445", "CdValueError", f"{what} is negative: {{0}}", WAYS_OUT["CD0445"])
        test = compare("le", const(0), at)
        site.ctx.check(test, fault, (Position(at),), site.span, Domain())
    return at


MAX_ELEMENTS = 2**46
"""More elements than any memory holds: products of larger numbers could exceed 64 bits."""


def multiplied(site: Site, extent: Affine, count: Affine) -> Affine:
    """Return `extent * count` of sizes; CdValueError CD0461 where it has more than 2**46."""
    product = multiply(extent, count)
    if product.constant is None and not site.ctx.assumptions.nonnegative(
        const(MAX_ELEMENTS) - product
    ):
        most = floordiv(const(MAX_ELEMENTS), maximum(extent, const(1)))
        _require_at_most(site, count, most)
        if not site.ctx.pointwise:
            site.ctx.guarded.add(Position(product))
    return product


def bounded(site: Site, size: Affine) -> Affine:
    """Return a size; CdValueError CD0461 where it is more than 2**46."""
    if size.constant is None and not site.ctx.assumptions.nonnegative(const(MAX_ELEMENTS) - size):
        _require_at_most(site, size, const(MAX_ELEMENTS))
    return size


def _require_at_most(site: Site, size: Affine, most: Affine) -> None:
    text = "an array of so many elements does not fit in memory: a size of {0}"
    fault = Fault("CD0461", "CdValueError", text, ("choose smaller sizes",))
    site.ctx.check(compare("le", size, most), fault, (Position(size),), site.span, Domain())


def _read_once(site: Site, value: Value, what: str) -> Affine:
    scalar = as_scalar(value, site.span, what)
    if scalar.kind.dtype.kind not in "iu":
        raise error(
            "CD0444", CdTypeError, f"{what} has to be an integer, and is {describe(value)}",
            site.span, helps=("convert it: `int(...)`",),
        )  # fmt: skip
    require_static_reads(site.ctx, scalar.expr)  # a size that varies by iteration
    return var(site.ctx.let("n", cast(scalar.expr, dtypes.int64), site.span))


def index_in(site: Site, value: Value, what: str) -> Affine:
    """Return an integer as an affine index expression; a data-dependent one is read once."""
    at = position_of(value)
    return _read_once(site, value, what) if at is None else at


def items_of(value: Value) -> tuple[Value, ...] | None:
    """Return the items of a tuple or list, None for anything else."""
    match value:
        case Group(items, _):
            return items
        case Static(tuple() | list() as inner):
            return tuple(Static(item) for item in inner)
        case _:
            return None


def is_list(value: Value) -> bool:
    """Whether a value is a list or tuple in Python: a display, a static one, or an argument, or a
    part of one, that is represented by an array, or a comprehension with a test."""
    array = value.array if isinstance(value, Masked) else value
    if isinstance(array, Array):
        return array.listed is not Listed.NO
    return items_of(value) is not None


def static_shape(site: Site, value: Value) -> tuple[Affine, ...]:
    """Return a shape given as an integer, tuple or list, one extent per axis; see `extent_of`."""
    items = items_of(value)
    if items is None:
        items = (value,)
    return tuple(extent_of(site, item, "a size") for item in items)


def axis_of(site: Site, value: Value, rank: int) -> int:
    """Return an axis, normalized to `0 <= axis < rank`. CdIndexError CD0446 if out of range."""
    axis = static_int(site, value, "an axis")
    if not -rank <= axis < rank:
        raise error(
            "CD0446", CdIndexError,
            f"axis {axis} is out of bounds for an array of rank {rank}",
            site.span,
        )  # fmt: skip
    return axis % rank


def axes_in_order(site: Site, value: Value, rank: int) -> tuple[int, ...]:
    """Return the axes given by None (all), an integer or a tuple, normalized, in that order.

    CdValueError CD0446 where one is given twice.
    """
    if is_none(value):
        return tuple(range(rank))
    items = items_of(value)
    axes = [axis_of(site, item, rank) for item in (items if items is not None else (value,))]
    repeated = next((axis for axis in axes if axes.count(axis) > 1), None)
    if repeated is not None:
        raise error("CD0446", CdValueError, f"axis {repeated} is given twice", site.span,
                    helps=("name each axis once",))  # fmt: skip
    return tuple(axes)


def axes_of(site: Site, value: Value, rank: int) -> tuple[int, ...]:
    """Return the axes as of `axes_in_order`, in ascending order."""
    return tuple(sorted(axes_in_order(site, value, rank)))


def two_axes_of(site: Site, first: Value, second: Value, rank: int) -> tuple[int, int]:
    """Return two axes that differ, normalized. CdValueError CD0446 where they are equal."""
    one, other = axes_in_order(site, Group((first, second)), rank)
    return one, other


_BUILTIN = {
    bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128,
}  # fmt: skip


def dtype_object(value: object) -> DType | None:
    """Return the element type that an object names (`np.float32`, `"f4"`, `float`), else None."""
    match value:
        case DType():
            return value
        case Word(name) if name in dtypes.BY_SHORT:
            return dtypes.BY_SHORT[name]
        case str(name):  # as NumPy reads it: "i8" has eight bytes, the name i8 eight bits
            return _native(name) if _is_numpy_dtype(name) else dtypes.BY_SHORT.get(name)
        case np.dtype():
            return _native(value)
        case type() if value in _BUILTIN:
            return _BUILTIN[value]
        case type() if issubclass(value, np.generic):
            return dtypes.from_numpy(value)
        case _:
            return None


def _native(value: str | np.dtype[Any]) -> DType | None:
    """Return an element type, None for one in the byte order of other machines."""
    return dtypes.from_numpy(value) if np.dtype(value).isnative else None


def _is_numpy_dtype(name: str) -> bool:
    """Whether NumPy has an element type of that name."""
    try:
        np.dtype(name)
    except (TypeError, SyntaxError):  # it reads "3,i4" as a structure
        return False
    return True


def named_dtype(site: Site, value: Value) -> DType | None:
    """Return the element type that a value names, also that of a byte-swapped argument, or None."""
    given = value.value if isinstance(value, Static) else None
    if isinstance(given, np.dtype) and given in site.ctx.swapped.values():
        return dtypes.from_numpy(given)  # arrays that a function creates are native
    return dtype_object(given)


def dtype_of(site: Site, value: Value) -> DType | None:
    """Return the element type given as `dtype=`, None for None. CdTypeError CD0447 for others."""
    if is_none(value):
        return None
    dtype = named_dtype(site, value)
    if dtype is None:
        named = constant(value)
        is_swapped = isinstance(named, np.dtype) and not named.isnative
        is_swapped |= isinstance(named, str) and named[:1] in ("<", ">")
        helps = ("new arrays are in this machine's byte order: convert the result",)
        raise error(
            "CD0447", CdTypeError, f"{describe(value)} is not an element type", site.span,
            helps=helps if is_swapped else (),
        )  # fmt: skip
    return dtype


def array_of(site: Site, value: Value) -> Array:
    """Return a value as an array; see `arrays.as_array`. Static sequences are stacked."""
    items = items_of(value)
    if isinstance(value, Static) and items is not None:
        value = Group(items, "list")
    return as_array(site.ctx, value, site.span)


def text_of(site: Site, value: Value, what: str, allowed: Sequence[str]) -> str:
    """Return a string argument that is one of those allowed. CdValueError CD0448."""
    text = constant(value)
    if not isinstance(text, str) or text not in allowed:
        raise error(
            "CD0448", CdValueError, f"{what} has to be one of {', '.join(map(repr, allowed))}",
            site.span,
        )  # fmt: skip
    return text
