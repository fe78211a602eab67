"""Composite functions of NumPy, defined by source text in the language and inlined at the call.

A handler checks the arguments and chooses the text; the text itself calls simpler functions.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from textwrap import indent

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, CdValueError
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Apply, Const, Domain, Position
from ...lowering.ir.indexing import const, multiply
from ...lowering.ir.ops import OPS
from ..values.arrays import as_scalar, describe
from ..values.bounds_messages import index_fault
from ..values.builder import error
from ..values.call_site import (
    NO,
    NONE,
    Site,
    array_of,
    constant,
    extent_of,
    index_in,
    is_none,
    items_of,
    text_of,
)
from ..values.values import Array, Group, Scalar, Static, Value
from .primitives.creation import array, copy
from .primitives.differences import diff
from .primitives.elementwise import converted
from .primitives.joining import concatenate
from .primitives.python_reductions import as_number
from .primitives.reductions import require_ordered, require_subtracted
from .primitives.shaping import elements, reshape_method
from .primitives.sort_strategy import inlined
from .primitives.ufuncs import strong_of

_LINEAR_SEARCH_LIMIT = 16
"""Up to so many test values `isin` is a linear search: a vectorized comparison with each."""

_TABLE_SIZE = 1 << 16
"""Length of the lookup table of `isin`: integers of a range below it are looked up by index."""

_ISIN = f"""
def isin(element, test_elements, invert):
    tests = np.ravel(test_elements)
    values = np.asarray(element)
    found = np.zeros(values.shape, np.bool_)
    if tests.size <= {_LINEAR_SEARCH_LIMIT}:
        for test in tests:
            found |= values == test
    else:
{{search}}
    if invert:
        return np.asarray(~found)
    return found
"""
_BINARY_SEARCH = """\
known = np.sort(tests)
at = np.minimum(np.searchsorted(known, {wanted}), tests.size - 1)
found[...] = known[at] == values
"""
_INTEGER_SEARCH = _BINARY_SEARCH.format(wanted="values.astype(tests.dtype)")
"""Binary search of integers. A value outside the range of the tests' type is no member, although
the conversion wraps it around: the comparison is with the value before the conversion."""
_TABLE_SEARCH = f"""\
low = np.int64(tests.min())
high = np.int64(tests.max())
width = high - low
if width >= 0 and width < {_TABLE_SIZE}:
    marked = np.zeros({_TABLE_SIZE}, np.bool_)
    for k in range(tests.size):
        marked[clamp(np.int64(tests[k]) - low)] = True
    wide = np.int64(values)
    inside = (wide >= low) & (wide <= high)
    found[...] = inside & marked[np.uint16(wide - low)]
else:
{indent(_INTEGER_SEARCH, "    ")}"""
ISIN, ISIN_WHOLE, ISIN_MARKED = (
    _ISIN.format(search=indent(search, " " * 8).rstrip())
    for search in (_BINARY_SEARCH.format(wanted="values"), _INTEGER_SEARCH, _TABLE_SEARCH)
)
"""`isin` where an operand is a float, where both are integers, and where both fit int64."""

WIDTH = """
def width(tests):
    least, most = np.uint64(0), np.uint64(0)
    if tests.size > 0:
        least, most = np.uint64(tests.min()), np.uint64(tests.max())
    return most - least
"""
"""Maximum minus minimum of integers as uint64, exact modulo 2**64 for signed ones, too."""

EDIFF = """
def ediff1d(steps, to_end=None, to_begin=None):
    if to_begin is not None:
        steps = np.concatenate((np.ravel(to_begin), steps))
    if to_end is not None:
        steps = np.concatenate((steps, np.ravel(to_end)))
    return steps
"""

NAN_SUMS = """
def nancumsum(a, axis=None, dtype=None):
    return np.cumsum(np.where(np.isnan(a), 0, a), axis, dtype)
"""

NAN_PRODUCTS = """
def nancumprod(a, axis=None, dtype=None):
    return np.cumprod(np.where(np.isnan(a), 1, a), axis, dtype)
"""

UNWRAP = """
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    p = np.moveaxis(np.asarray(p), axis, -1)
    least = period / 2 if discont is None else discont
    steps = np.diff(p)
    whole = np.mod(steps + period / 2, period) - period / 2
    whole = np.where((whole == -period / 2) & (steps > 0), period / 2, whole)
    turns = np.where(np.abs(steps) < least, 0, whole - steps)
    out = np.copy(p + 0 * period)
    out[..., 1:] = p[..., 1:] + np.cumsum(turns, -1)
    return np.moveaxis(out, -1, axis)
