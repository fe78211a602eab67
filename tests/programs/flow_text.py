"""Random programs about which write comes before a read: branches, loops and partly filled locals.

Few texts of tests and of subscripts occur again and again, before and after what changes their
values, in branches side by side and inside of each other, and locals are filled in parts: at the
last iteration's element, on one side of a branch, up to a bound that data has.
"""

from __future__ import annotations

import random

from .model import ArgSpec, Program
from .statement_writer import StatementWriter

N = 6
"""The length of all arrays. Loops go over 1 to 4, so that the elements beside them exist."""
MOST = 14
"""How many statements a program has about."""
LOOPS = ("1, 5", "1, 5", "1, 5", "4, 0, -1", "1, 5, 2", "1, idx[0]")
FILLS = ("np.zeros(6)", "np.zeros(6)", "np.ones(6)", "{a} * 0.5", "{a}.copy()", "{a} + a")
WHOLE = ("{a}[:] = {b} * 0.5", "{a}[1:] = {b}[:-1]", "{a}[:3] = {b}[3:]", "{a}[::-1] = {b}",
         "s1 = {b}.sum()", "{a}[...] = 0.0", "{a}[:idx[1]] = {b}[:idx[1]]", "v3 = {a}[1:]",
         "v3[1] = s1", "{a}, {b} = {b}, {a}")  # fmt: skip
TESTS = ("s1 > 0", "s2 > 0.5", "a[@] > 0", "c[0] > 0", "s3 > 2", "b[@] < 1", "s3 % 2 == 0",
         "s1 > s2", "idx[@] > 2", "not s1 > 0", "not c[0] > 0")  # fmt: skip
FORMS = (
    "{a} + {b}",
    "{a} - {b}",
    "({a}) * 0.5",
    "-({a})",
    "max({a}, {b})",
    "({a} if {t} else {b})",
)


def program(rng: random.Random) -> Program:
    """Return a program, of which plain Python may make errors."""
    return _Flow(rng).program()


class _Flow(StatementWriter):
    """A program while it is written."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.locals = rng.sample(["v1", "v2"], rng.randint(1, 2))
        self.tests = rng.sample(TESTS, rng.randint(1, 3))
        self.values = [self.value(2) for _ in range(rng.randint(2, 4))]

    def program(self) -> Program:
        """Return the whole program."""
        rng, lines = (
            self.rng,
            ["def f(a, b, c, idx):", "    s1, s2, s3, v3 = 0.5, 1.0, 3, a.copy()"],
        )
        lines += (f"    {name} = {rng.choice(FILLS).format(a='b')}" for name in self.locals)
        for _ in range(rng.randint(1, 3)):
            lines += self.statement(4, 1)
        kept = (name for name in self.locals if rng.random() < 0.3)
        lines.append(f"    return {', '.join(('s1', 's2', 's3', *kept))}")
        specs = [ArgSpec(name, "float64", (N,), seed=rng.randrange(2**31)) for name in "abc"]
        indices = ArgSpec("idx", "int64", (N,), f"index:{N}", seed=rng.randrange(2**31))
        return Program("\n".join(lines) + "\n", (*specs, indices), features=frozenset({"flow"}))

    def arrays(self) -> list[str]:
        """Return the names of arrays of numbers."""
        return ["a", "b", "c", *self.locals]

    def at(self) -> str:
        """Return a subscript: a loop's variable, beside it, fixed, or of data."""
        if not self.loops:
            return self.rng.choice(("0", "0", "1", "idx[2]", "s3 % 6"))
        v = self.rng.choice(self.loops)
        return self.rng.choice((v, v, f"{v} - 1", f"{v} - 1", f"{v} + 1", f"5 - {v}", "0", "0",
                                f"({v} + 2) % 6", f"idx[{v}]"))  # fmt: skip

    def value(self, depth: int) -> str:
        """Return the text of a number, with `@` for a subscript."""
        rng = self.rng
        if not depth or rng.random() < 0.3:
            return rng.choice(
                (f"{rng.choice(self.arrays())}[@]",) * 2 + ("s1", "s2", "1.0", "a[0]")
            )
        a, b = self.value(depth - 1), self.value(depth - 1)
        return rng.choice(FORMS).format(a=a, b=b, t=rng.choice(self.tests))

    def placed(self, text: str) -> str:
        """Return a text with one subscript in all its places."""
        return text.replace("@", self.at())

    def statement(self, depth: int, indent: int) -> list[str]:
        """Return the lines of a statement with all that is in it."""
        rng, pad = self.rng, "    " * indent
        self.count += 1
        pick = rng.random()
        if not depth or self.count > MOST or pick < 0.42 or pick > 0.72 and len(self.loops) > 2:
            return [pad + self.simple()]
        if pick < 0.72:
            test = self.placed(rng.choice(self.tests))
            return self.branch(test, depth, indent, 3, ("break", "continue"), 0.08)
        v = ("t1", "t2", "t3")[len(self.loops)]
        return self.loop_of(v, [f"{pad}for {v} in {self.range_of(LOOPS)}:"], depth, indent)

    def simple(self) -> str:
        """Return a statement without others in it."""
        rng = self.rng
        a, b, pick = rng.choice(self.arrays()), rng.choice(self.arrays()), rng.random()
        value = self.placed(rng.choice(self.values) if rng.random() < 0.6 else self.value(1))
        if pick < 0.42:
            return f"{a}[{self.at()}] {rng.choice(('=', '=', '+='))} {value}"
        if pick < 0.6:
            return f"{rng.choice(('s1', 's2'))} {rng.choice(('=', '=', '-='))} {value}"
        if pick < 0.68:
            return f"s3 = {rng.choice(('s3 + 1', '(s3 + 2) % 7', 'idx[0]', 's3 - 1'))}"
        if pick < 0.72:
            return f"idx[{self.at()}] = {rng.choice(('s3 % 6', '0', '(idx[0] + 1) % 6'))}"
        if pick < 0.84:
            return f"{rng.choice(self.locals)} = {rng.choice(FILLS).format(a=a)}"
        return rng.choice(WHOLE).format(a=a, b=b)
