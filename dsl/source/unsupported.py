"""Unsupported Python constructs: one entry per construct, with the message and the fix.

Keys are names of `ast` classes, so that constructs of newer Pythons can be listed. A code covers a
family: `yield` and `yield from` share one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a construct is refused (`code`, one sentence) and what to write instead."""

    code: str
    message: str
    help: str


_ASYNC = Unsupported(
    "CD0110",
    "nothing can be awaited in a `@cd` function: it runs from start to end without Python",
    "write `def` and plain loops; wait for the data outside and pass it in",
)
_YIELD = Unsupported(
    "CD0111",
    "a `@cd` function cannot be a generator: it runs from start to end without Python",
    "fill an array, `y[t] = value`, and return it: `return y`",
)
_TRY = Unsupported(
    "CD0114",
    "exceptions cannot be handled inside a `@cd` function",
    "put the `try:` around the call of the function, or test before: `if x > 0:`",
)
_IMPORT = Unsupported(
    "CD0116",
    "a `@cd` function cannot import",
    "put the import at the top of the file: names of the module are visible inside",
)
_SCOPE = Unsupported(
    "CD0117",
    "a `@cd` function cannot rebind names outside itself",
    "return the value and assign it where it is called: `total = f(x)`",
)
_DICT = Unsupported(
    "CD0121",
    "dictionaries and sets do not exist in a `@cd` function",
    "use one array or variable per key, return a tuple of them, or pass in what is built outside",
)
_TYPES = Unsupported(
    "CD0124",
    "type aliases and type parameters mean nothing in a `@cd` function",
    "leave them out: types are taken from the arguments of each call",
)
GENERATOR = Unsupported(
    "CD0112",
    "a generator can only be the sole argument of a call",
    "write `sum(e for k in range(n))`, or a list: `[e for k in range(n)]`",
)
WITH = Unsupported(
    "CD0115",
    "`with` can only name a block of statements",
    'write `with comment("text"):`, or open the resource around the call of the function',
)
STARRED_TARGET = Unsupported(
    "CD0123",
    "a starred target has no fixed length",
    "use slices: `head = x[0]` and `tail = x[1:]`",
)
DECORATED = Unsupported(
    "CD0125",
    "a function inside a `@cd` function cannot have decorators",
    "leave the decorator out: inner functions are inlined where they are called",
)
DYNAMIC_FORMAT = Unsupported(
    "CD0126",
    "a format has to be known when the function is compiled",
    'write the numbers: `f"{x:8.3f}"`',
)
BYTES = Unsupported(
    "CD0127",
    "bytes do not exist in a `@cd` function",
    "pass a `uint8` array: `np.frombuffer(data, np.uint8)`",
)
KEYWORDS = Unsupported(
    "CD0129",
    "keyword arguments cannot be unpacked with `**`: dictionaries do not exist in a `@cd` function",
    "write each argument: `f(x, axis=axis)`",
)
RAISE_FROM = Unsupported(
    "CD0130",
    "`raise ... from` has no cause to name: exceptions cannot be handled in a `@cd` function",
    'leave the cause out: `raise ValueError("text")`',
)

UNSUPPORTED: Mapping[str, Unsupported] = MappingProxyType(
    {
        "AsyncFunctionDef": _ASYNC,
        "AsyncFor": _ASYNC,
        "AsyncWith": _ASYNC,
        "Await": _ASYNC,
        "Yield": _YIELD,
        "YieldFrom": _YIELD,
        "GeneratorExp": GENERATOR,
        "ClassDef": Unsupported(
            "CD0113",
            "a `@cd` function cannot define a class",
            "put the class at the top of the file, or use one array per attribute",
        ),
        "Try": _TRY,
        "TryStar": _TRY,
        "Import": _IMPORT,
        "ImportFrom": _IMPORT,
        "Global": _SCOPE,
        "Nonlocal": _SCOPE,
        "Delete": Unsupported(
            "CD0118",
            "`del` has nothing to delete: arrays are freed by their last use",
            "leave the statement out; to take a new array under the same name, assign it",
        ),
        "Match": Unsupported(
            "CD0119",
            "`match` is not part of the language",
            "write `if x == 1:` and `elif x == 2:`",
        ),
        "NamedExpr": Unsupported(
            "CD0120",
            "`:=` assigns inside an expression, where nothing says which points it runs over",
            "assign on a line of its own before: `t = x + 1`",
        ),
        "Dict": _DICT,
        "Set": _DICT,
        "DictComp": _DICT,
        "SetComp": _DICT,
        "TypeAlias": _TYPES,
        "TypeParameters": _TYPES,
        "TemplateStr": Unsupported(
            "CD0126",
            "template strings do not exist in a `@cd` function",
            'write an f-string: `f"x = {x}"`',
        ),
    }
)
