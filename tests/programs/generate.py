"""A random program from a source of random numbers."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np

from . import (
    carried_text,
    flow_text,
    nested_text,
    pairs_text,
    python_text,
    scratch_text,
    statements,
)
from .layouts import READABLE
from .model import ArgSpec, Program
from .writer import Refused, Writer

NOTATIONS = ("array", "index", "mixed")
SIZED = ("nest", "large")
"""Nests with scratch arrays, small ones and large ones."""
KINDS = (*NOTATIONS, *SIZED, "python", "flow", "nested", "carried", "pairs")
DTYPES = ("float64",) * 6 + ("float32", "int64", "int64", "int32", "bool", "uint8", "int8",
          "int16", "uint32", "uint64", "uint16", "complex128", "complex64")  # fmt: skip
SIZES = (3, 4, 2, 5, 1, 3, 4, 3, 7, 0, 4, 9, 17)
EVEN = (3, 4, 5, 6, 7, 9, 11, 17)
"""Sizes at which a C compiler makes vectors."""

BESIDE = ("bool", "float32", "int32", "int64", "uint8", "float64")
"""Types of arrays beside others of one type."""

CURVES = ("exp", "sin", "cos", "tanh", "log1p", "arctan", "cbrt", "exp2", "expm1", "sinh", "log",
          "log2", "arcsinh", "log10", "cosh", "tan")  # fmt: skip


def generate(
    rng: random.Random, kind: str | None = None, dynamic: bool = False, number: int = 0
) -> Program:
    """Return a program of a kind, one of `NOTATIONS` if none is given.

    A `dynamic` one is short, and its text uses sizes and integers that only a call knows. Its
    number decides which pair of idioms a program of `pairs` has.
    """
    while True:
        try:
            chosen = kind or rng.choice((*NOTATIONS, "python") if dynamic else NOTATIONS)
            if chosen == "python":
                made = python_text.program(rng, dynamic)
                return _with_owner(rng, made) if dynamic else made
            if chosen == "flow":
                return flow_text.program(rng)
            if chosen == "nested":
                return nested_text.program(rng)
            if chosen == "carried":
                return carried_text.program(rng)
            if chosen == "pairs":
                return pairs_text.program(rng, number)
            if chosen in SIZED:
                return scratch_text.program(rng, large=chosen == "large")
            return _program(rng, chosen, dynamic)
        except Refused:
            continue


def arguments(rng: random.Random, tier: str) -> list[ArgSpec]:
    """Return two to four arrays of shapes that go together, an index array, and numbers."""
    if rng.random() < 0.4:
        return _even(rng, tier)
    sizes = [rng.choice(SIZES) for _ in range(2)]
    shapes = [(sizes[0],), (sizes[1],), tuple(sizes), tuple(sizes[::-1]), (sizes[0], sizes[0]), (),
              (2, *sizes), (1, sizes[1])]  # fmt: skip
    main = rng.choice(DTYPES)
    specs: list[ArgSpec] = []
    for name in "abcd"[: rng.randrange(2, 5)]:
        dtype = main if rng.random() < 0.7 else rng.choice(DTYPES)
        shape = rng.choice(shapes[:5] if rng.random() < 0.85 else shapes)
        kind = "exact" if tier == "E" else "wild"
        layout = rng.choice(READABLE) if rng.random() < 0.5 else "C"
        specs.append(ArgSpec(name, dtype, shape, kind, layout, rng.randrange(2**31)))
    if rng.random() < 0.3:
        size = max(min(sizes), 1)
        shape = (rng.choice(sizes),)
        specs.append(ArgSpec("idx", rng.choice(("int64", "int32", "uint8")), shape,
                             f"index:{size}", "C", rng.randrange(2**31)))  # fmt: skip
    if rng.random() < 0.3:
        specs.append(ArgSpec("p", "int", (), str(rng.randrange(-3, 5))))
    if rng.random() < 0.3:
        specs.append(ArgSpec("q", "float", (), rng.choice(("0.5", "-1.5", "2.0", "0.0"))))
    return specs


def _even(rng: random.Random, tier: str) -> list[ArgSpec]:
    """Return arrays of mostly one type and of mostly one shape: what vectors are made of."""
    dtype, sizes = rng.choice(DTYPES), (rng.choice(EVEN), rng.choice(EVEN))
    return [
        ArgSpec(
            name, dtype if rng.random() < 0.85 else rng.choice(BESIDE),
            sizes if rng.random() < 0.8 else sizes[1:],
            "exact" if tier == "E" else "wild", rng.choice(READABLE) if rng.random() < 0.1 else "C",
            rng.randrange(2**31),
        )
        for name in "abcd"
    ]  # fmt: skip


def _program(rng: random.Random, kind: str, dynamic: bool) -> Program:
    tier = rng.choice("EES")
    w = Writer(rng, tier, dynamic=dynamic)
    given = arguments(rng, tier)
    w.start(_aliased(rng, _numbers(rng, given) if dynamic else given))
    w.notation = kind
    for _ in range(rng.randrange(1, 4) if dynamic else rng.randrange(3, 11)):
        statements.attempt(w, statements.simple)
    w.lines.append("    return " + _returned(w))
    w.replay_body()
    rounds = w.rounds or any(np.dtype(s.dtype).kind == "c" for s in w.args if s.is_array)
    rounds |= any("linalg.norm" in line for line in w.lines)
    if w.chance(0.2):
        w.args = [_beyond(spec) for spec in w.args]
    if dynamic and not re.search(r"\b[pr]\b", "\n".join(w.lines)) and w.chance(0.8):
        raise Refused  # rather one that depends on an integer
    outside = _captured(w) if dynamic else frozenset()
    text = head(w, outside) + "\n".join(w.lines) + "\n"
    features = frozenset(w.features | {kind})
    made = Program(text, tuple(w.args), tier, w.reorders, rounds, features, captured=outside)
    for name in sorted(outside):
        made = _renamed(made, name, name.upper())  # which is no index letter
    return _with_owner(rng, made) if dynamic and kind == "array" else made


def _with_owner(rng: random.Random, program: Program) -> Program:
    """Return the program with some of its arguments in attributes of an object, sometimes."""
    if rng.random() < 0.7:
        return program
    views = {name for spec in program.args if spec.view for name in (spec.name, spec.view[0])}
    owned = [
        spec.name for spec in program.args
        if spec.name not in views | program.captured and rng.random() < 0.5
    ]  # fmt: skip
    _, text = program.text.split("\n", 1)
    owned = [one for one in owned if not re.search(rf"\b{one}(, \w+)* \W{{0,2}}= ", text)]
    for name in owned:
        text = re.sub(rf"\b{name}\b", f"own.{name}", text)
    around = {*owned, *program.captured}
    names = [spec.name for spec in program.args if spec.name not in around]
    head = f"def f({', '.join([*names, *(['own'] if owned else [])])}):"
    return replace(program, text=f"{head}\n{text}", owned=frozenset(owned))


def _renamed(program: Program, name: str, other: str) -> Program:
    """Return the program with another name of an argument."""
    args = tuple(replace(one, name=other) if one.name == name else one for one in program.args)
    text = re.sub(rf"\b{name}\b", other, program.text)
    return replace(program, text=text, args=args, captured=program.captured - {name} | {other})


def _numbers(rng: random.Random, given: list[ArgSpec]) -> list[ArgSpec]:
    """Return the arguments with numbers among them."""
    arrays = [spec for spec in given if spec.name not in ("p", "q")]
    numbers = [ArgSpec(name, "int", (), str(rng.randrange(-1, 5))) for name in "pr"]
    if rng.random() < 0.4:
        numbers.append(ArgSpec("q", "float", (), rng.choice(("0.5", "-1.5", "2.0"))))
    return [*arrays, *numbers]


def _captured(w: Writer) -> frozenset[str]:
    """Return names of arguments that are none, but names of the module."""
    if w.chance(0.6):
        return frozenset()
    bases = {name for spec in w.args if spec.view for name in (spec.name, spec.view[0])}
    written = set(re.findall(r"\b(\w+)[^\w=<>!]*(?:\[.*\])? (?:\W{1,2})?= ", "\n".join(w.lines)))
    names = (spec.name for spec in w.args if spec.name not in bases | written)
    return frozenset(name for name in names if w.chance(0.3))


def _aliased(rng: random.Random, specs: list[ArgSpec]) -> list[ArgSpec]:
    """Return the arguments, sometimes with one more that is part of another."""
    arrays = [s for s in specs if s.shape and s.layout not in ("zero", "readonly", "swapped")]
    if not arrays or rng.random() > 0.12:
        return specs
    base = rng.choice(arrays)
    part = rng.choice(("", "[1:]", "[::-1]", "[:-1]", "[::2]"))
    return [*specs, ArgSpec("z", base.dtype, base.shape, view=(base.name, part))]


def _beyond(spec: ArgSpec) -> ArgSpec:
    """Return an argument whose indices may be too large, so that checks fail."""
    if not spec.kind.startswith("index:"):
        return spec
    return replace(spec, kind=f"index:{int(spec.kind[6:]) + 2}")


def head(w: Writer, captured: frozenset[str] = frozenset()) -> str:
    """Return the first line."""
    return f"def f({', '.join(spec.name for spec in w.args if spec.name not in captured)}):\n"


def _curved(w: Writer, name: str) -> str:
    """Return a name, or sometimes a function of its values that is not exactly rounded."""
    value = w.env[name]
    if w.chance(0.9) or np.result_type(value).kind != "f" or np.result_type(value).itemsize < 4:
        return name
    w.rounds = True
    return f"np.{w.rng.choice(CURVES)}({name})"


def _returned(w: Writer) -> str:
    names = [n for n in w.env if n[0] in "vs" and n[1:].isdigit()]
    names += [n for n in w.arrays() if n in "abcdz" and w.chance(0.1)]
    kept = [_curved(w, n) for n in names if w.chance(0.8)]
    if not kept:
        return "0"
    return kept[0] if len(kept) == 1 and w.chance(0.5) else ", ".join(kept) + ","
