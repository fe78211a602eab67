"""Functions for attacks on the persistent cache: texts with holes, and values of all kinds.

A template is a text with names `K0`, `K1`, ... that it captures and parameters that it is called
with; `POOLS` holds the expressions that either may be. Nothing here runs anything.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

PRELUDE = """
import dataclasses, enum, functools, math, sys, types, typing
import numpy as np
from plusequals import cd

class Color(enum.Enum):
    RED = 1
    BLUE = 2.5

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3

class Point(typing.NamedTuple):
    a: object
    b: object

@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: object = 2

@dataclasses.dataclass
class Loose:
    a: object
    b: object = 2

class Plain:
    def __init__(self, a, b=2):
        self.a, self.b = a, b

def frozen(array):
    array.flags.writeable = False
    return array

def config(**names):
    made = sys.modules[__name__ + "_config"] = types.ModuleType(__name__ + "_config")
    made.__dict__.update(names)
    return made

def scaler(by):
    def scaled(v, plus=by):
        return v * by + plus
    return scaled

def nested(one):
    def outer(two):
        def inner(v):
            return v * one - two
        return inner
    return outer

def plain(v):
    return v + 1

def with_default(v, by=2.0, *, plus=1):
    return v * by + plus

compiled = cd(plain)
same = lambda v: v
twice = lambda v, k=2: v * k
doubled = lambda v, k=2.0: v * k
gone = lambda v, k=-0.0: v * k
zero = lambda v, k=0.0: v * k
added = lambda v, *, k=np.arange(4.0): v + k
through = lambda v, g=plain: g(v)
tripled = cd(lambda v: v * 3)
"""

POOLS: dict[str, Sequence[str]] = {
    "number": (
        "0", "1", "2", "3", "-1", "7", "True", "False", "0.0", "-0.0", "1.0", "2.5", "-3.5",
        "float('nan')", "-float('nan')", "float('inf')", "2**31", "2**40", "2**62", "2**63",
        "2**64", "np.float64(2.5)", "np.float64(3.5)", "np.float32(2.5)", "np.float16(2.5)",
        "np.int8(3)", "np.uint8(200)", "np.int16(-3)", "np.uint32(7)", "np.int64(3)",
        "np.int64(2)", "np.uint64(2**63)", "np.bool_(True)", "1+2j", "complex(0, -0.0)",
        "complex(-0.0, 0)", "np.complex64(1-2j)", "np.complex128(2j)", "np.longlong(3)",
    ),
    "real": (
        "0", "1", "2", "3", "-1", "True", "False", "0.0", "-0.0", "1.0", "2.5", "3.5", "-3.5",
        "float('nan')", "float('inf')", "2**40", "np.float64(2.5)", "np.float64(3.5)",
        "np.float32(2.5)", "np.float32(3.5)", "np.int8(3)", "np.int64(3)", "np.int64(2)",
        "np.uint8(5)", "np.bool_(False)", "np.float64(-0.0)",
    ),
    "count": ("0", "1", "2", "3", "4", "True", "np.int64(2)", "np.int64(3)", "np.int32(2)",
              "np.uint8(1)", "Level.LOW", "Level.HIGH"),
    "many": ("0", "1", "2", "3", "4", "5", "6", "-1"),
    "pairs": tuple(f"({n}, {n % 3})" for n in range(6)),
    "divisor": ("1", "2", "4", "np.int64(2)", "np.int64(4)", "np.int32(2)", "True", "-1"),
    "array": (
        "np.arange(4.0)", "np.arange(1.0, 5.0)", "np.arange(8.0)[::2]", "np.arange(4.0)[::-1]",
        "np.arange(4)", "np.arange(4, dtype='f4')", "np.arange(4, dtype='u1')",
        "np.arange(8.0).reshape(4, 2).T[1]", "frozen(np.arange(4.0))",
        "np.arange(4.0).astype('>f8')", "np.array([True, False, True, False])",
        "np.array([0.0, -0.0, np.nan, np.inf])", "np.arange(4) * 1j",
        "np.arange(33, dtype='u1')[1:].view('f8')",
    ),
    "any_array": (
        "np.array(2.0)", "np.array(3)", "np.arange(4.0)", "np.ones((1,))", "np.arange(4)[::-1]",
        "np.arange(8.0).reshape(2, 4)", "np.arange(8.0).reshape(2, 4)[:, ::-1]",
        "np.arange(8.0).reshape(4, 2).T", "np.float64(1.5)", "2.5", "3", "np.zeros((0, 4))",
        "np.arange(4, dtype='f2')", "np.array(True)",
    ),
    "alias": ("K0", "K0[::-1]", "K0[:]", "np.arange(4.0)", "K0.copy()", "K0.view()"),
    "optional": ("None", "1", "2.0", "-0.0", "np.arange(4.0)", "np.float32(3)", "0", "False"),
    "text": ("'a'", "'b'", "'max'", "''", "'\\u00e9'", "None", "'a' 'b'", "b'a'", "np.str_('a')"),
    "tuple": (
        "(1, 2)", "(1.0, 2)", "(1, 2.0)", "(True, 2)", "(2, 1)", "(1, 2, 3)", "(-0.0, 0.0)",
        "(0.0, -0.0)", "((1, 2), 3)", "[1, 2]", "[1.0, 2]", "Point(1, 2)", "Point(1.0, 2)",
        "(np.float32(1), 2)", "(np.arange(4.0), 2)", "(np.int64(1), np.int8(2))", "range(1, 3)",
    ),
    "object": (
        "Point(1, 2)", "Point(1.5, 2)", "Point(np.arange(4.0), 2)", "Frozen(1, 2)", "Frozen(2.5)",
        "Frozen(np.float32(1))", "Loose(1)", "Loose(2.5, -1)", "Loose(np.arange(4.0))", "Plain(1)",
        "Plain(2.5)", "Plain(True, np.int64(3))", "config(a=1, b=2)", "config(a=2.5, b=2)",
        "config(a=np.arange(4.0), b=-0.0)", "Frozen(3, 0.0)", "Frozen(3, -0.0)",
    ),
    "enum": ("Color.RED", "Color.BLUE", "Level.LOW", "Level.HIGH", "1", "2.5", "None"),
    "dtype": ("np.float32", "np.dtype('f4')", "'f4'", "np.int32", "'i8'", "float", "int", "bool",
              "np.dtype('>f8')", "np.float64", "np.complex64", "'>i2'", "np.longlong"),
    "function": (
        "plain", "compiled", "with_default", "scaler(2)", "scaler(2.5)", "scaler(np.float32(2))",
        "nested(2)(1)", "nested(2.5)(1)", "nested(2)(1.0)", "same", "twice", "doubled",
        "gone", "zero", "added",
        "np.square", "np.negative", "abs", "functools.partial(with_default, by=3)", "np.abs",
        "functools.partial(with_default, plus=2.5)", "tripled", "np.add.reduce", "through",
    ),
    "slice": ("slice(None)", "slice(1, 3)", "slice(None, None, 2)", "slice(None, None, -1)", "1",
              "2", "-1", "np.int64(1)", "None", "...", "np.array([0, 2])", "[0, 2]", "(0,)"),
}  # fmt: skip


class Template(NamedTuple):
    """A function `f`: its text, the pools of its parameters by name, and of what it captures."""

    text: str
    given: dict[str, str]
    captured: tuple[str, ...] = ()


def _t(text: str, captured: str = "", **given: str) -> Template:
    return Template(text, given, tuple(captured.split()))


TEMPLATES = (
    _t("def f(x, k):\n    return x * k", x="array", k="number"),
    _t("def f(v):\n    if v < 0:\n        return 0.0\n    return v * 10", v="real"),
    _t("def f(x, k):\n    if k > 2:\n        return x * k\n    return x - k", x="array", k="real"),
    _t("def f(r, h):\n    if r <= 0:\n        raise ValueError('r')\n    return r * r * h",
       r="real", h="real"),
    _t("def f(a, *, by=K0):\n    if by == 0:\n        return 0.0\n    return a + by",
       "real", a="real", by="real"),
    _t("def f(x, n):\n    return x.reshape(n, -1)", x="array", n="divisor"),
    _t("def f(x, n):\n    return x[:n].sum() + np.zeros(n).size", x="array", n="count"),
    _t("def f(x, n):\n    s = 0.0\n    for i in range(n):\n        s += x[i] * i\n    return s",
       x="array", n="count"),
    _t("def f(x, k):\n    return (x + 0) ** k", x="array", k="count"),
    _t("def f(x):\n    return x * K0 + K1", "number number", x="array"),
    _t("def f(x, k=K0):\n    return x + k, K1", "number number", x="any_array", k="number"),
    _t("def f(x):\n    return np.copysign(x, K0), K0", "real", x="array"),
    _t("def f(x, o=K0):\n    if o is None:\n        return x\n    return x + o",
       "optional", x="array", o="optional"),
    _t("def f(x):\n    y = x if K0 is None else x * K0\n    return y + 1", "optional", x="array"),
    _t("def f(x, how):\n    if how == K0:\n        return np.max(x)\n    return x + len('' if "
       "how is None else how)", "text", x="array", how="text"),
    _t("def f(x):\n    return x * K0[0] + K0[1] * len(K0)", "tuple", x="array"),
    _t("def f(x, t):\n    return x * t[0] + t[1] * len(t)", x="array", t="tuple"),
    _t("def f(x):\n    for k in K0:\n        x = x + k\n    return x", "tuple", x="array"),
    _t("def f(x):\n    return x * K0.a + K0.b", "object", x="array"),
    _t("def f(x, o):\n    return x * o.a + o.b", x="array", o="object"),
    _t("def f(x):\n    if K0 is Color.RED or K0 == 1:\n        return x\n    return -x",
       "enum", x="array"),
    _t("def f(x, e):\n    return x if e == K0 else x * 2", "enum", x="array", e="enum"),
    _t("def f(x):\n    return x[:2].astype(K0)", "dtype", x="array"),
    _t("def f(x, t):\n    return np.zeros(3, t) + x[0]", x="array", t="dtype"),
    _t("def f(x):\n    return K0(x)", "function", x="array"),
    _t("def f(x):\n    return K0(x) + K1(x)", "function function", x="array"),
    _t("def f(x, g):\n    return g(x) * 2", x="array", g="function"),
    _t("def f(x):\n    return x[K0]", "slice", x="array"),
    _t("def g(v, by=K0):\n    return v * by + K1\ndef f(x):\n    return g(x) - g(x, 2)",
       "number number", x="array"),
    _t("def g(v, by=K0):\n    return v * by\ndef h(v, *, by=K1):\n    return g(v) + by\n"
       "def f(x):\n    return h(x) - h(x, by=1)", "real real", x="array"),
    _t("def make(a, b):\n    def one(v):\n        return v * a\n    def f(x):\n"
       "        return one(x) + b\n    return f\nf = make(K0, K1)", "number number", x="array"),
    _t("def make(a):\n    def middle(b):\n        def f(x):\n            if a is None:\n"
       "                return x * b\n            return x + a - b\n        return f\n"
       "    return middle\nf = make(K0)(K1)", "optional number", x="array"),
    _t("def f(x):\n    K0[:] = x + K1", "any_array number", x="array"),
    _t("def f(x):\n    K0[:] = x[::-1] + K1\n    return x + K0", "array real", x="alias"),
    _t("def f(x, y):\n    x[:] = y[::-1] + x * K0\n    return K1", "real number",
       x="array", y="array"),
    _t("def f(x):\n    return x if isinstance(K0, int) else x * 2, K0", "number", x="array"),
    _t("def f(x, y):\n    return np.add(x, y), x.ndim, y.shape, x.dtype == np.float64",
       x="any_array", y="any_array"),
    _t("def f(a, b):\n    return a + b, a * b", a="number", b="number"),
    _t("def f(x, a, b):\n    return x * a if b else a * x * 2", x="array", a="number", b="real"),
    _t("def f(x):\n    y = np.zeros(4)\n    y[i] = x[i] * K0 + K0\n    return y", "real",
       x="array"),
    _t("def f(x, k):\n    t = x + C\n    if k == 0:\n        t = t * 2\n    return t", x="array",
       k="count"),
    _t("def f(x, n):\n    if n > 3:\n        return x * 2\n    return x", x="array", n="many"),
    _t("def f(x, n):\n    return x[:n], x[n:], x[::n or 1]", x="array", n="many"),
    _t("def f(x, *, n):\n    return np.stack([x * k for k in range(n + 1)] + [x])", x="array",
       n="many"),
    _t("def f(x, n):\n    return np.roll(x, n), np.linspace(0, 1, n * n), np.arange(n)", x="array",
       n="many"),
    _t("def f(x, n):\n    y = x + 0\n    y[:n] = 1\n    return y if n % 2 else y.reshape(2, -1)",
       x="array", n="many"),
    _t("def f(x, t):\n    return x[: t[0]] * t[1]", x="array", t="pairs"),
    _t("def f(x, n, m):\n    return x * 2 if n > m else x[:m]", x="array", n="many", m="many"),
)  # fmt: skip


class Program(NamedTuple):
    """A template with a constant of its text drawn; the name of its module."""

    name: str
    template: Template
    constant: str

    def text(self, captured: Sequence[str]) -> str:
        """Return its module, where what is captured has those values."""
        names = "".join(f"K{at} = {one}\n" for at, one in enumerate(captured))
        return f"{PRELUDE}\nC = {self.constant}\n{names}\n{self.template.text}\nc = cd(f)\n"


class Call(NamedTuple):
    """What is captured from now on, and what the function is called with: expressions."""

    captured: tuple[str, ...]
    given: dict[str, str]
    is_new: bool
    """Whether the module is imported again before, as by a new process."""


def draw(rng: random.Random, number: int) -> Program:
    """Return a program."""
    template = TEMPLATES[number % len(TEMPLATES)]
    return Program(f"attacked_{number}", template, rng.choice(("1", "2.5", "np.arange(4)")))


def draw_calls(rng: random.Random, program: Program, count: int) -> list[Call]:
    """Return calls of a program, whose values come from a few, so that they come again."""
    pools = {name: _few(rng, pool) for name, pool in program.template.given.items()}
    around = [_few(rng, pool) for pool in program.template.captured]
    calls = []
    captured = tuple(rng.choice(pool) for pool in around)
    many = not {"many", "pairs"}.isdisjoint(program.template.given.values())
    for _ in range(count):
        is_new = rng.random() < (0.1 if many else 0.4)  # that numbers came in many values is kept
        if rng.random() < 0.5:
            captured = tuple(rng.choice(pool) for pool in around)
        calls.append(
            Call(captured, {name: rng.choice(pool) for name, pool in pools.items()}, is_new)
        )
    return calls


def _few(rng: random.Random, pool: str) -> Sequence[str]:
    known = POOLS[pool]
    if pool in ("many", "pairs"):
        return known
    return [rng.choice(known) for _ in range(rng.randint(2, 5))]
