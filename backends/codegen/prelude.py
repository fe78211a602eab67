"""Prelude of generated code: C functions that are included on demand.

The pieces of a language are in files of the folders `csrc`; `integers.h` documents their format. A
later file may redefine a piece. The dependencies of a piece are the other pieces that its text
names, so no list of them is needed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import cache

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..cache.folders import read_package_text

_FOLDER = os.path.dirname(os.path.dirname(__file__))
SHARED_FILES = tuple(
    f"cc/csrc/{name}.h" for name in ("complexes", "integers", "casts", "reals", "memory")
)
"""The C files that other languages share, by their paths in the folder of the backends."""
_C_FILES = "library bits exponentials logarithms angles arcs powers erf".split()
_VECTOR_FILES = "choices threads vectors turns modes".split()
C_FILES = (
    tuple(f"cc/csrc/{name}.h" for name in _C_FILES)
    + SHARED_FILES
    + tuple(f"cc/csrc/{name}.h" for name in _VECTOR_FILES)
)
"""The files of C."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"', re.DOTALL)
"""Text that names no piece: comments, and quoted instructions of a device."""
_MAP_PREFIX = "each_"
"""The prefix of functions that map an elemental function over arrays."""
_ELEMENTAL_MARK = "elemental "
"""The annotation of functions that may be inlined or outlined."""
MAX_INLINED_CALLS = 32
"""Up to so many calls of elemental functions are inlined in a text; beyond, functions with more
than one call are outlined. Measured with gcc 12 and AVX2: an inlined `exp` of float64 takes 0.1 s
to compile, a `sin` 0.25 s, a call of either 0.01 s; vectorized calls take 1.0 to 1.6 times as long
as inlined code, as each call loads its constants."""
_C_TYPES = {
    "bool": "bool", "f32": "float", "f64": "double", "c64": "pe_c64", "c128": "pe_c128",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}  # fmt: skip


