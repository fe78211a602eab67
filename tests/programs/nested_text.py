"""Random programs about what one iteration leaves to another: nested loops over several arrays.

Where `flow_text` has branches over rows of numbers, these have tables, `while` loops, integers that
are subscripts and change, accumulations of several kinds in one array, slices that overlap, sums
over parts, marks that are tested and changed, counts that depend on themselves, a short array that
iterations may have for themselves, and statements in index notation among all that.
"""

from __future__ import annotations

import random

from .model import ArgSpec, Program
from .statement_writer import StatementWriter

N = 6
"""The length of all axes. Most loops leave out the ends, so that the elements beside them exist."""
MOST = 12
"""How many statements a program has about."""
LOOPS = (
    "1, 5",
    "1, 5",
    "1, 5",
    "0, 6",
    "4, 0, -1",
    "1, 5, 2",
    "1, idx[0]",
    "q1 % 6",
    "1, 1",
    "2, 3",
)
ROWS = ("a", "b", "c")
TABLES = ("x", "y")
FILLS = ("np.zeros(6)", "np.ones(6)", "{a} * 0.5", "{a}.copy()", "{a} + {b}", "np.empty(6)")
PLACES = ("np.zeros((6, 6))", "{x} * 0.5", "{x}.copy()", "{x} + {b}", "np.zeros((6, 6))")
OWN = (
    "p[0] = {a}[@]", "p[1] = {b}[@]", "p[1] += p[0]", "p[0] -= p[1]", "{a}[@] = p[0] + p[1]",
    "s1 = p[1]", "p[q1 % 2] = {a}[@]",
)  # fmt: skip
"""Statements on a short array that iterations may have for themselves."""
MARKS = (
    "g[@] = {a}[@] > 0", "g[@] = not g[@]", "g[@] = False", "q2 += g[@]", "q2 += {a}[@] > q2",
    "h[@] += {a}[@] > {b}[@]", "h[@] += {a}[@] > h[@]", "h[idx[@]] += 1", "h[@@] = h[@] % 5",
    "{a}[@] = h[@]", "g[:] = {a} > {b}", "q1 = int(g.sum())",
)  # fmt: skip
"""Statements on truth values and counts."""
WHOLE = (
    "{a}[:] = {b} * 0.5", "{a}[1:] = {a}[:-1]", "{a}[:-1] += {a}[1:]", "{a}[:3] = {b}[3:]",
    "{a}[::-1] = {b}", "{a}[1:] -= {b}[:-1]", "s1 = {b}.sum()", "s2 = {x}.max()",
    "{a}[...] = 0.0", "{a}, {b} = {b}, {a}", "{a}[:] = {x}.max(axis=0)",
    "{a}[:] = {x}.sum(axis=1) * 0.125", "{x}[:] = {y}.T", "{x}[1:] = {x}[:-1]",
    "{x}[:, 1:] += {x}[:, :-1]", "{x}[@] = {b}", "{x}[:, @] = {b}", "{x}[@] += {x}[@]",
    "{a}[:] = {x}[@]", "{a} = {x}[@] + {b}", "{a}[i] += {x}[i, j]",
    "{x}[i, j] = {a}[i] + {b}[j]", "{x}[i, j] += {y}[j, i]", "{a}[i] = sum({x}[i, j]) * 0.125",
    "{a}[i] = max({x}[j, i])", "{a}[idx[i]] += {b}[i]", "{a}[idx[i]] = {b}[i]",
    "{a}[i] = {b}[idx[i]]", "{a}[i] = {a}[5 - i] * 0.5", "{x}[i, j] = {x}[j, i]",
    "q1 = np.argmax({a})", "{a}[:q1 % 6] = {b}[:q1 % 6]",
    "{x}[@] = np.cumsum({b})", "{a}[:] = np.where({b} > 0, {a}, {c})", "{a}[{b} > 0] = 0.5",
    "s2 += {x}[:, @].sum()", "{a}[1:5] += {x}[@, 1:5]",
    "{a}[idx] = {b}", "{a} = {b}[idx]",
)  # fmt: skip
TESTS = ("s1 > 0", "s2 > 0.5", "{a}[@] > 0", "{x}[@, @@] > 0", "q1 > 2", "{b}[@] < {a}[@@]",
         "q1 % 2 == 0", "s1 > s2", "idx[@] > 2", "q2 < q1", "(a > 0).any()", "{x}[@].max() > 1",
         "g[@]", "g[@]", "not g[@]", "h[@] > 1",
         "{a}[@] > 0 and {b}[@] > 0", "q1 < 3 or {a}[@] < 0")  # fmt: skip
