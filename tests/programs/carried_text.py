"""Random programs about scalars that loops carry: to the next iteration, and to what comes after.

Loops assign numbers, positions, flags and single elements - plainly, under tests, from their old
values, before they are read and after - beside reductions over the same ranges, which passes fuse
with them and divide among lanes, blocks and threads. All of these scalars are returned.
"""

from __future__ import annotations

import random
import re

from .model import ArgSpec, Program

LENGTHS = (1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 32, 33, 40, 40, 64, 70, 100)
ROWS = (1, 2, 3, 4, 5, 8, 9)
DTYPES = ("float64",) * 6 + ("float32", "float32", "int64", "int32")
START = "    s1, s2, s3, q1, q2, g1, g2, r1, r2 = 0.5, -0.25, 1.0, -1, 7, False, True, 0, 0"
SCALARS = ("s1", "s2", "s3", "q1", "q2", "g1", "g2", "r1", "r2")
ELEMENTS = ("v[@]", "v[@]", "v[@]", "w[@]", "z[@]", "x[0, @]", "v[%]")
"""Elements of an iteration: `@` is the loop's variable, `%` the one from behind."""
CELLS = ("x[#, @]", "x[#, @]", "x[#, @]", "v[@]", "u[#]", "y[#, @]")
"""Those of nested loops, where `#` is the variable of the outer one."""
VALUES = ("{e}", "{e}", "{e}", "{e} * 2 + 1", "abs({e})", "{e} * {e}", "{e} - {f}", "max({e}, {f})",
          "np.sin({e})", "({e} if {t} else {f})", "{e} + {s}")  # fmt: skip
TESTS = ("{e} > 0.5", "{e} < 0", "{e} > {f}", "{e} > {s}", "@ > 3", "@ % 3 == 1", "{e} >= 100",
         "{g}", "not {g}")  # fmt: skip
ASSIGNED = (
    "{s} = {v}", "{s} = {v}", "{s} = {v}", "{s} = {s} * 0.5 + {e}", "{s} = max({s}, {v})",
    "{s} = {v}; {r} = {s} + 1", "{r} = {s}; {s} = {v}", "{s} = {v}; z[@] = {s} * 2",
    "z[@] = {s}; {s} = {v}", "{s} = {v}; {r} += {s} * 0.25", "{q} = @", "{q} = @; {s} = {v}",
    "{q} = int({e})", "{q} = {q} + 1", "{q} += {t}", "{g} = {t}", "{g} = {g} or {t}",
    "{g} = {t}; {q} += {g}", "p[0] = {v}", "p[0] = p[0] * 0.5 + {e}", "p[0] = {v}; {s} = p[0]",
    "{r} += {v}", "{r} = min({r}, {v})", "{s}, {r} = {r}, {e}", "{s} = {e} + @", "{s} = p[0]",
    "z[@] += {e}", "{q} = idx[@]", "{s} = v[idx[@]]", "p[0] += {v}", "{r} *= 0.5",
)  # fmt: skip
"""What an iteration does, in order; `{s}` and `{r}` are two different numbers."""
ALIKE = ("v", "v", "v", "w", "z", "x[0]")
"""Rows of one length."""
NUMBERS = tuple(text for text in ASSIGNED if "z[" not in text and "idx" not in text)
"""Those that every axis has the elements for."""
SIMPLE = ("{s} = {e}", "{s} = {e}", "{s} = {e} * 2 + 1", "{s} = {s} * 0.5 + {e}", "{q} = @",
          "{r} = {s}; {s} = {e}", "{s} = {e}; {r} = {s} * 2", "{s} = {e}; {r} += {s}",
          "{s} = max({s}, {e})", "if {t}: {s} = {e}", "if {t}: {q} = @", "{s} = abs({e})",
          "z[@] = {s}; {s} = {e}", "{s} = {e}; z[@] = {s}", "{g} = {t}", "{q} += {t}",
          "if {t}: {s} = {e}; {q} = @", "p[0] = {e}", "{q} = int({e})")  # fmt: skip
"""What passes fuse with reductions, and vectors could do."""
REDUCED = (
    "np.sum({a})", "np.sum({a})", "np.max({a})", "np.min({a})", "np.mean({a})", "np.std({a})",
    "np.argmax({a})", "np.argmin({a})", "np.any({a} > 0.5)", "np.all({a} > -2)",
    "np.count_nonzero({a} > 1)", "{a} @ {a}", "np.sum({a} * {b})", "np.max({a}) + np.sum({b})",
    "{a}[{a} > 0].sum()", "np.cumsum({a})[-1]", "np.sum(np.abs({a}))", "np.linalg.norm({a})",
    "np.sum(np.where({a} > 0, {a}, {b}))", "np.max(np.abs({a})) - np.min({b})",
)  # fmt: skip
PLAIN = REDUCED[:8]
"""Those of all elements, which passes put into loops beside others."""
TABLES = (
    "{r} = np.sum(x)", "{r} = np.max(x)", "u[:] = np.sum(x, axis=1)", "w[:] = np.sum(x, axis=0)",
    "u[:] = np.max(x, axis=1)", "w[:] = np.min(x, axis=0)", "{q} = np.argmax(x)", "u[:] = x @ v",
    "w[:] = u @ x", "y += x", "u[:] = np.argmax(x, axis=1)", "{g} = (x > 1).any()",
    "u[:] = np.any(x > 1, axis=1)", "y[:] = x - np.max(x, axis=1).reshape(-1, 1)",
)  # fmt: skip
WHOLE = ("z += {a}", "z[:] = {a} * 2", "w[1:] = {a}[:-1]", "z[:] = {s}", "p[0] = {s}",
         "z[:] = np.cumsum({a})", "{s} = z[-1]", "w[:] = np.maximum({a}, {s})")  # fmt: skip


