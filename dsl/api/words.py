"""The words of the language as importable objects, for linters and type checkers.

    from plusequals import pad, clamp, wrap, comment, memory, f32, i64

An unbound word has the same meaning without an import.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...lowering.ir import dtypes
from ..values.array_types import array_type
from ..values.call_site import Word

pad, clamp, wrap, memory = Word("pad"), Word("clamp"), Word("wrap"), Word("memory")

TYPES = {name: array_type(dtype) for name, dtype in dtypes.BY_SHORT.items() if name != "bool"}
"""The element types as classes: `f32[n, m]` in annotations and `isinstance`, `f32(e)` as a cast."""


@contextmanager
def comment(text: str) -> Iterator[None]:
    """Name a block of statements in generated code, routine names and traces."""
    yield
