"""Record buffers of a run that printed its records instead of storing them.

    0 5 ROW 5 site 5 t 0        a row of the table: its site, then the values of its symbols
    0 5 REST 5 k 0              more of them, where there are many
    0 5 POINT 13 bits 5 3 0     its points, one after another: their floats, then their ints

A line is a print record as `record` parses it, padded with zeros.

>>> found = parse_buffers(["0 5 0 5 2 5 7 0"], 4, np.zeros(8, np.int64))
>>> found[0].tolist(), found[3][s.ROWS].item()
([[2, 0, 0, 7]], 1)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...backends.codegen import records
from ...backends.interface import Array
from . import sites as s
from .rows import REST_LINE, ROW_LINE


def parse_buffers(lines: Iterable[str], width: int, used: Array) -> tuple[Array, ...]:
    """Return the table, floats, ints and counters that printed lines represent.

    `used` are the counters of the run; the counters of points are taken from them.
    """
    rows: list[list[int]] = []
    floats: list[float] = []
    ints: list[int] = []
    for line in lines:
        kind, *values = records.decode_print(line)
        if kind == ROW_LINE:
            rows.append([int(values[0]), len(floats), len(ints), *map(int, values[1:])])
        elif kind == REST_LINE:
            rows[-1] += map(int, values)
        else:
            floats += (x.item() for x in values if isinstance(x, np.float64))
            ints += (x.item() for x in values if isinstance(x, np.int64))
    table = np.zeros((len(rows), width), np.int64)
    for row, values_of_row in zip(table, rows, strict=True):
        row[: len(values_of_row)] = values_of_row
    counters = used.copy()
    counters[[s.ROWS, s.FLOATS, s.INTS]] = len(rows), len(floats), len(ints)
    return table, np.array(floats, np.float64), np.array(ints, np.int64), counters
