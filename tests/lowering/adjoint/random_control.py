"""Random programs of control flow: loops that end early, `while`, early returns, extremes, sorts.

Their parameters are a matrix `a` of one size and vectors `x` and `y` of the same one, 3 at least;
what they return is one number.
"""

from __future__ import annotations

import random

from tests.programs.model import ArgSpec, Program

SIZED = "sized"
"""The feature of programs that can be called with arrays of other sizes."""
_RANGES = ("range(3)", "range(4, 0, -1)", "range(0)", "range(1)", "range(2, -1, -2)",
           "range(len(x))", "range(len(y) - 1, -1, -1)", "range(1, len(x), 2)")  # fmt: skip
_CURVES = ("np.sin({})", "np.tanh({})", "np.exp(-({}) ** 2)", "np.sqrt(1.5 + np.cos({}))",
           "np.abs({} + 0.1j * r)", "({} + 1j * s).imag", "np.arctan2({}, 1.3)",
           "np.log1p(np.abs({}))", "({}) / (1.2 + s * s)",
           "({} if s < r else 0.7 * r)")  # fmt: skip
_ARRAY_CURVES = ("np.sin({})", "np.exp(-({}) ** 2)", "({}) ** 2", "np.where({} > 0.4, x, 0.3)",
                 "np.sqrt(1.0 + ({}) ** 2)", "({}) / (1.1 + np.sum(y * y))", "({})[::-1]",
                 "np.abs({})")  # fmt: skip
_REDUCED = ("max", "min", "sum", "prod", "mean", "median")


def program(rng: random.Random) -> Program:
    """Return a program, of which Python or the language may refuse some."""
    lines = _Control(rng).lines()
    text = "\n".join(("def f(a, x, y):", *(f"    {line}" for line in lines), ""))
    shapes = {"a": (3, 3), "x": (3,), "y": (3,)}
    seed = rng.randrange(2**30)
    specs = tuple(
        ArgSpec(n, "float64", s, seed=seed + at) for at, (n, s) in enumerate(shapes.items())
    )
    return Program(text, specs, features=frozenset({SIZED}))


