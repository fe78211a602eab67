"""The pieces of C that generated code may call: each is pulled in only where it is named.

The pieces of a language are files of the folders `csrc`; `integers.h` says at its top how they are
written. A later file may define a piece again: its own way is taken. What a piece needs is
whatever other pieces its text names, so there is no list to forget.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import cache

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..cache.folders import own_text

_FOLDER = os.path.dirname(os.path.dirname(__file__))
SHARED = tuple(
    f"cc/csrc/{name}.h" for name in ("complexes", "integers", "casts", "reals", "memory")
)
"""The files of C that other languages take as well, in the folder of the backends."""
_OF_C = "library bits exponentials logarithms angles arcs powers erf".split()
_APART = "choices threads vectors turns modes".split()
OF_C = (
    tuple(f"cc/csrc/{name}.h" for name in _OF_C)
    + SHARED
    + tuple(f"cc/csrc/{name}.h" for name in _APART)
)
"""The files of C."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"', re.DOTALL)
"""What names no piece: a comment, or an instruction of a device in quotes."""
_EACH = "each_"
"""What the names of functions begin with that compute an elemental one for elements of arrays."""
_ELEMENTAL = "elemental "
"""What stands before the functions that may be inlined or outlined."""
INLINED = 32
"""So many calls of elemental functions are inlined in a text; of more, those of functions that are
called more than once are not. Measured with gcc 12 and AVX2: an inlined `exp` of float64 takes
0.1 s to compile, a `sin` 0.25 s, a call of either 0.01 s; vectors of calls take 1.0 to 1.6 times
as long as of inlined ones, as each call loads its constants."""
_C_TYPES = {
    "bool": "bool", "f32": "float", "f64": "double", "c64": "pe_c64", "c128": "pe_c128",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}  # fmt: skip


