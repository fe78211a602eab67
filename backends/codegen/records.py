"""Records of faults and prints: the format in which generated code reports values, and a decoder.

    record[0]      number of the fault or print: its index in the source's table
    record[1 + 2k] type of value k: its index in `dtypes.ALL` plus one; 0 ends the record
    record[2 + 2k] value k: integers as they are, floats as the bits of a double

A complex value takes two pairs of slots, real part first. A fault's record has `SLOTS` slots and
drops values that do not fit; a print's is as long as needed. Out of memory has no record: slot 0 is
then the number of bytes requested.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Cast, Expr

SLOTS = 16
PRINT_PREFIX = "!@#"
"""The prefix of a line that a device prints, before the number of the run and `: `."""


def type_tag(dtype: DType) -> int:
    """Return the tag of an element type in a record."""
    return dtypes.ALL.index(dtype) + 1


def slot_count(dtype: DType) -> int:
    """Return how many slots of a record an element takes."""
    return 4 if dtype.kind == "c" else 2


def value_parts(value: Expr, text: Callable[[Expr], str]) -> list[tuple[str, str]]:
    """Return the real numbers that make up a value, each for a pair of slots: kind and text."""
    dtype = value.dtype
    if dtype.kind == "c":
        return [("real", f"{part}_{dtype.short}({text(value)})") for part in ("real", "imag")]
    plain = Cast(value, dtype.compute) if dtype.compute is not dtype else value
    return [("real" if dtype.kind == "f" else "int", text(plain))]


def decode(record: Sequence[int]) -> tuple[Any, ...]:
    """Return the values of a record as NumPy scalars of their element types."""
    return tuple(_decode(record))


def decode_print(line: str) -> tuple[Any, ...]:
    """Return the values of a print from the line in which a device showed its record.

    >>> [value.item() for value in decode_print("0 5 7 0")]
    [7]
    """
    return decode([*map(int, line.split()), 0])


def _decode(record: Sequence[int]) -> Iterator[Any]:
    at = 1
    while at + 1 < len(record) and record[at]:
        dtype = dtypes.ALL[record[at] - 1]
        scalar = dtype.numpy.type
        match dtype.kind:
            case "f":
                yield scalar(_double(record[at + 1]))
            case "c":
                yield scalar(complex(_double(record[at + 1]), _double(record[at + 3])))
            case "u":
                yield scalar(record[at + 1] & 0xFFFF_FFFF_FFFF_FFFF)
            case _:
                yield scalar(record[at + 1])
        at += slot_count(dtype)


def _double(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value