def program(rng: random.Random) -> Program:
    """Return a program, of which plain Python may make errors."""
    return _Carrying(rng).program()


class _Carrying:
    """A program while it is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.m, self.n = rng.choice(ROWS), rng.choice(LENGTHS)
        self.elements: tuple[str, ...] = ELEMENTS
        self.assigned: tuple[str, ...] = ASSIGNED
        self.rounds, self.serial = False, 0
        self.few = rng.sample(("s1", "s2", "s3"), 2)

    def program(self) -> Program:
        """Return the whole program."""
        rng = self.rng
        lines = ["def f(v, w, x, u, idx):", START, "    p = np.zeros(1)"]
        lines += [f"    z = {rng.choice(('v.copy()', 'w * 2', 'v + w'))}", "    y = x.copy()"]
        if rng.random() < 0.6:
            lines += self.beside()
        for _ in range(rng.choice((0, 1, 2)) if len(lines) > 5 else rng.randint(2, 4)):
            lines += self.piece()
        names = [name for name in SCALARS if rng.random() < 0.8]
        names += [name for name in "pzy" if rng.random() < 0.6]
        lines.append(f"    return {', '.join(names or SCALARS)}")
        dtype, text = rng.choice(DTYPES), "\n".join(lines) + "\n"
        shapes = {"v": (self.n,), "w": (self.n,), "x": (self.m, self.n), "u": (self.m,)}
        specs = [ArgSpec(k, dtype, s, seed=rng.randrange(2**31)) for k, s in shapes.items()]
        seed = rng.randrange(2**31)
        specs.append(ArgSpec("idx", "int64", (self.n,), f"index:{self.n}", seed=seed))
        rounds = any(word in text for word in ("sin", "std", "mean", "norm"))
        return Program(text, tuple(specs), reorders=True, rounds=rounds,
                       features=frozenset({"carried"}))  # fmt: skip

    def beside(self) -> list[str]:
        """Return a simple loop, over elements or over rows and columns, and reductions over the
        same ranges, in some order."""
        self.serial += 2
        outer, inner = f"t{self.serial - 1}", f"t{self.serial}"
        if self.rng.random() < 0.6:
            return self.beside_rows(outer)
        return self.beside_tables(outer, inner)

    def beside_rows(self, t: str) -> list[str]:
        """Return a loop over the elements of rows, and one or two reductions of rows."""
        rng = self.rng
        self.elements = ("v[@]", "v[@]", "v[@]", "w[@]")
        texts = rng.choices(SIMPLE, k=rng.choice((1, 1, 2)))
        body = ["        " + self.filled(text) for text in texts]
        parts = [[f"    for {t} in range({self.size(self.n, 'len(v)')}):", *body]]
        for number in range(rng.choice((1, 1, 2))):
            reduced = rng.choice(PLAIN).format(a=rng.choice("vvvw"), b="v")
            parts.append([f"    r{number + 1} = {reduced}"])
        rng.shuffle(parts)
        return [self.of(line, t) for part in parts for line in part]

    def beside_tables(self, outer: str, inner: str) -> list[str]:
        """Return a loop over the rows, or columns, of a table, with a loop over the elements of
        each and a reduction of them."""
        rng = self.rng
        if rng.random() < 0.5:
            at, line, size, other, to = "x[@, #]", "x[:, #]", self.n, self.m, "y[0, #]"
        else:
            at, line, size, other, to = "x[#, @]", "x[#]", self.m, self.n, "u[#]"
        self.elements = (at,)
        texts = [one for one in SIMPLE if "z[" not in one]
        texts = texts if rng.random() < 0.4 else texts[:4]
        body = [self.filled(text) for text in rng.choices(texts, k=rng.choice((1, 1, 2)))]
        assigned = re.findall(r"\b(s\d) = ", " ".join(body)) or self.few
        use = rng.choice(("", " + ", " + ", " * "))
        use += rng.choice(assigned) if use else ""
        first = []
        if rng.random() < 0.6:  # a scalar that an iteration has for itself
            own = rng.choice(assigned)
            body, use = ([text.replace(own, "d1") for text in body], use.replace(own, "d1"))
            first.append("        d1 = x[0, 0]")
        lines = [f"    for {outer} in range({size}):", *first,
                 f"        for {inner} in range({other}):",
                 *("            " + text for text in body),
                 f"        {to} = {rng.choice(PLAIN[:5]).format(a=line)}{use}"]  # fmt: skip
        return [self.of(text.replace("#", outer), inner) for text in lines]

    def piece(self) -> list[str]:
        """Return a loop or a statement of whole arrays."""
        rng, pick = self.rng, self.rng.random()
        if pick < 0.35:
            return self.loop()
        if pick < 0.5:
            return self.nest()
        if pick < 0.82:
            reduced = rng.choice(REDUCED)
            target = rng.choice(("s1", "s2", "s3", "s3"))
            if "any" in reduced or "all" in reduced:
                target = rng.choice(("g1", "g2"))
            elif "arg" in reduced or "count" in reduced:
                target = rng.choice(("q1", "q2"))
            return ["    " + self.filled(f"{target} = {reduced}")]
        return ["    " + self.filled(rng.choice(TABLES if pick < 0.92 else WHOLE))]

    def loop(self) -> list[str]:
        """Return a loop over the elements of rows."""
        rng = self.rng
        self.serial += 1
        self.elements, self.assigned, t = ELEMENTS, ASSIGNED, f"t{self.serial}"
        if rng.random() < 0.12:
            head = [f"    {t} = -1", f"    while {t} < {self.n} - 1:", f"        {t} += 1"]
        else:
            head = [f"    for {t} in range({self.range_of(self.n, 'len(v)')}):"]
        return [*head, *(self.of(line, t) for line in self.body(8))]

    def nest(self) -> list[str]:
        """Return nested loops over a table, with statements of the outer one on either side."""
        rng = self.rng
        self.serial += 2
        i, t = f"t{self.serial - 1}", f"t{self.serial}"
        rows, columns = self.range_of(self.m, "len(u)"), self.range_of(self.n, "x.shape[1]")
        self.elements, self.assigned = ("u[@]", "u[@]", "x[@, 0]", "x[@, -1]"), NUMBERS
        before, after = (
            [line.replace("@", "#") for line in self.body(8, 1)] if rng.random() < 0.5 else []
            for _ in range(2)
        )
        if rng.random() < 0.4:
            s = rng.choice(self.few)
            before.append(f"        {s} = 0.0")
            after.insert(0, f"        u[#] = {s}")
        self.elements, self.assigned = CELLS, ASSIGNED
        inner = [line.replace("z[@]", "y[#, @]") for line in self.body(12)]
        lines = [f"    for {i} in range({rows}):", *before,
                 f"        for {t} in range({columns}):", *inner, *after]  # fmt: skip
        return [lines[0], *(self.of(line.replace("#", i), t) for line in lines[1:] if line)]

    def range_of(self, size: int, text: str) -> str:
        """Return a range of all of an axis, mostly."""
        whole = self.size(size, text)
        others = (f"{whole} - 1", f"1, {whole}", f"{whole} - 1, -1, -1")
        return self.rng.choice((whole,) * 9 + others)

    def size(self, size: int, text: str) -> str:
        """Return a size as a number, or as a text that has it."""
        return self.rng.choice((str(size), text))

    def body(self, pad: int, most: int = 3) -> list[str]:
        """Return statements of an iteration, some of them under tests, sometimes with a jump."""
        rng, lines, space = self.rng, list[str](), " " * pad
        for _ in range(rng.randint(1, most)):
            text = self.filled(rng.choice(self.assigned))
            if rng.random() < 0.25:
                test = self.filled(rng.choice(TESTS))
                lines += [f"{space}if {test}:", f"{space}    {text}"]
                if rng.random() < 0.3:
                    other = self.filled(rng.choice(self.assigned))
                    lines += [f"{space}else:", f"{space}    {other}"]
            else:
                lines.append(space + text)
        if rng.random() < 0.08:
            test, jump = self.filled(rng.choice(TESTS)), rng.choice(("break", "break", "continue"))
            is_plain = not any(line.endswith(":") for line in lines)
            at = rng.randint(0, len(lines)) if is_plain else rng.choice((0, len(lines)))
            lines.insert(at, f"{space}if {test}: {jump}")
        return lines

    def filled(self, text: str) -> str:
        """Return a text with names and values in its places."""
        rng = self.rng
        s, r = rng.sample(self.few if rng.random() < 0.8 else ("s1", "s2", "s3"), 2)
        e, f = rng.choice(self.elements), rng.choice(self.elements)
        g, q = rng.choice(("g1", "g1", "g2")), rng.choice(("q1", "q1", "q2"))
        names = {"e": e, "f": f, "s": s, "r": r, "g": g, "q": q}
        names["t"] = rng.choice(TESTS).format(**names)
        a, b = (rng.choice(ALIKE) for _ in range(2))
        if text in WHOLE:
            a, b = "v", "v"
        elif rng.random() < 0.2 and self.n > 1:
            a, b = "v[1:]", "v[1:]"
        return text.format(v=rng.choice(VALUES).format(**names), a=a, b=b, **names)

    def of(self, line: str, t: str) -> str:
        """Return a line with the loop's variable in its places."""
        return line.replace("@", t).replace("%]", f"{self.n - 1} - {t}]")