class Pieces(Mapping[str, str]):
    """Pieces by the name that each defines; a text is made when it is asked for."""

    __slots__ = ("_parts", "elemental")

    def __init__(self, parts: Mapping[str, tuple[str, str]]) -> None:
        """Take of each name the text, and the type that it is to be filled in for, if any."""
        self._parts = parts
        self.elemental = frozenset(name for name, (body, _) in parts.items() if _ELEMENTAL in body)
        """The functions that may be inlined or outlined."""

    def __getitem__(self, name: str) -> str:
        if name not in self._parts and name in self:
            return _each(name.removeprefix(_EACH), self[name.removeprefix(_EACH)])
        body, short = self._parts[name]
        body = body.replace(_ELEMENTAL, "inlined ") if name in self.elemental else body
        return _filled(body, _words_of(short)) if short else body

    def __contains__(self, name: object) -> bool:
        if name in self._parts:
            return True
        return (
            isinstance(name, str)
            and name.startswith(_EACH)
            and name[len(_EACH) :] in self.elemental
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


@cache
def pieces(files: tuple[str, ...]) -> Pieces:
    """Return every piece by the name that it defines, in the order of the files."""
    found: dict[str, tuple[str, str]] = {}
    for file in files:
        found |= _pieces_of(file)
    return Pieces(found)


def _pieces_of(file: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    text = own_text(os.path.join(_FOLDER, file))
    _, *parts = re.split(r"^//! ", text, flags=re.MULTILINE)
    for part in parts:
        head, _, body = part.partition("\n")
        name, _, types = head.partition(":")
        for short in types.split() or ("",):
            own = _named(name.strip(), _words_of(short)) if short else name.strip()
            assert own not in found, f"two pieces define {own}"
            found[own] = body.strip() + "\n", short
    return found


def is_piece(name: str) -> bool:
    """Whether the prelude defines that name."""
    return name in pieces(OF_C)


def needed(text: str, files: tuple[str, ...] = OF_C) -> tuple[str, ...]:
    """Return the pieces that a text names, and those that they name, each after what it needs.

    Elemental functions are inlined, but for those that `outlined` names.
    """
    order: dict[str, str] = {}
    known = pieces(files)
    _collect(text, known, order)
    apart = _outlined(text, order, known.elemental)
    if not apart:
        return tuple(order.values())
    order = {"inlined": order.pop("inlined"), "outlined": known["outlined"], **order}
    return tuple(
        re.sub(r"^inlined ", "outlined ", piece, flags=re.MULTILINE) if name in apart else piece
        for name, piece in order.items()
    )


def outlined(text: str, files: tuple[str, ...] = OF_C) -> frozenset[str]:
    """Return the elemental functions that have a body of their own where a text calls them.

    These are those called more than once, by the text or by what it calls, where there are more
    than `INLINED` calls in all: a call compiles in less time than a body. Both are bit-identical,
    as both are the same operations in the same order.
    """
    order: dict[str, str] = {}
    known = pieces(files)
    _collect(text, known, order)
    return _outlined(text, order, known.elemental)


def _outlined(text: str, order: Mapping[str, str], elemental: Set[str]) -> frozenset[str]:
    if not any(name in elemental for name in order):
        return frozenset()
    calls = Counter(_called(text))
    for name, piece in reversed(list(order.items())):  # what calls others comes after them
        bodies = min(calls[name], 1) if name.startswith(_EACH) else calls[name]
        if bodies:
            for other, count in Counter(_called(piece)).items():
                calls[other] += bodies * count if other != name else 0
    found = {name: calls[name] for name in order if name in elemental}
    many = sum(found.values()) > INLINED
    return frozenset(name for name, count in found.items() if many and count > 1)


def _called(text: str) -> Iterator[str]:
    """Yield each name that a text calls, as often as it does."""
    return (found[1] for found in _CALL.finditer(_COMMENT.sub(" ", text)))


def _each(name: str, piece: str) -> str:
    """Return the function that stores an elemental one of each of some elements."""
    found = re.search(rf"^inlined (\w+) {name}\((.*?)\)", piece, re.MULTILINE)
    assert found is not None, f"{name} is not elemental"
    kind, names = found[1], "abc"[: found[2].count(",") + 1]
    given = "".join(f"const {kind} *restrict {one}, " for one in names)
    values = ", ".join(f"{one}[i]" for one in names)
    return (
        "static __attribute__((noinline))\n"
        f"void {_EACH}{name}({kind} *restrict y, {given}int64_t n)\n"
        f"{{\n    for (int64_t i = 0; i < n; i++) y[i] = {name}({values});\n}}\n"
    )


def _collect(text: str, known: Mapping[str, str], order: dict[str, str]) -> None:
    for word in dict.fromkeys(_WORD.findall(_COMMENT.sub(" ", text))):
        if word in known and word not in order:
            piece = known[word]
            others = re.sub(rf"\b{word}\b", " ", piece)
            _collect(others, known, order)
            order[word] = piece


def _named(name: str, words: Mapping[str, str]) -> str:
    """Return a name with its placeholders filled in, of one letter each."""
    first, *others = name.split("$")
    return first + "".join(words[other[0]] + other[1:] for other in others)


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\$(lf|hf|[A-Za-z])", lambda found: words[found[1]], text)


@cache
def _words_of(short: str) -> Mapping[str, str]:
    """Return what stands for each placeholder in a piece for a type, or one of vectors."""
    return _words_of_vector(short) if "x" in short else _words(dtypes.BY_SHORT[short])


def _words(dtype: DType) -> dict[str, str]:
    """Return what stands for each placeholder in a piece for that type."""
    real = dtype.real
    words = {
        "t": dtype.short, "T": _C_TYPES[dtype.short], "b": str(dtype.bits),
        "r": real.short, "R": _C_TYPES[real.short], "f": "f" if real is dtypes.float32 else "",
    }  # fmt: skip
    if dtype.kind == "f":
        digits, bias = (23, 127) if dtype is dtypes.float32 else (52, 1023)
        words |= {"U": f"uint{dtype.bits}_t", "m": str(digits), "e": str(bias)}
    if dtype.kind in "iu":
        signed = dtype.kind == "i"
        above = 2 ** (dtype.bits - signed)
        below = above if signed else 0
        words |= {
            "U": f"uint{dtype.bits}_t",
            "L": f"INT{dtype.bits}_MIN" if signed else "0",
            "H": f"{'' if signed else 'U'}INT{dtype.bits}_MAX",
            "l": f"{'-' if below else ''}{below}.0", "h": f"{above}.0",
        }  # fmt: skip
        words |= {"lf": words["l"] + "f", "hf": words["h"] + "f"}
    return words


_FMA = {
    "f32x4": ("__FMA__", "__builtin_ia32_vfmaddps(a, b, c)"),
    "f32x8": ("__FMA__", "__builtin_ia32_vfmaddps256(a, b, c)"),
    "f32x16": ("__AVX512F__", "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)"),
    "f64x2": ("__FMA__", "__builtin_ia32_vfmaddpd(a, b, c)"),
    "f64x4": ("__FMA__", "__builtin_ia32_vfmaddpd256(a, b, c)"),
    "f64x8": ("__AVX512F__", "__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)"),
}  # fmt: skip
"""What gcc calls the instruction, and where it has it: it has no name for all machines."""
_FIRST = {
    "f32x8": ("__AVX__", "__builtin_ia32_maskloadps256((const f32x8 *)x, before_f32x8(count))"),
    "f32x16": ("__AVX512F__", "__builtin_ia32_loadups512_mask(x, (f32x16){0}, ~(~0ull << count))"),
    "f64x4": (
        "__AVX__",
        "__builtin_ia32_maskloadpd256((const f64x4 *)x, "
        "(__attribute__((vector_size(32))) long long)before_f64x4(count))",
    ),
    "f64x8": ("__AVX512F__", "__builtin_ia32_loadupd512_mask(x, (f64x8){0}, ~(~0ull << count))"),
}
"""The same for what loads some lanes only."""


_SUFFIXES = {"f32x8": "ps256", "f64x4": "pd256"}
"""How gcc's names of instructions for the widest vectors of AVX end."""


def _words_of_vector(short: str) -> dict[str, str]:
    """Return what stands for each placeholder in a piece for that type of vectors."""
    name, _, count = short.partition("x")
    dtype = dtypes.BY_SHORT[name]
    where, call = _FMA.get(short, ("", "c"))
    size = {"v": short, "n": count, "b": str(dtype.itemsize), "B": str(dtype.itemsize * int(count))}
    suffix = _SUFFIXES.get(short, "")
    size |= {"x": suffix, "k": "defined(__AVX__)" if suffix else "0"}
    having, load = _FIRST.get(short, ("", "0"))
    size |= {"K": f"defined({having})" if having else "0", "M": load}
    size["I"] = f"i{dtype.bits}x{count}"
    size["N"] = ", ".join(map(str, range(int(count))))
    return _words(dtype) | size | {"c": f"defined({where})" if where else "0", "F": call}
