"""Printed lines as the buffers of records."""

from __future__ import annotations

import struct

import numpy as np

from plusequals.backends.codegen import records
from plusequals.dsl.instrument import sites as s
from plusequals.dsl.instrument.recording import parse_buffers
from plusequals.dsl.instrument.rows import POINT_LINE, REST_LINE, ROW_LINE
from plusequals.lowering.ir import dtypes


def line(*values: float) -> str:
    """A line as a device prints it: numbers of the print and of types, and bits."""
    out = [9]
    for value in values:
        if isinstance(value, float):
            out += [
                records.type_tag(dtypes.float64),
                struct.unpack("<q", struct.pack("<d", value))[0],
            ]
        else:
            out += [records.type_tag(dtypes.int64), value]
    return " ".join(map(str, [*out, 0]))


def test_rows_have_places_for_their_points() -> None:
    used = np.arange(s.COUNTERS)
    lines = [
        line(ROW_LINE, 4, 1), line(REST_LINE, 2), line(POINT_LINE, 0.1, -0.0), line(POINT_LINE, 7),
        line(ROW_LINE, 5, 3), line(ROW_LINE, 6), line(POINT_LINE, float("inf"), 8),
    ]  # fmt: skip
    table, floats, ints, counters = parse_buffers(lines, 5, used)
    assert table.tolist() == [[4, 0, 0, 1, 2], [5, 2, 1, 3, 0], [6, 2, 1, 0, 0]]
    assert list(map(str, floats.tolist())) == ["0.1", "-0.0", "inf"]
    assert ints.tolist() == [7, 8]
    assert counters.tolist() == [3, 3, 2, 3, 4, 5, 6, 7]
    assert used[s.ROWS] == 0


def test_no_line_is_no_row() -> None:
    table, floats, ints, _ = parse_buffers([], 4, np.zeros(s.COUNTERS, np.int64))
    assert (table.shape, floats.size, ints.size) == ((0, 4), 0, 0)