FORMS = ("{a} + {b}", "{a} - {b}", "({a}) * 0.5", "-({a})", "max({a}, {b})", "min({a}, {b})",
         "({a} if {t} else {b})", "({a} if {t} else {b})")  # fmt: skip
UPDATES = ("{p} = {v}", "{p} = {v}", "{p} = {v}", "{p} += {v}", "{p} += {v}", "{p} -= {v}",
           "{p} = max({p}, {v})", "{p} = min({p}, {v})", "{p} *= 0.5",
           "{p} = {p} * 0.5 + {v}")  # fmt: skip
INTEGERS = ("(q1 + 1) % 6", "(q1 + 2) % 5", "idx[@]", "q2", "q1", "(q1 + q2) % 6", "idx[q1]",
            "np.argmin({a})", "0", "5 - q1")  # fmt: skip


def program(rng: random.Random) -> Program:
    """Return a program, of which plain Python may make errors."""
    return _Nested(rng).program()


class _Nested(StatementWriter):
    """A program while it is written."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.serial = 0
        self.rows = [*ROWS, *rng.sample(["v1", "v2", "v3"], rng.randint(1, 2))]
        self.tables = [*TABLES, *rng.sample(["w1", "w2"], rng.randint(0, 2))]
        few = rng.sample(self.rows, 3) + rng.sample(self.rows[3:], 1) * 2
        self.rows_used = few if rng.random() < 0.8 else self.rows
        self.tests = rng.sample(TESTS, rng.randint(1, 3))

    def program(self) -> Program:
        """Return the whole program."""
        rng = self.rng
        lines = [
            "def f(a, b, c, x, y, idx, g, h, e):",
            "    s1, s2 = 0.5, 1.0",
            "    p = np.zeros(2)",
        ]
        lines.append(f"    q1, q2 = {rng.choice(('3, 1', 'idx[3], idx[4]', '0, 5', 'e, 2'))}")
        lines += (
            f"    {name} = {rng.choice(FILLS[:5]).format(a='b', b='c')}" for name in self.rows[3:]
        )
        lines += (
            f"    {name} = {rng.choice(PLACES).format(x='x', b='c')}" for name in self.tables[2:]
        )
        for _ in range(rng.randint(1, 3)):
            lines += self.statement(4, 1)
        kept = [name for name in (*self.rows[3:], *self.tables[2:]) if rng.random() < 0.4]
        lines.append(f"    return {', '.join(('s1', 's2', 'q1', 'q2', *kept))}")
        specs = [ArgSpec(name, "float64", (N,), seed=rng.randrange(2**31)) for name in ROWS]
        specs += [ArgSpec(name, "float64", (N, N), seed=rng.randrange(2**31)) for name in TABLES]
        specs.append(ArgSpec("idx", "int64", (N,), f"index:{N}", seed=rng.randrange(2**31)))
        specs.append(ArgSpec("g", "bool", (N,), seed=rng.randrange(2**31)))
        specs.append(ArgSpec("h", "int64", (N,), seed=rng.randrange(2**31)))
        specs.append(ArgSpec("e", "int", (), str(rng.randrange(5))))
        return Program("\n".join(lines) + "\n", tuple(specs), features=frozenset({"nested"}))

    def filled(self, text: str) -> str:
        """Return a text with names and subscripts in its places."""
        rng = self.rng
        for mark in ("@@", "@"):
            while mark in text:
                text = text.replace(mark, self.at(), 1 if rng.random() < 0.4 else -1)
        pick = {name: rng.choice(self.rows_used) for name in "abc"}
        return text.format(**pick, **{name: rng.choice(self.tables) for name in "xy"})

    def at(self) -> str:
        """Return a subscript: a loop's variable, beside it, fixed, an integer, or of data."""
        if not self.loops:
            return self.rng.choice(("0", "1", "idx[2]", "q1 % 6", "q2 % 6"))
        v = self.rng.choice(self.loops)
        return self.rng.choice((v, v, v, f"{v} - 1", f"{v} + 1", f"5 - {v}", "0", "q1 % 6",
                                "q2 % 6", f"({v} + 2) % 6", f"idx[{v}]"))  # fmt: skip

    def element(self) -> str:
        """Return an element of a row or of a table."""
        if self.rng.random() < 0.6:
            return f"{self.rng.choice(self.rows_used)}[{self.at()}]"
        return f"{self.rng.choice(self.tables)}[{self.at()}, {self.at()}]"

    def value(self, depth: int) -> str:
        """Return the text of a number."""
        rng = self.rng
        if not depth or rng.random() < 0.3:
            return rng.choice((self.element(), self.element(), "s1", "s2", "1.0"))
        a, b = self.value(depth - 1), self.value(depth - 1)
        form = rng.choice(FORMS)
        return form.format(a=a, b=b, t=self.test())

    def test(self) -> str:
        """Return a test, often one that is elsewhere, too."""
        rng = self.rng
        return self.filled(rng.choice(self.tests if rng.random() < 0.7 else TESTS))

    def statement(self, depth: int, indent: int) -> list[str]:
        """Return the lines of a statement with all that is in it."""
        rng, pad = self.rng, "    " * indent
        self.count += 1
        pick = rng.random()
        if not depth or self.count > MOST or pick < 0.4:
            return [pad + self.simple()]
        if pick < 0.58:
            jumps = ("break", "continue", "continue")
            return self.branch(self.test(), depth, indent, 2, jumps, 0.15)
        if len(self.loops) > 2:
            return [pad + self.simple()]
        return self.loop(depth, indent)

    def loop(self, depth: int, indent: int) -> list[str]:
        """Return a loop of either kind."""
        rng, pad = self.rng, "    " * indent
        self.serial += 1
        v = f"t{self.serial}"
        if rng.random() < 0.2:
            least = f"{v} < {rng.choice(('4', '3', 'idx[1]', 'q1 % 6'))}"
            test = f" and ({self.test()})" if rng.random() < 0.4 else ""
            head = [f"{pad}{v} = 0", f"{pad}while {least}{test}:", f"{pad}    {v} += 1"]
        else:
            head = [f"{pad}for {v} in {self.range_of(LOOPS)}:"]
        return self.loop_of(v, head, depth, indent)

    def simple(self) -> str:
        """Return a statement without others in it."""
        rng, pick = self.rng, self.rng.random()
        if pick < 0.42:
            return rng.choice(UPDATES).format(p=self.element(), v=self.value(rng.randint(0, 2)))
        if pick < 0.54:
            return rng.choice(UPDATES).format(p=rng.choice(("s1", "s2")), v=self.value(1))
        if pick < 0.61:
            return f"{rng.choice(('q1', 'q2'))} = {self.filled(rng.choice(INTEGERS))}"
        if pick < 0.64:
            return f"idx[{self.at()}] = {rng.choice(('q1 % 6', '0', '(idx[0] + 1) % 6'))}"
        if pick < 0.7:
            name = rng.choice(self.rows[3:])
            return f"{name} = {self.filled(rng.choice(FILLS[:5]))}"
        if pick < 0.78:
            return self.filled(rng.choice(OWN))
        if pick < 0.86:
            return self.filled(rng.choice(MARKS))
        if pick < 0.88 and len(self.tables) > 2:
            return f"{rng.choice(self.tables[2:])} = {self.filled(rng.choice(PLACES))}"
        return self.filled(rng.choice(WHOLE))
