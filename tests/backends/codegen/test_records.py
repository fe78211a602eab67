"""Records of faults and prints come back as the values that went in."""

import struct

from plusequals.backends.codegen import records
from plusequals.lowering.ir import dtypes


def bits(value: float) -> int:
    (found,) = struct.unpack("<q", struct.pack("<d", value))
    return int(found)


def test_values_come_back_with_their_types() -> None:
    tags = [records.type_tag(dtype) for dtype in (dtypes.int8, dtypes.float32, dtypes.uint64)]
    slots = [3, tags[0], -5, tags[1], bits(0.5), tags[2], -1, 0]
    values = records.decode(slots)
    assert [str(value) for value in values] == ["-5", "0.5", str(2**64 - 1)]
    assert [value.dtype.name for value in values] == ["int8", "float32", "uint64"]


def test_a_complex_value_takes_two_places_and_the_end_may_be_missing() -> None:
    tag = records.type_tag(dtypes.complex128)
    assert records.decode([0, tag, bits(1.0), tag, bits(-2.0)]) == (1 - 2j,)
    assert records.decode([0, 0, 7]) == ()
    assert records.slot_count(dtypes.complex128) == 2 * records.slot_count(dtypes.bool_)