class _Control:
    """A program while it is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0
        self.around: list[str] = []
        """The variables of the loops around."""

    def lines(self) -> list[str]:
        """Return all lines of the body."""
        first = ["s = 0.4", "r = 0.2", "k = 1"]
        body = self.block(0, self.rng.randrange(3, 7))
        return [*first, *body, "return s + r + np.sum(x * y) + np.sum(a * a)"]

    def at(self) -> str:
        """Return a subscript."""
        pick = self.rng.randrange(5)
        if pick == 0 or not self.around:
            return str(self.rng.randrange(3))
        return (
            "k % 3"
            if pick == 1
            else f"{self.rng.choice(self.around)} % {'3' if pick < 4 else 'len(x)'}"
        )

    def number(self, depth: int = 3) -> str:
        """Return the text of a number."""
        rng = self.rng
        pick = rng.randrange(6 if depth == 0 else 10)
        if pick < 2:
            return "sr"[pick]
        if pick < 5:
            at = self.at()
            return (f"x[{at}]", f"y[{at}]", f"a[{at}, {self.at()}]")[pick - 2]
        if pick == 5:
            return str(rng.choice((0.3, 0.7, 1.1, -0.4)))
        inside = self.number(depth - 1)
        if pick < 8:
            return rng.choice(_CURVES).format(inside)
        return f"({inside} {rng.choice('*+-')} {self.number(depth - 1)})"

    def array(self, depth: int = 3) -> str:
        """Return the text of a vector."""
        rng = self.rng
        pick = rng.randrange(4 if depth == 0 else 10)
        if pick < 4:
            return ("x", "y", f"a[{self.at()}]", f"a[:, {self.at()}]")[pick]
        inside = self.array(depth - 1)
        if pick == 4:
            return f"({inside} * {self.number(1)})"
        if pick == 5:
            return rng.choice((f"np.sort({inside})", f"(a @ {inside})", f"np.cumsum({inside})"))
        if pick < 8:
            return rng.choice(_ARRAY_CURVES).format(inside)
        other = self.array(depth - 1)
        form = rng.choice(("({} + {})", "({} * {})", "np.maximum({}, {})", "np.fmin({}, {})"))
        return form.format(inside, other)

    def test(self) -> str:
        """Return a test."""
        rng = self.rng
        pick = rng.randrange(6)
        if pick == 0:
            return f"k % 2 == {rng.randrange(2)}"
        if pick == 1:
            return f"s > {rng.choice((0.2, 0.6, 1.0))}"
        if pick == 2 and self.around:
            return f"{rng.choice(self.around)} > {rng.randrange(3)}"
        if pick == 3:
            return f"np.sum(x) > {self.number(1)}"
        return f"{self.number(1)} < {self.number(1)}"

    def block(self, depth: int, count: int) -> list[str]:
        """Return the lines of some statements."""
        return [line for _ in range(count) for line in self.statement(depth)]

    def inside(self, depth: int, most: int, variable: str = "") -> list[str]:
        """Return an indented block, of a loop that has a variable."""
        self.around += [variable] if variable else []
        lines = self.block(depth + 1, self.rng.randrange(1, most))
        if variable:
            self.around.pop()
        return [f"    {line}" for line in lines]

    def statement(self, depth: int) -> list[str]:
        """Return the lines of a statement."""
        rng = self.rng
        pick = rng.randrange(20)
        if pick < 12 or depth > 2:
            return [self.simple()]
        if pick < 14:
            lines = [f"if {self.test()}:", *self.inside(depth, 3)]
            return [*lines, "else:", *self.inside(depth, 3)] if rng.random() < 0.5 else lines
        if pick < 16:
            name = self.new("t")
            ranges = (*_RANGES, *(f"range({v})" for v in self.around))
            return [f"for {name} in {rng.choice(ranges)}:", *self.inside(depth, 5, name)]
        if pick == 16:
            name = self.new("n")
            head = f"while {name} < {rng.randrange(5)} and {self.test()}:"
            return [f"{name} = 0", head, f"    {name} += 1", *self.inside(depth, 4, name)]
        if pick < 19 and self.around:
            return [f"if {self.test()}:", "    " + rng.choice(("break", "continue"))]
        if rng.random() < 0.4:
            return [f"if {self.test()}:", f"    return s + np.sum(x * y) * {self.number(1)}"]
        return ["r = r * s + 0.1"]

    def new(self, prefix: str) -> str:
        """Return a name that nothing has yet."""
        self.names += 1
        return f"{prefix}{self.names}"

    def simple(self) -> str:
        """Return a statement without others in it."""
        rng = self.rng
        pick, at = rng.randrange(16), self.at()
        if pick < 3:
            return f"s = np.tanh({self.number()} + 0.5 * s)"
        if pick < 9:
            return (
                f"r = {self.number()} * 0.5 + r * 0.3",
                f"x = np.tanh({self.array()})",
                f"y[{at}] = np.sin({self.number()})",
                f"a[{at}] *= np.cos({self.array()})",
                "k = k + 1",
                f"x[:] = {self.array()} * 0.5",
            )[pick - 3]
        if pick == 9:
            return f"m[i] = max[j](a[i, j] * x[j]); s = s + 0.1 * m[{at}]"
        if pick == 10:
            return "x, y = y, x" if rng.random() < 0.3 else f"y += 0.1 * {self.array()}"
        if pick == 11:
            return f"a[i, j] += 0.1 * x[i] * y[j] / (1.0 + {self.number(1)} ** 2)"
        if pick == 12:
            return f"z = x[:k % 3 + 1] * {self.number(1)}; s = s + 0.1 * np.sum(z * z)"
        if pick == 13:
            return f"if i > {rng.randrange(2)}: x[i] = 0.5 * x[i - 1] + y[i]"
        return f"s = s * 0.5 + np.{rng.choice(_REDUCED)}({self.array()}) * 0.2"
