"""Element types, their promotion (NumPy 2), and the types that each is computed and summed in."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Literal

import numpy as np

from ...base.dataclass import dataclass

Kind = Literal["b", "i", "u", "f", "c"]


@dataclass(frozen=True)
class DType:
    """An element type: its NumPy name, its kind (bool, int, unsigned, float, complex), its size."""

    name: str
    kind: Kind
    bits: int

    def __repr__(self) -> str:
        return self.name

    @property
    def short(self) -> str:
        """The name used in annotations and generated code: `f32`, `i64`, `u8`, `c128`, `bool`."""
        if self.kind == "b":
            return "bool"
        return "bf16" if self is bfloat16 else f"{self.kind}{self.bits}"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return max(1, self.bits // 8)

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype. bfloat16 needs the package ml_dtypes (ImportError without it)."""
        if self.name == "bfloat16":
            import ml_dtypes  # heavy, and only needed by those who have such arrays

            numpy_type: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
            return numpy_type
        return np.dtype(self.name)

    @property
    def compute(self) -> DType:
        """The type its arithmetic is done in: itself, but float32 for the two 16-bit floats."""
        return float32 if self.kind == "f" and self.bits == 16 else self

    @property
    def summed(self) -> DType:
        """The type NumPy's sum and prod return: small integers and bool widen to 64 bits."""
        match self.kind:
            case "b" | "i":
                return int64
            case "u":
                return uint64
            case _:
                return self

    @property
    def real(self) -> DType:
        """The type of the real part: float32 for complex64, float64 for complex128, else itself."""
        return (float32 if self.bits == 64 else float64) if self.kind == "c" else self


bool_ = DType("bool", "b", 8)
int8, int16 = DType("int8", "i", 8), DType("int16", "i", 16)
int32, int64 = DType("int32", "i", 32), DType("int64", "i", 64)
uint8, uint16 = DType("uint8", "u", 8), DType("uint16", "u", 16)
uint32, uint64 = DType("uint32", "u", 32), DType("uint64", "u", 64)
float16, bfloat16 = DType("float16", "f", 16), DType("bfloat16", "f", 16)
float32, float64 = DType("float32", "f", 32), DType("float64", "f", 64)
complex64, complex128 = DType("complex64", "c", 64), DType("complex128", "c", 128)

ALL: tuple[DType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_SHORT = {dtype.short: dtype for dtype in ALL}


def from_numpy(dtype: object) -> DType | None:
    """Return the element type of a NumPy dtype (or what converts to one), None if it is not
    supported."""
    try:
        numpy_type = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        return None
    return BY_NAME.get(numpy_type.name)


@cache
def promote(left: DType, right: DType) -> DType:
    """Return the type of `left + right` for two strong operands, as NumPy 2 promotes.

    >>> promote(int32, float32), promote(uint64, int64), promote(bfloat16, float16)
    (float64, float64, float32)
    """
    if left is right:
        return left
    if bfloat16 in (left, right):
        operand = right if left is bfloat16 else left
        if operand.kind in "biu":
            return bfloat16
        return float32 if operand is float16 else operand
    return BY_NAME[np.promote_types(left.name, right.name).name]


@cache
def promote_all(*types: DType) -> DType:
    """Return the common type of one or more strong operands, as NumPy's `result_type` does.

    It is not that of pairs: of int16, uint16 and float32 a pair would give int32, and float64 then.

    >>> promote_all(int16, uint16, float32), promote_all(bfloat16, int8, float32)
    (float32, float32)
    """
    known = [dtype.numpy for dtype in types if dtype is not bfloat16]
    if len(known) < len(types):
        return promote(bfloat16, BY_NAME[np.result_type(*known).name]) if known else bfloat16
    return BY_NAME[np.result_type(*known).name]


def is_weaker(kind: Kind, than: Kind) -> bool:
    """Whether a Python scalar of this kind adapts to an array of kind `than` (NumPy's rule).

    >>> is_weaker("i", "f"), is_weaker("f", "i"), is_weaker("b", "u"), is_weaker("i", "u")
    (True, False, True, True)
    """
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order[kind] <= order[than]


def format_scalar(value: np.generic, how: str | None, dtype: DType | None) -> str:
    """Return a number as `str` shows one of its type, or in a format, as NumPy's scalars do.

    >>> format_scalar(np.float32(0.1), None, float32), format_scalar(np.float32(0.1), "", float32)
    ('0.1', '0.10000000149011612')
    """
    if dtype is not None and dtype.numpy != value.dtype:  # it was computed in a wider one
        with np.errstate(all="ignore"):
            value = value.astype(dtype.numpy)
    return str(value) if how is None else format(value.item(), how)
