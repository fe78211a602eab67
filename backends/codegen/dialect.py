"""Dialects: the syntax of C-like target languages as data, for one printer.

A dialect says how types, literals and the parts of a function are spelled. What is printed is
decided by `c_printer` and `c_expression`, the same for all dialects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.loops import LoopKind
from ...lowering.ir.ops import Op
from . import prelude

MIN_ALIGNED_BYTES = 32
"""The size in bytes from which an array on the stack may need more alignment than the stack has."""
Number = bool | int | float | complex


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax of one language; `{}` slots are filled by `str.format`."""

    name: str
    header: str
    """The first lines of the text: the includes."""
    types: Mapping[DType, str]
    """The C type of an element in memory; both 16-bit floats are only converted, never computed."""
    literals: Mapping[DType, str]
    """The literal syntax of a type, where digits alone do not have that type."""
    limits: Mapping[tuple[DType, int], str]
    """Integers without a literal: the least of each size."""
    specials: Mapping[str, str]
    """Floats without digits: `inf` and `nan`, as float constants."""
    casts: Mapping[tuple[DType, DType], str]
    """Conversions (from, to) that are a function, by its name; all others are a plain C cast."""
    record: str
    """A complex constant: type, real part, imaginary part."""
    restrict: str
    function: str
    """The specifiers of every helper and body function."""
    entry: str
    """The head of the exported entry point, with a slot for its name."""
    loop_hooks: Mapping[LoopKind, str]
    """The line above a loop of a kind, such as a pragma; none where a kind is missing."""
    library: tuple[str, ...]
    """The files of its prelude, see there; a later one overrides pieces of those before it."""
    halves: frozenset[DType]
    """The 16-bit floats that are stored as bits and converted through float32 only."""
    wrapping: frozenset[str] = frozenset()
    """Operations on signed integers that are functions, since overflow is undefined behaviour."""
    spread: Mapping[LoopKind, tuple[str, str]] = field(default_factory=dict)
    """Loops distributed cyclically: the index and count of workers, with `{}` for the axis."""
    unroll_limit: str = ""
    """The line above a loop with an unroll limit, which fills its slot."""
    has_narrow_indices: bool = False
    """Whether index arithmetic has 32 bits where that suffices, see `index_width`."""
    spellings: tuple[tuple[str, str], ...] = ()
    """Textual replacements in the prelude pieces that are shared with C."""
    aligned: str = ""
    """The specifier of arrays on the stack that vectors are loaded from: gcc 12 assumes alignment
    for some that have none."""

    def array(self, dtype: DType, name: str, count: int) -> str:
        """Return the declaration of an array on the stack, without initializer and semicolon."""
        aligned = self.aligned if count * dtype.itemsize >= MIN_ALIGNED_BYTES else ""
        return f"{aligned}{self.types[dtype]} {name}[{count}]"

    def literal(self, value: Number, dtype: DType) -> str:
        """Return a literal of an element type. Floats round-trip exactly."""
        match dtype.kind:
            case "b":
                return "true" if value else "false"
            case "i" | "u":
                number = int(value.real)
                limit = self.limits.get((dtype, number))
                return limit or self.literals.get(dtype, "{}").format(number)
            case "f":
                return self._float(float(value.real), dtype)
            case "c":
                number_ = complex(value)
                parts = (self._float(part, dtype.real) for part in (number_.real, number_.imag))
                return self.record.format(self.types[dtype], *parts)

    def is_infix(self, op: Op, dtype: DType) -> bool:
        """Whether an operation on a type is printed with its operator."""
        wraps = dtype.kind == "i" and op.name in self.wrapping
        return bool(op.infix) and dtype.kind in op.infix_kinds and not wraps

    def _float(self, value: float, dtype: DType) -> str:
        if dtype in self.halves:
            return f"0x{_bits(value, dtype):04x}"
        with np.errstate(all="ignore"):
            value = float(dtype.numpy.type(value))
        if math.isnan(value) or math.isinf(value):
            sign = "-" if math.copysign(1.0, value) < 0 else ""
            return sign + self.specials["nan" if math.isnan(value) else "inf"]
        return self.literals.get(dtype, "{}").format(_digits(value, dtype))


def _digits(value: float, dtype: DType) -> str:
    """Return the shortest decimal that round-trips, or the hexadecimal form of a value."""
    scalar = dtype.numpy.type
    text = str(scalar(value))
    if float(scalar(text)) != value:
        return value.hex()
    return text if any(mark in text for mark in ".e") else text + ".0"


def _bits(value: float, dtype: DType) -> int:
    """Return the bits of a 16-bit float."""
    with np.errstate(all="ignore"):
        if dtype is dtypes.float16:
            return int(np.float16(value).view(np.uint16))
        bits = int(np.float32(value).view(np.uint32))
    if math.isnan(value):
        return bits >> 16 | 0x40
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF


_TYPES = {
    dtypes.bool_: "uint8_t", dtypes.float16: "_Float16", dtypes.bfloat16: "uint16_t",
    dtypes.float32: "float", dtypes.float64: "double",
    dtypes.complex64: "pe_c64", dtypes.complex128: "pe_c128",
} | {
    dtype: f"{'u' if dtype.kind == 'u' else ''}int{dtype.bits}_t"
    for dtype in dtypes.ALL if dtype.kind in "iu"
}  # fmt: skip
"""Truth values are bytes: gcc 12 vectorizes no reductions of `bool`, nor tests of them."""
_CASTS = {
    (source, to): f"{to.short}_from_{source.short}"
    for source in (dtypes.float32, dtypes.float64)
    for to in dtypes.ALL if to.kind in "iu"
} | {
    (dtypes.bfloat16, dtypes.float32): "f32_from_bf16",
    (dtypes.float32, dtypes.bfloat16): "bf16_from_f32",
    (dtypes.complex64, dtypes.complex128): "c128_from_c64",
    (dtypes.complex128, dtypes.complex64): "c64_from_c128",
    (dtypes.complex64, dtypes.float32): "real_c64",
    (dtypes.complex128, dtypes.float64): "real_c128",
    (dtypes.complex64, dtypes.bool_): "bool_from_c64",
    (dtypes.complex128, dtypes.bool_): "bool_from_c128",
}  # fmt: skip

C = Dialect(
    name="C",
    header="#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>",
    types=MappingProxyType(_TYPES),
    literals=MappingProxyType({
        dtypes.uint32: "{}u", dtypes.uint64: "{}ull",
        dtypes.float32: "{}f", dtypes.float16: "(_Float16){}f",
    }),
    limits=MappingProxyType({
        (dtypes.int32, -(2**31)): "INT32_MIN", (dtypes.int64, -(2**63)): "INT64_MIN",
    }),
    specials=MappingProxyType({"inf": "INFINITY", "nan": "NAN"}),
    casts=MappingProxyType(_CASTS),
    record="({}){{{}, {}}}",
    restrict="restrict",
    function="static",
    entry="int {}(void **args)",
    loop_hooks=MappingProxyType({"vector": "#pragma omp simd"}),
    library=prelude.C_FILES,
    halves=frozenset((dtypes.bfloat16,)),
    aligned="_Alignas(64) ",
)  # fmt: skip
"""C11 with the GNU extensions that gcc, clang and zig share."""
