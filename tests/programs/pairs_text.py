"""Systematic pairs of what people write: each idiom of `pair_idioms` beside each other.

Two statements that passes treat well alone may fuse, share lanes or share a scratch array where
they stand beside each other. The number of a program decides which two idioms it has, so that a
run over consecutive numbers has all ordered pairs, in an order that mixes them, and each time in
another form: one after the other, in one loop over rows or columns, under a test of what the first
one computed, before a `break`. Which arrays and scalars the second shares with the first, element
types, sizes and layouts are drawn. All arrays are arguments, and all scalars are returned.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace

from .layouts import WRITABLE
from .model import ArgSpec, Program
from .pair_idioms import Idiom, parsed
from .table_idioms import TABLES
from .vector_idioms import VECTORS

IDIOMS = (*parsed(VECTORS, False), *parsed(TABLES, True))

SIZES = (0, 1, 2, 3, 7, 16, 17, 33, 100)
OTHERS = (1, 2, 3, 5, 7, 8, 9)
SQUARES = (1, 2, 3, 4, 7, 8, 9, 16, 17)
DTYPES = (("float64",) * 11 + ("float32",) * 4 + ("int64", "int64", "int32", "uint8", "int16",
          "complex128"))  # fmt: skip
FORMS = ("after", "rows", "around", "columns", "guarded", "after", "broken", "rows", "three",
         "guarded rows", "repeated", "merged columns", "merged", "merged rows")  # fmt: skip
"""How two idioms stand beside each other; in consecutive rounds a pair has consecutive ones."""
START = "    s, t, p, g = 0.0, 1.0, 0, False"
RETURNED = "s, t, p, g"
STEP = 1_000_003
"""A prime, so that its multiples visit all pairs."""
TESTS = {"s": ("s > 0.5", "s < t", "s > 0", "s != 1"), "p": ("p > 1", "p % 2 == 0", "p > 0"),
         "g": ("g", "not g"), "t": ("t > 0", "t > s")}  # fmt: skip
"""Tests of each scalar."""
BETWEEN = (
    "y[:] = y + s", "t = t + s", "s = s + t * 0.5", "z[:] = y", "s = s + p", "w[:] = w - s",
    "y[:] = y * t", "s, t = t, s", "t = max(s, t)", "if g: s = t", "v[:] = y",
)  # fmt: skip
"""What may stand between two idioms, and after them."""
OF_ROWS = ("r[c] = s + t", "r[c] = s", "r[c] = t + p", "r[c] = s + g", "r[c] = r[c] + s")
"""What an iteration over rows stores of its scalars; `r` is `z` over columns."""
ROUNDED = r"\b(exp|sqrt|sin|tanh|std|var|mean|norm)\b|\dj\b"
"""What is not exactly rounded: these functions, and complex numbers."""
LOOP = r"^for pos in range\(len\(v\)\):\n( .*\n?)+\Z"
"""The end of a text that is a loop over a vector."""
MOST = 1200
"""How many elements a table has at most."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an idiom stands: what its vectors and tables may be there, and how far it is in."""

    vectors: tuple[str, ...] = ("v", "w", "y", "z")
    beside: tuple[str, ...] = ()
    """Vectors of the same length that all iterations share."""
    indent: int = 1


TOP = Place()
ROWS = Place(("a[c]", "b[c]", "x[c]", "z"), ("v", "w", "y", "z"), 2)
COLUMNS = Place(("a[:, c]", "b[:, c]", "x[:, c]", "r"), ("r",), 2)


def program(rng: random.Random, number: int) -> Program:
    """Return the program of a number, of which plain Python may make errors."""
    return _Pair(rng, *pair_of(number)).program()


def pair_of(number: int) -> tuple[Idiom, Idiom, str]:
    """Return the two idioms of a number, and the form in which they stand beside each other."""
    rounds, place = divmod(number, len(IDIOMS) ** 2)
    one, other = divmod(place * STEP % len(IDIOMS) ** 2, len(IDIOMS))
    return IDIOMS[one], IDIOMS[other], FORMS[(place + rounds) % len(FORMS)]


