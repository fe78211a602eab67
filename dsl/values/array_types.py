"""The element types as classes: `f32` in annotations, `f32[n, 3]` with sizes, `f32(e)` as a cast.

    isinstance(x, f32)            x has elements of that type
    isinstance(x, f32[3, :])      and rank 2 and three rows
    isinstance(x, f32[n, n])      and is square (a letter of `plusequals.idx`, or its name as text)

They are classes so that type checkers that run, such as typeguard, need to know nothing of them.
"""

from __future__ import annotations

from typing import Any

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..source.idx import Letter, is_letter_name

Size = int | str | None
"""A number, a name (equal names are equal sizes), or None for any size."""


class ArrayType(type):
    """The class of these classes; `sizes` is None where the shape is left open."""

    dtype: DType
    sizes: tuple[Size, ...] | None

    def __getitem__(cls, item: Any) -> ArrayType:
        """Return the type with sizes: numbers, `:`, letters. Raises TypeError for others."""
        if cls.sizes is not None:
            raise TypeError(f"{cls} has its sizes already")
        items = item if isinstance(item, tuple) else (item,)
        return array_type(cls.dtype, tuple(_size(one) for one in items))

    def __instancecheck__(cls, value: object) -> bool:
        """Return whether a value has elements of the type and such a shape."""
        given, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        if not isinstance(given, DType):
            given = None if given is None else dtypes.from_numpy(given)
        if given is not cls.dtype or not isinstance(shape, tuple):
            return False
        return cls.sizes is None or _agree(cls.sizes, shape)

    def __call__(cls, value: Any = 0) -> Any:
        """Return the number or array as this element type, as inside a `@cd` function."""
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
    """Return the class of arrays of an element type and, where given, of such sizes."""
    made = ArrayType(dtype.short, (), {"__module__": "plusequals", "dtype": dtype, "sizes": sizes})
    made.__name__ = made.__qualname__ = repr(made)
    return made


def _size(item: object) -> Size:
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


def _agree(sizes: tuple[Size, ...], shape: tuple[int, ...]) -> bool:
    known: dict[Size, int] = {}
    return len(sizes) == len(shape) and all(
        size is None
        or extent == (size if isinstance(size, int) else known.setdefault(size, extent))
        for size, extent in zip(sizes, shape, strict=True)
    )
