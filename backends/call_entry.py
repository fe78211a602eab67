"""Cache entries of calls (an inline cache): guards, inputs and results, encoded as words.

A library of a backend interprets an entry word by word, without Python, and calls the code whose
addresses it holds; `backends/cc/csrc/warm.c` is the one of this package.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

VALUES, ARRAYS, RESULTS, RANK, AXES = 96, 64, 16, 64, 7
"""Limits of a cache entry: values, arrays passed to code, results, and axes of arrays and of
results that the code allocates."""
ALIGNED, WRITABLE = 0x0100, 0x0400
FLAGS = ALIGNED | WRITABLE
"""The array flags that are independent of strides: aligned, writable."""
EntryWords = tuple[int, ...]
CacheEntry = tuple[
    bytes, tuple[object, ...], Callable[..., BaseException | None], Callable[..., object] | None,
    Callable[..., None] | None,
]  # fmt: skip
"""A cache entry: its words; the objects whose addresses they hold; a function that returns a run's
error, None where the slow path is to find it again; a function that combines the parts of the
return value, where there are several or a container; a callback with all values after the run, if
any."""


class ValueSource:
    """The source of a value: an argument, a name, or another value of the entry."""

    ARGUMENT, KEYWORD, NAME, CELL, ATTRIBUTE, ITEM, CONSTANT, MADE = range(8)


class Guard:
    """The guard of a value."""

    ANY, SAME, TYPE, SIZED, EQUAL, ARRAY, FLOAT, INTEGER, NUMBER, BITS, LISTED, SHARED = range(12)


class ResultKind:
    """The kind of a result: a zeroed array, a number, an uninitialized array, or an array of
    run-time size that the code allocates."""

    ARRAY, FLOAT, INTEGER, BOOL, COMPLEX, NUMBER, EMPTY, MADE = range(8)


class PartKind:
    """The kind of a part of the return value: an object, a value of the entry, a result, or a view
    of one of these."""

    OBJECT, VALUE, RESULT, VIEW = range(4)


class ReturnKind:
    """The container of the return value."""

    ONE, TUPLE, LIST = range(3)


def pack_value(source: EntryWords, check: EntryWords) -> EntryWords:
    """Return the words of a value: its source and its guard.

    `source` is a `ValueSource`, two numbers, and the address of a name, a key or an object.
    """
    kind, *rest = check
    return (*source, kind, 6 + len(rest), *rest)


def pack_entry(
    settings: object,
    form: tuple[int, int],
    values: Sequence[EntryWords],
    pairs: Sequence[tuple[int, int]],
    equals: Sequence[tuple[int, int]],
    inputs: Sequence[tuple[int, bool]],
    results: Sequence[EntryWords],
    returned: EntryWords,
    code: tuple[int, int, int],
) -> bytes | None:
    """Return an encoded cache entry, None where it exceeds the limits.

    `form` are the numbers of positional and keyword arguments. Of the values, no `pairs` may
    overlap, and `equals` have to be identical, or two objects where -1 minus the first number is
    given; `inputs` are passed to the code, as arrays where flagged. Each result is a `ResultKind`,
    the address of its type, its size in bytes (of an element where the code allocates it), its rank
    and its shape.
    `returned` is a `ReturnKind`, the number of parts, and for each a `PartKind` with its operand,
    for a view the offset of its words after them; `code` are the addresses of the function, of its
    sizes and of the run-time library's table.
    """
    is_small = len(values) <= VALUES and len(results) <= RESULTS
    if not is_small or len(inputs) + len(results) > ARRAYS:
        return None
    sections = [
        [word for value_words in values for word in value_words],
        [position for pair in (*pairs, *equals) for position in pair],
        [word for number, is_array in inputs for word in (number, int(is_array))],
        [word for result in results for word in result],
    ]
    counts = map(len, (values, pairs, equals, inputs, results))
    head = [id(settings), *form, *counts, *code]
    position = len(head) + len(sections)
    for section in sections:
        position += len(section)
        head.append(position)
    words = [*head, *(word for section in sections for word in section), *returned]
    return struct.pack(f"{len(words)}q", *words)