@dataclass(slots=True)
class _Pair:
    """A program while it is written."""

    rng: random.Random
    first: Idiom
    second: Idiom
    form: str
    helpers: list[str] = field(default_factory=list)
    serial: int = 0

    def program(self) -> Program:
        """Return the whole program."""
        body = [line for line in self.body() if line.strip()]
        lines = ["def f(v, w, y, z, a, b, x, r, q, mask):", *self.helpers, START, *body]
        text = "\n".join(lines) + f"\n    return {RETURNED}\n"
        text = text.replace("RETURNED", RETURNED)
        main = self.rng.choice(DTYPES)
        if "int" in main and self.rng.random() < 0.8:
            text = _in_integers(text)
        rows, columns = self.sizes(text)
        text = self.with_sizes(text, rows, columns)
        rounds = "complex" in main or re.search(ROUNDED, text) is not None
        return Program(text, self.arguments(main, rows, columns), reorders=True, rounds=rounds,
                       features=frozenset({"pairs"}))  # fmt: skip

    def body(self) -> list[str]:
        """Return the statements in the form of this program."""
        rng, a, b = self.rng, self.first, self.second
        if re.search("rows|columns|broken", self.form):
            return self.in_loop(COLUMNS if "columns" in self.form else ROWS)
        first = self.placed(a, TOP, False)
        if self.form == "merged":
            lines = self.merged(TOP)
        elif self.form == "guarded":
            lines = [*first, *self.under_test(b, TOP, first)]
        elif self.form == "around":
            lines = [*first, *self.between(TOP), *self.placed(b, TOP), *self.placed(a, TOP)]
        elif self.form == "three":
            third = rng.choice(IDIOMS)
            lines = [*first, *self.placed(b, TOP), *self.between(TOP), *self.placed(third, TOP)]
        elif self.form == "repeated":
            inner = [*first, *self.between(TOP), *self.placed(b, TOP)]
            head = f"    for c in range({rng.choice((2, 3, 'len(r)'))}):"
            lines = [head, *("    " + line for line in inner)]
        else:
            lines = [*first, *self.between(TOP), *self.placed(b, TOP)]
        return [*lines, *self.between(TOP)]

    def in_loop(self, place: Place) -> list[str]:
        """Return a loop over rows or columns with both idioms in it."""
        rng, over_rows = self.rng, place is ROWS
        count = "len(a)" if over_rows else "a.shape[1]"
        ranges = (count,) * 8 + (f"{count} - 1", f"{count} - 1, -1, -1", f"1, {count}")
        lines = [f"    for c in range({rng.choice(ranges)}):"]
        if rng.random() < 0.5:
            lines.append("        s = 0.0")
        if rng.random() < 0.2:
            lines.append("        t, p = 1.0, 0")
        lines += self.merged(place) if "merged" in self.form else self.beside(place)
        if rng.random() < 0.7:
            stored = rng.choice(OF_ROWS)
            lines.append("        " + (stored if over_rows else re.sub(r"\br\b", "z", stored)))
        return lines if rng.random() < 0.7 else [*lines, *self.between(TOP)]

    def merged(self, place: Place) -> list[str]:
        """Return one loop over a vector with what both idioms do in theirs; sometimes a third idiom
        comes after it."""
        idioms = (_looping(one, self.rng) for one in (self.first, self.second))
        lines = _in_one_loop(*(self.placed(one, place) for one in idioms))
        after = self.placed(self.rng.choice(IDIOMS), place) if self.rng.random() < 0.4 else []
        return [*lines, *after]

    def beside(self, place: Place) -> list[str]:
        """Return both idioms in an iteration over rows or columns."""
        rng, lines = self.rng, list[str]()
        first = self.placed(self.first, place, False)
        lines += first
        if self.form == "broken":
            jump = rng.choice(("break", "break", "continue"))
            lines.append(f"        if {self.test_of(first)}: {jump}")
        if self.form == "guarded rows":
            lines += self.under_test(self.second, place, first)
        else:
            lines += [*self.between(place), *self.placed(self.second, place)]
        return lines

    def under_test(self, idiom: Idiom, place: Place, before: list[str]) -> list[str]:
        """Return an idiom under a test of what was computed before, sometimes with another side."""
        pad = "    " * place.indent
        inside = ["    " + line for line in self.placed(idiom, place)]
        lines = [f"{pad}if {self.test_of(before)}:", *inside]
        if self.rng.random() < 0.25:
            lines += [f"{pad}else:", f"{pad}    {self.rng.choice(('s = t', 'p = 1', 't = s'))}"]
        return lines

    def test_of(self, lines: list[str]) -> str:
        """Return a test of a scalar that lines assign."""
        assigned = [name for name in "stpg" if re.search(rf"\b{name}\b[^=\n]* \S?= ",
                                                         "\n".join(lines))]  # fmt: skip
        return self.rng.choice(TESTS[self.rng.choice(assigned or ["s", "p"])])

    def between(self, place: Place) -> list[str]:
        """Return a statement that uses what was computed, or none."""
        if self.rng.random() > 0.4:
            return []
        text = self.rng.choice(BETWEEN)
        names = {} if place is TOP else dict(zip("vwyz", place.vectors))
        return ["    " * place.indent + _named(text, names)]

    def placed(self, idiom: Idiom, place: Place, again: bool = True) -> list[str]:
        """Return the lines of an idiom at a place, under names that it shares with others."""
        rng, self.serial = self.rng, self.serial + 1
        names = self.vectors_of(idiom, place, again)
        if again and rng.random() < 0.4:
            names |= {"s": "t", "t": "s"}
        if again and rng.random() < 0.7:
            names |= {name: f"{name}{self.serial}" for name in ("d", "e", "u", "h")}
        if rng.random() < (0.45 if again else 0.15):
            a, b, x = (rng.choice("aabx"), rng.choice("bax"), rng.choice("xxab"))
            names |= {"a": a, "b": b, "x": x}
        lines = _named(rng.choice(idiom.texts), names).split("\n")
        start = next(n for n, line in enumerate(lines) if not line.startswith(("def ", " ")))
        helpers = ["    " + line for line in lines[:start]]
        if not set(helpers) <= set(self.helpers):
            self.helpers += helpers
        return ["    " * place.indent + line for line in lines[start:]]

    def vectors_of(self, idiom: Idiom, place: Place, again: bool) -> dict[str, str]:
        """Return what an idiom's vectors are: mostly its own, often those of the one before."""
        rng, names = self.rng, dict(zip("vwyz", place.vectors))
        v, w, y, z = place.vectors
        if again and rng.random() < 0.6:
            names |= {"v": rng.choice((v, y, y, w, z)), "w": rng.choice((w, v, y)),
                      "y": rng.choice((y, y, z, v, w))}  # fmt: skip
        elif rng.random() < 0.2:
            names["y"] = rng.choice((v, w))  # in place
        if place.beside and rng.random() < 0.4:
            names[rng.choice("wyz" if rng.random() < 0.8 else "v")] = rng.choice(place.beside)
        if place is TOP and rng.random() < 0.14:
            names["v"] = rng.choice(("a[0]", "a[-1]", "x[0]", "q"))
        elif place is TOP and again and not idiom.is_table and rng.random() < 0.1:
            names = {name: other + rng.choice(("[1:]", "[:-1]")) for name, other in names.items()}
        return {} if idiom.is_table and place is TOP and not again else names

    def sizes(self, text: str) -> tuple[int, int]:
        """Return how many rows and columns a program has, a square where it needs one."""
        rng = self.rng
        square = self.first.is_square or self.second.is_square or "three" in self.form
        over_columns = ":, c]" in text and re.search(r"\b(q|mask)\b", text) is not None
        if square or over_columns or rng.random() < 0.3:
            size = rng.choice(SQUARES)
            return size, size
        columns = rng.choice(SIZES)
        rows = rng.choice(OTHERS)
        return (rows, columns) if rows * columns <= MOST else (2, columns)

    def with_sizes(self, text: str, rows: int, columns: int) -> str:
        """Return a text with numbers for some of its sizes."""
        sizes = {r"len\([vwyz]\)|\b[abx]\.shape\[1\]": columns, r"len\([abxr]\)": rows}
        for pattern, size in sizes.items():
            if self.rng.random() < 0.3:
                text = re.sub(pattern, str(size), text)
        return text

    def arguments(self, main: str, rows: int, columns: int) -> tuple[ArgSpec, ...]:
        """Return the arrays, mostly of one type."""
        rng, specs = self.rng, list[ArgSpec]()
        shapes = {"v": (columns,), "w": (columns,), "y": (columns,), "z": (columns,),
                  "a": (rows, columns), "b": (rows, columns), "x": (rows, columns),
                  "r": (rows,)}  # fmt: skip
        mixed, kind = rng.random() < 0.15, "wild" if rng.random() < 0.08 else "exact"
        for name, shape in shapes.items():
            dtype = rng.choice(DTYPES[:-1]) if mixed and name in "wbz" else main
            layout = rng.choice(WRITABLE) if rng.random() < 0.12 else "C"
            specs.append(ArgSpec(name, dtype, shape, kind, layout, rng.randrange(2**31)))
        integers, seed = rng.choice(("int64", "int64", "int32")), rng.randrange(2**31)
        specs.append(ArgSpec("q", integers, (columns,), f"index:{columns}", seed=seed))
        specs.append(ArgSpec("mask", "bool", (columns,), seed=rng.randrange(2**31)))
        return tuple(specs)