class Definitions(Mapping[str, str]):
    """Pieces by the name that each defines; their templates are instantiated lazily."""

    __slots__ = ("_parts", "elemental")

    def __init__(self, parts: Mapping[str, tuple[str, str]]) -> None:
        """Take, by name, the text and the element type of its instance, if it is a template."""
        self._parts = parts
        self.elemental = frozenset(
            name for name, (body, _) in parts.items() if _ELEMENTAL_MARK in body
        )
        """The functions that may be inlined or outlined."""

    def __getitem__(self, name: str) -> str:
        if name not in self._parts and name in self:
            return _map_function(
                name.removeprefix(_MAP_PREFIX), self[name.removeprefix(_MAP_PREFIX)]
            )
        body, short = self._parts[name]
        body = body.replace(_ELEMENTAL_MARK, "inlined ") if name in self.elemental else body
        return _substitute(body, _substitution(short)) if short else body

    def __contains__(self, name: object) -> bool:
        if name in self._parts:
            return True
        return (
            isinstance(name, str)
            and name.startswith(_MAP_PREFIX)
            and name[len(_MAP_PREFIX) :] in self.elemental
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


@cache
def prelude_definitions(files: tuple[str, ...]) -> Definitions:
    """Return all pieces by the name that each defines, in the order of the files."""
    definitions: dict[str, tuple[str, str]] = {}
    for file in files:
        definitions |= _read_definitions(file)
    return Definitions(definitions)


def _read_definitions(file: str) -> dict[str, tuple[str, str]]:
    definitions: dict[str, tuple[str, str]] = {}
    text = read_package_text(os.path.join(_FOLDER, file))
    _, *sections = re.split(r"^//! ", text, flags=re.MULTILINE)
    for section in sections:
        header, _, body = section.partition("\n")
        name, _, types = header.partition(":")
        for short in types.split() or ("",):
            instance = (
                _substitute_name(name.strip(), _substitution(short)) if short else name.strip()
            )
            assert instance not in definitions, f"two pieces define {instance}"
            definitions[instance] = body.strip() + "\n", short
    return definitions


def is_prelude_name(name: str) -> bool:
    """Whether the prelude defines that name."""
    return name in prelude_definitions(C_FILES)


def required_definitions(text: str, files: tuple[str, ...] = C_FILES) -> tuple[str, ...]:
    """Return the pieces that a text names, transitively, in topological order.

    Elemental functions are inlined, except those that `outlined_functions` returns.
    """
    order: dict[str, str] = {}
    definitions = prelude_definitions(files)
    _add_required(text, definitions, order)
    outlined_names = _find_outlined(text, order, definitions.elemental)
    if not outlined_names:
        return tuple(order.values())
    order = {"inlined": order.pop("inlined"), "outlined": definitions["outlined"], **order}
    return tuple(
        re.sub(r"^inlined ", "outlined ", definition, flags=re.MULTILINE)
        if name in outlined_names
        else definition
        for name, definition in order.items()
    )


def outlined_functions(text: str, files: tuple[str, ...] = C_FILES) -> frozenset[str]:
    """Return the elemental functions that are outlined where a text calls them.

    These are the ones with more than one call, direct or transitive, where there are more than
    `MAX_INLINED_CALLS` calls in all: a call compiles faster than a body. Results are bit-identical:
    the operations and their order are the same.
    """
    order: dict[str, str] = {}
    definitions = prelude_definitions(files)
    _add_required(text, definitions, order)
    return _find_outlined(text, order, definitions.elemental)


def _find_outlined(text: str, order: Mapping[str, str], elemental: Set[str]) -> frozenset[str]:
    if not any(name in elemental for name in order):
        return frozenset()
    calls = Counter(_callees(text))
    for name, definition in reversed(list(order.items())):  # callers come after their callees
        instances = min(calls[name], 1) if name.startswith(_MAP_PREFIX) else calls[name]
        if instances:
            for callee, count in Counter(_callees(definition)).items():
                calls[callee] += instances * count if callee != name else 0
    call_counts = {name: calls[name] for name in order if name in elemental}
    exceeds_limit = sum(call_counts.values()) > MAX_INLINED_CALLS
    return frozenset(name for name, count in call_counts.items() if exceeds_limit and count > 1)


def _callees(text: str) -> Iterator[str]:
    """Yield the callee of each call in a text."""
    return (match[1] for match in _CALL.finditer(_COMMENT.sub(" ", text)))


def _map_function(name: str, definition: str) -> str:
    """Return the function that maps an elemental function over arrays."""
    match = re.search(rf"^inlined (\w+) {name}\((.*?)\)", definition, re.MULTILINE)
    assert match is not None, f"{name} is not elemental"
    ctype, names = match[1], "abc"[: match[2].count(",") + 1]
    parameters = "".join(f"const {ctype} *restrict {operand}, " for operand in names)
    values = ", ".join(f"{operand}[i]" for operand in names)
    return (
        "static __attribute__((noinline))\n"
        f"void {_MAP_PREFIX}{name}({ctype} *restrict y, {parameters}int64_t n)\n"
        f"{{\n    for (int64_t i = 0; i < n; i++) y[i] = {name}({values});\n}}\n"
    )


def _add_required(text: str, definitions: Mapping[str, str], order: dict[str, str]) -> None:
    for word in dict.fromkeys(_IDENTIFIER.findall(_COMMENT.sub(" ", text))):
        if word in definitions and word not in order:
            definition = definitions[word]
            remaining_text = re.sub(rf"\b{word}\b", " ", definition)
            _add_required(remaining_text, definitions, order)
            order[word] = definition


def _substitute_name(name: str, words: Mapping[str, str]) -> str:
    """Return a name with its one-letter placeholders substituted."""
    stem, *suffixes = name.split("$")
    return stem + "".join(words[suffix[0]] + suffix[1:] for suffix in suffixes)


def _substitute(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\$(lf|hf|[A-Za-z])", lambda match: words[match[1]], text)


@cache
def _substitution(short: str) -> Mapping[str, str]:
    """Return the substitution of a template for an element type or a vector type, by its name."""
    return (
        _vector_substitution(short)
        if "x" in short
        else _scalar_substitution(dtypes.BY_SHORT[short])
    )


def _scalar_substitution(dtype: DType) -> dict[str, str]:
    """Return the substitution of a template for an element type."""
    real = dtype.real
    substitution = {
        "t": dtype.short, "T": _C_TYPES[dtype.short], "b": str(dtype.bits),
        "r": real.short, "R": _C_TYPES[real.short], "f": "f" if real is dtypes.float32 else "",
    }  # fmt: skip
    if dtype.kind == "f":
        digits, bias = (23, 127) if dtype is dtypes.float32 else (52, 1023)
        substitution |= {"U": f"uint{dtype.bits}_t", "m": str(digits), "e": str(bias)}
    if dtype.kind in "iu":
        signed = dtype.kind == "i"
        above = 2 ** (dtype.bits - signed)
        below = above if signed else 0
        substitution |= {
            "U": f"uint{dtype.bits}_t",
            "L": f"INT{dtype.bits}_MIN" if signed else "0",
            "H": f"{'' if signed else 'U'}INT{dtype.bits}_MAX",
            "l": f"{'-' if below else ''}{below}.0", "h": f"{above}.0",
        }  # fmt: skip
        substitution |= {"lf": substitution["l"] + "f", "hf": substitution["h"] + "f"}
    return substitution


_FMA = {
    "f32x4": ("__FMA__", "__builtin_ia32_vfmaddps(a, b, c)"),
    "f32x8": ("__FMA__", "__builtin_ia32_vfmaddps256(a, b, c)"),
    "f32x16": ("__AVX512F__", "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)"),
    "f64x2": ("__FMA__", "__builtin_ia32_vfmaddpd(a, b, c)"),
    "f64x4": ("__FMA__", "__builtin_ia32_vfmaddpd256(a, b, c)"),
    "f64x8": ("__AVX512F__", "__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)"),
}  # fmt: skip
"""The macro that says whether gcc has a fused multiply-add of a vector type, and its builtin."""
_MASKED_LOAD = {
    "f32x8": ("__AVX__", "__builtin_ia32_maskloadps256((const f32x8 *)x, before_f32x8(count))"),
    "f32x16": ("__AVX512F__", "__builtin_ia32_loadups512_mask(x, (f32x16){0}, ~(~0ull << count))"),
    "f64x4": (
        "__AVX__",
        "__builtin_ia32_maskloadpd256((const f64x4 *)x, "
        "(__attribute__((vector_size(32))) long long)before_f64x4(count))",
    ),
    "f64x8": ("__AVX512F__", "__builtin_ia32_loadupd512_mask(x, (f64x8){0}, ~(~0ull << count))"),
}
"""The same for masked loads of the first lanes."""


_SUFFIXES = {"f32x8": "ps256", "f64x4": "pd256"}
"""The suffixes of gcc's builtins for the 256-bit vectors of AVX."""


def _vector_substitution(short: str) -> dict[str, str]:
    """Return the substitution of a template for a vector type."""
    name, _, count = short.partition("x")
    dtype = dtypes.BY_SHORT[name]
    fma_macro, fma_builtin = _FMA.get(short, ("", "c"))
    substitution = {
        "v": short,
        "n": count,
        "b": str(dtype.itemsize),
        "B": str(dtype.itemsize * int(count)),
    }
    suffix = _SUFFIXES.get(short, "")
    substitution |= {"x": suffix, "k": "defined(__AVX__)" if suffix else "0"}
    load_macro, load = _MASKED_LOAD.get(short, ("", "0"))
    substitution |= {"K": f"defined({load_macro})" if load_macro else "0", "M": load}
    substitution["I"] = f"i{dtype.bits}x{count}"
    substitution["N"] = ", ".join(map(str, range(int(count))))
    return (
        _scalar_substitution(dtype)
        | substitution
        | {"c": f"defined({fma_macro})" if fma_macro else "0", "F": fma_builtin}
    )