"""

UNWRAP_INTEGERS = """
def unwrap(p, steps, discont, axis, period):
    p, steps = np.moveaxis(np.asarray(p), axis, -1), np.moveaxis(steps, axis, -1)
    least = period / 2 if discont is None else discont
    half, low = period // 2, -(period // 2)
    whole = np.mod(steps - low, period) + low
    whole = np.where((whole == low) & (steps > 0) & (period % 2 == 0), half, whole)
    turns = np.where(np.abs(steps) < least, 0, whole - steps)
    out = (p + 0 * period).copy()
    out[..., 1:] = p[..., 1:] + np.cumsum(turns, -1)
    return np.moveaxis(out, -1, axis)
"""
"""`unwrap` of integers with an integer period: no half of an odd one, and an integer result."""

VANDER = """
def vander(x, N, increasing):
    powers = np.arange(len(x) if N is None else N)
    return np.asarray(x)[:, None] ** (powers if increasing else powers[::-1])
"""

_WINDOW = """
def {name}(M):
    n, last = np.arange(1 - M, M, 2), max(M - 1, 1)
    return np.where(M == 1, 1.0, {value})
"""
_HALF_TURN = "np.pi * n / last"
WINDOWS = {
    name: _WINDOW.format(name=name, value=value.format(at=_HALF_TURN))
    for name, value in {
        "hanning": "0.5 + 0.5 * np.cos({at})",
        "hamming": "0.54 + 0.46 * np.cos({at})",
        "blackman": "0.42 + 0.5 * np.cos({at}) + 0.08 * np.cos(2.0 * {at})",
        "bartlett": "np.where(n <= 0, 1 + n / last, 1 - n / last)",
    }.items()
}

LEXSORT = """
def lexsort(keys):
    order = np.argsort(keys[0])
    for key in keys[1:]:
        order = order[np.argsort(key[order])]
    return order
"""

DIAGONAL = """
def diag_indices(n, ndim=2):
    return tuple([np.arange(n) for _ in range(ndim)])
"""

UNRAVEL = """
def unravel_index(indices, shape):
    rest, places = indices, ()
    for size in shape[::-1]:
        places = (rest % size, *places)
        rest = rest // size
    return places
"""

UNRAVEL_STRIDED = """
def unravel_index(indices, shape):
    rest, places = indices, ()
    for size in shape[::-1]:
        places = (rest % size, *places)
        rest = rest // size
    table = np.stack(places, -1)
    return tuple([table[..., n] for n in range(len(places))])
"""
"""In NumPy the results are columns of one array: not contiguous, which matters where layouts do."""

_TRIANGLE = """
def {name}(n, k=0, m=None):
    columns = n if m is None else m
    total = 0
    for row in range(n):
        total += {count}
    rows = np.zeros(total, np.int64)
    places = np.zeros(total, np.int64)
    at = 0
    for row in range(n):
        for column in range({start}, {stop}):
            rows[clamp(at)] = row
            places[clamp(at)] = column
            at += 1
    return rows, places
"""
TRIANGLES = {
    name: _TRIANGLE.format(name=name, start=start, stop=stop, count=f"max({stop} - {start}, 0)")
    for name, start, stop in (
        ("triu_indices", "max(row + k, 0)", "columns"),
        ("tril_indices", "0", "min(row + k + 1, columns)"),
    )
}


@dataclass(frozen=True, slots=True)
class Composed:
    """Handler of a function that a text in the language defines, with NumPy's parameters."""

    text: str

    def __call__(self, site: Site, *args: Value, **keywords: Value) -> Value:
        """Inline the function at the call site: emit its statements, return its value."""
        return inlined(site, self.text, *args, **keywords)

    @property
    def __signature__(self) -> inspect.Signature:
        """The call site and NumPy's parameters, to which the arguments of a call are bound."""
        (function,) = ast.parse(self.text).body
        assert isinstance(function, ast.FunctionDef), "a text is one function"
        arguments, kind = function.args, inspect.Parameter
        required = len(arguments.args) - len(arguments.defaults)
        parameters = [kind("site", kind.POSITIONAL_ONLY)]
        for n, argument in enumerate(arguments.args):
            default = kind.empty if n < required else NONE
            parameters.append(kind(argument.arg, kind.POSITIONAL_OR_KEYWORD, default=default))
        for argument in arguments.kwonlyargs:
            parameters.append(kind(argument.arg, kind.KEYWORD_ONLY, default=NONE))
        return inspect.Signature(parameters)