def _looping(idiom: Idiom, rng: random.Random) -> Idiom:
    """Return an idiom in those of its texts that end with a loop over a vector; another idiom
    where there is none."""
    while True:
        texts = tuple(text for text in idiom.texts if re.search(LOOP, text, re.MULTILINE))
        if texts:
            return replace(idiom, texts=texts)
        idiom = rng.choice(IDIOMS)


def _in_one_loop(first: list[str], second: list[str]) -> list[str]:
    """Return the lines of two idioms that end with a loop, as one loop with both bodies."""
    one, other = (
        next(n for n, line in enumerate(lines) if line.lstrip().startswith("for pos "))
        for lines in (first, second)
    )
    return [*first[:one], *second[:other], *first[one:], *second[other + 1 :]]


def _in_integers(text: str) -> str:
    """Return a text whose constants are integers, so that arrays of those can hold the values."""
    for factor, divisor in (("0.5", "2"), ("0.25", "4")):
        text = text.replace(f"* {factor}", f"// {divisor}").replace(f"{factor} *", f"{divisor} *")
    return re.sub(r"\b(\d)\.0\b", r"\1", text)


def _named(text: str, names: dict[str, str]) -> str:
    """Return a text with other names, and subscripts of rows written as those of the table."""
    if names:
        text = re.sub(r"(?<![.\w])[a-z]\b(?!=)", lambda m: names.get(m[0], m[0]), text)
    inner = r"((?:[^\[\]]|\[[^\[\]]*\])*)"
    text = re.sub(r"len\(([abx])\[(?:c|0|-1)\]\)", r"\1.shape[1]", text)
    text = re.sub(r"len\(([abx])\[:, c\]\)", r"len(\1)", text)
    text = re.sub(rf"\b([abx])\[(c|0|-1)\]\[{inner}\]", r"\1[\2, \3]", text)
    return re.sub(rf"\b([abx])\[:, c\]\[{inner}\]", r"\1[\2, c]", text)
