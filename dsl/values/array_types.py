"""Element types as Python classes: `f32` annotates, `f32[n, 3]` has sizes, `f32(e)` casts.

    isinstance(x, f32)            x has elements of that type
    isinstance(x, f32[3, :])      and rank 2 and three rows
    isinstance(x, f32[n, n])      and is square (a letter of `plusequals.idx`, or its name as text)

Being classes, they need no support from run-time type checkers such as typeguard.
"""

from __future__ import annotations

from typing import Any

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..source.idx import Letter, is_letter_name

Size = int | str | None
"""A static size, a name (equal names are equal sizes), or None for any size."""


class ArrayType(type):
    """The metaclass of array types; `sizes` is None where the shape is unconstrained."""

    dtype: DType
    sizes: tuple[Size, ...] | None

    def __getitem__(cls, item: Any) -> ArrayType:
        """Return the type with sizes: numbers, `:`, index letters. Raises TypeError for others."""
        if cls.sizes is not None:
            raise TypeError(f"{cls} has its sizes already")
        items = item if isinstance(item, tuple) else (item,)
        return array_type(cls.dtype, tuple(_parse_size(size) for size in items))

    def __instancecheck__(cls, value: object) -> bool:
        """Return whether a value has this element type, and a shape that matches the sizes."""
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        if not isinstance(dtype, DType):
            dtype = None if dtype is None else dtypes.from_numpy(dtype)
        if dtype is not cls.dtype or not isinstance(shape, tuple):
            return False
        return cls.sizes is None or _matches_shape(cls.sizes, shape)

    def __call__(cls, value: Any = 0) -> Any:
        """Return the number or array cast to this element type, as in a `@cd` function."""
        return cls.dtype.numpy.type(value)

    def __eq__(cls, other: object) -> bool:
        return isinstance(other, ArrayType) and repr(cls) == repr(other)

    def __hash__(cls) -> int:
        return hash(repr(cls))

    def __repr__(cls) -> str:
        if cls.sizes is None:
            return cls.dtype.short
        return f"{cls.dtype.short}[{', '.join(':' if n is None else str(n) for n in cls.sizes)}]"


def array_type(dtype: DType, sizes: tuple[Size, ...] | None = None) -> ArrayType:
    """Return the class of arrays of an element type, with the sizes if given."""
    array_class = ArrayType(
        dtype.short, (), {"__module__": "plusequals", "dtype": dtype, "sizes": sizes}
    )
    array_class.__name__ = array_class.__qualname__ = repr(array_class)
    return array_class


def _parse_size(item: object) -> Size:
    match item:
        case bool():
            pass
        case int() if item >= 0:
            return item
        case Letter(name):
            return name
        case str() if is_letter_name(item):
            return item
        case slice(start=None, stop=None, step=None):
            return None
        case _:
            pass
    raise TypeError(f"a size is a number, `:` or an index letter, not {item!r}")


def _matches_shape(sizes: tuple[Size, ...], shape: tuple[int, ...]) -> bool:
    named_sizes: dict[Size, int] = {}
    return len(sizes) == len(shape) and all(
        size is None
        or extent == (size if isinstance(size, int) else named_sizes.setdefault(size, extent))
        for size, extent in zip(sizes, shape, strict=True)
    )