def unravel_index(site: Site, indices: Value, shape: Value) -> Value:
    """Return the subscripts, one int64 value an axis, of flat (row-major) indices.

    CdTypeError CD0404 for indices that are no integers; CdIndexError CD0601 at run time for one
    outside the array.
    """
    sizes = items_of(shape)
    array = array_of(site, indices)
    if array.kind.dtype.kind not in "iu":
        text = f"`unravel_index` takes whole numbers, and is given {describe(indices)}"
        raise error(
            "CD0404", CdTypeError, text, site.span, helps=("convert: `x.astype(np.int64)`",)
        )
    total = const(1)
    for size in (shape,) if sizes is None else sizes:
        total = multiply(total, index_in(site, size, "a size"))
    flat_index = array_of(site, converted(site, array, dtypes.int64))
    index, total_size = flat_index.body, Position(total)
    in_range = (Apply(OPS["ge"], (index, Position(const(0))), dtypes.bool_),
                Apply(OPS["lt"], (index, total_size), dtypes.bool_))  # fmt: skip
    fault, values = index_fault(index, total, 0, "the array", flat_index.ranges)
    test = Apply(OPS["and"], in_range, dtypes.bool_)
    site.ctx.check(test, fault, values, site.span, Domain(flat_index.ranges))
    flat = flat_index if flat_index.rank else Scalar(flat_index.body, flat_index.kind)
    text = UNRAVEL_STRIDED if site.ctx.orders and flat_index.rank else UNRAVEL
    return inlined(site, text, flat, Group((shape,)) if sizes is None else shape)


def isin(
    site: Site, element: Value, test_elements: Value, assume_unique: Value = NO,
    invert: Value = NO, *, kind: Value = NONE,
) -> Value:  # fmt: skip
    """Return a bool array of the shape of `element`: whether each is among `test_elements`.

    CdTypeError CD0404 for complex numbers; with `kind="table"` CdValueError CD0442 at run time
    where NumPy makes no lookup table because the range of `test_elements` is too wide.
    """
    kinds = [array_of(site, value).kind.dtype for value in (element, test_elements)]
    for value in (element, test_elements):
        require_ordered(site, array_of(site, value), "isin")
    if not is_none(kind):
        method = text_of(site, kind, "kind", ("sort", "table"))
        if method == "table" and any(dtype.kind not in "biu" for dtype in kinds):
            text = "`isin` looks up integers in a table, and no other numbers"
            raise error("CD0404", CdTypeError, text, site.span, helps=("leave `kind=` out",))
        if method == "table":
            _require_table(site, array_of(site, test_elements))
    text = ISIN_WHOLE if all(dtype.kind in "biu" for dtype in kinds) else ISIN
    if all(dtype.kind in "iu" and dtype is not dtypes.uint64 for dtype in kinds):
        text = ISIN_MARKED
    return inlined(site, text, element, test_elements, invert)


def _require_table(site: Site, tests: Array) -> None:
    """Emit the check that the range of the integers fits their type and the size of an axis."""
    dtype = tests.kind.dtype
    if dtype.bits < 64 and dtype.kind != "i" or not tests.shape:
        return
    width = as_scalar(inlined(site, WIDTH, tests), site.span).expr
    max_width = min((1 << (dtype.bits - 1)) - 1, 2**63 - 2)
    fits = Apply(OPS["le"], (width, Const(max_width, dtypes.uint64)), dtypes.bool_)
    text = f"`isin` looks among numbers that are {{0}} apart, and no table of {dtype} is so long"
    helps = ("leave `kind=` out, or write `kind='sort'`",)
    fault = Fault("CD0442", "CdValueError", text, helps)
    site.ctx.check(fits, fault, (width,), site.span, Domain())


def ediff(site: Site, ary: Value, to_end: Value = NONE, to_begin: Value = NONE) -> Value:
    """Return the differences of consecutive elements, with `to_begin` before and `to_end` after.

    CdTypeError CD0405 where these do not convert to the array's dtype by "same_kind" casting.
    """
    require_subtracted(site, array_of(site, ary), "ediff1d")
    dtype = strong_of(array_of(site, ary).kind)
    ends: list[Value] = []
    for end in (to_end, to_begin):
        if is_none(end):
            ends.append(end)
            continue
        end_dtype = strong_of(array_of(site, end).kind)
        if not np.can_cast(end_dtype.numpy, dtype.numpy, "same_kind"):
            text = f"{end_dtype} values are not put around differences of {dtype}"
            helps = (f"convert them: `np.{dtype}(...)`",)
            raise error("CD0405", CdTypeError, text, site.span, helps=helps)
        ends.append(converted(site, end, dtype))
    return inlined(site, EDIFF, diff(site, elements(site, array_of(site, ary))), *ends)


