"""Rows of expressions: how texts are written together, and how near a result has to be."""

from __future__ import annotations

Row = tuple[str, str]
"""The tolerance (see `TOLERANCES`) and the text."""

TOLERANCES = {
    "exact": 0.0,
    "zeros": 0.0,
    "ulps": 8.0,
    "sums": 512.0,
    "loose": 65536.0,
}
"""How far a float may be from NumPy's, in units of the precision of its type: relative to the
number itself for `ulps`, to the largest of the result for the others. Of `zeros` the sign does not
count: where equal numbers are sorted, the language says which comes first, and NumPy does not."""


def each(words: str, *templates: str, tolerance: str = "exact") -> tuple[Row, ...]:
    """Return each template with each word in the place of `@`."""
    return tuple((tolerance, t.replace("@", word)) for word in words.split() for t in templates)


def rows(tolerance: str, text: str) -> tuple[Row, ...]:
    """Return the lines of a text as rows."""
    lines = (line.strip() for line in text.strip().splitlines())
    return tuple((tolerance, line) for line in lines if line)
