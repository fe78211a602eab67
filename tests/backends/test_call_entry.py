"""The words of cache entries of calls: their order, and their limits."""

from __future__ import annotations

import struct

import numpy as np

from plusequals.backends.call_entry import (
    ARRAYS,
    RESULTS,
    VALUES,
    Guard,
    ValueSource,
    pack_entry,
    pack_value,
)


def test_a_plan_that_is_too_long_is_none() -> None:
    def packed(values: int, results: int = 0) -> bytes | None:
        value = pack_value((ValueSource.ARGUMENT, 0, 0, 0), (Guard.SAME, 7))
        result = 0, id(np.dtype(float)), 24, 1, 3
        inputs = [(0, False)] * min(values, ARRAYS)
        return pack_entry(
            None, (1, 0), [value] * values, [], [], inputs, [result] * results, (0, 1, 0, 0), (0, 0)
        )

    assert packed(VALUES) is not None and packed(VALUES + 1) is None
    assert packed(1, RESULTS) is not None and packed(1, RESULTS + 1) is None
    assert packed(ARRAYS - 3, 3) is not None and packed(ARRAYS - 2, 3) is None


def test_the_words_of_a_plan_say_where_its_parts_are() -> None:
    values = [
        pack_value((ValueSource.ARGUMENT, 0, 0, 0), (Guard.ANY,)),
        pack_value((ValueSource.NAME, 1, 2, 3), (Guard.SAME, 9)),
    ]
    words = pack_entry(
        None, (1, 2), values, [(0, 1)], [(1, 0)], [(1, True)], [(0, 5, 0)], (0, 1, 2, 0), (8, 9)
    )
    assert words is not None
    head = struct.unpack(f"{len(words) // 8}q", words)
    assert head[:10] == (id(None), 1, 2, 2, 1, 1, 1, 1, 8, 9)
    pairs, inputs, results, returned = head[10:14]
    assert head[14:pairs] == (0, 0, 0, 0, 0, 6, 2, 1, 2, 3, 1, 7, 9)
    assert head[pairs:inputs] == (0, 1, 1, 0) and head[inputs:results] == (1, 1)
    assert head[results:returned] == (0, 5, 0) and head[returned:] == (0, 1, 2, 0)