def vander(site: Site, x: Value, N: Value = NONE, increasing: Value = NO) -> Value:
    """Return the Vandermonde matrix of a vector. CdTypeError CD0452 for another rank than 1.

    CdValueError CD0445 for a negative number of columns.
    """
    vector = array_of(site, x)
    if vector.rank != 1:
        text = f"`vander` takes numbers along one axis, and is given {describe(vector)}"
        raise error("CD0452", CdTypeError, text, site.span)
    columns = N if is_none(N) else as_number(extent_of(site, N, "the number of columns"))
    return inlined(site, VANDER, vector, columns, increasing)


def unwrap(
    site: Site,
    p: Value,
    discont: Value = NONE,
    axis: Value = Static(-1),
    *,
    period: Value = Static(2 * np.pi),
) -> Value:
    """Return `np.unwrap`: values whose steps exceed half a period, continued by whole periods."""
    kinds = [array_of(site, value).kind for value in (p, period)]
    whole = all(kind.dtype.kind in "biu" for kind in kinds) and kinds[1].dtype.kind != "b"
    if whole:
        return inlined(site, UNWRAP_INTEGERS, p, diff(site, p, axis=axis), discont, axis, period)
    return inlined(site, UNWRAP, p, discont, axis, period=period)


def lexsort(site: Site, keys: Value) -> Value:
    """Return the permutation that sorts by several keys, of which the last is the primary one.

    CdTypeError CD0452 where the keys are not of rank 1, or there are none; CdShapeError CD0301
    where their sizes differ.
    """
    items = items_of(keys)
    arrays = [array_of(site, item) for item in ((keys,) if items is None else items)]
    expected_rank = 2 if items is None else 1
    wrong = next((array for array in arrays if array.rank != expected_rank), None)
    if wrong is not None or not arrays:
        text = "`lexsort` takes keys along one axis, of which there is at least one"
        shown = "" if wrong is None else f"this is {describe(wrong)}"
        raise error("CD0452", CdTypeError, text, site.span, label=shown)
    for key in arrays[1:]:
        site.ctx.equal_extents(arrays[0].shape[0], key.shape[0], "the keys of `lexsort`", site.span)
    return inlined(site, LEXSORT, keys if items is None else Group(tuple(arrays)))


def block(site: Site, arrays: Value) -> Value:
    """Return `np.block`: the blocks of the innermost lists joined along the last axis, those of the
    lists around them along the axis before, and so on.

    CdTypeError CD0452 for tuples, CdValueError CD0452 for an empty list and lists of unequal depth.
    """
    depth = _depth(site, arrays)
    rank = max(depth, *(array_of(site, part).rank for part in _leaves(arrays)))
    if not depth:
        return copy(site, arrays)

    def joined(part: Value, axis: int) -> Value:
        if axis == 0:
            return array(site, part, copy=NONE, ndmin=Static(rank))
        parts = tuple(joined(item, axis + 1) for item in items_of(part) or ())
        return concatenate(site, Group(parts), Static(axis))

    return joined(arrays, -depth)


_BLOCKS = ("write lists of one depth, with a block in each place: `np.block([[a, b], [c, d]])`",)


def _depth(site: Site, part: Value) -> int:
    """Return how many lists a block of `np.block` is in."""
    items = items_of(part)
    if items is None:
        return 0
    if isinstance(part, Group) and part.kind == "tuple" or isinstance(constant(part), tuple):
        text = "`block` takes lists of blocks, and is given a tuple"
        raise error("CD0452", CdTypeError, text, site.span, helps=_BLOCKS)
    depths = {_depth(site, item) for item in items}
    if len(depths) == 1:
        return depths.pop() + 1
    text = "`block` takes lists of one depth, and is given " + (
        "lists of unequal depth" if depths else "an empty list"
    )
    raise error("CD0452", CdValueError, text, site.span, helps=_BLOCKS)


def _leaves(part: Value) -> Iterator[Value]:
    """Yield the blocks in nested lists."""
    items = items_of(part)
    if items is None:
        yield part
    for item in items or ():
        yield from _leaves(item)


def open_mesh(site: Site, *args: Value) -> Value:
    """Return `np.ix_`: vector `n` reshaped to vary along axis `n`, of size 1 along the others.

    CdTypeError CD0452 where an argument is no vector of integers.
    """
    vectors: list[Value] = []
    for n, arg in enumerate(args):
        vector = array_of(site, arg)
        if vector.rank != 1 or vector.kind.dtype.kind not in "iu":
            raise error(
                "CD0452", CdTypeError,
                f"`ix_` takes lines of integers here, and is given {describe(vector)}", site.span,
                helps=("give positions: `np.ix_([0, 2], [1, 3])`",),
            )  # fmt: skip
        shape = [Static(-1) if m == n else Static(1) for m in range(len(args))]
        vectors.append(reshape_method(site, vector, *shape))
    return Group(tuple(vectors))
